//! The answers that the model gives: the crate's refusals in words of the model's own.

/// Who holds an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Call,
    Output,
    Deferred,
    Readers(u32),
    Begin,
}

/// A refusal, with the fields that the design promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Stale {
        generation: u64,
        dropped: bool,
    },
    Contended(Holder),
    Pending {
        generation: u64,
    },
    TooManyReaders {
        limit: u32,
    },
    TooManyOutputs {
        limit: u32,
    },
    SizeOverflow,
    Alignment {
        alignment: usize,
        largest: usize,
    },
    OverLimit {
        requested: usize,
        reserved: usize,
        limit: usize,
    },
    OutOfMemory {
        requested: usize,
    },
    OutOfRange {
        start: usize,
        end: usize,
        len: usize,
    },
    LengthMismatch {
        expected: usize,
        actual: usize,
    },
    /// Host access to a device's memory.
    Device {
        ordinal: u32,
    },
    /// A device's access to host pages.
    HostMemory,
    WrongExecutor,
    Panicked(String),
    AlreadyTaken,
    /// The error that a deferral of the program answers.
    Scripted(i64),
    /// Whatever no program should ever meet.
    Other(String),
}

/// The words that bindings share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    InvalidArgument,
    Device,
    Contended,
    OutOfMemory,
    OverLimit,
    Pending,
    Driver,
    Other,
}

impl Answer {
    /// The word for this refusal.
    pub(crate) fn word(&self) -> Word {
        match self {
            Self::Stale { .. }
            | Self::SizeOverflow
            | Self::Alignment { .. }
            | Self::OutOfRange { .. }
            | Self::LengthMismatch { .. }
            | Self::HostMemory
            | Self::WrongExecutor
            | Self::AlreadyTaken => Word::InvalidArgument,
            Self::Device { .. } => Word::Device,
            Self::Contended(_) => Word::Contended,
            Self::Pending { .. } => Word::Pending,
            Self::TooManyReaders { .. } | Self::TooManyOutputs { .. } | Self::OverLimit { .. } => {
                Word::OverLimit
            }
            Self::OutOfMemory { .. } => Word::OutOfMemory,
            Self::Panicked(_) | Self::Scripted(_) => Word::Driver,
            Self::Other(_) => Word::Other,
        }
    }

    /// The name under which a report counts this refusal.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Stale { dropped: false, .. } => "stale: rewound",
            Self::Stale { dropped: true, .. } => "stale: arena dropped",
            Self::Contended(Holder::Call) => "contended: call",
            Self::Contended(Holder::Output) => "contended: output",
            Self::Contended(Holder::Deferred) => "contended: deferred",
            Self::Contended(Holder::Readers(_)) => "contended: readers",
            Self::Contended(Holder::Begin) => "contended: begin",
            Self::Pending { .. } => "pending",
            Self::TooManyReaders { .. } => "too many readers",
            Self::TooManyOutputs { .. } => "too many outputs",
            Self::SizeOverflow => "size overflow",
            Self::Alignment { .. } => "alignment",
            Self::OverLimit { .. } => "over limit",
            Self::OutOfMemory { .. } => "out of memory",
            Self::OutOfRange { .. } => "out of range",
            Self::LengthMismatch { .. } => "length mismatch",
            Self::Device { .. } => "device memory",
            Self::HostMemory => "host memory",
            Self::WrongExecutor => "wrong executor",
            Self::Panicked(_) => "deferred panic",
            Self::AlreadyTaken => "already taken",
            Self::Scripted(_) => "deferred error",
            Self::Other(_) => "other",
        }
    }
}
