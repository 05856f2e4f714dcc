//! The vendors of this build, and what differs between them.

use device_arena::Result;
use device_arena::backend::{AnyBackend, Vendor};

pub struct Gpus {
    pub vendor: Vendor,
    /// What decides which driver and which devices a process sees.
    pub variables: &'static [&'static str],
    /// The file in which the kernel's module says its version.
    pub module: &'static str,
    pub load: fn() -> Result<AnyBackend>,
    pub library_and_version: fn(&AnyBackend) -> (String, String),
}

pub const ALL: &[Gpus] = &[
    #[cfg(feature = "cuda")]
    Gpus {
        vendor: Vendor::Cuda,
        variables: &["DEVICE_ARENA_CUDA_LIBRARY", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"],
        module: "/proc/driver/nvidia/version",
        load: || device_arena::backend::Cuda::load().map(AnyBackend::Cuda),
        library_and_version: |backend| {
            let AnyBackend::Cuda(cuda) = backend else { return Default::default() };
            let version = cuda.version();
            (cuda.library().into(), format!("{}.{}", version / 1000, version % 1000 / 10))
        },
    },
    #[cfg(feature = "rocm")]
    Gpus {
        vendor: Vendor::Rocm,
        variables: &[
            "DEVICE_ARENA_ROCM_LIBRARY",
            "DEVICE_ARENA_HIPRTC_LIBRARY",
            "HIP_VISIBLE_DEVICES",
            "ROCR_VISIBLE_DEVICES",
        ],
        module: "/sys/module/amdgpu/version",
        load: || device_arena::backend::Rocm::load().map(AnyBackend::Rocm),
        library_and_version: |backend| {
            let AnyBackend::Rocm(rocm) = backend else { return Default::default() };
            let version = rocm.version();
            let (major, minor, patch) = (version / 10_000_000, version / 100_000 % 100, version % 100_000);
            (rocm.library().into(), format!("{major}.{minor}.{patch}"))
        },
    },
];
