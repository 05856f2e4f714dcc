//! Raw pointers that become tapes, and offsets that break a tape's rules.

use device_arena::{Error, MemoryKind, Offset, Tape, TapeRule, TapeView};

fn refused<O: Offset>(bytes: &[u8], offsets: &[O]) -> (usize, i128, i128, TapeRule) {
    match TapeView::of(bytes, offsets) {
        Err(Error::Tape { index, value, bound, rule }) => (index, value, bound, rule),
        other => panic!("{other:?}"),
    }
}

#[test]
fn offsets_that_break_a_rule_are_named_with_both_values() {
    let bytes = b"0123456789";
    assert_eq!(refused(bytes, &[0u32, 4, 3, 10]), (2, 3, 4, TapeRule::Decreasing));
    assert_eq!(refused(bytes, &[0u64, 4, 11]), (2, 11, 10, TapeRule::BeyondBytes));
    assert_eq!(refused(bytes, &[-1i32, 4]), (0, -1, 0, TapeRule::Negative));
    assert_eq!(refused(bytes, &[0i64, 4, i64::MIN]), (2, i128::from(i64::MIN), 0, TapeRule::Negative));
    assert_eq!(refused(bytes, &[u64::MAX]), (0, i128::from(u64::MAX), 10, TapeRule::BeyondBytes));
    assert_eq!(refused(b"", &[1u32]), (0, 1, 0, TapeRule::BeyondBytes));
    let error = TapeView::of(bytes, &[0u32, 4, 3]).unwrap_err();
    assert_eq!(error.to_string(), "offset 2 is 3, below the one before it, 4");
}

#[test]
fn tapes_of_nothing() {
    for tape in [TapeView::of::<u32>(b"", &[]).unwrap(), TapeView::of(b"unused", &[3i32]).unwrap()] {
        assert!(tape.is_empty());
        assert!(tape.get(0).is_err() && tape.iter().unwrap().next().is_none());
    }
    let tape = Tape::from_items::<&str>([]).unwrap();
    assert!(tape.is_empty() && tape.view().bytes().unwrap().is_empty());
    let tape = Tape::from_items(["", "", "a"]).unwrap();
    assert_eq!(tape.view().iter().unwrap().map(<[u8]>::len).collect::<Vec<_>>(), [0, 0, 1]);
}

#[test]
fn tapes_that_start_late_and_end_early() {
    let tape = TapeView::of(b"..ab.", &[2u32, 3, 4]).unwrap();
    assert_eq!(tape.iter().unwrap().collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!((tape.range(1).unwrap(), tape.byte_len()), (3..4, 5));
    assert!(matches!(tape.get(usize::MAX), Err(Error::OutOfRange { .. })));
}

#[test]
fn owned_parts_come_back_when_they_are_no_tape() {
    let refused = Tape::from_parts(vec![1, 2], vec![0, 3]).unwrap_err();
    assert!(matches!(refused.error, Error::Tape { index: 1, value: 3, bound: 2, .. }));
    assert_eq!(refused.value, (vec![1, 2], vec![0, 3]));
}

#[test]
fn raw_pointers_that_cannot_be() {
    let offsets = [0u32, 2];
    let bytes = [7u8, 8];
    let null = std::ptr::null::<u8>();
    let odd = offsets.as_ptr().cast::<u8>().wrapping_add(1).cast::<u32>();
    // SAFETY: what is not refused before it is read is live: the arrays above.
    unsafe {
        let tape = TapeView::from_raw(bytes.as_ptr(), 2, offsets.as_ptr(), 2).unwrap();
        assert_eq!(tape.memory(), MemoryKind::Unregistered);
        assert_eq!(tape.get(0).unwrap(), bytes);
        assert!(TapeView::from_raw(null, 2, offsets.as_ptr(), 2).is_err());
        assert!(TapeView::from_raw(bytes.as_ptr(), 2, null.cast::<u32>(), 2).is_err());
        assert!(TapeView::from_raw(bytes.as_ptr(), 2, odd, 2).is_err());
        assert!(TapeView::from_raw(bytes.as_ptr(), usize::MAX, offsets.as_ptr(), 2).is_err());
        assert!(TapeView::from_raw(bytes.as_ptr(), 2, offsets.as_ptr(), usize::MAX / 2).is_err());
        assert!(TapeView::from_raw(null, 0, null.cast::<u64>(), 0).unwrap().is_empty());
        assert!(TapeView::from_raw(bytes.as_ptr(), 1, offsets.as_ptr(), 2).is_err());
    }
}
