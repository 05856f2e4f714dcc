//! Kernels of the user's own, by whichever vendor's driver the executor has.

use std::ffi::c_void;
use std::sync::Arc;

use super::super::Executor;
use crate::backend::{StreamKind, Vendor};
use crate::backends::gpu::{self, Device, Module, Shape};
use crate::error::{Error, Result};

/// A kernel of a loaded image, for the executors of the device and the context that it was loaded for. Clones are the
/// same; the last one of an image unloads it.
#[derive(Debug, Clone)]
pub struct Kernel {
    kernel: gpu::Kernel,
    /// After the kernel, whose context it keeps.
    device: Arc<Device>,
}

/// The shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks, by dimension.
    pub grid: [u32; 3],
    /// Threads of a block, by dimension.
    pub block: [u32; 3],
    /// Shared memory in bytes, beyond what the kernel declares.
    pub shared_bytes: u32,
}

impl LaunchShape {
    /// As many blocks of `block` threads as `threads` fill; one at least.
    #[must_use]
    pub fn linear(threads: u64, block: u32) -> Self {
        let blocks = threads.div_ceil(u64::from(block.max(1))).clamp(1, i32::MAX as u64);
        Self { grid: [blocks as u32, 1, 1], block: [block.max(1), 1, 1], shared_bytes: 0 }
    }
}

impl Executor {
    /// Loads an image and finds kernels in it: PTX or SPIR-V-like text that ends with a zero byte, or machine code, as
    /// the driver takes it.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] on the host, which has no kernels, and for a name with a zero byte in it; [`Error::Driver`]
    /// for an image that the driver does not take, and for a name that the image lacks.
    ///
    /// # Safety
    ///
    /// The image is whole: text ends with a zero byte, machine code is as long as its header says.
    pub unsafe fn load_kernels<const N: usize>(&self, image: &[u8], names: [&str; N]) -> Result<[Kernel; N]> {
        let StreamKind::Gpu(stream) = &self.as_stream().0 else { return Err(no_kernels()) };
        let device = stream.device();
        // SAFETY: the caller vouches for the image; each kernel keeps the device.
        let module = unsafe { Module::load(device, image) }?;
        let mut kernels = Vec::with_capacity(N);
        for name in names {
            kernels.push(Kernel { kernel: module.kernel(device, name)?, device: Arc::clone(device) });
        }
        // As many as there are names.
        kernels.try_into().map_err(|_| no_kernels())
    }

    /// Queues a launch on the executor's stream. `arguments` point to values as the kernel declares them, and are read
    /// before this returns.
    ///
    /// # Errors
    ///
    /// [`Error::WrongVendor`] for a kernel that was loaded for another device or context; [`Error::Driver`] for a shape
    /// that the device does not have. Nothing is queued then. An error of the kernel itself surfaces at the first wait.
    ///
    /// # Safety
    ///
    /// The arguments are as many, and of the types, that the kernel declares. The kernel reads and writes only what the
    /// caller may: device pointers of outputs of the running call, and of guards and staged tapes that are kept until
    /// the work has passed or the call has ended.
    pub unsafe fn launch(
        &self,
        kernel: &Kernel,
        shape: LaunchShape,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let StreamKind::Gpu(stream) = &self.as_stream().0 else { return Err(no_kernels()) };
        if !kernel.kernel.is_on(stream.device()) {
            return Err(crate::backend::wrong_vendor("launch", "kernel", Vendor::Cuda));
        }
        debug_assert!(kernel.device.context() == stream.device().context());
        let LaunchShape { grid, block, shared_bytes } = shape;
        // SAFETY: the caller's promise is the same.
        unsafe { kernel.kernel.launch(stream, Shape { grid, block, shared_bytes }, arguments) }
    }
}

fn no_kernels() -> Error {
    Error::Option { option: "kernel", reason: "this executor is the host, which has no kernels" }
}
