//! A host stream: a queue and one worker thread, started on first use.

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, ThreadId};

use super::event::HostEvent;
use crate::backend::{HostWork, Vendor};
use crate::error::{Error, Refused, Result};
use crate::panics::contain;

/// A queue of host work in order.
#[derive(Debug)]
pub(crate) struct HostStream {
    queue: Arc<Queue>,
    owned: Ownership,
}

enum Ownership {
    /// Made here: the last drop ends the worker.
    Own,
    /// Made and ended by somebody else, who is kept alive meanwhile.
    Adopted(#[allow(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>),
}

impl std::fmt::Debug for Ownership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Own => "Own",
            Self::Adopted(_) => "Adopted",
        })
    }
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    items: VecDeque<HostWork>,
    running: bool,
    closed: bool,
    worker: Option<Worker>,
}

/// The thread that does a queue's work, and the process that has it: a fork's child has the queue alone.
struct Worker {
    thread: JoinHandle<()>,
    process: u32,
}

/// An error in the child of a fork, where nobody does the work of a queue that was started before.
pub(super) fn check_process(process: u32) -> Result<()> {
    if process == std::process::id() {
        return Ok(());
    }
    Err(Error::Unavailable {
        vendor: Vendor::Host,
        detail: "the queue was started before this process was forked, and has no worker in the child".into(),
    })
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        f.debug_struct("Queue").field("waiting", &state.items.len()).field("running", &state.running).finish()
    }
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is the worker of a host stream.
pub(super) fn is_worker() -> bool {
    IS_WORKER.try_with(Cell::get).unwrap_or(false)
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes work until the queue is closed and empty.
    fn run(&self) {
        let _ = IS_WORKER.try_with(|is_worker| is_worker.set(true));
        let mut state = self.state();
        loop {
            if let Some(work) = state.items.pop_front() {
                state.running = true;
                drop(state);
                // Work that came through `Executor::defer` catches its own panics and reports them; whatever
                // else panics must not take the queue with it.
                contain(work);
                state = self.state();
                state.running = false;
            } else if state.closed {
                return;
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl State {
    fn worker_id(&self) -> Option<(ThreadId, u32)> {
        self.worker.as_ref().map(|worker| (worker.thread.thread().id(), worker.process))
    }

    fn is_idle(&self) -> bool {
        self.items.is_empty() && !self.running
    }
}

impl HostStream {
    pub(super) fn new() -> Self {
        Self { queue: Arc::default(), owned: Ownership::Own }
    }

    /// # Safety
    ///
    /// `raw` came from [`raw`](Self::raw) of a stream that is alive.
    pub(super) unsafe fn adopt(raw: *mut c_void, keep_alive: Box<dyn Any + Send + Sync>) -> Self {
        debug_assert!(!raw.is_null());
        let queue = raw.cast::<Queue>().cast_const();
        // SAFETY: the caller vouches for a live stream, whose `Arc` the pointer came from.
        let queue = unsafe {
            Arc::increment_strong_count(queue);
            Arc::from_raw(queue)
        };
        Self { queue, owned: Ownership::Adopted(keep_alive) }
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        Arc::as_ptr(&self.queue).cast_mut().cast()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.state().is_idle()
    }

    pub(super) fn start(&self) -> Result<()> {
        self.started(&mut self.queue.state())
    }

    fn started(&self, state: &mut State) -> Result<()> {
        if let Some(worker) = &state.worker {
            return check_process(worker.process);
        }
        let queue = Arc::clone(&self.queue);
        let thread = Builder::new().name("device-arena".into()).spawn(move || queue.run());
        let thread = thread.map_err(|error| Error::Unavailable {
            vendor: Vendor::Host,
            detail: format!("no worker thread: {error}"),
        })?;
        state.worker = Some(Worker { thread, process: std::process::id() });
        Ok(())
    }

    /// Queues `work`, and behind it the event that is returned.
    pub(super) fn enqueue(&self, work: HostWork) -> Result<HostEvent, Refused<HostWork>> {
        let mut state = self.queue.state();
        if let Err(error) = self.started(&mut state) {
            return Err(Refused::new(error, work));
        }
        state.items.push_back(work);
        Ok(self.signal_behind(state))
    }

    fn signal_behind(&self, mut state: MutexGuard<'_, State>) -> HostEvent {
        let event = HostEvent::by(state.worker_id());
        let signal = event.clone();
        state.items.push_back(Box::new(move || signal.signal()));
        drop(state);
        self.queue.changed.notify_one();
        event
    }

    /// An event behind everything that is in the queue now.
    pub(super) fn record(&self) -> HostEvent {
        let state = self.queue.state();
        if !state.is_idle() {
            return self.signal_behind(state);
        }
        drop(state);
        let event = HostEvent::default();
        event.signal();
        event
    }

    /// Makes everything behind wait for `event`. An event of this very queue has nothing to wait for: what it
    /// stands behind is ahead already.
    pub(super) fn wait_for(&self, event: HostEvent) -> Result<()> {
        if event.has_passed() {
            return Ok(());
        }
        event.check_process()?;
        let wait = move || {
            let _ = event.wait(None);
        };
        self.enqueue(Box::new(wait)).map(drop).map_err(Error::from)
    }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        if !matches!(self.owned, Ownership::Own) {
            return;
        }
        let worker = {
            let mut state = self.queue.state();
            state.closed = true;
            state.worker.take()
        };
        self.queue.changed.notify_all();
        match worker {
            // There is no such thread here, and nothing may be asked of it.
            Some(worker) if check_process(worker.process).is_err() => std::mem::forget(worker.thread),
            // The worker ends once its queue is empty. No worker waits for one, itself least of all: it detaches it.
            Some(worker) if !is_worker() => {
                let _ = worker.thread.join();
            }
            _ => {}
        }
    }
}
