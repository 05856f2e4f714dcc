//! Published tapes: the output of one call that is the input of the next.

use super::{ReadGuard, View};
use crate::error::Result;
use crate::tape::{Tape, TapeView};

/// A tape that a call published: a view of its bytes and one of its offsets.
///
/// ```
/// # use device_arena::Arena;
/// let (first, second) = (Arena::host(), Arena::host());
/// let call = first.begin()?;
/// let mut words = call.tape_output()?;
/// words.push(b"to be")?;
/// words.push(b"read next")?;
/// let words = words.publish();
/// call.finish()?;
///
/// let guard = words.read()?; // holds the first arena while the second call reads from it
/// let call = second.begin()?;
/// let tape = guard.tape();
/// let mut lengths = call.output::<u64>(tape.len())?;
/// lengths.fill_with(|i| tape.range(i).map_or(0, |range| range.len() as u64))?;
/// let lengths = lengths.publish();
/// call.finish()?;
/// assert_eq!(*lengths.read()?, [5, 9]);
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PublishedTape {
    bytes: View<u8>,
    offsets: View<u64>,
}

impl PublishedTape {
    pub(crate) fn new(bytes: View<u8>, offsets: View<u64>) -> Self {
        Self { bytes, offsets }
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The view of the bytes.
    #[must_use]
    pub fn bytes(&self) -> &View<u8> {
        &self.bytes
    }

    /// The view of the offsets, in bytes: one more than there are items, the first of them zero.
    #[must_use]
    pub fn offsets(&self) -> &View<u64> {
        &self.offsets
    }

    /// See [`View::at_generation`].
    ///
    /// # Safety
    ///
    /// As there.
    #[cfg_attr(not(gpu), allow(dead_code, reason = "only a device captures"))]
    pub(crate) unsafe fn at_generation(&self, generation: u64) -> Self {
        // SAFETY: the caller's promise is the same.
        unsafe { Self::new(self.bytes.at_generation(generation), self.offsets.at_generation(generation)) }
    }

    /// The generation of the call that published the tape.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.bytes.generation()
    }

    /// Whether the arena is at the tape's generation still: see [`View::is_current`].
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.bytes.is_current()
    }

    /// A copy of the tape in the host's own memory.
    ///
    /// # Errors
    ///
    /// As [`View::to_vec`].
    pub fn to_tape(&self) -> Result<Tape> {
        // The guard keeps both parts of one generation.
        let _guard = self.read()?;
        Ok(Tape::of_checked(self.bytes.to_vec()?, self.offsets.to_vec()?))
    }

    /// Holds the tape for reading on the host. It counts as two readers: one of the bytes, one of the offsets.
    ///
    /// # Errors
    ///
    /// As [`View::read`].
    pub fn read(&self) -> Result<TapeGuard<'_>> {
        Ok(TapeGuard { bytes: self.bytes.read()?, offsets: self.offsets.read()? })
    }
}

/// Holds a published tape for reading.
#[derive(Debug)]
#[must_use = "the tape is held only as long as the guard"]
pub struct TapeGuard<'v> {
    bytes: ReadGuard<'v, u8>,
    offsets: ReadGuard<'v, u64>,
}

impl TapeGuard<'_> {
    /// The tape.
    #[must_use]
    pub fn tape(&self) -> TapeView<'_> {
        // A tape output keeps the rules of a tape as it grows.
        TapeView::of_checked(&self.bytes, &self.offsets)
    }
}
