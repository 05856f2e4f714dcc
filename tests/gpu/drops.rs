//! Whatever is dropped in whichever order: nothing is left, and the blocks go before the stream that their work is in.

use std::any::Any;

use device_arena::{Arena, ArenaOptions, Error, Placement};

use crate::lab::{Lab, counting};
use crate::memory::ask;
use crate::simulated::{simulated, simulated_or_skip};
use crate::turn::turn;
use crate::vendor;

/// Every order of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for order in orders(count - 1) {
        for at in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(at, count - 1);
            all.push(longer);
        }
    }
    all
}

/// Drops the things in every order, a fresh set for each.
fn in_every_order<const N: usize>(
    turn: &crate::turn::Turn,
    make: impl Fn() -> [(&'static str, Box<dyn Any>); N],
) {
    for order in orders(N) {
        let mut things = make().map(|(name, thing)| (name, Some(thing)));
        let mut names = Vec::new();
        for &at in &order {
            names.push(things[at].0);
            things[at].1 = None;
        }
        let left = turn.left();
        if !left.is_empty() {
            // Threads of the crate's own may hold an event for a moment.
            println!("in the order {names:?}: {left:?}");
            turn.nothing_is_left();
        }
    }
}

/// Queued work runs as late as it can.
fn late() {
    if let Some(simulated) = simulated() {
        simulated.set("LATE", "1");
        simulated.set("LATE_MS", "0");
    }
}

#[test]
fn arena_call_output_view_and_executor() {
    let Some(turn) = turn() else { return };
    let kernels = Lab::new(0);
    drop(kernels);
    late();
    in_every_order(&turn, || {
        let executor = vendor::executor(0).unwrap();
        let arena = Arena::new(&executor);
        let call = executor.begin(&arena).unwrap();
        let mut output = call.output::<u32>(1000).unwrap();
        output.device_ptr().unwrap();
        // A kernel's work is on its way.
        let room = call.device_room::<u32>(100).unwrap();
        let view = call.output::<u32>(10).unwrap().publish();
        [
            ("executor", Box::new(executor)),
            ("arena", Box::new(arena)),
            ("call", Box::new(call)),
            ("output", Box::new((output, room))),
            ("view", Box::new(view)),
        ]
    });
}

#[test]
fn arena_view_guard_and_both_executors() {
    let Some(turn) = turn() else { return };
    late();
    in_every_order(&turn, || {
        let (executor, reader) = (vendor::executor(0).unwrap(), vendor::executor(0).unwrap());
        let arena = Arena::new(&executor);
        let call = executor.begin(&arena).unwrap();
        let _ = call.device_room::<u32>(10).unwrap();
        let view = call.output::<u32>(10).unwrap().publish();
        call.finish().unwrap();
        let guard = view.read_on(&reader).unwrap();
        let other = Arena::new(&reader);
        let call = reader.begin(&other).unwrap();
        let _ = call.device_room::<u32>(10).unwrap();
        call.finish().unwrap();
        [
            ("executor", Box::new(executor)),
            ("reader", Box::new((reader, other))),
            ("arena", Box::new(arena)),
            ("guard", Box::new(guard)),
            ("view", Box::new(view)),
        ]
    });
}

#[test]
fn arena_deferred_call_view_and_executor() {
    let Some(turn) = turn() else { return };
    late();
    for placement in [Placement::Device, Placement::HostCoherent] {
        in_every_order(&turn, || {
            let executor = vendor::executor(0).unwrap();
            let arena = ArenaOptions::new().placement(placement).build(&executor).unwrap();
            let mut view = None;
            let soon = executor.defer(&arena, |call| {
                let _ = call.device_room::<u32>(10)?;
                Ok(call.output::<u32>(1000)?.publish())
            });
            let soon = soon.unwrap();
            let _ = view.insert(soon.is_done());
            let whole = Arena::new(&executor);
            let call = executor.begin(&whole).unwrap();
            let _ = call.device_room::<u32>(10).unwrap();
            let other = call.output::<u32>(10).unwrap().publish();
            let as_it_is = executor.defer_call(call).unwrap();
            [
                ("executor", Box::new(executor)),
                ("arenas", Box::new((arena, whole))),
                ("deferred", Box::new((soon, as_it_is))),
                ("view", Box::new((view, other))),
            ]
        });
    }
}

#[test]
fn arena_captured_call_view_guard_and_executor() {
    let Some(turn) = turn() else { return };
    late();
    in_every_order(&turn, || {
        let executor = vendor::executor(0).unwrap();
        let reader = vendor::executor(0).unwrap();
        let arena = Arena::new(&executor);
        arena.reserve(10_000).unwrap();
        let mut captured = executor
            .capture(&arena, |call| {
                let _ = call.device_room::<u32>(10)?;
                Ok(call.output::<u32>(100)?.publish())
            })
            .unwrap();
        let view = captured.launch().unwrap();
        let guard = view.read_on(&reader).unwrap();
        [
            ("executor", Box::new(executor)),
            ("arena", Box::new(arena)),
            ("captured", Box::new(captured)),
            ("guard", Box::new(guard)),
            ("view", Box::new(view)),
        ]
    });
}

#[test]
fn kernels_outlive_their_executor() {
    let Some(turn) = turn() else { return };
    let lab = Lab::new(0);
    let kernels = lab.with_executor(vendor::executor(0).unwrap());
    drop(lab);
    let arena = Arena::new(&kernels.executor);
    assert_eq!(kernels.filled(&arena, 10, 5).to_vec().unwrap(), counting(5, 10));
    drop((kernels, arena));
    turn.nothing_is_left();
}

#[test]
fn a_stale_view_keeps_neither_blocks_nor_the_stream() {
    let Some(turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let before = simulated.all_live();
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    let view = lab.filled(&arena, 1000, 1);
    let stale = view.slice(..10).unwrap();
    drop((lab, arena));
    assert_eq!(simulated.all_live(), before);
    turn.nothing_is_left();
    for view in [&view, &stale] {
        assert!(matches!(view.to_vec(), Err(Error::Stale { .. })));
        assert!(matches!(view.read_on(&vendor::executor(0).unwrap()).map(drop), Err(Error::Stale { .. })));
    }
}

#[test]
fn dropping_waits_for_queued_work_and_the_memory_is_gone_then() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    late();
    for round in 0..3 {
        let (arena, target) = (Arena::new(&lab.executor), Arena::new(&lab.executor));
        let view = lab.filled(&arena, 100_000, round);
        let call = lab.executor.begin(&target).unwrap();
        let mut output = call.output::<u32>(100_000).unwrap();
        let guard = view.read_on(&lab.executor).unwrap();
        let address = guard.device_ptr();
        lab.add(address, output.device_ptr().unwrap(), 100_000, 1);
        drop(guard);
        // Freed before its turn, the kernel would read an address that nobody has.
        drop(arena);
        assert_eq!(ask(address.cast()).unwrap().kind, device_arena::MemoryKind::Unregistered);
        let copy = output.publish();
        call.finish().unwrap();
        assert_eq!(copy.to_vec().unwrap(), counting(round + 1, 100_000));
    }
}

#[test]
fn dropping_waits_for_readers_on_other_streams() {
    let Some(_turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), Lab::new(0));
    late();
    let target = Arena::new(&reader.executor);
    for round in 0..3 {
        let arena = Arena::new(&lab.executor);
        let view = lab.filled(&arena, 50_000, round);
        let call = reader.executor.begin(&target).unwrap();
        let mut output = call.output::<u32>(50_000).unwrap();
        let guard = view.read_on(&reader.executor).unwrap();
        reader.add(guard.device_ptr(), output.device_ptr().unwrap(), 50_000, 1);
        drop(guard);
        drop(arena);
        let copy = output.publish();
        call.finish().unwrap();
        assert_eq!(copy.to_vec().unwrap(), counting(round + 1, 50_000));
    }
}

#[test]
fn close_reports_what_it_freed_and_trim_gives_everything_back() {
    let Some(turn) = turn() else { return };
    let lab = Lab::new(0);
    late();
    let arena = Arena::new(&lab.executor);
    let view = lab.filled(&arena, 100_000, 1);
    let reserved = arena.stats().bytes_reserved;
    assert_eq!(arena.trim().unwrap() as u64, reserved);
    assert!(matches!(view.to_vec(), Err(Error::Stale { .. })));
    lab.filled(&arena, 10, 1);
    let call = lab.executor.begin(&arena).unwrap();
    let refused = arena.close().unwrap_err();
    assert!(matches!(refused.error, Error::Contended { .. }));
    call.finish().unwrap();
    let reserved = refused.value.stats().bytes_reserved;
    assert_eq!(refused.value.close().unwrap() as u64, reserved);
    drop(lab);
    turn.nothing_is_left();
}
