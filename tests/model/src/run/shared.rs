//! Host-coherent pages: what a device's work keeps the host from, and for how long.
//!
//! The model knows of which call a device has work, and the gates that are ahead of it. While one is closed the host must
//! be refused; where none is, the work may have passed or not, and both answers are right until the stream was waited for.

use device_arena::Error;

use super::{Checked, Runner};
use crate::model::{Answer, DeviceWork, Home, View};

impl Runner<'_> {
    /// Notes work that the queue of an executor has on bytes of a call, where the host reaches them too.
    pub(super) fn shared_with(&mut self, call: usize, executor: usize) {
        let at = self.model.calls[call].arena;
        if !self.sharing || !matches!(self.model.arenas[at].home, Home::Coherent { .. }) {
            return;
        }
        let last = self.model.works.last_of(executor);
        let work = self.model.arenas[at].device_work.get_or_insert_with(DeviceWork::default);
        work.call = Some(call);
        work.behind.extend(last);
        self.report.meet("device work on host-coherent memory");
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
        if let Some(lane) = self.lane(Some(executor)) {
            lane.synchronize().map_err(|error| error.to_string())?;
        }
        self.model.arenas[at].device_work = None;
        Ok(())
    }

    /// What the host is told that reads a view.
    pub(super) fn expect_shared<T>(
        &mut self,
        view: &View,
        expected: Result<(), Answer>,
        got: &Result<T, Error>,
    ) -> Result<(), Answer> {
        expected?;
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
