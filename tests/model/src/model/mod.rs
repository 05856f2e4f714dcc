//! The model: a pure account of what a program has made, and of what each use must answer.

mod answer;
mod arena;
mod need;
mod work;

use std::ops::Range;

pub(crate) use self::answer::{Answer, Holder, Word};
pub(crate) use self::arena::{Arena, DeviceWork, Home, Phase, Settings};
pub use self::arena::{LAST_GENERATION, MAX_OUTPUTS, MAX_READERS};
pub(crate) use self::need::{Change, Need, Seen, room};
pub(crate) use self::work::{Event, Task, Works};
use crate::program::Type;

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) arena: usize,
    pub(crate) generation: u64,
    era: u32,
    /// The program has it.
    pub(crate) alive: bool,
    /// Scratch scopes that are open.
    pub(crate) scopes: u32,
    /// Outputs that it opened, and how many of them are open still.
    pub(crate) opened: u32,
    pub(crate) open: u32,
    /// Outputs that were refused. The call may have counted them.
    pub(crate) refused: u32,
    over: bool,
}

/// What an open output is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Of a fixed length; what is known of its bytes.
    Fixed { bytes: Vec<Option<u8>> },
    /// A writer, and what was written.
    Writer { bytes: Vec<u8>, len: usize },
    /// A tape: its items, and the parts of the next.
    Tape { items: Vec<Vec<u8>>, parts: Vec<u8> },
}

/// An open output.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) call: usize,
    pub(crate) of: Type,
    pub(crate) kind: Kind,
    pub(crate) address: usize,
    /// Its device pointer was taken.
    pub(crate) by_device: bool,
    pub(crate) alive: bool,
}

/// A view.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) call: usize,
    pub(crate) of: Type,
    pub(crate) bytes: Vec<Option<u8>>,
    /// Where its first value is, where the program was told.
    pub(crate) address: Option<usize>,
    /// Its output's device pointer was taken.
    pub(crate) by_device: bool,
    pub(crate) alive: bool,
}

/// A published tape.
#[derive(Clone, Debug)]
pub(crate) struct Tape {
    pub(crate) call: usize,
    pub(crate) items: Vec<Vec<u8>>,
    pub(crate) alive: bool,
}

/// An export.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    pub(crate) view: View,
    pub(crate) alive: bool,
}

/// Everything that a program has made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) executors: Vec<bool>,
    /// They are a device's.
    pub(crate) on_device: bool,
    pub(crate) arenas: Vec<Arena>,
    pub(crate) calls: Vec<Call>,
    pub(crate) opens: Vec<Open>,
    pub(crate) views: Vec<View>,
    pub(crate) tapes: Vec<Tape>,
    pub(crate) exports: Vec<Export>,
    pub(crate) works: Works,
}

/// The `index`th of those that qualify, modulo how many there are.
pub(crate) fn pick(qualify: impl Iterator<Item = bool>, index: u8) -> Option<usize> {
    let all: Vec<usize> = qualify.enumerate().filter_map(|(at, yes)| yes.then_some(at)).collect();
    all.get(usize::from(index) % all.len().max(1)).copied()
}

impl Model {
    pub(crate) fn pick_arena(&self, index: u8) -> Option<usize> {
        pick(self.arenas.iter().map(|arena| arena.alive), index)
    }

    pub(crate) fn pick_executor(&self, index: u8) -> Option<usize> {
        pick(self.executors.iter().copied(), index)
    }

    /// A call that the program has; one without open scratch scopes if it must be `whole`.
    pub(crate) fn pick_call(&self, index: u8, whole: bool) -> Option<usize> {
        pick(self.calls.iter().map(|call| call.alive && !(whole && call.scopes != 0)), index)
    }

    pub(crate) fn pick_open(&self, index: u8, fixed: bool) -> Option<usize> {
        let fits = |open: &Open| !fixed || matches!(open.kind, Kind::Fixed { .. });
        pick(self.opens.iter().map(|open| open.alive && fits(open)), index)
    }

    pub(crate) fn pick_view(&self, index: u8) -> Option<usize> {
        pick(self.views.iter().map(|view| view.alive), index)
    }

    pub(crate) fn pick_tape(&self, index: u8) -> Option<usize> {
        pick(self.tapes.iter().map(|tape| tape.alive), index)
    }

    pub(crate) fn pick_export(&self, index: u8) -> Option<usize> {
        pick(self.exports.iter().map(|export| export.alive), index)
    }

    /// Work whose handle is there.
    pub(crate) fn pick_work(&self, index: u8) -> Option<usize> {
        pick(self.works.list.iter().map(|work| work.alive), index)
    }

    /// The arena of a call.
    pub(crate) fn arena_of(&mut self, call: usize) -> &mut Arena {
        &mut self.arenas[self.calls[call].arena]
    }

    /// Where the memory of a call is.
    pub(crate) fn home_of(&self, call: usize) -> Home {
        self.arenas[self.calls[call].arena].home
    }

    /// Whether an arena serves an executor: host pages those of the host, a device's memory its own.
    pub(crate) fn serves(&self, arena: usize, executor: usize) -> Result<(), Answer> {
        let serves = match self.arenas[arena].home.executor() {
            None => !self.on_device,
            Some(own) => own == executor,
        };
        if serves { Ok(()) } else { Err(Answer::WrongExecutor) }
    }

    /// The queue of an executor waits for what is in another's now.
    pub(crate) fn order_after_queue(&mut self, executor: usize, other: usize) {
        if let Some(on) = self.works.last_of(other) {
            self.works.push(executor, Task::Wait { on }, None);
        }
    }

    /// A reader of an arena is gone whose work is in another queue: the arena's own waits for it from the next begin on, or
    /// at once where the host reaches the bytes too.
    pub(crate) fn leave_reader(&mut self, at: usize, reader: usize) {
        let Some(last) = self.works.last_of(reader) else { return };
        match self.arenas[at].home {
            Home::Coherent { executor } => {
                self.works.push(executor, Task::Wait { on: last }, None);
            }
            _ => self.arenas[at].readers_left.push(last),
        }
    }

    /// An arena's own queue waits for the readers that other queues have had.
    pub(crate) fn order_after_readers(&mut self, at: usize) {
        let left = std::mem::take(&mut self.arenas[at].readers_left);
        let Some(executor) = self.arenas[at].home.executor() else { return };
        for on in left {
            if !self.works.list[on].passed {
                self.works.push(executor, Task::Wait { on }, None);
            }
        }
    }

    /// Begins a call, or refuses to.
    pub(crate) fn begin(&mut self, at: usize, phase: Phase) -> Result<usize, Answer> {
        let arena = &mut self.arenas[at];
        arena.refuse_contended()?;
        arena.advance();
        arena.current = Some(self.calls.len());
        arena.phase = phase;
        arena.rewinds += 1;
        arena.need.begin();
        self.order_after_readers(at);
        let arena = &self.arenas[at];
        let (generation, era) = (arena.generation, arena.era);
        let alive = phase == Phase::Running;
        self.calls.push(Call {
            arena: at,
            generation,
            era,
            alive,
            scopes: 0,
            opened: 0,
            open: 0,
            refused: 0,
            over: false,
        });
        Ok(self.calls.len() - 1)
    }

    /// Ends a call, its open outputs excepted.
    pub(crate) fn end(&mut self, call: usize, abandoned: bool) {
        let open = self.calls[call].open;
        (self.calls[call].over, self.calls[call].alive) = (true, false);
        let arena = self.arena_of(call);
        if abandoned {
            arena.generation += 1;
            arena.current = None;
        }
        arena.phase = if open == 0 { Phase::Idle } else { Phase::Ended };
        arena.free_if_ownerless();
    }

    /// One output of a call fewer is open.
    pub(crate) fn close_output(&mut self, call: usize) {
        self.calls[call].open -= 1;
        if self.calls[call].over && self.calls[call].open == 0 {
            let arena = self.arena_of(call);
            arena.phase = Phase::Idle;
            arena.free_if_ownerless();
        }
    }

    /// Counts `count` outputs that a call opened.
    pub(crate) fn count_outputs(&mut self, call: usize, count: u32) {
        self.calls[call].opened += count;
        self.calls[call].open += count;
    }

    /// Whether views of a call are stale; the arena dropped, or else rewound.
    pub(crate) fn stale(&self, call: usize) -> Option<bool> {
        let arena = &self.arenas[self.calls[call].arena];
        // What a view of an earlier era knows of its arena is that it has moved on.
        let dropped = !arena.alive && self.calls[call].era == arena.era;
        (dropped || arena.current != Some(call)).then_some(dropped)
    }

    /// Refuses the use of a stale view, which is counted.
    pub(crate) fn check_current(&mut self, call: usize) -> Result<(), Answer> {
        let Some(dropped) = self.stale(call) else { return Ok(()) };
        let generation = self.calls[call].generation;
        self.arena_of(call).refused_stale_reads += 1;
        Err(Answer::Stale { generation, dropped })
    }

    /// Whether `readers` more readers of a call's views are let in. They are not counted yet.
    pub(crate) fn check_read(&mut self, call: usize, readers: u32) -> Result<(), Answer> {
        self.check_current(call)?;
        let generation = self.calls[call].generation;
        let arena = self.arena_of(call);
        match arena.phase {
            Phase::Running | Phase::Deferred => Err(Answer::Pending { generation }),
            _ if arena.readers + readers > MAX_READERS => Err(Answer::TooManyReaders { limit: MAX_READERS }),
            Phase::Idle | Phase::Ended => Ok(()),
        }
    }

    /// Whether views of a call can't be read now, whoever asks.
    pub(crate) fn must_not_be_read(&self, call: usize) -> bool {
        let phase = self.arenas[self.calls[call].arena].phase;
        self.stale(call).is_some() || matches!(phase, Phase::Running | Phase::Deferred)
    }

    /// Counts readers.
    pub(crate) fn hold(&mut self, call: usize, readers: u32) {
        self.arena_of(call).readers += readers;
    }

    /// Uncounts readers.
    pub(crate) fn release(&mut self, call: usize, readers: u32) {
        let arena = self.arena_of(call);
        arena.readers -= readers;
        arena.free_if_ownerless();
    }

    /// Whether room at an address is nobody else's: of this call's outputs and scratch, and of every other arena.
    pub(crate) fn check_apart(&self, range: &Range<usize>) -> Result<(), String> {
        let clash = |other: &Range<usize>| range.start.max(other.start) < range.end.min(other.end);
        for (at, arena) in self.arenas.iter().enumerate() {
            if let Some((other, whose)) = arena.live.iter().find(|(other, _)| clash(other)) {
                return Err(format!("{range:x?} overlaps {other:x?} of {whose} in arena{at}"));
            }
            if let Some(other) = arena.scratch.iter().find(|other| clash(other)) {
                return Err(format!("{range:x?} overlaps scratch {other:x?} in arena{at}"));
            }
        }
        Ok(())
    }
}
