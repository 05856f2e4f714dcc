//! Views, tapes and who reads them.

use std::sync::Arc;

use super::arenas::description;
use super::real::{AnyView, Held, on_thread};
use super::scopes::Chain;
use super::{Checked, Runner};
use crate::model::{Answer, Export, MAX_READERS, View};
use crate::program::{Op, Read, Type};

/// Holds bytes against what is known of them.
pub(super) fn check_bytes(what: &str, expected: &[Option<u8>], got: &[u8]) -> Checked {
    if expected.len() != got.len() {
        return Err(format!("{what} has {} bytes, expected {}", got.len(), expected.len()));
    }
    let differs = |(known, got): (&Option<u8>, &u8)| known.is_some_and(|known| known != *got);
    match expected.iter().zip(got).position(differs) {
        None => Ok(()),
        Some(at) => Err(format!("byte {at} of {what} is {:#x}, expected {:x?}", got[at], expected[at])),
    }
}

pub(super) fn check_address(model: &View, got: usize) -> Checked {
    match model.address {
        Some(address) if address != got && !model.bytes.is_empty() => {
            Err(format!("values at {got:#x}, which were written at {address:#x}"))
        }
        _ => Ok(()),
    }
}

fn check_items(got: &[&[u8]], expected: &[Vec<u8>]) -> Checked {
    if got == expected { Ok(()) } else { Err(format!("a tape of {got:x?}, expected {expected:x?}")) }
}

impl Runner<'_> {
    /// Puts a view in its place.
    pub(super) fn keep_view(&mut self, model: View, len: usize, view: Arc<dyn AnyView>) -> Checked {
        let generation = self.model.calls[model.call].generation;
        let got = (view.len(), view.byte_len(), view.generation(), view.describe());
        let expected = (len, model.bytes.len(), generation, description(self.model.home_of(model.call)));
        if got != expected {
            return Err(format!("a view of {got:?}, expected {expected:?}"));
        }
        self.note(&format!("view{}", self.views.len()));
        self.views.push(Some(view));
        self.model.views.push(model);
        Ok(())
    }

    fn real_view(&self, at: usize) -> Checked<Arc<dyn AnyView>> {
        self.views[at].clone().ok_or_else(|| format!("view{at} is lost"))
    }

    pub(super) fn read(&mut self, view: u8, how: Read) -> Checked {
        let Some(at) = self.model.pick_view(view) else { return Ok(()) };
        self.read_at(at, how)
    }

    fn read_at(&mut self, at: usize, how: Read) -> Checked {
        let (view, model) = (self.real_view(at)?, self.model.views[at].clone());
        self.say(format_args!("view{at}.{how:?}"));
        let is_quiet = how == Read::Guard && self.quiesce_for_read(model.call)?;
        let expected = match how {
            Read::CopyToWrongLength => self.model.check_current(model.call).and_then(|()| {
                let (expected, actual) = (view.len(), view.len() + 1);
                Err(Answer::LengthMismatch { expected, actual })
            }),
            Read::Guard => self.check_host_read(model.call, 1),
            _ => self.model.check_read(model.call, 1),
        };
        let home = self.model.home_of(model.call);
        let waits = match how {
            Read::Guard => false,
            _ if home.is_on_device() => !model.bytes.is_empty(),
            _ => self.model.arena_of(model.call).device_work.is_some(),
        };
        if expected.is_ok() && waits {
            self.before_wait(home.executor());
        }
        let got = match how {
            Read::Guard => {
                view.read().map(|guard| (guard.bytes().unwrap_or(&[]).to_vec(), Some(guard.address())))
            }
            Read::ToVec => view.to_vec().map(|bytes| (bytes, None)),
            Read::CopyTo => view.copy_to(view.len()).map(|bytes| (bytes, None)),
            Read::CopyToWrongLength => view.copy_to(view.len() + 1).map(|bytes| (bytes, None)),
        };
        self.pump()?;
        let expected =
            if how == Read::Guard { self.expect_shared(&model, expected, &got, is_quiet) } else { expected };
        let Some((bytes, address)) = self.compare(expected, got)? else { return Ok(()) };
        self.report.meet("read");
        address.map_or(Ok(()), |address| check_address(&model, address))?;
        check_bytes("a view", &model.bytes, &bytes)
    }

    /// Whether the host is let in: stale, or out of its reach, before all else.
    fn check_host_read(&mut self, call: usize, readers: u32) -> Result<(), Answer> {
        if let Err(refused) = self.model.home_of(call).check_host() {
            return self.model.check_current(call).and(Err(refused));
        }
        self.model.check_read(call, readers)
    }

    pub(super) fn guard(&mut self, view: u8, inside: &[Op], chain: &mut dyn Chain) -> Checked<usize> {
        let Some(at) = self.model.pick_view(view).filter(|_| self.may_nest()) else { return Ok(0) };
        let (view, model) = (self.real_view(at)?, self.model.views[at].clone());
        let guard: Option<Box<dyn Held + '_>> = match self.pick_reader(model.call, self.token as u8) {
            Some(reader) => {
                self.say(format_args!("view{at}.read_on executor{reader}"));
                self.read_on(at, reader)?.map(|guard| guard as Box<dyn Held>)
            }
            None => {
                let expected = self.check_host_read(model.call, 1);
                self.say(format_args!("view{at}.read"));
                let is_quiet = self.quiesce_for_read(model.call)?;
                let got = view.read();
                let expected = self.expect_shared(&model, expected, &got, is_quiet);
                let guard = self.compare(expected, got)?;
                if guard.is_some() {
                    self.model.hold(model.call, 1);
                    self.report.meet("guard");
                }
                guard
            }
        };
        let Some(guard) = guard else { return Ok(0) };
        self.run_inside(&format!("while view{at} is held"), inside, chain)?;
        self.check_held("a guard", &model, &*guard)?;
        self.leave(model.call, &*guard);
        drop(guard);
        self.model.release(model.call, 1);
        Ok(inside.len())
    }

    pub(super) fn export(&mut self, view: u8) -> Checked {
        let Some(at) = self.model.pick_view(view) else { return Ok(()) };
        let (view, model) = (self.real_view(at)?, self.model.views[at].clone());
        let export = match self.pick_reader(model.call, self.token as u8) {
            Some(reader) => {
                self.say(format_args!("export{} = view{at}.read_on executor{reader}", self.exports.len()));
                self.read_on(at, reader)?
            }
            None => {
                let expected = self.check_host_read(model.call, 1);
                self.say(format_args!("export{} = view{at}.export", self.exports.len()));
                let is_quiet = self.quiesce_for_read(model.call)?;
                let got = view.export();
                let expected = self.expect_shared(&model, expected, &got, is_quiet);
                let export = self.compare(expected, got)?;
                if export.is_some() {
                    self.model.hold(model.call, 1);
                    self.report.meet("export");
                }
                export
            }
        };
        let Some(export) = export else { return Ok(()) };
        self.exports.push(Some(export));
        self.model.exports.push(Export { view: model, alive: true });
        Ok(())
    }

    pub(super) fn call_export(&mut self, call: u8, view: u8, chain: &mut dyn Chain) -> Checked {
        let Some(id) = self.model.pick_call(call, false) else { return Ok(()) };
        // Its own views more often than not: those of other calls are refused, all alike.
        let own = |view: &View| view.alive && view.call == id;
        let own = crate::model::pick(self.model.views.iter().map(own), view);
        let Some(at) = own.filter(|_| !view.is_multiple_of(4)).or_else(|| self.model.pick_view(view)) else {
            return Ok(());
        };
        let (view, model) = (self.real_view(at)?, self.model.views[at].clone());
        self.say(format_args!("export{} = call{id}.export view{at}", self.exports.len()));
        self.quiesce(self.model.calls[id].arena)?;
        let got = view.export_by(self.call(id, chain)?);
        let generation = self.model.calls[model.call].generation;
        let home = self.model.home_of(id);
        let expected = match self.model.arena_of(id).readers {
            _ if model.call != id => Err(Answer::Stale { generation, dropped: false }),
            _ if home.is_on_device() => home.check_host(),
            MAX_READERS => Err(Answer::TooManyReaders { limit: MAX_READERS }),
            _ => Ok(()),
        };
        let Some(export) = self.compare(expected, got)? else { return Ok(()) };
        self.model.hold(id, 1);
        self.report.meet("export by its call");
        self.exports.push(Some(export));
        self.model.exports.push(Export { view: model, alive: true });
        Ok(())
    }

    pub(super) fn drop_export(&mut self, export: u8, elsewhere: bool) -> Checked {
        let Some(at) = self.model.pick_export(export) else { return Ok(()) };
        self.check_export(at)?;
        self.say(format_args!("drop export{at}{}", if elsewhere { " elsewhere" } else { "" }));
        let Some(export) = self.exports[at].take() else { return Err(format!("export{at} is lost")) };
        let call = self.model.exports[at].view.call;
        self.leave(call, &*export);
        on_thread(elsewhere, move || drop(export));
        self.model.exports[at].alive = false;
        self.model.release(call, 1);
        Ok(())
    }

    /// What an export holds is there, whatever became of its arena.
    fn check_export(&mut self, at: usize) -> Checked {
        let Some(export) = self.exports[at].take() else { return Err(format!("export{at} is lost")) };
        let model = self.model.exports[at].view.clone();
        let outcome = self.check_held("an export", &model, &*export);
        self.exports[at] = Some(export);
        outcome
    }

    pub(super) fn slice(&mut self, view: u8, start: u8, end: u8) -> Checked {
        let Some(at) = self.model.pick_view(view) else { return Ok(()) };
        let (view, model) = (self.real_view(at)?, self.model.views[at].clone());
        let len = view.len();
        let (start, end) = (usize::from(start) % (len + 2), usize::from(end) % (len + 2));
        self.say(format_args!("view{at}.slice({start}..{end}) of {len}"));
        let inside = start <= end && end <= len;
        let out = Answer::OutOfRange { start, end, len };
        let expected = self.model.check_current(model.call);
        let expected = expected.and(if inside { Ok(()) } else { Err(out) });
        let Some(slice) = self.compare(expected, view.slice(start, end))? else { return Ok(()) };
        let (size, mut part) = (model.of.size(), model);
        part.bytes = part.bytes[start * size..end * size].to_vec();
        part.address = part.address.map(|address| address + start * size);
        self.report.meet("slice");
        self.keep_view(part, end - start, slice)
    }

    pub(super) fn clone_view(&mut self, view: u8) -> Checked {
        let Some(at) = self.model.pick_view(view) else { return Ok(()) };
        let (view, model) = (self.real_view(at)?, self.model.views[at].clone());
        self.say(format_args!("view{at}.clone"));
        self.keep_view(model, view.len(), view.cloned())
    }

    pub(super) fn drop_view(&mut self, view: u8) {
        let Some(at) = self.model.pick_view(view) else { return };
        self.say(format_args!("drop view{at}"));
        self.model.views[at].alive = false;
        self.views[at] = None;
    }

    pub(super) fn guard_tape(&mut self, tape: u8, inside: &[Op], chain: &mut dyn Chain) -> Checked<usize> {
        let Some(at) = self.model.pick_tape(tape).filter(|_| self.may_nest()) else { return Ok(0) };
        self.guard_tape_at(at, inside, chain)
    }

    fn guard_tape_at(&mut self, at: usize, inside: &[Op], chain: &mut dyn Chain) -> Checked<usize> {
        let Some(tape) = self.tapes[at].clone() else { return Err(format!("tape{at} is lost")) };
        let model = self.model.tapes[at].clone();
        self.quiesce(self.model.calls[model.call].arena)?;
        let expected = self.model.check_read(model.call, 2);
        self.say(format_args!("tape{at}.read"));
        let Some(guard) = self.compare(expected, tape.read())? else { return Ok(0) };
        self.model.hold(model.call, 2);
        self.report.meet("tape read");
        if !inside.is_empty() {
            self.run_inside(&format!("while tape{at} is held"), inside, chain)?;
        }
        let items: Vec<_> = guard.tape().iter().map_err(|error| error.to_string())?.collect();
        check_items(&items, &model.items)?;
        let generation = self.model.calls[model.call].generation;
        if (tape.generation(), tape.is_current()) != (generation, self.model.stale(model.call).is_none()) {
            return Err(format!("tape{at} is of {}, current {}", tape.generation(), tape.is_current()));
        }
        self.before_last_owner(self.model.calls[model.call].arena);
        drop(guard);
        self.model.release(model.call, 2);
        // Of what was queued while it was held.
        self.quiesce(self.model.calls[model.call].arena)?;
        // A copy reads each of its parts while it holds both.
        let expected = self.model.check_read(model.call, 3);
        self.say(format_args!("tape{at}.to_tape"));
        if let Some(copy) = self.compare(expected, tape.to_tape())? {
            let copied: Vec<_> = copy.view().iter().map_err(|error| error.to_string())?.collect();
            check_items(&copied, &model.items)?;
        }
        Ok(inside.len())
    }

    pub(super) fn tape_views(&mut self, tape: u8) -> Checked {
        let Some(at) = self.model.pick_tape(tape) else { return Ok(()) };
        let Some(tape) = self.tapes[at].clone() else { return Err(format!("tape{at} is lost")) };
        let model = self.model.tapes[at].clone();
        self.say(format_args!("tape{at} taken apart"));
        let bytes: Vec<_> = model.items.concat().into_iter().map(Some).collect();
        let mut offsets = vec![0u64];
        for item in &model.items {
            offsets.push(offsets[offsets.len() - 1] + item.len() as u64);
        }
        let (count, call) = (offsets.len(), model.call);
        let offsets = offsets.into_iter().flat_map(u64::to_ne_bytes).map(Some).collect();
        let view = |of, bytes| View { call, of, bytes, address: None, by_device: false, alive: true };
        let (len, real) = (bytes.len(), tape.bytes().clone());
        self.keep_view(view(Type::Byte, bytes), len, Arc::new(real))?;
        self.keep_view(view(Type::Long, offsets), count, Arc::new(tape.offsets().clone()))
    }

    pub(super) fn drop_tape(&mut self, tape: u8) {
        let Some(at) = self.model.pick_tape(tape) else { return };
        self.say(format_args!("drop tape{at}"));
        self.model.tapes[at].alive = false;
        self.tapes[at] = None;
    }

    /// Reads the views of one call.
    pub(super) fn read_views_of(&mut self, call: usize) -> Checked {
        for at in 0..self.views.len() {
            if self.model.views[at].alive && self.model.views[at].call == call {
                self.read_at(at, Read::ToVec)?;
            }
        }
        Ok(())
    }

    /// Reads whatever there is to read.
    pub(super) fn read_everything(&mut self) -> Checked {
        self.say("everything is read");
        for at in 0..self.views.len() {
            if self.model.views[at].alive {
                let on_device = self.model.home_of(self.model.views[at].call).is_on_device();
                let shared = self.model.arena_of(self.model.views[at].call).device_work.is_some();
                self.read_at(at, if on_device || shared { Read::ToVec } else { Read::Guard })?;
            }
        }
        for at in 0..self.tapes.len() {
            if self.model.tapes[at].alive {
                self.guard_tape_at(at, &[], &mut super::Outside)?;
            }
        }
        for at in 0..self.exports.len() {
            if self.model.exports[at].alive {
                self.check_export(at)?;
            }
        }
        self.settle()
    }
}
