//! NVIDIA's driver: how it is found, its devices and contexts, and what it says of pointers. Everything else is what
//! GPU vendors share, in `backends/gpu`.

mod attributes;
mod classify;
mod load;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use cudarc::driver::sys::CUdevice_attribute as Attribute;

use self::attributes::Attributes;
use super::gpu::driver::{self, Context, Driver, call};
use super::gpu::library::Library;
use super::gpu::table::{Table, table};
use super::gpu::{Device, Gpu, KeepAlive, Limits};
use super::kernels;
use crate::backend::{DeviceInfo, Vendor};
use crate::error::{Error, Result};
use crate::pointer::PointerInfo;

/// The backend of NVIDIA's GPUs.
pub type Cuda = Gpu<CudaDriver>;

type Handle = *mut c_void;

/// The handle of the stream that is another one on each thread: the last of those that stand for a default stream.
const PER_THREAD: usize = 2;

table! {
    /// The functions that no other vendor has in this form.
    OwnTable
    required {
    init = "cuInit"(c_uint);
    driver_version = "cuDriverGetVersion"(*mut c_int);
    device_count = "cuDeviceGetCount"(*mut c_int);
    device_get = "cuDeviceGet"(*mut c_int, c_int);
    device_name = "cuDeviceGetName"(*mut c_char, c_int, c_int);
    device_memory = "cuDeviceTotalMem_v2"(*mut usize, c_int);
    device_attribute = "cuDeviceGetAttribute"(*mut c_int, c_uint, c_int);
    primary_retain = "cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
    context_push = "cuCtxPushCurrent_v2"(Handle);
    context_pop = "cuCtxPopCurrent_v2"(*mut Handle);
    context_current = "cuCtxGetCurrent"(*mut Handle);
    context_device = "cuCtxGetDevice"(*mut c_int);
    pointer_attributes = "cuPointerGetAttributes"(c_uint, *mut c_uint, *mut *mut c_void, u64);
    }
    optional {
        stream_context = "cuStreamGetCtx"(Handle, *mut Handle);
    }
}

/// NVIDIA's driver, as it was found.
#[derive(Debug)]
pub struct CudaDriver {
    library: Library,
    table: Table,
    own: OwnTable,
    version: u32,
    attributes: Attributes,
    reaches_pageable: OnceLock<bool>,
    devices: OnceLock<Vec<DeviceInfo>>,
    primaries: Mutex<Vec<Option<Arc<Device>>>>,
    /// Devices in contexts that somebody else owns.
    others: Mutex<Vec<Weak<Device>>>,
}

impl CudaDriver {
    fn own(&self) -> &OwnTable {
        &self.own
    }

    fn count(&self) -> Result<c_int> {
        let mut count = 0;
        // SAFETY: the driver writes one number.
        unsafe { call!(self, own(), device_count(&raw mut count)) }?;
        Ok(count)
    }

    fn described(&self) -> Result<&[DeviceInfo]> {
        if let Some(devices) = self.devices.get() {
            return Ok(devices);
        }
        let devices = (0..self.count()?).map(|ordinal| self.describe(ordinal)).collect::<Result<Vec<_>>>()?;
        Ok(self.devices.get_or_init(|| devices))
    }

    /// Whether there is a device that reaches pageable memory.
    #[inline]
    fn reaches_pageable_memory(&self) -> bool {
        *self.reaches_pageable.get_or_init(|| {
            let reaches =
                |devices: &[DeviceInfo]| devices.iter().any(|device| device.reaches_pageable_memory);
            self.described().is_ok_and(reaches)
        })
    }

    fn describe(&self, ordinal: c_int) -> Result<DeviceInfo> {
        let device = self.device(ordinal)?;
        let mut name = [0u8; 256];
        // SAFETY: the driver writes as many bytes at most, the last of them a zero.
        unsafe { call!(self, own(), device_name(name.as_mut_ptr().cast(), name.len() as c_int, device)) }?;
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        let mut total = 0;
        // SAFETY: the driver writes one number.
        unsafe { call!(self, own(), device_memory(&raw mut total, device)) }?;
        let (major, minor) = self.capability(device)?;
        let pci =
            |attribute| self.attribute(device, attribute).ok().and_then(|value| u32::try_from(value).ok());
        let pci_address = pci(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)
            .zip(pci(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID))
            .zip(pci(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID))
            .map(|((domain, bus), device)| (domain, bus, device));
        let has = |attribute| self.attribute(device, attribute).unwrap_or(0) != 0;
        let pageable = Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
        let page_tables = Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
        let limits = self.limits(device)?;
        Ok(DeviceInfo {
            ordinal: ordinal.unsigned_abs(),
            name: String::from_utf8_lossy(name.get(..end).unwrap_or_default()).into_owned(),
            architecture: format!("sm_{major}{minor}"),
            total_bytes: Some(total as u64),
            reaches_pageable_memory: has(pageable),
            shares_page_tables: has(page_tables),
            multiprocessors: Some(limits.multiprocessors),
            block_threads: Some(limits.block_threads),
            pci_address,
        })
    }

    fn device(&self, ordinal: c_int) -> Result<c_int> {
        let mut device = 0;
        // SAFETY: the driver writes one number.
        unsafe { call!(self, own(), device_get(&raw mut device, ordinal)) }?;
        Ok(device)
    }

    fn attribute(&self, device: c_int, attribute: Attribute) -> Result<c_int> {
        let mut value = 0;
        // SAFETY: the driver writes one number.
        unsafe { call!(self, own(), device_attribute(&raw mut value, attribute as c_uint, device)) }?;
        Ok(value)
    }

    fn capability(&self, device: c_int) -> Result<(c_int, c_int)> {
        Ok((
            self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ))
    }

    fn limits(&self, device: c_int) -> Result<Limits> {
        let at_least_one = |value: c_int| u32::try_from(value).unwrap_or(1).max(1);
        let threads = self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let multiprocessors = self.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Ok(Limits { block_threads: at_least_one(threads), multiprocessors: at_least_one(multiprocessors) })
    }

    fn info(&self, ordinal: u32) -> Result<DeviceInfo> {
        let devices = self.described()?;
        devices.get(ordinal as usize).cloned().ok_or_else(|| Error::Unavailable {
            vendor: Vendor::Cuda,
            detail: format!("there is no ordinal {ordinal}, the driver has {} devices", devices.len()),
        })
    }

    /// # Safety
    ///
    /// The context is of that device, and lives as long as its owner, or for good without one.
    unsafe fn make_device(
        &'static self,
        ordinal: u32,
        context: Context,
        owner: Option<KeepAlive>,
    ) -> Result<Arc<Device>> {
        debug_assert!(!context.is_null());
        let device = self.device(c_int::try_from(ordinal).unwrap_or(c_int::MAX))?;
        let (info, limits) = (self.info(ordinal)?, self.limits(device)?);
        // SAFETY: the caller's promise is the same.
        Ok(Arc::new(unsafe { Device::new(self, info, limits, context, owner) }))
    }

    /// Undoes a push.
    fn pop(&self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: the driver writes one handle. It fails where nothing is current, and nothing is to be done then.
        let _ = unsafe { (self.own.context_pop.call)(&raw mut popped) };
    }

    /// The ordinal of the context that is current.
    fn current_ordinal(&self) -> Result<u32> {
        let mut device = 0;
        // SAFETY: the driver writes one number.
        unsafe { call!(self, own(), context_device(&raw mut device)) }?;
        // A device's handle is its ordinal, by the driver's documentation of `cuDeviceGet`.
        Ok(device.unsigned_abs())
    }
}

impl Driver for CudaDriver {
    fn vendor(&self) -> Vendor {
        Vendor::Cuda
    }

    fn table(&self) -> &Table {
        &self.table
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(self.described()?.to_vec())
    }

    fn primary(&'static self, ordinal: u32) -> Result<Arc<Device>> {
        driver::check_callable(self, "primary")?;
        self.info(ordinal)?;
        let at = ordinal as usize;
        let mut primaries = self.primaries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(device)) = primaries.get(at) {
            return Ok(Arc::clone(device));
        }
        let mut context = std::ptr::null_mut();
        let handle = self.device(c_int::try_from(ordinal).unwrap_or(c_int::MAX))?;
        // Never released: what is allocated in it may be in use until the process ends.
        // SAFETY: the driver writes one handle.
        unsafe { call!(self, own(), primary_retain(&raw mut context, handle)) }?;
        // SAFETY: the context is the device's, and was just retained for good.
        let device = unsafe { self.make_device(ordinal, context, None) }?;
        if primaries.len() <= at {
            primaries.resize(at + 1, None);
        }
        if let Some(place) = primaries.get_mut(at) {
            *place = Some(Arc::clone(&device));
        }
        Ok(device)
    }

    unsafe fn device_of_stream(&'static self, stream: *mut c_void, owner: &KeepAlive) -> Result<Arc<Device>> {
        // The handles of the default streams are small numbers that mean another stream on each thread or in each
        // context: whose they are can't be said.
        if stream.addr() <= PER_THREAD {
            let what = if stream.is_null() { "null stream" } else { "default stream" };
            return Err(crate::backend::wrong_vendor("adopt_stream", what, Vendor::Cuda));
        }
        let Some(function) = self.own.stream_context else {
            return Err(self.library.lacks("cuStreamGetCtx"));
        };
        let mut context = std::ptr::null_mut();
        // SAFETY: the caller vouches for the stream; the driver writes one handle.
        match unsafe { (function.call)(stream, &raw mut context) } {
            0 => {}
            code => return Err(driver::error(self, function.name, code)),
        }
        // SAFETY: the stream's context is alive with it.
        unsafe { self.device_of_context(context, owner) }
    }

    #[inline]
    unsafe fn enter(&self, context: Context) -> Result<bool> {
        debug_assert!(!context.is_null());
        let mut current = std::ptr::null_mut();
        // SAFETY: the driver writes one handle, null for none.
        unsafe { call!(self, own(), context_current(&raw mut current)) }?;
        if current == context {
            return Ok(false);
        }
        // SAFETY: the context is alive by the caller.
        unsafe { self.push(context) }?;
        Ok(true)
    }

    unsafe fn push(&self, context: Context) -> Result<()> {
        debug_assert!(!context.is_null());
        // SAFETY: the context is alive by the caller.
        unsafe { call!(self, own(), context_push(context)) }
    }

    fn leave(&self) {
        self.pop();
    }

    #[inline]
    unsafe fn classify(&self, pointer: *const u8) -> Result<PointerInfo> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.classify_pointer(pointer) }
    }

    fn kernel_images(&self, device: &DeviceInfo) -> Vec<&'static [u8]> {
        let capability = device.architecture.strip_prefix("sm_").and_then(|text| text.parse::<u32>().ok());
        // Machine code runs on devices of its own major version from its own minor version on.
        let mut images: Vec<_> = kernels::CUDA_CUBINS
            .iter()
            .filter(|(target, _)| capability.is_some_and(|own| own / 10 == target / 10 && own >= *target))
            .collect();
        images.sort_by_key(|(target, _)| std::cmp::Reverse(*target));
        images.into_iter().map(|(_, image)| *image).chain([kernels::CUDA_PTX]).collect()
    }
}

impl CudaDriver {
    /// The device of a context that somebody else owns; the shared one where it is a primary context.
    ///
    /// # Safety
    ///
    /// The context is alive, and lives as long as its owner.
    pub(crate) unsafe fn device_of_context(
        &'static self,
        context: Context,
        owner: &KeepAlive,
    ) -> Result<Arc<Device>> {
        debug_assert!(!context.is_null());
        // SAFETY: the context is alive by the caller.
        let entered = unsafe { self.enter(context) }?;
        let ordinal = self.current_ordinal();
        if entered {
            self.leave();
        }
        let ordinal = ordinal?;
        let primary = self.primary(ordinal)?;
        if primary.context() == context {
            return Ok(primary);
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.retain(|device| device.strong_count() != 0);
        // A device keeps its context's owner, so that one that is alive is of this very context.
        let known = others.iter().filter_map(Weak::upgrade).find(|device| device.context() == context);
        if let Some(device) = known {
            return Ok(device);
        }
        // SAFETY: the context is of that device; the caller vouches for its owner.
        let device = unsafe { self.make_device(ordinal, context, Some(Arc::clone(owner))) }?;
        others.push(Arc::downgrade(&device));
        Ok(device)
    }
}

#[cfg(feature = "cudarc")]
impl Cuda {
    /// A stream that somebody else made, in a context that is known: so a context's default stream too, whose handle is
    /// null.
    ///
    /// # Safety
    ///
    /// Stream and context are alive, belong together, and live as long as the owner.
    pub(crate) unsafe fn adopt_in_context(
        &self,
        stream: *mut c_void,
        context: Context,
        owner: KeepAlive,
    ) -> Result<crate::backend::Stream> {
        debug_assert!(!context.is_null());
        if stream.addr() == PER_THREAD {
            return Err(crate::backend::wrong_vendor("adopt_stream", "per-thread stream", Vendor::Cuda));
        }
        // SAFETY: the caller vouches for the context and its owner.
        let device = unsafe { self.0.device_of_context(context, &owner) }?;
        // SAFETY: the caller vouches for the stream.
        Ok(unsafe { super::gpu::adopted(stream, device, owner) })
    }
}
