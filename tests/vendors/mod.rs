//! The GPU vendors of this build, for every suite: which of them are here, and which have to be.

#![allow(dead_code, reason = "what a suite needs of it differs")]

use device_arena::backend::{AnyBackend, Vendor};
use device_arena::{Error, Executor, Result};

/// In the order in which a suite that runs on one of them looks for it.
pub(crate) const ALL: &[Vendor] = &[
    #[cfg(feature = "cuda")]
    Vendor::Cuda,
    #[cfg(feature = "rocm")]
    Vendor::Rocm,
];

/// A vendor's driver.
pub(crate) fn load(vendor: Vendor) -> Result<AnyBackend> {
    match vendor {
        #[cfg(feature = "cuda")]
        Vendor::Cuda => device_arena::backend::Cuda::load().map(AnyBackend::Cuda),
        #[cfg(feature = "rocm")]
        Vendor::Rocm => device_arena::backend::Rocm::load().map(AnyBackend::Rocm),
        other => Err(Error::Unavailable { vendor: other, detail: "it is not in this build".into() }),
    }
}

/// Whether `DEVICE_ARENA_REQUIRE`, a list with commas, has the vendor's name: then its absence is a failure.
pub(crate) fn is_required(vendor: Vendor) -> bool {
    let required = std::env::var("DEVICE_ARENA_REQUIRE").unwrap_or_default();
    required.split(',').any(|name| name == vendor.to_string())
}

/// A vendor's driver; where there is none the skip is printed, or it is a failure.
#[track_caller]
pub(crate) fn present(vendor: Vendor) -> Option<AnyBackend> {
    match load(vendor) {
        Ok(backend) => Some(backend),
        Err(error) => {
            assert!(!is_required(vendor), "{vendor} is required: {error}");
            println!("backend skipped: {vendor} ({error})");
            None
        }
    }
}

/// The first vendor of this build that is required, or else that is here; none in a build without any.
pub(crate) fn first() -> Option<Vendor> {
    let mut all = ALL.iter().copied();
    let required = all.clone().find(|vendor| is_required(*vendor));
    required.or_else(|| all.find(|vendor| load(*vendor).is_ok())).or(ALL.first().copied())
}

/// A device of a vendor's, with a stream of its own.
pub(crate) fn executor(vendor: Vendor, ordinal: u32) -> Result<Executor> {
    match vendor {
        #[cfg(feature = "cuda")]
        Vendor::Cuda => Executor::cuda(ordinal),
        #[cfg(feature = "rocm")]
        Vendor::Rocm => Executor::rocm(ordinal),
        other => Executor::on(load(other)?, ordinal),
    }
}

/// The version that the driver says, and the name or the path that it was found under.
pub(crate) fn version_and_library(backend: &AnyBackend) -> (u32, &str) {
    match backend {
        #[cfg(feature = "cuda")]
        AnyBackend::Cuda(cuda) => (cuda.version(), cuda.library()),
        #[cfg(feature = "rocm")]
        AnyBackend::Rocm(rocm) => (rocm.version(), rocm.library()),
        _ => (0, ""),
    }
}

/// Runs functions that take a backend on every vendor of the build, each as a test of its own.
#[allow(unused_macros, reason = "what a suite needs differs")]
macro_rules! on_each_vendor {
    ($($case:ident),+ $(,)?) => {
        #[cfg(feature = "cuda")]
        on_each_vendor!(@ cuda Cuda: $($case),+);
        #[cfg(feature = "rocm")]
        on_each_vendor!(@ rocm Rocm: $($case),+);
    };
    (@ $module:ident $vendor:ident: $($case:ident),+) => {
        mod $module {
            $(
                #[test]
                fn $case() {
                    let vendor = device_arena::backend::Vendor::$vendor;
                    if let Some(backend) = crate::vendors::present(vendor) {
                        println!("backend: {vendor}");
                        super::$case(backend);
                    }
                }
            )+
        }
    };
}
