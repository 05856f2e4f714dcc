//! Deferred work: closures that wait at gates, calls that are deferred as they are, and who waits for them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::Poll;
use std::time::{Duration, Instant};

use device_arena::Error;

use super::handles::{Body, Gate, Handle, LONG, Marker, Outcome, RealWork, message};
use super::script::Way;
use super::{Checked, Runner};
use crate::lane::Lane;
use crate::model::{Answer, Event, Phase, Task};
use crate::program::{Deferral, Ending, Release};

impl Runner<'_> {
    pub(super) fn defer(&mut self, arena: u8, executor: u8, work: &Deferral) -> Checked {
        let Some(at) = self.model.pick_arena(arena) else { return Ok(()) };
        let Some(executor) = self.pick_executor_for(at, executor) else { return Ok(()) };
        let steps = work.steps[..work.steps.len().min(8)].to_vec();
        let (token, early, ending) = (self.step_tokens(&steps), work.early, work.ending);
        let number = self.fresh_token();
        let (gate, opened) = channel();
        let (send, done) = channel();
        self.say(format_args!("executor{executor}.defer on arena{at}: {work:?}"));
        self.before_gate(executor)?;
        let serves = self.model.serves(at, executor);
        if serves.is_ok() && self.model.arenas[at].holder().is_none() {
            self.begin_may_share(at);
            self.quiesce(at)?;
        }
        if serves.is_ok() && self.model.arenas[at].holder().is_none() {
            self.before_begin(at);
            self.before_growth(at);
        }
        let lane = self.lane(Some(executor)).cloned();
        let way = match (&lane, self.model.arenas[at].home.is_on_device()) {
            (Some(lane), true) => Way::Queued(lane.clone()),
            _ => Way::Host,
        };
        let queued = matches!(way, Way::Queued(_));
        let gate_of = |lane: &Option<Lane>| match lane {
            Some(lane) => Gate::InStream(lane.clone(), opened),
            None => Gate::Here(opened),
        };
        let (theirs, arena) = match (&self.executors[executor], &self.arenas[at]) {
            (Some(executor), Some(arena)) => (executor, arena),
            _ => return Err("an executor is lost".into()),
        };
        // Where the limit may have blocks given back, no gate of its own may be ahead of that.
        let limited = lane.is_some() && self.model.arenas[at].settings.byte_limit != usize::MAX;
        // And none ahead of host access to pages of which a device may have had work: the arena asks the stream.
        let gate_first = !early && !limited && self.model.arenas[at].device_work.is_none();
        let body = Body {
            gate_first,
            steps: steps.clone(),
            token,
            early,
            ending,
            number,
            way,
            gate: gate_of(&lane),
            send,
        };
        let got = theirs.defer(arena, move |call| body.run(call));
        let expected = serves.and_then(|()| self.model.begin(at, Phase::Deferred));
        // A marker behind work that was refused would have nobody to wait for it.
        let marker = if got.is_ok() { Some(Marker::new(theirs, lane.as_ref())?) } else { None };
        let got = got.map_err(Error::from);
        let Some(deferred) = self.compare(expected.clone().map(drop), got)? else { return Ok(()) };
        let Ok(id) = expected else { return Ok(()) };
        self.report.meet("defer");
        let index = self.model.works.push(executor, Task::Closure { early }, Some(id));
        self.note(&format!("work{index}"));
        self.model.works.list[index].outcome = match ending {
            Ending::Ok => Ok(number),
            Ending::Err => Err(Answer::Scripted(number as i64)),
            Ending::Panic => Err(Answer::Panicked(message(number).into())),
        };
        let handle = Some(Handle::Closure(deferred));
        let (gate, done) = (Some(gate), Some(done));
        let real =
            RealWork { gate, handle, steps, token, early, done, marker, woken: Arc::default(), queued };
        self.keep_work(index, real);
        if lane.is_some() {
            self.done_at_once(index, id)?;
        }
        self.pump()
    }

    /// On a device the closure has run: what failed is abandoned already, and the rest ends once somebody looks.
    fn done_at_once(&mut self, work: usize, id: usize) -> Checked {
        self.work_done(work)?;
        if self.model.works.list[work].outcome.is_err() {
            self.model.end(id, true);
            self.model.works.list[work].call = None;
        } else {
            self.model.arena_of(id).deferred_as_it_was = true;
        }
        Ok(())
    }

    /// Puts work in its place.
    fn keep_work(&mut self, index: usize, real: RealWork) {
        self.cover_works();
        self.works[index] = real;
    }

    pub(super) fn defer_call(&mut self, call: u8, executor: u8) -> Checked {
        let Some(id) = self.model.pick_call(call, true) else { return Ok(()) };
        let at = self.model.calls[id].arena;
        let Some(executor) = self.pick_executor_for(at, executor) else { return Ok(()) };
        let Some(call) = self.calls[id].take() else { return Err(format!("call{id} is lost")) };
        self.say(format_args!("executor{executor}.defer_call call{id}"));
        let lane = self.lane(Some(executor)).cloned();
        let Some(theirs) = &self.executors[executor] else { return Err("an executor is lost".into()) };
        let got = theirs.defer_call(call).map_err(|refused| {
            self.calls[id] = Some(refused.value);
            refused.error
        });
        let marker = if got.is_ok() { Some(Marker::new(theirs, lane.as_ref())?) } else { None };
        let busy = !self.model.works.is_idle(executor);
        let serves = self.model.serves(at, executor);
        let Some(deferred) = self.compare(serves, got)? else { return Ok(()) };
        self.report.meet(if busy { "defer_call behind work" } else { "defer_call" });
        self.model.calls[id].alive = false;
        let arena = self.model.arena_of(id);
        (arena.phase, arena.deferred_as_it_was) = (Phase::Deferred, true);
        let index = self.model.works.push(executor, Task::Call, Some(id));
        self.note(&format!("work{index}"));
        self.keep_work(
            index,
            RealWork { handle: Some(Handle::Call(deferred)), marker, ..RealWork::default() },
        );
        self.pump()
    }

    pub(super) fn order_after(&mut self, executor: u8, work: u8) -> Checked {
        let Some(executor) = self.model.pick_executor(executor) else { return Ok(()) };
        let Some(on) = self.model.pick_work(work) else { return Ok(()) };
        self.say(format_args!("executor{executor}.order_after work{on}"));
        let got = match (&self.executors[executor], &self.works[on].handle) {
            (Some(executor), Some(Handle::Closure(deferred))) => executor.order_after(deferred),
            (Some(executor), Some(Handle::Call(deferred))) => executor.order_after(deferred),
            _ => return Err(format!("work{on} is lost")),
        };
        self.compare(Ok(()), got)?;
        self.report.meet("order_after");
        if !self.model.works.list[on].passed {
            self.model.works.push(executor, Task::Wait { on }, None);
        }
        self.pump()
    }

    /// The work that holds an arena.
    pub(super) fn work_of(&self, arena: usize) -> Option<usize> {
        let holds = |call: usize| self.model.calls[call].arena == arena;
        self.model.works.list.iter().position(|work| !work.passed && work.call.is_some_and(holds))
    }

    /// Dropping an arena waits for a call that was left to an event: on the host, one that was deferred as it was.
    pub(super) fn open_before_drop(&mut self, arena: usize) {
        let work = self.work_of(arena);
        let work =
            work.filter(|work| self.subject.is_device() || self.model.works.list[*work].task == Task::Call);
        if let Some(work) = work {
            let all = self.model.works.up_to(work);
            self.open(&all);
        }
    }

    /// Opens every gate, whatever the model thinks.
    pub(super) fn open_gates(&mut self) {
        for work in &mut self.works {
            work.gate = None;
        }
    }

    pub(super) fn release_all(&mut self) -> Checked {
        let all = (0..self.model.works.list.len()).collect();
        self.open(&all);
        self.pump()?;
        match self.model.works.list.iter().position(|work| !work.passed) {
            Some(work) => Err(format!("work{work} never passes")),
            None => Ok(()),
        }
    }

    /// Follows the queues as far as they get before another gate.
    pub(super) fn pump(&mut self) -> Checked {
        self.cover_works();
        while let Some(event) = self.model.works.next_event() {
            match event {
                Event::Started(work) if self.works[work].early && self.works[work].done.is_some() => {
                    self.work_done(work)?;
                }
                Event::Started(_) => {}
                Event::Passed(work) => self.work_passed(work)?,
            }
        }
        Ok(())
    }

    /// The steps of a closure are done.
    fn work_done(&mut self, work: usize) -> Checked {
        let RealWork { done, steps, token, early, queued, .. } = &mut self.works[work];
        let (steps, token, early, queued) = (steps.clone(), *token, *early, *queued);
        let Some(done) = done.take() else { return Err(format!("work{work} is lost")) };
        let done = done.recv_timeout(LONG).map_err(|_| format!("work{work} did not run"))?;
        let Some(id) = self.model.works.list[work].call else { return Ok(()) };
        self.performed(id, &steps, &done)?;
        if let Some(error) = &done.error {
            self.model.works.list[work].outcome = Err(super::answers::answer(error));
        }
        if early { self.keep_made(id, &steps, token, done, queued) } else { Ok(()) }
    }

    fn work_passed(&mut self, work: usize) -> Checked {
        if self.works[work].done.is_some() {
            self.work_done(work)?;
        }
        if let Some(marker) = self.works[work].marker.take()
            && !marker.passes()
        {
            return Err(format!("work{work} did not pass"));
        }
        let model = &self.model.works.list[work];
        if model.polled && !self.works[work].woken.was_woken() {
            return Err(format!("work{work} passed and woke nobody"));
        }
        if let Some(id) = model.call {
            let abandoned = model.outcome.is_err();
            self.model.end(id, abandoned);
        }
        Ok(())
    }

    /// Compares what waiting for work answered, and keeps what the work made.
    fn outcome(&mut self, work: usize, got: Result<Outcome, Error>) -> Checked {
        let model = &self.model.works.list[work];
        let expected = if model.taken { Err(Answer::AlreadyTaken) } else { model.outcome.clone() };
        self.model.works.list[work].taken = true;
        let Some((number, done)) = self.compare(expected.clone().map(drop), got)? else { return Ok(()) };
        self.report.meet("deferred outcome");
        if expected != Ok(number) {
            return Err(format!("work{work} answered {number}, expected {expected:?}"));
        }
        let (Some(done), Some(id)) = (done, self.model.works.list[work].call) else { return Ok(()) };
        let RealWork { steps, token, queued, .. } = &self.works[work];
        let (steps, token, queued) = (steps.clone(), *token, *queued);
        self.keep_made(id, &steps, token, done, queued)
    }

    fn take_handle(&mut self, work: usize) -> Checked<Handle> {
        self.model.works.list[work].alive = false;
        self.works[work].handle.take().ok_or_else(|| format!("work{work} is lost"))
    }

    fn handle(&mut self, work: usize) -> Checked<&mut Handle> {
        self.works[work].handle.as_mut().ok_or_else(|| format!("work{work} is lost"))
    }

    pub(super) fn release(&mut self, work: u8, how: Release) -> Checked {
        let Some(work) = self.model.pick_work(work) else { return Ok(()) };
        self.say(format_args!("release work{work}, {how:?}"));
        let executor = self.model.works.list[work].executor;
        let all = match how {
            Release::Synchronize => self.model.works.all_of(executor),
            _ => self.model.works.up_to(work),
        };
        self.report.meet("release");
        if how == Release::Begin {
            return self.begin_behind(work, &all);
        }
        self.open(&all);
        match how {
            Release::Quietly | Release::Begin => {}
            Release::Wait => {
                let got = self.take_handle(work)?.wait();
                self.pump()?;
                return self.outcome(work, got);
            }
            Release::WaitTimeout => {
                let got = self.handle(work)?.wait_timeout(LONG);
                self.pump()?;
                let got = got.transpose().ok_or_else(|| format!("work{work} did not pass"))?;
                return self.outcome(work, got);
            }
            Release::Await => {
                let woken = Arc::clone(&self.works[work].woken);
                let got = self.take_handle(work)?.block_on(&woken)?;
                self.pump()?;
                return self.outcome(work, got);
            }
            Release::IsDone => {
                let deadline = Instant::now() + LONG;
                while !self.handle(work)?.is_done().map_err(|error| error.to_string())? {
                    if Instant::now() > deadline {
                        return Err(format!("work{work} did not pass"));
                    }
                    std::thread::yield_now();
                }
            }
            Release::Synchronize => {
                if let Some(executor) = &self.executors[executor] {
                    executor.synchronize().map_err(|error| error.to_string())?;
                }
            }
        }
        self.pump()
    }

    /// Begins a call on the arena that work holds, and waits for it: the gates open once it does.
    fn begin_behind(&mut self, work: usize, all: &BTreeSet<usize>) -> Checked {
        let model = &self.model.works.list[work];
        // Where something else would hold the arena as well, nobody waits.
        let call = model.call.filter(|call| !model.passed && self.model.calls[*call].open == 0);
        let at = call.map(|call| self.model.calls[call].arena);
        let at = at.filter(|at| self.model.arenas[*at].readers == 0);
        let Some(at) = at.filter(|at| self.arenas[*at].is_some()) else {
            self.open(all);
            return self.pump();
        };
        // Waiting for its turn, the begin may have blocks to give back, for which all of a device's streams pass.
        let mut all = all.clone();
        if self.subject.is_device() {
            all.extend(0..self.model.works.list.len());
        }
        let gates = self.take_gates(&all);
        let Some(arena) = &self.arenas[at] else { return Err(format!("arena{at} is lost")) };
        let started = Instant::now();
        let got = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(300));
                drop(gates);
            });
            arena.begin_timeout(LONG)
        });
        if started.elapsed() >= LONG {
            return Err("a begin that waited was not woken".into());
        }
        self.pump()?;
        self.report.meet("begin that waited");
        self.say(format_args!("call{} = begin arena{at} behind work{work}", self.model.calls.len()));
        self.begun(at, Ok(()), got)
    }

    pub(super) fn is_done(&mut self, work: u8) -> Checked {
        let Some(work) = self.model.pick_work(work) else { return Ok(()) };
        self.say(format_args!("work{work}.is_done"));
        let got = self.handle(work)?.is_done();
        let passed = self.model.works.list[work].passed;
        match self.compare(Ok(()), got)? {
            Some(done) if done != passed => Err(format!("work{work} says {done}, expected {passed}")),
            _ => Ok(()),
        }
    }

    pub(super) fn wait_zero(&mut self, work: u8) -> Checked {
        let Some(work) = self.model.pick_work(work) else { return Ok(()) };
        self.say(format_args!("work{work}.wait_timeout(0)"));
        let passed = self.model.works.list[work].passed;
        match self.handle(work)?.wait_timeout(Duration::ZERO).transpose() {
            None if !passed => Ok(()),
            None => Err(format!("work{work} has passed, and waiting for it says no")),
            Some(_) if !passed => Err(format!("work{work} passed at a closed gate")),
            Some(got) => self.outcome(work, got),
        }
    }

    pub(super) fn poll(&mut self, work: u8) -> Checked {
        let Some(work) = self.model.pick_work(work) else { return Ok(()) };
        self.say(format_args!("work{work}.poll"));
        let (woken, passed) = (Arc::clone(&self.works[work].woken), self.model.works.list[work].passed);
        match self.handle(work)?.poll(&woken) {
            Poll::Pending if !passed => {
                self.model.works.list[work].polled = true;
                Ok(())
            }
            Poll::Pending => Err(format!("work{work} has passed, and its future is pending")),
            Poll::Ready(_) if !passed => Err(format!("work{work} passed at a closed gate")),
            Poll::Ready(got) => self.outcome(work, got),
        }
    }

    pub(super) fn drop_deferred(&mut self, work: u8) -> Checked {
        let Some(work) = self.model.pick_work(work) else { return Ok(()) };
        self.say(format_args!("drop work{work}"));
        self.report.meet("deferred dropped");
        self.take_handle(work).map(drop)
    }
}
