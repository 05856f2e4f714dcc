//! What becomes of a panic that was caught: the caller's code runs in deferred work and in wakers.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the caller's code; a panic is over when this returns.
pub(crate) fn contain(work: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
        discard(payload);
    }
}

/// Drops a panic's payload, whose drop may panic in turn. A second payload is left where it is.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

/// A panic's message, where it has one.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)").into()
}
