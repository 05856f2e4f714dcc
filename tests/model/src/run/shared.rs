//! Host-coherent pages: what a device's work keeps the host from, and for how long.
//!
//! The model knows of which call a device has work, and the gates that are ahead of it. While one is closed the host must
//! be refused; where none is, the work may have passed or not, and both answers are right until the stream was waited for.

use device_arena::Error;

use super::{Checked, Runner};
use crate::lane::Faint;
use crate::model::{Answer, DeviceWork, Home, View};

impl Runner<'_> {
    /// Notes work that the queue of an executor has on bytes of a call, where the host reaches them too. Ahead of one
    /// whose handle is gone no gate is closed.
    pub(super) fn shared_with(&mut self, call: usize, executor: Option<usize>) {
        let at = self.model.calls[call].arena;
        if !matches!(self.model.arenas[at].home, Home::Coherent { .. }) {
            return;
        }
        let last = executor.and_then(|executor| self.model.works.last_of(executor));
        let work = self.model.arenas[at].device_work.get_or_insert_with(DeviceWork::default);
        work.call = Some(call);
        work.behind.extend(last);
        self.report.meet("device work on host-coherent memory");
    }

    /// A begin or a trim that starts with the generations anew knows nothing of the device's work, until the stream has passed.
    pub(super) fn begin_may_share(&mut self, at: usize) {
        let arena = &mut self.model.arenas[at];
        if arena.is_exhausted() && matches!(arena.home, Home::Coherent { .. }) {
            arena.device_work.get_or_insert_with(DeviceWork::default);
        }
    }

    /// Whether a gate is closed ahead of work of a call before this one: the host has no room of this one then.
    pub(super) fn must_be_pending(&self, call: usize) -> bool {
        let arena = &self.model.arenas[self.model.calls[call].arena];
        let earlier = arena.device_work.as_ref().filter(|work| work.call != Some(call));
        earlier.is_some_and(|work| self.is_ahead(work))
    }

    fn is_ahead(&self, work: &DeviceWork) -> bool {
        work.behind.iter().any(|work| !self.model.works.list[*work].passed)
    }

    /// Waits for what a device may do to host-coherent pages of an arena, where the host is to use them.
    pub(super) fn quiesce(&mut self, at: usize) -> Checked {
        let arena = &self.model.arenas[at];
        let Some(executor) = arena.home.executor().filter(|_| arena.device_work.is_some()) else {
            return Ok(());
        };
        self.note("quiesced");
        let all = self.model.works.all_of(executor);
        self.open(&all);
        self.pump()?;
        if let Some(lane) = self.faint[executor].as_ref().and_then(Faint::lane) {
            lane.synchronize().map_err(|error| error.to_string())?;
        }
        // The arena finds out when it next looks, by the stream: it is quiet, or else there may be other work by then.
        if let Some(work) = &mut self.model.arenas[at].device_work {
            work.behind.clear();
        }
        Ok(())
    }

    /// Every other time, waits for a device's work before a view is read: whether it did.
    pub(super) fn quiesce_for_read(&mut self, call: usize) -> Checked<bool> {
        let at = self.model.calls[call].arena;
        let waits = self.model.arenas[at].device_work.is_some() && self.token.is_multiple_of(2);
        let pending = self.model.must_not_be_read(call);
        if waits && !pending {
            self.quiesce(at)?;
        }
        Ok(waits && !pending)
    }

    /// What the host is told that reads a view.
    pub(super) fn expect_shared<T>(
        &mut self,
        view: &View,
        expected: Result<(), Answer>,
        got: &Result<T, Error>,
        is_quiet: bool,
    ) -> Result<(), Answer> {
        expected?;
        if is_quiet {
            return Ok(());
        }
        let call = &self.model.calls[view.call];
        let Some(work) = &self.model.arenas[call.arena].device_work else { return Ok(()) };
        let pending = Answer::Pending { generation: call.generation };
        let must = view.by_device && self.is_ahead(work);
        if must || matches!(got, Err(Error::Pending { .. })) {
            self.report.meet(if must { "pending behind a gate" } else { "pending perhaps" });
            return Err(pending);
        }
        Ok(())
    }
}
