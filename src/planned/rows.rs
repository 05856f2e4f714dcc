//! Rows of one length at even distances, said without spelling them out.

use crate::backend::{CopyRange, CopyRows, RowIndices};
use crate::error::{Error, Result};
use crate::plan::MemoryPlan;

/// Which rows, one for each that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RowOrder<'i> {
    /// Row 0, row 1, and so on.
    #[default]
    InOrder,
    /// The rows of these numbers.
    At(&'i [u32]),
}

/// One side of a copy of rows.
#[derive(Debug, Clone, Copy, Default)]
struct Side<'i> {
    /// None until it is said.
    node: Option<u64>,
    first: usize,
    stride: usize,
    order: RowOrder<'i>,
}

/// Rows of one length, from even distances to even distances. All numbers are elements. Rows may reach beyond the slot that
/// they start in, as where the slots of a model's layers lie side by side: they are held against the arena.
///
/// ```
/// use device_arena::{PlannedArena, Rows};
/// use device_arena::plan::{MemoryPlan, Slot};
///
/// // Two layers' keys, four rows of two each, and a new row for each layer.
/// let slots = [Slot::new(0, 0, 32), Slot::new(1, 32, 32), Slot::new(9, 64, 16)];
/// let arena = PlannedArena::host(MemoryPlan::builder().slots(slots).build()?)?;
/// let mut run = arena.begin()?;
/// run.write(9, &[1.0f32, 2.0, 3.0, 4.0])?;
/// let step = 3; // the row that is filled now
/// let mut copies = run.copies();
/// copies.rows::<f32>(&Rows::new(2, 2).from(9, 0, 2).to(0, step * 2, 8))?;
/// copies.launch()?;
/// let view = run.finish()?;
/// assert_eq!(*view.slot::<f32>(1)?.slice(6..)?.read()?, [3.0, 4.0]);
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Rows<'i> {
    len: usize,
    count: usize,
    to: Side<'i>,
    from: Side<'i>,
}

impl<'i> Rows<'i> {
    /// `count` rows of `len` elements each. Where they come from and go to is said by [`from`](Self::from) and [`to`](Self::to).
    #[must_use]
    pub fn new(count: usize, len: usize) -> Self {
        Self { len, count, ..Self::default() }
    }

    /// The same, to rows that are `stride` elements apart, the first of them at element `first` of a node.
    #[must_use]
    pub fn to(mut self, node: u64, first: usize, stride: usize) -> Self {
        self.to = Side { node: Some(node), first, stride, ..self.to };
        self
    }

    /// The same, from rows that are `stride` elements apart, the first of them at element `first` of a node.
    #[must_use]
    pub fn from(mut self, node: u64, first: usize, stride: usize) -> Self {
        self.from = Side { node: Some(node), first, stride, ..self.from };
        self
    }

    /// The same, to the rows of these numbers: as many as are copied.
    #[must_use]
    pub fn to_rows(mut self, order: RowOrder<'i>) -> Self {
        self.to.order = order;
        self
    }

    /// The same, from the rows of these numbers: as many as are copied. One may come more than once.
    #[must_use]
    pub fn from_rows(mut self, order: RowOrder<'i>) -> Self {
        self.from.order = order;
        self
    }

    /// Whether both sides are in order, which a launch takes as it is.
    pub(super) fn are_in_order(&self) -> bool {
        self.to.order == RowOrder::InOrder && self.from.order == RowOrder::InOrder
    }

    /// In bytes from the arena's start, and held against it.
    pub(super) fn in_bytes<T>(&self, plan: &MemoryPlan) -> Result<ByteRows<'i>> {
        let bytes = (self.len as u64).saturating_mul(size_of::<T>() as u64);
        let side = |side: &Side<'i>| {
            let unsaid =
                Error::Option { option: "rows", reason: "no node is given that they come from, or go to" };
            let node = side.node.ok_or(unsaid)?;
            let start = plan.span::<T>("rows", node, side.first, 0)?.start as u64;
            let stride = (side.stride as u64).saturating_mul(size_of::<T>() as u64);
            let last = match side.order {
                RowOrder::InOrder => self.count.checked_sub(1).map(|last| last as u64),
                RowOrder::At(rows) if rows.len() != self.count => {
                    let (expected, actual) = (self.count, rows.len());
                    return Err(Error::LengthMismatch { operation: "rows", expected, actual });
                }
                RowOrder::At(rows) => rows.iter().max().map(|&row| u64::from(row)),
            };
            let end = last.map_or(start, |last| {
                start.saturating_add(last.saturating_mul(stride)).saturating_add(bytes)
            });
            if end > plan.total() {
                return Err(Error::OutOfArena { operation: "rows", size: plan.total(), start: end });
            }
            // All of it is within the arena, which is one block.
            Ok(ByteSide { start: start as usize, stride: stride as usize, order: side.order })
        };
        let (to, from) = (side(&self.to)?, side(&self.from)?);
        Ok(ByteRows { count: self.count, bytes: bytes as usize, to, from })
    }
}

/// Rows in bytes from an arena's start, all within it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteRows<'i> {
    count: usize,
    bytes: usize,
    to: ByteSide<'i>,
    from: ByteSide<'i>,
}

#[derive(Debug, Clone, Copy)]
struct ByteSide<'i> {
    start: usize,
    stride: usize,
    order: RowOrder<'i>,
}

impl ByteSide<'_> {
    fn row(&self, turn: usize) -> usize {
        let row = match self.order {
            RowOrder::InOrder => turn,
            RowOrder::At(rows) => rows.get(turn).copied().unwrap_or_default() as usize,
        };
        self.start + row * self.stride
    }
}

impl ByteRows<'_> {
    /// Whether there is nothing to copy, however long a row would be, or however many would stay where they are.
    pub(super) fn is_empty(&self) -> bool {
        let (to, from) = (&self.to, &self.from);
        let stay = to.order == RowOrder::InOrder && from.order == RowOrder::InOrder && to.start == from.start;
        self.count == 0 || self.bytes == 0 || (stay && (self.count == 1 || to.stride == from.stride))
    }

    /// Spelt out, one range a row.
    pub(super) fn ranges(&self, base: *mut u8) -> impl ExactSizeIterator<Item = CopyRange> + use<'_> {
        (0..self.count).map(move |turn| CopyRange {
            destination: base.wrapping_add(self.to.row(turn)),
            source: base.wrapping_add(self.from.row(turn)).cast_const(),
            bytes: self.bytes,
        })
    }

    /// As one launch takes them; both sides are in order.
    pub(super) fn as_rows(&self, base: *mut u8) -> CopyRows {
        CopyRows {
            destination: base.wrapping_add(self.to.start),
            source: base.wrapping_add(self.from.start).cast_const(),
            destination_stride: self.to.stride,
            source_stride: self.from.stride,
            bytes: self.bytes,
            count: self.count,
            destination_rows: RowIndices::InOrder,
            source_rows: RowIndices::InOrder,
        }
    }
}
