//! Host access to memory that a device's kernels use too: pending until the work has passed that may touch it.
//!
//! A clock counts what may have queued such work: device pointers and scratch that were handed out, guards of readers
//! that were dropped, the crate's own copies and fills once they are queued, launches of a graph. What has passed is known
//! by the clock's time; an event that says so is recorded when somebody first asks, so that a call that nobody reads on
//! the host asks the driver for nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::arena::core::Core;
use crate::backend::{Backend, Event, Stream};
use crate::error::{Error, Result};

/// What is known of the device's work.
#[derive(Debug, Default)]
pub(crate) struct Fence(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    clock: u64,
    /// The work of up to this time has passed.
    passed: u64,
    /// An event behind the work of up to this time.
    recorded: Option<(u64, Event)>,
    /// The last call that moved the clock, by its generation, and the time when it first did.
    call: u64,
    began: u64,
    /// The last call that handed out device scratch: its room is anybody's again within the call.
    scratch: u64,
}

/// What the host wants to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Room of the running call, or of a finished one, whose own device pointer nobody took.
    Room,
    /// Room of the running call, whose device pointer somebody took: what is queued so far has to have passed.
    InUse,
    /// A published output of a finished call, whose device pointer somebody took.
    Published,
}

/// What to do about work that has not passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Refuse,
    Wait,
}

impl Fence {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fence of a state that follows another, whose work may not have passed.
    pub(crate) fn following() -> Self {
        Self(Mutex::new(State { clock: 1, ..State::default() }))
    }

    /// Notes that the call of `generation` handed out a device pointer, or has queued work of the crate's own.
    pub(crate) fn take(&self, generation: u64) {
        let mut state = self.state();
        if state.call != generation {
            state.call = generation;
            state.began = state.clock;
        }
        state.clock += 1;
    }

    /// Notes that the call of `generation` handed out device scratch.
    pub(crate) fn take_scratch(&self, generation: u64) {
        self.take(generation);
        self.state().scratch = generation;
    }

    /// Notes work that belongs to no running call, once it is queued.
    pub(crate) fn queued(&self) {
        self.state().clock += 1;
    }
}

impl Core {
    /// Whether the device has no work on any bytes of the arena, so that the host may touch them.
    ///
    /// # Safety
    ///
    /// The caller holds the lease, before the next call.
    pub(crate) unsafe fn is_quiet(&self) -> Result<bool> {
        if !self.source.is_shared_with_device() {
            return Ok(!self.source.is_on_device());
        }
        // SAFETY: the lease's holder is an owner.
        let Some(stream) = (unsafe { self.source.stream() }) else { return Ok(true) };
        let mut state = self.fence.state();
        let now = state.clock;
        self.look(&mut state, stream, now)
    }

    /// Whether the host may reach memory of the call of `generation`.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] for memory of a device; [`Error::Pending`] while its work uses the bytes.
    ///
    /// # Safety
    ///
    /// The caller is an owner of the blocks.
    #[inline]
    pub(crate) unsafe fn host_access(
        &self,
        operation: &'static str,
        generation: u64,
        access: Access,
        patience: Patience,
    ) -> Result<()> {
        if !self.source.is_on_device() {
            return Ok(());
        }
        // SAFETY: the caller's promise is the same.
        unsafe { self.host_access_to_device(operation, generation, access, patience) }
    }

    /// # Safety
    ///
    /// As [`host_access`](Self::host_access).
    #[cold]
    unsafe fn host_access_to_device(
        &self,
        operation: &'static str,
        generation: u64,
        access: Access,
        patience: Patience,
    ) -> Result<()> {
        if !self.source.is_shared_with_device() {
            return Err(Error::Device { operation, ordinal: self.source.ordinal });
        }
        // A forked child shares such pages with the device, and has nobody to ask.
        self.source.backend.check()?;
        // SAFETY: the caller is an owner.
        let Some(stream) = (unsafe { self.source.stream() }) else { return Ok(()) };
        let mut state = self.fence.state();
        let needed = match access {
            // More may be queued for it at any time, so that no event says that all of it has passed.
            Access::InUse => None,
            Access::Room if state.scratch == generation => None,
            // The call's own work is on other room.
            Access::Room if state.call == generation => Some(state.began),
            Access::Room | Access::Published => Some(state.clock),
        };
        let passed = match (needed, patience) {
            (Some(needed), Patience::Refuse) => self.look(&mut state, stream, needed)?,
            (Some(needed), Patience::Wait) if needed <= state.passed => true,
            (Some(needed), Patience::Wait) => {
                let event = self.event_behind(&mut state, stream, needed)?;
                // Nobody who does not want to wait waits for the lock.
                drop(state);
                self.source.backend.wait(&event, None)?;
                let mut state = self.fence.state();
                state.passed = state.passed.max(needed);
                true
            }
            (None, Patience::Refuse) => self.source.backend.is_idle(stream)?,
            (None, Patience::Wait) => {
                drop(state);
                self.source.backend.synchronize(stream)?;
                true
            }
        };
        if passed { Ok(()) } else { Err(Error::Pending { operation, generation }) }
    }

    /// The event behind the work of up to `needed`, all of which is queued.
    fn event_behind(&self, state: &mut State, stream: &Stream, needed: u64) -> Result<Event> {
        if let Some((_, event)) = state.recorded.as_ref().filter(|(behind, _)| *behind >= needed) {
            return Ok(event.clone());
        }
        let event = self.source.backend.record(stream)?;
        state.recorded = Some((needed, event.clone()));
        Ok(event)
    }

    /// Whether the work of up to `needed`, all of which is queued, has passed.
    fn look(&self, state: &mut State, stream: &Stream, needed: u64) -> Result<bool> {
        if needed <= state.passed {
            return Ok(true);
        }
        let passed = match state.recorded.as_ref().filter(|(behind, _)| *behind >= needed) {
            Some((_, event)) => self.source.backend.has_passed(event)?,
            // An event that is recorded now has hardly passed by the time that it is asked.
            None if self.source.backend.is_idle(stream)? => true,
            None => {
                self.event_behind(state, stream, needed)?;
                false
            }
        };
        if passed {
            state.passed = needed;
            state.recorded = None;
        }
        Ok(passed)
    }
}
