//! Room that kernels take for themselves, and scratch.

use device_arena::{Arena, ArenaOptions, Call, DeviceRoom, Error, Placement, Refused, Scrub, StaleReason};

use crate::functions::Function;
use crate::lab::{Lab, counting};
use crate::simulated::{simulated, simulated_or_skip};
use crate::turn::turn;

const PLACEMENTS: [Placement; 2] = [Placement::Device, Placement::HostCoherent];

/// The takers of pieces of `words` words at `step` words each, sorted: each piece has one number in it.
#[track_caller]
fn takers(values: &[u32], words: usize, step: usize) -> Vec<u32> {
    let pieces = values.chunks(step);
    let mut takers: Vec<_> = pieces
        .map(|piece| {
            assert!(piece[..words].iter().all(|&word| word == piece[0]), "a piece has two takers");
            piece[0]
        })
        .collect();
    takers.sort_unstable();
    takers
}

#[test]
fn a_kernel_takes_what_it_needs_and_collect_says_how_much() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    for placement in PLACEMENTS {
        let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
        for (count, words) in [(0, 4), (1, 4), (100, 4), (50, 8), (7, 12)] {
            let call = lab.executor.begin(&arena).unwrap();
            let mut room = call.device_room::<u32>(1000).unwrap();
            assert_eq!(room.capacity(), 1000);
            assert_eq!(room.base_device_ptr().addr() % 256, 0);
            if count > 0 {
                lab.take(room.device_ptr(), count, words);
            }
            assert_eq!(room.taken_bytes().unwrap(), (count * words * 4) as u64);
            let output = room.collect().unwrap();
            assert_eq!(output.len(), count * words);
            let view = output.publish();
            call.finish().unwrap();
            let values = view.to_vec().unwrap();
            assert_eq!(takers(&values, words, words), counting(0, count));
        }
        assert_eq!(arena.stats().allocations, 1);
    }
}

#[test]
fn pieces_are_rounded_up_to_the_rooms_alignment() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    for alignment in [4, 8, 16, 32, 256] {
        let call = lab.executor.begin(&arena).unwrap();
        let mut room = call.device_room_aligned::<u32>(1000, alignment).unwrap();
        lab.take(room.device_ptr(), 10, 1);
        assert_eq!(room.taken_bytes().unwrap(), 10 * alignment as u64);
        let view = room.collect().unwrap().publish();
        call.finish().unwrap();
        assert_eq!(takers(&view.to_vec().unwrap(), 1, alignment / 4), counting(0, 10));
    }
    let call = lab.executor.begin(&arena).unwrap();
    for alignment in [0, 1, 2, 24, 512] {
        let refused = call.device_room_aligned::<u32>(10, alignment).map(drop);
        assert!(matches!(refused, Err(Error::Alignment { .. })), "{alignment}");
    }
    assert!(matches!(call.device_room::<u64>(usize::MAX), Err(Error::SizeOverflow { .. })));
    assert_eq!(arena.stats().bytes_used, 0, "what was refused has taken nothing");
}

/// Runs until the room has what the kernel needs; says how often that was not so.
fn run(lab: &Lab, call: &Call, len: usize, count: usize, words: usize) -> (device_arena::Output<u32>, usize) {
    let mut room = call.device_room::<u32>(len).unwrap();
    let mut overflows = 0;
    loop {
        lab.take(room.device_ptr(), count, words);
        match room.collect() {
            Ok(output) => return (output, overflows),
            Err(Refused { error: Error::Overflow { needed, capacity, .. }, value }) => {
                assert_eq!((needed, capacity), ((count * words * 4) as u64, value.capacity() as u64 * 4));
                overflows += 1;
                room = value.regrow(call, needed).unwrap();
                assert!(room.capacity() as u64 * 4 >= needed);
            }
            Err(refused) => panic!("{refused}"),
        }
    }
}

#[test]
fn an_overflow_says_the_need_and_the_second_run_has_it() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    for (len, count) in [(0, 1), (4, 2), (100, 500), (399, 100)] {
        let call = lab.executor.begin(&arena).unwrap();
        let (output, overflows) = run(&lab, &call, len, count, 4);
        assert_eq!(overflows, 1);
        let view = output.publish();
        call.finish().unwrap();
        assert_eq!(takers(&view.to_vec().unwrap(), 4, 4), counting(0, count));
    }
}

#[test]
fn a_regrown_room_chains_a_block_and_the_next_call_has_one() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = ArenaOptions::new().first_capacity(4096).build(&lab.executor).unwrap();
    let round = || {
        let call = lab.executor.begin(&arena).unwrap();
        let earlier = lab.fill_output(&call, 100, 7).publish();
        let (output, _) = run(&lab, &call, 16, 20_000, 4);
        let view = output.publish();
        call.finish().unwrap();
        assert_eq!(earlier.to_vec().unwrap(), counting(7, 100), "no address moved");
        assert_eq!(takers(&view.to_vec().unwrap(), 4, 4), counting(0, 20_000));
    };
    round();
    assert!(arena.stats().allocations > 1);
    round();
    let stats = arena.stats();
    assert_eq!(stats.allocations - stats.frees, 1);
    round();
    assert_eq!(arena.stats().allocations, stats.allocations);
}

#[test]
fn nothing_is_written_past_a_room_that_is_too_small() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    let call = lab.executor.begin(&arena).unwrap();
    let mut room = call.device_room::<u32>(64).unwrap();
    let behind = lab.fill_output(&call, 1000, 5);
    lab.take(room.device_ptr(), 300, 4);
    let refused = room.collect().unwrap_err();
    assert_eq!(refused.error, Error::Overflow { operation: "collect", needed: 4800, capacity: 256 });
    // From the start once more, and this time less.
    let mut room = refused.value;
    room.reset().unwrap();
    lab.take(room.device_ptr(), 16, 4);
    let views = (room.collect().unwrap().publish(), behind.publish());
    call.finish().unwrap();
    assert_eq!(takers(&views.0.to_vec().unwrap(), 4, 4), counting(0, 16));
    assert_eq!(views.1.to_vec().unwrap(), counting(5, 1000));
}

#[test]
fn a_room_of_another_call_is_not_regrown() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, other) = (Arena::new(&lab.executor), Arena::new(&lab.executor));
    let (call, foreign) = (lab.executor.begin(&arena).unwrap(), lab.executor.begin(&other).unwrap());
    let room = call.device_room::<u32>(64).unwrap();
    let refused = room.regrow(&foreign, 1000).unwrap_err();
    let reason = StaleReason::Rewound;
    assert_eq!(refused.error, Error::Stale { generation: call.generation(), reason });
    let refused = refused.value.regrow(&call, u64::MAX).unwrap_err();
    assert!(matches!(refused.error, Error::SizeOverflow { .. } | Error::OutOfMemory { .. }), "{refused}");
    let room: DeviceRoom<u32> = refused.value;
    assert_eq!(room.collect().unwrap().len(), 0);
}

#[test]
fn a_call_without_a_room_launches_nothing() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    let launches = || simulated.calls(Function::LaunchKernel);
    let before = launches();
    let call = lab.executor.begin(&arena).unwrap();
    let _ = call.output::<u32>(100).unwrap();
    assert_eq!(launches(), before);
    let room = call.device_room::<u32>(100).unwrap();
    assert_eq!(launches() - before, 1);
    drop(room);
    call.finish().unwrap();
}

#[test]
fn scratch_of_a_kernel_is_free_again_when_its_scope_ends() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    if let Some(simulated) = simulated() {
        simulated.set("LATE", "1");
    }
    for placement in PLACEMENTS {
        let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
        for round in 0..3 {
            let mut call = lab.executor.begin(&arena).unwrap();
            let mut addresses = Vec::new();
            let views: Vec<_> = (0..3)
                .map(|turn| {
                    call.scratch(|scope| {
                        let first = scope.take_on_device::<u32>(500).unwrap();
                        lab.fill(first, 500, round + turn);
                        // An inner scope's room is another, and free again before the outer one's.
                        scope.scratch(|inner| {
                            let second = inner.take_on_device::<u32>(500).unwrap();
                            assert!(second.addr().abs_diff(first.addr()) >= 2000);
                            lab.add(first, second, 500, 1000);
                            lab.add(second, first, 500, 1000);
                        });
                        addresses.push(first);
                        let mut output = scope.call().output::<u32>(500).unwrap();
                        lab.add(first, output.device_ptr().unwrap(), 500, 0);
                        output.publish()
                    })
                })
                .collect();
            call.finish().unwrap();
            assert!(addresses.windows(2).all(|pair| pair[0] == pair[1]), "the same room each time");
            for (view, turn) in views.iter().zip(0..) {
                assert_eq!(view.to_vec().unwrap(), counting(round + turn + 2000, 500));
            }
        }
        assert_eq!(arena.stats().allocations, 1);
    }
}

#[test]
fn scratch_and_rooms_are_scrubbed_too() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = ArenaOptions::new().scrub(Scrub::Zero).first_capacity(16 << 10).build(&lab.executor).unwrap();
    let mut call = lab.executor.begin(&arena).unwrap();
    call.scratch(|scope| lab.fill(scope.take_on_device::<u32>(500).unwrap(), 500, 1));
    let mut room = call.device_room::<u32>(500).unwrap();
    lab.take(room.device_ptr(), 100, 4);
    drop(room);
    call.finish().unwrap();
    let call = lab.executor.begin(&arena).unwrap();
    let view = call.output::<u32>(4096).unwrap().publish();
    call.finish().unwrap();
    assert_eq!(arena.stats().allocations, 1);
    assert!(view.to_vec().unwrap().iter().all(|&word| word == 0));
}
