//! What is written to open outputs.

use device_arena::Error;

use super::answers::answer;
use super::real::AnyOpen;
use super::views::check_bytes;
use super::{Checked, Runner};
use crate::model::{Answer, Kind, Need, room};
use crate::program::Write;
use crate::value::{filled, pattern};

impl Runner<'_> {
    pub(super) fn write(&mut self, open: u8, what: Write) -> Checked {
        let Some(at) = self.model.pick_open(open, false) else { return Ok(()) };
        let (token, call) = (self.fresh_token(), self.model.opens[at].call);
        self.say(format_args!("write to output{at}: {what:?}"));
        if self.model.home_of(call).is_on_device() {
            return self.write_on_device(at, what, token);
        }
        let fixed = matches!(self.model.opens[at].kind, Kind::Fixed { .. });
        if fixed && matches!(what, Write::Each(_) | Write::Truncate(_)) && self.fill_shared(at, token)? {
            return Ok(());
        }
        self.quiesce(self.model.calls[call].arena)?;
        self.before_growth(self.model.calls[call].arena);
        let Some(real) = &mut self.opens[at] else { return Err(format!("output{at} is lost")) };
        let room_before = real.room();
        let got = real.write(what, token);
        self.report.meet("write");
        match &self.model.opens[at].kind {
            Kind::Fixed { .. } => self.wrote_fixed(at, what, token, got),
            Kind::Writer { .. } => self.wrote_writer(at, what, token, room_before, got),
            Kind::Tape { .. } => self.wrote_tape(at, what, token, got),
        }
    }

    /// What the host writes to a device is copied as a whole, or refused; the device fills it in its stream's order.
    fn write_on_device(&mut self, at: usize, what: Write, token: u64) -> Checked {
        let (call, of) = (self.model.opens[at].call, self.model.opens[at].of);
        let home = self.model.home_of(call);
        let len = self.real_open(at)?.len();
        let bytes = len * of.size();
        if matches!(what, Write::Slice(_)) && bytes != 0 {
            self.before_wait(home.executor());
        }
        let lane = self.lane(home.executor()).cloned();
        let Some(real) = &mut self.opens[at] else { return Err(format!("output{at} is lost")) };
        let (expected, got, written) = match (what, lane) {
            (Write::Each(_) | Write::Truncate(_), Some(lane)) => {
                (Ok(()), real.fill(&lane, token), filled(token, bytes))
            }
            (Write::Slice(_), _) => (Ok(()), real.write(what, token).map(drop), pattern(token, 0, bytes)),
            (Write::Reserve(_), _) => {
                let mismatch = Answer::LengthMismatch { expected: len, actual: len + 1 };
                (Err(mismatch), real.write(what, token).map(drop), Vec::new())
            }
            _ => (home.check_host(), real.write(what, token).map(drop), Vec::new()),
        };
        self.compare(expected, got)?;
        self.report.meet("write on a device");
        if let Kind::Fixed { bytes } = &mut self.model.opens[at].kind {
            for (byte, value) in bytes.iter_mut().zip(written) {
                *byte = Some(value);
            }
        }
        Ok(())
    }

    /// A device fills host-coherent room, where the way to its stream is there.
    fn fill_shared(&mut self, at: usize, token: u64) -> Checked<bool> {
        let call = self.model.opens[at].call;
        let executor = self.model.home_of(call).executor();
        let lane = self.lane(executor).cloned();
        let (Some(executor), Some(lane)) = (executor, lane) else { return Ok(false) };
        let Some(real) = &mut self.opens[at] else { return Err(format!("output{at} is lost")) };
        let got = real.fill(&lane, token);
        self.compare(Ok(()), got)?;
        self.model.opens[at].by_device = true;
        self.shared_with(call, Some(executor));
        if let Kind::Fixed { bytes } = &mut self.model.opens[at].kind {
            *bytes = filled(token, bytes.len()).into_iter().map(Some).collect();
        }
        Ok(true)
    }

    fn real_open(&self, at: usize) -> Checked<&dyn AnyOpen> {
        self.opens[at].as_deref().ok_or_else(|| format!("output{at} is lost"))
    }

    fn wrote_fixed(
        &mut self,
        at: usize,
        what: Write,
        token: u64,
        got: Result<Option<usize>, Error>,
    ) -> Checked {
        let len = self.real_open(at)?.len();
        let size = self.model.opens[at].of.size();
        let (expected, written) = match what {
            Write::Slice(_) | Write::Each(_) | Write::Huge | Write::Truncate(_) => (Ok(Some(len)), len),
            Write::Iter(count) => (Ok(Some(len.min(count.into()))), len.min(count.into())),
            Write::PanicAt(at) if usize::from(at) < len => (Ok(None), at.into()),
            Write::PanicAt(_) => (Ok(Some(len)), len),
            Write::Reserve(_) => (Err(Answer::LengthMismatch { expected: len, actual: len + 1 }), 0),
        };
        if let Some(answer) = self.compare(expected.clone().map(drop), got)?
            && Ok(answer) != expected
        {
            return Err(format!("{answer:?} values written, expected {expected:?}"));
        }
        let mut values = pattern(token, 0, written * size);
        if matches!(what, Write::Truncate(_)) {
            values = pattern(token, 0, size).repeat(written);
        }
        if let Kind::Fixed { bytes } = &mut self.model.opens[at].kind {
            for (byte, value) in bytes.iter_mut().zip(values) {
                *byte = Some(value);
            }
        }
        let now = self.real_open(at)?.bytes().map_err(|error| error.to_string())?;
        match &self.model.opens[at].kind {
            Kind::Fixed { bytes } => check_bytes("an open output", bytes, &now),
            _ => Ok(()),
        }
    }

    fn wrote_writer(
        &mut self,
        at: usize,
        what: Write,
        token: u64,
        room_before: usize,
        got: Result<Option<usize>, Error>,
    ) -> Checked {
        let open = &self.model.opens[at];
        let (of, call) = (open.of, open.call);
        let Kind::Writer { bytes: before, len: len_before } = open.kind.clone() else { return Ok(()) };
        let len = self.real_open(at)?.len();
        // How many values it would write, how many it asks room for at once, and whether a panic ends it.
        let (more, at_once, panics) = match what {
            Write::Slice(count) => (usize::from(count), usize::from(count), false),
            Write::Iter(count) | Write::Each(count) => (count.into(), 0, false),
            Write::PanicAt(count) => (count.into(), usize::from(count) + 1, true),
            Write::Reserve(count) => (0, count.into(), false),
            Write::Truncate(_) | Write::Huge => (0, 0, false),
        };
        let size = of.size();
        let settings = self.model.arenas[self.model.calls[call].arena].settings;
        if !matches!(what, Write::Truncate(_)) {
            self.model.arena_of(call).need.follow();
        }
        let refused = got.as_ref().err().map(answer);
        let expected = match (what, refused) {
            (Write::Huge, _) if size != 0 || len_before != 0 => Err(Answer::SizeOverflow),
            (_, Some(Answer::OverLimit { requested, reserved, limit })) if limit == settings.byte_limit => {
                // The value that found no room, or all that was asked for at once.
                let total = if at_once == 0 { len + 1 } else { len_before + at_once };
                let least = Need::least_request(&settings, room(&settings, total * size, of.align()));
                if requested != least || reserved + requested <= limit || total * size <= room_before {
                    return Err(format!("refused {requested} bytes with {reserved} of {limit} reserved"));
                }
                Err(Answer::OverLimit { requested, reserved, limit })
            }
            _ => Ok(()),
        };
        let done = expected.is_ok();
        if let Some(answer) = self.compare(expected, got)?
            && answer.is_none() != panics
        {
            return Err(format!("panicked: {}, expected {panics}", answer.is_none()));
        }
        let (least, most) = match what {
            Write::Truncate(keep) => (len_before.min(keep.into()), len_before.min(keep.into())),
            _ if done => (len_before + more, len_before + more),
            _ if at_once != 0 => (len_before, len_before),
            _ => (len_before, (len_before + more).saturating_sub(1).max(len_before)),
        };
        if !(least..=most).contains(&len) {
            return Err(format!("{len} values, expected {least} to {most}"));
        }
        let mut bytes = before;
        bytes.extend(pattern(token, 0, more * size));
        bytes.truncate(len * size);
        let now = self.real_open(at)?.bytes().map_err(|error| error.to_string())?;
        let known: Vec<_> = bytes.iter().copied().map(Some).collect();
        check_bytes("a writer", &known, &now)?;
        self.model.opens[at].kind = Kind::Writer { bytes, len };
        self.writer_moved(at)
    }

    /// A writer may have moved: nobody else may be where it is now.
    pub(super) fn writer_moved(&mut self, at: usize) -> Checked {
        let real = self.real_open(at)?;
        let (start, bytes) = (real.address(), real.room());
        let (call, of, name) = (self.model.opens[at].call, self.model.opens[at].of, format!("output{at}"));
        self.model.opens[at].address = start;
        self.model.arena_of(call).live.retain(|(_, whose)| *whose != name);
        if bytes == 0 {
            return Ok(());
        }
        self.check_place(&(start..start + bytes), of, self.model.calls[call].arena)?;
        let arena = self.model.arena_of(call);
        arena.live.push((start..start + bytes, name));
        arena.used_before.push(start..start + bytes);
        Ok(())
    }

    fn wrote_tape(
        &mut self,
        at: usize,
        what: Write,
        token: u64,
        got: Result<Option<usize>, Error>,
    ) -> Checked {
        let call = self.model.opens[at].call;
        let Kind::Tape { mut items, mut parts } = self.model.opens[at].kind.clone() else { return Ok(()) };
        let arena = self.model.arena_of(call);
        let limit = arena.settings.byte_limit;
        arena.need.follow();
        let expected = match got.as_ref().err().map(answer) {
            Some(Answer::OverLimit { requested, reserved, limit: said })
                if said == limit && reserved + requested > limit =>
            {
                Err(Answer::OverLimit { requested, reserved, limit })
            }
            _ => Ok(()),
        };
        let done = self.compare(expected, got)?.is_some();
        let (part, ends) = match what {
            Write::Slice(len) => (usize::from(len), true),
            Write::Iter(len) => (len.into(), true),
            Write::Each(len) => (len.into(), false),
            Write::PanicAt(_) | Write::Huge | Write::Reserve(_) => (0, true),
            Write::Truncate(_) => (0, false),
        };
        let (len, total) = (self.real_open(at)?.len(), self.real_open(at)?.room());
        let written: usize = items.iter().map(Vec::len).sum::<usize>() + parts.len();
        // A part that was written before its item's end was refused stays.
        let part_stays = matches!(what, Write::Iter(_)) && total == written + part;
        if done || part_stays {
            parts.extend(pattern(token, 0, part));
        }
        if done && ends {
            items.push(std::mem::take(&mut parts));
        }
        let written: usize = items.iter().map(Vec::len).sum::<usize>() + parts.len();
        if (len, total) != (items.len(), written) {
            return Err(format!("{len} items and {total} bytes, expected {} and {written}", items.len()));
        }
        self.model.opens[at].kind = Kind::Tape { items, parts };
        Ok(())
    }
}
