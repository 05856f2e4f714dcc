//! Two devices: copies between their arenas, readers on the other, with peer access and without.

use device_arena::{Arena, Error, MemoryKind};

use crate::driver;
use crate::lab::{Lab, counting};
use crate::memory::ask;
use crate::simulated::{simulated, simulated_or_skip};
use crate::turn::turn;
use crate::vendor;

const LEN: usize = 10_000;

fn can_access(from: i32, to: i32) -> bool {
    let mut can = 0;
    // SAFETY: the driver writes the one value.
    driver::ok(unsafe { driver::can_access_peer(&raw mut can, from, to) });
    can != 0
}

#[test]
fn each_ordinal_has_its_own_memory() {
    let Some(turn) = turn() else { return };
    for ordinal in 0..turn.count() {
        let lab = Lab::new(ordinal);
        let arena = Arena::new(&lab.executor);
        let view = lab.filled(&arena, LEN, ordinal);
        assert_eq!(view.describe().device, ordinal as i32);
        let guard = view.read_on(&lab.executor).unwrap();
        assert_eq!(ask(guard.device_ptr().cast()).unwrap().kind, MemoryKind::Device { ordinal });
        drop(guard);
        assert_eq!(view.to_vec().unwrap(), counting(ordinal, LEN));
    }
}

#[test]
fn values_are_copied_both_ways_with_and_without_peer_access() {
    let Some(turn) = turn() else { return };
    if !turn.has_two() {
        return;
    }
    if let Some(simulated) = simulated() {
        simulated.set("LATE", "1");
    }
    for peers in ["1", "0"] {
        if let Some(simulated) = simulated() {
            simulated.set("PEER", peers);
        }
        for (from, to) in [(0, 1), (1, 0)] {
            let (lab, other) = (Lab::new(from), Lab::new(to));
            let (arena, target) = (Arena::new(&lab.executor), Arena::new(&other.executor));
            for round in 0..3 {
                let view = lab.filled(&arena, LEN, round);
                let call = other.executor.begin(&target).unwrap();
                let mut output = call.output::<u32>(LEN).unwrap();
                output.copy_from_view(&view).unwrap();
                // The next call of the view's arena comes after the copy.
                lab.filled(&arena, LEN, 5000);
                let mut sum = call.output::<u32>(LEN).unwrap();
                other.add(output.device_ptr().unwrap(), sum.device_ptr().unwrap(), LEN, 100);
                let views = (output.publish(), sum.publish());
                call.finish().unwrap();
                assert_eq!(views.0.to_vec().unwrap(), counting(round, LEN), "{from} to {to}");
                assert_eq!(views.1.to_vec().unwrap(), counting(round + 100, LEN));
            }
        }
    }
}

#[test]
fn a_copy_waits_for_work_that_is_held_up_on_the_other_device() {
    let Some(turn) = turn() else { return };
    if !turn.has_two() {
        return;
    }
    let (lab, other) = (Lab::new(0), Lab::new(1));
    let (arena, target) = (Arena::new(&lab.executor), Arena::new(&other.executor));
    arena.reserve(1 << 16).unwrap();
    target.reserve(1 << 16).unwrap();
    let gate = lab.gate();
    let view = lab.filled(&arena, LEN, 3);
    let call = other.executor.begin(&target).unwrap();
    let mut output = call.output::<u32>(LEN).unwrap();
    output.copy_from_view(&view).unwrap();
    let copy = output.publish();
    call.finish().unwrap();
    assert!(other.is_busy());
    gate.open();
    assert_eq!(copy.to_vec().unwrap(), counting(3, LEN));
}

#[test]
fn a_kernel_reads_the_other_devices_memory_where_it_reaches_it() {
    let Some(turn) = turn() else { return };
    if !turn.has_two() {
        return;
    }
    for (own, far) in [(0, 1), (1, 0)] {
        let (lab, reader) = (Lab::new(own), Lab::new(far));
        let (arena, target) = (Arena::new(&lab.executor), Arena::new(&reader.executor));
        for round in 0..3 {
            let view = lab.filled(&arena, LEN, round);
            let guard = match view.read_on(&reader.executor) {
                Ok(guard) => guard,
                Err(error) => {
                    assert!(!can_access(far as i32, own as i32), "{error}");
                    let expected = Error::Unreachable { operation: "reach", from: far, to: own };
                    assert_eq!(error, expected);
                    println!("device {far} does not reach device {own}");
                    assert_eq!(arena.holder(), None);
                    continue;
                }
            };
            let call = reader.executor.begin(&target).unwrap();
            let mut output = call.output::<u32>(LEN).unwrap();
            reader.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 7);
            drop(guard);
            let next = lab.filled(&arena, LEN, 5000);
            let sum = output.publish();
            call.finish().unwrap();
            assert_eq!(sum.to_vec().unwrap(), counting(round + 7, LEN));
            assert_eq!(next.to_vec().unwrap(), counting(5000, LEN));
        }
    }
}

#[test]
fn without_peer_access_the_other_devices_memory_is_unreachable() {
    let name = "ordinals::without_peer_access_the_other_devices_memory_is_unreachable";
    if !crate::process::is_child(name) {
        let Some(turn) = turn() else { return };
        if turn.has_two() && simulated_or_skip().is_some() {
            crate::process::run_child(name, &[("DEVICE_ARENA_SIMULATED_PEER", Some("0"))]);
        }
        return;
    }
    let Some(_turn) = turn() else { panic!("no driver") };
    let (lab, reader) = (Lab::new(0), vendor::executor(1).unwrap());
    let arena = Arena::new(&lab.executor);
    let view = lab.filled(&arena, LEN, 1);
    let refused = view.read_on(&reader).map(drop);
    assert_eq!(refused, Err(Error::Unreachable { operation: "reach", from: 1, to: 0 }));
    assert_eq!(arena.holder(), None, "what was refused holds nothing");
    lab.executor.begin(&arena).unwrap().finish().unwrap();
}

#[test]
fn an_arena_serves_its_own_ordinal_alone() {
    let Some(turn) = turn() else { return };
    if !turn.has_two() {
        return;
    }
    let (lab, other) = (Lab::new(0), Lab::new(1));
    let arena = Arena::new(&lab.executor);
    let view = lab.filled(&arena, 10, 1);
    let refused = other.executor.begin(&arena).unwrap_err();
    assert!(
        matches!(refused, Error::WrongExecutor { arena_ordinal: 0, ordinal: 1, operation: "begin", .. }),
        "{refused}"
    );
    let call = lab.executor.begin(&arena).unwrap();
    let refused = other.executor.defer_call(call).unwrap_err();
    assert!(matches!(refused.error, Error::WrongExecutor { arena_ordinal: 0, ordinal: 1, .. }));
    refused.value.finish().unwrap();
    assert!(matches!(view.to_vec(), Err(Error::Stale { .. })));
    // Kernels are of a context.
    let foreign = lab.with_executor(other.executor.clone());
    let place = std::ptr::without_provenance_mut(64);
    assert!(matches!(foreign.try_fill(place, 1, 1), Err(Error::Option { option: "kernel", .. })));
}

#[test]
fn two_devices_compute_at_the_same_time_from_one_thread_and_from_two() {
    let Some(turn) = turn() else { return };
    if !turn.has_two() {
        return;
    }
    let labs = [Lab::new(0), Lab::new(1)];
    let work = |lab: &Lab| {
        let arena = Arena::new(&lab.executor);
        for round in 0..20 {
            let view = lab.filled(&arena, LEN + round as usize * 100, round);
            assert_eq!(view.to_vec().unwrap(), counting(round, LEN + round as usize * 100));
        }
    };
    std::thread::scope(|threads| {
        for lab in &labs {
            threads.spawn(|| work(lab));
        }
    });
    labs.iter().for_each(work);
}
