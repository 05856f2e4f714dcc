//! Executors: which device, which stream, and what is current on the caller's thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use device_arena::{Arena, Error, Executor, MemoryKind, Refused, Status};

use crate::driver::{self, Context, Pushed};
use crate::lab::{Lab, counting};
use crate::memory::{RawStream, ask};
use crate::turn::{Turn, turn, turn_of_nvidia};
use crate::vendor;

#[test]
fn numbers_name_the_devices_in_the_drivers_order() {
    let Some(turn) = turn() else { return };
    for ordinal in 0..turn.count() {
        for executor in [vendor::executor(ordinal).unwrap(), Executor::for_vram(ordinal).unwrap()] {
            assert_eq!((executor.vendor(), executor.ordinal()), (vendor::vendor(), ordinal));
            let device = executor.device().unwrap();
            assert_eq!(device.ordinal, ordinal);
            assert!(
                device.architecture.starts_with(vendor::architecture_prefix())
                    && device.total_bytes > Some(0)
            );
            assert_eq!(Arena::new(&executor).describe().device, ordinal as i32);
            let shown = format!("{executor:?}");
            assert!(shown.starts_with("Executor { vendor: ") && shown.len() < 80, "{shown}");
        }
    }
    let best = Executor::best().unwrap();
    assert_eq!((best.vendor(), best.ordinal()), (vendor::vendor(), 0));
}

#[test]
fn an_ordinal_that_does_not_exist_is_refused_with_how_many_there_are() {
    let Some(turn) = turn() else { return };
    let count = turn.count();
    for ordinal in [count, 99, i32::MAX as u32, u32::MAX] {
        for refused in
            [vendor::executor(ordinal), Executor::for_vram(ordinal), Executor::on(turn.backend(), ordinal)]
        {
            let error = refused.unwrap_err();
            assert_eq!(error.status(), Status::Unavailable);
            let text = error.to_string();
            assert!(text.contains(&ordinal.to_string()) && text.contains(&count.to_string()), "{text}");
            assert!(!text.starts_with("host"), "the host is there: {text}");
        }
    }
}

#[test]
fn a_clone_is_the_same_executor_and_another_is_not() {
    let Some(_turn) = turn() else { return };
    let (executor, other) = (vendor::executor(0).unwrap(), vendor::executor(0).unwrap());
    assert_eq!(executor, executor.clone());
    assert_ne!(executor, other);
    assert_ne!(executor.stream().unwrap(), other.stream().unwrap());
    let arena = Arena::new(&executor);
    executor.clone().begin(&arena).unwrap().finish().unwrap();
    for refused in [other.begin(&arena), Executor::host().unwrap().begin(&arena)] {
        let refused = refused.unwrap_err();
        let Error::WrongExecutor { operation: "begin", arena, .. } = refused else { panic!("{refused}") };
        assert_eq!(arena, vendor::vendor());
    }
    let refused = other.defer(&arena, |_| Ok(())).unwrap_err();
    assert!(matches!(refused.error, Error::WrongExecutor { operation: "defer", .. }));
    let refused = other.defer_call(executor.begin(&arena).unwrap()).unwrap_err();
    assert!(matches!(refused.error, Error::WrongExecutor { operation: "defer_call", .. }));
    refused.value.finish().unwrap();
    assert!(matches!(executor.begin(&Arena::host()), Err(Error::WrongExecutor { .. })));
}

#[test]
fn the_executors_context_is_current_in_the_closure_alone() {
    let Some(turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    assert!(driver::current().is_null());
    let own = executor.with_current(driver::current).unwrap();
    assert_eq!(own.is_null(), !vendor::is_nvidia(), "a context, or the first device");
    assert!(driver::current().is_null());
    if let Some(other) = Context::other(&turn, 0) {
        // SAFETY: the context outlives this.
        let _pushed = unsafe { Pushed::new(other.handle()) };
        assert_eq!(executor.with_current(driver::current).unwrap(), own);
        assert_eq!(driver::current(), other.handle());
    }
    {
        // SAFETY: a primary context that was used lives as long as the process.
        let _pushed = unsafe { Pushed::new(own) };
        assert_eq!(executor.with_current(driver::current).unwrap(), own);
        assert_eq!(driver::current(), own);
    }
    assert!(driver::current().is_null());
    if turn.count() > 1 {
        let second = vendor::executor(1).unwrap();
        let nested = executor.with_current(|| {
            let inner = second.with_current(driver::current).unwrap();
            (inner, driver::current())
        });
        let (inner, outer) = nested.unwrap();
        assert!(inner != own && outer == own);
    }
    // A thread that never saw the driver.
    let seen = std::thread::scope(|threads| {
        let ask = || {
            let inside = executor.with_current(driver::current).unwrap();
            (inside.addr(), driver::current().addr())
        };
        threads.spawn(ask).join().unwrap()
    });
    assert_eq!(seen, (own.addr(), 0));
}

#[test]
fn a_panic_in_the_closure_leaves_what_was_current() {
    let Some(turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let panics = || {
        let outcome = catch_unwind(AssertUnwindSafe(|| executor.with_current(|| panic!("of the caller"))));
        assert!(outcome.is_err());
    };
    panics();
    assert!(driver::current().is_null());
    let Some(other) = Context::other(&turn, 0) else { return };
    // SAFETY: the context outlives this.
    let pushed = unsafe { Pushed::new(other.handle()) };
    panics();
    assert_eq!(driver::current(), other.handle());
    drop(pushed);
}

#[test]
fn calls_leave_what_is_current_as_it_was() {
    let Some(turn) = turn() else { return };
    let lab = Lab::new(0);
    let Some(other) = Context::other(&turn, 0) else { return };
    // SAFETY: the context outlives this.
    let pushed = unsafe { Pushed::new(other.handle()) };
    let arena = Arena::new(&lab.executor);
    for round in 1..4 {
        let view = lab.filled(&arena, 20_000 * round, 5);
        assert_eq!(driver::current(), other.handle());
        assert_eq!(view.to_vec().unwrap(), counting(5, 20_000 * round));
        let reader = vendor::executor(0).unwrap();
        drop(view.read_on(&reader).unwrap());
        assert_eq!(driver::current(), other.handle());
    }
    arena.trim().unwrap();
    assert_eq!(driver::current(), other.handle());
    drop(pushed);
}

/// Notes in which order it goes: what it sees of a block of memory then.
struct KeepAlive {
    _stream: RawStream,
    _context: Option<Context>,
    watched: Arc<AtomicUsize>,
    outcome: Arc<AtomicUsize>,
}

const NOTHING_WATCHED: usize = 1;
const FREED_BEFORE: usize = 2;
const NOT_FREED: usize = 3;

impl Drop for KeepAlive {
    fn drop(&mut self) {
        let outcome = match self.watched.load(Ordering::SeqCst) {
            0 => NOTHING_WATCHED,
            address => match ask(std::ptr::with_exposed_provenance(address)).unwrap().kind {
                MemoryKind::Unregistered => FREED_BEFORE,
                _ => NOT_FREED,
            },
        };
        self.outcome.store(outcome, Ordering::SeqCst);
    }
}

/// An executor on a stream of somebody else's, in the primary context or in one of its own.
struct Adopted {
    lab: Lab,
    watched: Arc<AtomicUsize>,
    outcome: Arc<AtomicUsize>,
}

fn adopt(turn: &Turn, ordinal: u32, context: Option<Context>) -> Adopted {
    let home = vendor::executor(ordinal).unwrap();
    // Made in the context that is current: the caller's, or else the primary one.
    let stream = {
        // SAFETY: the context outlives this.
        let _pushed = context.as_ref().map(|context| unsafe { Pushed::new(context.handle()) });
        let mut handle = std::ptr::null_mut();
        let mut make = || {
            // SAFETY: the driver writes one handle.
            driver::ok(unsafe { driver::stream_create(&raw mut handle, 1) });
        };
        if context.is_some() {
            make()
        } else {
            home.with_current(make).unwrap()
        }
        RawStream::of(&home, handle)
    };
    let (watched, outcome) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handle = stream.handle;
    let keep_alive = KeepAlive {
        _stream: stream,
        _context: context,
        watched: Arc::clone(&watched),
        outcome: Arc::clone(&outcome),
    };
    // SAFETY: the stream and its context live as long as the keep-alive.
    let executor = unsafe { Executor::adopt(turn.backend(), handle, Box::new(keep_alive)) }.unwrap();
    assert_eq!((executor.stream().unwrap(), executor.ordinal()), (handle, ordinal));
    Adopted { lab: Lab::on(executor), watched, outcome }
}

fn check_adopted(adopted: Adopted) {
    let Adopted { lab, watched, outcome } = adopted;
    let arena = Arena::new(&lab.executor);
    for round in 1..4 {
        assert_eq!(lab.filled(&arena, 30_000 * round, 3).to_vec().unwrap(), counting(3, 30_000 * round));
    }
    let call = lab.executor.begin(&arena).unwrap();
    let mut output = call.output::<u8>(100).unwrap();
    watched.store(output.device_ptr().unwrap().addr(), Ordering::SeqCst);
    drop(lab);
    assert_eq!(outcome.load(Ordering::SeqCst), 0, "the arena keeps its executor");
    let view = output.publish();
    call.finish().unwrap();
    drop(arena);
    assert_eq!(outcome.load(Ordering::SeqCst), FREED_BEFORE, "blocks go before the stream");
    assert!(matches!(view.to_vec(), Err(Error::Stale { .. })));
}

#[test]
fn an_adopted_stream_of_the_primary_context_serves_and_outlives_the_blocks() {
    let Some(turn) = turn() else { return };
    for ordinal in 0..turn.count().min(2) {
        check_adopted(adopt(&turn, ordinal, None));
    }
}

#[test]
fn an_adopted_stream_of_another_context_serves_and_outlives_the_blocks() {
    let Some(turn) = turn_of_nvidia("contexts beside the primary ones") else { return };
    for ordinal in 0..turn.count().min(2) {
        let context = Context::new(ordinal as i32);
        let handle = context.handle();
        let adopted = adopt(&turn, ordinal, Some(context));
        assert_eq!(adopted.lab.executor.with_current(driver::current).unwrap(), handle);
        check_adopted(adopted);
    }
}

#[test]
fn a_kernel_is_refused_in_another_context_than_it_was_loaded_for() {
    let Some(turn) = turn_of_nvidia("contexts beside the primary ones") else { return };
    let lab = Lab::new(0);
    let adopted = adopt(&turn, 0, Some(Context::new(0)));
    let arena = Arena::new(&adopted.lab.executor);
    let call = adopted.lab.executor.begin(&arena).unwrap();
    let mut output = call.output::<u32>(4).unwrap();
    let foreign = lab.with_executor(adopted.lab.executor.clone());
    let refused = foreign.try_fill(output.device_ptr().unwrap(), 4, 1).unwrap_err();
    assert!(matches!(refused, Error::Option { option: "kernel", .. }), "{refused}");
}

#[test]
fn default_streams_are_refused_and_their_keep_alive_comes_back() {
    let Some(turn) = turn() else { return };
    for handle in 0..3usize {
        let kept = Arc::new(());
        let keep_alive = Box::new(Arc::clone(&kept));
        // SAFETY: the handles are default streams', which live as long as the process.
        let refused =
            unsafe { Executor::adopt(turn.backend(), std::ptr::without_provenance_mut(handle), keep_alive) };
        let Refused { error, value } = refused.unwrap_err();
        assert!(matches!(error, Error::WrongVendor { operation: "adopt_stream", .. }), "{error}");
        assert_eq!(error.status(), Status::InvalidArgument);
        assert_eq!(Arc::strong_count(&kept), 2, "it comes back");
        drop(value);
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
