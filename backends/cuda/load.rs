//! How NVIDIA's driver is found: once in a process, and never again.

use std::sync::{Mutex, OnceLock};

use super::attributes::Attributes;
use super::{Cuda, CudaDriver, OwnTable};
use crate::backend::Vendor;
use crate::backends::gpu::Gpu;
use crate::backends::gpu::driver::{self, status};
use crate::backends::gpu::library::{Library, Names, watch_forks};
use crate::backends::gpu::table::Table;
use crate::error::{Error, Result};

/// Where the driver is looked for: Linux and WSL, then NixOS; on Windows its own name.
const NAMES: Names = Names {
    vendor: Vendor::Cuda,
    path_variable: "DEVICE_ARENA_CUDA_LIBRARY",
    candidates: if cfg!(windows) {
        &["nvcuda.dll"]
    } else {
        &[
            "libcuda.so.1",
            "libcuda.so",
            "/usr/lib/wsl/lib/libcuda.so.1",
            "/run/opengl-driver/lib/libcuda.so.1",
        ]
    },
};

/// Why there is no driver.
#[derive(Debug)]
struct Missing {
    error: Error,
    /// There is no library, or it finds no device: nothing that a user would have to mend.
    is_absent: bool,
    /// A library that was opened stays open.
    _library: Option<Library>,
}

static DRIVER: OnceLock<std::result::Result<CudaDriver, Missing>> = OnceLock::new();

impl Cuda {
    /// NVIDIA's driver: looked for once in a process, and never again. `DEVICE_ARENA_CUDA_LIBRARY` names a path that is
    /// tried instead of the usual names.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] with what was tried, for a driver that is too old with the function that it lacks, and in
    /// the child of a fork; [`Error::Driver`] for one that fails.
    pub fn load() -> Result<Self> {
        match Self::find() {
            Ok(driver) => {
                driver::check_callable(driver, "load")?;
                Ok(Gpu(driver))
            }
            Err(missing) => Err(missing.error.clone()),
        }
    }

    /// The driver, or none where there is no library or no device.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), but for these two.
    #[inline]
    pub fn if_present() -> Result<Option<Self>> {
        match DRIVER.get() {
            Some(Ok(driver)) => Ok(Some(Gpu(driver))),
            _ => Self::find_if_present(),
        }
    }

    #[cold]
    fn find_if_present() -> Result<Option<Self>> {
        match Self::find() {
            Err(missing) if missing.is_absent => Ok(None),
            _ => Self::load().map(Some),
        }
    }

    /// The version of the CUDA interface that the driver has: 1000 times the major and 10 times the minor number.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// The name or the path that the driver was found under.
    #[must_use]
    pub fn library(&self) -> &str {
        &self.0.library.name
    }

    fn find() -> std::result::Result<&'static CudaDriver, &'static Missing> {
        DRIVER.get_or_init(CudaDriver::load).as_ref()
    }
}

impl CudaDriver {
    fn load() -> std::result::Result<Self, Missing> {
        let missing = |error, is_absent, library| Missing { error, is_absent, _library: library };
        let library = Library::open(&NAMES).map_err(|error| missing(error, true, None))?;
        let tables = Table::load(&library).and_then(|table| Ok((table, OwnTable::load(&library)?)));
        let (table, own) = match tables {
            Ok(tables) => tables,
            Err(error) => return Err(missing(error, false, Some(library))),
        };
        watch_forks();
        // SAFETY: the driver takes no flags; calling it again does nothing.
        match unsafe { (own.init.call)(0) } {
            0 => {}
            code => {
                let name = driver::status_name(&table, code);
                let error = match code {
                    status::NO_DEVICE | status::INVALID_DEVICE | status::STUB_LIBRARY => Error::Unavailable {
                        vendor: Vendor::Cuda,
                        detail: format!(
                            "{} finds no device: {} answers {code} ({name})",
                            library.name, own.init.name
                        ),
                    },
                    _ => {
                        let (vendor, operation) = (Vendor::Cuda, own.init.name);
                        Error::Driver { vendor, operation, code: i64::from(code), name }
                    }
                };
                let is_absent = matches!(error, Error::Unavailable { .. });
                return Err(missing(error, is_absent, Some(library)));
            }
        }
        let mut version = 0;
        // SAFETY: the driver writes one number.
        unsafe { (own.driver_version.call)(&raw mut version) };
        let version = u32::try_from(version).unwrap_or(0);
        let attributes = Attributes::known_to(version);
        let (devices, primaries) = (OnceLock::new(), Mutex::default());
        let reaches_pageable = OnceLock::new();
        let driver = Self {
            library,
            table,
            own,
            version,
            attributes,
            reaches_pageable,
            devices,
            primaries,
            others: Mutex::default(),
        };
        match driver.count() {
            Ok(0) => {
                let detail = format!("{} finds no device", driver.library.name);
                let error = Error::Unavailable { vendor: Vendor::Cuda, detail };
                Err(missing(error, true, Some(driver.library)))
            }
            Ok(_) => Ok(driver),
            Err(error) => Err(missing(error, false, Some(driver.library))),
        }
    }
}
