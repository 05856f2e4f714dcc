//! Arenas, executors and calls.

use std::time::Duration;

use device_arena::{Arena, ArenaDescription, ArenaOptions, Error, Growth, Placement, Residency, Scrub};

use super::real::on_thread;
use super::{Checked, Runner};
use crate::lane::Lane;
use crate::model::{self, Answer, Change, Home, Need, Phase, Settings};
use crate::program::{self, Align, Begin, First, Limit, Options, Place};
use crate::subject::Seat;

/// The least alignment of outputs in host pages, and that of a block.
const HOST_ALIGNMENTS: (usize, usize) = (64, 4096);

/// The most things of a kind that a program has at a time.
const MOST: usize = 4;

fn settings(options: Options, block: usize) -> Settings {
    let alignment = match options.align {
        // On a device, one of those that are too large.
        Align::Power(power) if block < 4096 => 1 << (power % 10),
        Align::Power(power) => 1 << (power % 13),
        Align::Odd(bytes) => bytes.into(),
    };
    Settings {
        alignment,
        block,
        first_capacity: match options.first {
            First::Default => 64 << 10,
            First::Small(count) => usize::from(count) * 512,
        },
        byte_limit: match options.limit {
            Limit::None => usize::MAX,
            Limit::Small(count) => usize::from(count) * 2048,
        },
        exact_growth: options.growth == program::Growth::Exact,
        scrub: match options.scrub {
            program::Scrub::Never => None,
            program::Scrub::Zero => Some(0),
            program::Scrub::Poison(value) => Some(value),
        },
    }
}

fn arena_options(options: Options, settings: &Settings) -> ArenaOptions {
    ArenaOptions::new()
        .alignment(settings.alignment)
        .first_capacity(settings.first_capacity)
        .byte_limit(settings.byte_limit)
        .growth(match options.growth {
            program::Growth::Geometric => Growth::default(),
            program::Growth::Capped => Growth::Geometric { max_step: 4096 },
            program::Growth::Exact => Growth::Exact,
        })
        .scrub(match options.scrub {
            program::Scrub::Never => Scrub::Never,
            program::Scrub::Zero => Scrub::Zero,
            program::Scrub::Poison(value) => Scrub::Poison(value),
        })
}

/// What the crate says of an arena there.
pub(super) fn description(home: Home) -> ArenaDescription {
    match home {
        Home::Device { ordinal, .. } => ArenaDescription {
            residency: Residency::Vram,
            device: i32::try_from(ordinal).unwrap_or(i32::MAX),
        },
        _ => ArenaDescription { residency: Residency::Ram, device: -1 },
    }
}

impl Runner<'_> {
    pub(super) fn new_executor(&mut self) -> Checked {
        if self.model.executors.iter().filter(|alive| **alive).count() >= MOST {
            return Ok(());
        }
        let seat = self.subject.executor(self.executors.len());
        let Seat { executor, lane } = seat.map_err(|error| format!("no executor: {error}"))?;
        let (name, ordinal) = (self.subject.name(), executor.ordinal());
        self.say(format_args!("executor{} = {name}, ordinal {ordinal}", self.executors.len()));
        self.executors.push(Some(executor));
        self.faint.push(lane.as_ref().map(Lane::faint));
        self.lanes.push(lane);
        self.model.executors.push(true);
        self.model.works.add_executor();
        Ok(())
    }

    pub(super) fn drop_executor(&mut self, executor: u8) -> Checked {
        let Some(at) = self.model.pick_executor(executor) else { return Ok(()) };
        self.say(format_args!("drop executor{at}"));
        let all = self.model.works.all_of(at);
        self.open(&all);
        for arena in 0..self.model.arenas.len() {
            if self.model.arenas[arena].home.executor() == Some(at) {
                self.quiesce(arena)?;
            }
        }
        self.model.executors[at] = false;
        // Dropping waits for what is queued, unless an arena of a device keeps the executor alive.
        (self.executors[at], self.lanes[at]) = (None, None);
        self.pump()
    }

    pub(super) fn new_arena(&mut self, options: Options, place: Place) -> Checked {
        if self.model.arenas.iter().filter(|arena| arena.alive).count() >= MOST {
            return Ok(());
        }
        let executor = match place {
            Place::Host => None,
            Place::Executor(index) => self.model.pick_executor(index),
        };
        let home = self.home(executor);
        let (least, largest) = if home == Home::Host { HOST_ALIGNMENTS } else { self.subject.alignments() };
        let mut settings = settings(options, largest);
        let at = self.arenas.len();
        let place = executor.map_or("the host".to_owned(), |executor| format!("executor{executor}"));
        self.say(format_args!("arena{at} = on {place}, {options:?}"));
        let wanted = arena_options(options, &settings);
        let placement = self.subject.placement();
        let got = match executor.and_then(|executor| self.executors[executor].as_ref()) {
            // A device's executor has its arenas on the device, unless something else is said.
            Some(executor) if wanted == ArenaOptions::new() && placement != Some(Placement::HostCoherent) => {
                Ok(Arena::new(executor))
            }
            Some(executor) => placement.map_or(wanted, |it| wanted.placement(it)).build(executor),
            None if wanted == ArenaOptions::new() => Ok(Arena::host()),
            None => wanted.build_host(),
        };
        let alignment = settings.alignment;
        let fits = alignment.is_power_of_two() && alignment <= largest;
        let expected = if fits { Ok(()) } else { Err(Answer::Alignment { alignment, largest }) };
        let Some(arena) = self.compare(expected, got)? else { return Ok(()) };
        settings.alignment = alignment.max(least);
        if arena.alignment() != settings.alignment {
            return Err(format!("alignment {}, expected {}", arena.alignment(), settings.alignment));
        }
        if arena.describe() != description(home) {
            return Err(format!("described as {:?}", arena.describe()));
        }
        self.arenas.push(Some(arena));
        self.model.arenas.push(model::Arena::new(settings, home));
        Ok(())
    }

    /// Where an arena of an executor is.
    fn home(&self, executor: Option<usize>) -> Home {
        let real = executor.and_then(|executor| self.executors[executor].as_ref());
        match (executor, real, self.subject.placement()) {
            (Some(executor), Some(_), Some(Placement::HostCoherent)) => Home::Coherent { executor },
            (Some(executor), Some(real), Some(_)) => Home::Device { executor, ordinal: real.ordinal() },
            _ => Home::Host,
        }
    }

    /// The executor that a program picks for an arena. On devices one that serves it, unless the pick is for another.
    pub(super) fn pick_executor_for(&self, arena: usize, index: u8) -> Option<usize> {
        if !self.subject.is_device() || index % 8 == 7 {
            return self.model.pick_executor(index);
        }
        let own = self.model.arenas[arena].home.executor();
        own.filter(|own| self.model.executors[*own])
    }

    pub(super) fn drop_arena(&mut self, arena: u8, elsewhere: bool) -> Checked {
        let Some(at) = self.model.pick_arena(arena) else { return Ok(()) };
        self.drop_arena_at(at, elsewhere)
    }

    pub(super) fn drop_arena_at(&mut self, at: usize, elsewhere: bool) -> Checked {
        let Some(arena) = self.arenas[at].take() else { return Ok(()) };
        self.say(format_args!("drop arena{at}{}", if elsewhere { " elsewhere" } else { "" }));
        self.open_before_drop(at);
        if self.model.arenas[at].holder().is_none() || self.work_of(at).is_some() {
            self.before_free(at);
        }
        on_thread(elsewhere, move || drop(arena));
        let busy = self.model.arenas[at].holder().is_some();
        self.report.meet(if busy { "arena dropped while held" } else { "arena dropped" });
        self.model.arenas[at].alive = false;
        self.model.arenas[at].free_if_ownerless();
        self.pump()
    }

    pub(super) fn close(&mut self, arena: u8) -> Checked {
        let Some(at) = self.model.pick_arena(arena) else { return Ok(()) };
        let Some(arena) = self.arenas[at].take() else { return Err(format!("arena{at} is lost")) };
        self.say(format_args!("close arena{at}"));
        let waits_for = self.work_of(at);
        let all = waits_for.map(|work| self.model.works.up_to(work)).unwrap_or_default();
        self.open(&all);
        self.before_free(at);
        let got = match arena.close() {
            Ok(bytes) => Ok(bytes),
            Err(refused) => {
                self.arenas[at] = Some(refused.value);
                Err(refused.error)
            }
        };
        self.pump()?;
        let expected = self.model.arenas[at].refuse_contended();
        let Some(freed) = self.compare(expected, got)? else { return Ok(()) };
        let model = &mut self.model.arenas[at];
        // Work that closing waited for may have taken more.
        if freed != model.need.reserved() && waits_for.is_none() {
            return Err(format!("{freed} bytes freed of {}", model.need.reserved()));
        }
        model.advance();
        model.readers_left.clear();
        model.alive = false;
        self.report.meet("arena closed");
        Ok(())
    }

    pub(super) fn trim(&mut self, arena: u8) -> Checked {
        let Some(at) = self.model.pick_arena(arena) else { return Ok(()) };
        self.say(format_args!("arena{at}.trim"));
        if self.model.arenas[at].holder().is_none() {
            self.before_free(at);
            self.begin_may_share(at);
        }
        let Some(arena) = &self.arenas[at] else { return Err(format!("arena{at} is lost")) };
        let got = arena.trim();
        let expected = self.model.arenas[at].refuse_contended();
        let Some(freed) = self.compare(expected, got)? else { return Ok(()) };
        let model = &mut self.model.arenas[at];
        if freed != model.need.reserved() {
            return Err(format!("{freed} bytes freed of {}", model.need.reserved()));
        }
        model.advance();
        model.readers_left.clear();
        model.need.trim();
        self.report.meet(if freed == 0 { "trim of nothing" } else { "trim" });
        Ok(())
    }

    pub(super) fn reserve(&mut self, arena: u8, bytes: u16, huge: bool) -> Checked {
        let Some(at) = self.model.pick_arena(arena) else { return Ok(()) };
        let bytes = if huge { usize::MAX - 5 } else { usize::from(bytes) };
        self.say(format_args!("arena{at}.reserve {bytes}"));
        let Some(arena) = &self.arenas[at] else { return Err(format!("arena{at} is lost")) };
        let got = arena.reserve(bytes);
        let model = &mut self.model.arenas[at];
        let mut expected = model.refuse_contended();
        if expected.is_ok() && huge {
            expected = Err(Answer::SizeOverflow);
        } else if expected.is_ok()
            && matches!(got, Err(Error::OverLimit { .. }))
            && model.need.may_refuse_reserve(&model.settings, bytes)
        {
            let (reserved, limit) = (model.need.reserved(), model.settings.byte_limit);
            let requested = Need::least_request(&model.settings, bytes);
            expected = Err(Answer::OverLimit { requested, reserved, limit });
        }
        if self.compare(expected, got)?.is_some() {
            self.model.arenas[at].need.change = Change::Reserved { bytes };
            self.report.meet("reserve");
        }
        Ok(())
    }

    pub(super) fn begin(&mut self, arena: u8, how: Begin) -> Checked {
        let Some(at) = self.model.pick_arena(arena) else { return Ok(()) };
        self.say(format_args!("call{} = begin arena{at}, {how:?}", self.model.calls.len()));
        let executor = match how {
            Begin::Arena | Begin::Timeout(_) => None,
            Begin::Executor(index) | Begin::ExecutorTimeout(index) => self.pick_executor_for(at, index),
        };
        let serves = executor.map_or(Ok(()), |executor| self.model.serves(at, executor));
        if serves.is_ok() {
            self.before_begin(at);
        }
        let Some(arena) = &self.arenas[at] else { return Err(format!("arena{at} is lost")) };
        let executor = executor.and_then(|executor| self.executors[executor].as_ref());
        let got = match (how, executor) {
            (Begin::Timeout(millis), _) => arena.begin_timeout(Duration::from_millis((millis % 2).into())),
            (Begin::Executor(_), Some(executor)) => executor.begin(arena),
            (Begin::ExecutorTimeout(_), Some(executor)) => executor.begin_timeout(arena, Duration::ZERO),
            (Begin::ExecutorTimeout(_), None) => arena.begin_timeout(Duration::ZERO),
            (Begin::Arena | Begin::Executor(_), _) => arena.begin(),
        };
        self.begun(at, serves, got)
    }

    /// A call that has begun, or was refused: by the arena for the executor that asks, or for who holds it.
    pub(super) fn begun(
        &mut self,
        at: usize,
        serves: Result<(), Answer>,
        got: Result<device_arena::Call, Error>,
    ) -> Checked {
        if serves.is_ok() && self.model.arenas[at].holder().is_none() {
            self.begin_may_share(at);
        }
        let expected = serves.and_then(|()| self.model.begin(at, Phase::Running));
        let Some(call) = self.compare(expected.clone().map(drop), got)? else { return Ok(()) };
        let (Ok(id), got) = (expected, call.generation()) else { return Ok(()) };
        let generation = self.model.calls[id].generation;
        self.note(&format!("generation {got}"));
        self.report.meet("begin");
        if got != generation {
            return Err(format!("generation {got}, expected {generation}"));
        }
        if call.describe() != description(self.model.arenas[at].home) {
            return Err(format!("described as {:?}", call.describe()));
        }
        self.keep_call(id, call);
        Ok(())
    }

    /// Puts a call in its place.
    pub(super) fn keep_call(&mut self, id: usize, call: device_arena::Call) {
        self.calls.resize_with(id + 1, || None);
        self.calls[id] = Some(call);
    }

    pub(super) fn end_call(&mut self, call: u8, elsewhere: bool, abandoned: bool) -> Checked {
        let Some(id) = self.model.pick_call(call, true) else { return Ok(()) };
        let Some(real) = self.calls[id].take() else { return Err(format!("call{id} is lost")) };
        let what = if abandoned { "drop" } else { "finish" };
        self.say(format_args!("{what} call{id}{}", if elsewhere { " elsewhere" } else { "" }));
        let outlived = self.model.calls[id].open != 0;
        self.before_last_owner(self.model.calls[id].arena);
        let got = on_thread(elsewhere, move || {
            if abandoned {
                drop(real);
                return Ok(());
            }
            real.finish()
        });
        self.compare(Ok(()), got)?;
        self.model.end(id, abandoned);
        self.report.meet(match (abandoned, outlived) {
            (false, false) => "finish",
            (false, true) => "finish with outputs open",
            (true, false) => "abandon",
            (true, true) => "abandon with outputs open",
        });
        Ok(())
    }
}
