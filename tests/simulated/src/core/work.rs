//! What can be queued on a stream, and how it runs.

use std::ffi::c_void;
use std::sync::Arc;

use super::kernels::{self, Launch};
use super::memory::Kind;
use super::status::Result;
use super::{IN_HOST_FUNCTION, Locked, lock};

#[derive(Clone)]
pub(crate) enum Work {
    Copy {
        to: usize,
        from: usize,
        bytes: usize,
    },
    /// A copy whose source the driver keeps.
    Staged {
        to: usize,
        bytes: Arc<[u8]>,
    },
    Fill {
        to: usize,
        value: u8,
        bytes: usize,
    },
    Launch(Arc<Launch>),
    /// A function of the host, and its argument.
    Call(unsafe extern "C" fn(*mut c_void), usize),
    /// The end of pool memory.
    Free(usize),
    Graph(Arc<Vec<Work>>),
    /// A point in the stream: an event, or a wait for one.
    Nothing,
}

/// Runs one work of a context that is whole. The lock is free while it runs.
pub(crate) fn run(mut state: Locked, context: u64, work: &Work) -> (Locked, Result<()>) {
    let outside = |mut state: Locked, touched: &[(usize, usize)], body: &dyn Fn() -> Result<()>| {
        let opened = state.memory.open_ranges(touched);
        drop(state);
        let outcome = body();
        let mut state = lock();
        state.memory.close(opened);
        (state, outcome)
    };
    match work {
        Work::Copy { to, from, bytes } => {
            outside(state, &[(*to, *bytes), (*from, *bytes)], &|| kernels::copy(*to, *from, *bytes))
        }
        Work::Staged { to, bytes } => {
            outside(state, &[(*to, bytes.len())], &|| kernels::copy(*to, bytes.as_ptr().addr(), bytes.len()))
        }
        Work::Fill { to, value, bytes } => {
            outside(state, &[(*to, *bytes)], &|| kernels::fill(*to, *value, *bytes))
        }
        Work::Launch(launch) => {
            let Some(found) = state.contexts.get(&context) else { return (state, Ok(())) };
            let (own, peers) = (found.ordinal, found.peers.clone());
            let opened = state.memory.open_for(own, &peers);
            drop(state);
            let outcome = launch.run();
            let mut state = lock();
            state.memory.close(opened);
            (state, outcome)
        }
        Work::Call(function, argument) => {
            drop(state);
            IN_HOST_FUNCTION.set(true);
            // SAFETY: whoever queued it said that it may be called with this argument.
            unsafe { function(*argument as *mut c_void) };
            IN_HOST_FUNCTION.set(false);
            (lock(), Ok(()))
        }
        Work::Free(start) => {
            let outcome = state.memory.free(*start, &[Kind::Pool]);
            (state, outcome)
        }
        Work::Graph(nodes) => {
            for node in nodes.iter() {
                let (next, outcome) = run(state, context, node);
                state = next;
                if outcome.is_err() {
                    return (state, outcome);
                }
            }
            (state, Ok(()))
        }
        Work::Nothing => (state, Ok(())),
    }
}
