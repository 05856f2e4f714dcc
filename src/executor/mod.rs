//! Executors: where calls compute.

mod deferred;

use std::sync::Arc;
use std::time::Duration;

pub use self::deferred::Deferred;
use crate::arena::Arena;
use crate::backend::{AnyBackend, Backend, DeviceInfo, Host, Stream, Vendor};
use crate::call::Call;
use crate::error::{Refused, Result};

/// Where calls compute: the host, or one device of one vendor together with one stream. Cheap to clone; two clones
/// are the same executor, and equal.
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
#[derive(Debug, Clone)]
pub struct Executor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    stream: Stream,
    backend: AnyBackend,
    ordinal: u32,
}

impl PartialEq for Executor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
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
    /// [`Error::Driver`](crate::Error::Driver) of a driver that is there and fails.
    pub fn best() -> Result<Self> {
        Self::host()
    }

    /// An executor on any backend, with a stream of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable) for an ordinal that does not exist.
    pub fn on(backend: AnyBackend, ordinal: u32) -> Result<Self> {
        let stream = backend.create_stream(ordinal)?;
        Ok(Self(Arc::new(Inner { stream, backend, ordinal })))
    }

    pub(crate) fn backend(&self) -> &AnyBackend {
        &self.0.backend
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
    /// [`Error::Driver`](crate::Error::Driver) where the driver fails to say.
    pub fn device(&self) -> Result<DeviceInfo> {
        let devices = self.0.backend.devices()?;
        let device = devices.into_iter().find(|device| device.ordinal == self.0.ordinal);
        device.ok_or_else(|| crate::Error::Unavailable {
            vendor: self.vendor(),
            detail: format!("ordinal {} is gone", self.0.ordinal),
        })
    }

    /// Begins a call that computes here: rewinds the arena, so that every view of the call before is stale.
    ///
    /// # Errors
    ///
    /// As [`Arena::begin`]; [`Error::WrongExecutor`](crate::Error::WrongExecutor) for an arena of another
    /// executor's device. A host arena serves every host executor.
    pub fn begin(&self, arena: &Arena) -> Result<Call> {
        self.begin_as("begin", arena)
    }

    /// Begins a call, and waits for the arena to be free for `timeout` at most.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin), once the time is up.
    pub fn begin_timeout(&self, arena: &Arena, timeout: Duration) -> Result<Call> {
        arena.check_vendor("begin_timeout", self.vendor())?;
        arena.begin_timeout(timeout)
    }

    fn begin_as(&self, operation: &'static str, arena: &Arena) -> Result<Call> {
        arena.check_vendor(operation, self.vendor())?;
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
    /// As [`begin`](Self::begin), and [`Error::Unavailable`](crate::Error::Unavailable) where the system gives no
    /// worker thread; `work` comes back with it.
    pub fn defer<R, W>(&self, arena: &Arena, work: W) -> Result<Deferred<R>, Refused<W>>
    where
        R: Send + 'static,
        W: FnOnce(&mut Call) -> Result<R> + Send + 'static,
    {
        deferred::run(&self.0.backend, &self.0.stream, || self.begin_as("defer", arena), work)
    }

    /// Leaves a call to the work that is queued here now: it is held until that has passed, and finished then.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`](crate::Error::Driver), and the call with it.
    pub fn defer_call(&self, call: Call) -> Result<Deferred<()>, Refused<Call>> {
        deferred::call(&self.0.backend, &self.0.stream, call)
    }

    /// Makes all work that is queued here from now on wait for `deferred`, without the host.
    ///
    /// # Errors
    ///
    /// [`Error::WrongVendor`](crate::Error::WrongVendor), [`Error::Driver`](crate::Error::Driver).
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
    /// [`Error::WouldDeadlock`](crate::Error::WouldDeadlock) on the queue's own worker,
    /// [`Error::Driver`](crate::Error::Driver) for an error of the queued work.
    pub fn synchronize(&self) -> Result<()> {
        let event = self.0.backend.record(&self.0.stream)?;
        self.0.backend.wait(&event, None).map(drop)
    }
}
