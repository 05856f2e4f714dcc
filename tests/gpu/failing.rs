//! Every call of the driver's fails once: an error that names it, the arena as it was, the same once more, and nothing left
//! behind.

use device_arena::backend::AnyBackend;
use device_arena::{Arena, ArenaOptions, Error, Executor, Holder, Result, View};

use crate::driver;
use crate::functions::Function;
use crate::lab::{Lab, counting};
use crate::simulated::{Simulated, UNKNOWN, simulated_or_skip};
use crate::turn::{Turn, turn};
use crate::vendor;

/// Left out: what pops a context can't fail where there is one, and a mode that is not exchanged is asked for no more.
const LEFT_OUT: [Function; 2] = [Function::CtxPop, Function::ThreadExchangeCaptureMode];

/// These have no other way, and are called in no drop: an error has to come of each. (A wait is tried again, where a
/// borrow ends with it.)
const LOUD: [Function; 12] = [
    Function::EventQuery,
    Function::GraphInstantiate,
    Function::GraphLaunch,
    Function::LaunchKernel,
    Function::MemcpyAsync,
    Function::GetKernel,
    Function::ModuleLoad,
    Function::PointerGetAttributes,
    Function::StreamBeginCapture,
    Function::StreamCreate,
    Function::StreamGetCtx,
    Function::StreamWaitEvent,
];

/// The driver was made to keep what these would have let go of, for good.
const KEPT: [Function; 6] = [
    Function::EventDestroy,
    Function::GraphDestroy,
    Function::GraphExecDestroy,
    Function::ModuleUnload,
    Function::StreamDestroy,
    Function::StreamEndCapture,
];

/// What a step has to work with.
pub(crate) struct Scene {
    pub(crate) backend: AnyBackend,
    pub(crate) lab: Lab,
    pub(crate) reader: Executor,
    pub(crate) arena: Arena,
    pub(crate) target: Arena,
    /// Of the arena's last call.
    view: View<u32>,
}

impl Scene {
    fn new(turn: &Turn, options: ArenaOptions) -> Self {
        let lab = Lab::load(vendor::executor(0).unwrap()).unwrap();
        let reader = vendor::executor(0).unwrap();
        let arena = options.build(&lab.executor).unwrap();
        let target = Arena::new(&reader);
        let view = lab.filled(&arena, 10, 500);
        lab.executor.synchronize().unwrap();
        Self { backend: turn.backend(), lab, reader, arena, target, view }
    }
}

fn run(turn: &mut Turn, options: ArenaOptions, step: impl Fn(&Scene) -> Result<()>) {
    let Some(simulated) = simulated_or_skip() else { return };
    let scene = Scene::new(turn, options);
    let all = Function::ALL.iter().copied();
    let functions: Vec<_> = all.filter(|it| it.is_here() && !LEFT_OUT.contains(it)).collect();
    let count = || functions.iter().map(|function| simulated.calls(*function)).collect::<Vec<_>>();
    let before = count();
    step(&scene).unwrap();
    let calls = count();
    drop(scene);
    turn.nothing_is_left();
    let mut points = 0;
    let mut unseen = Vec::new();
    for (at, &function) in functions.iter().enumerate() {
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
    function: Function,
    after: u64,
    unseen: &mut Vec<(Function, u64)>,
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
            assert!(text.contains(function.name()), "{function} after {after}: {text}");
            let Error::Driver { code, .. } = error else { panic!("{function} after {after}: {error:?}") };
            assert_eq!(code, i64::from(UNKNOWN));
        }
        Ok(()) if has_failed && LOUD.contains(&function) => unseen.push((function, after)),
        Ok(()) => {}
    }
    // A wait that failed leaves its deferred call as it was.
    match scene.lab.executor.synchronize() {
        // The call that would have ended it was not made.
        Err(Error::Capturing { .. }) if function == Function::StreamEndCapture => end_capture(&scene.lab),
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

/// Lets every call that `step` makes fail once.
pub(crate) fn each_call_fails_once(options: ArenaOptions, step: impl Fn(&Scene) -> Result<()>) {
    let Some(mut turn) = turn() else { return };
    run(&mut turn, options, step);
    turn.forgive();
}
