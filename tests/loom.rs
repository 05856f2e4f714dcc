//! The promises that name two threads, in every interleaving that loom finds: the state word, the count word, the
//! room that a call shares with its writers. The shipped code runs, with three readers and a handful of generations.
//!
//! `RUSTFLAGS="--cfg loom --cfg device_arena_faults" cargo test --release --test loom`
#![cfg(all(loom, device_arena_faults))]

use device_arena::backend::{AnyBackend, FaultPlan, Faults, Host};
use device_arena::{Arena, ArenaOptions, Error, Executor, Growth, Holder, View};
use loom::sync::Arc;
use loom::thread;

/// Runs `model` in every interleaving, and checks after each that no block is left.
fn check(model: impl Fn(&Executor) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // Seconds in all; a fourth preemption takes four times as long and has found nothing more.
    builder.preemption_bound.get_or_insert(3);
    builder.check(move || {
        let plan = FaultPlan::default();
        let backend = AnyBackend::Faults(Faults::new(AnyBackend::Host(Host), plan.clone()));
        model(&Executor::on(backend, 0).unwrap());
        assert_eq!(plan.live_blocks(), 0, "the last owner frees the blocks");
    });
}

/// An arena with a finished call's view over `values`.
fn published(executor: &Executor, values: &[u32]) -> (Arena, View<u32>) {
    let arena = Arena::new(executor);
    let call = arena.begin().unwrap();
    let view = call.output_from_slice(values).unwrap().publish();
    call.finish().unwrap();
    (arena, view)
}

/// A read sees the call's own values, whole, or is refused.
fn read(view: &View<u32>, values: &[u32]) -> bool {
    match view.read() {
        Ok(guard) => {
            assert_eq!(*guard, *values);
            true
        }
        Err(Error::Stale { .. } | Error::Pending { .. } | Error::TooManyReaders { .. }) => false,
        Err(Error::Contended { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// A call writes its values, or is refused as contended.
fn write(arena: &Arena, values: &[u32]) -> Option<View<u32>> {
    let call = match arena.begin() {
        Ok(call) => call,
        Err(Error::Contended { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    let view = call.output_from_slice(values).unwrap().publish();
    call.finish().unwrap();
    Some(view)
}

#[test]
fn a_read_and_a_begin() {
    check(|executor| {
        let (arena, view) = published(executor, &[1, 2]);
        let reader = thread::spawn(move || read(&view, &[1, 2]));
        let later = write(&arena, &[3, 4]);
        let was_read = reader.join().unwrap();
        assert!(was_read || later.is_some(), "one of the two goes ahead");
        if let Some(view) = later {
            assert!(read(&view, &[3, 4]));
        }
    });
}

#[test]
fn two_readers_and_a_begin() {
    check(|executor| {
        let (arena, view) = published(executor, &[1]);
        let other = view.clone();
        let first = thread::spawn(move || read(&view, &[1]));
        let second = thread::spawn(move || read(&other, &[1]));
        write(&arena, &[2]);
        first.join().unwrap();
        second.join().unwrap();
        let last = write(&arena, &[5]).expect("nobody holds the arena");
        assert!(read(&last, &[5]));
    });
}

#[test]
fn two_begins_exclude_each_other() {
    check(|executor| {
        let arena = Arc::new(Arena::new(executor));
        let other = Arc::clone(&arena);
        let call = move || write(&other, &[7, 7]).map(|view| view.generation());
        let second = thread::spawn(call);
        let first = write(&arena, &[8, 8]);
        let second = second.join().unwrap();
        let first_generation = first.as_ref().map(View::generation);
        assert!(first.is_some() || second.is_some());
        assert_ne!(first_generation, second, "no generation is used twice");
        first.map(|view| read(&view, &[8, 8]));
    });
}

#[test]
fn the_last_of_arena_call_and_guard_frees() {
    check(|executor| {
        let (arena, view) = published(executor, &[9]);
        let (kept, other) = published(executor, &[6]);
        let call = kept.begin().unwrap();
        let reader = thread::spawn(move || read(&view, &[9]));
        let caller = thread::spawn(move || {
            assert!(!read(&other, &[6]), "stale");
            let view = call.output_from_slice(&[1u32]).unwrap().publish();
            call.finish().unwrap();
            read(&view, &[1])
        });
        drop(arena);
        drop(kept);
        reader.join().unwrap();
        caller.join().unwrap();
    });
}

#[test]
fn an_output_that_outlives_its_call() {
    check(|executor| {
        let arena = Arena::new(executor);
        let call = arena.begin().unwrap();
        let mut output = call.output::<u32>(1).unwrap();
        let writer = thread::spawn(move || {
            output.fill(4).unwrap();
            output.publish()
        });
        call.finish().unwrap();
        // The begin is refused, or finds the output closed and makes its view stale.
        let later = write(&arena, &[5]);
        let view = writer.join().unwrap();
        assert_eq!(read(&view, &[4]), later.is_none());
        if let Some(view) = later {
            assert!(read(&view, &[5]));
        }
    });
}

#[test]
fn an_output_that_outlives_its_abandoned_call_and_its_arena() {
    check(|executor| {
        let arena = Arena::new(executor);
        let call = arena.begin().unwrap();
        let output = call.output::<u32>(1).unwrap();
        let other = call.output::<u32>(1).unwrap();
        let first = thread::spawn(move || drop(output));
        let second = thread::spawn(move || assert!(!read(&other.publish(), &[0]), "stale at once"));
        drop(call);
        drop(arena);
        first.join().unwrap();
        second.join().unwrap();
    });
}

#[test]
fn a_writer_grows_while_its_call_opens_outputs() {
    check(|executor| {
        let arena = ArenaOptions::new().first_capacity(1).growth(Growth::Exact).build(executor).unwrap();
        let call = arena.begin().unwrap();
        let mut writer = call.writer::<u32>().unwrap();
        let growing = thread::spawn(move || {
            writer.push(1).unwrap();
            writer.reserve(16).unwrap();
            writer.push(2).unwrap();
            writer.publish()
        });
        let output = call.output_from_slice(&[3u32]).unwrap().publish();
        let written = growing.join().unwrap();
        call.finish().unwrap();
        assert!(read(&output, &[3]));
        assert!(read(&written, &[1, 2]));
    });
}

#[test]
fn a_deferred_call_is_settled_once() {
    check(|executor| {
        let arena = Arc::new(Arena::new(executor));
        let call = arena.begin().unwrap();
        let view = call.output_from_slice(&[1u32]).unwrap().publish();
        let soon = executor.defer_call(call).unwrap();
        let other = Arc::clone(&arena);
        let beginner = thread::spawn(move || write(&other, &[2]).is_some());
        let reader = thread::spawn(move || read(&view, &[1]));
        soon.wait().unwrap();
        // Whoever ended the call, it has ended once it was waited for.
        assert_ne!(arena.holder(), Some(Holder::Deferred));
        beginner.join().unwrap();
        reader.join().unwrap();
        write(&arena, &[3]).expect("the work has passed");
    });
}

#[test]
fn a_deferred_call_and_the_drop_of_its_arena() {
    check(|executor| {
        let arena = Arena::new(executor);
        let call = arena.begin().unwrap();
        let view = call.output_from_slice(&[1u32]).unwrap().publish();
        let executor = executor.clone();
        let deferring = thread::spawn(move || drop(executor.defer_call(call).unwrap()));
        let reader = thread::spawn(move || read(&view, &[1]));
        drop(arena);
        deferring.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn readers_saturate_with_an_error() {
    check(|executor| {
        let (arena, view) = published(executor, &[1]);
        let guards = [view.read().unwrap(), view.read().unwrap()];
        let other = view.clone();
        let reader = thread::spawn(move || read(&other, &[1]));
        read(&view, &[1]);
        assert!(matches!(arena.begin(), Err(Error::Contended { .. })));
        reader.join().unwrap();
        drop(guards);
        write(&arena, &[2]).expect("nobody reads");
    });
}

#[test]
fn generations_that_run_out_move_to_a_fresh_state() {
    check(|executor| {
        let arena = Arc::new(Arena::new(executor));
        let mut view = None;
        // The limit under loom is six generations a state, the last never used and one kept for an abandoned call: the
        // next begin moves to a fresh one.
        for _ in 0..4 {
            view = write(&arena, &[1]);
        }
        let view = view.unwrap();
        let other = Arc::clone(&arena);
        let beginner = thread::spawn(move || {
            write(&other, &[2]);
            write(&other, &[3]).is_some()
        });
        let is_stale = |view: &View<u32>| matches!(view.read(), Err(Error::Stale { .. }));
        if write(&arena, &[4]).is_some() {
            assert!(is_stale(&view), "for good");
        }
        beginner.join().unwrap();
        write(&arena, &[5]).expect("nobody holds the arena");
        assert!(is_stale(&view), "for good");
    });
}

#[test]
fn an_export_of_the_running_call_leaves_no_gap_for_a_begin() {
    check(|executor| {
        let arena = Arc::new(Arena::new(executor));
        let call = arena.begin().unwrap();
        let view = call.output_from_slice(&[1u32]).unwrap().publish();
        let export = call.export(&view).unwrap();
        let other = Arc::clone(&arena);
        let beginner = thread::spawn(move || write(&other, &[2]));
        call.finish().unwrap();
        assert_eq!(*export, [1]);
        drop(export);
        if beginner.join().unwrap().is_none() {
            assert!(read(&view, &[1]));
        }
        write(&arena, &[3]).expect("nobody holds the arena");
    });
}

#[test]
fn more_references_than_can_be_counted_leak_and_do_not_free() {
    check(|executor| {
        let (arena, view) = published(executor, &[1]);
        // Six are counted under loom.
        let clones: Vec<_> = (0..5).map(|_| view.clone()).collect();
        let others: Vec<_> = (0..3).map(|_| view.clone()).collect();
        let dropping = thread::spawn(move || drop(others));
        drop(clones);
        dropping.join().unwrap();
        assert!(read(&view, &[1]));
        write(&arena, &[2]).expect("nobody holds the arena");
    });
}

#[test]
fn outputs_on_two_threads_are_written_before_the_next_call_begins() {
    check(|executor| {
        let arena = Arena::new(executor);
        let call = arena.begin().unwrap();
        let (first, second) = (call.output::<u32>(1).unwrap(), call.output::<u32>(1).unwrap());
        let dropping = thread::spawn(move || drop(first));
        let publishing = thread::spawn(move || drop(second.publish()));
        call.finish().unwrap();
        // Whether it is refused or not: what it finds was written before.
        write(&arena, &[2]);
        dropping.join().unwrap();
        publishing.join().unwrap();
        write(&arena, &[3]).expect("nobody holds the arena");
    });
}
