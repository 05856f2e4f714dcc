//! Runs that are captured into a graph once, and launched again and again.

use std::sync::Arc;

use super::batch::Prepared;
use super::view::PlannedView;
use super::{PlannedArena, Run, Shared};
use crate::error::{Error, Result};
use crate::executor::Captured;
use crate::view::View;

/// A run whose work was captured. It holds its arena, and every launch of it is a run: see
/// [`Captured`].
#[derive(Debug)]
#[must_use = "the graph is launched from here alone"]
pub struct CapturedRun {
    captured: Captured<View<u8>>,
    shared: Arc<Shared>,
    /// Lists that the graph reads. After it: they go last.
    _kept: Vec<Arc<Prepared>>,
}

impl PlannedArena {
    /// Begins a run, and captures what `work` queues on the executor's stream into a graph: copies and clears, and kernels of
    /// the caller's own. Nothing runs before the first launch; the block is made before.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin) and [`Executor::capture`](crate::Executor::capture); [`Error::HostMemory`] for host pages.
    pub fn capture(&self, work: impl FnOnce(&mut Run) -> Result<()>) -> Result<CapturedRun> {
        let Some(executor) = &self.executor else {
            return Err(Error::HostMemory { operation: "capture" });
        };
        if self.last().is_none() {
            // The block is made and zeroed outside of the graph.
            self.begin()?.finish()?;
        }
        let mut kept = Vec::new();
        let captured = executor.capture(&self.arena, |call| {
            let mut run = Run::new(None, self.room_of(call)?, Arc::clone(&self.shared));
            let worked = work(&mut run);
            kept.append(&mut run.kept);
            worked?;
            Ok(run.room.publish())
        })?;
        Ok(CapturedRun { captured, shared: Arc::clone(&self.shared), _kept: kept })
    }
}

impl CapturedRun {
    /// Queues the captured work once more: see [`Captured::launch`].
    ///
    /// # Errors
    ///
    /// As [`Captured::launch`].
    pub fn launch(&mut self) -> Result<PlannedView> {
        let view = self.captured.launch()?;
        self.shared.keep(view.clone());
        Ok(PlannedView::new(view, Arc::clone(&self.shared.plan)))
    }
}
