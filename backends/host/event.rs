//! A point in a host queue's work: a flag, and whom to tell once it is set.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::backend::HostWork;
use crate::error::{Error, Result};
use crate::panics::contain;

/// An event of a host queue. Clones are the same event.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostEvent(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    passed: Condvar,
}

#[derive(Default)]
struct State {
    passed: bool,
    /// The thread that sets the flag, once it is known, and its process: waiting there, or in a fork's child, would never
    /// end.
    worker: Option<(ThreadId, u32)>,
    then: Vec<HostWork>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostEvent").field("passed", &self.state().passed).finish()
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostEvent {
    /// An event that `worker` will signal.
    pub(super) fn by(worker: Option<(ThreadId, u32)>) -> Self {
        let event = Self::default();
        event.0.state().worker = worker;
        event
    }

    /// Marks the event as passed, wakes who waits and runs what was left with [`notify`](Self::notify).
    pub(super) fn signal(&self) {
        let then = {
            let mut state = self.0.state();
            state.passed = true;
            std::mem::take(&mut state.then)
        };
        self.0.passed.notify_all();
        for work in then {
            // A waker is the user's code; what stands behind it must not suffer.
            contain(work);
        }
    }

    /// An error in the child of a fork, where nobody sets the flag.
    pub(super) fn check_process(&self) -> Result<()> {
        let worker = self.0.state().worker;
        worker.map_or(Ok(()), |(_, process)| super::stream::check_process(process))
    }

    pub(super) fn has_passed(&self) -> bool {
        self.0.state().passed
    }

    pub(super) fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.0.state();
        if let (false, Some((worker, process))) = (state.passed, state.worker) {
            super::stream::check_process(process)?;
            if worker == std::thread::current().id() {
                return Err(Error::WouldDeadlock { operation: "wait" });
            }
        }
        loop {
            if state.passed {
                return Ok(true);
            }
            state = match deadline {
                // No timeout, or one beyond what the clock can say.
                None => self.0.passed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let now = Instant::now();
                    if now >= deadline {
                        return Ok(false);
                    }
                    let waited = self.0.passed.wait_timeout(state, deadline - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    pub(super) fn notify(&self, then: HostWork) {
        let mut state = self.0.state();
        if !state.passed {
            state.then.push(then);
            return;
        }
        drop(state);
        then();
    }
}
