//! How HIP's runtime is found: once in a process, and never again.

use std::sync::OnceLock;

use super::functions::{FirstTable, OwnTable};
use super::{FIRST_VERSION, Rocm, RocmDriver, Version, status_name};
use crate::backend::Vendor;
use crate::backends::gpu::devices::Known;
use crate::backends::gpu::found::{Missing, Search};
use crate::backends::gpu::functions::Table;
use crate::backends::gpu::library::{Library, Names, watch_forks};
use crate::error::{Error, Result};

/// Where the runtime is looked for. Its file's number says nothing of its version: some distributions have kept 7 for 10.
const NAMES: Names = Names {
    vendor: Vendor::Rocm,
    path_variable: "DEVICE_ARENA_ROCM_LIBRARY",
    // One that the process has already keeps its own lists of devices and memory: a second one would not know them.
    prefers_loaded: true,
    candidates: if cfg!(windows) {
        &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]
    } else {
        &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so", "libamdhip64.so.10"]
    },
    root_variables: ROOTS,
    in_roots: if cfg!(windows) { "bin/amdhip64.dll" } else { "lib/libamdhip64.so" },
};

/// What says where an installation is.
pub(super) const ROOTS: &[&str] = &["ROCM_PATH", "HIP_PATH"];

static SEARCH: Search<RocmDriver> = Search::new(RocmDriver::load);

impl Rocm {
    /// HIP's runtime: looked for once in a process, and never again. `DEVICE_ARENA_ROCM_LIBRARY` names a path that is tried
    /// instead of the usual names. One that the process has loaded before is taken before any other.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] with what was tried, for a runtime that is too old with what it lacks, and in the child of a
    /// fork; [`Error::Driver`] for one that fails.
    pub fn load() -> Result<Self> {
        SEARCH.load()
    }

    /// The runtime, or none where there is no library or no device.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), but for these two.
    #[inline]
    pub fn if_present() -> Result<Option<Self>> {
        SEARCH.if_present()
    }

    /// The version that the runtime says it has: 10 000 000 times the major, 100 000 times the minor number, and a patch
    /// number that follows no rule.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.0.version.0
    }

    /// The name or the path that the runtime was found under.
    #[must_use]
    pub fn library(&self) -> &str {
        &self.0.library.name
    }
}

impl RocmDriver {
    fn load() -> Result<Self, Missing> {
        let library = Library::open(&NAMES).map_err(Missing::library)?;
        // Without a device nothing else counts, and least of all what an old library lacks.
        let first = match FirstTable::load(&library) {
            Ok(first) => first,
            Err(error) => return Err(Missing::unusable(error, library)),
        };
        watch_forks();
        // SAFETY: the type is that of the runtime's declaration.
        let error_name = unsafe { library.function("hipGetErrorName") };
        let asked = first.beside(|| {
            // SAFETY: the runtime takes no flags; calling it again does nothing.
            let init = unsafe { (first.init.call)(0) };
            let mut count = 0;
            // SAFETY: the runtime writes one number.
            let counted = unsafe { (first.device_count.call)(&raw mut count) };
            ([(first.init.name, init), (first.device_count.name, counted)], count)
        });
        let (answers, count) = match asked {
            Ok(answers) => answers,
            Err(error) => return Err(Missing::unusable(error, library)),
        };
        for (operation, code) in answers {
            if code != 0 {
                let status = (code, status_name(error_name, code));
                return Err(Missing::by_status(Vendor::Rocm, operation, status, library));
            }
        }
        if count <= 0 {
            return Err(Missing::device(Vendor::Rocm, "", library));
        }
        let tables = Table::load(&library).and_then(|table| Ok((table, OwnTable::load(&library)?)));
        let (table, own) = match tables {
            Ok((_, own)) if own.launch_host.is_none() && own.add_callback.is_none() => {
                return Err(Missing::unusable(library.lacks("hipLaunchHostFunc"), library));
            }
            Ok(tables) => tables,
            Err(error) => return Err(Missing::unusable(error, library)),
        };
        let asked = first.beside(|| {
            let mut version = 0;
            // SAFETY: the runtime writes one number.
            unsafe { (own.runtime_version.call)(&raw mut version) };
            Version(u32::try_from(version).unwrap_or(0))
        });
        let version = match asked {
            Ok(version) => version,
            Err(error) => return Err(Missing::unusable(error, library)),
        };
        if version < FIRST_VERSION {
            let detail = format!("the runtime {} is too old: its version is {}", library.name, version.0);
            return Err(Missing::unusable(Error::Unavailable { vendor: Vendor::Rocm, detail }, library));
        }
        Ok(Self {
            library,
            table,
            first,
            own,
            error_name,
            version,
            known: Known::default(),
            compiler: OnceLock::new(),
        })
    }
}
