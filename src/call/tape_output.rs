//! Outputs that are tapes: bytes and offsets, grown together and published together.

use super::Writer;
use crate::error::Result;
use crate::view::PublishedTape;

/// A tape that grows item by item.
///
/// Published, it is the next call's input.
///
/// ```
/// use device_arena::Arena;
///
/// let arena = Arena::host();
/// let call = arena.begin()?;
/// let mut words = call.tape_output()?;
/// for word in "of a length that only the call knows".split(' ') {
///     words.push(word.as_bytes())?;
/// }
/// let words = words.publish();
/// call.finish()?;
/// let guard = words.read()?;
/// assert_eq!(guard.tape().get(3)?, b"that");
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a tape output that is dropped leaves nothing to be read"]
pub struct TapeOutput {
    offsets: Writer<u64>,
    bytes: Writer<u8>,
}

impl TapeOutput {
    pub(super) fn new(mut offsets: Writer<u64>, bytes: Writer<u8>) -> Result<Self> {
        offsets.push(0)?;
        Ok(Self { offsets, bytes })
    }

    /// How many items are finished.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether no item is finished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes are written, those of an unfinished item included.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Writes one item.
    ///
    /// # Errors
    ///
    /// As [`Writer::reserve`]; the tape is as it was.
    pub fn push(&mut self, item: &[u8]) -> Result<()> {
        self.offsets.reserve(1)?;
        self.bytes.extend_from_slice(item)?;
        self.end_item()
    }

    /// Writes a part of the item that [`end_item`](Self::end_item) will finish.
    ///
    /// # Errors
    ///
    /// As [`Writer::reserve`]; the tape is as it was.
    pub fn push_part(&mut self, part: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(part)
    }

    /// Finishes the item that the parts since the last one make.
    ///
    /// # Errors
    ///
    /// As [`Writer::reserve`]; the parts stay.
    pub fn end_item(&mut self) -> Result<()> {
        self.offsets.push(self.bytes.len() as u64)
    }

    /// Makes the finished items a tape, which can be read once the call has finished. Parts of an unfinished item
    /// are left out.
    #[must_use]
    pub fn publish(mut self) -> PublishedTape {
        let finished = self.offsets.as_slice().last().copied().unwrap_or(0);
        self.bytes.truncate(usize::try_from(finished).unwrap_or(usize::MAX));
        // The bytes took room last, if anything did: they go first, so that both can give back.
        let bytes = self.bytes.publish();
        PublishedTape::new(bytes, self.offsets.publish())
    }
}
