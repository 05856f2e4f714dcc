//! Deferred work as it is: its handle, its gate, and the body of its closure.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use device_arena::backend::{Event, Vendor};
use device_arena::{Arena, Call, Deferred, Error, Executor};

use super::Checked;
use super::answers::SCRIPTED;
use super::real::scripted_panic;
use super::script::{Done, Way, perform};
use crate::lane::Lane;
use crate::program::{Ending, Step};

/// Longer than anything takes that a program does not hold up itself.
pub(super) const LONG: Duration = Duration::from_secs(10);

/// What deferred work answers: a number of its own, and what it made unless that was handed on before.
pub(super) type Outcome = (u64, Option<Done>);

pub(super) enum Handle {
    Closure(Deferred<Outcome>),
    Call(Deferred<()>),
}

/// Work in a queue, as it is.
#[derive(Default)]
pub(super) struct RealWork {
    /// Dropped to open it.
    pub(super) gate: Option<Sender<()>>,
    pub(super) handle: Option<Handle>,
    pub(super) steps: Vec<Step>,
    pub(super) token: u64,
    pub(super) early: bool,
    /// What the closure did, once it did it.
    pub(super) done: Option<Receiver<Done>>,
    pub(super) marker: Option<Marker>,
    pub(super) woken: Arc<Woken>,
    /// Its outputs were filled in the stream's order.
    pub(super) queued: bool,
}

/// What passes directly behind the work.
pub(super) enum Marker {
    Call(Deferred<()>, Arena),
    Point(Lane, Event),
}

impl Marker {
    /// Behind what was queued last.
    pub(super) fn new(executor: &Executor, lane: Option<&Lane>) -> Checked<Self> {
        if let Some(lane) = lane {
            let point = lane.mark().map_err(|error| error.to_string())?;
            return Ok(Self::Point(lane.clone(), point));
        }
        let arena = Arena::host();
        let call = arena.begin().map_err(|error| error.to_string())?;
        let marker = executor.defer_call(call).map_err(|refused| refused.error.to_string())?;
        Ok(Self::Call(marker, arena))
    }

    /// Waits for it; whether it passed.
    pub(super) fn passes(self) -> bool {
        match self {
            Self::Call(mut deferred, _arena) => matches!(deferred.wait_timeout(LONG), Ok(Some(()))),
            Self::Point(lane, point) => lane.passes(&point, LONG).unwrap_or(false),
        }
    }
}

/// Counts how often a future was woken.
#[derive(Default)]
pub(super) struct Woken {
    pub(super) times: AtomicU32,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.times.fetch_add(1, Ordering::SeqCst);
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

impl Woken {
    /// Waits until somebody was woken; whether that was in time.
    pub(super) fn was_woken(&self) -> bool {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let asleep = |(): &mut ()| self.times.load(Ordering::SeqCst) == 0;
        self.changed.wait_timeout_while(lock, LONG, asleep).is_ok_and(|(_, timeout)| !timeout.timed_out())
    }
}

impl Handle {
    pub(super) fn is_done(&self) -> Result<bool, Error> {
        match self {
            Self::Closure(deferred) => deferred.is_done(),
            Self::Call(deferred) => deferred.is_done(),
        }
    }

    pub(super) fn wait(self) -> Result<Outcome, Error> {
        match self {
            Self::Closure(deferred) => deferred.wait(),
            Self::Call(deferred) => deferred.wait().map(|()| (0, None)),
        }
    }

    pub(super) fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<Outcome>, Error> {
        match self {
            Self::Closure(deferred) => deferred.wait_timeout(timeout),
            Self::Call(deferred) => Ok(deferred.wait_timeout(timeout)?.map(|()| (0, None))),
        }
    }

    pub(super) fn poll(&mut self, woken: &Arc<Woken>) -> Poll<Result<Outcome, Error>> {
        let waker = Waker::from(Arc::clone(woken));
        let mut context = Context::from_waker(&waker);
        match self {
            Self::Closure(deferred) => Pin::new(deferred).poll(&mut context),
            Self::Call(deferred) => {
                Pin::new(deferred).poll(&mut context).map(|outcome| outcome.map(|()| (0, None)))
            }
        }
    }

    /// Polls until it is ready.
    pub(super) fn block_on(mut self, woken: &Arc<Woken>) -> Checked<Result<Outcome, Error>> {
        let deadline = Instant::now() + LONG;
        loop {
            let lock = woken.lock.lock().unwrap_or_else(PoisonError::into_inner);
            let times = woken.times.load(Ordering::SeqCst);
            // A future may wake at once, and so it must not be polled under the lock.
            drop(lock);
            if let Poll::Ready(outcome) = self.poll(woken) {
                return Ok(outcome);
            }
            let lock = woken.lock.lock().unwrap_or_else(PoisonError::into_inner);
            let asleep = |(): &mut ()| woken.times.load(Ordering::SeqCst) == times;
            let waited = woken.changed.wait_timeout_while(lock, LONG, asleep);
            if waited.is_ok_and(|(_, timeout)| timeout.timed_out()) || Instant::now() > deadline {
                return Err("a future was never woken".into());
            }
        }
    }
}

/// What keeps deferred work from passing, until the other end is dropped.
pub(super) enum Gate {
    /// On the host, the closure waits.
    Here(Receiver<()>),
    /// On a device, the stream does.
    InStream(Lane, Receiver<()>),
}

impl Gate {
    fn pass(self) -> Result<(), Error> {
        match self {
            Self::Here(opened) => {
                let _ = opened.recv();
                Ok(())
            }
            Self::InStream(lane, opened) => lane.gate(opened),
        }
    }
}

/// The body of deferred work.
pub(super) struct Body {
    pub(super) steps: Vec<Step>,
    pub(super) token: u64,
    pub(super) early: bool,
    /// The gate comes before the steps.
    pub(super) gate_first: bool,
    pub(super) ending: Ending,
    pub(super) number: u64,
    pub(super) way: Way,
    pub(super) gate: Gate,
    pub(super) send: Sender<Done>,
}

impl Body {
    pub(super) fn run(self, call: &mut Call) -> Result<Outcome, Error> {
        let (mut gate, number) = (Some(self.gate), self.number);
        let mut pass = || gate.take().map_or(Ok(()), Gate::pass);
        if self.gate_first {
            pass()?;
        }
        let done = perform(call, &self.steps, self.token, &self.way);
        let error = done.error.clone();
        let (first, kept) = if self.early {
            (done, None)
        } else {
            let (first, made) = done.split();
            (first, Some(made))
        };
        // Nobody listens once the program has failed.
        let _ = self.send.send(first);
        pass()?;
        if let Some(error) = error {
            return Err(error);
        }
        match self.ending {
            Ending::Ok => Ok((number, kept)),
            Ending::Err => Err(Error::Driver {
                vendor: Vendor::Host,
                operation: SCRIPTED,
                code: number as i64,
                name: "",
            }),
            Ending::Panic => match message(number) {
                "(no message)" => scripted_panic(),
                text if text.len() % 2 == 0 => resume_unwind(Box::new(text)),
                text => resume_unwind(Box::new(text.to_owned())),
            },
        }
    }
}

/// What the panic of deferred work says: a literal, a string, or something that is no text.
pub(super) fn message(number: u64) -> &'static str {
    ["(no message)", "even", "odd"][(number % 3) as usize]
}
