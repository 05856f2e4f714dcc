//! A stable number for a plan's layout: FNV-1a of 128 bits over the words of the plan.

use super::MemoryPlan;

/// FNV-1a of 128 bits: for each byte, an exclusive or and a product. It needs no table, and is
/// the same everywhere. It is no defence against somebody who looks for two plans that have the same number.
#[derive(Debug, Clone, Copy)]
struct Fnv(u128);

impl Fnv {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    fn bytes(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(Self::PRIME)))
    }

    fn word(self, word: u64) -> Self {
        self.bytes(&word.to_le_bytes())
    }

    /// None is told from every word.
    fn maybe(self, word: Option<u64>) -> Self {
        match word {
            Some(word) => self.word(1).word(word),
            None => self.word(0),
        }
    }
}

/// What the words mean. Another order or other words need another mark.
const MARK: &[u8] = b"device-arena plan 1";

pub(super) fn of(plan: &MemoryPlan) -> u128 {
    let start = Fnv(Fnv::BASIS).bytes(MARK).word(plan.total()).word(plan.alignment()).word(plan.len() as u64);
    let all = plan.iter().fold(start, |hash, slot| {
        let hash = hash.word(slot.node).word(slot.offset).word(slot.size).word(slot.alignment);
        let steps = slot.lifetime.as_ref();
        hash.maybe(steps.map(|steps| steps.start)).maybe(steps.map(|steps| steps.end)).maybe(slot.alias_of)
    });
    all.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a_as_others_compute_it() {
        let of = |text: &str| Fnv(Fnv::BASIS).bytes(text.as_bytes()).0;
        assert_eq!(of(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(of("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(of("ab"), 0x0880_9544_bbab_1be9_5aa0_7330_55b6_9a62);
        assert_eq!(of("abc"), 0xa68d_622c_ec8b_5822_836d_bc79_77af_7f3b);
    }
}
