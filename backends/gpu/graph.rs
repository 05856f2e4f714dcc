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
        stream.refuse_capture("capture")?;
        let _current = stream.device().enter("capture")?;
        // SAFETY: the stream is alive, and not the default one, which the driver refuses.
        unsafe { call!(stream.driver(), stream_begin_capture(stream.raw(), RELAXED)) }?;
        Ok(Self { stream, ended: false })
    }

    fn end_raw(&mut self) -> Result<*mut c_void> {
        self.ended = true;
        let _current = self.stream.device().enter("capture")?;
        let mut graph = std::ptr::null_mut();
        // SAFETY: the driver writes one handle, null where the capture was spoilt.
        unsafe { call!(self.stream.driver(), stream_end_capture(self.stream.raw(), &raw mut graph)) }?;
        Ok(graph)
    }

    /// Ends the capture, and makes a graph of it that can be launched.
    pub(crate) fn end(mut self) -> Result<Graph> {
        let (driver, device) = (self.stream.driver(), Arc::clone(self.stream.device()));
        let graph = self.end_raw()?;
        let _current = device.enter("capture")?;
        let _outside = OutsideCaptures::new(driver);
        let mut raw = std::ptr::null_mut();
        // SAFETY: the graph is the capture's; the driver writes one handle.
        let outcome = unsafe { call!(driver, graph_instantiate(&raw mut raw, graph, 0)) };
        // SAFETY: the executable graph does not need the other.
        let _ = unsafe { call!(driver, graph_destroy(graph)) };
        outcome?;
        drop((_current, _outside));
        Ok(Graph { raw, device })
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Ok(graph) = self.end_raw()
            && !graph.is_null()
        {
            // SAFETY: the graph is the capture's, and nobody else knows it.
            let _ = unsafe { call!(self.stream.driver(), graph_destroy(graph)) };
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
