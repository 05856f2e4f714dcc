//! Programs: what they are made of, and how they print.

use std::fmt;

use arbitrary::Arbitrary;

/// The type of an output's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Type {
    /// One byte.
    Byte,
    /// Three bytes.
    Odd,
    /// Four bytes.
    Word,
    /// Eight bytes.
    Long,
    /// 256 bytes, aligned to as many.
    Wide,
    /// 8192 bytes, aligned to as many: more than a block of the host.
    Vast,
    /// No bytes.
    Unit,
}

/// Operands are picked modulo what exists: the kinds of things that there are have more than enough names in one
/// byte.
type Pick = u8;

/// An arena's alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Align {
    /// Two to this power, modulo 13: 1 to 4096.
    Power(u8),
    /// This, as it is. Most are refused.
    Odd(u16),
}

/// An arena's first capacity, in steps of 512 bytes; or the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum First {
    /// 64 KiB.
    Default,
    /// So many times 512 bytes.
    Small(u8),
}

/// An arena's byte limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Limit {
    /// None.
    None,
    /// So many times 2048 bytes.
    Small(u8),
}

/// How blocks grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Growth {
    /// Geometric, as by default.
    Geometric,
    /// Geometric, by 4096 bytes at the most.
    Capped,
    /// Exact.
    Exact,
}

/// What a rewind does to what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Scrub {
    /// Nothing.
    Never,
    /// Zeros.
    Zero,
    /// This byte.
    Poison(u8),
}

/// The options of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub struct Options {
    /// Alignment.
    pub align: Align,
    /// First capacity.
    pub first: First,
    /// Byte limit.
    pub limit: Limit,
    /// Growth.
    pub growth: Growth,
    /// Scrub.
    pub scrub: Scrub,
}

/// Where an arena's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Place {
    /// Host pages, no executor named.
    Host,
    /// Where this executor computes.
    Executor(Pick),
}

/// How a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Begin {
    /// `Arena::begin`.
    Arena,
    /// `Executor::begin`.
    Executor(Pick),
    /// `Arena::begin_timeout` of so many milliseconds, modulo 2.
    Timeout(u8),
    /// `Executor::begin_timeout` of no time.
    ExecutorTimeout(Pick),
}

/// How room for an output is asked for and filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Room {
    /// `output`: not filled.
    Plain,
    /// `output_from_slice`.
    FromSlice,
    /// `output_from_fn`.
    FromFn,
}

/// What is written to an open output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Write {
    /// All of a fixed output; so many values more to a writer, as a slice; so many items to a tape.
    Slice(u8),
    /// So many values from an iterator that does not know its length; an item in parts.
    Iter(u8),
    /// Value by value; so many parts of an item that nobody ends.
    Each(u8),
    /// A closure that panics at this value.
    PanicAt(u8),
    /// A slice of the wrong length; a writer reserves so many.
    Reserve(u8),
    /// A writer forgets all past so many.
    Truncate(u8),
    /// Far more than there can be.
    Huge,
}

/// How a view is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Read {
    /// A guard, dropped at once.
    Guard,
    /// `to_vec`.
    ToVec,
    /// `copy_to`.
    CopyTo,
    /// `copy_to` a destination of another length.
    CopyToWrongLength,
}

/// A step of a call that is written down ahead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Step {
    /// An output, filled and published.
    Fixed(Type, u16),
    /// Two writers that grow in turns, so many times.
    Writers(u8),
    /// A tape of so many items.
    Tape(u8),
    /// A scratch scope of so many bytes.
    Scratch(u16),
}

/// How deferred work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Ending {
    /// It answers.
    Ok,
    /// It answers an error.
    Err,
    /// It panics.
    Panic,
}

/// Deferred work: what it does, before or after the gate that the program opens, and how it ends.
#[derive(Clone, Debug, PartialEq, Eq, Arbitrary)]
pub struct Deferral {
    /// The outputs are made and handed on before the gate, so that others see views that are pending.
    pub early: bool,
    /// What it does.
    pub steps: Vec<Step>,
    /// How it ends.
    pub ending: Ending,
}

/// Who finds out that deferred work has passed, once its gate and those ahead of it are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Release {
    /// Nobody yet.
    Quietly,
    /// `Deferred::wait`.
    Wait,
    /// `Deferred::wait_timeout`.
    WaitTimeout,
    /// `Deferred::is_done`, until it is.
    IsDone,
    /// The future.
    Await,
    /// `begin_timeout` of its arena.
    Begin,
    /// `Executor::synchronize`.
    Synchronize,
}

/// One operation. What it works on is picked when it runs; where there is nothing to pick, it does nothing.
///
/// An operation with `over` holds what it names while the next `over` operations run.
#[derive(Clone, Debug, PartialEq, Eq, Arbitrary)]
#[allow(
    missing_docs,
    reason = "the operands are picks, flags that say `elsewhere` for another thread, and sizes"
)]
pub enum Op {
    /// Makes an executor.
    NewExecutor,
    /// Drops an executor, once what is queued in it may pass.
    DropExecutor { executor: Pick },
    /// Makes an arena.
    NewArena { options: Options, place: Place },
    /// Drops an arena's handle.
    DropArena { arena: Pick, elsewhere: bool },
    /// Closes an arena.
    Close { arena: Pick },
    /// Trims an arena.
    Trim { arena: Pick },
    /// Reserves so many bytes, or more than there can be.
    Reserve { arena: Pick, bytes: u16, huge: bool },
    /// Begins a call.
    Begin { arena: Pick, how: Begin },
    /// Finishes a call.
    Finish { call: Pick, elsewhere: bool },
    /// Drops a call unfinished.
    Abandon { call: Pick, elsewhere: bool },
    /// Opens an output.
    Output { call: Pick, of: Type, len: u16, room: Room },
    /// Opens an output of a length that can't be.
    HugeOutput { call: Pick, overflows: bool },
    /// Opens and drops so many empty outputs.
    ManyOutputs { call: Pick, count: u16 },
    /// Opens a writer.
    Writer { call: Pick, of: Type, capacity: u8 },
    /// Opens a tape.
    Tape { call: Pick, items: u8, bytes: u8 },
    /// Writes to an open output.
    Write { open: Pick, what: Write },
    /// Opens an output and copies a view to it; one that is too long, unless it fits.
    Copy { call: Pick, view: Pick, fits: bool },
    /// Publishes an open output.
    Publish { open: Pick, elsewhere: bool },
    /// Publishes so many of a fixed output's values, one more than there are among them.
    PublishPrefix { open: Pick, len: u16 },
    /// Drops an open output.
    DropOpen { open: Pick, elsewhere: bool },
    /// Reads a view.
    Read { view: Pick, how: Read },
    /// Holds a guard of a view.
    Guard { view: Pick, over: u8 },
    /// Exports a view.
    Export { view: Pick },
    /// Exports a view for the call that published it, before it ends.
    CallExport { call: Pick, view: Pick },
    /// Drops an export.
    DropExport { export: Pick, elsewhere: bool },
    /// Slices a view.
    Slice { view: Pick, start: u8, end: u8 },
    /// Clones a view.
    CloneView { view: Pick },
    /// Drops a view.
    DropView { view: Pick },
    /// Reads a published tape.
    ReadTape { tape: Pick },
    /// Holds a guard of a tape.
    GuardTape { tape: Pick, over: u8 },
    /// Takes a tape apart into its views.
    TapeViews { tape: Pick },
    /// Drops a tape.
    DropTape { tape: Pick },
    /// Opens a scratch scope.
    Scratch { call: Pick, over: u8, panics: bool },
    /// Takes scratch room in the innermost scope.
    Take { of: Type, len: u16 },
    /// Defers work with a call of its own.
    Defer { arena: Pick, executor: Pick, work: Deferral },
    /// Defers a call as it is.
    DeferCall { call: Pick, executor: Pick },
    /// Opens the gate of deferred work and of all ahead of it.
    Release { work: Pick, how: Release },
    /// Asks deferred work whether it is done.
    IsDone { work: Pick },
    /// Waits for deferred work for no time.
    WaitZero { work: Pick },
    /// Polls the future of deferred work once.
    Poll { work: Pick },
    /// Drops the handle of deferred work.
    DropDeferred { work: Pick },
    /// Makes an executor's queue wait for deferred work.
    OrderAfter { executor: Pick, work: Pick },
    /// Runs the same call four times on a free arena.
    Steady { arena: Pick, steps: Vec<Step> },
}

/// A list of operations.
#[derive(Clone, Default, PartialEq, Eq, Arbitrary)]
pub struct Program {
    /// The operations, in order.
    pub ops: Vec<Op>,
    /// What is dropped first at the end, arenas or what came of them.
    pub arenas_go_first: bool,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program, arenas_go_first: {}", self.arenas_go_first)?;
        for (line, op) in self.ops.iter().enumerate() {
            writeln!(f, "{line:4}  {op:?}")?;
        }
        Ok(())
    }
}
