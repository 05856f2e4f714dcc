//! Every call of the driver's fails once, in everything that a user does: an error that names it, the arena as it was, the
//! same once more with the right values, and nothing left behind.

use device_arena::{
    Arena, ArenaOptions, Error, Executor, Growth, Holder, Placement, Refused, Result, Scrub, TapeView, View,
};

use crate::driver;
use crate::lab::{Lab, counting};
use crate::memory::RawStream;
use crate::simulated::{Simulated, UNKNOWN, simulated_or_skip};
use crate::turn::{Turn, turn};

const LEN: usize = 100;

/// The functions that the crate calls. What pops a context is left out: it can't fail where there is one.
const FUNCTIONS: [&str; 43] = [
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxPushCurrent_v2",
    "cuDeviceCanAccessPeer",
    "cuCtxEnablePeerAccess",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDevicePrimaryCtxRetain",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGetErrorName",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuLaunchHostFunc",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetAddressRange_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemHostGetDevicePointer_v2",
    "cuMemcpyAsync",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuPointerGetAttributes",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// These have no other way, and are called in no drop: an error has to come of each.
const LOUD: [&str; 13] = [
    "cuEventQuery",
    "cuEventSynchronize",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuLaunchKernel",
    "cuMemcpyAsync",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuPointerGetAttributes",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamGetCtx",
    "cuStreamWaitEvent",
];

/// The driver was made to keep what these would have let go of, for good.
const KEPT: [&str; 6] = [
    "cuEventDestroy_v2",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuModuleUnload",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
];

/// What a step has to work with.
struct Scene {
    turn_backend: device_arena::backend::AnyBackend,
    lab: Lab,
    reader: Executor,
    arena: Arena,
    target: Arena,
    /// Of the arena's last call.
    view: View<u32>,
}

impl Scene {
    fn new(turn: &Turn, options: ArenaOptions) -> Self {
        let lab = Lab::load(Executor::cuda(0).unwrap()).unwrap();
        let reader = Executor::cuda(0).unwrap();
        let arena = options.build(&lab.executor).unwrap();
        let target = Arena::new(&reader);
        let view = lab.filled(&arena, 10, 500);
        lab.executor.synchronize().unwrap();
        Self { turn_backend: turn.backend(), lab, reader, arena, target, view }
    }
}

/// Fails with what the kernels wrote, where it is not what they should have written.
#[track_caller]
fn expect(view: &View<u32>, first: u32, len: usize) -> Result<()> {
    assert_eq!(view.to_vec()?, counting(first, len));
    Ok(())
}

fn run(turn: &mut Turn, options: ArenaOptions, step: impl Fn(&Scene) -> Result<()>) {
    let Some(simulated) = simulated_or_skip() else { return };
    let scene = Scene::new(turn, options);
    let count = || FUNCTIONS.map(|function| simulated.calls(function));
    let before = count();
    step(&scene).unwrap();
    let calls = count();
    drop(scene);
    turn.nothing_is_left();
    let mut points = 0;
    let mut unseen = Vec::new();
    for (at, function) in FUNCTIONS.iter().enumerate() {
        // The second half of many alike calls is like the first.
        for after in 0..(calls[at] - before[at]).min(10) {
            fail_once(turn, &simulated, options, &step, function, after, &mut unseen);
            points += 1;
        }
    }
    println!("{points} points of failure");
    assert!(unseen.is_empty(), "no error came of {unseen:?}");
}

fn fail_once(
    turn: &mut Turn,
    simulated: &Simulated,
    options: ArenaOptions,
    step: &impl Fn(&Scene) -> Result<()>,
    function: &'static str,
    after: u64,
    unseen: &mut Vec<(&'static str, u64)>,
) {
    // What an earlier point was allowed to leave.
    turn.forgive();
    let scene = Scene::new(turn, options);
    let calls = simulated.calls(function);
    simulated.fail(function, after, 1, UNKNOWN);
    let outcome = step(&scene);
    // Where something has passed sooner than before, it is not asked for.
    let has_failed = simulated.calls(function) - calls > after;
    simulated.clear();
    let is_quiet = outcome.is_ok();
    match outcome {
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(function), "{function} after {after}: {text}");
            let Error::Driver { code, .. } = error else { panic!("{function} after {after}: {error:?}") };
            assert_eq!(code, i64::from(UNKNOWN));
        }
        Ok(()) if has_failed && LOUD.contains(&function) => unseen.push((function, after)),
        Ok(()) => {}
    }
    // A wait that failed leaves its deferred call as it was.
    match scene.lab.executor.synchronize() {
        // The call that would have ended it was not made.
        Err(Error::Capturing { .. }) if function == "cuStreamEndCapture" => end_capture(&scene.lab),
        outcome => assert_eq!(outcome, Ok(()), "{function} after {after}"),
    }
    let holder = scene.arena.holder();
    assert!(matches!(holder, None | Some(Holder::Deferred)), "{function} after {after}: {holder:?}");
    assert_eq!(scene.target.holder(), None, "{function} after {after}");
    match scene.view.to_vec() {
        Ok(values) => assert_eq!(values, counting(500, 10), "{function} after {after}"),
        Err(Error::Stale { .. }) => {}
        Err(error) => panic!("{function} after {after}: {error}"),
    }
    if let Err(error) = step(&scene) {
        panic!("once more, where {function} after {after} had failed: {error}");
    }
    drop(scene);
    // What failed in a drop has nobody who could try again.
    if is_quiet || KEPT.contains(&function) {
        return;
    }
    let left = turn.left();
    if !left.is_empty() {
        println!("where {function} after {after} had failed: {left:?}");
        turn.nothing_is_left();
    }
}

fn end_capture(lab: &Lab) {
    let mut graph = std::ptr::null_mut();
    // SAFETY: the driver writes one handle; the graph is this one's alone.
    unsafe {
        driver::ok(driver::stream_end_capture(lab.stream(), &raw mut graph));
        driver::ok(driver::graph_destroy(graph));
    }
}

fn run_forgiving(options: ArenaOptions, step: impl Fn(&Scene) -> Result<()>) {
    let Some(mut turn) = turn() else { return };
    run(&mut turn, options, step);
    turn.forgive();
}

fn filled(scene: &Scene, len: usize, first: u32) -> Result<View<u32>> {
    let call = scene.lab.executor.begin(&scene.arena)?;
    let mut output = call.output::<u32>(len)?;
    scene.lab.try_fill(output.device_ptr()?, len, first)?;
    let view = output.publish();
    call.finish()?;
    Ok(view)
}

fn coherent() -> ArenaOptions {
    ArenaOptions::new().placement(Placement::HostCoherent)
}

#[test]
fn a_call_that_grows_and_is_copied_out() {
    for options in [ArenaOptions::new().first_capacity(1024), coherent().first_capacity(1024)] {
        run_forgiving(options, |scene| {
            for len in [LEN, 3 * LEN, 20 * LEN] {
                let view = filled(scene, len, 7)?;
                expect(&view, 7, len)?;
            }
            // A chain, and one block in its place.
            for _ in 0..2 {
                let call = scene.lab.executor.begin(&scene.arena)?;
                let mut views = Vec::new();
                for len in [LEN, 40 * LEN, 90 * LEN] {
                    let mut output = call.output::<u32>(len)?;
                    scene.lab.try_fill(output.device_ptr()?, len, 9)?;
                    views.push((output.publish(), len));
                }
                call.finish()?;
                views.iter().try_for_each(|(view, len)| expect(view, 9, *len))?;
            }
            Ok(())
        });
    }
}

#[test]
fn copies_in_from_the_host() {
    for options in [ArenaOptions::new(), coherent()] {
        run_forgiving(options, |scene| {
            let call = scene.lab.executor.begin(&scene.arena)?;
            let view = call.output_from_slice(&counting(3, LEN))?.publish();
            call.finish()?;
            expect(&view, 3, LEN)?;
            let mut copy = vec![0; LEN];
            view.copy_to(&mut copy)?;
            assert_eq!(copy, counting(3, LEN));
            Ok(())
        });
    }
}

#[test]
fn a_reader_on_another_stream_and_the_call_behind_it() {
    run_forgiving(ArenaOptions::new(), |scene| {
        for round in 0..2 {
            let view = filled(scene, LEN, 7)?;
            let guard = view.read_on(&scene.reader)?;
            let reader = scene.lab.with_executor(scene.reader.clone());
            let call = scene.reader.begin(&scene.target)?;
            let mut output = call.output::<u32>(LEN)?;
            reader.try_add(guard.device_ptr(), output.device_ptr()?, LEN, round)?;
            let copy = output.publish();
            call.finish()?;
            drop(guard);
            let next = filled(scene, LEN, 70)?;
            expect(&copy, 7 + round, LEN)?;
            expect(&next, 70, LEN)?;
        }
        Ok(())
    });
}

#[test]
fn a_copy_between_arenas() {
    run_forgiving(ArenaOptions::new(), |scene| {
        let view = filled(scene, LEN, 7)?;
        let call = scene.reader.begin(&scene.target)?;
        let mut output = call.output::<u32>(LEN)?;
        output.copy_from_view(&view)?;
        let copy = output.publish();
        call.finish()?;
        let next = filled(scene, LEN, 70)?;
        expect(&copy, 7, LEN)?;
        expect(&next, 70, LEN)
    });
}

#[test]
fn deferred_calls() {
    run_forgiving(ArenaOptions::new(), |scene| {
        let work = scene.lab.with_executor(scene.lab.executor.clone());
        let soon = scene.lab.executor.defer(&scene.arena, move |call| {
            let mut output = call.output::<u32>(LEN)?;
            work.try_fill(output.device_ptr()?, LEN, 7)?;
            Ok(output.publish())
        })?;
        scene.reader.order_after(&soon)?;
        soon.is_done()?;
        expect(&soon.wait()?, 7, LEN)?;
        let call = scene.lab.executor.begin(&scene.arena)?;
        let mut output = call.output::<u32>(LEN)?;
        scene.lab.try_fill(output.device_ptr()?, LEN, 8)?;
        let view = output.publish();
        scene.lab.executor.defer_call(call)?.wait()?;
        expect(&view, 8, LEN)
    });
}

#[test]
fn rooms_that_overflow() {
    run_forgiving(ArenaOptions::new(), |scene| {
        let call = scene.lab.executor.begin(&scene.arena)?;
        let mut room = call.device_room::<u32>(40)?;
        let output = loop {
            scene.lab.try_take(room.device_ptr(), 500, 4)?;
            match room.collect() {
                Err(Refused { error: Error::Overflow { needed, .. }, value }) => {
                    room = value.regrow(&call, needed)?;
                }
                collected => break collected?,
            }
        };
        let view = output.publish();
        call.finish()?;
        let mut values = view.to_vec()?;
        values.sort_unstable();
        values.dedup();
        assert_eq!(values, counting(0, 500));
        Ok(())
    });
}

#[test]
fn a_staged_tape() {
    run_forgiving(ArenaOptions::new(), |scene| {
        let tape = TapeView::of(b"onetwothree", &[0u32, 3, 6, 11])?;
        let call = scene.lab.executor.begin(&scene.arena)?;
        let staged = call.stage(&tape)?;
        let mut sums = call.output::<u64>(staged.len())?;
        scene.lab.try_sum(staged.bytes_ptr(), staged.offsets_ptr(), staged.len(), sums.device_ptr()?)?;
        let view = sums.publish();
        call.finish()?;
        let sum = |text: &[u8]| text.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        assert_eq!(view.to_vec()?, [sum(b"one"), sum(b"two"), sum(b"three")]);
        Ok(())
    });
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn a_captured_call_and_its_launches() {
    run_forgiving(ArenaOptions::new(), |scene| {
        let mut captured = scene.lab.executor.capture(&scene.arena, |call| {
            let mut output = call.output::<u32>(LEN)?;
            scene.lab.try_fill(output.device_ptr()?, LEN, 7)?;
            Ok(output.publish())
        })?;
        for _ in 0..2 {
            let view = captured.launch()?;
            drop(view.read_on(&scene.reader)?);
            expect(&view, 7, LEN)?;
        }
        Ok(())
    });
}

#[test]
fn scrubs() {
    for options in [ArenaOptions::new(), coherent()] {
        let options = options.scrub(Scrub::Poison(0x11)).first_capacity(1024).growth(Growth::Exact);
        run_forgiving(options, |scene| {
            for len in [LEN, 5 * LEN, LEN] {
                let mut call = scene.lab.executor.begin(&scene.arena)?;
                let view = call.scratch(|scope| {
                    let scratch = scope.take_on_device::<u32>(50)?;
                    scene.lab.try_fill(scratch, 50, 1)?;
                    let mut output = scope.call().output::<u32>(len)?;
                    scene.lab.try_add(scratch, output.device_ptr()?, 50, 0)?;
                    Ok::<_, Error>(output.publish())
                })?;
                call.finish()?;
                let values = view.to_vec()?;
                assert_eq!(values[..50], counting(1, 50));
                assert!(values[50..].iter().all(|&word| word == 0x1111_1111));
            }
            Ok(())
        });
    }
}

#[test]
fn reserve_trim_and_the_next_call() {
    run_forgiving(ArenaOptions::new(), |scene| {
        scene.arena.reserve(1 << 20)?;
        expect(&filled(scene, LEN, 7)?, 7, LEN)?;
        scene.arena.trim()?;
        expect(&filled(scene, LEN, 8)?, 8, LEN)
    });
}

#[test]
fn executors_kernels_and_adopted_streams() {
    run_forgiving(ArenaOptions::new(), |scene| {
        let lab = Lab::load(Executor::cuda(0)?)?;
        let arena = Arena::new(&lab.executor);
        let call = lab.executor.begin(&arena)?;
        let mut output = call.output::<u32>(LEN)?;
        lab.try_fill(output.device_ptr()?, LEN, 7)?;
        let view = output.publish();
        call.finish()?;
        expect(&view, 7, LEN)?;
        let raw = RawStream::try_new(&scene.lab.executor)?;
        // SAFETY: the stream outlives the executor, which is dropped before it.
        let adopted = unsafe { Executor::adopt(scene.turn_backend.clone(), raw.handle, Box::new(())) }?;
        adopted.synchronize()
    });
}
