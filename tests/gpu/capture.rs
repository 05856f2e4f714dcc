//! Calls that are captured once and launched again and again.

use device_arena::{Arena, ArenaOptions, Captured, Error, Executor, Holder, Placement, Result, Scrub, View};

use crate::functions::Function;
use crate::lab::{Lab, counting};
use crate::simulated::{simulated, simulated_or_skip};
use crate::turn::turn;
use crate::vendor;

const LEN: usize = 1000;

/// An arena with room for what is captured, and words that the captured work adds to.
fn reserved(lab: &Lab, placement: Placement) -> Arena {
    let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
    arena.reserve(1 << 16).unwrap();
    arena
}

/// A captured call that copies what is at `from`, plus 100.
fn captured(lab: &Lab, arena: &Arena, from: *const u32) -> Captured<View<u32>> {
    let work = |call: &mut device_arena::Call| {
        let mut output = call.output::<u32>(LEN)?;
        lab.add(from, output.device_ptr()?, LEN, 100);
        Ok(output.publish())
    };
    lab.executor.capture(arena, work).unwrap()
}

/// A source that its owner rewrites between launches.
struct Source {
    arena: Arena,
    address: *const u32,
}

impl Source {
    fn new(lab: &Lab) -> Self {
        let arena = Arena::new(&lab.executor);
        let view = lab.filled(&arena, LEN, 0);
        let address = view.read_on(&lab.executor).unwrap().device_ptr();
        Self { arena, address }
    }

    fn rewrite(&self, lab: &Lab, first: u32) {
        let view = lab.filled(&self.arena, LEN, first);
        assert_eq!(view.read_on(&lab.executor).unwrap().device_ptr(), self.address);
    }
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn each_launch_answers_fresh_views_with_its_own_values() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    if let Some(simulated) = simulated() {
        simulated.set("LATE", "1");
    }
    for placement in [Placement::Device, Placement::HostCoherent] {
        let (arena, source) = (reserved(&lab, placement), Source::new(&lab));
        let mut captured = captured(&lab, &arena, source.address);
        let rewinds = arena.stats().rewinds;
        let mut earlier: Option<View<u32>> = None;
        for round in 0..20 {
            source.rewrite(&lab, round);
            let view = captured.launch().unwrap();
            if let Some(earlier) = earlier.replace(view.clone()) {
                assert!(matches!(earlier.to_vec(), Err(Error::Stale { .. })), "of the launch before");
                assert!(earlier.generation() < view.generation());
            }
            assert_eq!(view.to_vec().unwrap(), counting(round + 100, LEN));
        }
        let stats = arena.stats();
        assert_eq!((stats.rewinds - rewinds, stats.allocations), (20, 1));
        // Dropped, it ends the last of them; its views stay.
        drop(captured);
        assert_eq!(earlier.unwrap().to_vec().unwrap(), counting(119, LEN));
        assert_eq!(lab.filled(&arena, 10, 1).to_vec().unwrap(), counting(1, 10));
    }
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn nothing_runs_before_the_first_launch_and_launches_follow_each_other() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, source) = (reserved(&lab, Placement::Device), Source::new(&lab));
    let place = source.address.cast_mut();
    let mut captured = lab
        .executor
        .capture(&arena, |_| {
            // In place: each launch counts on.
            lab.add(place, place, LEN, 1);
            Ok(())
        })
        .unwrap();
    let now = |expected: u32| {
        let copy = Arena::new(&lab.executor);
        let call = lab.executor.begin(&copy).unwrap();
        let mut output = call.output::<u32>(LEN).unwrap();
        lab.add(place, output.device_ptr().unwrap(), LEN, 0);
        let view = output.publish();
        call.finish().unwrap();
        assert_eq!(view.to_vec().unwrap(), counting(expected, LEN));
    };
    now(0);
    for _ in 0..50 {
        captured.launch().unwrap();
    }
    now(50);
}

#[test]
fn views_of_the_capture_itself_are_stale() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab, Placement::Device);
    let mut kept = None;
    let mut captured = lab
        .executor
        .capture(&arena, |call| {
            let view = lab.fill_output(call, LEN, 7).publish();
            assert!(matches!(view.to_vec(), Err(Error::Pending { .. })));
            kept = Some(view.clone());
            Ok((view, ()))
        })
        .unwrap();
    let kept = kept.unwrap();
    assert!(matches!(kept.to_vec(), Err(Error::Stale { .. })), "nothing has run");
    let (view, ()) = captured.launch().unwrap();
    assert!(matches!(kept.to_vec(), Err(Error::Stale { .. })));
    assert_eq!(view.to_vec().unwrap(), counting(7, LEN));
}

#[test]
fn a_captured_call_holds_its_arena() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, source) = (reserved(&lab, Placement::Device), Source::new(&lab));
    let mut captured = captured(&lab, &arena, source.address);
    let check = || {
        assert_eq!(arena.holder(), Some(Holder::Captured));
        let is_held = |error: Error| matches!(error, Error::Contended { holder: Holder::Captured, .. });
        assert!(lab.executor.begin(&arena).is_err_and(is_held));
        assert!(arena.reserve(1 << 20).is_err_and(is_held));
        assert!(arena.trim().is_err_and(is_held));
        assert!(lab.executor.capture(&arena, |_| Ok(())).map(drop).is_err_and(is_held));
        assert!(lab.executor.begin_timeout(&arena, std::time::Duration::from_millis(1)).is_err_and(is_held));
        let deferred = lab.executor.defer(&arena, |_| Ok(()));
        assert!(deferred.map(drop).is_err_and(|refused| is_held(refused.error)));
    };
    check();
    let view = captured.launch().unwrap();
    check();
    assert_eq!(view.to_vec().unwrap(), counting(100, LEN));
    drop(captured);
    lab.executor.begin(&arena).unwrap().finish().unwrap();
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn readers_hold_a_launch_off_and_it_waits_for_their_work() {
    let Some(_turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), Lab::new(0));
    let (arena, source) = (reserved(&lab, Placement::Device), Source::new(&lab));
    let target = Arena::new(&reader.executor);
    target.reserve(1 << 16).unwrap();
    let mut captured = captured(&lab, &arena, source.address);
    for round in 0..3 {
        let view = captured.launch().unwrap();
        let guard = view.read_on(&reader.executor).unwrap();
        let refused = captured.launch().map(drop);
        assert!(matches!(refused, Err(Error::Contended { operation: "launch", holder: Holder::Readers(1) })));
        assert!(view.is_current(), "the refusal changed nothing");
        let gate = reader.gate();
        let call = reader.executor.begin(&target).unwrap();
        let mut output = call.output::<u32>(LEN).unwrap();
        reader.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 1);
        let copy = output.publish();
        call.finish().unwrap();
        drop(guard);
        source.rewrite(&lab, 1000 * (round + 1));
        let next = captured.launch().unwrap();
        assert!(lab.is_busy(), "the launch waits for the reader");
        gate.open();
        assert_eq!(copy.to_vec().unwrap(), counting(1000 * round + 101, LEN));
        assert_eq!(next.to_vec().unwrap(), counting(1000 * (round + 1) + 100, LEN));
        drop(captured.launch().unwrap());
    }
}

/// Captures what is refused within, and shows that the capture went on.
#[track_caller]
fn refused_within<E>(lab: &Lab, arena: &Arena, refused: impl FnOnce(&mut device_arena::Call) -> E) -> E {
    let mut answer = None;
    let mut captured = lab
        .executor
        .capture(arena, |call| {
            answer = Some(refused(call));
            Ok(lab.fill_output(call, LEN, 7).publish())
        })
        .unwrap();
    assert_eq!(captured.launch().unwrap().to_vec().unwrap(), counting(7, LEN));
    answer.unwrap()
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn what_would_spoil_the_capture_is_refused_and_the_capture_goes_on() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab, Placement::Device);
    let other = Arena::new(&lab.executor);
    let view = lab.filled(&other, LEN, 3);
    let is_refused = |outcome: Result<()>| {
        assert!(matches!(outcome, Err(Error::Capturing { .. })), "{outcome:?}");
    };
    is_refused(refused_within(&lab, &arena, |call| call.output::<u8>(1 << 20).map(drop)));
    is_refused(refused_within(&lab, &arena, |call| call.output_from_slice(&[1u8, 2]).map(drop)));
    is_refused(refused_within(&lab, &arena, |call| call.output::<u32>(LEN)?.copy_from_view(&view)));
    is_refused(refused_within(&lab, &arena, |call| {
        let room = call.device_room::<u32>(10)?;
        room.collect().map(drop).map_err(Error::from)
    }));
    is_refused(refused_within(&lab, &arena, |_| view.to_vec().map(drop)));
    is_refused(refused_within(&lab, &arena, |_| lab.executor.synchronize()));
    is_refused(refused_within(&lab, &arena, |_| {
        let own = Arena::new(&lab.executor);
        lab.executor.defer(&own, |_| Ok(())).map(drop).map_err(Error::from)
    }));
    is_refused(refused_within(&lab, &arena, |_| {
        let own = Arena::new(&lab.executor);
        lab.executor.capture(&own, |_| Ok(())).map(drop)
    }));
    is_refused(refused_within(&lab, &arena, |_| other.trim().map(drop)));
    is_refused(refused_within(&lab, &arena, |_| {
        let reader = vendor::executor(0)?;
        let far = Lab::load(reader)?;
        let arena = Arena::new(&far.executor);
        let call = far.executor.begin(&arena)?;
        let view = call.output::<u8>(4)?.publish();
        call.finish()?;
        view.read_on(&lab.executor).map(drop)
    }));
    // The arena of the view was no further harmed.
    assert_eq!(lab.filled(&other, 10, 4).to_vec().unwrap(), counting(4, 10));
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn scratch_and_device_rooms_are_captured() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab, Placement::Device);
    let mut captured = lab
        .executor
        .capture(&arena, |call| {
            call.scratch(|scope| {
                let scratch = scope.take_on_device::<u32>(LEN)?;
                lab.fill(scratch, LEN, 50);
                let mut output = scope.call().output::<u32>(LEN)?;
                lab.add(scratch, output.device_ptr()?, LEN, 1);
                Ok([output.publish()])
            })
        })
        .unwrap();
    for _ in 0..3 {
        let [view] = captured.launch().unwrap();
        assert_eq!(view.to_vec().unwrap(), counting(51, LEN));
    }
}

#[test]
fn what_can_not_be_kept_is_refused_and_the_arena_is_free() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, other) = (reserved(&lab, Placement::Device), Arena::new(&lab.executor));
    let foreign = lab.filled(&other, LEN, 1);
    let refused = lab.executor.capture(&arena, |_| Ok(foreign.clone())).map(drop);
    assert!(matches!(refused, Err(Error::Stale { .. })), "{refused:?}");
    assert_eq!(foreign.to_vec().unwrap(), counting(1, LEN));
    let earlier = lab.filled(&arena, LEN, 1);
    let refused = lab.executor.capture(&arena, |_| Ok(vec![earlier.clone()])).map(drop);
    assert!(matches!(refused, Err(Error::Stale { .. })), "{refused:?}");
    let mut open = None;
    let refused = lab.executor.capture(&arena, |call| {
        open = Some(call.output::<u32>(LEN)?);
        Ok(())
    });
    let held = Error::Contended { operation: "capture", holder: Holder::Output };
    assert_eq!(refused.map(drop), Err(held));
    assert_eq!(arena.holder(), Some(Holder::Output));
    drop(open);
    assert_eq!(arena.holder(), None);
    let refused = lab.executor.capture(&arena, |call| {
        drop(lab.fill_output(call, LEN, 1));
        Err::<(), _>(Error::AlreadyTaken)
    });
    assert_eq!(refused.map(drop), Err(Error::AlreadyTaken), "what the work returns");
    assert_eq!(lab.filled(&arena, LEN, 9).to_vec().unwrap(), counting(9, LEN));
}

#[test]
fn a_panic_within_ends_the_capture() {
    let Some(turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab, Placement::Device);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        lab.executor.capture(&arena, |call| {
            drop(lab.fill_output(call, LEN, 1));
            if call.generation() > 0 {
                panic!("of the caller");
            }
            Ok(())
        })
    }));
    assert!(outcome.is_err());
    assert_eq!(lab.filled(&arena, LEN, 9).to_vec().unwrap(), counting(9, LEN));
    drop((lab, arena));
    turn.nothing_is_left();
}

#[test]
fn the_host_and_arenas_that_scrub_capture_nothing() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = ArenaOptions::new().scrub(Scrub::Zero).build(&lab.executor).unwrap();
    let refused = lab.executor.capture(&arena, |_| Ok(())).map(drop);
    assert!(matches!(refused, Err(Error::Option { option: "scrub", .. })), "{refused:?}");
    let host = Executor::host().unwrap();
    let refused = host.capture(&Arena::host(), |_| Ok(())).map(drop);
    assert!(matches!(refused, Err(Error::Option { option: "capture", .. })), "{refused:?}");
    assert_eq!(arena.holder(), None);
}

#[test]
fn a_launch_during_somebody_elses_capture_is_refused_and_nothing_changed() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, source) = (reserved(&lab, Placement::Device), Source::new(&lab));
    let mut captured = captured(&lab, &arena, source.address);
    let view = captured.launch().unwrap();
    let (refused, graph) =
        crate::memory::capture(&lab.executor, lab.stream(), crate::memory::RELAXED, || {
            captured.launch().map(drop)
        });
    assert_eq!(refused, Err(Error::Capturing { operation: "launch" }));
    assert!(!graph.is_null());
    // SAFETY: the graph is this one's alone.
    crate::driver::ok(unsafe { crate::driver::graph_destroy(graph) });
    assert_eq!(view.to_vec().unwrap(), counting(100, LEN));
    assert_eq!(captured.launch().unwrap().to_vec().unwrap(), counting(100, LEN));
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn a_launch_asks_for_no_memory_and_no_event() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    let (arena, source) = (reserved(&lab, Placement::Device), Source::new(&lab));
    let mut captured = captured(&lab, &arena, source.address);
    captured.launch().unwrap();
    let functions = [Function::MemAlloc, Function::EventCreate, Function::LaunchKernel];
    let count = || functions.map(|function| simulated.calls(function));
    let before = count();
    for _ in 0..10 {
        captured.launch().unwrap();
    }
    assert_eq!(count(), before);
}
