//! Readers on other streams: their work comes after the call's, and the next call's after theirs.

use std::time::Duration;

use device_arena::{Arena, Error, Executor, Holder};

use crate::lab::{Lab, counting};
use crate::simulated::{simulated, simulated_or_skip};
use crate::turn::turn;
use crate::vendor;

const LEN: usize = 1000;

#[test]
fn a_readers_kernel_sees_the_values_that_the_call_is_still_to_write() {
    let Some(_turn) = turn() else { return };
    let (writer, reader) = (Lab::new(0), Lab::new(0));
    let (arena, target) = (Arena::new(&writer.executor), Arena::new(&reader.executor));
    arena.reserve(1 << 16).unwrap();
    target.reserve(1 << 16).unwrap();
    let gate = writer.gate();
    let view = writer.filled(&arena, LEN, 7);
    let guard = view.read_on(&reader.executor).unwrap();
    assert_eq!(guard.reader(), &reader.executor);
    let call = reader.executor.begin(&target).unwrap();
    let mut output = call.output::<u32>(LEN).unwrap();
    reader.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 100);
    let copy = output.publish();
    call.finish().unwrap();
    assert!(reader.is_busy(), "the reader's stream waits for the writer's");
    gate.open();
    assert_eq!(copy.to_vec().unwrap(), counting(107, LEN));
}

#[test]
fn the_next_calls_writes_wait_for_the_readers_kernel() {
    let Some(_turn) = turn() else { return };
    let (writer, reader) = (Lab::new(0), Lab::new(0));
    let (arena, target) = (Arena::new(&writer.executor), Arena::new(&reader.executor));
    target.reserve(1 << 16).unwrap();
    for round in 0..3 {
        let view = writer.filled(&arena, LEN, round);
        let guard = view.read_on(&reader.executor).unwrap();
        let gate = reader.gate();
        let call = reader.executor.begin(&target).unwrap();
        let mut output = call.output::<u32>(LEN).unwrap();
        reader.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 100);
        let copy = output.publish();
        call.finish().unwrap();
        let refused = writer.executor.begin(&arena).unwrap_err();
        assert!(matches!(refused, Error::Contended { holder: Holder::Readers(1), .. }));
        let address = guard.device_ptr();
        drop(guard);
        let next = writer.executor.begin(&arena).unwrap();
        let mut output = writer.fill_output(&next, LEN, 5000);
        assert_eq!(output.device_ptr().unwrap().cast_const(), address, "it is the same memory");
        let next_view = output.publish();
        next.finish().unwrap();
        assert!(writer.is_busy(), "the writer's stream waits for the reader's");
        gate.open();
        assert_eq!(copy.to_vec().unwrap(), counting(round + 100, LEN));
        assert_eq!(next_view.to_vec().unwrap(), counting(5000, LEN));
    }
}

#[test]
fn many_readers_on_many_streams_are_all_waited_for() {
    let Some(_turn) = turn() else { return };
    let writer = Lab::new(0);
    let readers: Vec<_> = (0..4).map(|_| writer.with_executor(vendor::executor(0).unwrap())).collect();
    if let Some(simulated) = simulated() {
        simulated.set("LATE", "1");
    }
    let arena = Arena::new(&writer.executor);
    let targets: Vec<_> = readers.iter().map(|reader| Arena::new(&reader.executor)).collect();
    for round in 0..5 {
        let view = writer.filled(&arena, LEN, round);
        let mut copies = Vec::new();
        for (reader, target) in readers.iter().zip(&targets) {
            let call = reader.executor.begin(target).unwrap();
            let mut output = call.output::<u32>(LEN).unwrap();
            let guard = view.read_on(&reader.executor).unwrap();
            reader.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 1);
            copies.push(output.publish());
            call.finish().unwrap();
        }
        let next = writer.filled(&arena, LEN, 9000);
        for copy in copies {
            assert_eq!(copy.to_vec().unwrap(), counting(round + 1, LEN));
        }
        assert_eq!(next.to_vec().unwrap(), counting(9000, LEN));
    }
}

#[test]
fn a_guard_on_the_arenas_own_executor_asks_the_driver_for_nothing() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    let (arena, target) = (Arena::new(&lab.executor), Arena::new(&lab.executor));
    target.reserve(1 << 16).unwrap();
    let view = lab.filled(&arena, LEN, 3);
    let before = simulated.all_calls();
    let guard = view.read_on(&lab.executor).unwrap();
    assert_eq!(simulated.all_calls(), before);
    let call = lab.executor.begin(&target).unwrap();
    let mut output = call.output::<u32>(LEN).unwrap();
    lab.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 1);
    drop(guard);
    let copy = output.publish();
    call.finish().unwrap();
    // The stream orders it.
    lab.filled(&arena, LEN, 77);
    assert_eq!(copy.to_vec().unwrap(), counting(4, LEN));
}

#[test]
fn what_can_not_be_read_on_a_device_is_refused_and_holds_nothing() {
    let Some(_turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), vendor::executor(0).unwrap());
    let arena = Arena::new(&lab.executor);
    let call = lab.executor.begin(&arena).unwrap();
    let view = lab.fill_output(&call, LEN, 1).publish();
    assert!(matches!(view.read_on(&reader).map(drop), Err(Error::Pending { .. })));
    call.finish().unwrap();
    let host = Executor::host().unwrap();
    assert!(matches!(view.read_on(&host).map(drop), Err(Error::WrongVendor { .. })));
    assert_eq!(arena.holder(), None);
    lab.filled(&arena, LEN, 2);
    assert!(matches!(view.read_on(&reader).map(drop), Err(Error::Stale { .. })));
    assert!(matches!(view.read_on(&host).map(drop), Err(Error::Stale { .. })), "stale comes first");
    assert_eq!(arena.holder(), None);
}

#[test]
fn a_begin_that_waits_goes_on_when_the_guard_is_dropped_elsewhere() {
    let Some(_turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), vendor::executor(0).unwrap());
    let arena = Arena::new(&lab.executor);
    let view = lab.filled(&arena, LEN, 1);
    let guard = view.read_on(&reader).unwrap();
    let short = lab.executor.begin_timeout(&arena, Duration::from_millis(5));
    assert!(matches!(short, Err(Error::Contended { .. })));
    let dropper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        drop(guard);
    });
    lab.executor.begin_timeout(&arena, Duration::from_secs(60)).unwrap().finish().unwrap();
    dropper.join().unwrap();
}
