//! Deferred calls: one event behind the queued work, the hold until it has passed.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use device_arena::{Arena, Deferred, Error, Holder, View};

use crate::functions::Function;
use crate::lab::{Lab, counting};
use crate::simulated::{simulated, simulated_or_skip};
use crate::turn::turn;

const LEN: usize = 1000;

/// A call whose kernel fills an output, left to its event.
fn deferred(lab: &Lab, arena: &Arena, first: u32) -> Deferred<View<u32>> {
    let work = lab.with_executor(lab.executor.clone());
    let soon = lab.executor.defer(arena, move |call| Ok(work.fill_output(call, LEN, first).publish()));
    soon.unwrap()
}

fn reserved(lab: &Lab) -> Arena {
    let arena = Arena::new(&lab.executor);
    arena.reserve(1 << 16).unwrap();
    arena
}

#[test]
fn a_deferred_call_is_done_when_its_event_has_passed() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab);
    let gate = lab.gate();
    let mut soon = deferred(&lab, &arena, 5);
    assert!(!soon.is_done().unwrap());
    assert_eq!(arena.holder(), Some(Holder::Deferred));
    assert!(matches!(lab.executor.begin(&arena), Err(Error::Contended { holder: Holder::Deferred, .. })));
    let start = Instant::now();
    assert!(soon.wait_timeout(Duration::from_millis(20)).unwrap().is_none());
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert!(soon.wait_timeout(Duration::ZERO).unwrap().is_none());
    gate.open();
    let view = soon.wait_timeout(Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!(arena.holder(), None);
    assert_eq!(view.to_vec().unwrap(), counting(5, LEN));
    assert!(soon.is_done().unwrap());
    assert!(matches!(soon.wait(), Err(Error::AlreadyTaken)));
    lab.executor.begin(&arena).unwrap().finish().unwrap();
}

#[test]
fn views_of_a_deferred_call_are_pending_until_it_has_passed() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab);
    let gate = lab.gate();
    let call = lab.executor.begin(&arena).unwrap();
    let view = lab.fill_output(&call, LEN, 8).publish();
    let soon = lab.executor.defer_call(call).unwrap();
    assert!(matches!(view.to_vec(), Err(Error::Pending { .. })));
    assert!(matches!(view.read_on(&lab.executor).map(drop), Err(Error::Pending { .. })));
    drop(soon);
    assert_eq!(arena.holder(), Some(Holder::Deferred), "the hold lasts without the handle");
    gate.open();
    lab.executor.synchronize().unwrap();
    // Whoever asks next sees that it has passed; the event may be a moment late.
    let begun = lab.executor.begin_timeout(&arena, Duration::from_secs(60));
    begun.unwrap().finish().unwrap();
    assert!(matches!(view.to_vec(), Err(Error::Stale { .. })));
}

#[test]
fn a_begin_that_waits_waits_for_the_event() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab);
    let gate = lab.gate();
    let soon = deferred(&lab, &arena, 5);
    let refused = lab.executor.begin_timeout(&arena, Duration::from_millis(10));
    assert!(matches!(refused, Err(Error::Contended { .. })));
    std::thread::scope(|threads| {
        let begun = threads.spawn(|| {
            let call = lab.executor.begin_timeout(&arena, Duration::from_secs(60)).unwrap();
            call.finish().unwrap();
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!begun.is_finished());
        gate.open();
        begun.join().unwrap();
    });
    assert!(matches!(soon.wait().unwrap().to_vec(), Err(Error::Stale { .. })));
}

#[test]
fn another_stream_waits_without_the_host() {
    let Some(_turn) = turn() else { return };
    let (lab, other) = (Lab::new(0), Lab::new(0));
    let (arena, target) = (reserved(&lab), reserved(&other));
    let gate = lab.gate();
    let soon = deferred(&lab, &arena, 5);
    other.executor.order_after(&soon).unwrap();
    other.filled(&target, 10, 1);
    assert!(other.is_busy());
    gate.open();
    other.executor.synchronize().unwrap();
    assert!(soon.is_done().unwrap(), "it was waited for");
    assert_eq!(soon.wait().unwrap().to_vec().unwrap(), counting(5, LEN));
}

/// Counts how often it is woken, and wakes a thread.
struct Bell(AtomicUsize, std::thread::Thread);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.unpark();
    }
}

/// The future's output, how often it was polled and how often it was woken.
fn block_on<F: Future>(future: F) -> (F::Output, usize, usize) {
    let bell = Arc::new(Bell(AtomicUsize::new(0), std::thread::current()));
    let waker = Waker::from(Arc::clone(&bell));
    let mut future = pin!(future);
    let mut polls = 0;
    loop {
        polls += 1;
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (output, polls, bell.0.load(Ordering::SeqCst));
        }
        std::thread::park_timeout(Duration::from_secs(60));
    }
}

#[test]
fn a_future_is_woken_once_and_not_polled_in_vain() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab);
    if let Some(simulated) = simulated() {
        simulated.set("LATE", "1");
    }
    for round in 0..5 {
        let gate = lab.gate();
        let soon = deferred(&lab, &arena, round);
        let opener = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            gate.open();
        });
        let (view, polls, wakes) = block_on(soon);
        opener.join().unwrap();
        assert_eq!(view.unwrap().to_vec().unwrap(), counting(round, LEN));
        assert!(polls <= 3 && wakes <= 1, "{polls} polls, {wakes} wakes");
    }
    // Work that has passed before it is asked for.
    let soon = deferred(&lab, &arena, 9);
    while !soon.is_done().unwrap() {
        std::thread::yield_now();
    }
    assert_eq!(block_on(soon).1, 1);
}

#[test]
fn a_dropped_future_does_not_end_the_work() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab);
    let gate = lab.gate();
    let mut soon = deferred(&lab, &arena, 5);
    let waker = Waker::from(Arc::new(Bell(AtomicUsize::new(0), std::thread::current())));
    assert!(pin!(&mut soon).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(soon);
    assert_eq!(arena.holder(), Some(Holder::Deferred));
    gate.open();
    lab.executor.begin_timeout(&arena, Duration::from_secs(60)).unwrap().finish().unwrap();
}

#[test]
fn work_that_fails_or_panics_is_an_error_of_the_wait_and_frees_the_arena() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    let work = lab.with_executor(lab.executor.clone());
    let panics = lab.executor.defer(&arena, move |call| {
        let _ = work.fill_output(call, LEN, 1);
        if call.generation() > 0 {
            panic!("of the caller");
        }
        Ok(())
    });
    assert_eq!(panics.unwrap().wait(), Err(Error::Panicked { message: "of the caller".into() }));
    assert_eq!(arena.holder(), None);
    let fails = lab.executor.defer(&arena, |call| call.output::<u64>(usize::MAX).map(drop));
    assert!(matches!(fails.unwrap().wait(), Err(Error::SizeOverflow { .. })));
    assert_eq!(arena.holder(), None);
    assert_eq!(deferred(&lab, &arena, 3).wait().unwrap().to_vec().unwrap(), counting(3, LEN));
}

#[test]
fn a_steady_deferred_call_asks_for_one_event_and_no_memory() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab);
    deferred(&lab, &arena, 0).wait().unwrap();
    let count = || (simulated.calls(Function::EventRecord), simulated.calls(Function::MemAlloc));
    let before = count();
    for round in 0..10 {
        deferred(&lab, &arena, round).wait().unwrap();
    }
    assert_eq!((count().0 - before.0, count().1 - before.1), (10, 0));
    assert_eq!(arena.stats().allocations, 1);
}

#[test]
fn a_result_is_exported_to_the_host_by_who_waits() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let options = device_arena::ArenaOptions::new().placement(device_arena::Placement::HostCoherent);
    let arena = options.build(&lab.executor).unwrap();
    let soon = lab.executor.defer(&arena, |call| {
        let view = call.output_from_slice(&[1u32, 2, 3])?.publish();
        call.export(&view)
    });
    let values = soon.unwrap().wait().unwrap();
    assert_eq!(*values, [1, 2, 3]);
    assert!(matches!(lab.executor.begin(&arena), Err(Error::Contended { holder: Holder::Readers(1), .. })));
    drop(values);
    lab.executor.begin(&arena).unwrap().finish().unwrap();
}
