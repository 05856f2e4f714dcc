//! What a kernel has still to read or to write is nobody else's, whichever way it came to it.

use device_arena::backend::Backend;
use device_arena::{Arena, ArenaOptions, Error, Executor, Placement, View};

use crate::lab::{Lab, counting};
use crate::simulated::simulated_or_skip;
use crate::turn::turn;

const LEN: usize = 1000;

fn coherent(lab: &Lab) -> Arena {
    let arena = ArenaOptions::new().placement(Placement::HostCoherent).build(&lab.executor).unwrap();
    arena.reserve(1 << 16).unwrap();
    arena
}

fn reserved(lab: &Lab) -> Arena {
    let arena = Arena::new(&lab.executor);
    arena.reserve(1 << 16).unwrap();
    arena
}

/// A kernel of `reader` that copies a view, under a guard that is dropped once it is queued.
fn copied(reader: &Lab, target: &Arena, view: &View<u32>) -> View<u32> {
    let guard = view.read_on(&reader.executor).unwrap();
    let call = reader.executor.begin(target).unwrap();
    let mut output = call.output::<u32>(LEN).unwrap();
    reader.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 0);
    let copy = output.publish();
    call.finish().unwrap();
    copy
}

#[test]
fn a_reserve_between_does_not_forget_the_readers() {
    let Some(_turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), Lab::new(0));
    let (arena, target) = (reserved(&lab), reserved(&reader));
    let view = lab.filled(&arena, LEN, 3);
    let gate = reader.gate();
    let copy = copied(&reader, &target, &view);
    arena.reserve(1).unwrap();
    let next = lab.filled(&arena, LEN, 5000);
    let is_ordered = lab.is_busy();
    gate.open();
    assert_eq!(copy.to_vec().unwrap(), counting(3, LEN));
    assert!(is_ordered, "the next call's kernel does not wait for the reader's");
    assert_eq!(next.to_vec().unwrap(), counting(5000, LEN));
}

/// Host writes to a host-coherent arena while a kernel of `reader` has still to read what is there.
fn host_writes_wait_for(lab: &Lab, reader: &Lab) {
    let (arena, target) = (coherent(lab), reserved(reader));
    let call = lab.executor.begin(&arena).unwrap();
    let view = call.output_from_slice(&counting(3, LEN)).unwrap().publish();
    call.finish().unwrap();
    let gate = reader.gate();
    let copy = copied(reader, &target, &view);
    let call = lab.executor.begin(&arena).unwrap();
    let mut output = call.output::<u32>(LEN).unwrap();
    let written = output.fill(77);
    gate.open();
    assert_eq!(copy.to_vec().unwrap(), counting(3, LEN), "the host wrote over it: {written:?}");
    assert!(matches!(written, Err(Error::Pending { .. })), "{written:?}");
    lab.executor.synchronize().unwrap();
    output.fill(77).unwrap();
}

#[test]
fn the_host_does_not_write_over_what_a_kernel_of_the_same_stream_has_to_read() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    host_writes_wait_for(&lab, &lab.with_executor(lab.executor.clone()));
}

#[test]
fn the_host_does_not_write_over_what_a_kernel_of_another_stream_has_to_read() {
    let Some(_turn) = turn() else { return };
    host_writes_wait_for(&Lab::new(0), &Lab::new(0));
}

#[test]
fn an_output_over_a_kernels_scratch_is_pending_until_that_has_passed() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let options = ArenaOptions::new().placement(Placement::HostCoherent).first_capacity(16 << 10);
    let arena = options.build(&lab.executor).unwrap();
    arena.reserve(16 << 10).unwrap();
    let gate = lab.gate();
    let mut call = lab.executor.begin(&arena).unwrap();
    let scratch = call.scratch(|scope| {
        let scratch = scope.take_on_device::<u32>(3000).unwrap();
        lab.fill(scratch, 3000, 0);
        scratch.addr()
    });
    let mut output = call.output::<u32>(4000).unwrap();
    let written = output.fill(77);
    gate.open();
    lab.executor.synchronize().unwrap();
    let values = output.as_slice().unwrap();
    let start = values.as_ptr().addr();
    assert!((start..start + 16_000).contains(&scratch), "the output covers the scratch");
    match written {
        Ok(()) => panic!("the host wrote while the kernel was to write: {:?}", &values[3990..]),
        Err(error) => assert!(matches!(error, Error::Pending { .. }), "{error}"),
    }
}

#[test]
fn a_guard_dropped_on_the_drivers_own_thread_does_not_let_the_next_call_write_over() {
    let Some(mut turn) = turn() else { return };
    // A real driver runs one host function at a time: behind a gate, none.
    let Some(_) = simulated_or_skip() else { return };
    let (lab, reader) = (Lab::new(0), Lab::new(0));
    let (arena, target) = (reserved(&lab), reserved(&reader));
    let view = lab.filled(&arena, LEN, 3);
    let guard = view.read_on(&reader.executor).unwrap();
    let gate = reader.gate();
    let call = reader.executor.begin(&target).unwrap();
    let mut output = call.output::<u32>(LEN).unwrap();
    reader.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 0);
    let copy = output.publish();
    call.finish().unwrap();
    // Host work in the order of a third stream, as who keeps a guard until some work has passed would queue it.
    let stream = turn.backend().create_stream(0).unwrap();
    let dropped = turn.backend().enqueue(&stream, Box::new(move || drop(guard))).unwrap();
    assert!(turn.backend().wait(&dropped, None).unwrap());
    let begun = lab.executor.begin(&arena);
    let next = begun.map(|call| {
        let view = lab.fill_output(&call, LEN, 5000).publish();
        call.finish().unwrap();
        (view, lab.is_busy())
    });
    gate.open();
    assert_eq!(copy.to_vec().unwrap(), counting(3, LEN));
    match next {
        Ok((view, is_ordered)) => {
            assert!(is_ordered, "the next call's kernel does not wait for the reader's");
            assert_eq!(view.to_vec().unwrap(), counting(5000, LEN));
        }
        Err(error) => assert!(matches!(error, Error::Contended { .. }), "{error}"),
    }
    drop((stream, dropped));
    drop((lab, reader, arena, target, view, copy));
    turn.forgive();
}

#[test]
fn an_arena_dropped_on_the_drivers_own_thread_is_freed() {
    let Some(turn) = turn() else { return };
    for placement in [Placement::Device, Placement::HostCoherent] {
        let lab = Lab::new(0);
        let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
        lab.filled(&arena, LEN, 3);
        lab.executor.synchronize().unwrap();
        let stream = turn.backend().create_stream(0).unwrap();
        let dropped = turn.backend().enqueue(&stream, Box::new(move || drop(arena))).unwrap();
        assert!(turn.backend().wait(&dropped, None).unwrap());
        drop((stream, dropped, lab));
        turn.nothing_is_left();
    }
}

#[test]
fn a_guard_and_an_output_that_go_at_the_same_time_keep_the_order() {
    let Some(_turn) = turn() else { return };
    let (lab, reader) = (Lab::new(0), Lab::new(0));
    let arena = reserved(&lab);
    for round in 0..300 {
        let call = lab.executor.begin(&arena).unwrap();
        let view = lab.fill_output(&call, 10, 3).publish();
        let open = call.output::<u32>(10).unwrap();
        call.finish().unwrap();
        // The call has ended, and its output has not: the view can be read, and nobody can begin.
        let guard = view.read_on(&reader.executor).unwrap();
        let gate = reader.gate();
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                barrier.wait();
                drop(guard);
            });
            barrier.wait();
            drop(open);
        });
        lab.filled(&arena, 10, 5000);
        // SAFETY: the stream is alive.
        let is_ordered = unsafe { crate::driver::stream_query(lab.stream()) } == 600;
        let is_ordered = is_ordered && lab.is_busy();
        gate.open();
        assert!(is_ordered, "round {round}: the next call's kernel does not wait for the reader's stream");
        lab.executor.synchronize().unwrap();
    }
}

#[test]
fn values_go_between_arenas_of_every_placement() {
    let Some(turn) = turn() else { return };
    let placements = [Placement::Host, Placement::Device, Placement::HostCoherent];
    let last = turn.count().min(2) - 1;
    for (from, to) in [(0, 0), (0, last), (last, 0)] {
        let (lab, other) = (Lab::new(from), Lab::new(to));
        let host = Executor::host().unwrap();
        for source in placements {
            for target in placements {
                let arena = ArenaOptions::new().placement(source).build(&lab.executor).unwrap();
                let own = if source == Placement::Host { &host } else { &lab.executor };
                let far = if target == Placement::Host { &host } else { &other.executor };
                let destination = ArenaOptions::new().placement(target).build(&other.executor).unwrap();
                for round in 0..2 {
                    let call = own.begin(&arena).unwrap();
                    let view = if source == Placement::Host {
                        call.output_from_slice(&counting(round, LEN)).unwrap().publish()
                    } else {
                        lab.fill_output(&call, LEN, round).publish()
                    };
                    call.finish().unwrap();
                    let call = far.begin(&destination).unwrap();
                    let mut output = call.output::<u32>(LEN).unwrap();
                    output.copy_from_view(&view).unwrap();
                    let short = call.output::<u32>(9).unwrap().copy_from_view(&view);
                    assert!(matches!(short, Err(Error::LengthMismatch { expected: 9, actual: LEN, .. })));
                    let copy = output.publish();
                    call.finish().unwrap();
                    assert_eq!(copy.to_vec().unwrap(), counting(round, LEN), "{source:?} to {target:?}");
                }
            }
        }
    }
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn a_launch_of_a_captured_call_is_pending_for_the_host_until_it_has_passed() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let work = |call: &mut device_arena::Call| Ok(lab.fill_output(call, LEN, 7).publish());
    let mut captured = lab.executor.capture(&arena, work).unwrap();
    for _ in 0..3 {
        let gate = lab.gate();
        let view = captured.launch().unwrap();
        assert!(matches!(view.read().map(drop), Err(Error::Pending { .. })));
        gate.open();
        lab.executor.synchronize().unwrap();
        assert_eq!(view.to_vec().unwrap(), counting(7, LEN));
        assert_eq!(*view.read().unwrap(), counting(7, LEN));
    }
}
