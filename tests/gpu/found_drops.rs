//! Found by a hostile reading: what is let go of too early or never, where a call of the driver's fails or a thread is the
//! wrong one.

use device_arena::backend::Backend;
use device_arena::{Arena, ArenaOptions, Error, Executor, Growth, Holder, Placement, Scrub, TapeView, View};

use crate::functions::Function;
use crate::lab::{Lab, counting};
use crate::memory::Registered;
use crate::simulated::{OUT_OF_MEMORY, Simulated, UNKNOWN, simulated_or_skip};
use crate::turn::turn;
use crate::vendor;

const LEN: usize = 1000;
const PAGE: usize = 4096;

/// `CUDA_ERROR_OPERATING_SYSTEM`: a call that fails, of a device that is not lost. Its work goes on.
const PASSING: u32 = 304;

/// The simulated driver, with queued work that runs as late as it can.
fn late_or_skip() -> Option<Simulated> {
    let simulated = simulated_or_skip()?;
    simulated.set("LATE", "1");
    simulated.set("LATE_MS", "0");
    Some(simulated)
}

fn reserved(executor: &Executor) -> Arena {
    let arena = Arena::new(executor);
    arena.reserve(1 << 16).unwrap();
    arena
}

/// Whole pages of the process.
fn pages(bytes: &mut Vec<u8>) -> &mut [u8] {
    bytes.resize(2 * PAGE, 0);
    let start = bytes.as_ptr().align_offset(PAGE);
    &mut bytes[start..start + PAGE]
}

/// A copy of the view's values that is queued on the target's executor.
fn copied(executor: &Executor, target: &Arena, view: &View<u32>) -> View<u32> {
    let call = executor.begin(target).unwrap();
    let mut output = call.output::<u32>(view.len()).unwrap();
    output.copy_from_view(view).unwrap();
    let copy = output.publish();
    call.finish().unwrap();
    copy
}

// The reader was counted no more, and no event of its was noted.
#[test]
fn a_guard_whose_drop_can_neither_note_nor_wait_keeps_its_arena_held() {
    let Some(mut turn) = turn() else { return };
    let Some(simulated) = late_or_skip() else { return };
    let (lab, reader) = (Lab::new(0), Lab::new(0));
    let (arena, target) = (reserved(&lab.executor), reserved(&reader.executor));
    let view = lab.filled(&arena, LEN, 3);
    let guard = view.read_on(&reader.executor).unwrap();
    let call = reader.executor.begin(&target).unwrap();
    let mut output = call.output::<u32>(LEN).unwrap();
    reader.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 0);
    let copy = output.publish();
    call.finish().unwrap();
    for function in [Function::EventCreate, Function::EventRecord, Function::StreamSynchronize] {
        simulated.fail(function, 0, 0, PASSING);
    }
    drop(guard);
    simulated.clear();
    let refused = lab.executor.begin(&arena).map(drop);
    assert!(matches!(refused, Err(Error::Contended { holder: Holder::Readers(1), .. })), "{refused:?}");
    assert_eq!(copy.to_vec().unwrap(), counting(3, LEN));
    drop((lab, reader, arena, target, view, copy));
    // As by a guard that was forgotten.
    turn.forgive();
}

// The arena's own stream alone was waited for, where making it wait for the reader's had failed.
#[test]
fn blocks_are_not_freed_under_a_reader_whose_order_failed() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = late_or_skip() else { return };
    let (executor, reader) = (vendor::executor(0).unwrap(), vendor::executor(0).unwrap());
    for times in [1, 3] {
        let (arena, target) = (reserved(&executor), reserved(&reader));
        let call = executor.begin(&arena).unwrap();
        let view = call.output_from_slice(&counting(3, LEN)).unwrap().publish();
        call.finish().unwrap();
        let copy = copied(&reader, &target, &view);
        simulated.fail(Function::StreamWaitEvent, 0, times, PASSING);
        drop(arena);
        simulated.clear();
        assert_eq!(reader.synchronize(), Ok(()), "freed under a reader");
        assert_eq!(copy.to_vec().unwrap(), counting(3, LEN));
    }
}

// As above, and the wait on the host fails too: then they are not to be freed at all, or later.
#[test]
fn blocks_are_not_freed_under_a_reader_that_can_not_be_waited_for() {
    let Some(mut turn) = turn() else { return };
    let Some(simulated) = late_or_skip() else { return };
    let (executor, reader) = (vendor::executor(0).unwrap(), vendor::executor(0).unwrap());
    let (arena, target) = (reserved(&executor), reserved(&reader));
    let call = executor.begin(&arena).unwrap();
    let view = call.output_from_slice(&counting(3, LEN)).unwrap().publish();
    call.finish().unwrap();
    let copy = copied(&reader, &target, &view);
    for function in [Function::StreamWaitEvent, Function::EventSynchronize, Function::EventQuery] {
        simulated.fail(function, 0, 0, PASSING);
    }
    drop(arena);
    simulated.clear();
    assert_eq!(reader.synchronize(), Ok(()), "freed under a reader");
    assert_eq!(copy.to_vec().unwrap(), counting(3, LEN));
    drop((executor, reader, target, view, copy));
    // They are the failed driver's to keep.
    turn.forgive();
}

// The copy was queued, and a look that failed came before the wait: the borrow ended ahead of the device's write.
#[test]
fn a_copy_out_to_pinned_memory_is_done_when_it_returns_whatever_failed() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = late_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    let arena = reserved(&executor);
    let call = executor.begin(&arena).unwrap();
    let view = call.output_from_slice(&[1u8; PAGE]).unwrap().publish();
    call.finish().unwrap();
    executor.synchronize().unwrap();
    let mut bytes = Vec::new();
    let place = pages(&mut bytes);
    let address = place.as_mut_ptr();
    let _registered = Registered::new(&executor, place);
    for (function, times) in
        [(Function::StreamIsCapturing, 1), (Function::StreamSynchronize, 1), (Function::CtxGetCurrent, 1)]
    {
        for after in 0..4 {
            simulated.fail(function, after, times, PASSING);
            // SAFETY: the pages are live, and this is the one borrow of them.
            let outcome = view.copy_to(unsafe { std::slice::from_raw_parts_mut(address, PAGE) });
            simulated.clear();
            // SAFETY: as above; the borrow has ended.
            unsafe { address.write_bytes(9, PAGE) };
            executor.synchronize().unwrap();
            // SAFETY: as above.
            let now = unsafe { address.read_volatile() };
            assert_eq!(now, 9, "{function} after {after}: written after the borrow, {outcome:?}");
        }
    }
}

// As above, for the device's read of what is copied in.
#[test]
fn a_copy_in_from_pinned_memory_is_done_when_it_returns_whatever_failed() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = late_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    let arena = reserved(&executor);
    let mut bytes = Vec::new();
    let place = pages(&mut bytes);
    let address = place.as_mut_ptr();
    let _registered = Registered::new(&executor, place);
    for function in [Function::StreamIsCapturing, Function::StreamSynchronize, Function::CtxGetCurrent] {
        for after in 0..4 {
            let call = executor.begin(&arena).unwrap();
            let mut output = call.output_from_slice(&[0u8; PAGE]).unwrap();
            // SAFETY: the pages are live, and nobody borrows them.
            unsafe { address.write_bytes(1, PAGE) };
            simulated.fail(function, after, 1, PASSING);
            // SAFETY: as above.
            let outcome = output.copy_from_slice(unsafe { std::slice::from_raw_parts(address, PAGE) });
            simulated.clear();
            // SAFETY: as above; the borrow has ended.
            unsafe { address.write_bytes(9, PAGE) };
            let view = output.publish();
            call.finish().unwrap();
            let values = view.to_vec().unwrap();
            let expected = if outcome.is_ok() { &[1][..] } else { &[0, 1] };
            assert!(
                values.iter().all(|byte| expected.contains(byte)),
                "{function} after {after}: {outcome:?}"
            );
        }
    }
}

// A long list of ranges was filled by several launches, and the second failed.
#[test]
fn a_begin_whose_scrub_fails_leaves_views_that_are_whole_or_stale() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    for after in 0..4 {
        let options = ArenaOptions::new().scrub(Scrub::Zero).growth(Growth::Exact).first_capacity(PAGE);
        let arena = options.build(&executor).unwrap();
        let mut call = executor.begin(&arena).unwrap();
        let mut views = Vec::new();
        for at in 1..=20u8 {
            views.push((at, call.output_from_slice(&[at; 3000]).unwrap().publish()));
            call.scratch(|scope| scope.take_on_device::<u8>(512).map(drop)).unwrap();
        }
        call.finish().unwrap();
        // Of the one block in the place of so many there is none.
        simulated.fail(Function::MemAlloc, 0, 0, OUT_OF_MEMORY);
        simulated.fail(Function::LaunchKernel, after, 1, UNKNOWN);
        let begun = executor.begin(&arena).map(drop);
        simulated.clear();
        for (at, view) in &views {
            match view.to_vec() {
                Ok(values) => assert_eq!(values, [*at; 3000], "after {after}: {begun:?}"),
                Err(error) => assert!(matches!(error, Error::Stale { .. }), "{error}"),
            }
        }
    }
}

// Nobody tried again what the driver refuses on its own thread.
#[test]
fn the_last_guard_and_the_last_executor_may_go_on_the_drivers_own_thread() {
    let Some(turn) = turn() else { return };
    for placement in [Placement::Device, Placement::HostCoherent] {
        let executor = vendor::executor(0).unwrap();
        let arena = ArenaOptions::new().placement(placement).build(&executor).unwrap();
        let call = executor.begin(&arena).unwrap();
        let view = call.output_from_slice(&counting(3, LEN)).unwrap().publish();
        call.finish().unwrap();
        let guard = view.read_on(&executor).unwrap();
        drop((arena, view));
        let stream = turn.backend().create_stream(0).unwrap();
        let dropped = turn.backend().enqueue(&stream, Box::new(move || drop((guard, executor)))).unwrap();
        assert!(turn.backend().wait(&dropped, None).unwrap());
        drop((stream, dropped));
        turn.nothing_is_left();
    }
}

// The host's call was left to an event of the device's, which its own backend can't ask.
#[test]
fn a_deferred_call_that_ends_with_a_call_of_the_hosts_leaves_both_arenas_free() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, host) = (reserved(&lab.executor), Arena::host());
    let mut other = host.begin().unwrap();
    let soon = lab.executor.defer(&arena, move |call| {
        std::mem::swap(call, &mut other);
        Ok(other)
    });
    let own = soon.unwrap().wait();
    host.begin().unwrap().finish().unwrap();
    own.unwrap().finish().unwrap();
    assert_eq!(lab.filled(&arena, LEN, 3).to_vec().unwrap(), counting(3, LEN));
}

// As above: a call of another executor's was left to this one's event.
#[test]
fn a_deferred_call_that_ends_with_another_executors_leaves_both_arenas_free() {
    let Some(_turn) = turn() else { return };
    let (lab, other) = (Lab::new(0), Lab::new(0));
    let (arena, far) = (reserved(&lab.executor), reserved(&other.executor));
    let mut foreign = other.executor.begin(&far).unwrap();
    let soon = lab.executor.defer(&arena, move |call| {
        std::mem::swap(call, &mut foreign);
        Ok(foreign)
    });
    let own = soon.unwrap().wait();
    assert_eq!(other.filled(&far, LEN, 4).to_vec().unwrap(), counting(4, LEN));
    own.unwrap().finish().unwrap();
    assert_eq!(lab.filled(&arena, LEN, 3).to_vec().unwrap(), counting(3, LEN));
}

// Each guard that was dropped left an event until the next begin.
#[test]
fn a_result_that_is_read_again_and_again_keeps_few_events() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let (lab, reader) = (Lab::new(0), vendor::executor(0).unwrap());
    for placement in [Placement::Device, Placement::HostCoherent] {
        let arena = ArenaOptions::new().placement(placement).build(&lab.executor).unwrap();
        let view = lab.filled(&arena, LEN, 3);
        let before = simulated.live("events");
        for _ in 0..2000 {
            drop(view.read_on(&reader).unwrap());
        }
        let events = simulated.live("events") - before;
        assert!(events < 200, "{events} events");
    }
}

// The room was taken before the copy or the launch that failed, and not given back.
#[test]
fn a_refused_stage_and_a_refused_device_room_take_no_room() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    let arena = reserved(&lab.executor);
    let call = lab.executor.begin(&arena).unwrap();
    let before = arena.stats();
    let text = vec![1u8; 5000];
    let stage = || call.stage(&TapeView::of(&text, &[0u32, 100]).unwrap()).map(drop);
    simulated.fail(Function::MemcpyAsync, 0, 0, UNKNOWN);
    let refused = stage();
    simulated.clear();
    assert!(matches!(refused, Err(Error::Driver { .. })), "{refused:?}");
    assert_eq!(arena.stats().bytes_used, before.bytes_used);
    simulated.fail(Function::LaunchKernel, 0, 0, UNKNOWN);
    let refused = call.device_room::<u32>(1000).map(drop);
    simulated.clear();
    assert!(matches!(refused, Err(Error::Driver { .. })), "{refused:?}");
    assert_eq!(arena.stats().bytes_used, before.bytes_used);
    stage().unwrap();
    drop(call.device_room::<u32>(1000).unwrap());
}

// The bytes were there when the offsets were refused.
#[test]
fn a_stage_whose_offsets_are_refused_takes_no_room() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    if executor.device().unwrap().reaches_pageable_memory {
        println!("skipped: the device reads pageable memory where it is");
        return;
    }
    let arena = reserved(&executor);
    let call = executor.begin(&arena).unwrap();
    let before = arena.stats().bytes_used;
    simulated.fail(Function::MemcpyAsync, 1, 0, UNKNOWN);
    let refused = call.stage(&TapeView::of(&[1u8; 5000], &[0u32, 100]).unwrap()).map(drop);
    simulated.clear();
    assert!(matches!(refused, Err(Error::Driver { .. })), "{refused:?}");
    assert_eq!(arena.stats().bytes_used, before);
}

// What the call had seen of the address was remembered for longer than the tape was lent.
#[test]
fn memory_that_was_unregistered_since_is_staged_as_what_it_is_now() {
    let Some(_turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    if executor.device().unwrap().reaches_pageable_memory {
        println!("skipped: the device reads pageable memory where it is");
        return;
    }
    let arena = reserved(&executor);
    let mut bytes = Vec::new();
    let place = pages(&mut bytes);
    let address = place.as_ptr();
    let call = executor.begin(&arena).unwrap();
    let bytes_at = || {
        // SAFETY: the pages are live, and nobody writes them.
        let tape = TapeView::of(unsafe { std::slice::from_raw_parts(address, PAGE) }, &[0u64, 100]).unwrap();
        call.stage(&tape).unwrap().bytes_ptr()
    };
    let registered = Registered::new(&executor, place);
    assert_eq!(bytes_at(), address, "pinned: used where it is");
    drop(registered);
    assert_ne!(bytes_at(), address, "pageable memory is handed to kernels");
    call.finish().unwrap();
}

// A stream that became an executor twice was taken for two.
#[cfg(feature = "cudarc")]
#[test]
fn two_executors_of_one_stream_are_one() {
    let Some(_turn) = crate::turn::turn_of_nvidia("cudarc") else { return };
    let done = std::thread::spawn(|| {
        let context = cudarc::driver::CudaContext::new(0).unwrap();
        for stream in [context.new_stream().unwrap(), context.default_stream()] {
            let (executor, again) =
                (Executor::from_cudarc(&stream).unwrap(), Executor::from_cudarc(&stream).unwrap());
            assert_eq!(executor, again);
            let lab = Lab::on(executor);
            let arena = Arena::new(&lab.executor);
            let view = lab.filled(&arena, LEN, 3);
            let guard = view.read_on(&again).unwrap();
            if let Some(simulated) = crate::simulated::simulated() {
                let before = simulated.all_calls();
                drop((view.read_on(&again).unwrap(), guard));
                assert_eq!(simulated.all_calls(), before, "the one stream orders it");
            } else {
                drop(guard);
            }
            let call = again.begin(&arena).unwrap();
            again.defer_call(call).unwrap().wait().unwrap();
        }
    });
    if let Err(panic) = done.join() {
        std::panic::resume_unwind(panic);
    }
}
