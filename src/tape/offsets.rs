//! Offsets of the four widths that tapes come with.

use std::borrow::Cow;

use crate::error::{Error, Result, TapeRule};

mod sealed {
    pub trait Sealed {}
}

/// The types that offsets can be of: `u32`, `u64`, `i32` and `i64`.
pub trait Offset: Copy + Into<i128> + sealed::Sealed + 'static {
    #[doc(hidden)]
    fn wrap(offsets: &[Self]) -> Offsets<'_>;
}

/// Offsets of one width.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)]
pub enum Offsets<'a> {
    U32(&'a [u32]),
    U64(&'a [u64]),
    I32(&'a [i32]),
    I64(&'a [i64]),
}

macro_rules! offset {
    ($($type:ty => $variant:ident),+) => {
        $(
            impl sealed::Sealed for $type {}
            impl Offset for $type {
                fn wrap(offsets: &[Self]) -> Offsets<'_> {
                    Offsets::$variant(offsets)
                }
            }
        )+
    };
}

offset!(u32 => U32, u64 => U64, i32 => I32, i64 => I64);

impl Offsets<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::U32(offsets) => offsets.len(),
            Self::U64(offsets) => offsets.len(),
            Self::I32(offsets) => offsets.len(),
            Self::I64(offsets) => offsets.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<usize> {
        match self {
            Self::U32(offsets) => usize::try_from(*offsets.get(index)?).ok(),
            Self::U64(offsets) => usize::try_from(*offsets.get(index)?).ok(),
            Self::I32(offsets) => usize::try_from(*offsets.get(index)?).ok(),
            Self::I64(offsets) => usize::try_from(*offsets.get(index)?).ok(),
        }
    }

    /// The offsets as 64-bit words, copied only where they are not so wide: none is negative.
    pub(crate) fn as_words(&self) -> Cow<'_, [u64]> {
        match self {
            Self::U32(offsets) => offsets.iter().map(|&offset| u64::from(offset)).collect(),
            Self::U64(offsets) => Cow::Borrowed(offsets),
            Self::I32(offsets) => offsets.iter().map(|offset| u64::from(offset.unsigned_abs())).collect(),
            Self::I64(offsets) => Cow::Borrowed(bytemuck::cast_slice(offsets)),
        }
    }

    /// Holds every offset against the rules of a tape of `byte_len` bytes.
    pub(super) fn check(&self, byte_len: usize) -> Result<()> {
        match self {
            Self::U32(offsets) => check(offsets, byte_len),
            Self::U64(offsets) => check(offsets, byte_len),
            Self::I32(offsets) => check(offsets, byte_len),
            Self::I64(offsets) => check(offsets, byte_len),
        }
    }
}

fn check<O: Offset + PartialOrd>(offsets: &[O], byte_len: usize) -> Result<()> {
    let Some(first) = offsets.first() else { return Ok(()) };
    let broken =
        |index, value: O, bound: i128, rule| Err(Error::Tape { index, value: value.into(), bound, rule });
    if (*first).into() < 0 {
        return broken(0, *first, 0, TapeRule::Negative);
    }
    // A negative offset behind the first is below the one before it; its own rule says more.
    let pairs = offsets.iter().zip(offsets.iter().skip(1)).enumerate();
    for (index, (before, offset)) in pairs {
        if offset < before {
            let negative = (*offset).into() < 0;
            let (bound, rule) =
                if negative { (0, TapeRule::Negative) } else { ((*before).into(), TapeRule::Decreasing) };
            return broken(index + 1, *offset, bound, rule);
        }
    }
    match offsets.last() {
        Some(last) if (*last).into() > byte_len as i128 => {
            broken(offsets.len() - 1, *last, byte_len as i128, TapeRule::BeyondBytes)
        }
        _ => Ok(()),
    }
}
