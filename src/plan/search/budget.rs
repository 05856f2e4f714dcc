//! How long the search may go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::plan::Stop;

/// Steps, a deadline and a flag, whichever ends first.
pub(in crate::plan) struct Budget<'c> {
    steps: u64,
    spent: u64,
    deadline: Option<Instant>,
    cancel: Option<&'c AtomicBool>,
    /// Placements since the clock and the flag were last looked at.
    unchecked: usize,
    stop: Option<Stop>,
}

/// How many sections a placement looks at for the price of one step.
const SECTIONS_A_STEP: usize = 256;

impl<'c> Budget<'c> {
    pub(in crate::plan) fn new(
        steps: u64,
        deadline: Option<Instant>,
        cancel: Option<&'c AtomicBool>,
    ) -> Self {
        Self { steps, spent: 0, deadline, cancel, unchecked: 0, stop: None }
    }

    /// Pays for a placement in a part of so many sections. False: it is over.
    pub(super) fn spend(&mut self, sections: usize) -> bool {
        self.spent = self.spent.saturating_add(1 + (sections / SECTIONS_A_STEP) as u64);
        if self.spent > self.steps {
            self.stop = self.stop.or(Some(Stop::Steps));
            return false;
        }
        self.unchecked += 1 + sections / SECTIONS_A_STEP;
        if self.unchecked < 64 {
            return self.stop.is_none();
        }
        self.unchecked = 0;
        !self.is_over()
    }

    /// Looks at the flag and the clock.
    pub(in crate::plan) fn is_over(&mut self) -> bool {
        if self.stop.is_none() {
            if self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
                self.stop = Some(Stop::Cancelled);
            } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.stop = Some(Stop::Deadline);
            }
        }
        self.stop.is_some()
    }

    /// Whether there are steps left, and nothing has ended it.
    pub(super) fn has_steps(&mut self) -> bool {
        if self.spent >= self.steps {
            self.stop = self.stop.or(Some(Stop::Steps));
        }
        !self.is_over()
    }

    pub(in crate::plan) fn spent(&self) -> u64 {
        self.spent.min(self.steps)
    }

    /// What ended it.
    pub(in crate::plan) fn stop(&self) -> Option<Stop> {
        self.stop
    }
}
