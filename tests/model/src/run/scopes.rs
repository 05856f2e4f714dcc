//! Scratch scopes: the program goes on inside of them.

use device_arena::{Call, Error, Scratch};

use super::real::{scripted_panic, until_panic};
use super::{Checked, Runner};
use crate::model::{Answer, room};
use crate::program::{Op, Type};
use crate::value::{Value, bytes_of_mut, pattern, with_type};

/// How deep a program may nest.
const DEEPEST: usize = 12;

/// What scratch room was taken, and what it showed.
pub(crate) struct Taken {
    address: usize,
    before: Vec<u8>,
}

/// The scratch scopes that are open, the innermost first.
pub(crate) trait Chain {
    /// A call whose scope is open.
    fn call(&self, id: usize) -> Option<&Call>;
    /// The call of the innermost scope.
    fn top(&self) -> Option<usize>;
    /// Takes room in the innermost scope and fills it under `token`.
    fn take(&mut self, of: Type, len: usize, token: u64) -> Option<Result<Taken, Error>>;
    /// Takes room for a device in the innermost scope: its address.
    fn take_on_device(&mut self, of: Type, len: usize) -> Option<Result<usize, Error>>;
    /// Runs `work` in a scope within the innermost; says whether its room was left alone.
    fn nest(&mut self, work: &mut dyn FnMut(&mut dyn Chain)) -> Checked;
}

/// Outside of every scope.
pub(super) struct Outside;

impl Chain for Outside {
    fn call(&self, _id: usize) -> Option<&Call> {
        None
    }

    fn top(&self) -> Option<usize> {
        None
    }

    fn take(&mut self, _of: Type, _len: usize, _token: u64) -> Option<Result<Taken, Error>> {
        None
    }

    fn take_on_device(&mut self, _of: Type, _len: usize) -> Option<Result<usize, Error>> {
        None
    }

    fn nest(&mut self, _work: &mut dyn FnMut(&mut dyn Chain)) -> Checked {
        Ok(())
    }
}

struct Scope<'f, 's> {
    id: usize,
    scratch: &'f mut Scratch<'s>,
    taken: Vec<(&'s mut [u8], u64)>,
    parent: &'f mut dyn Chain,
}

impl Scope<'_, '_> {
    /// What was written to the scope's room is there still.
    fn check(&self) -> Checked {
        for (room, token) in &self.taken {
            if **room != pattern(*token, 0, room.len()) {
                return Err(format!("scratch of call{} at {:p} was written by somebody else", self.id, room));
            }
        }
        Ok(())
    }
}

impl Chain for Scope<'_, '_> {
    fn call(&self, id: usize) -> Option<&Call> {
        if id == self.id { Some(self.scratch.call()) } else { self.parent.call(id) }
    }

    fn top(&self) -> Option<usize> {
        Some(self.id)
    }

    fn take(&mut self, of: Type, len: usize, token: u64) -> Option<Result<Taken, Error>> {
        fn take<'s, T: Value>(scratch: &mut Scratch<'s>, len: usize) -> Result<&'s mut [u8], Error> {
            Ok(bytes_of_mut(scratch.take::<T>(len)?))
        }
        let room = with_type!(of, T => take::<T>(self.scratch, len));
        Some(room.map(|room| {
            let (address, before) = (room.as_ptr().addr(), room.to_vec());
            room.copy_from_slice(&pattern(token, 0, room.len()));
            self.taken.push((room, token));
            Taken { address, before }
        }))
    }

    fn take_on_device(&mut self, of: Type, len: usize) -> Option<Result<usize, Error>> {
        Some(with_type!(of, T => self.scratch.take_on_device::<T>(len).map(|address| address.addr())))
    }

    fn nest(&mut self, work: &mut dyn FnMut(&mut dyn Chain)) -> Checked {
        let Self { id, scratch, parent, .. } = self;
        scratch.scratch(|scratch| {
            let mut scope = Scope { id: *id, scratch, taken: Vec::new(), parent: &mut **parent };
            work(&mut scope);
            scope.check()
        })
    }
}

impl Runner<'_> {
    /// A call of the program, wherever it is.
    pub(super) fn call<'c>(&'c self, id: usize, chain: &'c dyn Chain) -> Checked<&'c Call> {
        let call = self.calls[id].as_ref().or_else(|| chain.call(id));
        call.ok_or_else(|| format!("call{id} is lost"))
    }

    /// Whether the program may nest deeper.
    pub(super) fn may_nest(&self) -> bool {
        self.depth < DEEPEST
    }

    /// Runs a part of the program inside of something that `what` names.
    pub(super) fn run_inside(&mut self, what: &str, inside: &[Op], chain: &mut dyn Chain) -> Checked {
        self.say(format_args!("{what} {{"));
        self.depth += 1;
        let outcome = self.settle().and_then(|()| self.run_ops(inside, chain));
        self.depth -= 1;
        if outcome.is_ok() {
            self.say("}");
        }
        outcome
    }

    pub(super) fn scratch(
        &mut self,
        call: u8,
        inside: &[Op],
        panics: bool,
        chain: &mut dyn Chain,
    ) -> Checked<usize> {
        let Some(id) = self.model.pick_call(call, false).filter(|_| self.may_nest()) else { return Ok(0) };
        let nested = self.model.calls[id].scopes != 0;
        if nested && chain.top() != Some(id) {
            return Ok(0);
        }
        let (open, taken) = {
            let arena = self.model.arena_of(id);
            (arena.scratch.len(), arena.need.scratch)
        };
        self.model.calls[id].scopes += 1;
        let what = format!("call{id}.scratch{}", if panics { ", which panics" } else { "" });
        let mut outcome = Ok(());
        if nested {
            let mut work = |chain: &mut dyn Chain| {
                outcome = self.run_inside(&what, inside, chain);
                if panics && outcome.is_ok() {
                    scripted_panic();
                }
            };
            let left_alone = until_panic(|| chain.nest(&mut work));
            outcome = outcome.and(left_alone.unwrap_or(Ok(())));
        } else {
            let Some(mut real) = self.calls[id].take() else { return Err(format!("call{id} is lost")) };
            let _ = until_panic(|| {
                real.scratch(|scratch| {
                    let mut scope = Scope { id, scratch, taken: Vec::new(), parent: &mut *chain };
                    outcome = self.run_inside(&what, inside, &mut scope);
                    if outcome.is_ok() {
                        outcome = scope.check();
                    }
                    if panics && outcome.is_ok() {
                        scripted_panic();
                    }
                });
            });
            self.calls[id] = Some(real);
        }
        self.report.meet(if panics { "scratch scope that panicked" } else { "scratch scope" });
        self.model.calls[id].scopes -= 1;
        let arena = self.model.arena_of(id);
        let ended = arena.scratch.drain(open..);
        arena.used_before.extend(ended);
        arena.need.end_scratch(taken);
        outcome.map(|()| inside.len())
    }

    pub(super) fn take_scratch(&mut self, of: Type, len: u16, chain: &mut dyn Chain) -> Checked {
        let Some(id) = chain.top() else { return Ok(()) };
        let (len, token) = (super::opens::length(of, len), self.fresh_token());
        self.say(format_args!("call{id}: take scratch of {len} {of:?}"));
        let home = self.model.home_of(id);
        self.quiesce(self.model.calls[id].arena)?;
        self.before_growth(self.model.calls[id].arena);
        if home.is_on_device() && token.is_multiple_of(4) {
            let Some(got) = chain.take(of, len, token) else { return Err("a scope is lost".into()) };
            return self.compare(home.check_host(), got).map(drop);
        }
        let got = if home.is_on_device() {
            let taken = chain.take_on_device(of, len);
            taken.map(|got| got.map(|address| Taken { address, before: Vec::new() }))
        } else {
            chain.take(of, len, token)
        };
        let Some(got) = got else { return Err("a scope is lost".into()) };
        let arena = self.model.arena_of(id);
        let largest = arena.settings.block;
        if of.align() > largest {
            let refused = Answer::Alignment { alignment: of.align(), largest };
            return self.compare(Err(refused), got).map(drop);
        }
        let (bytes, asked) = (len * of.size(), room(&arena.settings, len * of.size(), of.align()));
        let at = self.model.calls[id].arena;
        let Some(taken) = self.compare_room(at, asked, got)? else { return Ok(()) };
        if bytes == 0 {
            return Ok(());
        }
        let range = taken.address..taken.address + bytes;
        self.check_place(&range, of, at)?;
        let arena = self.model.arena_of(id);
        let expected: Vec<_> = range.clone().map(|address| arena.unwritten(address)).collect();
        arena.need.take_scratch(asked);
        arena.scratch.push(range);
        if home.is_on_device() {
            return self.fill_scratch(home.executor(), taken.address, bytes, token);
        }
        super::views::check_bytes("unwritten scratch", &expected, &taken.before)
    }
}
