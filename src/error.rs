//! What can go wrong, said once: `Error` for Rust, `Status` for the words that bindings share.

use crate::backend::Vendor;
use crate::plan::{Hazard, PlanFault};

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who holds an arena that refused a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Holder {
    /// A call that has not finished, or a trim that is under way on another thread.
    Call,
    /// An output of a call that has ended: it is neither published nor dropped.
    Output,
    /// A call that was deferred and whose work has not passed.
    Deferred,
    /// A captured call that can be launched again.
    Captured,
    /// This many read guards and exports.
    Readers(u32),
    /// A begin or a reserve that is under way on another thread.
    Begin,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Call => f.write_str("a running call"),
            Self::Output => f.write_str("an output of the last call that is neither published nor dropped"),
            Self::Deferred => f.write_str("deferred work"),
            Self::Captured => f.write_str("a captured call"),
            Self::Readers(1) => f.write_str("1 reader"),
            Self::Readers(count) => write!(f, "{count} readers"),
            Self::Begin => f.write_str("a begin on another thread"),
        }
    }
}

/// Why a view is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StaleReason {
    /// A later call rewound the arena, the arena was trimmed, or the view's own call was dropped unfinished. (The
    /// generation moved; which of these moved it is not kept.)
    Rewound,
    /// The arena was dropped or closed.
    ArenaDropped,
}

impl std::fmt::Display for StaleReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rewound => "a later call rewound its arena, or its own call was dropped unfinished",
            Self::ArenaDropped => "its arena was dropped",
        })
    }
}

/// Everything that a function of this crate can refuse or fail with.
///
/// Sizes are bytes and positions are elements unless the field says otherwise. After an error the arena is as it
/// was before the function.
///
/// ```
/// use device_arena::{Arena, Error, Status};
///
/// let arena = Arena::host();
/// let call = arena.begin()?;
/// let refused = arena.begin().unwrap_err();
/// assert!(matches!(refused, Error::Contended { .. }));
/// assert_eq!(refused.status(), Status::Contended);
/// call.finish()?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The view is of a call whose bytes are gone.
    #[error("stale view of generation {generation}: {reason}")]
    Stale {
        /// The generation of the view.
        generation: u64,
        /// What made it stale.
        reason: StaleReason,
    },
    /// Somebody else holds the arena. The refusal changed nothing. A call, an output or a guard that was forgotten
    /// looks like one that is alive.
    #[error("{operation}: the arena is contended, held by {holder}")]
    Contended {
        /// What was refused.
        operation: &'static str,
        /// Who holds the arena.
        holder: Holder,
    },
    /// The call that published the view has not finished, or its deferred work has not passed; or the host wants bytes that
    /// work of a device may still use, which [`Executor::synchronize`](crate::Executor::synchronize) waits for.
    #[error(
        "{operation}: pending, the call of generation {generation} has not finished, or work on its bytes has not passed"
    )]
    Pending {
        /// What was refused.
        operation: &'static str,
        /// The generation of the view.
        generation: u64,
    },
    /// Host access to memory of a device.
    #[error("{operation}: the memory is on device {ordinal}, out of the host's reach")]
    Device {
        /// What was refused.
        operation: &'static str,
        /// The device's number as its driver counts it.
        ordinal: u32,
    },
    /// A device's access to host pages that no device has been told of.
    #[error("{operation}: the memory is the host's, out of a device's reach")]
    HostMemory {
        /// What was refused.
        operation: &'static str,
    },
    /// The arena serves another executor.
    #[error(
        "{operation}: the arena serves an executor on {arena} {arena_ordinal}, and this is another one, on {executor} {ordinal}"
    )]
    WrongExecutor {
        /// What was refused.
        operation: &'static str,
        /// The vendor of the arena's executor.
        arena: Vendor,
        /// The ordinal of the arena's executor.
        arena_ordinal: u32,
        /// The vendor of the executor that was given.
        executor: Vendor,
        /// The ordinal of the executor that was given.
        ordinal: u32,
    },
    /// As many guards and exports are held as the arena can count.
    #[error("the arena has its limit of {limit} readers at a time")]
    TooManyReaders {
        /// The limit.
        limit: u32,
    },
    /// One call opened as many outputs as it can count.
    #[error("the call has its limit of {limit} outputs")]
    TooManyOutputs {
        /// The limit.
        limit: u32,
    },
    /// The size in bytes does not fit the address space.
    #[error("{operation}: {elements} elements of {element_bytes} bytes overflow the address space")]
    SizeOverflow {
        /// What was refused.
        operation: &'static str,
        /// How many elements were asked for.
        elements: usize,
        /// The size of one, in bytes.
        element_bytes: usize,
    },
    /// The alignment is no power of two, or larger than a block's own.
    #[error("an alignment of {alignment} bytes is not a power of two of at most {largest}")]
    Alignment {
        /// What was asked for, in bytes.
        alignment: usize,
        /// The largest that can be had, in bytes.
        largest: usize,
    },
    /// An option that the executor cannot honour.
    #[error("the option `{option}` cannot be had: {reason}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// The byte limit of the arena's options.
    #[error(
        "a block of {requested} bytes exceeds the arena's limit of {limit}, of which {reserved} are reserved"
    )]
    OverLimit {
        /// The bytes of the block that the limit forbids.
        requested: usize,
        /// The bytes that the arena has.
        reserved: usize,
        /// The limit.
        limit: usize,
    },
    /// The driver or the system has no memory of that size.
    #[error("{vendor} {operation}: out of memory for {requested} bytes{}", Room { free: *free, total: *total })]
    OutOfMemory {
        /// Who was asked.
        vendor: Vendor,
        /// The call that failed.
        operation: &'static str,
        /// The bytes asked for.
        requested: usize,
        /// The bytes that the device has free, where its driver says.
        free: Option<u64>,
        /// The bytes that the device has, where its driver says.
        total: Option<u64>,
    },
    /// There is no such device, driver or worker thread.
    #[error("{}: {detail}", Absent(*vendor))]
    Unavailable {
        /// Whose driver; the host where it is nobody's in particular.
        vendor: Vendor,
        /// What was tried, and what came of it.
        detail: String,
    },
    /// A driver call failed.
    #[error("{vendor} {operation} failed with code {code}{}", Parenthesis(name))]
    Driver {
        /// Whose driver.
        vendor: Vendor,
        /// The call that failed.
        operation: &'static str,
        /// The driver's own code.
        code: i64,
        /// The driver's name for the code; empty where it has none.
        name: &'static str,
    },
    /// Two drivers claim the same memory for devices of theirs: neither can be believed.
    #[error("{operation}: {} and {} both claim the memory at {address:#x} for their devices", vendors[0], vendors[1])]
    ConflictingClaims {
        /// The operation that was refused.
        operation: &'static str,
        /// The address.
        address: usize,
        /// Whose drivers.
        vendors: [Vendor; 2],
    },
    /// The stream's work is being captured into a graph, which what was asked for would spoil.
    #[error("{operation}: the stream is being captured")]
    Capturing {
        /// What was refused.
        operation: &'static str,
    },
    /// A value of one vendor was handed to the backend of another.
    #[error("{operation}: {vendor} does not take this {what}")]
    WrongVendor {
        /// What was refused.
        operation: &'static str,
        /// The kind of value.
        what: &'static str,
        /// The vendor that was asked.
        vendor: Vendor,
    },
    /// The wait can't end, since the thread that waits is the one that would do the work.
    #[error("{operation}: the queue's own worker would wait for itself")]
    WouldDeadlock {
        /// What was refused.
        operation: &'static str,
    },
    /// The offsets do not describe a tape.
    #[error("offset {index} is {value}, {rule} {bound}")]
    Tape {
        /// The position of the offset that breaks the rule.
        index: usize,
        /// The offset, as the caller's type holds it.
        value: i128,
        /// What it must be held against.
        bound: i128,
        /// The rule that it breaks.
        rule: TapeRule,
    },
    /// A range or an index beyond the end.
    #[error("{operation}: {start}..{end} is not within 0..{len}")]
    OutOfRange {
        /// What was refused.
        operation: &'static str,
        /// First element.
        start: usize,
        /// One past the last element.
        end: usize,
        /// How many elements there are.
        len: usize,
    },
    /// A captured call was launched as often as the arena can count: a begin moves on, and can be captured anew.
    #[error("{operation}: the arena's generations are used up")]
    Exhausted {
        /// What was refused.
        operation: &'static str,
    },
    /// Addresses that a driver has reserved and mapped nothing to.
    #[error("{operation}: nothing is mapped there")]
    Unmapped {
        /// What was refused.
        operation: &'static str,
    },
    /// A range of raw memory that leaves its allocation, by the driver's word.
    #[error(
        "{operation}: {bytes} bytes at {start:#x} are not within the allocation of {} bytes at {:#x}",
        allocation.1, allocation.0
    )]
    OutOfAllocation {
        /// What was refused.
        operation: &'static str,
        /// Where the range starts.
        start: usize,
        /// Its size in bytes.
        bytes: usize,
        /// Where the allocation starts, and its size in bytes.
        allocation: (usize, usize),
    },
    /// A device that can't reach the memory of another.
    #[error("{operation}: device {from} can't reach the memory of device {to}")]
    Unreachable {
        /// What was refused.
        operation: &'static str,
        /// The ordinal of the device that would read or write.
        from: u32,
        /// The ordinal of the device whose memory it is.
        to: u32,
    },
    /// A kernel asked for more than a room for device-sized outputs holds. Nothing was written past it.
    #[error("{operation}: the kernel asked for {needed} bytes of a room of {capacity}")]
    Overflow {
        /// What was refused.
        operation: &'static str,
        /// What the kernel asked for in all, in bytes.
        needed: u64,
        /// What there is, in bytes.
        capacity: u64,
    },
    /// Source and destination differ in length.
    #[error("{operation}: {actual} elements where {expected} are needed")]
    LengthMismatch {
        /// What was refused.
        operation: &'static str,
        /// How many elements there must be.
        expected: usize,
        /// How many there were.
        actual: usize,
    },
    /// Deferred work panicked; its call is abandoned.
    #[error("deferred work panicked: {message}")]
    Panicked {
        /// The panic's message, where it had one.
        message: String,
    },
    /// A plan, or what is to be planned, breaks a rule.
    #[error("the plan is refused: {0}")]
    Plan(Box<PlanFault>),
    /// A schedule does not keep its plan.
    #[error("the schedule does not keep its plan: {0}")]
    Schedule(Box<Hazard>),
    /// The plan has no such node.
    #[error("{operation}: the plan has no node {node}")]
    UnknownNode {
        /// What was refused.
        operation: &'static str,
        /// The node.
        node: u64,
    },
    /// A start beyond a node's slot.
    #[error(
        "{operation}: byte {start} is beyond the slot of node {node}, which is {size} bytes from byte {offset} of the arena on"
    )]
    OutOfSlot {
        /// What was refused.
        operation: &'static str,
        /// The node.
        node: u64,
        /// Where its slot begins, in bytes from the arena's start.
        offset: u64,
        /// The slot's size in bytes.
        size: u64,
        /// The start that was asked for, in bytes from the slot's.
        start: u64,
    },
    /// A start beyond a planned arena.
    #[error("{operation}: byte {start} is beyond the arena, which has {size} bytes")]
    OutOfArena {
        /// What was refused.
        operation: &'static str,
        /// The arena's size in bytes.
        size: u64,
        /// The start that was asked for, in bytes from the arena's.
        start: u64,
    },
    /// An offset that is no number of elements, or none of 32 bits.
    #[error("byte {offset}, where node {node} begins, is no 32-bit number of elements of {element} bytes")]
    ElementOffset {
        /// The node.
        node: u64,
        /// Where its slot begins, in bytes from the arena's start.
        offset: u64,
        /// The size of an element in bytes.
        element: usize,
    },
    /// Two arenas whose plans differ.
    #[error("{operation}: the plans differ: {own:032x} and {other:032x}")]
    AnotherPlan {
        /// What was refused.
        operation: &'static str,
        /// The fingerprint of one's own plan.
        own: u128,
        /// That of the other.
        other: u128,
    },
    /// Copies of one list that clash: what comes of them would depend on their order.
    #[error("{operation}: copies {first} and {second} of the list clash")]
    ClashingCopies {
        /// What was refused.
        operation: &'static str,
        /// Two copies, by their places in the list. The first of them writes bytes that the other reads or writes.
        first: usize,
        /// The other.
        second: usize,
    },
    /// A table of buffers that can't be read.
    #[error("line {line}, column `{column}`: {reason}")]
    Table {
        /// The line, from one on; zero for what is missing in the whole table.
        line: usize,
        /// The column, by its header; the header itself where that can't be read.
        column: String,
        /// What is wrong, with the value.
        reason: String,
    },
    /// A scratch scope that is not the innermost one of the call that it is used with.
    #[error("{operation}: the scratch scope is not the innermost one of this call")]
    ScratchOrder {
        /// What was refused.
        operation: &'static str,
    },
    /// The result of deferred work was taken before.
    #[error("the deferred result was taken before")]
    AlreadyTaken,
}

/// The rule that an offset of a tape breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TapeRule {
    /// Offsets start at zero or above.
    Negative,
    /// An offset is never below the one before it.
    Decreasing,
    /// The last offset lies within the bytes.
    BeyondBytes,
}

impl std::fmt::Display for TapeRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Negative => "below",
            Self::Decreasing => "below the one before it,",
            Self::BeyondBytes => "beyond the bytes, whose length is",
        })
    }
}

struct Absent(Vendor);

impl std::fmt::Display for Absent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Vendor::Host => f.write_str("unavailable"),
            vendor => write!(f, "{vendor} is unavailable"),
        }
    }
}

struct Parenthesis<'a>(&'a str);

impl std::fmt::Display for Parenthesis<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

struct Room {
    free: Option<u64>,
    total: Option<u64>,
}

impl std::fmt::Display for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.free, self.total) {
            (Some(free), Some(total)) => write!(f, ", {free} of {total} are free"),
            _ => Ok(()),
        }
    }
}

/// The words that the bindings of every language share; each [`Error`] has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// A stale view, a wrong executor, a bad tape, a range, a size or an option that can't be.
    InvalidArgument,
    /// Host access to device memory.
    Device,
    /// Somebody else holds the arena.
    Contended,
    /// The driver or the system has no memory of that size.
    OutOfMemory,
    /// The arena's own limits: bytes, readers, outputs.
    OverLimit,
    /// No driver, no device, no worker thread.
    Unavailable,
    /// Not yet: the work has not passed.
    Pending,
    /// A driver call or the caller's deferred work failed.
    Driver,
}

impl Error {
    /// Whether a driver has lost the device or the context: nothing that was queued there goes on.
    #[cfg_attr(not(gpu), allow(dead_code, reason = "only a device is lost"))]
    pub(crate) fn is_of_lost_device(&self) -> bool {
        // The driver or the context has gone; failures of the hardware and of kernels, which break their context.
        matches!(
            self,
            Self::Driver { code: 4 | 46 | 201 | 214 | 220 | 700 | 702 | 709 | 710 | 714..=719 | 721, .. }
        )
    }

    /// The word that bindings use for this error.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Stale { .. }
            | Self::HostMemory { .. }
            | Self::WrongExecutor { .. }
            | Self::SizeOverflow { .. }
            | Self::Alignment { .. }
            | Self::Option { .. }
            | Self::WrongVendor { .. }
            | Self::WouldDeadlock { .. }
            | Self::Capturing { .. }
            | Self::Tape { .. }
            | Self::OutOfRange { .. }
            | Self::Unmapped { .. }
            | Self::OutOfAllocation { .. }
            | Self::Unreachable { .. }
            | Self::LengthMismatch { .. }
            | Self::Plan(_)
            | Self::Schedule(_)
            | Self::Table { .. }
            | Self::UnknownNode { .. }
            | Self::OutOfSlot { .. }
            | Self::OutOfArena { .. }
            | Self::ElementOffset { .. }
            | Self::AnotherPlan { .. }
            | Self::ClashingCopies { .. }
            | Self::ScratchOrder { .. }
            | Self::AlreadyTaken => Status::InvalidArgument,
            Self::Device { .. } => Status::Device,
            Self::Contended { .. } => Status::Contended,
            Self::Pending { .. } => Status::Pending,
            Self::TooManyReaders { .. }
            | Self::TooManyOutputs { .. }
            | Self::OverLimit { .. }
            | Self::Exhausted { .. }
            | Self::Overflow { .. } => Status::OverLimit,
            Self::OutOfMemory { .. } => Status::OutOfMemory,
            Self::Unavailable { .. } => Status::Unavailable,
            Self::Driver { .. } | Self::ConflictingClaims { .. } | Self::Panicked { .. } => Status::Driver,
        }
    }
}

/// A refusal that gives back what it was handed, so that nothing is lost: the closure of a deferred call, a call,
/// an arena.
///
/// `?` turns it into its [`Error`].
///
/// ```
/// use device_arena::{Arena, Error, Refused};
///
/// let arena = Arena::host();
/// let call = arena.begin()?;
/// let output = call.output_from_slice(&[1u8, 2, 3])?;
/// let view = match output.publish_prefix(9) {
///     Ok(view) => view,
///     Err(Refused { error, value: output }) => {
///         assert!(matches!(error, Error::OutOfRange { end: 9, len: 3, .. }));
///         output.publish() // nothing is lost
///     }
/// };
/// call.finish()?;
/// assert_eq!(view.len(), 3);
/// # Ok::<(), Error>(())
/// ```
pub struct Refused<T> {
    /// Why it was refused.
    pub error: Error,
    /// What was handed in.
    pub value: T,
}

impl<T> Refused<T> {
    pub(crate) fn new(error: Error, value: T) -> Self {
        Self { error, value }
    }
}

impl<T> std::fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<T> std::fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl<T> std::error::Error for Refused<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // It is displayed as its own error already.
        std::error::Error::source(&self.error)
    }
}

impl<T> From<Refused<T>> for Error {
    fn from(refused: Refused<T>) -> Self {
        refused.error
    }
}
