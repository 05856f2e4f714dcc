//! Tapes that own their bytes.

use std::sync::Arc;

use super::TapeView;
use crate::backend::Vendor;
use crate::error::{Error, Refused, Result};

/// A tape that owns its bytes and offsets. Clones share them, so that a tape can be moved into deferred work.
///
/// ```
/// use device_arena::Tape;
///
/// let tape = Tape::from_items(["one", "two", "three"])?;
/// assert_eq!(tape.view().get(1)?, b"two");
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tape {
    bytes: Arc<Vec<u8>>,
    offsets: Arc<Vec<u64>>,
}

impl Tape {
    /// A tape of strings or byte slices, copied.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn from_items<I: AsRef<[u8]>>(items: impl IntoIterator<Item = I>) -> Result<Self> {
        let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
        push(&mut offsets, &[0u64])?;
        for item in items {
            push(&mut bytes, item.as_ref())?;
            push(&mut offsets, &[bytes.len() as u64])?;
        }
        Ok(Self::of_checked(bytes, offsets))
    }

    /// A tape of bytes and offsets that the caller has, taken over without copying.
    ///
    /// # Errors
    ///
    /// [`Error::Tape`], and both with it.
    #[expect(clippy::type_complexity, reason = "both parts come back")]
    pub fn from_parts(bytes: Vec<u8>, offsets: Vec<u64>) -> Result<Self, Refused<(Vec<u8>, Vec<u64>)>> {
        match TapeView::of(&bytes, &offsets) {
            Ok(_) => Ok(Self::of_checked(bytes, offsets)),
            Err(error) => Err(Refused::new(error, (bytes, offsets))),
        }
    }

    /// A tape whose offsets keep the rules by how they were made.
    pub(crate) fn of_checked(bytes: Vec<u8>, offsets: Vec<u64>) -> Self {
        Self { bytes: Arc::new(bytes), offsets: Arc::new(offsets) }
    }

    /// The look at it that calls take.
    #[must_use]
    pub fn view(&self) -> TapeView<'_> {
        TapeView::of_checked(&self.bytes, &self.offsets)
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
}

fn push<T: Copy>(values: &mut Vec<T>, more: &[T]) -> Result<()> {
    values.try_reserve(more.len()).map_err(|_| Error::OutOfMemory {
        vendor: Vendor::Host,
        operation: "tape",
        requested: size_of_val(more),
        free: None,
        total: None,
    })?;
    values.extend_from_slice(more);
    Ok(())
}
