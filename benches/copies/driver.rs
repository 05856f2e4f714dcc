//! The driver's own functions: what the crate is compared with, and the events that time a device's work.

use std::ffi::{CString, c_int, c_uint, c_void};

use libloading::Library;

use crate::timing::Outcome;

/// A stream, an event or a pool, as the driver names them.
pub type Handle = *mut c_void;

type Answer = c_int;

/// The driver's functions, by the names of its header. What a test's driver may lack is optional.
#[derive(Debug)]
pub struct Driver {
    pub pointer_attributes: unsafe extern "C" fn(c_uint, *mut c_uint, *mut *mut c_void, u64) -> Answer,
    copy: unsafe extern "C" fn(u64, u64, usize, Handle) -> Answer,
    fill: unsafe extern "C" fn(u64, u8, usize, Handle) -> Answer,
    synchronize: unsafe extern "C" fn(Handle) -> Answer,
    pub allocate: unsafe extern "C" fn(*mut u64, usize, Handle) -> Answer,
    pub free: unsafe extern "C" fn(u64, Handle) -> Answer,
    default_pool: Option<unsafe extern "C" fn(*mut Handle, c_int) -> Answer>,
    set_pool_attribute: Option<unsafe extern "C" fn(Handle, c_uint, *mut c_void) -> Answer>,
    event_create: unsafe extern "C" fn(*mut Handle, c_uint) -> Answer,
    event_record: unsafe extern "C" fn(Handle, Handle) -> Answer,
    event_synchronize: unsafe extern "C" fn(Handle) -> Answer,
    event_elapsed: Option<unsafe extern "C" fn(*mut f32, Handle, Handle) -> Answer>,
}

/// A function of a library.
///
/// # Safety
///
/// `T` is the type of the function's declaration.
pub unsafe fn function<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    let symbol = CString::new(name).map_err(|error| error.to_string())?;
    // SAFETY: the type is the caller's promise.
    unsafe { library.get::<T>(symbol.as_bytes_with_nul()) }
        .map(|found| *found)
        .map_err(|_| format!("no {name}"))
}

/// An error where a call of the driver or of its runtime answered one.
pub fn done(call: &str, code: c_int) -> Outcome {
    if code == 0 { Ok(()) } else { Err(format!("{call} answered {code}")) }
}

/// Two events, and the time between them.
#[derive(Debug, Clone, Copy)]
pub struct Events {
    first: Handle,
    last: Handle,
}

impl Driver {
    /// Opens the library that the crate has loaded already; it stays open.
    pub fn open(name: &str) -> Result<Self, String> {
        // SAFETY: the library is the driver's, which the crate has loaded.
        let library = unsafe { Library::new(name) }.map_err(|error| error.to_string())?;
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the fields' types are those of the driver's declarations.
        unsafe {
            Ok(Self {
                pointer_attributes: function(library, "cuPointerGetAttributes")?,
                copy: function(library, "cuMemcpyAsync")?,
                fill: function(library, "cuMemsetD8Async")?,
                synchronize: function(library, "cuStreamSynchronize")?,
                allocate: function(library, "cuMemAllocAsync")?,
                free: function(library, "cuMemFreeAsync")?,
                default_pool: function(library, "cuDeviceGetDefaultMemPool").ok(),
                set_pool_attribute: function(library, "cuMemPoolSetAttribute").ok(),
                event_create: function(library, "cuEventCreate")?,
                event_record: function(library, "cuEventRecord")?,
                event_synchronize: function(library, "cuEventSynchronize")?,
                event_elapsed: function(library, "cuEventElapsedTime").ok(),
            })
        }
    }

    /// Queues one copy between any two memories.
    ///
    /// # Safety
    ///
    /// Both ends are live and as long until the stream has passed.
    pub unsafe fn copy(&self, to: *mut u8, from: *const u8, bytes: usize, stream: Handle) -> Outcome {
        // SAFETY: the caller's promise is the same.
        done("cuMemcpyAsync", unsafe { (self.copy)(to.addr() as u64, from.addr() as u64, bytes, stream) })
    }

    /// Queues one fill of a device's memory.
    ///
    /// # Safety
    ///
    /// The bytes are live, and nobody else's, until the stream has passed.
    pub unsafe fn fill(&self, to: *mut u8, value: u8, bytes: usize, stream: Handle) -> Outcome {
        // SAFETY: the caller's promise is the same.
        done("cuMemsetD8Async", unsafe { (self.fill)(to.addr() as u64, value, bytes, stream) })
    }

    /// Waits for a stream.
    pub fn synchronize(&self, stream: Handle) -> Outcome {
        // SAFETY: the stream is the bench's own, and alive.
        done("cuStreamSynchronize", unsafe { (self.synchronize)(stream) })
    }

    /// Lets the device's own pool keep all that it has.
    pub fn warm_pool(&self, ordinal: c_int) -> Outcome {
        let (Some(pool_of), Some(set)) = (self.default_pool, self.set_pool_attribute) else {
            return Err("the driver has no pools".to_owned());
        };
        let (mut pool, mut most) = (std::ptr::null_mut(), u64::MAX);
        // SAFETY: the driver writes the pool; attribute 4 is the release threshold, of 64 bits.
        unsafe {
            done("cuDeviceGetDefaultMemPool", pool_of(&raw mut pool, ordinal))?;
            done("cuMemPoolSetAttribute", set(pool, 4, (&raw mut most).cast()))
        }
    }

    /// Events that time, which live as long as the program. None where the driver can't say what lies between two.
    pub fn events(&self) -> Option<Events> {
        self.event_elapsed?;
        let (mut first, mut last) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the driver writes one event each.
        let codes =
            unsafe { ((self.event_create)(&raw mut first, 0), (self.event_create)(&raw mut last, 0)) };
        (codes == (0, 0)).then_some(Events { first, last })
    }

    /// Microseconds of a stream between the begin and the end of what `work` queues.
    pub fn elapsed(
        &self,
        events: Events,
        stream: Handle,
        work: &mut dyn FnMut() -> Outcome,
    ) -> Result<f64, String> {
        let elapsed = self.event_elapsed.ok_or("no cuEventElapsedTime")?;
        let mut milliseconds = 0.0f32;
        // SAFETY: events and stream are alive.
        done("cuEventRecord", unsafe { (self.event_record)(events.first, stream) })?;
        work()?;
        // SAFETY: as above; the driver writes one number.
        unsafe {
            done("cuEventRecord", (self.event_record)(events.last, stream))?;
            done("cuEventSynchronize", (self.event_synchronize)(events.last))?;
            done("cuEventElapsedTime", elapsed(&raw mut milliseconds, events.first, events.last))?;
        }
        Ok(f64::from(milliseconds) * 1e3)
    }
}
