//! Deferred work that panics, errs, is dropped, outlives everything, or waits for itself.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use device_arena::{Arena, Error, Executor, Holder, Result};

const LONG: Duration = Duration::from_secs(30);

fn host() -> (Executor, Arena) {
    let executor = Executor::host().unwrap();
    let arena = Arena::new(&executor);
    (executor, arena)
}

#[test]
fn a_panic_in_deferred_work_is_an_error_of_wait() {
    let (executor, arena) = host();
    let (send, sent) = mpsc::channel();
    let soon = executor
        .defer(&arena, move |call| -> Result<()> {
            send.send(call.output_from_slice(&[1u8])?.publish()).unwrap();
            panic!("number {}", 7)
        })
        .unwrap();
    assert_eq!(soon.wait().unwrap_err(), Error::Panicked { message: "number 7".into() });
    let view = sent.recv().unwrap();
    assert!(matches!(view.read(), Err(Error::Stale { .. })), "its call is abandoned");
    executor.defer(&arena, |_| Ok(())).unwrap().wait().unwrap();
}

#[test]
fn an_error_of_deferred_work_abandons_its_call() {
    let (executor, arena) = host();
    let (send, sent) = mpsc::channel();
    let soon = executor
        .defer(&arena, move |call| {
            send.send(call.output_from_slice(&[1u8])?.publish()).unwrap();
            call.output::<u64>(usize::MAX).map(drop)
        })
        .unwrap();
    assert!(matches!(soon.wait(), Err(Error::SizeOverflow { .. })));
    assert!(matches!(sent.recv().unwrap().read(), Err(Error::Stale { .. })));
}

#[test]
fn deferred_work_dropped_without_waiting_runs_all_the_same() {
    let (executor, arena) = host();
    let (open, opened) = mpsc::channel::<()>();
    let (send, sent) = mpsc::channel();
    let work = move |call: &mut device_arena::Call| {
        let _ = opened.recv();
        send.send(call.output_from_slice(&[1u8])?.publish()).map_err(|_| Error::AlreadyTaken)
    };
    drop(executor.defer(&arena, work).unwrap());
    let refused = executor.begin(&arena).unwrap_err();
    assert_eq!(refused, Error::Contended { operation: "begin", holder: Holder::Deferred });
    drop(open);
    let view = sent.recv_timeout(LONG).unwrap();
    executor.synchronize().unwrap();
    assert_eq!(*view.read().unwrap(), [1]);
}

#[test]
fn the_worker_is_the_last_owner_of_everything() {
    let (executor, arena) = host();
    let (open, opened) = mpsc::channel::<()>();
    let (done, is_done) = mpsc::channel();
    let (own_executor, other) = (executor.clone(), Arena::new(&executor));
    let soon = executor
        .defer(&arena, move |call| {
            let _ = opened.recv();
            drop(call.output_from_slice(&[1u8; 100_000])?.publish());
            // An arena, the executor and so the queue itself end here, on the queue's own worker.
            drop(other);
            drop(own_executor);
            done.send(()).map_err(|_| Error::AlreadyTaken)
        })
        .unwrap();
    drop((soon, arena, executor));
    drop(open);
    is_done.recv_timeout(LONG).unwrap();
}

#[test]
fn the_worker_waits_for_itself() {
    let (executor, arena) = host();
    let arena = Arc::new(arena);
    let (own, shared) = (executor.clone(), Arc::clone(&arena));
    let (go, gone) = mpsc::channel::<()>();
    let soon = executor
        .defer(&arena, move |_| {
            let _ = gone.recv();
            let synchronized = own.synchronize();
            let inner = Arena::new(&own);
            let behind = own.defer(&inner, |_| Ok(())).map_err(Error::from)?.wait();
            // Nobody else has the arena any more, and this very work holds it.
            let closed = Arc::into_inner(shared).map(Arena::close);
            Ok((synchronized, behind, closed.map(|closed| closed.map_err(|refused| refused.error))))
        })
        .unwrap();
    drop(arena);
    drop(go);
    let (synchronized, behind, closed) = soon.wait().unwrap();
    assert!(matches!(synchronized, Err(Error::WouldDeadlock { .. })));
    assert!(matches!(behind, Err(Error::WouldDeadlock { .. })));
    assert!(matches!(closed, Some(Err(Error::Contended { holder: Holder::Deferred, .. }))), "{closed:?}");
}

#[test]
fn the_worker_begins_no_call_of_an_arena_that_it_holds_itself() {
    let (executor, arena) = host();
    let (arena, inner) = (Arc::new(arena), Arc::new(Arena::new(&executor)));
    let (own, shared, behind) = (executor.clone(), Arc::clone(&arena), Arc::clone(&inner));
    let soon = executor
        .defer(&arena, move |_| {
            let queued = own.defer(&behind, |_| Ok(())).map_err(Error::from)?;
            let refusals =
                [shared.begin_timeout(Duration::MAX).err(), behind.begin_timeout(Duration::MAX).err()];
            Ok((queued, refusals))
        })
        .unwrap();
    let (queued, refusals) = soon.wait().unwrap();
    for refusal in refusals {
        assert!(matches!(refusal, Some(Error::WouldDeadlock { .. })), "{refusal:?}");
    }
    queued.wait().unwrap();
    for arena in [arena, inner] {
        arena.begin_timeout(LONG).unwrap().finish().unwrap();
    }
}

#[test]
fn the_worker_drops_an_arena_whose_call_is_queued_behind_it() {
    let (executor, arena) = host();
    let other = Arena::new(&executor);
    let own = executor.clone();
    let soon = executor
        .defer(&arena, move |_| {
            let call = own.begin(&other)?;
            let view = call.output_from_slice(&[1u8])?.publish();
            let behind = own.defer_call(call)?;
            // Waiting here would never end: the event's own worker takes care of it.
            drop(other);
            Ok((view, behind))
        })
        .unwrap();
    let (view, behind) = soon.wait().unwrap();
    behind.wait().unwrap();
    assert!(matches!(view.read(), Err(Error::Stale { .. })));
}

#[test]
fn close_waits_for_deferred_work() {
    let (executor, arena) = host();
    let soon = executor
        .defer(&arena, |call| {
            std::thread::sleep(Duration::from_millis(30));
            call.output_from_slice(&[1u8]).map(drop)
        })
        .unwrap();
    assert!(arena.close().unwrap() > 0);
    soon.wait().unwrap();
    let (executor, arena) = host();
    let other = Arena::new(&executor);
    let ahead = executor.defer(&other, |_| {
        std::thread::sleep(Duration::from_millis(30));
        Ok(())
    });
    let call = executor.begin(&arena).unwrap();
    drop(call.output::<u8>(1).unwrap());
    let behind = executor.defer_call(call).unwrap();
    assert!(arena.close().unwrap() > 0);
    assert!(behind.is_done().unwrap());
    ahead.unwrap().wait().unwrap();
}

#[test]
fn an_arena_dropped_while_its_deferred_work_waits_in_the_queue() {
    let (executor, arena) = host();
    let (open, opened) = mpsc::channel::<()>();
    let soon = executor
        .defer(&arena, move |call| {
            let _ = opened.recv();
            Ok(call.output_from_slice(&[1u8, 2])?.publish())
        })
        .unwrap();
    drop(arena);
    drop(open);
    let view = soon.wait().unwrap();
    assert!(matches!(view.read(), Err(Error::Stale { .. })));
}

struct CountingWaker(AtomicUsize, std::thread::Thread);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.unpark();
    }
}

#[test]
fn deferred_work_as_a_future_wakes_the_last_waker() {
    let (executor, arena) = host();
    let (open, opened) = mpsc::channel::<()>();
    let soon = executor.defer(&arena, move |_| Ok(opened.recv().is_err())).unwrap();
    let mut soon = pin!(soon);
    let wakers = [0, 1].map(|count| Arc::new(CountingWaker(AtomicUsize::new(count), std::thread::current())));
    for waker in &wakers {
        let waker = Waker::from(Arc::clone(waker));
        assert!(soon.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(open);
    while wakers[1].0.load(Ordering::SeqCst) < 2 {
        std::thread::park_timeout(LONG);
    }
    assert_eq!(wakers[0].0.load(Ordering::SeqCst), 0, "the first waker was replaced");
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(soon.as_mut().poll(&mut context), Poll::Ready(Ok(true)));
    let again = soon.as_mut().poll(&mut context);
    assert_eq!(again, Poll::Ready(Err(Error::AlreadyTaken)), "no panic when polled again");
}

#[test]
fn outputs_of_deferred_work_that_outlive_it() {
    let (executor, arena) = host();
    let soon = executor.defer(&arena, |call| call.output::<u8>(4)).unwrap();
    let mut output = soon.wait().unwrap();
    assert!(matches!(executor.begin(&arena), Err(Error::Contended { holder: Holder::Output, .. })));
    output.fill(3).unwrap();
    let view = output.publish();
    assert_eq!(*view.read().unwrap(), [3; 4]);
    executor.begin(&arena).unwrap().finish().unwrap();
}

#[test]
fn executors_are_equal_to_their_clones_alone() {
    let (executor, _) = host();
    assert_eq!(executor, executor.clone());
    assert_ne!(executor, Executor::host().unwrap());
    assert_eq!(executor.device().unwrap().ordinal, 0);
}

#[test]
fn a_host_arena_serves_every_host_executor_and_outlives_it() {
    let (first, arena) = host();
    let second = Executor::host().unwrap();
    second.begin(&arena).unwrap().finish().unwrap();
    drop((first, second));
    arena.begin().unwrap().finish().unwrap();
}
