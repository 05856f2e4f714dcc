//! What once went wrong, each kept as a test of its kind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};
use std::{future::Future, pin::pin};

use device_arena::{Arena, ArenaOptions, Call, Error, Executor, Growth, Holder, Pod, Zeroable};

const LONG: Duration = Duration::from_secs(30);

fn host() -> (Executor, Arena) {
    let executor = Executor::host().unwrap();
    let arena = Arena::new(&executor);
    (executor, arena)
}

/// Runs `work` on a thread of its own; fails where it does not end.
fn ends(work: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        work();
        done.send(()).unwrap();
    });
    is_done.recv_timeout(LONG).expect("it ends, and without a panic");
}

#[test]
fn a_view_was_pending_after_its_deferred_call_was_waited_for() {
    let (executor, arena) = host();
    for _ in 0..2000 {
        let call = executor.begin(&arena).unwrap();
        let view = call.output_from_slice(&[1u8]).unwrap().publish();
        let stop = AtomicBool::new(false);
        let soon = executor.defer_call(call).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !stop.load(Ordering::Relaxed) && view.read().is_err() {
                    std::hint::spin_loop();
                }
            });
            soon.wait().unwrap();
            assert_eq!(*view.read().unwrap(), [1]);
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_waiting_begin_slept_through_the_deferral_of_the_call_it_waited_for() {
    let (executor, arena) = host();
    let other = Arena::new(&executor);
    let (open, opened) = mpsc::channel::<()>();
    let ahead = executor.defer(&other, move |_| Ok(opened.recv().is_err())).unwrap();
    let call = executor.begin(&arena).unwrap();
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| {
            let start = Instant::now();
            arena.begin_timeout(LONG).unwrap().finish().unwrap();
            start.elapsed()
        });
        std::thread::sleep(Duration::from_millis(30));
        let soon = executor.defer_call(call).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        drop(open);
        assert!(waiting.join().unwrap() < LONG / 2);
        soon.wait().unwrap();
    });
    ahead.wait().unwrap();
}

/// Two executors whose workers each run a closure that holds what `part` makes of the other.
fn crosswise<P: Send + 'static>(part: impl Fn(&Executor) -> P) {
    let executors = [Executor::host().unwrap(), Executor::host().unwrap()];
    let arenas = [Arena::host(), Arena::host()];
    let (meet, parts) = (Arc::new(std::sync::Barrier::new(2)), [part(&executors[1]), part(&executors[0])]);
    let mut running = Vec::new();
    for ((executor, arena), part) in executors.iter().zip(&arenas).zip(parts) {
        let meet = Arc::clone(&meet);
        let work = move |_: &mut Call| {
            meet.wait();
            drop(part);
            Ok(())
        };
        running.push(executor.defer(arena, work).unwrap());
    }
    drop(executors);
    running.into_iter().for_each(|soon| soon.wait().unwrap());
}

#[test]
fn two_workers_that_dropped_each_others_executor_waited_for_each_other() {
    // The closures hold the last clone of the other's executor: who drops it must not wait for its worker.
    ends(|| crosswise(Executor::clone));
}

#[test]
fn two_workers_that_dropped_each_others_arena_waited_for_each_other() {
    ends(|| arenas_crosswise(drop));
}

#[test]
fn two_workers_that_closed_each_others_arena_waited_for_each_other() {
    ends(|| {
        arenas_crosswise(|arena| {
            // The later of the two may find the other's closure done.
            if let Err(refused) = arena.close() {
                assert!(matches!(refused.error, Error::Contended { holder: Holder::Deferred, .. }));
            }
        });
    });
}

/// Two executors whose workers each get an arena whose call is queued behind the other's running closure.
fn arenas_crosswise(end: fn(Arena)) {
    {
        let executors = [Executor::host().unwrap(), Executor::host().unwrap()];
        let arenas = [Arena::host(), Arena::host()];
        let inner = [Arena::host(), Arena::host()];
        let meet = Arc::new(std::sync::Barrier::new(2));
        let (mut running, mut hand_over) = (Vec::new(), Vec::new());
        for (executor, arena) in executors.iter().zip(&arenas) {
            let (meet, (hand, handed)) = (Arc::clone(&meet), mpsc::channel::<Arena>());
            let work = move |_: &mut Call| {
                let others = handed.recv().unwrap();
                meet.wait();
                end(others);
                Ok(())
            };
            running.push(executor.defer(arena, work).unwrap());
            hand_over.push(hand);
        }
        // Each inner arena's call waits behind the running closure of one executor, and goes to the other's.
        for ((executor, arena), hand) in executors.iter().zip(inner).zip(hand_over.iter().rev()) {
            drop(executor.defer_call(executor.begin(&arena).unwrap()).unwrap());
            hand.send(arena).unwrap();
        }
        running.into_iter().for_each(|soon| soon.wait().unwrap());
    }
}

#[test]
fn a_waker_that_uses_the_executor_as_it_is_dropped() {
    struct Synchronizes(Executor);
    impl Wake for Synchronizes {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Synchronizes {
        fn drop(&mut self) {
            let _ = self.0.synchronize();
        }
    }
    ends(|| {
        let (executor, arena) = host();
        let (open, opened) = mpsc::channel::<()>();
        let mut soon = pin!(executor.defer(&arena, move |_| Ok(opened.recv().is_err())).unwrap());
        let first = Waker::from(Arc::new(Synchronizes(executor.clone())));
        assert!(soon.as_mut().poll(&mut Context::from_waker(&first)).is_pending());
        drop(first);
        drop(open);
        while soon.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_call_that_was_taken_out_of_its_closure_left_close_waiting() {
    ends(|| {
        let (executor, arena) = host();
        let dummy = Arena::host();
        let take = move |call: &mut Call| {
            let mut other = dummy.begin()?;
            std::mem::swap(call, &mut other);
            Ok(other)
        };
        let taken = executor.defer(&arena, take).unwrap().wait().unwrap();
        assert_eq!(arena.holder(), Some(Holder::Call));
        let refused = arena.close().unwrap_err();
        assert!(matches!(refused.error, Error::Contended { operation: "close", holder: Holder::Call }));
        let view = taken.output_from_slice(&[1u8]).unwrap().publish();
        taken.finish().unwrap();
        assert_eq!(*view.read().unwrap(), [1]);
        refused.value.close().unwrap();
    });
}

#[test]
fn a_call_that_was_taken_out_of_its_closure_and_deferred_again_was_held_for_good() {
    ends(|| {
        let (executor, arena) = host();
        let (second, dummy) = (Executor::host().unwrap(), Arena::host());
        let soon = executor.defer(&arena, move |call| {
            let view = call.output_from_slice(&[7u8])?.publish();
            let mut other = dummy.begin()?;
            std::mem::swap(call, &mut other);
            drop(second.defer_call(other).map_err(Error::from)?);
            Ok(view)
        });
        let view = soon.unwrap().wait().unwrap();
        assert_eq!(*view.read().unwrap(), [7]);
        arena.begin().unwrap().finish().unwrap();
    });
}

#[test]
fn a_scratch_scope_outlived_the_block_it_began_in() {
    let options = ArenaOptions::new().first_capacity(1).byte_limit(16 << 10).growth(Growth::Exact);
    let arena = options.build_host().unwrap();
    let mut call = arena.begin().unwrap();
    drop(call.output::<u8>(8 << 10).unwrap());
    call.finish().unwrap();
    call = arena.begin().unwrap();
    // The limit makes the warm block go for one that holds the scratch.
    call.scratch(|scope| scope.take::<u8>(12 << 10).map(|room| room.fill(1))).unwrap();
    drop(call.output::<u8>(12 << 10).expect("the whole block is free again"));
    call.finish().unwrap();
    assert_eq!(arena.stats().bytes_reserved, 12 << 10);
}

#[derive(Debug, Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; 4096]);
// SAFETY: bytes alone, as many as the alignment.
unsafe impl Zeroable for Page {}
// SAFETY: as above.
unsafe impl Pod for Page {}

#[test]
fn room_given_back_kept_what_its_alignment_had_cost() {
    let arena = Arena::host();
    let call = arena.begin().unwrap();
    drop(call.output::<u8>(1).unwrap());
    for _ in 0..200 {
        let mut writer = call.writer_with_capacity::<Page>(1).unwrap();
        writer.push(Page([7; 4096])).unwrap();
        assert_eq!(writer.as_slice()[0].0, [7; 4096]);
    }
    for _ in 0..200 {
        let mut below = call.writer_with_capacity::<Page>(1).unwrap();
        let mut above = call.writer::<u8>().unwrap();
        below.push(Page([7; 4096])).unwrap();
        above.push(1).unwrap();
        drop(above);
        drop(below);
    }
    assert_eq!(arena.stats().bytes_used, 64);
    call.finish().unwrap();
    assert_eq!(arena.stats().bytes_reserved, 64 << 10);
}

#[test]
fn a_pending_refusal_undid_a_reserve() {
    let options = ArenaOptions::new().first_capacity(32 << 10).byte_limit(64 << 10).growth(Growth::Exact);
    let arena = options.build_host().unwrap();
    let call = arena.begin().unwrap();
    drop(call.output::<u8>(1 << 10).unwrap());
    assert!(matches!(call.output::<u8>(40 << 10), Err(Error::OverLimit { .. })));
    call.finish().unwrap();
    arena.reserve(20 << 10).unwrap();
    let call = arena.begin().unwrap();
    let before = arena.stats();
    drop(call.output::<u8>(20 << 10).unwrap());
    assert_eq!(arena.stats().allocations, before.allocations, "the reserve was kept");
    drop(call.output::<u8>(20 << 10).unwrap());
    assert_eq!(arena.stats().allocations, before.allocations, "and what was refused is granted");
    call.finish().unwrap();
}

#[test]
fn a_lone_block_below_the_high_water_mark_was_not_replaced() {
    let options = ArenaOptions::new().first_capacity(1).byte_limit(128 << 10).growth(Growth::Exact);
    let arena = options.build_host().unwrap();
    let output = |bytes: usize| {
        let call = arena.begin().unwrap();
        drop(call.output::<u8>(bytes).unwrap());
        call.finish().unwrap();
    };
    output(40 << 10);
    output(41 << 10);
    output(1);
    let steady = arena.stats();
    output(41 << 10);
    assert_eq!(arena.stats().allocations, steady.allocations);
}

#[test]
fn a_writer_grew_into_a_neighbouring_block() {
    for _ in 0..32 {
        let arena = ArenaOptions::new().first_capacity(1).growth(Growth::Exact).build_host().unwrap();
        // A hole above the block, which the system gives to the next one.
        let above = Arena::host();
        above.reserve(4096).unwrap();
        let mut call = arena.begin().unwrap();
        let mut writer = call.writer::<u8>().unwrap();
        writer.extend_from_slice(&[3; 4096]).unwrap();
        drop(above);
        call.scratch(|scope| {
            scope.take::<u8>(64).unwrap().fill(9);
            let full = writer.as_slice().as_ptr();
            writer.push(4).unwrap();
            assert_ne!(writer.as_slice().as_ptr(), full, "it moved");
        });
        assert_eq!((writer.len(), writer.as_slice()[4096]), (4097, 4));
        drop(writer);
        call.finish().unwrap();
    }
}
