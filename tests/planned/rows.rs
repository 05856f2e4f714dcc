//! Rows that are too many, too long or too far.

use device_arena::{Error, Rows};

use crate::promises::each;

#[test]
fn rows_of_nothing_are_nothing_however_long_they_would_be() {
    each(|_, planned| {
        let mut run = planned.begin().unwrap();
        let mut copies = run.copies();
        copies.rows::<u64>(&Rows::new(0, usize::MAX).from(2, 0, usize::MAX).to(1, 0, 1)).unwrap();
        copies.rows::<u64>(&Rows::new(3, 0).from(2, 0, 1).to(1, 0, 1)).unwrap();
        let too_long = copies.rows::<u64>(&Rows::new(1, usize::MAX).from(2, 0, 0).to(1, 0, 0));
        assert!(matches!(too_long, Err(Error::OutOfArena { .. })));
        let too_far = copies.rows::<u64>(&Rows::new(2, 1).from(2, 0, usize::MAX).to(1, 0, 1));
        assert!(matches!(too_far, Err(Error::OutOfArena { .. })));
        copies.launch().unwrap();
    });
}

/// All of them are row 0, which is written again and again.
#[test]
fn rows_without_end_to_one_place_clash() {
    each(|_, planned| {
        let mut run = planned.begin().unwrap();
        for prepared in [false, true] {
            let mut copies = run.copies();
            copies.copy::<u8>((1, 500), (2, 0), 8).unwrap();
            copies.rows::<u8>(&Rows::new(usize::MAX, 1).to(1, 0, 0).from(2, 0, 0)).unwrap();
            let refused = if prepared { copies.prepare().map(drop) } else { copies.launch() };
            assert!(matches!(refused, Err(Error::ClashingCopies { first: 1, second: 2, .. })), "{refused:?}");
        }
    });
}

#[test]
fn rows_without_end_that_stay_where_they_are_take_no_time() {
    each(|_, planned| {
        let mut run = planned.begin().unwrap();
        for prepared in [false, true] {
            let mut copies = run.copies();
            copies.copy::<u8>((1, 500), (2, 0), 8).unwrap();
            copies.rows::<u8>(&Rows::new(usize::MAX, 100).to(1, 0, 0).from(1, 0, 0)).unwrap();
            if prepared {
                let list = copies.prepare().unwrap();
                assert_eq!((list.count(), list.bytes()), (1, 8));
                list.launch(&mut run).unwrap();
            } else {
                copies.launch().unwrap();
            }
        }
    });
}

#[test]
fn rows_without_a_node_are_refused_and_mean_no_node_zero() {
    each(|_, planned| {
        let mut run = planned.begin().unwrap();
        let mut copies = run.copies();
        for rows in [Rows::new(1, 1).to(1, 0, 1), Rows::new(1, 1).from(2, 0, 1), Rows::new(0, 0)] {
            let refused = copies.rows::<u8>(&rows);
            assert!(matches!(refused, Err(Error::Option { option: "rows", .. })), "{rows:?}");
        }
        copies.launch().unwrap();
    });
}
