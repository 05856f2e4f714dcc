//! Whether copies of one list clash: whether one of them writes what another reads or writes, so that what comes of them
//! would depend on their order.

use crate::backend::{CopyRange, CopyRows, Vendor};
use crate::error::{Error, Result};

/// One copy's ends as numbers, and its place in the list.
#[derive(Clone, Copy)]
struct Ends {
    to: usize,
    from: usize,
    bytes: usize,
    place: usize,
}

impl Ends {
    fn new(range: &CopyRange, place: usize) -> Self {
        Self { to: range.destination.addr(), from: range.source.addr(), bytes: range.bytes, place }
    }

    /// Copies onto themselves, and of nothing, do nothing.
    fn is_moving(&self) -> bool {
        self.bytes != 0 && self.to != self.from
    }
}

/// Rows in order are copies of their own, behind all ranges. They are not kept in memory where they are plainly apart.
///
/// # Errors
///
/// [`Error::ClashingCopies`] with two of them; [`Error::OutOfMemory`] where there is none for a list of all.
pub(super) fn check(operation: &'static str, ranges: &[CopyRange], rows: &[CopyRows]) -> Result<()> {
    if let ([], [rows]) = (ranges, rows)
        && rows_are_apart(rows)
    {
        return Ok(());
    }
    let listed = ranges.iter().enumerate().map(|(place, range)| Ends::new(range, place));
    let placed = rows.iter().scan(ranges.len(), |next, rows| {
        let first = *next;
        *next = next.saturating_add(rows.count);
        Some((rows, first))
    });
    let spelt = placed.flat_map(|(rows, first)| {
        spelt_out(rows).enumerate().map(move |(turn, range)| Ends::new(&range, first.saturating_add(turn)))
    });
    let moving = listed.chain(spelt).filter(Ends::is_moving);
    if are_apart_in_order(moving.clone()) {
        return Ok(());
    }
    let mut sorted = Vec::new();
    for ends in moving {
        if sorted.try_reserve(1).is_err() {
            return Err(out_of_memory::<Ends>(operation, sorted.len().saturating_add(1)));
        }
        sorted.push(ends);
    }
    sorted.sort_unstable_by_key(|ends| ends.to);
    let clash = |one: &Ends, other: &Ends| {
        let (first, second) = (one.place.min(other.place), one.place.max(other.place));
        Err(Error::ClashingCopies { operation, first, second })
    };
    for (one, next) in sorted.iter().zip(sorted.iter().skip(1)) {
        if next.to - one.to < one.bytes {
            return clash(one, next);
        }
    }
    for reader in &sorted {
        // Destinations are apart, so that each of them is looked at by the readers alone that touch it, and by one more.
        let first = sorted.partition_point(|writer| writer.to + writer.bytes <= reader.from);
        let mut touched =
            sorted.iter().skip(first).take_while(|writer| writer.to < reader.from + reader.bytes);
        if let Some(writer) = touched.find(|writer| writer.place != reader.place) {
            return clash(writer, reader);
        }
    }
    Ok(())
}

/// The error for a list of so many that the host has no memory for.
pub(super) fn out_of_memory<T>(operation: &'static str, count: usize) -> Error {
    let requested = count.saturating_mul(size_of::<T>());
    Error::OutOfMemory { vendor: Vendor::Host, operation, requested, free: None, total: None }
}

/// In one pass: destinations that ascend without touching, and sources that lie all on one side of them.
fn are_apart_in_order(ends: impl Iterator<Item = Ends>) -> bool {
    let (mut first, mut end) = (usize::MAX, 0);
    let (mut least, mut most) = (usize::MAX, 0);
    for Ends { to, from, bytes, .. } in ends {
        if to < end {
            return false;
        }
        first = first.min(to);
        end = to + bytes;
        least = least.min(from);
        most = most.max(from + bytes);
    }
    most <= first || end <= least
}

/// Rows in order as ranges: all of them, or as many as show a clash.
fn spelt_out(rows: &CopyRows) -> impl Iterator<Item = CopyRange> + Clone + use<> {
    /// Where each row is written over the next, two neighbours of these move: no more than one row stays, unless all do.
    const ENOUGH: usize = 4;
    let rows = *rows;
    let count = if rows.destination_stride < rows.bytes { rows.count.min(ENOUGH) } else { rows.count };
    (0..count).map(move |turn| CopyRange {
        destination: rows.destination.wrapping_add(turn * rows.destination_stride),
        source: rows.source.wrapping_add(turn * rows.source_stride),
        bytes: rows.bytes,
    })
}

/// Whether rows in order plainly don't clash: none of the destination touches the next, and all of the source lies on one
/// side of it.
fn rows_are_apart(rows: &CopyRows) -> bool {
    let Some(last) = rows.count.checked_sub(1) else { return true };
    let (to, from) = (rows.destination.addr(), rows.source.addr());
    let (to_end, from_end) =
        (to + last * rows.destination_stride + rows.bytes, from + last * rows.source_stride + rows.bytes);
    (last == 0 || rows.destination_stride >= rows.bytes) && (to_end <= from || from_end <= to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::RowIndices;

    fn list(copies: &[(usize, usize, usize)]) -> Result<()> {
        let range = |&(to, from, bytes): &(usize, usize, usize)| CopyRange {
            destination: std::ptr::without_provenance_mut(to),
            source: std::ptr::without_provenance(from),
            bytes,
        };
        check("copy", &copies.iter().map(range).collect::<Vec<_>>(), &[])
    }

    fn clash(copies: &[(usize, usize, usize)]) -> Option<(usize, usize)> {
        match list(copies) {
            Ok(()) => None,
            Err(Error::ClashingCopies { first, second, .. }) => Some((first, second)),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_copy_that_overlaps_itself_clashes_with_none() {
        assert_eq!(clash(&[(100, 104, 50)]), None);
        assert_eq!(clash(&[(100, 104, 50), (200, 190, 50)]), None);
    }

    #[test]
    fn two_that_write_the_same_byte_clash() {
        assert_eq!(clash(&[(100, 500, 10), (109, 600, 10)]), Some((0, 1)));
        assert_eq!(clash(&[(100, 500, 10), (110, 600, 10)]), None);
        assert_eq!(clash(&[(109, 600, 10), (300, 700, 1), (100, 500, 10)]), Some((0, 2)));
    }

    #[test]
    fn one_that_writes_what_another_reads_clashes() {
        assert_eq!(clash(&[(100, 500, 10), (300, 105, 10)]), Some((0, 1)));
        assert_eq!(clash(&[(300, 105, 10), (100, 500, 10)]), Some((0, 1)));
        assert_eq!(clash(&[(100, 500, 10), (300, 110, 10)]), None);
    }

    #[test]
    fn readers_of_one_source_do_not_clash() {
        assert_eq!(clash(&[(100, 500, 10), (200, 500, 10), (300, 505, 10)]), None);
    }

    #[test]
    fn what_does_nothing_clashes_with_none() {
        assert_eq!(clash(&[(100, 100, 10), (100, 500, 10), (105, 700, 0)]), None);
    }

    /// Rows of 8 bytes: where they go and from where, their strides, and how many.
    fn rows((to, from): (usize, usize), strides: (usize, usize), count: usize) -> CopyRows {
        CopyRows {
            destination: std::ptr::without_provenance_mut(to),
            source: std::ptr::without_provenance(from),
            destination_stride: strides.0,
            source_stride: strides.1,
            bytes: 8,
            count,
            destination_rows: RowIndices::InOrder,
            source_rows: RowIndices::InOrder,
        }
    }

    fn strides() -> impl Iterator<Item = (usize, usize)> {
        const STRIDES: [usize; 8] = [0, 1, 3, 7, 8, 9, 16, 20];
        STRIDES.into_iter().flat_map(|to| STRIDES.map(|from| (to, from)))
    }

    #[test]
    fn rows_clash_where_they_do_when_they_are_spelt_out() {
        for (to_stride, from_stride) in strides() {
            for (from, count) in (60..140).flat_map(|from| (0..8).map(move |count| (from, count))) {
                let rows = rows((100, from), (to_stride, from_stride), count);
                let place = |row| (100 + row * to_stride, from + row * from_stride, 8);
                let spelt: Vec<_> = (0..count).map(place).collect();
                let clashes = check("copy", &[], &[rows]).is_err();
                assert_eq!(clashes, list(&spelt).is_err(), "{rows:?}");
            }
        }
    }

    #[test]
    fn rows_without_end_that_are_written_over_each_other_clash_at_once() {
        let first_two = Err(Error::ClashingCopies { operation: "copy", first: 0, second: 1 });
        assert_eq!(check("copy", &[], &[rows((100, 900), (0, 0), usize::MAX)]), first_two);
        assert_eq!(check("copy", &[], &[rows((100, 100), (0, 0), usize::MAX)]), Ok(()), "none of them moves");
        let (one, other) = (rows((100, 100), (0, 0), usize::MAX), rows((100, 900), (0, 0), 2));
        let last_two =
            Err(Error::ClashingCopies { operation: "copy", first: usize::MAX, second: usize::MAX });
        assert_eq!(check("copy", &[], &[one, other]), last_two);
    }
}
