//! How NVIDIA's driver is found: once in a process, and never again.

use std::sync::Mutex;

use super::attributes::Attributes;
use super::{Cuda, CudaDriver, OwnTable, status_name};
use crate::backend::Vendor;
use crate::backends::gpu::devices::Known;
use crate::backends::gpu::driver::Driver;
use crate::backends::gpu::found::{Missing, Search};
use crate::backends::gpu::functions::Table;
use crate::backends::gpu::library::{Library, Names, watch_forks};
use crate::error::Result;

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
    prefers_loaded: false,
    root_variables: &[],
    in_roots: "",
};

static SEARCH: Search<CudaDriver> = Search::new(CudaDriver::load);

impl Cuda {
    /// NVIDIA's driver: looked for once in a process, and never again. `DEVICE_ARENA_CUDA_LIBRARY` names a path that is
    /// tried instead of the usual names.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable) with what was tried, for a driver that is too old with the function that it lacks, and in
    /// the child of a fork; [`Error::Driver`](crate::Error::Driver) for one that fails.
    pub fn load() -> Result<Self> {
        SEARCH.load()
    }

    /// The driver, or none where there is no library or no device.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), but for these two.
    #[inline]
    pub fn if_present() -> Result<Option<Self>> {
        SEARCH.if_present()
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
}

impl CudaDriver {
    fn load() -> Result<Self, Missing> {
        let library = Library::open(&NAMES).map_err(Missing::library)?;
        let tables = Table::load(&library).and_then(|table| Ok((table, OwnTable::load(&library)?)));
        let (table, own) = match tables {
            Ok(tables) => tables,
            Err(error) => return Err(Missing::unusable(error, library)),
        };
        watch_forks();
        // SAFETY: the driver takes no flags; calling it again does nothing.
        let code = unsafe { (own.init.call)(0) };
        if code != 0 {
            let status = (code, status_name(&own, code));
            return Err(Missing::by_status(Vendor::Cuda, own.init.name, status, library));
        }
        let mut version = 0;
        // SAFETY: the driver writes one number.
        unsafe { (own.driver_version.call)(&raw mut version) };
        let version = u32::try_from(version).unwrap_or(0);
        let attributes = Attributes::known_to(version);
        let (known, others) = (Known::default(), Mutex::default());
        let driver = Self { library, table, own, version, attributes, known, others };
        match driver.count() {
            Ok(0) => Err(Missing::device(Vendor::Cuda, "", driver.library)),
            Ok(_) => Ok(driver),
            Err(error) => Err(Missing::unusable(error, driver.library)),
        }
    }
}
