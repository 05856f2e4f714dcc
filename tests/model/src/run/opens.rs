//! Outputs, writers and tapes: opened, published and dropped.

use std::ops::Range;

use device_arena::Error;

use super::answers::answer;
use super::real::{self, AnyOpen, Published, on_thread};
use super::scopes::Chain;
use super::views::check_bytes;
use super::{Checked, Runner};
use crate::model::{Answer, Home, Kind, MAX_OUTPUTS, Need, Open, Tape, View, room};
use crate::program::{Room, Type};
use crate::value::pattern;

/// The largest output that a program opens, in bytes.
const LARGEST: usize = 12_000;

/// How many values of a type a program's length stands for.
pub(super) fn length(of: Type, len: u16) -> usize {
    usize::from(len) % (LARGEST / of.size().max(1) + 1)
}

impl Runner<'_> {
    /// Compares the answer to a request for `asked` bytes of room, which the limit alone may refuse.
    pub(super) fn compare_room<T>(
        &mut self,
        at: usize,
        asked: usize,
        got: Result<T, Error>,
    ) -> Checked<Option<T>> {
        let arena = &self.model.arenas[at];
        let expected = match &got {
            Err(error @ Error::OverLimit { .. }) if asked != 0 && arena.may_be_refused(asked) => {
                let requested = Need::least_request(&arena.settings, asked);
                let refused = self.over_limit(at, requested, error);
                let arena = &mut self.model.arenas[at];
                arena.need.refuse(&arena.settings, asked);
                Err(refused)
            }
            _ => Ok(()),
        };
        self.compare(expected, got)
    }

    /// The refusal that the limit of an arena makes of a request.
    pub(super) fn over_limit(&self, at: usize, requested: usize, got: &Error) -> Answer {
        let arena = &self.model.arenas[at];
        let reserved = match got {
            // Without a handle, nobody else says how much is reserved.
            Error::OverLimit { reserved, .. } if !arena.alive => *reserved,
            _ => arena.need.reserved(),
        };
        Answer::OverLimit { requested, reserved, limit: arena.settings.byte_limit }
    }

    /// Counts the outputs that an answer stands for; the refusal, where they are too many. Where something else is
    /// wrong as well, either may be said, and so may it be unsaid whether refused outputs count.
    fn count<T>(&mut self, call: usize, outputs: u32, got: &Result<T, Error>) -> Option<Answer> {
        let most = MAX_OUTPUTS - outputs;
        let model = &mut self.model.calls[call];
        let (full, perhaps) = (model.opened > most, model.opened + model.refused > most);
        match got {
            Ok(_) if !full => {
                self.model.count_outputs(call, outputs);
                return None;
            }
            Ok(_) => {}
            Err(error) => {
                model.refused += outputs;
                if !perhaps || !matches!(error, Error::TooManyOutputs { .. }) {
                    return None;
                }
            }
        }
        Some(Answer::TooManyOutputs { limit: MAX_OUTPUTS })
    }

    /// Whether room for values is aligned as asked and nobody else's.
    pub(super) fn check_place(&self, range: &Range<usize>, of: Type, at: usize) -> Checked {
        let alignment = self.model.arenas[at].settings.alignment.max(of.align());
        if !range.start.is_multiple_of(alignment) {
            return Err(format!("room at {:#x} is not aligned to {alignment}", range.start));
        }
        self.model.check_apart(range)
    }

    /// Puts an open output in its place.
    fn keep_open(&mut self, call: usize, of: Type, kind: Kind, address: usize, real: Box<dyn AnyOpen>) {
        self.opens.push(Some(real));
        self.model.opens.push(Open { call, of, kind, address, by_device: false, alive: true });
    }

    pub(super) fn output(
        &mut self,
        call: u8,
        of: Type,
        len: u16,
        how: Room,
        chain: &mut dyn Chain,
    ) -> Checked {
        let Some(id) = self.model.pick_call(call, false) else { return Ok(()) };
        self.open_output(id, of, length(of, len), how, chain).map(drop)
    }

    /// Opens an output; which it is, unless it was refused.
    pub(super) fn open_output(
        &mut self,
        id: usize,
        of: Type,
        len: usize,
        how: Room,
        chain: &mut dyn Chain,
    ) -> Checked<Option<usize>> {
        let (token, at) = (self.fresh_token(), self.model.calls[id].arena);
        let (settings, home) = (self.model.arenas[at].settings, self.model.arenas[at].home);
        self.say(format_args!("output{} = call{id}: {len} {of:?}, {how:?}", self.opens.len()));
        if of.align() > settings.block {
            let got = real::output(self.call(id, chain)?, of, len.min(1), Room::Plain, token);
            let alignment = Answer::Alignment { alignment: of.align(), largest: settings.block };
            let refused = self.count(id, 1, &got).unwrap_or(alignment);
            return self.compare(Err(refused), got).map(|_| None);
        }
        let bytes = len * of.size();
        if how != Room::Plain && token % 2 == 1 && self.must_be_pending(id) {
            // Before everything else, so that it takes no room.
            let got = real::output(self.call(id, chain)?, of, len, how, token);
            let pending = Answer::Pending { generation: self.model.calls[id].generation };
            self.report.meet("pending room");
            return self.compare(Err(pending), got).map(|_| None);
        }
        self.quiesce(at)?;
        self.before_growth(at);
        if how == Room::FromSlice && home.is_on_device() && bytes != 0 {
            self.before_wait(home.executor());
        }
        let got = real::output(self.call(id, chain)?, of, len, how, token);
        let asked = room(&settings, bytes, of.align());
        if let (Home::Device { ordinal, .. }, Err(Error::Device { .. }), Room::FromFn) = (home, &got, how) {
            return self.compare(Err(Answer::Device { ordinal }), got).map(|_| None);
        }
        if let Some(refused) = self.count(id, 1, &got) {
            return self.compare(Err(refused), got).map(|_| None);
        }
        let Some(mut output) = self.compare_room(at, asked, got)? else { return Ok(None) };
        if how == Room::FromFn && home.is_on_device() {
            return Err("the host wrote to a device's memory".into());
        }
        let start = match home {
            Home::Device { .. } => output.device_address().map_err(|error| error.to_string())?,
            _ => output.address(),
        };
        let range = start..start + bytes;
        if output.len() != len {
            return Err(format!("{} values, expected {len}", output.len()));
        }
        let arena = self.model.arena_of(id);
        let expected: Vec<_> = match how {
            Room::Plain => range.clone().map(|address| arena.unwritten(address)).collect(),
            _ => pattern(token, 0, bytes).into_iter().map(Some).collect(),
        };
        if bytes != 0 {
            arena.need.take(asked);
            self.check_place(&range, of, at)?;
            let name = format!("output{}", self.opens.len());
            self.model.arenas[at].live.push((range, name));
        }
        if !home.is_on_device() {
            let now = output.bytes().map_err(|error| error.to_string())?;
            check_bytes("a fresh output", &expected, &now)?;
        }
        self.report.meet("output");
        self.keep_open(id, of, Kind::Fixed { bytes: expected }, start, output);
        Ok(Some(self.opens.len() - 1))
    }

    pub(super) fn huge_output(&mut self, call: u8, overflows: bool, chain: &mut dyn Chain) -> Checked {
        /// More than any process can map.
        const UNMAPPABLE: usize = 1 << 60;
        let Some(id) = self.model.pick_call(call, false) else { return Ok(()) };
        let at = self.model.calls[id].arena;
        self.say(format_args!("call{id}: a huge output, overflows {overflows}"));
        self.before_growth(at);
        let call = self.call(id, chain)?;
        let got = if overflows {
            call.output::<u64>(usize::MAX / 4).map(drop)
        } else {
            call.output::<u8>(UNMAPPABLE).map(drop)
        };
        let too_many = self.count(id, 1, &got);
        let expected = match &got {
            _ if too_many.is_some() => Answer::TooManyOutputs { limit: MAX_OUTPUTS },
            _ if overflows => Answer::SizeOverflow,
            Err(error) if self.model.arenas[at].settings.byte_limit != usize::MAX => {
                self.over_limit(at, UNMAPPABLE, error)
            }
            _ => Answer::OutOfMemory { requested: UNMAPPABLE },
        };
        self.compare(Err(expected), got).map(drop)
    }

    pub(super) fn many_outputs(&mut self, call: u8, count: u16, chain: &mut dyn Chain) -> Checked {
        let Some(id) = self.model.pick_call(call, false) else { return Ok(()) };
        let most = if cfg!(device_arena_small_limits) { 1100 } else { 20 };
        self.say(format_args!("call{id}: {} empty outputs", count % most));
        for _ in 0..count % most {
            let got = self.call(id, chain)?.output::<u32>(0);
            if let Some(refused) = self.count(id, 1, &got) {
                return self.compare(Err(refused), got.map(drop)).map(drop);
            }
            if let Err(error) = got {
                return Err(format!("expected success, got {error:?}"));
            }
            self.model.close_output(id);
        }
        Ok(())
    }

    pub(super) fn writer(&mut self, call: u8, of: Type, capacity: u8, chain: &mut dyn Chain) -> Checked {
        let Some(id) = self.model.pick_call(call, false) else { return Ok(()) };
        let (capacity, at) = (usize::from(capacity), self.model.calls[id].arena);
        self.say(format_args!("writer{} = call{id}: {of:?}, capacity {capacity}", self.opens.len()));
        self.quiesce(at)?;
        self.before_growth(at);
        let got = real::writer(self.call(id, chain)?, of, capacity);
        if let Err(refused) = self.model.arenas[at].home.check_host() {
            return self.compare(Err(refused), got).map(drop);
        }
        let largest = self.model.arenas[at].settings.block;
        if of.align() > largest {
            let alignment = Answer::Alignment { alignment: of.align(), largest };
            let refused = self.count(id, 1, &got).unwrap_or(alignment);
            return self.compare(Err(refused), got).map(drop);
        }
        if let Some(refused) = self.count(id, 1, &got) {
            return self.compare(Err(refused), got).map(drop);
        }
        let asked = room(&self.model.arenas[at].settings, capacity * of.size(), of.align());
        let Some(writer) = self.compare_room(at, asked, got)? else { return Ok(()) };
        self.model.arenas[at].need.follow();
        self.report.meet("writer");
        let (address, index) = (writer.address(), self.opens.len());
        self.keep_open(id, of, Kind::Writer { bytes: Vec::new(), len: 0 }, address, writer);
        self.writer_moved(index)
    }

    pub(super) fn tape(&mut self, call: u8, items: u8, bytes: u8, chain: &mut dyn Chain) -> Checked {
        let Some(id) = self.model.pick_call(call, false) else { return Ok(()) };
        self.say(format_args!("tape output{} = call{id}: {items} items, {bytes} bytes", self.opens.len()));
        self.quiesce(self.model.calls[id].arena)?;
        self.before_growth(self.model.calls[id].arena);
        let got = self.call(id, chain)?.tape_output_with_capacity(items.into(), bytes.into());
        if let Err(refused) = self.model.home_of(id).check_host() {
            return self.compare(Err(refused), got).map(drop);
        }
        let arena = self.model.arena_of(id);
        let limit = arena.settings.byte_limit;
        arena.need.follow();
        arena.used_anywhere = true;
        let too_many = self.count(id, 2, &got);
        // Which of its two writers was refused, only the arena knows.
        let over_limit = got.as_ref().err().map(answer).filter(|refused| match refused {
            Answer::OverLimit { requested, reserved, limit: said } => {
                *said == limit && limit != usize::MAX && reserved + requested > limit
            }
            _ => false,
        });
        let expected = too_many.or(over_limit).map_or(Ok(()), Err);
        let Some(tape) = self.compare(expected, got)? else { return Ok(()) };
        self.report.meet("tape output");
        let kind = Kind::Tape { items: Vec::new(), parts: Vec::new() };
        self.keep_open(id, Type::Byte, kind, 0, Box::new(tape));
        Ok(())
    }

    pub(super) fn publish(&mut self, open: u8, elsewhere: bool) -> Checked {
        let Some(at) = self.model.pick_open(open, false) else { return Ok(()) };
        let Some(real) = self.opens[at].take() else { return Err(format!("output{at} is lost")) };
        self.say(format_args!("publish output{at}{}", if elsewhere { " elsewhere" } else { "" }));
        self.before_last_owner(self.model.calls[self.model.opens[at].call].arena);
        let published = on_thread(elsewhere, move || real.publish());
        self.published(at, usize::MAX, published)
    }

    pub(super) fn publish_prefix(&mut self, open: u8, len: u16) -> Checked {
        let Some(at) = self.model.pick_open(open, true) else { return Ok(()) };
        let Some(real) = self.opens[at].take() else { return Err(format!("output{at} is lost")) };
        let has = real.len();
        let len = usize::from(len) % (has + 2);
        self.say(format_args!("publish {len} of {has} of output{at}"));
        self.before_last_owner(self.model.calls[self.model.opens[at].call].arena);
        let got = match real.publish_prefix(len) {
            Ok(published) => Ok(published),
            Err((error, real)) => {
                self.opens[at] = Some(real);
                Err(error)
            }
        };
        let beyond = Answer::OutOfRange { start: 0, end: len, len: has };
        let expected = if len > has { Err(beyond) } else { Ok(()) };
        match self.compare(expected, got)? {
            Some(published) => self.published(at, len, published),
            None => Ok(()),
        }
    }

    /// What became of an open output: a view of so many of its values, or a tape.
    fn published(&mut self, at: usize, len: usize, published: Published) -> Checked {
        let (Open { call, of, kind, by_device, .. }, name) =
            (self.model.opens[at].clone(), format!("output{at}"));
        self.model.opens[at].alive = false;
        self.model.close_output(call);
        match (kind, published) {
            (Kind::Fixed { bytes }, Published::View(view)) => {
                let len = if len == usize::MAX { view.len() } else { len };
                let bytes = bytes[..(len * of.size()).min(bytes.len())].to_vec();
                let address = Some(self.model.opens[at].address);
                self.keep_view(View { call, of, bytes, address, by_device, alive: true }, len, view)?;
            }
            (Kind::Writer { bytes, len }, Published::View(view)) => {
                let arena = self.model.arena_of(call);
                arena.need.follow();
                // The room past the values may be somebody else's from now on.
                for (range, _) in arena.live.iter_mut().filter(|(_, whose)| *whose == name) {
                    range.end = range.start + bytes.len();
                }
                let bytes = bytes.into_iter().map(Some).collect();
                let address = Some(self.model.opens[at].address);
                self.keep_view(View { call, of, bytes, address, by_device, alive: true }, len, view)?;
            }
            (Kind::Tape { items, .. }, Published::Tape(tape)) => {
                self.model.close_output(call);
                self.model.arena_of(call).need.follow();
                self.note(&format!("tape{}", self.tapes.len()));
                if tape.len() != items.len() || tape.is_empty() != items.is_empty() {
                    return Err(format!("a tape of {} items, expected {}", tape.len(), items.len()));
                }
                self.tapes.push(Some(tape));
                self.model.tapes.push(Tape { call, items, alive: true });
            }
            _ => return Err(format!("output{at} was published as something else")),
        }
        self.report.meet("publish");
        Ok(())
    }

    pub(super) fn drop_open(&mut self, open: u8, elsewhere: bool) -> Checked {
        let Some(at) = self.model.pick_open(open, false) else { return Ok(()) };
        let Some(real) = self.opens[at].take() else { return Err(format!("output{at} is lost")) };
        self.say(format_args!("drop output{at}{}", if elsewhere { " elsewhere" } else { "" }));
        self.before_last_owner(self.model.calls[self.model.opens[at].call].arena);
        on_thread(elsewhere, move || drop(real));
        let Open { call, kind, .. } = self.model.opens[at].clone();
        self.model.opens[at].alive = false;
        let (name, arena) = (format!("output{at}"), self.model.arena_of(call));
        let theirs = |(_, whose): &(Range<usize>, String)| *whose == name;
        let left = arena.live.extract_if(.., |live| theirs(live)).map(|(range, _)| range);
        arena.used_before.extend(left);
        if !matches!(kind, Kind::Fixed { .. }) {
            arena.need.follow();
        }
        self.model.close_output(call);
        if matches!(kind, Kind::Tape { .. }) {
            self.model.close_output(call);
        }
        Ok(())
    }
}
