//! Who waits for whom: calls that were left to an event, and begins that wait for a holder.

use std::ptr::NonNull;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::arena::core::{Core, CoreRef};
use crate::arena::state::Phase;
use crate::backend::{Backend, Event};
use crate::call::Call;
use crate::error::Result;
use crate::sync::lock;
use crate::trace::Untold;

/// A call that was deferred as it was, and the event behind its work.
#[derive(Debug)]
pub(super) struct DeferredCall {
    event: Event,
    call: Call,
}

impl Core {
    /// Leaves a call to the event behind its queued work.
    ///
    /// # Safety
    ///
    /// `call` is the one that holds this core's lease.
    pub(crate) unsafe fn defer(core: NonNull<Self>, call: Call, event: Event) {
        // SAFETY: the lease keeps the core.
        let reference = unsafe { CoreRef::new(core) };
        debug_assert!(matches!(reference.state.load().phase(), Phase::Running | Phase::Deferred));
        let mut deferred = lock(&reference.deferred);
        // SAFETY: the lease's holder is an owner and stays one.
        unsafe { Self::change(core, |word| word.with_phase(Phase::Deferred)) };
        *deferred = Some(DeferredCall { event, call });
        drop(deferred);
        // Whoever waited for the call itself can wait for its event now.
        reference.wake();
        // The handle looks for a deferred call once it has closed the arena. One that comes later sees to itself.
        if reference.state.load().is_closed() {
            reference.settle_later();
        }
    }

    /// Ends a deferred call whose event has passed. True if the caller should look at the word again.
    pub(crate) fn settle(&self) -> Result<bool> {
        // Declared first, so that the lock is gone by the time that anybody is told.
        let _untold = Untold::new();
        let _settling = lock(&self.settling);
        let mut slot = lock(&self.deferred);
        let Some(deferred) = slot.as_ref() else {
            return Ok(self.state.load().phase() != Phase::Deferred);
        };
        if !self.source.backend.has_passed(&deferred.event)? {
            return Ok(false);
        }
        let deferred = slot.take();
        drop(slot);
        if let Some(deferred) = deferred {
            deferred.call.end();
        }
        Ok(true)
    }

    /// Takes back the mark of a deferred call of `generation` that somebody has taken out of its closure, and runs.
    pub(crate) fn unmark_deferred(&self, generation: u64) {
        let deferred = lock(&self.deferred);
        if deferred.is_some() {
            // Its new holder has deferred it in turn.
            return;
        }
        let mut word = self.state.load();
        while word.phase() == Phase::Deferred && word.generation() == generation {
            match self.state.change(word, word.with_phase(Phase::Running)) {
                Ok(()) => break,
                Err(seen) => word = seen,
            }
        }
        drop(deferred);
        self.wake();
    }

    /// The event that a deferred call's hold lasts for.
    fn deferred_event(&self) -> Option<Event> {
        lock(&self.deferred).as_ref().map(|deferred| deferred.event.clone())
    }

    /// Notes the event behind the work that a host's worker was given with a call.
    pub(crate) fn note_worked(&self, event: Event) {
        let before = lock(&self.worked).replace(event);
        drop(before);
        // Whoever waits already looks whether it may.
        self.wake();
    }

    /// An error on the thread that would end the call it waits for, and where no thread does.
    fn check_worked(&self) -> Result<()> {
        let worked = lock(&self.worked).clone();
        worked.map_or(Ok(false), |event| self.source.backend.wait(&event, Some(Duration::ZERO))).map(drop)
    }

    /// Waits for the work of a call that was deferred as it was, if there is one, and ends it.
    pub(crate) fn wait_for_deferred(&self) -> Result<()> {
        if let Some(event) = self.deferred_event() {
            self.source.backend.wait(&event, None)?;
            self.settle()?;
        }
        Ok(())
    }

    /// Leaves a deferred call's end to its event: for who can't wait.
    pub(super) fn settle_later(&self) {
        let Some(deferred) = lock(&self.deferred).take() else { return };
        let event = deferred.event.clone();
        // A driver that refuses this as well has lost its device. The call ends then, here.
        let _ = self.source.backend.notify(&event, Box::new(move || deferred.call.end()));
    }

    /// Waits until the word may be free, or for `timeout` at most. The caller tries again either way.
    pub(crate) fn wait_until_free(&self, timeout: Duration) -> Result<()> {
        let deadline = Instant::now().checked_add(timeout);
        let mut guard = self.freed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let word = self.state.announce_waiter();
            if word.is_free() || word.phase() == Phase::Retired {
                return Ok(());
            }
            if word.phase() == Phase::Deferred {
                if let Some(event) = self.deferred_event() {
                    drop(guard);
                    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
                    self.source.backend.wait(&event, left)?;
                    self.settle()?;
                    return Ok(());
                }
                self.check_worked()?;
            }
            let left = match deadline {
                None => Duration::from_secs(3600),
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            };
            if left.is_zero() {
                return Ok(());
            }
            guard = self.became_free.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn wake(&self) {
        drop(self.freed.lock().unwrap_or_else(PoisonError::into_inner));
        self.became_free.notify_all();
    }
}
