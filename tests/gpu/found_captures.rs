//! Found by a hostile reading: what came into a graph, or was lost to it, from beside the captured call.

use std::sync::atomic::{AtomicBool, Ordering};

use device_arena::{Arena, ArenaOptions, Call, Error, Placement};

use crate::driver;
use crate::functions::Function;
use crate::lab::{Lab, counting};
use crate::memory::{RELAXED, capture};
use crate::simulated::{UNKNOWN, simulated_or_skip};
use crate::turn::turn;

const LEN: usize = 1000;

fn reserved(lab: &Lab) -> Arena {
    let arena = Arena::new(&lab.executor);
    arena.reserve(1 << 16).unwrap();
    arena
}

// The room's header was set by the graph at each launch, after its arena was freed.
#[test]
fn a_device_room_of_another_arena_does_not_come_into_the_graph() {
    let Some(turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, other) = (reserved(&lab), reserved(&lab));
    let mut refused = None;
    let mut captured = lab
        .executor
        .capture(&arena, |call| {
            let foreign = lab.executor.begin(&other)?;
            refused = Some(foreign.device_room::<u32>(100).map(drop));
            foreign.finish()?;
            // The captured call's own is what a graph is for.
            drop(call.device_room::<u32>(100)?);
            Ok(lab.fill_output(call, LEN, 7).publish())
        })
        .unwrap();
    drop(other);
    assert!(matches!(refused, Some(Err(Error::Capturing { .. }))), "{refused:?}");
    for _ in 0..2 {
        assert_eq!(captured.launch().unwrap().to_vec().unwrap(), counting(7, LEN));
    }
    drop((lab, arena, captured));
    turn.nothing_is_left();
}

// As above, for a room that was there before the capture.
#[test]
fn a_device_room_of_another_arena_is_not_reset_within_a_capture() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, other) = (reserved(&lab), reserved(&lab));
    let foreign = lab.executor.begin(&other).unwrap();
    let room = foreign.device_room::<u32>(100).unwrap();
    let mut refused = None;
    let captured = lab.executor.capture(&arena, |_| {
        refused = Some(room.reset());
        Ok(())
    });
    assert!(matches!(refused, Some(Err(Error::Capturing { .. }))), "{refused:?}");
    drop((room, foreign, other));
    captured.unwrap().launch().unwrap();
    lab.executor.synchronize().unwrap();
}

// The graph's blocks were the first arena's, and the call that was kept was the other's.
#[test]
fn a_capture_that_ends_with_another_call_is_refused() {
    let Some(turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, other) = (reserved(&lab), reserved(&lab));
    let mut foreign = lab.executor.begin(&other).unwrap();
    let refused = lab.executor.capture(&arena, |call| {
        drop(call.device_room::<u32>(100)?);
        std::mem::swap(call, &mut foreign);
        Ok(())
    });
    assert!(matches!(refused, Err(Error::Stale { .. })), "{:?}", refused.map(drop));
    // It is the arena's own call that the work took out.
    assert!(arena.holder().is_some());
    foreign.finish().unwrap();
    for arena in [&arena, &other] {
        assert_eq!(arena.holder(), None);
        assert_eq!(lab.filled(arena, LEN, 3).to_vec().unwrap(), counting(3, LEN));
    }
    drop((lab, arena, other));
    turn.nothing_is_left();
}

// They looked whether the stream is being captured by anybody, and not by whom.
#[test]
fn what_other_threads_queue_during_a_capture_is_refused_and_not_in_the_graph() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, other, third) = (reserved(&lab), reserved(&lab), reserved(&lab));
    let view = lab.filled(&other, LEN, 3);
    let mut values = vec![0; LEN];
    let mut refused = Vec::new();
    let mut captured = lab
        .executor
        .capture(&arena, |call| {
            std::thread::scope(|threads| {
                let outcomes = threads.spawn(|| {
                    let executor = &lab.executor;
                    let fresh = Arena::new(executor);
                    let place = view.read_on(executor).unwrap().device_ptr().cast_mut();
                    vec![
                        view.copy_to(&mut values),
                        executor.synchronize(),
                        lab.try_fill(place, LEN, 500),
                        executor.begin(&fresh).and_then(|call| call.output::<u32>(LEN).map(drop)),
                        executor.begin(&third).and_then(|call| call.device_room::<u32>(10).map(drop)),
                        executor.begin(&third).and_then(|call| call.output_from_slice(&[1u8; 64]).map(drop)),
                        executor.defer(&third, |_| Ok(())).map(drop).map_err(Error::from),
                    ]
                });
                refused = outcomes.join().unwrap();
            });
            Ok(lab.fill_output(call, LEN, 7).publish())
        })
        .unwrap();
    for (at, outcome) in refused.iter().enumerate() {
        assert!(matches!(outcome, Err(Error::Capturing { .. })), "{at}: {outcome:?}");
    }
    for _ in 0..2 {
        assert_eq!(captured.launch().unwrap().to_vec().unwrap(), counting(7, LEN));
    }
    lab.executor.synchronize().unwrap();
    assert_eq!(values, vec![0; LEN], "a graph wrote where a borrow had ended");
    assert_eq!(view.to_vec().unwrap(), counting(3, LEN));
}

/// Captures and launches again and again, until `other`, on its own thread, has done its rounds.
fn beside_captures(lab: &Lab, other: impl FnOnce() + Send) {
    let arena = reserved(lab);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let is_done = &is_done;
        let others = threads.spawn(move || {
            // A panic ends the rounds as well.
            struct Done<'d>(&'d AtomicBool);
            impl Drop for Done<'_> {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::SeqCst);
                }
            }
            let _done = Done(is_done);
            other();
        });
        while !is_done.load(Ordering::SeqCst) {
            let mut captured = lab.executor.capture(&arena, |_| Ok(())).unwrap();
            std::thread::yield_now();
            captured.launch().unwrap();
            lab.executor.synchronize().unwrap();
        }
        others.join().unwrap();
    });
}

// The look and the copy were two steps, and a capture could begin in between.
#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn copies_beside_captures_write_to_no_buffer_whose_borrow_has_ended() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let source = reserved(&lab);
    let view = lab.filled(&source, 16, 3);
    beside_captures(&lab, || {
        let mut refused = Vec::new();
        for _ in 0..2000 {
            let mut values = Box::new([0u32; 16]);
            match view.copy_to(&mut values[..]) {
                Ok(()) => assert_eq!(values[..], counting(3, 16)),
                Err(error) => {
                    assert!(matches!(error, Error::Capturing { .. }), "{error}");
                    // Each stays where it is: a launch that writes there is seen.
                    values.fill(0xEE);
                    refused.push(values);
                }
            }
        }
        assert!(
            refused.iter().all(|values| **values == [0xEE; 16]),
            "a graph wrote where a borrow had ended"
        );
    });
}

// As above: a wait that began after the capture did spoils it.
#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn waits_beside_captures_spoil_none() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    beside_captures(&lab, || {
        for _ in 0..5000 {
            let waited = lab.executor.synchronize();
            assert!(matches!(waited, Ok(()) | Err(Error::Capturing { .. })), "{waited:?}");
        }
    });
}

// As above: what the host asks of the stream does so too.
#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn host_access_beside_captures_spoils_none() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = ArenaOptions::new().placement(Placement::HostCoherent).build(&lab.executor).unwrap();
    arena.reserve(1 << 16).unwrap();
    beside_captures(&lab, || {
        for _ in 0..5000 {
            let call = lab.executor.begin(&arena).unwrap();
            let mut output = call.output::<u32>(LEN).unwrap();
            output.device_ptr().unwrap();
            let asked = output.fill(3);
            assert!(
                matches!(asked, Ok(()) | Err(Error::Capturing { .. } | Error::Pending { .. })),
                "{asked:?}"
            );
        }
    });
}

// As above: deferred calls and what readers on other streams leave.
#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn events_beside_captures_spoil_none() {
    let Some(_turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), Lab::new(0));
    let source = reserved(&lab);
    let view = lab.filled(&source, LEN, 3);
    let deferred = reserved(&lab);
    let is_refusal = |error: &Error| matches!(error, Error::Capturing { .. });
    beside_captures(&lab, || {
        for _ in 0..2000 {
            match view.read_on(&reader.executor) {
                Ok(guard) => drop(guard),
                Err(error) => assert!(is_refusal(&error), "{error}"),
            }
            match lab.executor.defer(&deferred, |_| Ok(())) {
                Ok(soon) => {
                    // Its event may be what is refused.
                    let waited = soon.wait();
                    assert!(waited.as_ref().err().is_none_or(is_refusal), "{waited:?}");
                }
                Err(refused) => assert!(is_refusal(&refused.error), "{refused}"),
            }
        }
    });
    assert_eq!(view.to_vec().unwrap(), counting(3, LEN));
}

// As above: a block was cleared by the graph and not by the allocation, and again when it was freed.
#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn blocks_that_are_made_beside_captures_are_cleared_once_and_at_once() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    beside_captures(&lab, || {
        for _ in 0..500 {
            let arena = Arena::new(&lab.executor);
            let call = lab.executor.begin(&arena).unwrap();
            let output = match call.output::<u32>(LEN) {
                Ok(output) => output.publish(),
                Err(error) => {
                    assert!(matches!(error, Error::Capturing { .. }), "{error}");
                    continue;
                }
            };
            call.finish().unwrap();
            match output.to_vec() {
                Ok(values) => assert_eq!(values, vec![0; LEN]),
                Err(error) => assert!(matches!(error, Error::Capturing { .. }), "{error}"),
            }
        }
    });
}

// The block was given up for a larger one, and the capture let the driver take it and give none.
#[test]
fn an_output_that_is_refused_within_a_capture_takes_the_block_from_nobody() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = ArenaOptions::new().byte_limit(128 << 10).build(&lab.executor).unwrap();
    lab.filled(&arena, 15_000, 1);
    let mut large = None;
    let mut captured = lab
        .executor
        .capture(&arena, |call| {
            large = Some(call.output::<u8>(100 << 10).map(drop));
            Ok(lab.fill_output(call, LEN, 7).publish())
        })
        .unwrap();
    assert!(matches!(large, Some(Err(Error::Capturing { .. }))), "{large:?}");
    assert_eq!(captured.launch().unwrap().to_vec().unwrap(), counting(7, LEN));
}

// Its blocks could not be freed there, and nobody tried again.
#[test]
fn an_arena_that_is_dropped_within_a_capture_is_freed_after_it() {
    let Some(turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, other) = (reserved(&lab), reserved(&lab));
    let mut captured = lab
        .executor
        .capture(&arena, |call| {
            drop(other);
            Ok(lab.fill_output(call, LEN, 7).publish())
        })
        .unwrap();
    assert_eq!(captured.launch().unwrap().to_vec().unwrap(), counting(7, LEN));
    drop((captured, arena));
    // The same where somebody else captures the stream.
    let other = reserved(&lab);
    let ((), graph) = capture(&lab.executor, lab.stream(), RELAXED, || drop(other));
    assert!(!graph.is_null(), "the drop has spoilt the capture");
    // SAFETY: the graph is this one's alone.
    driver::ok(unsafe { driver::graph_destroy(graph) });
    drop(lab);
    turn.nothing_is_left();
}

// Its wait for the reader's event would have been the graph's, and spoilt it.
#[test]
fn an_arena_with_readers_that_is_dropped_within_a_capture_does_not_spoil_it() {
    let Some(turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), Lab::new(0));
    let (arena, other) = (reserved(&lab), reserved(&lab));
    let view = lab.filled(&other, LEN, 3);
    drop(view.read_on(&reader.executor).unwrap());
    let captured = lab.executor.capture(&arena, |call| {
        drop((other, view));
        Ok(lab.fill_output(call, LEN, 7).publish())
    });
    assert_eq!(captured.unwrap().launch().unwrap().to_vec().unwrap(), counting(7, LEN));
    drop((lab, reader, arena));
    turn.nothing_is_left();
}

// The call began before the driver refused the capture.
#[test]
fn a_capture_that_is_refused_leaves_the_last_calls_views() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab);
    let view = lab.filled(&arena, LEN, 3);
    let (refused, graph) =
        capture(&lab.executor, lab.stream(), RELAXED, || lab.executor.capture(&arena, |_| Ok(())).map(drop));
    // SAFETY: the graph is this one's alone.
    driver::ok(unsafe { driver::graph_destroy(graph) });
    assert!(matches!(refused, Err(Error::Capturing { .. })), "{refused:?}");
    assert_eq!(view.to_vec().unwrap(), counting(3, LEN));
}

// It was taken for ended before the driver was asked to end it.
#[test]
fn a_capture_whose_end_fails_is_ended_all_the_same() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    for function in [Function::CtxGetCurrent, Function::CtxPush, Function::StreamIsCapturing] {
        let arena = reserved(&lab);
        let outcome = lab.executor.capture(&arena, |_: &mut Call| {
            simulated.fail(function, 0, 1, UNKNOWN);
            Ok(())
        });
        simulated.clear();
        let outcome = outcome.map(drop);
        assert_eq!(lab.executor.synchronize(), Ok(()), "{function}: {outcome:?}");
        assert_eq!(lab.filled(&arena, LEN, 3).to_vec().unwrap(), counting(3, LEN));
    }
}

// Found whole: the captured call keeps the blocks when the arena's handle is gone.
#[test]
fn a_graph_is_launched_after_its_arenas_handle_is_dropped() {
    let Some(turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab);
    let work = |call: &mut Call| {
        drop(call.device_room::<u32>(100)?);
        drop(lab.fill_output(call, LEN, 7));
        Ok(())
    };
    let mut captured = lab.executor.capture(&arena, work).unwrap();
    drop(arena);
    for _ in 0..2 {
        captured.launch().unwrap();
        lab.executor.synchronize().unwrap();
    }
    drop((captured, lab));
    turn.nothing_is_left();
}
