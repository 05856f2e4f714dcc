//! What a program does where the host doesn't reach: fills that are queued, copies that are waited for, scratch and
//! guards for a device's own work.

use std::sync::Arc;

use device_arena::{Call, DeviceGuard, Error, Executor, Output};

use super::opens::length;
use super::real::{Held, Published};
use super::script::{Done, Made, Way};
use super::views::check_bytes;
use super::{Checked, Runner};
use crate::lane::Lane;
use crate::model::{Answer, Home, View};
use crate::program::{Step, Type};
use crate::value::{Value, values, with_type};

/// A step of a call whose memory is a device's.
pub(super) fn perform_step(
    call: &mut Call,
    step: Step,
    token: u64,
    way: &Way,
    done: &mut Done,
) -> Result<(), Error> {
    fn fixed<T: Value>(call: &Call, len: usize, token: u64, way: &Way) -> Result<Published, Error> {
        let mut output = call.output::<T>(len)?;
        match way {
            Way::Queued(lane) => fill(&mut output, lane, token)?,
            _ => output.copy_from_slice(&values(token, 0, len))?,
        }
        Ok(Published::View(Arc::new(output.publish())))
    }
    match step {
        Step::Fixed(of, len) => {
            let len = if of == Type::Vast { 0 } else { length(of, len) };
            done.made.push(Made::of(with_type!(of, T => fixed::<T>(call, len, token, way))?));
            Ok(())
        }
        Step::Writers(_) | Step::Tape(_) => Ok(()),
        Step::Scratch(len) => {
            let len = length(Type::Byte, len);
            call.scratch(|outer| {
                let first = outer.take_on_device::<u8>(len)?;
                fill_scratch(way, first, len, token)?;
                outer.scratch(|inner| {
                    let second = inner.take_on_device::<u8>(len / 2)?;
                    fill_scratch(way, second, len / 2, token + 1)
                })
            })
        }
    }
}

/// Queues the fill of an output.
pub(super) fn fill<T: Value>(output: &mut Output<T>, lane: &Lane, token: u64) -> Result<(), Error> {
    let (address, len) = (output.device_ptr()?, output.len() * size_of::<T>());
    // SAFETY: the output is of a running call, and the lane is the stream of its executor.
    unsafe { lane.fill(address.cast(), len, token) }
}

fn fill_scratch(way: &Way, address: *mut u8, len: usize, token: u64) -> Result<(), Error> {
    match way {
        // SAFETY: the scope is open, and the lane is the stream of the call's executor.
        Way::Queued(lane) => unsafe { lane.fill(address, len, token) },
        _ => Ok(()),
    }
}

impl<T: Value> Held for DeviceGuard<T> {
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    fn address(&self) -> usize {
        self.device_ptr().addr()
    }

    fn reader(&self) -> Option<&Executor> {
        Some(DeviceGuard::reader(self))
    }
}

impl Runner<'_> {
    /// Queues work on scratch, which nobody else may have.
    pub(super) fn fill_scratch(
        &self,
        executor: Option<usize>,
        address: usize,
        bytes: usize,
        token: u64,
    ) -> Checked {
        let Some(lane) = self.lane(executor) else { return Ok(()) };
        let got = fill_scratch(&Way::Queued(lane.clone()), address as *mut u8, bytes, token);
        got.map_err(|error| format!("scratch can't be filled: {error}"))
    }

    /// Reads a view for the work of an executor: the guard, which is a reader like any other.
    pub(super) fn read_on(&mut self, at: usize, reader: usize) -> Checked<Option<Box<dyn Held + Send>>> {
        let Some(view) = self.views[at].clone() else { return Err(format!("view{at} is lost")) };
        let call = self.model.views[at].call;
        let home = self.model.home_of(call);
        let Some(executor) = &self.executors[reader] else { return Err("an executor is lost".into()) };
        let got = view.read_on(executor);
        let expected = match home {
            Home::Host => self.model.check_current(call).and(Err(Answer::HostMemory)),
            _ => self.model.check_read(call, 1),
        };
        let Some(guard) = self.compare(expected, got)? else { return Ok(None) };
        self.report.meet("device guard");
        if let Some(own) = home.executor().filter(|own| *own != reader) {
            self.model.order_after_queue(reader, own);
            self.report.meet("device guard of another executor");
        }
        self.model.hold(call, 1);
        Ok(Some(guard))
    }

    /// Which executor a guard's work is on.
    pub(super) fn reader_of(&self, guard: &dyn Held) -> Option<usize> {
        let reader = guard.reader()?;
        self.executors.iter().position(|executor| executor.as_ref() == Some(reader))
    }

    /// What a guard holds, on the host or in its reader's stream.
    pub(super) fn check_held(&mut self, what: &str, model: &View, guard: &dyn Held) -> Checked {
        super::views::check_address(model, guard.address())?;
        if let Some(bytes) = guard.bytes() {
            return check_bytes(what, &model.bytes, bytes);
        }
        let reader = self.reader_of(guard);
        self.before_wait(reader);
        let Some(lane) = self.lane(reader) else { return Ok(()) };
        // SAFETY: the guard holds the bytes for the work of its reader, whose stream this is.
        let bytes = unsafe { lane.read(guard.address() as *const u8, model.bytes.len()) };
        let bytes = bytes.map_err(|error| format!("{what} can't be read: {error}"))?;
        self.pump()?;
        check_bytes(what, &model.bytes, &bytes)
    }

    /// Before a guard of a view goes: what its reader's stream has by then, the next call of the arena comes behind.
    pub(super) fn leave(&mut self, call: usize, guard: &dyn Held) {
        let at = self.model.calls[call].arena;
        self.before_last_owner(at);
        let Some(reader) = guard.reader() else { return };
        let reader = self.executors.iter().position(|executor| executor.as_ref() == Some(reader));
        let own = self.model.arenas[at].home.executor();
        self.shared_with(call, reader);
        let Some(reader) = reader.filter(|reader| own != Some(*reader)) else { return };
        self.model.leave_reader(at, reader);
    }

    /// Whether a guard of this view is to be a device's, and whose.
    pub(super) fn pick_reader(&self, call: usize, pick: u8) -> Option<usize> {
        let device = match self.model.home_of(call) {
            Home::Device { .. } => !pick.is_multiple_of(4),
            Home::Coherent { .. } => pick % 2 == 1,
            Home::Host => self.subject.is_device() && pick.is_multiple_of(8),
        };
        self.model.pick_executor(pick / 2).filter(|_| device)
    }
}
