//! Which HIP this is, and for which GPU: the environment says it, and a test may change it while it runs.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::targets::Target;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// As `hipRuntimeGetVersion` has it.
    pub version: Version,
    /// The devices' architecture.
    pub target: &'static Target,
    /// Device accesses to memory that nobody told the runtime about are retried, and so work.
    pub xnack: bool,
    /// Whatever is called on a device that is in error fails with that error, what only asks too.
    pub error_is_all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(pub i32);

impl Version {
    pub(crate) fn is_at_least(self, major: i32, minor: i32) -> bool {
        self.0 >= major * 10_000_000 + minor * 100_000
    }

    pub(crate) fn major(self) -> i32 {
        self.0 / 10_000_000
    }
}

/// What the symbols of the object are of.
const DEFAULT_VERSION: i32 = if cfg!(feature = "hip-5-2") {
    50_221_153
} else if cfg!(feature = "hip-5-7") {
    50_731_921
} else if cfg!(feature = "hip-6-4") {
    60_443_484
} else {
    70_226_015
};

impl Settings {
    pub(crate) fn from_environment() -> Settings {
        const PREFIX: &str = "DEVICE_ARENA_SIMULATED_";
        let target = Target::named("gfx90a").expect("a known one");
        let mut settings =
            Settings { version: Version(DEFAULT_VERSION), target, xnack: false, error_is_all: false };
        for name in ["HIP_VERSION", "GFX", "XNACK", "ERROR_IS_ALL"] {
            if let Ok(value) = std::env::var(format!("{PREFIX}{name}")) {
                // A misspelt setting would make a suite test something else than it says.
                assert!(settings.set(name, value.trim()), "{PREFIX}{name} can't be {value}");
            }
        }
        settings
    }

    /// Whether there is such a setting and it takes such a value.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> bool {
        match name {
            "HIP_VERSION" => value.parse().is_ok_and(|number| {
                self.version = Version(number);
                number >= 50_200_000
            }),
            "GFX" => Target::named(value).filter(|target| !target.is_generic()).is_some_and(|target| {
                self.target = target;
                true
            }),
            "XNACK" => {
                self.xnack = value == "1";
                matches!(value, "0" | "1")
            }
            "ERROR_IS_ALL" => {
                self.error_is_all = value == "1";
                matches!(value, "0" | "1")
            }
            _ => false,
        }
    }
}

static SETTINGS: LazyLock<Mutex<Settings>> = LazyLock::new(|| Mutex::new(Settings::from_environment()));

pub(crate) fn lock() -> MutexGuard<'static, Settings> {
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn version() -> Version {
    lock().version
}
