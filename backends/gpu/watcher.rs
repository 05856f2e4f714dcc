//! Work that is to be done once an event has passed, for whoever does not wait for it: a thread of its own, since
//! a driver's thread may not call the driver.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::event::GpuEvent;
use crate::backend::{HostWork, Vendor};
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
    is_running: bool,
}

static WATCHER: Watcher =
    Watcher { state: Mutex::new(State { watched: Vec::new(), is_running: false }), changed: Condvar::new() };

/// Runs `then` once the event has passed, or can't be asked for any more.
pub(super) fn watch(event: GpuEvent, then: HostWork) -> Result<(), Refused<HostWork>> {
    let mut state = WATCHER.lock();
    if !state.is_running {
        let spawned = std::thread::Builder::new().name("device-arena".into()).spawn(|| WATCHER.run());
        if let Err(error) = spawned {
            let detail = format!("no watcher thread: {error}");
            return Err(Refused::new(Error::Unavailable { vendor: Vendor::Host, detail }, then));
        }
        state.is_running = true;
    }
    state.watched.push((event, then));
    drop(state);
    WATCHER.changed.notify_one();
    Ok(())
}

impl Watcher {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let watched = {
                let mut state = self.lock();
                while state.watched.is_empty() {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    pause = SHORTEST_PAUSE;
                }
                std::mem::take(&mut state.watched)
            };
            let before = watched.len();
            // An event of a lost device passes too: nothing more comes of its work.
            let (passed, mut left): (Vec<_>, Vec<_>) =
                watched.into_iter().partition(|(event, _)| event.has_passed().unwrap_or(true));
            let is_quiet = left.len() == before;
            self.lock().watched.append(&mut left);
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
