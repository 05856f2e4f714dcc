//! The runner: a program on the model and on the crate, in lock-step.

mod answers;
mod arenas;
mod copies;
mod deferred;
mod device;
mod gates;
mod handles;
mod opens;
mod real;
mod scopes;
mod script;
mod shared;
mod views;
mod writes;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use device_arena::{Arena, Call, Error, Executor, PublishedTape};

use self::answers::{answer, holder_of, word};
use self::handles::RealWork;
use self::real::{AnyOpen, AnyView, Held};
use self::scopes::{Chain, Outside};
use crate::lane::{Faint, Lane};
use crate::model::{self, Answer, Model, Phase, Seen};
use crate::program::{Op, Program};
use crate::subject::Subject;

/// What a comparison says that failed.
pub(crate) type Mismatch = String;
pub(crate) type Checked<T = ()> = Result<T, Mismatch>;

/// What a program met, and how often: the tests see to it that programs are not about nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How often each kind of answer was given.
    pub met: BTreeMap<String, u64>,
}

impl Report {
    /// Adds another program's.
    pub fn add(&mut self, other: &Self) {
        for (what, times) in &other.met {
            *self.met.entry(what.clone()).or_default() += times;
        }
    }

    fn meet(&mut self, what: &str) {
        *self.met.entry(what.to_owned()).or_default() += 1;
    }
}

/// A program on which the subject and the model disagree.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    subject: String,
    trace: Vec<String>,
    reason: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.subject, self.reason)?;
        for line in &self.trace {
            writeln!(f, "    {line}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}

/// Runs a program on a subject and on the model.
///
/// # Errors
///
/// The program as it ran, and where the two came apart.
pub fn run(subject: &Subject, program: &Program) -> Result<Report, Failure> {
    let mut runner = Runner::new(subject);
    let outcome = catch_unwind(AssertUnwindSafe(|| runner.program(program)));
    let reason = match outcome {
        Ok(Ok(())) => return Ok(runner.report),
        Ok(Err(mismatch)) => mismatch,
        Err(payload) => {
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            format!("panicked: {}", text.unwrap_or("(no message)"))
        }
    };
    runner.open_gates();
    Err(Failure { subject: subject.name().into(), trace: std::mem::take(&mut runner.trace), reason })
}

/// The program's things, in the model's words and as they are.
pub(crate) struct Runner<'s> {
    /// Before everything else, so that no queue waits for a gate that nobody can open any more.
    works: Vec<RealWork>,
    subject: &'s Subject,
    model: Model,
    executors: Vec<Option<Executor>>,
    /// Beside the executors of a device.
    lanes: Vec<Option<Lane>>,
    /// Where an arena keeps an executor's stream whose handle is gone.
    faint: Vec<Option<Faint>>,
    arenas: Vec<Option<Arena>>,
    calls: Vec<Option<Call>>,
    opens: Vec<Option<Box<dyn AnyOpen>>>,
    views: Vec<Option<Arc<dyn AnyView>>>,
    tapes: Vec<Option<Arc<PublishedTape>>>,
    exports: Vec<Option<Box<dyn Held + Send>>>,
    trace: Vec<String>,
    /// The trace is printed as it comes: for a program that hangs, or takes the process with it.
    loud: bool,
    depth: usize,
    token: u64,
    report: Report,
}

impl<'s> Runner<'s> {
    fn new(subject: &'s Subject) -> Self {
        Self {
            works: Vec::new(),
            subject,
            model: Model { on_device: subject.is_device(), ..Model::default() },
            executors: Vec::new(),
            lanes: Vec::new(),
            faint: Vec::new(),
            arenas: Vec::new(),
            calls: Vec::new(),
            opens: Vec::new(),
            views: Vec::new(),
            tapes: Vec::new(),
            exports: Vec::new(),
            trace: Vec::new(),
            loud: std::env::var_os("DEVICE_ARENA_TRACE").is_some(),
            depth: 0,
            token: 0,
            report: Report::default(),
        }
    }

    fn program(&mut self, program: &Program) -> Checked {
        self.new_executor()?;
        self.run_ops(&program.ops, &mut Outside)?;
        self.read_everything()?;
        self.tear_down(program.arenas_go_first)
    }

    /// Runs operations inside of the scratch scopes that are open.
    fn run_ops(&mut self, ops: &[Op], chain: &mut dyn Chain) -> Checked {
        let mut rest = ops;
        while let Some((op, behind)) = rest.split_first() {
            let over = self.step(op, behind, chain)?;
            self.settle()?;
            rest = behind.get(over..).unwrap_or(&[]);
        }
        Ok(())
    }

    /// Runs one operation; answers how many of those behind it ran inside of it.
    fn step(&mut self, op: &Op, behind: &[Op], chain: &mut dyn Chain) -> Checked<usize> {
        let inside = |over: u8| &behind[..behind.len().min(usize::from(over))];
        match op {
            Op::NewExecutor => self.new_executor()?,
            Op::DropExecutor { executor } => self.drop_executor(*executor)?,
            Op::NewArena { options, place } => self.new_arena(*options, *place)?,
            Op::DropArena { arena, elsewhere } => self.drop_arena(*arena, *elsewhere)?,
            Op::Close { arena } => self.close(*arena)?,
            Op::Trim { arena } => self.trim(*arena)?,
            Op::Reserve { arena, bytes, huge } => self.reserve(*arena, *bytes, *huge)?,
            Op::Begin { arena, how } => self.begin(*arena, *how)?,
            Op::Finish { call, elsewhere } => self.end_call(*call, *elsewhere, false)?,
            Op::Abandon { call, elsewhere } => self.end_call(*call, *elsewhere, true)?,
            Op::Output { call, of, len, room } => self.output(*call, *of, *len, *room, chain)?,
            Op::HugeOutput { call, overflows } => self.huge_output(*call, *overflows, chain)?,
            Op::ManyOutputs { call, count } => self.many_outputs(*call, *count, chain)?,
            Op::Writer { call, of, capacity } => self.writer(*call, *of, *capacity, chain)?,
            Op::Tape { call, items, bytes } => self.tape(*call, *items, *bytes, chain)?,
            Op::Write { open, what } => self.write(*open, *what)?,
            Op::Copy { call, view, fits } => self.copy(*call, *view, *fits, chain)?,
            Op::Publish { open, elsewhere } => self.publish(*open, *elsewhere)?,
            Op::PublishPrefix { open, len } => self.publish_prefix(*open, *len)?,
            Op::DropOpen { open, elsewhere } => self.drop_open(*open, *elsewhere)?,
            Op::Read { view, how } => self.read(*view, *how)?,
            Op::Guard { view, over } => return self.guard(*view, inside(*over), chain),
            Op::Export { view } => self.export(*view)?,
            Op::CallExport { call, view } => self.call_export(*call, *view, chain)?,
            Op::DropExport { export, elsewhere } => self.drop_export(*export, *elsewhere)?,
            Op::Slice { view, start, end } => self.slice(*view, *start, *end)?,
            Op::CloneView { view } => self.clone_view(*view)?,
            Op::DropView { view } => self.drop_view(*view),
            Op::ReadTape { tape } => drop(self.guard_tape(*tape, &[], chain)?),
            Op::GuardTape { tape, over } => return self.guard_tape(*tape, inside(*over), chain),
            Op::TapeViews { tape } => self.tape_views(*tape)?,
            Op::DropTape { tape } => self.drop_tape(*tape),
            Op::Scratch { call, over, panics } => return self.scratch(*call, inside(*over), *panics, chain),
            Op::Take { of, len } => self.take_scratch(*of, *len, chain)?,
            Op::Defer { arena, executor, work } => self.defer(*arena, *executor, work)?,
            Op::DeferCall { call, executor } => self.defer_call(*call, *executor)?,
            Op::Release { work, how } => self.release(*work, *how)?,
            Op::IsDone { work } => self.is_done(*work)?,
            Op::WaitZero { work } => self.wait_zero(*work)?,
            Op::Poll { work } => self.poll(*work)?,
            Op::DropDeferred { work } => self.drop_deferred(*work)?,
            Op::OrderAfter { executor, work } => self.order_after(*executor, *work)?,
            Op::Steady { arena, steps } => self.steady(*arena, steps)?,
        }
        Ok(0)
    }

    /// Values that nothing else was ever filled with.
    fn fresh_token(&mut self) -> u64 {
        self.token += 1;
        self.token
    }

    /// One more line of the program as it runs.
    fn say(&mut self, line: impl fmt::Display) {
        let line = format!("{:indent$}{line}", "", indent = self.depth * 4);
        if self.loud {
            eprintln!("{line}");
        }
        self.trace.push(line);
    }

    /// What came of the last line.
    fn note(&mut self, what: &str) {
        if let Some(line) = self.trace.last_mut() {
            line.push_str(" -> ");
            line.push_str(what);
        }
    }

    /// Compares an answer; what was answered, where that is what was expected.
    fn compare<T>(&mut self, expected: Result<(), Answer>, got: Result<T, Error>) -> Checked<Option<T>> {
        match (expected, got) {
            (Ok(()), Ok(value)) => {
                self.note("ok");
                Ok(Some(value))
            }
            (Err(expected), Err(error)) => {
                self.note(&error.to_string());
                let got = answer(&error);
                if got != expected || word(&error) != expected.word() {
                    return Err(format!("expected {expected:?}, got {got:?} with {:?}", error.status()));
                }
                self.report.meet(expected.name());
                Ok(None)
            }
            (Ok(()), Err(error)) => Err(format!("expected success, got {error:?}")),
            (Err(expected), Ok(_)) => Err(format!("expected {expected:?}, got success")),
        }
    }

    /// Holds every arena's counters, and every view's word on whether it is current, against the model.
    fn settle(&mut self) -> Checked {
        self.pump()?;
        for at in 0..self.arenas.len() {
            let Some(arena) = &self.arenas[at] else { continue };
            let stats = arena.stats();
            let model = &mut self.model.arenas[at];
            let counts = (stats.rewinds, stats.refused_begins, stats.refused_stale_reads, stats.failed_frees);
            let expected = (model.rewinds, model.refused_begins, model.refused_stale_reads, 0);
            if counts != expected {
                return Err(format!("arena{at} counts {counts:?}, expected {expected:?}"));
            }
            let seen = Seen {
                allocations: stats.allocations,
                frees: stats.frees,
                reserved: stats.bytes_reserved,
                used: stats.bytes_used,
                high_water: stats.bytes_high_water,
            };
            let generation = (arena.generation(), model.generation);
            if generation.0 != generation.1 {
                return Err(format!(
                    "arena{at} is at generation {}, expected {}",
                    generation.0, generation.1
                ));
            }
            let (holder, expected) = (arena.holder().map(holder_of), model.holder());
            // A call that was deferred as it was ends when somebody looks for its work.
            let unsettled = holder == Some(model::Holder::Deferred) && model.deferred_as_it_was;
            if holder != expected && !unsettled {
                return Err(format!("arena{at} is held by {holder:?}, expected {expected:?}"));
            }
            let in_call = model.phase != Phase::Idle;
            let settled = model.need.settle(&model.settings, seen, in_call);
            settled.map_err(|mismatch| format!("arena{at}: {mismatch}"))?;
        }
        for (at, view) in self.views.iter().enumerate() {
            let Some(view) = view else { continue };
            let current = self.model.stale(self.model.views[at].call).is_none();
            if view.is_current() != current {
                return Err(format!("view{at} says is_current {}, expected {current}", view.is_current()));
            }
        }
        Ok(())
    }

    /// The end of a program: everything goes, arenas first or last, and nothing waits for ever.
    fn tear_down(&mut self, arenas_go_first: bool) -> Checked {
        self.say("everything goes");
        if arenas_go_first {
            for arena in 0..self.arenas.len() {
                self.drop_arena_at(arena, arena % 2 == 1)?;
            }
            self.read_everything()?;
        }
        self.release_all()?;
        (self.calls, self.opens, self.exports) = (Vec::new(), Vec::new(), Vec::new());
        if arenas_go_first {
            return Ok(());
        }
        (self.views, self.tapes, self.works) = (Vec::new(), Vec::new(), Vec::new());
        for (at, arena) in std::mem::take(&mut self.arenas).into_iter().enumerate() {
            let Some(arena) = arena else { continue };
            let reserved = arena.stats().bytes_reserved;
            match arena.close() {
                Ok(freed) if freed as u64 == reserved => {}
                answer => return Err(format!("arena{at} with {reserved} bytes closed as {answer:?}")),
            }
        }
        Ok(())
    }
}
