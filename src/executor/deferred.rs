//! Deferred calls: their results, and how to wait for them.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::arena::CoreRef;
use crate::backend::{AnyBackend, Backend, Event, Stream};
use crate::call::Call;
use crate::error::{Error, Refused, Result};
use crate::panics;

/// The outcome of a deferred call, once its work has passed. Dropping it does not end the work: the arena is held
/// until it has passed all the same.
///
/// ```
/// use device_arena::{Arena, Executor};
///
/// let executor = Executor::host()?;
/// let arena = Arena::new(&executor);
/// let soon = executor.defer(&arena, |call| {
///     Ok(call.output_from_fn(1000, |i| i as u64 * 3)?.publish())
/// })?;
/// let view = soon.wait()?;
/// assert_eq!(view.read()?[999], 2997);
/// # Ok::<(), device_arena::Error>(())
/// ```
///
/// It is a future too:
///
/// ```
/// # use device_arena::{Arena, Executor, Result};
/// async fn triple(executor: &Executor, arena: &Arena) -> Result<Vec<u64>> {
///     let work = executor.defer(arena, |call| Ok(call.output_from_fn(3, |i| i as u64 * 3)?.publish()))?;
///     work.await?.to_vec()
/// }
/// ```
#[derive(Debug)]
#[must_use = "the outcome of the work is found here alone"]
pub struct Deferred<R> {
    backend: AnyBackend,
    /// None where the work has passed already.
    event: Option<Event>,
    outcome: Outcome<R>,
    /// The core of a call that was deferred as it was, to be ended by whoever sees its event first.
    unsettled: Option<CoreRef>,
    waker: Option<Arc<Mutex<Option<Waker>>>>,
}

type Outcome<R> = Arc<Mutex<Option<Result<R>>>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Queues `work` with a call of `begin`'s. What can fail does so before anything has changed: a started stream refuses
/// no work, and what it refused all the same would run here.
pub(super) fn on_worker<R, W>(
    backend: &AnyBackend,
    stream: &Stream,
    begin: impl FnOnce() -> Result<Call>,
    work: W,
) -> Result<Deferred<R>, Refused<W>>
where
    R: Send + 'static,
    W: FnOnce(&mut Call) -> Result<R> + Send + 'static,
{
    let call = match backend.start(stream).and_then(|()| begin()) {
        Ok(call) => call,
        Err(error) => return Err(Refused::new(error, work)),
    };
    call.mark_deferred();
    // SAFETY: the call is an owner.
    let core = unsafe { CoreRef::new(call.core_ptr()) };
    let outcome: Outcome<R> = Arc::default();
    let slot = Arc::clone(&outcome);
    let job = move || {
        let result = perform(call, work);
        *locked(&slot) = Some(result);
    };
    let event = match backend.enqueue(stream, Box::new(job)) {
        Ok(event) => {
            core.note_worked(event.clone());
            Some(event)
        }
        Err(refused) => {
            (refused.value)();
            None
        }
    };
    Ok(Deferred { backend: backend.clone(), event, outcome, unsettled: None, waker: None })
}

/// Runs `work` here and now, which queues what a device is to do, and leaves the call to the event behind that.
pub(super) fn at_once<R, W>(
    backend: &AnyBackend,
    stream: &Stream,
    begin: impl FnOnce() -> Result<Call>,
    work: W,
) -> Result<Deferred<R>, Refused<W>>
where
    R: Send + 'static,
    W: FnOnce(&mut Call) -> Result<R> + Send + 'static,
{
    let mut call = match backend.start(stream).and_then(|()| begin()) {
        Ok(call) => call,
        Err(error) => return Err(Refused::new(error, work)),
    };
    let (generation, began) = (call.generation(), call.core_ptr());
    let result = outcome_of(catch_unwind(AssertUnwindSafe(|| work(&mut call))));
    // The work may have left another call in this one's place. The one it took is its new holder's.
    let is_its_own = call.core_ptr() == began && call.generation() == generation;
    let (event, result, unsettled) = match backend.record(stream) {
        Ok(event) if result.is_ok() && !is_its_own => {
            call.end();
            (Some(event), result, None)
        }
        Ok(event) if result.is_ok() => {
            // SAFETY: the call is an owner.
            let core = unsafe { CoreRef::new(call.core_ptr()) };
            call.defer(event.clone());
            (Some(event), result, Some(core))
        }
        // The call is abandoned here. What was queued is ahead of the next one in the stream.
        Ok(event) => (Some(event), result, None),
        Err(error) => (None, result.and(Err(error)), None),
    };
    let outcome = Arc::new(Mutex::new(Some(result)));
    Ok(Deferred { backend: backend.clone(), event, outcome, unsettled, waker: None })
}

/// What the caller's work came to: its panic is an error.
fn outcome_of<R>(outcome: std::thread::Result<Result<R>>) -> Result<R> {
    outcome.unwrap_or_else(|payload| {
        let message = panics::message(payload.as_ref());
        panics::discard(payload);
        Err(Error::Panicked { message })
    })
}

fn perform<R>(mut call: Call, work: impl FnOnce(&mut Call) -> Result<R>) -> Result<R> {
    let generation = call.generation();
    // SAFETY: the call is an owner.
    let core = unsafe { CoreRef::new(call.core_ptr()) };
    let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut call)));
    if call.core_ptr() != core.as_non_null() || call.generation() != generation {
        // The work left another call in this one's place. The one it took is its new holder's, and runs.
        core.unmark_deferred(generation);
    }
    outcome_of(outcome).inspect(|_| call.end())
}

/// Leaves `call` to the work that is in the stream ahead of `event`.
pub(super) fn behind(backend: &AnyBackend, event: Event, call: Call) -> Deferred<()> {
    // SAFETY: the call is an owner.
    let core = unsafe { CoreRef::new(call.core_ptr()) };
    call.defer(event.clone());
    let outcome = Arc::new(Mutex::new(Some(Ok(()))));
    Deferred { backend: backend.clone(), event: Some(event), outcome, unsettled: Some(core), waker: None }
}

impl<R> Deferred<R> {
    pub(super) fn event(&self) -> Option<&Event> {
        self.event.as_ref()
    }

    fn has_passed(&self) -> Result<bool> {
        self.event.as_ref().map_or(Ok(true), |event| self.backend.has_passed(event))
    }

    fn wait_for_event(&self, timeout: Option<Duration>) -> Result<bool> {
        self.event.as_ref().map_or(Ok(true), |event| self.backend.wait(event, timeout))
    }

    /// Whether the work has passed. Never blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], also for an error of the queued work.
    pub fn is_done(&self) -> Result<bool> {
        let passed = self.has_passed()?;
        if passed {
            self.settle()?;
        }
        Ok(passed)
    }

    /// Blocks until the work has passed; returns what it returned.
    ///
    /// # Errors
    ///
    /// What the work returned; [`Error::Panicked`] where it panicked; [`Error::WouldDeadlock`] on the worker that
    /// would do the work; [`Error::AlreadyTaken`].
    pub fn wait(self) -> Result<R> {
        self.wait_for_event(None)?;
        self.take()
    }

    /// Blocks until the work has passed, or for `timeout` at most: `None` if the time was up first.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<R>> {
        if self.wait_for_event(Some(timeout))? { self.take().map(Some) } else { Ok(None) }
    }

    fn settle(&self) -> Result<()> {
        self.unsettled.as_ref().map_or(Ok(false), |core| core.settle()).map(drop)
    }

    fn take(&self) -> Result<R> {
        self.settle()?;
        locked(&self.outcome).take().unwrap_or(Err(Error::AlreadyTaken))
    }
}

impl<R> Future for Deferred<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R>> {
        let this = &mut *self;
        let wakes = context.waker().clone();
        match &this.waker {
            Some(waker) => {
                // A waker's drop is the user's code: not under the lock.
                let before = locked(waker).replace(wakes);
                drop(before);
            }
            None => {
                let waker = Arc::new(Mutex::new(Some(wakes)));
                let woken = Arc::clone(&waker);
                let wake = move || {
                    let waker = locked(&woken).take();
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                };
                if let Some(event) = &this.event
                    && let Err(refused) = this.backend.notify(event, Box::new(wake))
                {
                    return Poll::Ready(Err(refused.error));
                }
                this.waker = Some(waker);
            }
        }
        // The event may have passed before the waker was in its place.
        match this.has_passed() {
            Ok(true) => Poll::Ready(this.take()),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
