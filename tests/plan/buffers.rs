//! Buffers, slots and schedules at random.

use device_arena::plan::{Buffer, Slot, Step};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof};

/// No file of seeds: a failure prints its input in full.
pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..40u64, 4 => (1..9u64).prop_map(|count| count * 16), 1 => Just(0)]
}

/// Plain buffers: no two alike in id, each live somewhere in a few steps.
pub fn plain(most: usize) -> impl Strategy<Value = Vec<Buffer>> {
    vec((0..12u64, 1..6u64, sizes()), 0..most).prop_map(|list| {
        let buffer = |(id, (start, steps, size)): (usize, (u64, u64, u64))| {
            Buffer::new(id as u64 * 3 % 97 + 100 * (id as u64 / 97), start..start + steps, size)
        };
        list.into_iter().enumerate().map(buffer).collect()
    })
}

/// Buffers of few sizes in few steps, so that the least peak is often above what is live at once.
pub fn tight(most: usize) -> impl Strategy<Value = Vec<Buffer>> {
    vec((0..7u64, 1..5u64, 1..8u64), 4..most).prop_map(|list| {
        let buffer = |((start, steps, size), id)| Buffer::new(id, start..start + steps, size);
        list.into_iter().zip(0..).map(buffer).collect()
    })
}

/// Plain buffers with alignments, and with fixed offsets that are far enough apart to be had.
pub fn aligned(most: usize) -> impl Strategy<Value = Vec<Buffer>> {
    (plain(most), vec((0..4u32, weighted(0.1, 0..4u64)), most)).prop_map(|(buffers, more)| {
        let mut taken: u64 = 0;
        buffers
            .into_iter()
            .zip(more)
            .map(|(buffer, (shift, fixed))| {
                let buffer = buffer.aligned(1 << shift);
                let Some(gap) = fixed else { return buffer };
                let offset = (taken + gap * 8).next_multiple_of(8);
                taken = offset + buffer.size;
                buffer.at(offset)
            })
            .collect()
    })
}

/// The same with pinned buffers and with aliases, of a buffer that comes before.
pub fn all_kinds(most: usize) -> impl Strategy<Value = Vec<Buffer>> {
    (aligned(most), vec((weighted(0.2, any::<usize>()), 0..12u8), most)).prop_map(|(mut buffers, more)| {
        for (index, (alias, pinned)) in more.into_iter().enumerate().take(buffers.len()) {
            let target = alias.filter(|_| index > 0).map(|alias| buffers[alias % index].clone());
            let buffer = &mut buffers[index];
            buffer.pinned = pinned == 0;
            if let Some(target) = target.filter(|_| buffer.offset.is_none()) {
                buffer.size = buffer.size.min(target.size);
                buffer.alias_of = Some(target.id);
                // A fixed offset need not suit an alias.
                buffer.alignment = 1;
            }
        }
        buffers
    })
}

/// Slots that need not make up a plan.
pub fn slots(most: usize) -> impl Strategy<Value = Vec<Slot>> {
    let slot = (0..60u64, 0..16u64, weighted(0.9, (0..10u64, 1..5u64)), weighted(0.25, any::<usize>()));
    vec(slot, 0..most).prop_map(|list| {
        let mut slots: Vec<Slot> = Vec::new();
        for (node, (offset, size, lifetime, alias)) in list.into_iter().enumerate() {
            let slot = Slot::new(node as u64, offset, size);
            let slot = match lifetime {
                Some((start, steps)) => slot.live(start..start + steps),
                None => slot,
            };
            let target = alias.filter(|_| node > 0).map(|alias| slots[alias % node].clone());
            slots.push(match target {
                // Within its target, as aliases have to be.
                Some(target) => {
                    let offset = target.offset + slot.offset % (target.size + 1);
                    let size = slot.size.min(target.offset + target.size - offset);
                    {
                        let mut slot = slot.alias_of(target.node);
                        (slot.offset, slot.size) = (offset, size);
                        slot
                    }
                }
                None => slot,
            });
        }
        slots
    })
}

/// Schedules over nodes `0..count`, and now and then one beyond.
pub fn schedule(count: u64) -> impl Strategy<Value = Vec<Step>> {
    let nodes = || vec(prop_oneof![60 => 0..count.max(1), 1 => Just(count)], 0..3);
    vec((nodes(), nodes()), 0..14)
        .prop_map(|steps| steps.into_iter().map(|(reads, writes)| Step::new(reads, writes)).collect())
}
