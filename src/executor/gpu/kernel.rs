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
    /// As many blocks of `block` threads as `threads` fill: one at least, and at most what every vendor's devices take, which
    /// is 2^31 - 1 blocks and fewer than 2^32 threads in all. A kernel that may get more threads' work than that goes on in
    /// steps of the grid.
    #[must_use]
    pub fn linear(threads: u64, block: u32) -> Self {
        let block = block.max(1);
        let most = (u32::MAX / block).min(i32::MAX as u32).max(1);
        let blocks = threads.div_ceil(u64::from(block)).clamp(1, u64::from(most));
        Self { grid: [blocks as u32, 1, 1], block: [block, 1, 1], shared_bytes: 0 }
    }
}

/// How files of machine code begin: for one device; for several, of NVIDIA's, and of AMD's plain and compressed.
const MACHINE_CODE: [&[u8]; 4] =
    [b"\x7fELF", &0xBA55_ED50_u32.to_le_bytes(), b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"];

impl Executor {
    /// Loads an image and finds kernels in it: PTX text with a zero byte behind it for NVIDIA's driver, or machine code as
    /// the driver takes it, for one device or for several. For a text file,
    /// `concat!(include_str!("kernels.ptx"), "\0").as_bytes()`.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] on the host, which has no kernels, for an image that is neither, and for a name with a zero byte in
    /// it; [`Error::Driver`]
    /// for an image that the driver does not take, and for a name that the image lacks.
    ///
    /// # Safety
    ///
    /// The image is whole: text ends with a zero byte, machine code is as long as its header says.
    pub unsafe fn load_kernels<const N: usize>(&self, image: &[u8], names: [&str; N]) -> Result<[Kernel; N]> {
        let StreamKind::Gpu(stream) = &self.as_stream().0 else { return Err(no_kernels()) };
        let device = stream.device();
        // Machine code says how long it is; text ends where its zero byte is, and nowhere without one.
        let is_code = MACHINE_CODE.iter().any(|magic| image.starts_with(magic));
        if !is_code && self.vendor() == Vendor::Rocm {
            return Err(Error::Option {
                option: "image",
                reason: "AMD's runtime takes a code object or a fat binary, and no text",
            });
        }
        if image.is_empty() || !is_code && image.last() != Some(&0) {
            return Err(Error::Option {
                option: "image",
                reason: "neither machine code nor text with a zero byte behind",
            });
        }
        // SAFETY: the caller vouches for the image; each kernel keeps the device.
        let module = unsafe { Module::load(device, image) }?;
        let mut kernels = Vec::with_capacity(N);
        for name in names {
            kernels.push(Kernel { kernel: module.kernel(device, name)?, device: Arc::clone(device) });
        }
        // As many as there are names.
        kernels.try_into().map_err(|_| no_kernels())
    }

    /// Queues a launch on the executor's stream. `arguments` are a tuple of the values that the kernel declares, or
    /// pointers to them; they are read before this returns.
    ///
    /// ```no_run
    /// # use device_arena::{Arena, Executor, LaunchShape};
    /// # let image = b"\0";
    /// let executor = Executor::cuda(0)?;
    /// let arena = Arena::new(&executor);
    /// // SAFETY: the image is text that ends with a zero byte.
    /// let [square] = unsafe { executor.load_kernels(image, ["square"]) }?;
    /// let call = executor.begin(&arena)?;
    /// let mut squares = call.output::<u32>(1000)?;
    /// let arguments = (squares.device_ptr()?, 1000u64);
    /// // SAFETY: the kernel is `square(unsigned* out, unsigned long long count)`, and writes `count` values.
    /// unsafe { executor.launch(&square, LaunchShape::linear(1000, 256), arguments) }?;
    /// let view = squares.publish();
    /// call.finish()?;
    /// assert_eq!(view.to_vec()?[3], 9);
    /// # Ok::<(), device_arena::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Option`] for a kernel that was loaded for another device or context; [`Error::Driver`] for a shape
    /// that the device does not have. Nothing is queued then. An error of the kernel itself surfaces at the first wait.
    ///
    /// # Safety
    ///
    /// The arguments are as many, and of the types, that the kernel declares. The kernel reads and writes only what the
    /// caller may: room of calls that are running when it is queued; what a guard holds, which is dropped after that; and a
    /// staged tape, whose memory has to stay as it is until the work has *passed* where it was not copied. Within a capture all
    /// of it is to be kept until the graph is gone.
    pub unsafe fn launch(
        &self,
        kernel: &Kernel,
        shape: LaunchShape,
        arguments: impl LaunchArguments,
    ) -> Result<()> {
        let StreamKind::Gpu(stream) = &self.as_stream().0 else { return Err(no_kernels()) };
        if !kernel.kernel.is_on(stream.device()) {
            return Err(Error::Option {
                option: "kernel",
                reason: "it was loaded for another device or context",
            });
        }
        debug_assert!(kernel.device.context() == stream.device().context());
        let LaunchShape { grid, block, shared_bytes } = shape;
        // SAFETY: the caller's promise is the same.
        let launch = |arguments: &mut [*mut c_void]| unsafe {
            kernel.kernel.launch(stream, Shape { grid, block, shared_bytes }, arguments)
        };
        arguments.with_pointers(launch)
    }
}

/// What a launch passes to its kernel: a tuple of up to twelve values, or pointers to them.
pub trait LaunchArguments {
    /// Gives `launch` a pointer to each value. The values stay where they are until it returns.
    fn with_pointers<R>(self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R;
}

impl LaunchArguments for () {
    fn with_pointers<R>(self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R {
        launch(&mut [])
    }
}

impl LaunchArguments for &mut [*mut c_void] {
    fn with_pointers<R>(self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R {
        launch(self)
    }
}

impl<const N: usize> LaunchArguments for &mut [*mut c_void; N] {
    fn with_pointers<R>(self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R {
        launch(self)
    }
}

macro_rules! tuples {
    ($( ($($name:ident),+) )+) => {
        $(
            impl<$($name: Copy),+> LaunchArguments for ($($name,)+) {
                #[expect(non_snake_case, reason = "the types name the values")]
                fn with_pointers<R>(self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R {
                    let ($(mut $name,)+) = self;
                    launch(&mut [$(std::ptr::from_mut(&mut $name).cast()),+])
                }
            }
        )+
    };
}

tuples! {
    (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) (A, B, C, D, E, F, G)
    (A, B, C, D, E, F, G, H) (A, B, C, D, E, F, G, H, I) (A, B, C, D, E, F, G, H, I, J)
    (A, B, C, D, E, F, G, H, I, J, K) (A, B, C, D, E, F, G, H, I, J, K, L)
}

fn no_kernels() -> Error {
    Error::Option { option: "kernel", reason: "this executor is the host, which has no kernels" }
}
