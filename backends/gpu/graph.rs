//! Captures of a stream's work, and the graphs that come of them.

use std::ffi::c_void;
use std::sync::Arc;

use super::device::Device;
use super::driver::{OutsideCaptures, call};
use super::stream::GpuStream;
use crate::error::Result;

/// Other threads may ask for memory meanwhile; this one is held to the crate's own rules.
const RELAXED: u32 = 2;

/// A capture that is under way. Dropped, it is ended and what it took is forgotten.
pub(crate) struct Capture<'s> {
    stream: &'s GpuStream,
    ended: bool,
}

impl<'s> Capture<'s> {
    pub(crate) fn begin(stream: &'s GpuStream) -> Result<Self> {
        stream.capture(Some(std::thread::current().id()), || {
            stream.refuse_capture("capture")?;
            let _current = stream.device().enter("capture")?;
            // SAFETY: the stream is alive, and not the default one, which the driver refuses.
            unsafe { call!(stream.driver(), stream_begin_capture(stream.raw(), RELAXED)) }
        })?;
        Ok(Self { stream, ended: false })
    }

    /// Ends the capture, whatever else fails: a stream that is left in one takes no other work.
    fn end_raw(&mut self) -> Result<Captured<'s>> {
        self.ended = true;
        let mut graph = std::ptr::null_mut();
        let driver = self.stream.driver();
        // What a driver says of an error is tidied up; a stream's handle needs no context, so this may fail.
        let _current = self.stream.device().enter("capture").ok();
        // SAFETY: the driver writes one handle, null where the capture was spoilt.
        let outcome = unsafe { call!(driver, stream_end_capture(self.stream.raw(), &raw mut graph)) };
        let _ = self.stream.capture(None, || Ok(()));
        let captured = Captured { raw: graph, stream: self.stream };
        outcome.map(|()| captured)
    }

    /// Ends the capture, and makes a graph of it that can be launched.
    pub(crate) fn end(mut self) -> Result<Graph> {
        let captured = self.end_raw()?;
        let device = Arc::clone(self.stream.device());
        let mut raw = std::ptr::null_mut();
        {
            let _current = device.enter("capture")?;
            let _outside = OutsideCaptures::new(device.driver);
            // SAFETY: the graph is the capture's; the driver writes one handle.
            unsafe { call!(device.driver, graph_instantiate(&raw mut raw, captured.raw, 0)) }?;
        }
        Ok(Graph { raw, device })
    }
}

/// What a capture took, which the executable graph does not need.
struct Captured<'s> {
    raw: *mut c_void,
    stream: &'s GpuStream,
}

impl Drop for Captured<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            let _current = self.stream.device().enter("capture").ok();
            // SAFETY: the graph is the capture's, and nobody else knows it.
            let _ = unsafe { call!(self.stream.driver(), graph_destroy(self.raw)) };
        }
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.end_raw();
        }
    }
}

/// Captured work that can be launched.
#[derive(Debug)]
pub(crate) struct Graph {
    raw: *mut c_void,
    device: Arc<Device>,
}

// SAFETY: a graph belongs to no thread.
unsafe impl Send for Graph {}
// SAFETY: it is launched by one thread at a time: whoever has the arena's lease.
unsafe impl Sync for Graph {}

impl Graph {
    /// Queues the captured work.
    ///
    /// # Safety
    ///
    /// What the work touches is alive, and nobody else uses it before the stream has passed.
    pub(crate) unsafe fn launch(&self, stream: &GpuStream) -> Result<()> {
        debug_assert_eq!(stream.device().context(), self.device.context());
        let _queueing = stream.queue("launch")?;
        let _current = self.device.enter("launch")?;
        // SAFETY: graph and stream are alive and of one context.
        unsafe { call!(self.device.driver, graph_launch(self.raw, stream.raw())) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let Ok(_current) = self.device.enter("destroy_graph") else { return };
        let _outside = OutsideCaptures::new(self.device.driver);
        // SAFETY: the driver lets go of a graph that runs once it has run.
        let _ = unsafe { call!(self.device.driver, graph_exec_destroy(self.raw)) };
    }
}
