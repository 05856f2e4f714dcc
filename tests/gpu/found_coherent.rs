//! Found by a hostile reading: the host beside a device's work on the same pages.

use device_arena::{Arena, ArenaOptions, Error, Placement};

use crate::lab::{Lab, counting};
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

/// Host writes to a host-coherent arena while a copy of the crate's has still to read what is there.
fn host_writes_wait_for_a_copy(lab: &Lab, reader: &Lab) {
    let (arena, target) = (coherent(lab), reserved(reader));
    let call = lab.executor.begin(&arena).unwrap();
    let view = call.output_from_slice(&counting(3, LEN)).unwrap().publish();
    call.finish().unwrap();
    let gate = reader.gate();
    let call = reader.executor.begin(&target).unwrap();
    let mut output = call.output::<u32>(LEN).unwrap();
    output.copy_from_view(&view).unwrap();
    let copy = output.publish();
    call.finish().unwrap();
    let call = lab.executor.begin(&arena).unwrap();
    let written = call.output_from_slice(&[77; LEN]).map(drop);
    gate.open();
    assert_eq!(copy.to_vec().unwrap(), counting(3, LEN), "the host wrote over it: {written:?}");
    assert!(matches!(written, Err(Error::Pending { .. })), "{written:?}");
    lab.executor.synchronize().unwrap();
    drop(call.output_from_slice(&[77; LEN]).unwrap());
}

// Only what is written was noted for the host, not what is read.
#[test]
fn the_host_does_not_write_over_what_a_copy_on_the_same_stream_has_to_read() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    host_writes_wait_for_a_copy(&lab, &lab.with_executor(lab.executor.clone()));
}

// The arena's stream waited for the reader's event, and the host did not.
#[test]
fn the_host_does_not_write_over_what_a_copy_on_another_stream_has_to_read() {
    let Some(_turn) = turn() else { return };
    host_writes_wait_for_a_copy(&Lab::new(0), &Lab::new(0));
}

// A read said that all of the call's work had passed, which an output that is open can still add to.
#[test]
fn what_an_open_output_queues_after_its_call_is_pending() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, target) = (coherent(&lab), reserved(&lab));
    let source = lab.filled(&target, LEN, 7);
    let call = lab.executor.begin(&arena).unwrap();
    let early = lab.fill_output(&call, 10, 3).publish();
    let mut open = call.output::<u32>(LEN).unwrap();
    call.finish().unwrap();
    lab.executor.synchronize().unwrap();
    assert_eq!(*early.read().unwrap(), counting(3, 10));
    let gate = lab.gate();
    open.copy_from_view(&source).unwrap();
    let view = open.publish();
    let read = view.read().map(|values| values[0]);
    gate.open();
    assert!(matches!(read, Err(Error::Pending { .. })), "the host reads while the device writes: {read:?}");
    lab.executor.synchronize().unwrap();
    assert_eq!(*view.read().unwrap(), counting(7, LEN));
}

// As above, and the output's pointer was taken before the read: what is queued through it comes after.
#[test]
fn what_a_kernel_writes_to_an_open_output_after_a_read_is_pending() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let call = lab.executor.begin(&arena).unwrap();
    let early = lab.fill_output(&call, 10, 3).publish();
    let mut open = call.output::<u32>(LEN).unwrap();
    let place = open.device_ptr().unwrap();
    call.finish().unwrap();
    lab.executor.synchronize().unwrap();
    assert_eq!(*early.read().unwrap(), counting(3, 10));
    let gate = lab.gate();
    lab.fill(place, LEN, 7);
    let view = open.publish();
    let read = view.read().map(|values| values[0]);
    gate.open();
    assert!(matches!(read, Err(Error::Pending { .. })), "the host reads while the device writes: {read:?}");
    lab.executor.synchronize().unwrap();
    assert_eq!(*view.read().unwrap(), counting(7, LEN));
}

// As above, within the call: an export asks the same.
#[test]
fn what_a_kernel_writes_after_an_export_is_pending() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let call = lab.executor.begin(&arena).unwrap();
    let early = lab.fill_output(&call, 10, 3).publish();
    let mut open = call.output::<u32>(LEN).unwrap();
    let place = open.device_ptr().unwrap();
    lab.executor.synchronize().unwrap();
    let exported = call.export(&early).unwrap();
    let gate = lab.gate();
    lab.fill(place, LEN, 7);
    let view = open.publish();
    let refused = call.export(&view).map(drop);
    call.finish().unwrap();
    let read = view.read().map(|values| values[0]);
    gate.open();
    assert_eq!(*exported, counting(3, 10));
    assert!(
        matches!(refused, Err(Error::Pending { .. })),
        "the host reads while the device writes: {refused:?}"
    );
    assert!(matches!(read, Err(Error::Pending { .. })), "the host reads while the device writes: {read:?}");
}

// As above, and the output is dropped: the next call's host writes are on the same bytes.
#[test]
fn the_next_call_waits_for_what_a_kernel_writes_to_an_output_that_is_dropped() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let call = lab.executor.begin(&arena).unwrap();
    let early = lab.fill_output(&call, 10, 3).publish();
    let mut open = call.output::<u32>(LEN).unwrap();
    let place = open.device_ptr().unwrap();
    call.finish().unwrap();
    lab.executor.synchronize().unwrap();
    assert_eq!(*early.read().unwrap(), counting(3, 10));
    let gate = lab.gate();
    lab.fill(place, LEN, 7);
    drop((open, early));
    let call = lab.executor.begin(&arena).unwrap();
    let mut output = call.output::<u32>(2 * LEN).unwrap();
    let written = output.fill(77);
    gate.open();
    assert!(
        matches!(written, Err(Error::Pending { .. })),
        "the host writes while the device does: {written:?}"
    );
}

// As above: a room of a finished call queued its header's write unseen.
#[test]
fn the_next_call_waits_for_a_room_that_was_reset_after_its_call() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let call = lab.executor.begin(&arena).unwrap();
    let early = lab.fill_output(&call, 10, 3).publish();
    let room = call.device_room::<u32>(LEN).unwrap();
    call.finish().unwrap();
    lab.executor.synchronize().unwrap();
    assert_eq!(*early.read().unwrap(), counting(3, 10));
    let gate = lab.gate();
    room.reset().unwrap();
    drop((room, early));
    let call = lab.executor.begin(&arena).unwrap();
    let mut output = call.output::<u32>(2 * LEN).unwrap();
    let written = output.fill(77);
    gate.open();
    assert!(
        matches!(written, Err(Error::Pending { .. })),
        "the host writes while the device does: {written:?}"
    );
}

// As above, and it is a kernel that takes from the room once the values of another output were read.
#[test]
fn the_next_call_waits_for_a_kernel_that_takes_from_a_room_after_its_call() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let call = lab.executor.begin(&arena).unwrap();
    let early = lab.fill_output(&call, 10, 3).publish();
    let mut room = call.device_room::<u32>(LEN).unwrap();
    call.finish().unwrap();
    lab.executor.synchronize().unwrap();
    assert_eq!(*early.read().unwrap(), counting(3, 10));
    let gate = lab.gate();
    lab.take(room.device_ptr(), 100, 4);
    drop((room, early));
    let call = lab.executor.begin(&arena).unwrap();
    let mut output = call.output::<u32>(2 * LEN).unwrap();
    let written = output.fill(77);
    gate.open();
    assert!(
        matches!(written, Err(Error::Pending { .. })),
        "the host writes while the device does: {written:?}"
    );
}

// Access was asked for when the writer was opened, and not when it grew over what a kernel had as scratch since.
#[test]
fn a_writer_that_grows_over_a_kernels_scratch_is_pending() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let mut call = lab.executor.begin(&arena).unwrap();
    let mut words = call.writer::<u32>().unwrap();
    words.push(1).unwrap();
    let gate = lab.gate();
    call.scratch(|scope| lab.fill(scope.take_on_device::<u32>(16_000).unwrap(), 16_000, 500));
    let grown = words.extend((0..15_000).map(|_| 1));
    gate.open();
    lab.executor.synchronize().unwrap();
    assert!(words.as_slice().iter().all(|&word| word == 1), "a kernel wrote over them: {grown:?}");
    assert!(matches!(grown, Err(Error::Pending { .. })), "{grown:?}");
    words.extend((0..15_000).map(|_| 1)).unwrap();
    let view = words.publish();
    call.finish().unwrap();
    assert!(view.read().unwrap().iter().all(|&word| word == 1));
}

// As above, for collections that take their room by themselves.
#[cfg(feature = "allocator-api2")]
#[test]
fn a_collection_that_grows_over_a_kernels_scratch_is_refused() {
    use allocator_api2::alloc::Allocator;

    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let mut call = lab.executor.begin(&arena).unwrap();
    call.scratch(|scope| {
        let allocator = scope.call().host().unwrap();
        let gate = lab.gate();
        scope.scratch(|inner| lab.fill(inner.take_on_device::<u32>(16_000).unwrap(), 16_000, 500));
        let layout = std::alloc::Layout::new::<[u8; 60_000]>();
        let refused = allocator.allocate(layout).map(drop);
        gate.open();
        assert!(refused.is_err(), "the host's room is what a kernel is to write");
        lab.executor.synchronize().unwrap();
        assert!(allocator.allocate(layout).is_ok());
    });
}

// The deferred call's own event said that it had passed; the read recorded another, and asked it at once.
#[test]
fn what_a_deferred_call_has_waited_for_is_not_pending() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    for round in 0..10 {
        let call = lab.executor.begin(&arena).unwrap();
        let view = lab.fill_output(&call, LEN, round).publish();
        lab.executor.defer_call(call).unwrap().wait().unwrap();
        assert_eq!(*view.read().unwrap(), counting(round, LEN));
    }
}

// The clock of the device's work began anew with the generations, and the scrub that was queued was not in it.
#[cfg(device_arena_small_limits)]
#[test]
fn a_scrub_behind_the_last_generation_does_not_come_after_the_hosts_writes() {
    let Some(_turn) = turn() else { return };
    if let Some(simulated) = crate::simulated::simulated() {
        simulated.set("LATE", "1");
        simulated.set("LATE_MS", "0");
    }
    let lab = Lab::new(0);
    let options = ArenaOptions::new().placement(Placement::HostCoherent);
    let arena = options.scrub(device_arena::Scrub::Zero).build(&lab.executor).unwrap();
    for round in 0..20 {
        let call = lab.executor.begin(&arena).unwrap();
        let mut output = call.output::<u32>(LEN).unwrap();
        if output.fill(77).is_ok() {
            lab.executor.synchronize().unwrap();
            assert_eq!(output.as_slice().unwrap(), [77; LEN], "round {round}");
        }
        lab.fill(output.device_ptr().unwrap(), LEN, 5);
        drop(output);
        call.finish().unwrap();
    }
}

// What needs nobody's answer was granted in a child too, which shares the pages with its parent's device.
#[cfg(unix)]
#[test]
fn a_forked_child_leaves_the_pages_of_its_parents_device_alone() {
    let name = "found_coherent::a_forked_child_leaves_the_pages_of_its_parents_device_alone";
    if !crate::process::is_child(name) {
        if turn().is_some() {
            crate::process::run_child(name, &[]);
        }
        return;
    }
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let call = lab.executor.begin(&arena).unwrap();
    let view = call.output_from_slice(&counting(3, 4)).unwrap().publish();
    call.finish().unwrap();
    let running = coherent(&lab);
    let call = lab.executor.begin(&running).unwrap();
    let mut output = call.output::<u32>(4).unwrap();
    let mut words = call.writer::<u32>().unwrap();
    // SAFETY: the child asks the crate alone, and ends without running anybody's destructors.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: an alarm ends the child where it would wait for good.
        unsafe { libc::alarm(20) };
        let done = [
            view.read().is_ok(),
            view.to_vec().is_ok(),
            output.fill(2).is_ok(),
            words.push(2).is_ok(),
            lab.executor.begin(&arena).and_then(|call| call.output::<u32>(4)?.fill(2)).is_ok(),
        ];
        let first = done.iter().position(|&done| done).map_or(0, |at| at as i32 + 1);
        // SAFETY: as above.
        unsafe { libc::_exit(first) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's own.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child was ended by {status}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "this was granted in the child");
    assert_eq!(*view.read().unwrap(), counting(3, 4));
    output.fill(1).unwrap();
}
