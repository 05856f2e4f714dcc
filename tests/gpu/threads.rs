//! Many threads: one executor, one arena, one view.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use device_arena::{Arena, Error};

use crate::lab::{Lab, counting};
use crate::simulated::simulated;
use crate::turn::turn;
use crate::vendor;

const LEN: usize = 300;

#[test]
fn threads_share_an_executor_and_each_has_its_arena() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    std::thread::scope(|threads| {
        for thread in 0..4u32 {
            let lab = &lab;
            threads.spawn(move || {
                let arena = Arena::new(&lab.executor);
                for round in 0..50 {
                    let first = thread * 10_000 + round;
                    let len = LEN + round as usize;
                    let view = lab.filled(&arena, len, first);
                    assert_eq!(view.to_vec().unwrap(), counting(first, len));
                    let soon = lab.executor.defer(&arena, |call| Ok(call.output::<u8>(9)?.publish()));
                    soon.unwrap().wait().unwrap();
                }
            });
        }
    });
}

#[test]
fn threads_share_an_arena_and_its_readers_see_one_call_each() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    if let Some(simulated) = simulated() {
        simulated.set("LATE", "1");
    }
    let arena = Arena::new(&lab.executor);
    let (calls, reads) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for thread in 0..4u32 {
            let (lab, arena, calls, reads) = (&lab, &arena, &calls, &reads);
            threads.spawn(move || {
                let reader = lab.with_executor(vendor::executor(0).unwrap());
                let target = Arena::new(&reader.executor);
                for round in 0..30 {
                    let first = thread * 10_000 + round;
                    let call = lab.executor.begin_timeout(arena, Duration::from_secs(60)).unwrap();
                    let view = lab.fill_output(&call, LEN, first).publish();
                    call.finish().unwrap();
                    calls.fetch_add(1, Ordering::Relaxed);
                    match view.read_on(&reader.executor) {
                        Ok(guard) => {
                            let call = reader.executor.begin(&target).unwrap();
                            let mut output = call.output::<u32>(LEN).unwrap();
                            reader.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 1);
                            drop(guard);
                            let copy = output.publish();
                            call.finish().unwrap();
                            assert_eq!(copy.to_vec().unwrap(), counting(first + 1, LEN));
                            reads.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(Error::Stale { .. } | Error::Pending { .. } | Error::Contended { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    println!("{calls:?} calls, {reads:?} read");
    assert_eq!(calls.into_inner(), 120);
    assert_eq!(arena.holder(), None);
}
