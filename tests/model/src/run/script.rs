//! Calls that are written down ahead of time: what deferred work and steady loops do.

use std::sync::Arc;

use device_arena::{Call, Error, PublishedTape};

use super::answers::{answer, word};
use super::opens::length;
use super::real::{self, AnyOpen, AnyView, Published};
use super::{Checked, Runner};
use crate::lane::Lane;
use crate::model::{Answer, Settings, Tape, View, room};
use crate::program::{Room, Step, Type};
use crate::value::{filled, pattern};

/// What one step takes of the tokens.
const TOKENS: u64 = 2;

/// What the steps have made: views, tapes, and the error that ended them.
#[derive(Default)]
pub(super) struct Done {
    pub(super) made: Vec<Made>,
    pub(super) error: Option<Error>,
    broken: Option<String>,
    /// Steps that succeeded.
    steps: usize,
}

impl Done {
    /// What they made, apart from how they went.
    pub(super) fn split(mut self) -> (Self, Self) {
        let made = std::mem::take(&mut self.made);
        let steps = self.steps;
        (self, Self { made, steps, ..Self::default() })
    }
}

pub(super) enum Made {
    View(Arc<dyn AnyView>),
    Tape(Arc<PublishedTape>),
}

impl Made {
    pub(super) fn of(published: Published) -> Self {
        match published {
            Published::View(view) => Self::View(view),
            Published::Tape(tape) => Self::Tape(tape),
        }
    }
}

fn item(token: u64, index: usize) -> Vec<u8> {
    pattern(token, index * 64, index * 7 % 50)
}

/// How outputs are filled.
pub(super) enum Way {
    /// The host writes them.
    Host,
    /// The host's values are copied to a device, which waits for its stream.
    Copied,
    /// A device fills them in the order of its stream.
    Queued(Lane),
}

/// The steps, on whatever thread this is. A device makes no writers and no tapes.
pub(super) fn perform(call: &mut Call, steps: &[Step], token: u64, way: &Way) -> Done {
    let mut done = Done::default();
    for (step, token) in steps.iter().zip((token..).step_by(TOKENS as usize)) {
        let outcome = match way {
            Way::Host => perform_step(call, *step, token, &mut done),
            _ => super::device::perform_step(call, *step, token, way, &mut done),
        };
        match outcome {
            Ok(()) => done.steps += 1,
            Err(error) => {
                done.error = Some(error);
                break;
            }
        }
    }
    done
}

fn perform_step(call: &mut Call, step: Step, token: u64, done: &mut Done) -> Result<(), Error> {
    match step {
        Step::Fixed(of, len) => {
            let len = if of == Type::Vast { 0 } else { length(of, len) };
            done.made.push(Made::of(real::output(call, of, len, Room::FromFn, token)?.publish()));
        }
        Step::Writers(rounds) => {
            let mut words = call.writer::<u32>()?;
            let mut bytes = call.writer::<u8>()?;
            for round in 0..usize::from(rounds % 32) {
                words.extend_from_slice(&crate::value::values(token, round * 5, 5))?;
                bytes.extend(crate::value::values::<u8>(token + 1, round * 9, 9))?;
            }
            done.made.push(Made::of((Box::new(words) as Box<dyn AnyOpen>).publish()));
            done.made.push(Made::of((Box::new(bytes) as Box<dyn AnyOpen>).publish()));
        }
        Step::Tape(items) => {
            let mut tape = call.tape_output()?;
            for index in 0..usize::from(items % 16) {
                tape.push(&item(token, index))?;
            }
            done.made.push(Made::Tape(Arc::new(tape.publish())));
        }
        Step::Scratch(len) => {
            let len = length(Type::Byte, len);
            let intact = call.scratch(|outer| {
                let first = outer.take::<u8>(len)?;
                first.copy_from_slice(&pattern(token, 0, len));
                outer.scratch(|inner| {
                    inner.take::<u8>(len / 2)?.copy_from_slice(&pattern(token + 1, 0, len / 2));
                    Ok::<_, Error>(())
                })?;
                Ok::<_, Error>(*first == pattern(token, 0, len))
            })?;
            if !intact {
                done.broken = Some("scratch was written by an inner scope".into());
            }
        }
    }
    Ok(())
}

impl Runner<'_> {
    /// Tokens for so many steps.
    pub(super) fn step_tokens(&mut self, steps: &[Step]) -> u64 {
        let first = self.token + 1;
        self.token += TOKENS * steps.len() as u64;
        first
    }

    /// Counts what the steps of a call took, and holds the error that ended them against the model.
    pub(super) fn performed(&mut self, id: usize, steps: &[Step], done: &Done) -> Checked {
        if let Some(broken) = &done.broken {
            return Err(broken.clone());
        }
        for step in &steps[..done.steps] {
            self.count_step(id, *step);
        }
        let Some(error) = &done.error else {
            return if done.steps == steps.len() { Ok(()) } else { Err("steps are missing".into()) };
        };
        let Settings { byte_limit: limit, block, .. } = self.model.arena_of(id).settings;
        let plausible = match answer(error) {
            Answer::OverLimit { requested, reserved, limit: said } => {
                said == limit && limit != usize::MAX && reserved + requested > limit
            }
            Answer::Alignment { alignment: 8192, largest } => {
                largest == block && matches!(steps.get(done.steps), Some(Step::Fixed(Type::Vast, _)))
            }
            _ => false,
        };
        self.model.arena_of(id).need.follow();
        self.model.arena_of(id).used_anywhere = true;
        self.report.meet("a step refused");
        if plausible && word(error) == answer(error).word() {
            Ok(())
        } else {
            Err(format!("a step failed: {error:?}"))
        }
    }

    fn count_step(&mut self, id: usize, step: Step) {
        let on_device = self.model.home_of(id).is_on_device();
        let outputs = match step {
            Step::Fixed(..) => 1,
            Step::Writers(_) | Step::Tape(_) if on_device => return,
            Step::Writers(_) | Step::Tape(_) => 2,
            Step::Scratch(_) => 0,
        };
        self.model.count_outputs(id, outputs);
        for _ in 0..outputs {
            self.model.close_output(id);
        }
        let arena = self.model.arena_of(id);
        let settings = arena.settings;
        match step {
            Step::Fixed(of, len) => arena.need.take(room(&settings, length(of, len) * of.size(), of.align())),
            Step::Writers(_) | Step::Tape(_) => arena.need.follow(),
            Step::Scratch(len) => {
                let (len, before) = (length(Type::Byte, len), arena.need.scratch);
                arena.need.take_scratch(room(&settings, len, 1));
                arena.need.take_scratch(room(&settings, len / 2, 1));
                arena.need.end_scratch(before);
            }
        }
        arena.used_anywhere = true;
    }

    /// Puts what the steps of a call have made in its place.
    pub(super) fn keep_made(
        &mut self,
        call: usize,
        steps: &[Step],
        token: u64,
        done: Done,
        queued: bool,
    ) -> Checked {
        let on_device = self.model.home_of(call).is_on_device();
        let mut made = done.made.into_iter();
        for (step, token) in steps[..done.steps].iter().zip((token..).step_by(TOKENS as usize)) {
            let mut next = || made.next().ok_or_else(|| "a step made too little".to_owned());
            match *step {
                Step::Fixed(of, len) => {
                    let len = length(of, len);
                    let bytes = len * of.size();
                    let bytes = if queued { filled(token, bytes) } else { pattern(token, 0, bytes) };
                    let view = (of, bytes, len);
                    let made = next()?;
                    self.keep_made_view(call, view, made)?;
                }
                Step::Writers(_) | Step::Tape(_) if on_device => {}
                Step::Writers(rounds) => {
                    let rounds = usize::from(rounds % 32);
                    let (words, bytes) = (next()?, next()?);
                    let view = (Type::Word, pattern(token, 0, rounds * 20), rounds * 5);
                    self.keep_made_view(call, view, words)?;
                    let view = (Type::Byte, pattern(token + 1, 0, rounds * 9), rounds * 9);
                    self.keep_made_view(call, view, bytes)?;
                }
                Step::Tape(items) => {
                    let Made::Tape(tape) = next()? else { return Err("a step made a view".into()) };
                    let items = (0..usize::from(items % 16)).map(|index| item(token, index)).collect();
                    self.tapes.push(Some(tape));
                    self.model.tapes.push(Tape { call, items, alive: true });
                }
                Step::Scratch(_) => {}
            }
        }
        Ok(())
    }

    fn keep_made_view(&mut self, call: usize, view: (Type, Vec<u8>, usize), made: Made) -> Checked {
        let Made::View(real) = made else { return Err("a step made a tape".into()) };
        let (of, bytes, len) = view;
        let bytes = bytes.into_iter().map(Some).collect();
        self.keep_view(View { call, of, bytes, address: None, by_device: false, alive: true }, len, real)
    }

    /// The same call four times: from its second begin on, nothing is asked of the driver.
    pub(super) fn steady(&mut self, arena: u8, steps: &[Step]) -> Checked {
        let steps = &steps[..steps.len().min(8)];
        let free = |arena: &crate::model::Arena| arena.alive && arena.holder().is_none();
        let Some(at) = crate::model::pick(self.model.arenas.iter().map(free), arena) else { return Ok(()) };
        let (mut steady, home) = (None, self.model.arenas[at].home);
        let way = match self.lane(home.executor()) {
            Some(lane) if home.is_on_device() && steps.len() % 2 == 1 => Way::Queued(lane.clone()),
            _ if home.is_on_device() => Way::Copied,
            _ => Way::Host,
        };
        let queued = matches!(way, Way::Queued(_));
        for round in 0..4 {
            self.say(format_args!(
                "round {round}: call{} = begin arena{at}, {steps:?}",
                self.model.calls.len()
            ));
            self.quiesce(at)?;
            self.before_free(at);
            let Some(arena) = &self.arenas[at] else { return Err(format!("arena{at} is lost")) };
            self.begun(at, Ok(()), arena.begin())?;
            self.settle()?;
            let id = self.model.calls.len() - 1;
            let Some(mut call) = self.calls[id].take() else { return Err(format!("call{id} is lost")) };
            if round == 1 {
                steady = self.arenas[at].as_ref().map(|arena| arena.stats());
            }
            self.quiesce(at)?;
            let token = self.step_tokens(steps);
            let done = perform(&mut call, steps, token, &way);
            self.performed(id, steps, &done)?;
            self.settle()?;
            call.finish().map_err(|error| error.to_string())?;
            self.model.end(id, false);
            self.keep_made(id, steps, token, done, queued)?;
            self.read_views_of(id)?;
        }
        self.report.meet("steady loop");
        let unlimited = self.model.arenas[at].settings.byte_limit == usize::MAX;
        let (Some(before), Some(arena)) = (steady.filter(|_| unlimited), &self.arenas[at]) else {
            return Ok(());
        };
        let now = arena.stats();
        let asked = (now.allocations - before.allocations, now.frees - before.frees);
        if asked == (0, 0) {
            Ok(())
        } else {
            Err(format!("a steady loop allocated and freed {asked:?} blocks"))
        }
    }
}
