//! The ends of what an arena counts, which are near with `--cfg device_arena_small_limits`.

#![cfg(device_arena_small_limits)]

use device_arena::{Arena, ArenaOptions, Error, Executor, Holder, Placement};

use crate::lab::{Lab, counting};
use crate::turn::turn;
use crate::vendor;

const LEN: usize = 1000;

#[test]
fn generations_that_are_used_up_change_nothing() {
    let Some(turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), vendor::executor(0).unwrap());
    for placement in [Placement::Device, Placement::HostCoherent] {
        let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
        let mut earlier = None;
        for round in 0..50 {
            let view = lab.filled(&arena, LEN, round);
            drop(view.read_on(&reader).unwrap());
            assert_eq!(view.to_vec().unwrap(), counting(round, LEN));
            if let Some(earlier) = earlier.replace(view) {
                assert!(matches!(earlier.to_vec(), Err(Error::Stale { .. })));
            }
        }
        let stats = arena.stats();
        assert_eq!((stats.allocations, stats.frees, stats.rewinds), (1, 0, 50));
    }
    drop((lab, reader));
    turn.nothing_is_left();
}

#[test]
fn readers_of_the_state_before_are_waited_for() {
    let Some(_turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), Lab::new(0));
    let (arena, target) = (Arena::new(&lab.executor), Arena::new(&reader.executor));
    target.reserve(1 << 16).unwrap();
    lab.filled(&arena, LEN, 0);
    for round in 0..12 {
        let view = lab.filled(&arena, LEN, round);
        let guard = view.read_on(&reader.executor).unwrap();
        let gate = reader.gate();
        let call = reader.executor.begin(&target).unwrap();
        let mut output = call.output::<u32>(LEN).unwrap();
        reader.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 1);
        let copy = output.publish();
        call.finish().unwrap();
        drop(guard);
        lab.filled(&arena, LEN, 5000);
        assert!(lab.is_busy(), "round {round}");
        gate.open();
        assert_eq!(copy.to_vec().unwrap(), counting(round + 1, LEN));
    }
}

#[test]
fn a_captured_call_says_when_it_can_be_launched_no_more() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    arena.reserve(1 << 16).unwrap();
    for _ in 0..3 {
        let work = |call: &mut device_arena::Call| Ok(lab.fill_output(call, LEN, 7).publish());
        let mut captured = lab.executor.capture(&arena, work).unwrap();
        let mut last = None;
        let refused = loop {
            match captured.launch() {
                Ok(view) => last = Some(view),
                Err(error) => break error,
            }
        };
        assert_eq!(refused, Error::Exhausted { operation: "launch" });
        assert_eq!(arena.holder(), Some(Holder::Captured));
        if let Some(view) = last {
            assert_eq!(view.to_vec().unwrap(), counting(7, LEN));
        }
        drop(captured);
        assert_eq!(lab.filled(&arena, LEN, 8).to_vec().unwrap(), counting(8, LEN));
    }
}

#[test]
fn readers_are_counted_up_to_their_limit() {
    let Some(_turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), vendor::executor(0).unwrap());
    let arena = Arena::new(&lab.executor);
    let view = lab.filled(&arena, LEN, 1);
    let guards: Vec<_> = (0..3).map(|_| view.read_on(&reader).unwrap()).collect();
    assert_eq!(view.read_on(&reader).map(drop), Err(Error::TooManyReaders { limit: 3 }));
    assert_eq!(view.to_vec(), Err(Error::TooManyReaders { limit: 3 }));
    drop(guards);
    assert_eq!(view.to_vec().unwrap(), counting(1, LEN));
}
