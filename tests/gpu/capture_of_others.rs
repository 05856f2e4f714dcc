//! Somebody else captures the executor's stream: a steady call becomes part of it, and nothing of the crate's spoils it.

use device_arena::{Arena, ArenaOptions, Error, Placement, Scrub};

use crate::driver;
use crate::lab::{Lab, counting};
use crate::memory::{MODES, RawStream, capture, launch_and_drop};
use crate::turn::turn;
use crate::vendor;

const LEN: usize = 1000;

fn steady(lab: &Lab, placement: Placement) -> Arena {
    let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
    for first in 0..2 {
        lab.filled(&arena, LEN, first);
    }
    lab.executor.synchronize().unwrap();
    arena
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn a_steady_call_goes_on_and_its_work_is_the_captures() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = steady(&lab, Placement::Device);
    for mode in MODES {
        let (view, graph) = capture(&lab.executor, lab.stream(), mode, || lab.filled(&arena, LEN, 40 + mode));
        launch_and_drop(&lab.executor, graph);
        assert_eq!(view.to_vec().unwrap(), counting(40 + mode, LEN));
    }
}

/// The capture is valid still where `refused` is refused in it.
#[track_caller]
fn is_refused(lab: &Lab, mode: u32, refused: impl FnOnce() -> Result<(), Error>) {
    let (outcome, graph) = capture(&lab.executor, lab.stream(), mode, refused);
    assert!(matches!(outcome, Err(Error::Capturing { .. })), "mode {mode}: {outcome:?}");
    assert!(!graph.is_null(), "mode {mode}: the capture was spoilt");
    // SAFETY: the graph is this one's alone.
    driver::ok(unsafe { driver::graph_destroy(graph) });
}

#[test]
fn a_begin_that_has_something_to_see_to_is_refused_and_the_views_stay() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    for mode in MODES {
        let options = ArenaOptions::new().first_capacity(4096);
        // A chain that one block is to replace.
        let chained = options.build(&lab.executor).unwrap();
        let call = lab.executor.begin(&chained).unwrap();
        let views = [1000, 9000].map(|len| lab.fill_output(&call, len, 5).publish());
        call.finish().unwrap();
        is_refused(&lab, mode, || lab.executor.begin(&chained).map(drop));
        assert_eq!(views[1].to_vec().unwrap(), counting(5, 9000));
        // Bytes to scrub.
        let scrubbed = options.scrub(Scrub::Zero).build(&lab.executor).unwrap();
        let view = lab.filled(&scrubbed, LEN, 6);
        is_refused(&lab, mode, || lab.executor.begin(&scrubbed).map(drop));
        assert_eq!(view.to_vec().unwrap(), counting(6, LEN));
        // A reader on another stream to be waited for.
        let read = options.build(&lab.executor).unwrap();
        let view = lab.filled(&read, LEN, 7);
        drop(view.read_on(&vendor::executor(0).unwrap()).unwrap());
        is_refused(&lab, mode, || lab.executor.begin(&read).map(drop));
        assert_eq!(view.to_vec().unwrap(), counting(7, LEN));
        for arena in [&chained, &scrubbed, &read] {
            assert_eq!(arena.holder(), None);
            assert_eq!(lab.filled(arena, LEN, 8).to_vec().unwrap(), counting(8, LEN));
        }
    }
}

#[test]
fn growth_and_trim_are_refused_and_the_capture_goes_on() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    for placement in [Placement::Device, Placement::HostCoherent] {
        for mode in MODES {
            let arena = steady(&lab, placement);
            let before = arena.stats();
            is_refused(&lab, mode, || {
                let call = lab.executor.begin(&arena)?;
                let refused = call.output::<u8>(1 << 20).map(drop);
                call.finish()?;
                refused
            });
            is_refused(&lab, mode, || arena.reserve(1 << 20));
            is_refused(&lab, mode, || arena.trim().map(drop));
            let after = arena.stats();
            assert_eq!((after.allocations, after.frees), (before.allocations, before.frees));
            assert_eq!(lab.filled(&arena, LEN, 3).to_vec().unwrap(), counting(3, LEN));
        }
    }
}

#[test]
fn waits_copies_and_guards_are_refused_and_the_capture_goes_on() {
    let Some(_turn) = turn() else { return };
    let (lab, other) = (Lab::new(0), Lab::new(0));
    for mode in MODES {
        let (arena, far) = (steady(&lab, Placement::Device), steady(&other, Placement::Device));
        let coherent = steady(&lab, Placement::HostCoherent);
        let (view, far_view) = (lab.filled(&arena, LEN, 3), other.filled(&far, LEN, 4));
        let shared = lab.filled(&coherent, LEN, 5);
        is_refused(&lab, mode, || lab.executor.synchronize());
        is_refused(&lab, mode, || view.to_vec().map(drop));
        is_refused(&lab, mode, || shared.to_vec().map(drop));
        is_refused(&lab, mode, || view.read_on(&other.executor).map(drop));
        is_refused(&lab, mode, || far_view.read_on(&lab.executor).map(drop));
        is_refused(&lab, mode, || {
            let call = lab.executor.begin(&arena)?;
            call.output_from_slice(&counting(0, LEN)).map(drop)
        });
        is_refused(&lab, mode, || lab.executor.defer(&arena, |_| Ok(())).map(drop).map_err(Error::from));
        is_refused(&lab, mode, || {
            let call = lab.executor.begin(&arena)?;
            lab.executor.defer_call(call).map(drop).map_err(Error::from)
        });
        assert_eq!(arena.holder(), None);
        assert_eq!(lab.filled(&arena, LEN, 3).to_vec().unwrap(), counting(3, LEN));
        assert_eq!(far_view.to_vec().unwrap(), counting(4, LEN));
    }
}

#[test]
fn a_guard_from_before_the_capture_keeps_its_arena_held() {
    let Some(turn) = turn() else { return };
    let mut turn = turn;
    let (lab, reader) = (Lab::new(0), Lab::new(0));
    let arena = steady(&lab, Placement::Device);
    let view = lab.filled(&arena, LEN, 3);
    let guard = view.read_on(&reader.executor).unwrap();
    let (held, graph) = capture(&reader.executor, reader.stream(), 0, || {
        drop(guard);
        arena.holder()
    });
    assert!(!graph.is_null(), "the drop has spoilt the capture");
    // SAFETY: the graph is this one's alone.
    driver::ok(unsafe { driver::graph_destroy(graph) });
    assert!(held.is_some(), "nothing that the graph reads is overwritten");
    assert!(matches!(lab.executor.begin(&arena), Err(Error::Contended { .. })));
    drop((arena, view, lab, reader));
    // Documented: as by a guard that was forgotten.
    turn.forgive();
}

#[test]
fn other_streams_captures_are_left_alone() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    for mode in MODES {
        let other = RawStream::new(&lab.executor);
        let ((), graph) = other.capture(mode, || {
            // Everything that allocates, waits, asks or frees, on a stream that nobody captures.
            for placement in [Placement::Device, Placement::HostCoherent] {
                let arena =
                    ArenaOptions::new().placement(placement).first_capacity(1).build(&lab.executor).unwrap();
                for round in 1..4 {
                    let view = lab.filled(&arena, LEN * round, 9);
                    assert_eq!(view.to_vec().unwrap(), counting(9, LEN * round));
                    let reader = vendor::executor(0).unwrap();
                    drop(view.read_on(&reader).unwrap());
                }
                let soon = lab.executor.defer(&arena, |call| Ok(call.output::<u8>(9)?.publish())).unwrap();
                soon.wait().unwrap();
                let call = lab.executor.begin(&arena).unwrap();
                drop(call.device_room::<u32>(10).unwrap().collect().unwrap());
                call.finish().unwrap();
                arena.trim().unwrap();
            }
            let own = Arena::new(&lab.executor);
            own.reserve(1 << 16).unwrap();
            let mut captured =
                lab.executor.capture(&own, |call| Ok(lab.fill_output(call, LEN, 1).publish())).unwrap();
            assert_eq!(captured.launch().unwrap().to_vec().unwrap(), counting(1, LEN));
            drop(Lab::load(vendor::executor(0).unwrap()).unwrap());
        });
        assert!(!graph.is_null(), "mode {mode}: the capture was spoilt");
        // SAFETY: the graph is this one's alone.
        driver::ok(unsafe { driver::graph_destroy(graph) });
    }
}

#[test]
fn a_wait_for_a_deferred_call_is_refused_and_the_capture_goes_on() {
    let Some(_turn) = turn() else { return };
    let (lab, other) = (Lab::new(0), Lab::new(0));
    let far = steady(&other, Placement::Device);
    for mode in MODES {
        let soon = other.executor.defer(&far, |call| Ok(call.output::<u8>(9)?.publish())).unwrap();
        is_refused(&lab, mode, || lab.executor.order_after(&soon));
        soon.wait().unwrap();
    }
}

#[cfg(feature = "cudarc")]
#[test]
fn a_default_stream_is_as_good_as_captured_while_a_stream_that_it_waits_for_is() {
    let Some(_turn) = crate::turn::turn_of_nvidia("cudarc") else { return };
    let home = vendor::executor(0).unwrap();
    let done = std::thread::spawn(move || {
        let context = cudarc::driver::CudaContext::new(0).unwrap();
        let lab = Lab::on(device_arena::Executor::from_cudarc(&context.default_stream()).unwrap());
        let arena = steady(&lab, Placement::Device);
        let view = lab.filled(&arena, LEN, 3);
        // It has no graph of its own.
        let refused = lab.executor.capture(&arena, |_| Ok(())).map(drop);
        assert!(refused.is_err(), "{refused:?}");
        let view = if view.is_current() { view } else { lab.filled(&arena, LEN, 3) };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the driver writes one handle; the default stream and this one wait for each other.
        driver::ok(home.with_current(|| unsafe { driver::stream_create(&raw mut handle, 0) }).unwrap());
        let blocking = RawStream::of(&home, handle);
        for mode in MODES {
            let (outcomes, graph) = blocking.capture(mode, || {
                let grown = lab.executor.begin(&arena).and_then(|call| {
                    let grown = call.output::<u8>(1 << 20).map(drop);
                    call.finish()?;
                    grown
                });
                [lab.executor.synchronize(), view.to_vec().map(drop), grown, arena.trim().map(drop)]
            });
            for outcome in outcomes {
                let is_refused = matches!(outcome, Err(Error::Capturing { .. } | Error::Stale { .. }));
                assert!(is_refused, "mode {mode}: {outcome:?}");
            }
            assert!(!graph.is_null(), "mode {mode}: the capture was spoilt");
            // SAFETY: the graph is this one's alone.
            driver::ok(unsafe { driver::graph_destroy(graph) });
        }
        assert_eq!(lab.filled(&arena, LEN, 4).to_vec().unwrap(), counting(4, LEN));
    });
    if let Err(panic) = done.join() {
        std::panic::resume_unwind(panic);
    }
}
