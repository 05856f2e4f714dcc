//! Events of a driver.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::device::Device;
use super::driver::{OutsideCaptures, call, error, status};
use super::stream::GpuStream;
use crate::backend::Vendor;
use crate::error::Result;

/// A point in a stream's work. Clones are the same event.
#[derive(Debug, Clone)]
pub(crate) struct GpuEvent(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    raw: *mut c_void,
    device: Arc<Device>,
    /// Seen to have passed, so that nobody asks again.
    passed: AtomicBool,
}

// SAFETY: an event belongs to its context, not to a thread.
unsafe impl Send for Shared {}
// SAFETY: the drivers answer for one event on several threads.
unsafe impl Sync for Shared {}

/// The driver keeps no time for it, which makes it cheap.
const DISABLE_TIMING: u32 = 2;

/// The pauses between two questions of a wait that can end before its event has passed.
const SHORTEST_PAUSE: Duration = Duration::from_micros(5);
const LONGEST_PAUSE: Duration = Duration::from_micros(500);

impl GpuEvent {
    /// An event that was not recorded yet, which has passed by the drivers' word.
    pub(super) fn new(device: &Arc<Device>) -> Result<Self> {
        let _current = device.enter("create_event")?;
        let _outside = OutsideCaptures::new(device.driver);
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        unsafe { call!(device.driver, event_create(&raw mut raw, DISABLE_TIMING)) }?;
        Ok(Self(Arc::new(Shared { raw, device: Arc::clone(device), passed: AtomicBool::new(false) })))
    }

    pub(super) fn vendor(&self) -> Vendor {
        self.0.device.driver.vendor()
    }

    pub(super) fn raw(&self) -> *mut c_void {
        self.0.raw
    }

    /// Puts the event behind all work of the stream, which is of the same device.
    pub(super) fn record(&self, stream: &GpuStream) -> Result<()> {
        let device = &self.0.device;
        let _current = device.enter("record")?;
        self.0.passed.store(false, Ordering::Release);
        // SAFETY: event and stream are alive.
        unsafe { call!(device.driver, event_record(self.0.raw, stream.raw())) }
    }

    /// Marks an event that could not be recorded: its device is lost, and nothing more will come of the work.
    pub(super) fn give_up(&self) {
        self.0.passed.store(true, Ordering::Release);
    }

    pub(super) fn has_passed(&self) -> Result<bool> {
        if self.0.passed.load(Ordering::Acquire) {
            return Ok(true);
        }
        let device = &self.0.device;
        let _current = device.enter("has_passed")?;
        let _outside = OutsideCaptures::new(device.driver);
        let function = device.driver.table().event_query;
        // SAFETY: the event is alive.
        match unsafe { (function.call)(self.0.raw) } {
            0 => {
                self.0.passed.store(true, Ordering::Release);
                Ok(true)
            }
            status::NOT_READY => Ok(false),
            code => Err(error(device.driver, function.name, code)),
        }
    }

    pub(super) fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        let deadline = match timeout.map(|timeout| Instant::now().checked_add(timeout)) {
            // No timeout, or one beyond what the clock can say.
            None | Some(None) => {
                self.wait_for_good()?;
                return Ok(true);
            }
            Some(Some(deadline)) => deadline,
        };
        // The drivers have no wait that ends.
        let mut pause = SHORTEST_PAUSE;
        loop {
            if self.has_passed()? {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn wait_for_good(&self) -> Result<()> {
        if self.0.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        let device = &self.0.device;
        let _current = device.enter("wait")?;
        let _outside = OutsideCaptures::new(device.driver);
        // SAFETY: the event is alive.
        unsafe { call!(device.driver, event_synchronize(self.0.raw)) }?;
        self.0.passed.store(true, Ordering::Release);
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let Ok(_current) = self.device.enter("destroy_event") else { return };
        let _outside = OutsideCaptures::new(self.device.driver);
        // SAFETY: nobody refers to the event any more; a driver lets go of one that has not passed once it has.
        let _ = unsafe { call!(self.device.driver, event_destroy(self.raw)) };
    }
}
