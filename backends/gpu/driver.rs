//! What a GPU vendor supplies beside its functions, and how their statuses become errors.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::fmt::Debug;
use std::sync::Arc;

use super::device::{Device, KeepAlive};
use super::devices::Known;
use super::functions::Table;
use super::library::check_not_forked;
use super::table::Function;
use crate::backend::{DeviceInfo, Vendor};
use crate::error::{Error, Result};
use crate::pointer::PointerInfo;

/// Statuses that mean the same to every vendor.
pub(crate) mod status {
    pub(crate) const OUT_OF_MEMORY: u32 = 2;
    /// The process is ending, and the driver has gone before.
    pub(crate) const DEINITIALIZED: u32 = 4;
    /// The library is a toolkit's stand-in for a driver.
    pub(crate) const STUB_LIBRARY: u32 = 34;
    pub(crate) const NO_DEVICE: u32 = 100;
    pub(crate) const INVALID_DEVICE: u32 = 101;
    pub(crate) const NOT_READY: u32 = 600;
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: u32 = 704;
    pub(crate) const CAPTURE_UNSUPPORTED: u32 = 900;
    pub(crate) const CAPTURE_IMPLICIT: u32 = 906;
    pub(crate) const CAPTURED_EVENT: u32 = 907;
}

/// A device's context as its driver knows it, or what stands for one where a driver has none. Null for none.
pub(crate) type Context = *mut c_void;

/// What was so on a thread before a driver's device was made current there.
#[derive(Debug)]
#[cfg_attr(not(feature = "rocm"), allow(dead_code, reason = "NVIDIA's driver knows both itself"))]
pub(crate) struct Before {
    /// What was current.
    pub(crate) context: Context,
    /// Whether an error that is left behind is one of this crate's calls.
    pub(crate) is_clean: bool,
}

/// One vendor's driver, loaded once and for good.
pub(crate) trait Driver: Debug + Send + Sync + 'static {
    fn vendor(&self) -> Vendor;

    fn table(&self) -> &Table;

    /// What it has said of its devices.
    fn known(&self) -> &Known;

    /// How many devices there are.
    fn count(&self) -> Result<u32>;

    /// One device, asked for now.
    fn describe(&self, ordinal: u32) -> Result<DeviceInfo>;

    /// The device's primary context, which lives as long as the process from then on.
    fn primary_context(&self, ordinal: u32) -> Result<Context>;

    /// The device and the context of a stream that somebody else made.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of this driver, and its context lives as long as `owner`.
    unsafe fn device_of_stream(&'static self, stream: *mut c_void, owner: &KeepAlive) -> Result<Arc<Device>>;

    /// Makes `context` current on this thread; answers what is to be given to [`leave`](Self::leave), or none where
    /// there is nothing to undo.
    ///
    /// # Safety
    ///
    /// The context is alive.
    unsafe fn enter(&self, context: Context) -> Result<Option<Before>>;

    /// Makes `context` current on this thread for other code than this crate's: whatever that makes current is undone by
    /// [`leave`](Self::leave) as well.
    ///
    /// # Safety
    ///
    /// The context is alive.
    unsafe fn push(&self, context: Context) -> Result<Before>;

    /// Undoes one [`push`](Self::push) or [`enter`](Self::enter) of this thread.
    fn leave(&self, before: Before);

    /// What is behind a pointer.
    ///
    /// # Safety
    ///
    /// As [`crate::backend::Backend::classify`].
    unsafe fn classify(&self, pointer: *const u8) -> Result<PointerInfo>;

    /// How host pages are asked for that every device reaches, and sees written at once.
    fn coherent_flags(&self) -> c_uint;

    /// Queues a copy between any two memories: the driver finds out what they are.
    ///
    /// # Safety
    ///
    /// Both ends are live until the stream has passed, which is alive, and its device current.
    unsafe fn copy(&self, to: u64, from: u64, bytes: usize, stream: *mut c_void) -> Result<()>;

    /// Queues [`run_host_work`](super::stream::run_host_work) with `work`. On an error it is not queued.
    ///
    /// # Safety
    ///
    /// The stream is alive, and its device current; `work` is what the function takes.
    unsafe fn queue_host_work(&self, stream: *mut c_void, work: *mut c_void) -> Result<()>;

    /// Lets the current device's kernels reach the memory of another.
    ///
    /// # Safety
    ///
    /// Some device of this driver is current.
    unsafe fn enable_peer_access(&self, peer: &Device) -> Result<()>;

    /// The driver's own name for a status; empty where it has none.
    fn status_name(&self, code: u32) -> &'static str;

    /// The images of the crate's kernels for a device, the best first.
    fn kernel_images(&self, device: &DeviceInfo) -> Vec<&'static [u8]>;

    /// The crate's kernels, compiled for a device that none of the images serves; none where the driver compiles text
    /// itself.
    fn compile_kernels(&self, _device: &DeviceInfo) -> Option<Result<Vec<u8>>> {
        None
    }

    /// Brings a kernel's code to the device now, where the driver would leave it to the first launch, which waits for what is
    /// queued then. Where that fails, the launch does it still, and says why it can't.
    ///
    /// # Safety
    ///
    /// The function is of a module that is loaded, and its device is current.
    unsafe fn load_function(&self, _function: *mut c_void) {}

    /// Whether an image has to stay as long as its module: the driver reads it later.
    fn reads_images_later(&self) -> bool {
        false
    }
}

/// A text of the driver's, which lives as long as its library: for good. Empty where there is none.
///
/// # Safety
///
/// `text` is null, or a driver's own string.
pub(crate) unsafe fn static_text(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "";
    }
    // SAFETY: the caller's promise is the same.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}

/// The error for a status.
#[cold]
pub(crate) fn error(driver: &(impl Driver + ?Sized), operation: &'static str, code: u32) -> Error {
    let (vendor, name) = (driver.vendor(), driver.status_name(code));
    match code {
        status::NO_DEVICE | status::INVALID_DEVICE => {
            Error::Unavailable { vendor, detail: format!("{operation}: no such device ({name})") }
        }
        status::CAPTURE_UNSUPPORTED | status::CAPTURED_EVENT => Error::Capturing { operation },
        _ => Error::Driver { vendor, operation, code: i64::from(code), name },
    }
}

/// Calls a function of the table, and makes an error of its status.
macro_rules! call {
    ($driver:expr, $function:ident($($argument:expr),* $(,)?)) => {
        $crate::backends::gpu::driver::call!($driver, table(), $function($($argument),*))
    };
    ($driver:expr, $table:ident(), $function:ident($($argument:expr),* $(,)?)) => {{
        let driver = $driver;
        let function = driver.$table().$function;
        match (function.call)($($argument),*) {
            0 => Ok(()),
            code => Err($crate::backends::gpu::driver::error(driver, function.name, code)),
        }
    }};
}
pub(crate) use call;

/// Keeps the thread's calls from spoiling captures of other streams while it lives: a driver counts allocations and
/// questions about events as unsafe during any capture that is global, unless the thread says that it knows better.
pub(crate) struct OutsideCaptures<'d> {
    driver: &'d dyn Driver,
    before: Option<u32>,
}

const RELAXED: u32 = 2;

impl<'d> OutsideCaptures<'d> {
    pub(crate) fn new(driver: &'d dyn Driver) -> Self {
        Self { driver, before: exchange(driver.table().exchange_capture_mode, RELAXED) }
    }
}

impl Drop for OutsideCaptures<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            exchange(self.driver.table().exchange_capture_mode, before);
        }
    }
}

type ExchangeMode = Function<unsafe extern "C" fn(*mut u32) -> u32>;

/// Sets this thread's mode; answers the one before. A driver too old to have modes knows global captures alone.
fn exchange(function: Option<ExchangeMode>, mode: u32) -> Option<u32> {
    let function = function?;
    let mut mode = mode;
    // SAFETY: the driver reads and writes the one value.
    let code = unsafe { (function.call)(&raw mut mode) };
    (code == 0).then_some(mode)
}

/// An error in a forked child, and where the driver's own thread runs host work, which may not call it.
#[inline]
pub(crate) fn check_callable(driver: &(impl Driver + ?Sized), operation: &'static str) -> Result<()> {
    check_not_forked(driver.vendor())?;
    if super::stream::is_in_host_work() { Err(Error::WouldDeadlock { operation }) } else { Ok(()) }
}
