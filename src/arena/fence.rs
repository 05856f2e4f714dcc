//! Host access to memory that a device's kernels use too: pending until the work has passed that may touch it.
//!
//! Work is known by the call that took a device pointer for it. An event behind it is recorded when somebody first
//! asks, so that a call that nobody reads on the host asks the driver for nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::arena::core::Core;
use crate::backend::{Backend, Event, Stream};
use crate::error::{Error, Result};

/// What is known of the device's work. Calls are named by their generation; zero is none.
#[derive(Debug, Default)]
pub(crate) struct Fence(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The last call that took a device pointer.
    taken: u64,
    /// The last before that one.
    before: u64,
    /// The last call that took one for scratch.
    scratch: u64,
    /// The work of all calls up to this one has passed.
    passed: u64,
    recorded: Option<(u64, Event)>,
}

/// What the host wants to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Room of a call, whose own device pointer nobody took.
    Room,
    /// Scratch of the running call.
    Scratch,
    /// Room of the running call, whose device pointer somebody took.
    InUse,
    /// A published output, whose device pointer somebody took.
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

    /// Notes more work of the call of `generation`, which an event may stand before.
    fn take_again(&self, generation: u64) {
        self.take(generation, false);
        self.state().recorded = None;
    }

    /// Notes that the call of `generation` handed out a device pointer.
    pub(crate) fn take(&self, generation: u64, is_scratch: bool) {
        let mut state = self.state();
        if state.taken != generation {
            state.before = state.taken;
            state.taken = generation;
        }
        if is_scratch {
            state.scratch = generation;
        }
    }
}

impl Core {
    /// Whether the host may touch bytes of any call: the device has no work on them. Where it may have, what the caller
    /// queues now counts as work of the call of `generation`, the last that there was.
    ///
    /// # Safety
    ///
    /// The caller holds the lease, before the next call.
    pub(crate) unsafe fn is_quiet_or_take(&self, generation: u64) -> Result<bool> {
        if !self.source.is_shared_with_device() {
            return Ok(!self.source.is_on_device());
        }
        // SAFETY: the lease's holder is an owner.
        let Some(stream) = (unsafe { self.source.stream() }) else { return Ok(true) };
        let mut state = self.fence.state();
        let needed = state.taken;
        let is_quiet = needed <= state.passed || self.look(&mut state, stream, needed)?;
        drop(state);
        if !is_quiet {
            self.fence.take_again(generation);
        }
        Ok(is_quiet)
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
        // SAFETY: the caller is an owner.
        let Some(stream) = (unsafe { self.source.stream() }) else { return Ok(()) };
        let mut state = self.fence.state();
        let earlier = if state.taken == generation { state.before } else { state.taken };
        let needed = match access {
            Access::InUse => None,
            Access::Scratch if state.scratch == generation => None,
            Access::Room | Access::Scratch => Some(earlier),
            Access::Published => Some(generation),
        };
        let passed = match (needed, patience) {
            (Some(needed), _) if needed <= state.passed => true,
            (Some(needed), Patience::Refuse) => self.look(&mut state, stream, needed)?,
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

    /// The event behind the work of all calls up to `needed`, all of which have ended.
    fn event_behind(&self, state: &mut State, stream: &Stream, needed: u64) -> Result<Event> {
        if let Some((_, event)) = state.recorded.as_ref().filter(|(behind, _)| *behind >= needed) {
            return Ok(event.clone());
        }
        let event = self.source.backend.record(stream)?;
        state.recorded = Some((needed, event.clone()));
        Ok(event)
    }

    fn look(&self, state: &mut State, stream: &Stream, needed: u64) -> Result<bool> {
        let event = self.event_behind(state, stream, needed)?;
        let passed = self.source.backend.has_passed(&event)?;
        if passed {
            state.passed = state.passed.max(needed);
        }
        Ok(passed)
    }
}
