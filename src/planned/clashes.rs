//! Whether copies of one list clash: whether one of them writes what another reads or writes, so that what comes of them
//! would depend on their order.

use crate::backend::{CopyRange, CopyRows};
use crate::error::{Error, Result};

/// One copy's ends as numbers, and its place in the list.
#[derive(Clone, Copy)]
struct Ends {
    to: usize,
    from: usize,
    bytes: usize,
    place: usize,
}

/// # Errors
///
/// [`Error::ClashingCopies`] with two of them.
pub(super) fn check(operation: &'static str, ranges: &[CopyRange]) -> Result<()> {
    // Copies onto themselves, and of nothing, do nothing.
    let ends = ranges.iter().enumerate().map(|(place, range)| Ends {
        to: range.destination.addr(),
        from: range.source.addr(),
        bytes: range.bytes,
        place,
    });
    let moving = |ends: &Ends| ends.bytes != 0 && ends.to != ends.from;
    if are_apart_in_order(ends.clone().filter(moving)) {
        return Ok(());
    }
    let mut sorted: Vec<Ends> = ends.filter(moving).collect();
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

/// Rows in order as ranges.
pub(super) fn spelt_out(rows: &CopyRows) -> impl Iterator<Item = CopyRange> + use<> {
    let rows = *rows;
    (0..rows.count).map(move |turn| CopyRange {
        destination: rows.destination.wrapping_add(turn * rows.destination_stride),
        source: rows.source.wrapping_add(turn * rows.source_stride),
        bytes: rows.bytes,
    })
}

/// Whether rows in order plainly don't clash: none of the destination touches the next, and all of the source lies on one
/// side of it.
pub(super) fn rows_are_apart(rows: &CopyRows) -> bool {
    let Some(last) = rows.count.checked_sub(1) else { return true };
    let (to, from) = (rows.destination.addr(), rows.source.addr());
    let (to_end, from_end) =
        (to + last * rows.destination_stride + rows.bytes, from + last * rows.source_stride + rows.bytes);
    (last == 0 || rows.destination_stride >= rows.bytes) && (to_end <= from || from_end <= to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(copies: &[(usize, usize, usize)]) -> Result<()> {
        let range = |&(to, from, bytes): &(usize, usize, usize)| CopyRange {
            destination: std::ptr::without_provenance_mut(to),
            source: std::ptr::without_provenance(from),
            bytes,
        };
        check("copy", &copies.iter().map(range).collect::<Vec<_>>())
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
}
