//! What a GPU vendor supplies beside its functions, and how their statuses become errors.

use std::ffi::{CStr, c_void};
use std::fmt::Debug;
use std::sync::Arc;

use super::device::{Device, KeepAlive};
use super::library::check_not_forked;
use super::table::{Function, Table};
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

/// A context of a driver. Null for none.
pub(crate) type Context = *mut c_void;

/// One vendor's driver, loaded once and for good.
pub(crate) trait Driver: Debug + Send + Sync + 'static {
    fn vendor(&self) -> Vendor;

    fn table(&self) -> &Table;

    /// The devices, as the driver describes them.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;

    /// The device of that number, in its primary context, which lives as long as the process from then on.
    fn primary(&'static self, ordinal: u32) -> Result<Arc<Device>>;

    /// The device and the context of a stream that somebody else made.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of this driver, and its context lives as long as `owner`.
    unsafe fn device_of_stream(&'static self, stream: *mut c_void, owner: &KeepAlive) -> Result<Arc<Device>>;

    /// Makes `context` current on this thread; answers what is to be given to [`leave`](Self::leave), or none where
    /// it was current already.
    ///
    /// # Safety
    ///
    /// The context is alive.
    unsafe fn enter(&self, context: Context) -> Result<bool>;

    /// Makes `context` current on this thread, on top of whatever is.
    ///
    /// # Safety
    ///
    /// The context is alive.
    unsafe fn push(&self, context: Context) -> Result<()>;

    /// Undoes one [`push`](Self::push) of this thread, or one [`enter`](Self::enter) of this thread that answered true.
    fn leave(&self);

    /// What is behind a pointer.
    ///
    /// # Safety
    ///
    /// As [`crate::backend::Backend::classify`].
    unsafe fn classify(&self, pointer: *const u8) -> Result<PointerInfo>;

    /// The images of the crate's kernels for a device, the best first.
    fn kernel_images(&self, device: &DeviceInfo) -> Vec<&'static [u8]>;
}

/// The driver's own name for a status; empty where it has none.
pub(crate) fn status_name(table: &Table, code: u32) -> &'static str {
    let Some(function) = table.error_name else { return "" };
    let mut name = std::ptr::null();
    // SAFETY: the driver writes one pointer, to a string of its own that lives as long as its library: for good.
    let outcome = unsafe { (function.call)(code, &raw mut name) };
    if outcome != 0 || name.is_null() {
        return "";
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("")
}

/// The error for a status.
#[cold]
pub(crate) fn error(driver: &(impl Driver + ?Sized), operation: &'static str, code: u32) -> Error {
    let (vendor, name) = (driver.vendor(), status_name(driver.table(), code));
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
