//! Streams of a driver: made here or adopted, and host work in their order.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::ThreadId;

use super::device::{Device, KeepAlive};
use super::driver::{Driver, OutsideCaptures, call, check_callable};
use super::event::GpuEvent;
use super::long_lists::LongLists;
use super::moves::Moves;
use super::watcher;
use crate::backend::HostWork;
use crate::error::{Error, Refused, Result};
use crate::panics::contain;

/// A stream of a device.
#[derive(Debug)]
pub(crate) struct GpuStream {
    raw: *mut c_void,
    /// Where long lists of copies wait for their launch.
    pub(super) long_lists: LongLists,
    pub(super) moves: Moves,
    /// The thread that captures the stream's work through this crate. Whatever queues work holds this for reading, from
    /// its look at captures to the driver's call, so that no capture begins in between and takes the work.
    capturer: Arc<Capturer>,
    /// An event that nobody waits for, kept for the next wait.
    spare: Mutex<Option<GpuEvent>>,
    device: Arc<Device>,
    /// Whoever owns an adopted stream; none where it was made here.
    adopted: Option<KeepAlive>,
}

// SAFETY: a stream belongs to its context, not to a thread.
unsafe impl Send for GpuStream {}
// SAFETY: the drivers take work for one stream from several threads.
unsafe impl Sync for GpuStream {}

/// Keeps captures from beginning while work is queued. Never held twice by one thread: a capture that waits would be
/// waited for.
pub(crate) type Queueing<'s> = RwLockReadGuard<'s, Option<ThreadId>>;

/// The thread that captures a stream, if one does.
pub(crate) type Capturer = RwLock<Option<ThreadId>>;

/// Work is not ordered with that of the context's default stream.
const NON_BLOCKING: u32 = 1;

thread_local! {
    static IN_HOST_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is a driver's, at host work of a stream.
pub(crate) fn is_in_host_work() -> bool {
    IN_HOST_WORK.try_with(Cell::get).unwrap_or(false)
}

/// Runs boxed work that was handed to the driver.
///
/// # Safety
///
/// `work` is a box of [`HostWork`] that was leaked for this one call.
pub(crate) unsafe extern "C" fn run_host_work(work: *mut c_void) {
    debug_assert!(!work.is_null());
    // SAFETY: `enqueue` leaked this box for this one call.
    let work = unsafe { Box::from_raw(work.cast::<HostWork>()) };
    let _ = IN_HOST_WORK.try_with(|flag| flag.set(true));
    contain(*work);
    let _ = IN_HOST_WORK.try_with(|flag| flag.set(false));
}

/// Tries again what fails, but for what a lost device answers.
fn tried<R>(tries: usize, mut work: impl FnMut() -> Result<R>) -> Result<R> {
    let mut outcome = work();
    for _ in 1..tries {
        match &outcome {
            Err(error) if !error.is_of_lost_device() => outcome = work(),
            _ => break,
        }
    }
    outcome
}

impl GpuStream {
    pub(super) fn create(device: Arc<Device>) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        {
            let _current = device.enter("create_stream")?;
            let _outside = OutsideCaptures::new(device.driver);
            // SAFETY: the driver writes one handle.
            unsafe { call!(device.driver, stream_create(&raw mut raw, NON_BLOCKING)) }?;
        }
        let capturer = device.capturer(raw);
        Ok(Self {
            raw,
            long_lists: LongLists::default(),
            moves: Moves::default(),
            capturer,
            spare: Mutex::default(),
            device,
            adopted: None,
        })
    }

    /// # Safety
    ///
    /// `raw` is a live stream of the device's context, and lives as long as `owner`.
    pub(super) unsafe fn adopt(raw: *mut c_void, device: Arc<Device>, owner: KeepAlive) -> Self {
        let capturer = device.capturer(raw);
        Self {
            raw,
            long_lists: LongLists::default(),
            moves: Moves::default(),
            capturer,
            spare: Mutex::default(),
            device,
            adopted: Some(owner),
        }
    }

    /// What tells the stream from every other that is alive: the context too, whose default stream has no handle.
    pub(crate) fn identity(&self) -> (usize, usize) {
        (self.device.context().addr(), self.raw.addr())
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(crate) fn driver(&self) -> &'static dyn Driver {
        self.device.driver
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        let queueing = self.queue_outside_captures("synchronize")?;
        self.wait_behind(queueing)
    }

    /// Waits for all that is in the stream, by an event: a capture that begins meanwhile has nothing to say to that, while
    /// it would be spoilt by a wait for the stream.
    fn wait_behind(&self, queueing: Queueing<'_>) -> Result<()> {
        self.wait_with_tries(queueing, 1)
    }

    /// Waits for work that uses memory which is somebody else's when this returns. What fails is tried again: a borrow must
    /// not end before the work does, unless the device is lost, which does no work any more.
    pub(super) fn wait_for_borrowed(&self, queueing: Queueing<'_>) -> Result<()> {
        self.wait_with_tries(queueing, 3)
    }

    fn wait_with_tries(&self, queueing: Queueing<'_>, tries: usize) -> Result<()> {
        let spare = self.spare_event().take();
        let mut spare = Some(spare);
        let event = tried(tries, || {
            let event = spare.take().flatten().map_or_else(|| GpuEvent::new(&self.device), Ok)?;
            event.record(self)?;
            Ok(event)
        })?;
        // The work and the event behind it are in the stream: no capture takes them any more.
        drop(queueing);
        tried(tries, || event.wait(None))?;
        *self.spare_event() = Some(event);
        Ok(())
    }

    fn spare_event(&self) -> MutexGuard<'_, Option<GpuEvent>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps captures away while work is queued.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`] while another thread captures the stream: its graph must not take this thread's work.
    pub(crate) fn queue(&self, operation: &'static str) -> Result<Queueing<'_>> {
        let capturer = self.capturer.read().unwrap_or_else(PoisonError::into_inner);
        match *capturer {
            Some(thread) if thread != std::thread::current().id() => Err(Error::Capturing { operation }),
            _ => Ok(capturer),
        }
    }

    /// Keeps captures away, and refuses one that is under way, by this thread or by whoever else uses the driver.
    pub(super) fn queue_outside_captures(&self, operation: &'static str) -> Result<Queueing<'_>> {
        let queueing = self.queue(operation)?;
        self.refuse_capture(operation)?;
        Ok(queueing)
    }

    /// Notes that this thread begins a capture, or that it has ended. `begin` runs while nobody queues.
    pub(super) fn capture<R>(
        &self,
        capturer: Option<ThreadId>,
        begin: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let mut current = self.capturer.write().unwrap_or_else(PoisonError::into_inner);
        if capturer.is_some() && current.is_some() {
            return Err(Error::Capturing { operation: "capture" });
        }
        let outcome = begin()?;
        *current = capturer;
        Ok(outcome)
    }

    /// Whether all work of the stream has passed.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        let _queueing = self.queue_outside_captures("query")?;
        let _current = self.device.enter("query")?;
        let _outside = OutsideCaptures::new(self.driver());
        let function = self.driver().table().stream_query;
        // SAFETY: the stream is alive.
        match unsafe { (function.call)(self.raw) } {
            0 => Ok(true),
            super::driver::status::NOT_READY => Ok(false),
            code => Err(super::driver::error(self.driver(), function.name, code)),
        }
    }

    /// False on a driver that is too old to say, where captures go unnoticed.
    pub(crate) fn is_capturing(&self) -> Result<bool> {
        check_callable(self.driver(), "is_capturing")?;
        let Some(function) = self.driver().table().stream_is_capturing else { return Ok(false) };
        let mut status: c_int = 0;
        let _current = self.device.enter("is_capturing")?;
        // SAFETY: the stream is alive; the driver writes the one value.
        match unsafe { (function.call)(self.raw, &raw mut status) } {
            0 => Ok(status != 0),
            // The default stream answers so while another is being captured that it would wait for.
            super::driver::status::CAPTURE_IMPLICIT => Ok(true),
            code => Err(super::driver::error(self.driver(), function.name, code)),
        }
    }

    /// An error where the stream is being captured, before anything is asked that would spoil the capture.
    pub(crate) fn refuse_capture(&self, operation: &'static str) -> Result<()> {
        if self.is_capturing()? { Err(Error::Capturing { operation }) } else { Ok(()) }
    }

    pub(super) fn enqueue(&self, work: HostWork) -> Result<GpuEvent, Refused<HostWork>> {
        // What can fail does so first, so that work that is queued has its event.
        let prepared = self
            .queue_outside_captures("enqueue")
            .and_then(|queueing| Ok((queueing, GpuEvent::new(&self.device)?)));
        let (queueing, event) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Err(Refused::new(error, work)),
        };
        let boxed = Box::into_raw(Box::new(work));
        // SAFETY: the stream is alive; the driver calls the function once, with the box.
        let queued = self
            .device
            .enter("enqueue")
            .and_then(|_current| unsafe { self.driver().queue_host_work(self.raw, boxed.cast()) });
        if let Err(error) = queued {
            // SAFETY: the driver refused the work, so nobody else has the box.
            let work = unsafe { Box::from_raw(boxed) };
            return Err(Refused::new(error, *work));
        }
        if event.record(self).is_err() {
            // The event says that the work has passed, so it has to; a lost device does no more of it.
            let _ = self.wait_for_borrowed(queueing);
            event.give_up();
        }
        Ok(event)
    }

    pub(super) fn wait_for(&self, event: &GpuEvent) -> Result<()> {
        // A capture would take an event of its outside for a mistake, and be spoilt.
        let _queueing = self.queue_outside_captures("stream_wait")?;
        let _current = self.device.enter("stream_wait")?;
        // SAFETY: stream and event are alive.
        unsafe { call!(self.driver(), stream_wait_event(self.raw, event.raw(), 0)) }
    }
}

impl Drop for GpuStream {
    fn drop(&mut self) {
        if is_in_host_work() {
            // The driver's thread can't ask the driver for anything: another one does it.
            let spare = self.spare_event().take();
            let stream = Self {
                raw: self.raw,
                long_lists: std::mem::take(&mut self.long_lists),
                moves: std::mem::take(&mut self.moves),
                capturer: Arc::clone(&self.capturer),
                spare: Mutex::new(spare),
                device: Arc::clone(&self.device),
                adopted: self.adopted.take(),
            };
            let mut stream = Some(stream);
            watcher::retry(Box::new(move || {
                drop(stream.take());
                true
            }));
            // What is left here owns nothing.
            self.raw = std::ptr::null_mut();
            return;
        }
        // What is queued may use what goes with the stream's owner; of an adopted stream, only what was made here.
        if self.adopted.is_none() {
            let _ = self.synchronize();
        }
        self.long_lists.free();
        self.moves.free();
        if self.adopted.is_some() || self.raw.is_null() {
            return;
        }
        let Ok(_current) = self.device.enter("destroy_stream") else { return };
        let _outside = OutsideCaptures::new(self.driver());
        // SAFETY: the stream was made here and goes now.
        let _ = unsafe { call!(self.driver(), stream_destroy(self.raw)) };
    }
}
