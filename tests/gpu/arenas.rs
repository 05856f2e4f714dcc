//! Arenas of a device: what they ask the driver for, and what a refusal leaves.

use device_arena::{Arena, ArenaOptions, Error, Growth, Placement, Residency, Scrub, View};

use crate::driver::{self, Context, Pushed};
use crate::functions::Function;
use crate::lab::{Lab, counting};
use crate::simulated::{OUT_OF_MEMORY, simulated, simulated_or_skip};
use crate::turn::turn;

const PLACEMENTS: [Placement; 2] = [Placement::Device, Placement::HostCoherent];

#[test]
fn out_of_memory_says_how_much_there_is_and_leaves_the_arena_as_it_was() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let total = lab.executor.device().unwrap().total_bytes.unwrap();
    let arena = Arena::new(&lab.executor);
    let call = lab.executor.begin(&arena).unwrap();
    let kept = lab.fill_output(&call, 1000, 3);
    let before = arena.stats();
    let asked = usize::try_from(total).unwrap() + (1 << 20);
    let error = call.output::<u8>(asked).unwrap_err();
    println!("{error}");
    let Error::OutOfMemory { operation, requested, free, total: said, .. } = error else { panic!("{error}") };
    assert_eq!(operation, Function::MemAlloc.name());
    assert!((asked..asked + 4096).contains(&requested), "{requested}");
    assert!(said.is_some_and(|said| said <= total) && free.is_some_and(|free| free <= total));
    let after = arena.stats();
    assert_eq!((after.allocations, after.bytes_reserved), (before.allocations, before.bytes_reserved));
    assert_eq!(after.bytes_used, before.bytes_used);
    let more = lab.fill_output(&call, 500, 9);
    let views = [kept.publish(), more.publish()];
    call.finish().unwrap();
    assert_eq!(views[0].to_vec().unwrap(), counting(3, 1000));
    assert_eq!(views[1].to_vec().unwrap(), counting(9, 500));
    assert_eq!(lab.filled(&arena, 100, 1).to_vec().unwrap(), counting(1, 100));
}

#[test]
fn a_size_that_no_machine_has_is_out_of_memory() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    for placement in PLACEMENTS {
        let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
        let call = lab.executor.begin(&arena).unwrap();
        for bytes in [1 << 60, isize::MAX as usize - 4096] {
            let error = call.output::<u8>(bytes).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        }
        for bytes in [usize::MAX, usize::MAX - 10] {
            let error = call.output::<u8>(bytes).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. } | Error::SizeOverflow { .. }), "{error}");
        }
        assert!(matches!(call.output::<u64>(usize::MAX), Err(Error::SizeOverflow { .. })));
        call.finish().unwrap();
        assert_eq!(arena.stats().allocations, 0);
    }
}

#[test]
fn a_replacement_that_the_device_has_no_room_for_keeps_the_chain() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    let options = ArenaOptions::new().first_capacity(4096).growth(Growth::Exact);
    let arena = options.build(&lab.executor).unwrap();
    let sizes = [1000, 5000, 20_000];
    let run = |round: u32| -> Vec<View<u32>> {
        let call = lab.executor.begin(&arena).unwrap();
        let views = sizes.map(|len| lab.fill_output(&call, len, round).publish());
        call.finish().unwrap();
        views.into()
    };
    let first = run(1);
    let blocks = arena.stats().allocations;
    assert!(blocks > 1);
    simulated.fail(Function::MemAlloc, 0, 0, OUT_OF_MEMORY);
    let second = run(2);
    assert!(matches!(first[0].to_vec(), Err(Error::Stale { .. })));
    for (view, len) in second.iter().zip(sizes) {
        assert_eq!(view.to_vec().unwrap(), counting(2, len));
    }
    let stats = arena.stats();
    assert_eq!((stats.allocations, stats.frees), (blocks, 0));
    simulated.clear();
    for (view, len) in run(3).iter().zip(sizes) {
        assert_eq!(view.to_vec().unwrap(), counting(3, len));
    }
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn a_steady_loop_asks_the_driver_for_nothing_at_all() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    for placement in PLACEMENTS {
        let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
        let run = |round: usize| {
            let call = lab.executor.begin(&arena).unwrap();
            let (mut floats, mut words) =
                (call.output::<f32>(1000).unwrap(), call.output::<u64>(17).unwrap());
            assert!(!floats.device_ptr().unwrap().is_null() && !words.device_ptr().unwrap().is_null());
            let bytes = call.output::<u8>(round % 1000 + 1).unwrap();
            let views = (floats.publish(), words.publish(), bytes.publish());
            call.finish().unwrap();
            assert!(views.0.is_current() && views.1.slice(3..).is_ok());
        };
        run(999);
        let before = simulated().map(|simulated| simulated.all_calls());
        for round in 0..1000 {
            run(round);
        }
        assert_eq!(simulated().map(|simulated| simulated.all_calls()), before, "{placement:?}");
        let stats = arena.stats();
        assert_eq!((stats.allocations, stats.frees, stats.rewinds), (1, 0, 1001));
    }
    if simulated().is_none() {
        println!("the driver's calls were not counted: needs the simulated driver");
    }
}

#[test]
fn making_an_arena_and_a_call_without_outputs_asks_for_nothing() {
    let Some(turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    let before = simulated.all_calls();
    for placement in PLACEMENTS {
        let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
        let call = lab.executor.begin(&arena).unwrap();
        drop(call.output::<u32>(0).unwrap().publish());
        call.finish().unwrap();
        drop(arena);
    }
    assert_eq!(simulated.all_calls(), before);
    drop(lab);
    turn.nothing_is_left();
}

#[test]
fn host_access_to_device_memory_is_refused() {
    let Some(turn) = turn() else { return };
    for ordinal in 0..turn.count().min(2) {
        let lab = Lab::new(ordinal);
        let arena = Arena::new(&lab.executor);
        let description = arena.describe();
        assert_eq!((description.residency, description.device), (Residency::Vram, ordinal as i32));
        let mut call = lab.executor.begin(&arena).unwrap();
        let mut output = lab.fill_output(&call, 10, 1);
        let refused = |operation| Error::Device { operation, ordinal };
        assert_eq!(output.as_slice().map(drop), Err(refused("as_slice")));
        assert_eq!(output.as_mut_slice().map(drop), Err(refused("as_mut_slice")));
        assert_eq!(output.fill(1), Err(refused("as_mut_slice")));
        assert_eq!(call.writer::<u8>().map(drop), Err(refused("writer")));
        assert_eq!(call.tape_output().map(drop), Err(refused("writer")));
        let taken = call.scratch(|scope| scope.take::<u8>(10).map(drop));
        assert_eq!(taken, Err(refused("scratch")));
        let view = output.publish();
        call.finish().unwrap();
        assert_eq!(view.read().map(drop), Err(refused("read")));
        assert_eq!(view.export().map(drop), Err(refused("export")));
        assert_eq!(view.to_vec().unwrap(), counting(1, 10));
        lab.executor.begin(&arena).unwrap().finish().unwrap();
        assert!(matches!(view.read().map(drop), Err(Error::Stale { .. })), "stale comes first");
    }
}

#[test]
fn host_pages_are_no_devices() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = ArenaOptions::new().placement(Placement::Host).build(&lab.executor).unwrap();
    let mut call = arena.begin().unwrap();
    let mut output = call.output::<u32>(10).unwrap();
    let refused = |operation| Error::HostMemory { operation };
    assert_eq!(output.device_ptr().map(drop), Err(refused("device_ptr")));
    assert_eq!(call.device_room::<u32>(10).map(drop), Err(refused("device_room")));
    assert_eq!(call.scratch(|scope| scope.take_on_device::<u32>(1).map(drop)), Err(refused("scratch")));
    let view = output.publish();
    call.finish().unwrap();
    assert_eq!(view.read_on(&lab.executor).map(drop), Err(refused("read_on")));
    assert!(matches!(lab.executor.begin(&arena), Err(Error::WrongExecutor { .. })));
}

#[test]
fn room_that_nobody_wrote_shows_zeros_or_poison_and_not_what_another_left() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    for placement in PLACEMENTS {
        for (scrub, first, later) in [
            (Scrub::Never, 0, None),
            (Scrub::Zero, 0, Some(0)),
            (Scrub::Poison(0xA5), 0xA5A5_A5A5u32, Some(0xA5A5_A5A5)),
        ] {
            let options = ArenaOptions::new().placement(placement).scrub(scrub).growth(Growth::Exact);
            let arena = options.first_capacity(4096).build(&lab.executor).unwrap();
            let look = |len: usize| {
                let call = lab.executor.begin(&arena).unwrap();
                let view = call.output::<u32>(len).unwrap().publish();
                call.finish().unwrap();
                view.to_vec().unwrap()
            };
            assert!(look(1000).iter().all(|&word| word == first), "{placement:?} {scrub:?}");
            // Written over two blocks, which one replaces.
            let call = lab.executor.begin(&arena).unwrap();
            let views = [1000, 5000].map(|len| lab.fill_output(&call, len, 1).publish());
            call.finish().unwrap();
            assert_eq!(views[1].to_vec().unwrap(), counting(1, 5000));
            for _ in 0..2 {
                let seen = look(6000);
                if let Some(later) = later {
                    assert!(seen.iter().all(|&word| word == later), "{placement:?} {scrub:?}");
                }
                lab.filled(&arena, 6000, 77);
            }
        }
    }
}

#[test]
fn options_that_a_device_can_not_honour_are_refused() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    for alignment in [0, 3, 512, 1 << 40] {
        let refused = ArenaOptions::new().alignment(alignment).build(&lab.executor);
        assert_eq!(refused.err(), Some(Error::Alignment { alignment, largest: 256 }));
    }
    let arena = ArenaOptions::new().alignment(256).byte_limit(1 << 16).build(&lab.executor).unwrap();
    assert_eq!(arena.alignment(), 256);
    let call = lab.executor.begin(&arena).unwrap();
    let mut outputs = [1, 300, 7].map(|len| call.output::<u8>(len).unwrap());
    for output in &mut outputs {
        assert_eq!(output.device_ptr().unwrap().addr() % 256, 0);
    }
    assert!(matches!(call.output::<u8>(1 << 17), Err(Error::OverLimit { .. })));
}

#[test]
fn an_arena_is_dropped_on_any_thread_under_any_context() {
    let Some(turn) = turn() else { return };
    let lab = Lab::new(0);
    turn.left();
    for placement in PLACEMENTS {
        let Some(context) = Context::other(&turn, turn.count() - 1) else { return };
        let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
        let view = lab.filled(&arena, 50_000, 1);
        let dropper = std::thread::spawn(move || {
            // SAFETY: the context outlives this.
            let pushed = unsafe { Pushed::new(context.handle()) };
            drop(arena);
            assert_eq!(driver::current(), context.handle());
            drop(pushed);
        });
        dropper.join().unwrap();
        assert!(matches!(view.to_vec(), Err(Error::Stale { .. })));
    }
    drop(lab);
    turn.nothing_is_left();
}
