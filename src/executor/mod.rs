//! Executors: where calls compute.

mod deferred;
mod gpu;

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

pub use self::deferred::Deferred;
#[cfg(gpu)]
pub use self::gpu::{Captured, CapturedViews, Kernel, LaunchArguments, LaunchShape};
use crate::arena::Arena;
use crate::backend::{AnyBackend, Backend, DeviceInfo, Event, Host, Stream, Vendor, available};
use crate::call::Call;
use crate::error::{Error, Refused, Result};

/// Where calls compute: the host, or one device of one vendor together with one stream. Cheap to clone; two clones
/// are the same executor, and equal, and so are two that adopted the same stream of a device.
///
/// A device is used in its primary context, or in that of an adopted stream, which is current around each of the
/// driver's calls and no longer. A primary context that was used once lives as long as the process. The library is
/// looked for once; after a fork, the child has no device.
///
/// The host's stream is a queue with one worker thread, started by the first deferred call. Dropping the last clone
/// waits for the work that is queued, unless it is dropped on the worker of some host executor, which waits for none.
///
/// ```
/// use device_arena::{Arena, Executor};
///
/// let executor = Executor::best()?; // a GPU if a driver offers one, else the host
/// let arena = Arena::new(&executor);
/// let call = executor.begin(&arena)?;
/// call.finish()?;
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Clone)]
pub struct Executor(Arc<Inner>);

struct Inner {
    /// Read by every begin.
    identity: Identity,
    stream: Stream,
    backend: AnyBackend,
    ordinal: u32,
}

/// See [`Executor::identity`].
pub(crate) type Identity = (usize, usize);

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor")
            .field("vendor", &self.vendor())
            .field("ordinal", &self.0.ordinal)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Executor {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Executor {}

impl Executor {
    /// The host, with a queue of its own.
    ///
    /// # Errors
    ///
    /// None today: the queue's worker is started by the first deferred call.
    pub fn host() -> Result<Self> {
        Self::on(AnyBackend::Host(Host), 0)
    }

    /// The first GPU that a driver offers, and the host where no driver or no device exists. Any other failure is
    /// an error, not a slow run.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] of a driver that is there and fails, and [`Error::Unavailable`] of one that is too old.
    pub fn best() -> Result<Self> {
        match available().next() {
            Some(backend) => Self::on(backend?, 0),
            None => Self::host(),
        }
    }

    /// The device of that number among all GPUs: NVIDIA's ordinals come first, then AMD's.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] for a number that does not exist, with how many devices there are; what
    /// [`best`](Self::best) says.
    pub fn for_vram(number: u32) -> Result<Self> {
        let mut ordinal = number;
        for backend in available() {
            let backend = backend?;
            let count = u32::try_from(backend.devices()?.len()).unwrap_or(u32::MAX);
            if ordinal < count {
                return Self::on(backend, ordinal);
            }
            ordinal -= count;
        }
        let detail = format!("there is no GPU {number}, the drivers offer {}", number - ordinal);
        Err(Error::Unavailable { vendor: Vendor::Host, detail })
    }

    /// An NVIDIA device, in its primary context, with a stream of its own. Behind the feature `cuda`.
    ///
    /// # Errors
    ///
    /// What [`Cuda::load`](crate::backend::Cuda::load) says; [`Error::Unavailable`] for an ordinal that does not exist.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: u32) -> Result<Self> {
        Self::on(AnyBackend::Cuda(crate::backend::Cuda::load()?), ordinal)
    }

    /// An AMD device, with a stream of its own. Behind the feature `rocm`.
    ///
    /// # Errors
    ///
    /// What [`Rocm::load`](crate::backend::Rocm::load) says; [`Error::Unavailable`] for an ordinal that does not exist.
    #[cfg(feature = "rocm")]
    pub fn rocm(ordinal: u32) -> Result<Self> {
        Self::on(AnyBackend::Rocm(crate::backend::Rocm::load()?), ordinal)
    }

    /// An executor on any backend, with a stream of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] for an ordinal that does not exist.
    pub fn on(backend: AnyBackend, ordinal: u32) -> Result<Self> {
        let stream = backend.create_stream(ordinal)?;
        Ok(Self::of_stream(backend, stream))
    }

    /// An executor on a stream that somebody else made, in that stream's own context and on its device. `keep_alive` is
    /// dropped with the last clone, and with the last arena of the executor.
    ///
    /// The handles of default streams are refused: which stream they mean depends on the thread or the context that
    /// uses them.
    ///
    /// # Errors
    ///
    /// [`Error::WrongVendor`] for null and for a default stream's handle; what the driver says of the stream. `keep_alive`
    /// comes back with it.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of that backend, and it and its context live as long as `keep_alive` does.
    pub unsafe fn adopt(
        backend: AnyBackend,
        stream: *mut c_void,
        keep_alive: Box<dyn Any + Send + Sync>,
    ) -> Result<Self, Refused<Box<dyn Any + Send + Sync>>> {
        // SAFETY: the caller's promise is the same.
        let stream = unsafe { backend.adopt_stream(stream, keep_alive) }?;
        Ok(Self::of_stream(backend, stream))
    }

    pub(crate) fn of_stream(backend: AnyBackend, stream: Stream) -> Self {
        let (ordinal, identity) = (stream.ordinal(), stream.identity());
        Self(Arc::new(Inner { identity, stream, backend, ordinal }))
    }

    pub(crate) fn backend(&self) -> &AnyBackend {
        &self.0.backend
    }

    pub(crate) fn as_stream(&self) -> &Stream {
        &self.0.stream
    }

    /// What no other executor has at the same time: its stream, however often that was adopted.
    #[inline]
    pub(crate) fn identity(&self) -> Identity {
        self.0.identity
    }

    /// The device's number as its driver counts it; 0 for the host.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.0.ordinal
    }

    /// The stream's own handle, for launches and libraries that take one: a `CUstream` of a CUDA executor, a
    /// `hipStream_t` of a ROCm one. It is alive
    /// as long as the executor.
    ///
    /// # Errors
    ///
    /// None where the executor was made by this crate.
    pub fn stream(&self) -> Result<*mut c_void> {
        self.0.backend.raw_stream(&self.0.stream)
    }

    /// Whose driver.
    #[must_use]
    pub fn vendor(&self) -> Vendor {
        self.0.backend.vendor()
    }

    /// The device that the executor computes on.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] where the driver fails to say.
    pub fn device(&self) -> Result<DeviceInfo> {
        let devices = self.0.backend.devices()?;
        let device = devices.into_iter().find(|device| device.ordinal == self.0.ordinal);
        device.ok_or_else(|| Error::Unavailable {
            vendor: self.vendor(),
            detail: format!("ordinal {} is gone", self.0.ordinal),
        })
    }

    /// Begins a call that computes here: rewinds the arena, so that every view of the call before is stale.
    ///
    /// # Errors
    ///
    /// As [`Arena::begin`]; [`Error::WrongExecutor`] for an arena of another
    /// executor's device. A host arena serves every host executor.
    pub fn begin(&self, arena: &Arena) -> Result<Call> {
        self.begin_as("begin", arena)
    }

    /// Begins a call, and waits for the arena to be free for `timeout` at most.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin), once the time is up; [`Error::WouldDeadlock`] on the worker whose own work, or work queued
    /// behind it, holds the arena.
    pub fn begin_timeout(&self, arena: &Arena, timeout: Duration) -> Result<Call> {
        arena.check_executor("begin_timeout", self)?;
        arena.begin_timeout(timeout)
    }

    fn begin_as(&self, operation: &'static str, arena: &Arena) -> Result<Call> {
        arena.check_executor(operation, self)?;
        arena.begin_as(operation)
    }

    /// Runs `work` in the stream's order: on the host's worker; on a device at once, where it only queues. It owns
    /// what it uses, makes and publishes its outputs, and what it returns comes back from the [`Deferred`]. The
    /// arena is held until all of it has passed.
    ///
    /// The call finishes when `work` returns `Ok`, and is abandoned when it returns `Err` or panics, which is an
    /// error of [`Deferred::wait`].
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin), and [`Error::Unavailable`] where the system gives no
    /// worker thread; `work` comes back with it.
    pub fn defer<R, W>(&self, arena: &Arena, work: W) -> Result<Deferred<R>, Refused<W>>
    where
        R: Send + 'static,
        W: FnOnce(&mut Call) -> Result<R> + Send + 'static,
    {
        let begin = || self.begin_as("defer", arena);
        if self.vendor() == Vendor::Host {
            deferred::on_worker(&self.0.backend, &self.0.stream, begin, work)
        } else {
            deferred::at_once(&self.0.backend, &self.0.stream, begin, work)
        }
    }

    /// Leaves a call to the work that is queued here now: it is held until that has passed, and finished then.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], [`Error::WrongExecutor`], and the call with it.
    pub fn defer_call(&self, call: Call) -> Result<Deferred<()>, Refused<Call>> {
        match self.event_for(&call) {
            Ok(event) => Ok(self.defer_behind(event, call)),
            Err(error) => Err(Refused::new(error, call)),
        }
    }

    /// The event that a call can be left to: all that can fail of [`defer_call`](Self::defer_call).
    pub(crate) fn event_for(&self, call: &Call) -> Result<Event> {
        call.check_executor("defer_call", self)?;
        self.0.backend.record(&self.0.stream)
    }

    /// Leaves a call to an event of [`event_for`](Self::event_for).
    pub(crate) fn defer_behind(&self, event: Event, call: Call) -> Deferred<()> {
        deferred::behind(&self.0.backend, event, call)
    }

    /// Makes all work that is queued here from now on wait for `deferred`, without the host.
    ///
    /// # Errors
    ///
    /// [`Error::WrongVendor`], [`Error::Driver`].
    pub fn order_after<R>(&self, deferred: &Deferred<R>) -> Result<()> {
        match deferred.event() {
            Some(event) => self.0.backend.stream_wait(&self.0.stream, event),
            None => Ok(()),
        }
    }

    /// Blocks until everything that is queued here has passed.
    ///
    /// # Errors
    ///
    /// [`Error::WouldDeadlock`] on the queue's own worker,
    /// [`Error::Driver`] for an error of the queued work.
    pub fn synchronize(&self) -> Result<()> {
        self.0.backend.synchronize(&self.0.stream)
    }
}
