//! What opens gates: an operation that waits for a device's stream must find those ahead of it open, or about to.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Checked, Runner};
use crate::lane::Lane;

/// How long an operation runs before the gates open that it may have to wait for.
const A_MOMENT: Duration = Duration::from_micros(200);

impl Runner<'_> {
    /// Opens the gates of work and of all ahead of it.
    pub(super) fn open(&mut self, all: &BTreeSet<usize>) {
        drop(self.take_gates(all));
    }

    pub(super) fn take_gates(&mut self, all: &BTreeSet<usize>) -> Vec<std::sync::mpsc::Sender<()>> {
        self.cover_works();
        for work in all {
            self.model.works.list[*work].released = true;
        }
        all.iter().filter_map(|work| self.works[*work].gate.take()).collect()
    }

    /// Opens gates once the next operation is on its way: one that must wait for them has to do so.
    fn open_soon(&mut self, all: &BTreeSet<usize>) {
        let gates = self.take_gates(all);
        if !gates.is_empty() {
            self.note("gates open meanwhile");
            std::thread::spawn(move || {
                std::thread::sleep(A_MOMENT);
                drop(gates);
            });
        }
    }

    /// Before an operation that waits for the stream of an executor, if it is a device's.
    pub(super) fn before_wait(&mut self, executor: Option<usize>) {
        if let Some(executor) = executor.filter(|_| self.subject.is_device()) {
            let all = self.model.works.all_of(executor);
            self.open_soon(&all);
        }
    }

    /// Before an operation that may give a block of a device's back: drivers wait for all that the device does.
    pub(super) fn before_free(&mut self, arena: usize) {
        if self.model.arenas[arena].home.executor().is_some() {
            self.before_everything();
        }
    }

    pub(super) fn before_everything(&mut self) {
        let all = (0..self.model.works.list.len()).collect();
        self.open_soon(&all);
    }

    /// Before a begin that may give blocks back.
    pub(super) fn before_begin(&mut self, arena: usize) {
        if self.model.arenas[arena].may_free_on_begin() {
            self.before_free(arena);
        }
    }

    /// Before room is taken, for which the limit may have blocks given back.
    pub(super) fn before_growth(&mut self, arena: usize) {
        let model = &self.model.arenas[arena];
        let known = model.alive && !model.need.may_free_on_growth(&model.settings);
        if !known {
            self.before_free(arena);
        }
    }

    /// Before something goes that may be the last owner of the blocks of an arena whose handle is gone.
    pub(super) fn before_last_owner(&mut self, arena: usize) {
        if !self.model.arenas[arena].alive {
            self.before_free(arena);
        }
    }

    /// Where the driver runs one stream's host work at a time: no gate of another executor stays closed.
    pub(super) fn before_gate(&mut self, executor: usize) -> Checked {
        if !self.subject.is_one_at_a_time() {
            return Ok(());
        }
        let works = self.model.works.list.iter().enumerate();
        let others: Vec<_> = works.filter(|(_, work)| work.executor != executor).map(|(at, _)| at).collect();
        let all = others.into_iter().flat_map(|work| self.model.works.up_to(work)).collect();
        self.open(&all);
        self.pump()
    }

    /// The way to the stream of an executor of a device, as long as its handle is there.
    pub(super) fn lane(&self, executor: Option<usize>) -> Option<&Lane> {
        self.lanes[executor?].as_ref()
    }

    /// Every work of the model's has its place here.
    pub(super) fn cover_works(&mut self) {
        self.works.resize_with(self.model.works.list.len().max(self.works.len()), Default::default);
    }
}
