//! Tapes of every offset width against a naive check.

use device_arena_model::{check_tape_of, fuzz_tape};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any};
use proptest::prop_assert_eq;
use proptest::{prop_oneof, proptest};

/// No file of seeds: a failure prints its input in full.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_are_a_tape_or_refused(data in vec(any::<u8>(), 0..300)) {
        fuzz_tape(&data);
    }

    #[test]
    fn offsets_near_the_rules_edges(
        bytes in vec(any::<u8>(), 0..40),
        mut offsets in vec(prop_oneof![20 => -2..45i64, 1 => any::<i64>()], 0..12),
        sorted in any::<bool>(),
    ) {
        if sorted {
            offsets.sort_unstable();
        }
        let narrow: Vec<i32> = offsets.iter().map(|offset| *offset as i32).collect();
        let unsigned: Vec<u64> = offsets.iter().map(|offset| *offset as u64).collect();
        let narrow_unsigned: Vec<u32> = offsets.iter().map(|offset| *offset as u32).collect();
        prop_assert_eq!(check_tape_of(&bytes, &offsets), Ok(()));
        prop_assert_eq!(check_tape_of(&bytes, &narrow), Ok(()));
        prop_assert_eq!(check_tape_of(&bytes, &unsigned), Ok(()));
        prop_assert_eq!(check_tape_of(&bytes, &narrow_unsigned), Ok(()));
    }
}
