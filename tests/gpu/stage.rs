//! Tapes brought to where a call computes, by what a kernel makes of them.

use device_arena::{Arena, ArenaOptions, Executor, Offset, Placement, TapeView};

use crate::lab::Lab;
use crate::memory::{Memory, Virtual};
use crate::simulated::simulated;
use crate::turn::turn;
use crate::vendor;

fn text() -> Vec<u8> {
    (0..5000u32).map(|at| (at * 31 % 251) as u8).collect()
}

/// Items of no bytes, of one, of many; bytes before the first and behind the last.
const OFFSETS: [u64; 7] = [3, 3, 4, 100, 100, 4990, 4999];

fn expected(text: &[u8]) -> Vec<u64> {
    let item = |pair: &[u64]| &text[pair[0] as usize..pair[1] as usize];
    OFFSETS.windows(2).map(|pair| item(pair).iter().map(|&byte| u64::from(byte)).sum()).collect()
}

fn raw<'a>(memory: &'a Memory, len: usize) -> TapeView<'a> {
    // SAFETY: the memory is as long and outlives the tape.
    unsafe { TapeView::from_raw(memory.pointer(), len, OFFSETS.as_ptr(), OFFSETS.len()) }.unwrap()
}

/// Stages a tape, and holds a kernel's sums and what was copied against what is expected.
#[track_caller]
fn check(lab: &Lab, tape: &TapeView<'_>, copied: usize, text: &[u8]) {
    let arena = Arena::new(&lab.executor);
    for _ in 0..2 {
        let call = lab.executor.begin(&arena).unwrap();
        let staged = call.stage(tape).unwrap();
        assert_eq!(staged.copied_bytes(), copied);
        assert_eq!((staged.len(), staged.byte_len()), (OFFSETS.len() - 1, text.len()));
        let sums = lab.sums(&call, &staged);
        call.finish().unwrap();
        assert_eq!(sums.to_vec().unwrap(), expected(text));
    }
}

/// What is copied of pageable memory: nothing where the device reaches it.
fn of_pageable(executor: &Executor, bytes: usize) -> usize {
    if executor.device().unwrap().reaches_pageable_memory { 0 } else { bytes }
}

const WORDS: usize = OFFSETS.len() * 8;

#[test]
fn a_span_of_the_host_is_copied() {
    let Some(_turn) = turn() else { return };
    let (lab, text) = (Lab::new(0), text());
    let tape = TapeView::of(&text, &OFFSETS).unwrap();
    check(&lab, &tape, of_pageable(&lab.executor, text.len() + WORDS), &text);
}

#[test]
fn pinned_and_managed_bytes_are_used_where_they_are() {
    let Some(_turn) = turn() else { return };
    let (lab, text) = (Lab::new(0), text());
    let words = of_pageable(&lab.executor, WORDS);
    for memory in [Memory::pinned(&lab.executor, 5000), Memory::managed(&lab.executor, 5000)] {
        memory.write(&text);
        check(&lab, &raw(&memory, text.len()), words, &text);
        // A span that nobody has asked about is asked about now.
        check(&lab, &TapeView::of(memory.as_slice(), &OFFSETS).unwrap(), words, &text);
    }
}

#[test]
fn pinned_offsets_are_used_where_they_are() {
    let Some(_turn) = turn() else { return };
    let (lab, text) = (Lab::new(0), text());
    let (bytes, words) = (Memory::pinned(&lab.executor, 5000), Memory::pinned(&lab.executor, WORDS));
    bytes.write(&text);
    // SAFETY: any bytes are bytes.
    words.write(unsafe { std::slice::from_raw_parts(OFFSETS.as_ptr().cast(), WORDS) });
    let offsets = words.pointer().cast::<u64>();
    // SAFETY: both are live and as long.
    let tape = unsafe { TapeView::from_raw(bytes.pointer(), 5000, offsets, OFFSETS.len()) }.unwrap();
    check(&lab, &tape, 0, &text);
}

#[test]
fn bytes_of_the_executors_device_are_used_where_they_are() {
    let Some(_turn) = turn() else { return };
    let (lab, text) = (Lab::new(0), text());
    let words = of_pageable(&lab.executor, WORDS);
    for memory in [Memory::device(&lab.executor, 5000), Memory::pool(&lab.executor, 5000)] {
        memory.write(&text);
        check(&lab, &raw(&memory, text.len()), words, &text);
    }
    let mut reserved = Virtual::reserve(&lab.executor, 2);
    reserved.map(0, 2);
    let mapped = Memory::device(&lab.executor, 5000);
    mapped.write(&text);
    let arena = Arena::new(&lab.executor);
    let call = lab.executor.begin(&arena).unwrap();
    // Copied there by a call of the driver's own, as a user would.
    let (to, from) = (reserved.pointer(0).addr() as u64, mapped.pointer().addr() as u64);
    // SAFETY: both ends are live.
    let copied =
        lab.executor.with_current(|| unsafe { crate::driver::copy_async(to, from, 5000, lab.stream()) });
    crate::driver::ok(copied.unwrap());
    // SAFETY: the bytes are mapped and written in the stream's order.
    let tape = unsafe { TapeView::from_raw(reserved.pointer(0), 5000, OFFSETS.as_ptr(), OFFSETS.len()) };
    let staged = call.stage(&tape.unwrap()).unwrap();
    assert_eq!(staged.bytes_ptr(), reserved.pointer(0).cast_const());
    let sums = lab.sums(&call, &staged);
    call.finish().unwrap();
    assert_eq!(sums.to_vec().unwrap(), expected(&text));
}

#[test]
fn bytes_of_another_ordinal_are_copied_right_with_and_without_peer_access() {
    let Some(turn) = turn() else { return };
    if !turn.has_two() {
        return;
    }
    let (lab, text) = (Lab::new(0), text());
    let memory = Memory::device(&vendor::executor(1).unwrap(), 5000);
    memory.write(&text);
    let words = of_pageable(&lab.executor, WORDS);
    for peers in ["1", "0"] {
        if let Some(simulated) = simulated() {
            simulated.set("PEER", peers);
        }
        check(&lab, &raw(&memory, text.len()), text.len() + words, &text);
    }
}

#[test]
fn offsets_of_any_width_become_64_bits() {
    let Some(_turn) = turn() else { return };
    let (lab, text) = (Lab::new(0), text());
    let bytes = of_pageable(&lab.executor, text.len());
    fn offsets<O: Offset + TryFrom<u64>>() -> Vec<O> {
        OFFSETS.iter().map(|&offset| O::try_from(offset).ok().unwrap()).collect()
    }
    let narrow = (offsets::<u32>(), offsets::<i32>());
    check(&lab, &TapeView::of(&text, &narrow.0).unwrap(), bytes + WORDS, &text);
    check(&lab, &TapeView::of(&text, &narrow.1).unwrap(), bytes + WORDS, &text);
    let wide = (offsets::<i64>(), offsets::<u64>());
    let words = of_pageable(&lab.executor, WORDS);
    check(&lab, &TapeView::of(&text, &wide.0).unwrap(), bytes + words, &text);
    check(&lab, &TapeView::of(&text, &wide.1).unwrap(), bytes + words, &text);
}

#[test]
fn a_tape_without_items_or_bytes_is_staged() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    let none: [u64; 0] = [];
    for offsets in [&none[..], &[0], &[0, 0, 0]] {
        let call = lab.executor.begin(&arena).unwrap();
        let staged = call.stage(&TapeView::of(&[], offsets).unwrap()).unwrap();
        assert_eq!(staged.len(), offsets.len().saturating_sub(1));
        let sums = lab.sums(&call, &staged);
        call.finish().unwrap();
        assert!(sums.to_vec().unwrap().iter().all(|&sum| sum == 0));
    }
}

#[test]
fn the_hosts_memory_is_free_again_when_stage_returns() {
    let Some(_turn) = turn() else { return };
    let (lab, text) = (Lab::new(0), text());
    if lab.executor.device().unwrap().reaches_pageable_memory {
        println!("skipped: the device reads pageable memory where it is");
        return;
    }
    if let Some(simulated) = simulated() {
        simulated.set("LATE", "1");
    }
    let arena = Arena::new(&lab.executor);
    let call = lab.executor.begin(&arena).unwrap();
    let (mut bytes, mut offsets) = (text.clone(), OFFSETS.map(|offset| offset as u32));
    let (staged, len) = {
        let tape = TapeView::of(&bytes, &offsets).unwrap();
        let staged = call.stage(&tape).unwrap();
        ((staged.bytes_ptr(), staged.offsets_ptr()), staged.len())
    };
    bytes.fill(0xEE);
    offsets.fill(u32::MAX);
    let mut sums = call.output::<u64>(len).unwrap();
    lab.sum(staged.0, staged.1, len, sums.device_ptr().unwrap());
    let sums = sums.publish();
    call.finish().unwrap();
    assert_eq!(sums.to_vec().unwrap(), expected(&text));
}

#[test]
fn device_bytes_come_to_a_call_of_the_host() {
    let Some(_turn) = turn() else { return };
    let text = text();
    let executor = vendor::executor(0).unwrap();
    let memory = Memory::device(&executor, 5000);
    memory.write(&text);
    let host = Executor::host().unwrap();
    let arenas = [Arena::host(), ArenaOptions::new().placement(Placement::Host).build(&executor).unwrap()];
    for arena in arenas {
        let call = host.begin(&arena).unwrap();
        let staged = call.stage(&raw(&memory, text.len())).unwrap();
        assert_eq!(staged.copied_bytes(), text.len());
        // SAFETY: the bytes are in the call's arena.
        let brought = unsafe { std::slice::from_raw_parts(staged.bytes_ptr(), staged.byte_len()) };
        assert_eq!(brought, text);
        call.finish().unwrap();
    }
}
