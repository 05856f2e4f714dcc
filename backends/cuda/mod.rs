//! NVIDIA's driver: how it is found, its devices and contexts, and what it says of pointers. Everything else is what
//! GPU vendors share, in `backends/gpu`.

mod attributes;
mod classify;
mod load;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys::CUdevice_attribute as Attribute;

use self::attributes::Attributes;
use super::gpu::devices::{self, Known};
use super::gpu::driver::{self, Before, Context, Driver, call};
use super::gpu::functions::Table;
use super::gpu::library::Library;
use super::gpu::stream::run_host_work;
use super::gpu::table::table;
use super::gpu::{Device, Gpu, KeepAlive};
use super::kernels;
use crate::backend::{DeviceInfo, Vendor};
use crate::error::Result;
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
    copy = "cuMemcpyAsync"(u64, u64, usize, Handle);
    launch_host = "cuLaunchHostFunc"(Handle, unsafe extern "C" fn(*mut c_void), *mut c_void);
    enable_peer_access = "cuCtxEnablePeerAccess"(Handle, c_uint);
    }
    optional {
        error_name = "cuGetErrorName"(u32, *mut *const c_char);
        stream_context = "cuStreamGetCtx"(Handle, *mut Handle);
        function_load = "cuFuncLoad"(Handle);
        function_attribute = "cuFuncGetAttribute"(*mut c_int, c_int, Handle);
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
    known: Known,
    /// Devices in contexts that somebody else owns.
    others: Mutex<Vec<Weak<Device>>>,
}

impl CudaDriver {
    fn own(&self) -> &OwnTable {
        &self.own
    }

    fn device(&self, ordinal: u32) -> Result<c_int> {
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
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

    fn known(&self) -> &Known {
        &self.known
    }

    fn count(&self) -> Result<u32> {
        let mut count = 0;
        // SAFETY: the driver writes one number.
        unsafe { call!(self, own(), device_count(&raw mut count)) }?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    fn describe(&self, ordinal: u32) -> Result<DeviceInfo> {
        let device = self.device(ordinal)?;
        let mut name = [0u8; 256];
        // SAFETY: the driver writes as many bytes at most, the last of them a zero.
        unsafe { call!(self, own(), device_name(name.as_mut_ptr().cast(), name.len() as c_int, device)) }?;
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        let mut total = 0;
        // SAFETY: the driver writes one number.
        unsafe { call!(self, own(), device_memory(&raw mut total, device)) }?;
        let (major, minor) = self.capability(device)?;
        let number = |attribute| {
            self.attribute(device, attribute).map(|value| u32::try_from(value).unwrap_or_default())
        };
        let pci_address = number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)
            .ok()
            .zip(number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID).ok())
            .zip(number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID).ok())
            .map(|((domain, bus), device)| (domain, bus, device));
        let has = |attribute| self.attribute(device, attribute).unwrap_or(0) != 0;
        let page_tables = Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
        Ok(DeviceInfo {
            ordinal,
            name: String::from_utf8_lossy(name.get(..end).unwrap_or_default()).into_owned(),
            architecture: format!("sm_{major}{minor}"),
            total_bytes: Some(total as u64),
            reaches_pageable_memory: has(Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS),
            shares_page_tables: has(page_tables),
            multiprocessors: Some(number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?),
            block_threads: Some(number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?),
            pci_address,
        })
    }

    fn primary_context(&self, ordinal: u32) -> Result<Context> {
        let device = self.device(ordinal)?;
        let mut context = std::ptr::null_mut();
        // Never released: what is allocated in it may be in use until the process ends.
        // SAFETY: the driver writes one handle.
        unsafe { call!(self, own(), primary_retain(&raw mut context, device)) }?;
        Ok(context)
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
    unsafe fn enter(&self, context: Context) -> Result<Option<Before>> {
        debug_assert!(!context.is_null());
        let mut current = std::ptr::null_mut();
        // SAFETY: the driver writes one handle, null for none.
        unsafe { call!(self, own(), context_current(&raw mut current)) }?;
        if current == context {
            return Ok(None);
        }
        // SAFETY: the context is alive by the caller.
        unsafe { self.push(context) }.map(Some)
    }

    unsafe fn push(&self, context: Context) -> Result<Before> {
        debug_assert!(!context.is_null());
        // SAFETY: the context is alive by the caller.
        unsafe { call!(self, own(), context_push(context)) }?;
        // The driver knows itself what is below, and keeps no error of a call.
        Ok(Before { context: std::ptr::null_mut(), is_clean: false })
    }

    fn leave(&self, _before: Before) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: the driver writes one handle. It fails where nothing is current, and nothing is to be done then.
        let _ = unsafe { (self.own.context_pop.call)(&raw mut popped) };
    }

    /// CUDA 12.4 and later have a function for it. Before, whoever asks about the code has it loaded.
    unsafe fn load_function(&self, function: Handle) {
        const REGISTERS: c_int = 4;
        debug_assert!(!function.is_null());
        let mut registers = 0;
        if let Some(load) = self.own.function_load {
            // SAFETY: the function's module is loaded by the caller.
            let _ = unsafe { (load.call)(function) };
        } else if let Some(ask) = self.own.function_attribute {
            // SAFETY: as above; the driver writes one number.
            let _ = unsafe { (ask.call)(&raw mut registers, REGISTERS, function) };
        }
    }

    #[inline]
    unsafe fn classify(&self, pointer: *const u8) -> Result<PointerInfo> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.classify_pointer(pointer) }
    }

    fn coherent_flags(&self) -> c_uint {
        // The pages may be used in every context, and have an address for the device.
        const PORTABLE: c_uint = 1;
        const MAPPED: c_uint = 2;
        PORTABLE | MAPPED
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize, stream: *mut c_void) -> Result<()> {
        debug_assert!(to != 0 && from != 0);
        // SAFETY: the caller's promise is the same.
        unsafe { call!(self, own(), copy(to, from, bytes, stream)) }
    }

    unsafe fn queue_host_work(&self, stream: *mut c_void, work: *mut c_void) -> Result<()> {
        debug_assert!(!work.is_null());
        // SAFETY: the stream is alive by the caller; the driver calls the function once.
        unsafe { call!(self, own(), launch_host(stream, run_host_work, work)) }
    }

    unsafe fn enable_peer_access(&self, peer: &Device) -> Result<()> {
        debug_assert!(!peer.context().is_null());
        // SAFETY: a device's context is alive as long as the device.
        unsafe { call!(self, own(), enable_peer_access(peer.context(), 0)) }
    }

    fn status_name(&self, code: u32) -> &'static str {
        status_name(&self.own, code)
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

/// The driver's own name for a status; empty where it has none.
fn status_name(own: &OwnTable, code: u32) -> &'static str {
    let Some(function) = own.error_name else { return "" };
    let mut name = std::ptr::null();
    // SAFETY: the driver writes one pointer.
    let outcome = unsafe { (function.call)(code, &raw mut name) };
    // SAFETY: it is null, or to a string of the driver's own.
    if outcome == 0 { unsafe { driver::static_text(name) } } else { "" }
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
        let before = unsafe { self.enter(context) }?;
        let ordinal = self.current_ordinal();
        if let Some(before) = before {
            self.leave(before);
        }
        let ordinal = ordinal?;
        let primary = devices::primary(self, ordinal)?;
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
        let info = devices::info(self, ordinal)?.clone();
        // SAFETY: the context is of that device; the caller vouches for its owner.
        let device = Arc::new(unsafe { Device::new(self, info, context, Some(Arc::clone(owner))) });
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
