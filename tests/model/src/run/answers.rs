//! The crate's errors in the model's words.

use device_arena::{Error, Holder, StaleReason, Status};

use crate::model::{self, Answer, Word};

/// The field `code` of the errors that deferrals answer.
pub(super) const SCRIPTED: &str = "scripted";

/// The model's word for who holds an arena.
pub(super) fn holder_of(holder: Holder) -> model::Holder {
    match holder {
        Holder::Call => model::Holder::Call,
        Holder::Output => model::Holder::Output,
        Holder::Deferred => model::Holder::Deferred,
        Holder::Readers(count) => model::Holder::Readers(count),
        _ => model::Holder::Begin,
    }
}

/// The model's word for an error, with the fields that it checks.
pub(super) fn answer(error: &Error) -> Answer {
    match error {
        Error::Stale { generation, reason } => {
            Answer::Stale { generation: *generation, dropped: *reason == StaleReason::ArenaDropped }
        }
        Error::Contended { holder, .. } => Answer::Contended(holder_of(*holder)),
        Error::Pending { generation, .. } => Answer::Pending { generation: *generation },
        Error::TooManyReaders { limit } => Answer::TooManyReaders { limit: *limit },
        Error::TooManyOutputs { limit } => Answer::TooManyOutputs { limit: *limit },
        Error::SizeOverflow { .. } => Answer::SizeOverflow,
        Error::Alignment { alignment, largest } => {
            Answer::Alignment { alignment: *alignment, largest: *largest }
        }
        Error::OverLimit { requested, reserved, limit } => {
            Answer::OverLimit { requested: *requested, reserved: *reserved, limit: *limit }
        }
        Error::OutOfMemory { requested, .. } => Answer::OutOfMemory { requested: *requested },
        Error::OutOfRange { start, end, len, .. } => {
            Answer::OutOfRange { start: *start, end: *end, len: *len }
        }
        Error::LengthMismatch { expected, actual, .. } => {
            Answer::LengthMismatch { expected: *expected, actual: *actual }
        }
        Error::Device { ordinal, .. } => Answer::Device { ordinal: *ordinal },
        Error::HostMemory { .. } => Answer::HostMemory,
        Error::WrongExecutor { .. } => Answer::WrongExecutor,
        Error::Panicked { message } => Answer::Panicked(message.clone()),
        Error::AlreadyTaken => Answer::AlreadyTaken,
        Error::Driver { operation: SCRIPTED, code, .. } => Answer::Scripted(*code),
        _ => Answer::Other(error.to_string()),
    }
}

/// The model's word for a status.
pub(super) fn word(error: &Error) -> Word {
    match error.status() {
        Status::InvalidArgument => Word::InvalidArgument,
        Status::Device => Word::Device,
        Status::Contended => Word::Contended,
        Status::OutOfMemory => Word::OutOfMemory,
        Status::OverLimit => Word::OverLimit,
        Status::Pending => Word::Pending,
        Status::Driver => Word::Driver,
        _ => Word::Other,
    }
}
