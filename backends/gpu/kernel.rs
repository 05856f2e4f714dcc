//! Modules, their kernels, and launches.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use super::device::Device;
use super::driver::{Context, Driver, OutsideCaptures, call, check_callable};
use super::stream::{GpuStream, Queueing};
use crate::error::{Error, Result};

/// A loaded image. Clones are the same; the last unloads it. Whoever has one keeps its device.
#[derive(Debug, Clone)]
pub(crate) struct Module(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    raw: *mut c_void,
    driver: &'static dyn Driver,
    context: Context,
    /// What the driver may still read.
    image: Option<Image>,
}

/// A copy of an image, aligned as files of machine code have to be.
struct Image(Box<[u128]>);

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({} bytes)", self.bytes().len())
    }
}

impl Image {
    fn of(bytes: &[u8]) -> Self {
        let mut words = vec![0u128; bytes.len().div_ceil(size_of::<u128>())].into_boxed_slice();
        for (place, byte) in bytemuck::cast_slice_mut(&mut words).iter_mut().zip(bytes) {
            *place = *byte;
        }
        Self(words)
    }

    /// The image, with zero bytes behind it up to a multiple of 16.
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

// SAFETY: a module belongs to its context, not to a thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Module {
    /// # Errors
    ///
    /// [`Error::Driver`] for an image that the driver does not take.
    ///
    /// # Safety
    ///
    /// `image` is text that ends with a zero byte, or a whole file of machine code. The device outlives the module.
    pub(crate) unsafe fn load(device: &Device, image: &[u8]) -> Result<Self> {
        debug_assert!(!image.is_empty());
        let kept = device.driver.reads_images_later().then(|| Image::of(image));
        let image = kept.as_ref().map_or(image, Image::bytes);
        let _current = device.enter("load")?;
        let _outside = OutsideCaptures::new(device.driver);
        let mut raw = std::ptr::null_mut();
        // SAFETY: the image is whole by the caller; the driver writes one handle.
        unsafe { call!(device.driver, module_load(&raw mut raw, image.as_ptr().cast())) }?;
        let (driver, context) = (device.driver, device.context());
        Ok(Self(Arc::new(Loaded { raw, driver, context, image: kept })))
    }

    /// # Errors
    ///
    /// [`Error::Driver`] for a name that the module does not have.
    pub(crate) fn kernel(&self, device: &Device, name: &str) -> Result<Kernel> {
        let invalid = |_| Error::Option { option: "kernel", reason: "a name with a zero byte in it" };
        let symbol = CString::new(name).map_err(invalid)?;
        let _current = device.enter("kernel")?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with a zero byte; the driver writes one handle.
        unsafe { call!(device.driver, module_function(&raw mut raw, self.0.raw, symbol.as_ptr())) }?;
        let _outside = OutsideCaptures::new(device.driver);
        // SAFETY: the function is of this module, and its device current.
        unsafe { device.driver.load_function(raw) };
        Ok(Kernel { raw, module: self.clone() })
    }
}

impl Loaded {
    fn unload(&self) -> Result<()> {
        check_callable(self.driver, "unload")?;
        // SAFETY: the device, and with it the context, outlives the module.
        let before = unsafe { self.driver.enter(self.context) }?;
        let outside = OutsideCaptures::new(self.driver);
        // SAFETY: nothing refers to the module any more; the driver waits for launches that are under way.
        let outcome = unsafe { call!(self.driver, module_unload(self.raw)) };
        drop(outside);
        if let Some(before) = before {
            self.driver.leave(before);
        }
        outcome
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // What a lost device had is read by nobody any more.
        if self.unload().is_err_and(|error| !error.is_of_lost_device()) {
            // The driver has the module still, and may read its image: that stays for good.
            std::mem::forget(self.image.take());
        }
    }
}

/// A function of a module.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    raw: *mut c_void,
    module: Module,
}

// SAFETY: a function belongs to its module, not to a thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// The shape of a launch: blocks, threads of a block, bytes of shared memory beyond what the kernel declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
}

impl Kernel {
    /// Whether the kernel was loaded in that device's context.
    pub(crate) fn is_on(&self, device: &Device) -> bool {
        self.module.0.context == device.context()
    }

    /// Queues a launch. The arguments are read before this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`]; nothing is queued then.
    ///
    /// # Safety
    ///
    /// `arguments` are pointers to values as the kernel declares them, and the kernel touches nothing that it may not.
    pub(crate) unsafe fn launch(
        &self,
        stream: &GpuStream,
        shape: Shape,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let queueing = stream.queue("launch")?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.launch_queued(stream, &queueing, shape, arguments) }
    }

    /// As [`launch`](Self::launch), for who keeps captures away for longer.
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch).
    ///
    /// # Safety
    ///
    /// As [`launch`](Self::launch).
    pub(crate) unsafe fn launch_queued(
        &self,
        stream: &GpuStream,
        _queueing: &Queueing<'_>,
        shape: Shape,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let device = stream.device();
        debug_assert!(self.is_on(device));
        let Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes } = shape;
        let (stream, arguments) = (stream.raw(), arguments.as_mut_ptr());
        let extra = std::ptr::null_mut();
        let _current = device.enter("launch")?;
        // SAFETY: the kernel is of this context; what it touches is the caller's promise.
        unsafe {
            call!(
                device.driver,
                launch(self.raw, gx, gy, gz, bx, by, bz, shared_bytes, stream, arguments, extra)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_image_lies_as_the_allocator_liked() {
        let bytes: Vec<u8> = (0..100).collect();
        for start in 0..17 {
            for end in start..100 {
                let image = Image::of(&bytes[start..end]);
                assert_eq!(image.bytes().as_ptr().addr() % 16, 0);
                assert_eq!(image.bytes()[..end - start], bytes[start..end]);
            }
        }
    }
}
