//! Captures and the graphs that they make.

use super::stream::given;
use super::{Handle, cu, done, enter};
use crate::core::status::Status;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamBeginCapture(stream: Handle, mode: u32) -> u32 {
    enter("hipStreamBeginCapture", || done(unsafe { cu::cuStreamBeginCapture_v2(given(stream)?, mode) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamEndCapture(stream: Handle, graph: *mut Handle) -> u32 {
    enter("hipStreamEndCapture", || {
        if graph.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuStreamEndCapture(given(stream)?, graph) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphInstantiateWithFlags(
    executable: *mut Handle,
    graph: Handle,
    flags: u64,
) -> u32 {
    enter("hipGraphInstantiateWithFlags", || {
        if executable.is_null() || graph.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuGraphInstantiateWithFlags(executable, graph, flags) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphLaunch(executable: Handle, stream: Handle) -> u32 {
    enter("hipGraphLaunch", || {
        if executable.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuGraphLaunch(executable, given(stream)?) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphExecDestroy(executable: Handle) -> u32 {
    enter("hipGraphExecDestroy", || {
        if executable.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuGraphExecDestroy(executable) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphDestroy(graph: Handle) -> u32 {
    enter("hipGraphDestroy", || {
        if graph.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuGraphDestroy(graph) })
    })
}
