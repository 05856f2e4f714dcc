//! Work that is to be done once an event has passed, for whoever does not wait for it: a thread of its own, since
//! a driver's thread may not call the driver.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::event::GpuEvent;
use crate::backend::{HostRetry, HostWork, Vendor};
use crate::error::{Error, Refused, Result};
use crate::panics::contain;

/// The pauses between two looks at the events. They grow while nothing passes.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

#[derive(Default)]
struct Watcher {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    watched: Vec<(GpuEvent, HostWork)>,
    retried: Vec<HostRetry>,
    is_running: bool,
}

static WATCHER: Watcher = Watcher {
    state: Mutex::new(State { watched: Vec::new(), retried: Vec::new(), is_running: false }),
    changed: Condvar::new(),
};

/// Runs `then` once the event has passed, or can't be asked for any more.
pub(super) fn watch(event: GpuEvent, then: HostWork) -> Result<(), Refused<HostWork>> {
    let mut state = WATCHER.lock();
    if let Err(error) = state.start() {
        return Err(Refused::new(error, then));
    }
    state.watched.push((event, then));
    drop(state);
    WATCHER.changed.notify_one();
    Ok(())
}

/// Calls `work` now and then until it answers true.
pub(super) fn retry(work: HostRetry) {
    let mut state = WATCHER.lock();
    // Without a thread nobody does it, and what the work owns is never freed.
    let _ = state.start();
    state.retried.push(work);
    drop(state);
    WATCHER.changed.notify_one();
}

impl State {
    fn start(&mut self) -> Result<()> {
        if self.is_running {
            return Ok(());
        }
        let spawned = std::thread::Builder::new().name("device-arena".into()).spawn(|| WATCHER.run());
        spawned.map_err(|error| {
            let detail = format!("no watcher thread: {error}");
            Error::Unavailable { vendor: Vendor::Host, detail }
        })?;
        self.is_running = true;
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.watched.is_empty() && self.retried.is_empty()
    }
}

impl Watcher {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let (watched, mut retried) = {
                let mut state = self.lock();
                while state.is_empty() {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    pause = SHORTEST_PAUSE;
                }
                (std::mem::take(&mut state.watched), std::mem::take(&mut state.retried))
            };
            let before = watched.len() + retried.len();
            // Work that panics is not tried again.
            retried.retain_mut(|work| {
                let mut is_done = true;
                contain(|| is_done = work());
                !is_done
            });
            // An event of a lost device passes too: nothing more comes of its work.
            let (passed, mut left): (Vec<_>, Vec<_>) =
                watched.into_iter().partition(|(event, _)| event.has_passed().unwrap_or(true));
            let is_quiet = left.len() + retried.len() == before;
            {
                let mut state = self.lock();
                state.watched.append(&mut left);
                state.retried.append(&mut retried);
            }
            for (event, then) in passed {
                drop(event);
                contain(then);
            }
            if is_quiet {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            } else {
                pause = SHORTEST_PAUSE;
            }
        }
    }
}
