//! AMD's runtime, HIP: how it is found, its devices, and what it says of pointers. Everything else is what GPU vendors
//! share, in `backends/gpu`.
//!
//! HIP has no contexts: a device is current on a thread, and what stands for its context here is its number. And it keeps
//! the last error of each thread, for whoever asks: this crate leaves none of its own there.

mod architecture;
mod classify;
mod compile;
mod functions;
mod load;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Arc, OnceLock};

use self::compile::CompilerTable;
use self::functions::{FirstTable, OwnTable};
use super::gpu::devices::{self, Known};
use super::gpu::driver::{self, Before, Context, Driver, call};
use super::gpu::functions::Table;
use super::gpu::library::Library;
use super::gpu::stream::run_host_work;
use super::gpu::{Device, Gpu, KeepAlive};
use crate::backend::{DeviceInfo, Vendor};
use crate::error::{Error, Result};
use crate::pointer::PointerInfo;

/// The backend of AMD's GPUs.
pub type Rocm = Gpu<RocmDriver>;

type ErrorName = unsafe extern "C" fn(u32) -> *const c_char;

/// What the runtime says of itself. Nothing else tells how it numbers things: neither a header nor its file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32);

impl Version {
    const fn new(major: u32, minor: u32) -> Self {
        Self(major * 10_000_000 + minor * 100_000)
    }
}

/// The first with captures and everything else that is used.
const FIRST_VERSION: Version = Version::new(5, 2);

/// The handle of the stream that is another one on each thread: the last of those that stand for a default stream.
const PER_THREAD: usize = 2;

/// The numbers of `hipDeviceAttribute_t`, which are the same from 5.2 on.
mod attribute {
    pub(super) const MAX_THREADS_PER_BLOCK: u32 = 56;
    pub(super) const MULTIPROCESSOR_COUNT: u32 = 63;
    pub(super) const PAGEABLE_MEMORY_ACCESS: u32 = 65;
    pub(super) const PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES: u32 = 66;
}

/// HIP's runtime, as it was found.
#[derive(Debug)]
pub struct RocmDriver {
    library: Library,
    table: Table,
    first: FirstTable,
    own: OwnTable,
    error_name: Option<ErrorName>,
    version: Version,
    known: Known,
    compiler: OnceLock<Result<CompilerTable>>,
}

/// Leaves a thread without an error of this crate's calls. One that was there before stays, where the runtime lets it:
/// before 7.0 any call overwrites it.
struct Tidy<'t>(&'t FirstTable);

impl Drop for Tidy<'_> {
    fn drop(&mut self) {
        if self.0.has_error() {
            // SAFETY: it takes nothing.
            let _ = unsafe { (self.0.take_error.call)() };
        }
    }
}

impl FirstTable {
    /// Whether the thread has an error that nobody has asked for yet. The question leaves it there.
    fn has_error(&self) -> bool {
        // SAFETY: it takes nothing.
        unsafe { (self.peek_error.call)() != 0 }
    }

    /// None where there is an error that is not this crate's.
    fn tidy(&self) -> Option<Tidy<'_>> {
        // Not one that is made in any case: its drop takes the error away.
        (!self.has_error()).then(|| Tidy(self))
    }

    /// Asks, and leaves the thread's error as it is. One that the caller has not seen yet is overwritten by any call of
    /// its thread, and by none of another's.
    fn beside<R: Send>(&self, ask: impl FnOnce() -> R + Send) -> Result<R> {
        if let Some(_tidy) = self.tidy() {
            return Ok(ask());
        }
        let asked = std::thread::scope(|scope| {
            let asking = std::thread::Builder::new().name("device-arena".into()).spawn_scoped(scope, ask);
            asking.ok()?.join().ok()
        });
        asked.ok_or_else(|| Error::Unavailable {
            vendor: Vendor::Rocm,
            detail: "no thread to ask on, while this one has an error of the runtime's".into(),
        })
    }
}

impl RocmDriver {
    fn own(&self) -> &OwnTable {
        &self.own
    }

    fn first(&self) -> &FirstTable {
        &self.first
    }

    fn current(&self) -> Result<c_int> {
        let mut device = 0;
        // SAFETY: the runtime writes one number.
        unsafe { call!(self, own(), current_device(&raw mut device)) }?;
        Ok(device)
    }

    fn set_current(&self, device: c_int) -> Result<()> {
        // SAFETY: any number is taken, and refused where there is no such device.
        unsafe { call!(self, own(), set_device(device)) }
    }

    fn attribute(&self, device: c_int, attribute: u32) -> Result<u32> {
        let mut value = 0;
        // SAFETY: the runtime writes one number.
        unsafe { call!(self, own(), device_attribute(&raw mut value, attribute, device)) }?;
        Ok(u32::try_from(value).unwrap_or_default())
    }

    /// Domain, bus and device, from a text such as `0000:c1:00.0`.
    fn pci_address(&self, device: c_int) -> Option<(u32, u32, u32)> {
        let function = self.own.pci_bus_id?;
        let mut text = [0u8; 64];
        // SAFETY: the runtime writes as many bytes at most.
        let code = unsafe { (function.call)(text.as_mut_ptr().cast(), text.len() as c_int, device) };
        if code != 0 {
            return None;
        }
        let text = until_zero(&text);
        let mut numbers = text.split([':', '.']).map(|part| u32::from_str_radix(part, 16).ok());
        Some((numbers.next()??, numbers.next()??, numbers.next()??))
    }
}

/// The text in front of the first zero byte; empty where it is none.
fn until_zero(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.get(..end).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
}

/// The runtime's own name for a status; empty where it has none.
fn status_name(function: Option<ErrorName>, code: u32) -> &'static str {
    let Some(function) = function else { return "" };
    // SAFETY: any number is taken; the answer is null, or to a string of the runtime's own.
    unsafe { driver::static_text(function(code)) }
}

/// What stands for a device's context. Never null.
fn context_of(device: c_int) -> Context {
    std::ptr::without_provenance_mut((device as usize).wrapping_add(1))
}

fn device_of(context: Context) -> c_int {
    context.addr().wrapping_sub(1) as c_int
}

/// Boxed work that comes with a stream and a status, where the runtime has no other way to the host.
unsafe extern "C" fn run_callback(_stream: *mut c_void, _status: u32, work: *mut c_void) {
    // SAFETY: the work is what it was queued with, for this one call.
    unsafe { run_host_work(work) }
}

impl Driver for RocmDriver {
    fn vendor(&self) -> Vendor {
        Vendor::Rocm
    }

    fn table(&self) -> &Table {
        &self.table
    }

    fn known(&self) -> &Known {
        &self.known
    }

    fn count(&self) -> Result<u32> {
        let _tidy = self.first.tidy();
        let mut count = 0;
        // SAFETY: the runtime writes one number.
        unsafe { call!(self, first(), device_count(&raw mut count)) }?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    fn describe(&self, ordinal: u32) -> Result<DeviceInfo> {
        let _tidy = self.first.tidy();
        let device = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        let mut name = [0u8; 256];
        // SAFETY: the runtime writes as many bytes at most, the last of them a zero.
        unsafe { call!(self, own(), device_name(name.as_mut_ptr().cast(), name.len() as c_int, device)) }?;
        let mut total = 0;
        // SAFETY: the runtime writes one number.
        unsafe { call!(self, own(), device_memory(&raw mut total, device)) }?;
        let has = |attribute| self.attribute(device, attribute).unwrap_or(0) != 0;
        Ok(DeviceInfo {
            ordinal,
            name: until_zero(&name).to_owned(),
            architecture: self.architecture(device),
            total_bytes: Some(total as u64),
            reaches_pageable_memory: has(attribute::PAGEABLE_MEMORY_ACCESS),
            shares_page_tables: has(attribute::PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
            multiprocessors: Some(self.attribute(device, attribute::MULTIPROCESSOR_COUNT)?),
            block_threads: Some(self.attribute(device, attribute::MAX_THREADS_PER_BLOCK)?),
            pci_address: self.pci_address(device),
        })
    }

    fn primary_context(&self, ordinal: u32) -> Result<Context> {
        Ok(context_of(c_int::try_from(ordinal).unwrap_or(c_int::MAX)))
    }

    unsafe fn device_of_stream(
        &'static self,
        stream: *mut c_void,
        _owner: &KeepAlive,
    ) -> Result<Arc<Device>> {
        // The handles of the default streams are small numbers that mean another stream on each thread or on each device:
        // whose they are can't be said.
        if stream.addr() <= PER_THREAD {
            let what = if stream.is_null() { "null stream" } else { "default stream" };
            return Err(crate::backend::wrong_vendor("adopt_stream", what, Vendor::Rocm));
        }
        let ordinal = match (self.own.stream_device, self.own.stream_device_id) {
            (Some(function), _) => {
                let _tidy = self.first.tidy();
                let mut device = 0;
                // SAFETY: the caller vouches for the stream; the runtime writes one number.
                match unsafe { (function.call)(stream, &raw mut device) } {
                    0 => u32::try_from(device).unwrap_or(u32::MAX),
                    code => return Err(driver::error(self, function.name, code)),
                }
            }
            // What older versions have in its place.
            (None, Some(function)) => {
                let _tidy = self.first.tidy();
                // SAFETY: the caller vouches for the stream.
                unsafe { (function.call)(stream) }
            }
            // There is no other device that the stream could be of.
            (None, None) if devices::described(self)?.len() == 1 => 0,
            (None, None) => return Err(self.library.lacks("hipStreamGetDevice")),
        };
        devices::primary(self, ordinal)
    }

    #[inline]
    unsafe fn enter(&self, context: Context) -> Result<Option<Before>> {
        debug_assert!(!context.is_null());
        let tidy = self.first.tidy();
        let (current, wanted) = (self.current()?, device_of(context));
        let mut before = std::ptr::null_mut();
        if current != wanted {
            self.set_current(wanted)?;
            before = context_of(current);
        }
        // What is left behind is tidied up on leaving. Before 7.0 an error of the caller's is gone by now.
        let is_clean = tidy.map(std::mem::forget).is_some() || !self.first.has_error();
        Ok(Some(Before { context: before, is_clean }))
    }

    unsafe fn push(&self, context: Context) -> Result<Before> {
        debug_assert!(!context.is_null());
        let _tidy = self.first.tidy();
        let current = self.current()?;
        self.set_current(device_of(context))?;
        // An error that other code leaves is its own.
        Ok(Before { context: context_of(current), is_clean: false })
    }

    fn leave(&self, before: Before) {
        if !before.context.is_null() {
            let _tidy = self.first.tidy();
            // The device was current a moment ago; nothing is to be done where it is lost meanwhile.
            let _ = self.set_current(device_of(before.context));
        }
        if before.is_clean {
            drop(Tidy(&self.first));
        }
    }

    unsafe fn classify(&self, pointer: *const u8) -> Result<PointerInfo> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.classify_pointer(pointer) }
    }

    fn coherent_flags(&self) -> c_uint {
        // The pages may be used on every device, have an address there, and are not cached by it, whatever the
        // environment says of pages in general.
        const PORTABLE: c_uint = 1;
        const MAPPED: c_uint = 2;
        const COHERENT: c_uint = 0x4000_0000;
        PORTABLE | MAPPED | COHERENT
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize, stream: *mut c_void) -> Result<()> {
        debug_assert!(to != 0 && from != 0);
        // The kind that the runtime finds out by the addresses.
        const DEFAULT: c_uint = 4;
        // SAFETY: the caller's promise is the same.
        unsafe { call!(self, own(), copy(to, from, bytes, DEFAULT, stream)) }
    }

    unsafe fn queue_host_work(&self, stream: *mut c_void, work: *mut c_void) -> Result<()> {
        debug_assert!(!work.is_null());
        let (name, code) = match (self.own.launch_host, self.own.add_callback) {
            // SAFETY: the stream is alive by the caller; the runtime calls the function once.
            (Some(launch), _) => (launch.name, unsafe { (launch.call)(stream, run_host_work, work) }),
            // SAFETY: as above.
            (None, Some(add)) => (add.name, unsafe { (add.call)(stream, run_callback, work, 0) }),
            (None, None) => return Err(self.library.lacks("hipLaunchHostFunc")),
        };
        if code == 0 { Ok(()) } else { Err(driver::error(self, name, code)) }
    }

    unsafe fn enable_peer_access(&self, peer: &Device) -> Result<()> {
        debug_assert!(!peer.context().is_null());
        // SAFETY: any number is taken.
        unsafe { call!(self, own(), enable_peer_access(device_of(peer.context()), 0)) }
    }

    fn status_name(&self, code: u32) -> &'static str {
        status_name(self.error_name, code)
    }

    fn kernel_images(&self, device: &DeviceInfo) -> Vec<&'static [u8]> {
        architecture::images(&device.architecture)
    }

    fn compile_kernels(&self, device: &DeviceInfo) -> Option<Result<Vec<u8>>> {
        Some(self.compile(&device.architecture))
    }

    fn reads_images_later(&self) -> bool {
        true
    }
}
