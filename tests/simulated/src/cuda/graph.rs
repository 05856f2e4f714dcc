//! Captures and the graphs that they make.

use super::{Handle, handle, number, write};
use crate::core::capture::Mode;
use crate::core::enter;
use crate::core::status::Status;
use crate::core::work::Work;

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuStreamBeginCapture_v2(stream: Handle, mode: u32) -> u32 {
    enter("cuStreamBeginCapture_v2", |mut state| {
        let stream = state.stream(number(stream))?;
        state.begin_capture(stream, Mode::from_number(mode)?)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> u32 {
    enter("cuStreamEndCapture", |mut state| {
        let stream = state.stream(number(stream))?;
        let ended = state.end_capture(stream);
        unsafe { write(graph, handle(ended.unwrap_or(0))) }?;
        ended.map(|_| ())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(
    executable: *mut Handle,
    graph: Handle,
    _flags: u64,
) -> u32 {
    enter("cuGraphInstantiateWithFlags", |mut state| {
        state.current()?;
        let nodes = state.graphs.get(&number(graph)).ok_or(Status::INVALID_VALUE)?.clone();
        let id = state.handle();
        unsafe { write(executable, handle(id)) }?;
        state.executables.insert(id, nodes);
        Ok(())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuGraphLaunch(executable: Handle, stream: Handle) -> u32 {
    enter("cuGraphLaunch", |mut state| {
        let stream = state.stream(number(stream))?;
        let nodes = state.executables.get(&number(executable)).ok_or(Status::INVALID_VALUE)?.clone();
        state.submit(stream, Work::Graph(nodes)).map(|_| ())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuGraphExecDestroy(executable: Handle) -> u32 {
    enter("cuGraphExecDestroy", |mut state| {
        state.executables.remove(&number(executable)).map(|_| ()).ok_or(Status::INVALID_VALUE)
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuGraphDestroy(graph: Handle) -> u32 {
    enter("cuGraphDestroy", |mut state| {
        state.graphs.remove(&number(graph)).map(|_| ()).ok_or(Status::INVALID_VALUE)
    })
}
