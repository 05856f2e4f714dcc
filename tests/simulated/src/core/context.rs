//! Contexts: which is current on a thread, what broke one, and what ends with one.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::status::{Result, Status};
use super::stream::wait_for_context;
use super::{Locked, State, wake};

pub(crate) struct Context {
    pub ordinal: i32,
    pub primary: bool,
    /// A failure that every later call reports again.
    pub broken: Option<Status>,
    /// Ordinals whose memory its kernels may touch as well.
    pub peers: BTreeSet<i32>,
}

/// A device's own context. Its handle stays the same.
pub(crate) struct Primary {
    pub handle: u64,
    pub retained: u32,
}

thread_local! {
    static STACK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The top of this thread's stack.
pub(crate) fn top() -> Option<u64> {
    STACK.with_borrow(|stack| stack.last().copied())
}

pub(crate) fn push(context: u64) {
    STACK.with_borrow_mut(|stack| stack.push(context));
}

pub(crate) fn pop() -> Option<u64> {
    STACK.with_borrow_mut(|stack| stack.pop())
}

impl State {
    /// The current context, which has to be there and whole.
    pub(crate) fn current(&self) -> Result<u64> {
        let context = top().ok_or(Status::INVALID_CONTEXT)?;
        self.whole(context)?;
        Ok(context)
    }

    /// The current context's ordinal, even of one that is broken.
    pub(crate) fn current_ordinal(&self) -> Result<i32> {
        let context = top().ok_or(Status::INVALID_CONTEXT)?;
        Ok(self.contexts.get(&context).ok_or(Status::CONTEXT_IS_DESTROYED)?.ordinal)
    }

    /// That a context exists and nothing broke it.
    pub(crate) fn whole(&self, context: u64) -> Result<()> {
        let found = self.contexts.get(&context).ok_or(Status::CONTEXT_IS_DESTROYED)?;
        if self.lost.contains(&found.ordinal) {
            return Err(Status::LAUNCH_FAILED);
        }
        found.broken.map_or(Ok(()), Err)
    }

    /// What a broken current context makes of a call that needs none.
    pub(crate) fn not_broken(&self) -> Result<()> {
        match top() {
            Some(context) if self.contexts.contains_key(&context) => self.whole(context),
            _ => Ok(()),
        }
    }

    pub(crate) fn retain(&mut self, ordinal: i32) -> Result<u64> {
        let ordinal = self.ordinal(ordinal)?;
        let primary = &mut self.primaries[ordinal as usize];
        let handle = primary.handle;
        primary.retained += 1;
        self.contexts.entry(handle).or_insert(Context {
            ordinal,
            primary: true,
            broken: None,
            peers: BTreeSet::new(),
        });
        Ok(handle)
    }

    pub(crate) fn create_context(&mut self, ordinal: i32) -> Result<u64> {
        let ordinal = self.ordinal(ordinal)?;
        if self.lost.contains(&ordinal) {
            return Err(Status::LAUNCH_FAILED);
        }
        let handle = self.handle();
        self.contexts
            .insert(handle, Context { ordinal, primary: false, broken: None, peers: BTreeSet::new() });
        push(handle);
        Ok(handle)
    }
}

/// Ends a context when its queued work has ended, with all that it owns.
pub(crate) fn destroy(mut state: Locked, context: u64) -> Locked {
    state = wait_for_context(state, context);
    state.contexts.remove(&context);
    // The worker of a stream that is not there any more ends.
    state.streams.retain(|_, stream| stream.context != context);
    state.nameless.retain(|(owner, _), _| *owner != context);
    state.events.retain(|_, event| event.context != context);
    state.modules.retain(|_, module| module.context != context);
    state.functions.retain(|_, (_, owner, _)| *owner != context);
    state.memory.free_of_context(context);
    wake();
    state
}

pub(crate) fn release(mut state: Locked, ordinal: i32) -> Result<()> {
    let ordinal = state.ordinal(ordinal)?;
    let primary = &mut state.primaries[ordinal as usize];
    if primary.retained == 0 {
        return Err(Status::INVALID_CONTEXT);
    }
    primary.retained -= 1;
    if primary.retained == 0 {
        let handle = primary.handle;
        drop(destroy(state, handle));
    }
    Ok(())
}
