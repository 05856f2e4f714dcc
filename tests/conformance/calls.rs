//! Promises 3 to 7: calls, views, guards and deferred work.

use std::time::{Duration, Instant};

use device_arena::backend::{Backend, Vendor};
use device_arena::{Arena, Error, Executor, Holder, Scrub, StaleReason};

use crate::Subject;
use crate::arenas::call;

fn arena(subject: &Subject) -> (Executor, Arena) {
    let executor = subject.executor();
    let arena = subject.arena(&executor);
    (executor, arena)
}

pub(crate) fn begin_makes_every_view_stale(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let views = call(&executor, &arena, &[10, 20]);
    assert!(views.iter().all(|view| view.is_current()));
    let clone = views[0].clone();
    let part = views[1].slice(5..).unwrap();
    let running = executor.begin(&arena).unwrap();
    for view in views.iter().chain([&clone, &part]) {
        assert!(!view.is_current());
        let stale = Error::Stale { generation: view.generation(), reason: StaleReason::Rewound };
        assert_eq!(view.read().unwrap_err(), stale);
        assert_eq!(view.export().unwrap_err(), stale);
        assert_eq!(view.to_vec().unwrap_err(), stale);
        assert_eq!(view.slice(..).unwrap_err(), stale);
    }
    running.finish().unwrap();
    drop(arena);
    assert!(views.iter().all(|view| view.read().is_err()), "they outlive their arena harmlessly");
}

pub(crate) fn stale_comes_before_everything_else(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let views = call(&executor, &arena, &[10]);
    call(&executor, &arena, &[10]);
    let is_stale = |error| matches!(error, Error::Stale { .. });
    assert!(is_stale(views[0].copy_to(&mut [0; 3]).unwrap_err()), "not a length mismatch");
    assert!(is_stale(views[0].slice(99..).unwrap_err()), "not out of range");
    let running = executor.begin(&arena).unwrap();
    assert!(is_stale(views[0].read().unwrap_err()), "not pending");
    running.finish().unwrap();
}

pub(crate) fn a_second_begin_is_contended_and_changes_nothing(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let running = executor.begin(&arena).unwrap();
    let mut output = running.output::<u8>(4).unwrap();
    output.copy_from_slice(b"mine").unwrap();
    let refused = executor.begin(&arena).unwrap_err();
    assert_eq!(refused, Error::Contended { operation: "begin", holder: Holder::Call });
    let view = output.publish();
    running.finish().unwrap();
    assert_eq!(view.to_vec().unwrap(), *b"mine");
}

pub(crate) fn a_guard_and_an_export_keep_begins_away(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let views = call(&executor, &arena, &[8]);
    let readers = |count| Error::Contended { operation: "begin", holder: Holder::Readers(count) };
    if !subject.is_host_accessible() {
        assert!(matches!(views[0].read(), Err(Error::Device { operation: "read", ordinal: 0 })));
        assert!(matches!(views[0].export(), Err(Error::Device { operation: "export", ordinal: 0 })));
        executor.begin(&arena).unwrap().finish().unwrap();
        return;
    }
    let guard = views[0].read().unwrap();
    let export = views[0].export().unwrap();
    assert_eq!(executor.begin(&arena).unwrap_err(), readers(2));
    drop(guard);
    assert_eq!(executor.begin(&arena).unwrap_err(), readers(1));
    let other = std::thread::spawn(move || drop(export));
    other.join().unwrap();
    executor.begin(&arena).unwrap().finish().unwrap();
}

pub(crate) fn a_device_guard_keeps_begins_away(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let views = call(&executor, &arena, &[8]);
    if subject.backend.vendor() == Vendor::Host {
        assert_eq!(views[0].read_on(&executor).unwrap_err(), Error::HostMemory { operation: "read_on" });
        return;
    }
    let readers = |count| Error::Contended { operation: "begin", holder: Holder::Readers(count) };
    let (own, other) = (views[0].read_on(&executor).unwrap(), views[0].read_on(&subject.executor()).unwrap());
    assert_eq!(own.device_ptr(), other.device_ptr());
    assert_eq!(executor.begin(&arena).unwrap_err(), readers(2));
    drop(own);
    assert_eq!(executor.begin(&arena).unwrap_err(), readers(1));
    std::thread::spawn(move || drop(other)).join().unwrap();
    // The begin has the reader's stream to see to, and is like any other.
    for _ in 0..2 {
        executor.begin(&arena).unwrap().finish().unwrap();
    }
    assert!(matches!(views[0].read_on(&executor), Err(Error::Stale { .. })));
}

pub(crate) fn an_abandoned_call_leaves_stale_views(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let running = executor.begin(&arena).unwrap();
    let view = running.output::<u8>(4).unwrap().publish();
    assert!(matches!(view.to_vec(), Err(Error::Pending { .. })));
    drop(running);
    assert!(matches!(view.read(), Err(Error::Stale { .. })));
    let next = executor.begin(&arena).unwrap();
    assert!(next.generation() > view.generation());
    next.finish().unwrap();
    assert!(matches!(view.read(), Err(Error::Stale { .. })));
}

pub(crate) fn outputs_are_aligned_and_apart(subject: &Subject) {
    let executor = subject.executor();
    for alignment in [1, 64, 256, subject.backend.block_alignment()] {
        let arena = subject.options().alignment(alignment).build(&executor).unwrap();
        let alignment = alignment.max(subject.backend.output_alignment());
        assert_eq!(arena.alignment(), alignment);
        let running = executor.begin(&arena).unwrap();
        let mut outputs: Vec<_> = (1..50).map(|bytes| running.output::<u8>(bytes).unwrap()).collect();
        let mut spans = Vec::new();
        for output in &mut outputs {
            let start = match output.device_ptr() {
                Ok(address) => address.addr(),
                Err(_) => output.as_mut_slice().unwrap().as_ptr().addr(),
            };
            assert_eq!(start % alignment, 0);
            spans.push(start..start + output.len());
        }
        spans.sort_unstable_by_key(|span| span.start);
        assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start));
        drop(outputs);
        running.finish().unwrap();
    }
}

pub(crate) fn a_deferred_call_holds_its_arena(subject: &Subject) {
    let (executor, open) = subject.executor_with_gate();
    let arena = subject.arena(&executor);
    let bytes = b"later";
    let is_host_accessible = subject.is_host_accessible();
    let mut soon = executor
        .defer(&arena, move |call| {
            let output =
                if is_host_accessible { call.output_from_slice(bytes) } else { call.output(bytes.len()) };
            Ok(output?.publish())
        })
        .unwrap();
    assert!(!soon.is_done().unwrap());
    let refused = executor.begin(&arena).unwrap_err();
    assert_eq!(refused, Error::Contended { operation: "begin", holder: Holder::Deferred });
    assert!(soon.wait_timeout(Duration::from_millis(20)).unwrap().is_none());
    drop(open);
    let view = soon.wait().unwrap();
    subject.expect(&view, bytes);
    executor.begin(&arena).unwrap().finish().unwrap();
}

pub(crate) fn a_call_deferred_as_it_is_ends_with_its_event(subject: &Subject) {
    let (executor, open) = subject.executor_with_gate();
    let arena = subject.arena(&executor);
    let running = executor.begin(&arena).unwrap();
    let view = subject.publish(&running, b"queued").unwrap();
    let soon = executor.defer_call(running).unwrap();
    assert!(matches!(view.to_vec(), Err(Error::Pending { .. })));
    assert!(view.is_current());
    assert!(matches!(executor.begin(&arena), Err(Error::Contended { holder: Holder::Deferred, .. })));
    drop(open);
    // Whoever looks first ends it: here the wait, in the next case the reader.
    soon.wait().unwrap();
    subject.expect(&view, b"queued");
    let running = executor.begin(&arena).unwrap();
    let view = subject.publish(&running, b"again").unwrap();
    drop(executor.defer_call(running).unwrap());
    executor.synchronize().unwrap();
    subject.expect(&view, b"again");
}

pub(crate) fn work_that_fails_is_an_error_of_the_wait(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let refused = |_: &mut device_arena::Call| Err::<(), _>(Error::AlreadyTaken);
    assert_eq!(executor.defer(&arena, refused).unwrap().wait().unwrap_err(), Error::AlreadyTaken);
    let panics = |_: &mut device_arena::Call| -> device_arena::Result<()> { panic!("on purpose") };
    let error = executor.defer(&arena, panics).unwrap().wait().unwrap_err();
    assert_eq!(error, Error::Panicked { message: "on purpose".into() });
    executor.begin(&arena).unwrap().finish().unwrap();
}

pub(crate) fn an_arena_serves_its_own_executor_alone(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let other = subject.executor();
    let is_host = subject.backend.vendor() == Vendor::Host;
    let outcome = other.begin(&arena).map(drop);
    if is_host {
        outcome.unwrap();
    } else {
        let vendor = subject.backend.vendor();
        let refused = Error::WrongExecutor {
            operation: "begin",
            arena: vendor,
            arena_ordinal: 0,
            executor: vendor,
            ordinal: 0,
        };
        assert_eq!(outcome.unwrap_err(), refused);
        let host = Executor::host().unwrap();
        assert!(matches!(host.begin(&arena), Err(Error::WrongExecutor { .. })));
        let elsewhere = Arena::host();
        assert!(matches!(executor.begin(&elsewhere), Err(Error::WrongExecutor { .. })));
        let running = executor.begin(&arena).unwrap();
        let refused = other.defer_call(running).unwrap_err();
        assert!(matches!(refused.error, Error::WrongExecutor { .. }));
        refused.value.finish().unwrap();
    }
    // A clone is the same executor; and the arena goes on without any other handle on it.
    let clone = executor.clone();
    drop(executor);
    clone.begin(&arena).unwrap().finish().unwrap();
    drop(clone);
    let view = arena.begin().unwrap().output_from_slice(&[1u8, 2]).unwrap().publish();
    assert!(!view.is_current());
}

pub(crate) fn values_go_between_host_and_arena(subject: &Subject) {
    let (executor, arena) = arena(subject);
    for len in [0usize, 1, 3, 1000, 300_000] {
        let values: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let running = executor.begin(&arena).unwrap();
        let view = running.output_from_slice(&values).unwrap().publish();
        running.finish().unwrap();
        assert!(view.to_vec().unwrap() == values);
        let mut copy = vec![0; len];
        view.copy_to(&mut copy).unwrap();
        assert!(copy == values);
        if len > 2 {
            assert!(view.slice(1..len - 1).unwrap().to_vec().unwrap() == values[1..len - 1]);
        }
        // From this arena to each kind of other one, and back.
        let elsewhere = [Arena::host(), subject.arena(&executor), subject.arena(&subject.executor())];
        for other in &elsewhere {
            let running = other.begin().unwrap();
            let mut output = running.output::<u32>(len).unwrap();
            output.copy_from_view(&view).unwrap();
            let moved = output.publish();
            running.finish().unwrap();
            assert!(moved.to_vec().unwrap() == values);
            let back = subject.arena(&executor);
            let running = back.begin().unwrap();
            let mut output = running.output::<u32>(len).unwrap();
            output.copy_from_view(&moved).unwrap();
            let view = output.publish();
            running.finish().unwrap();
            assert!(view.to_vec().unwrap() == values);
        }
    }
}

pub(crate) fn room_that_nobody_wrote_shows_zeros_or_poison(subject: &Subject) {
    let executor = subject.executor();
    for (scrub, byte) in [(Scrub::Never, 0), (Scrub::Zero, 0), (Scrub::Poison(0xA5), 0xA5)] {
        let arena = subject.options().scrub(scrub).build(&executor).unwrap();
        for round in 0..3u8 {
            let running = executor.begin(&arena).unwrap();
            let mut written = running.output::<u8>(5000).unwrap();
            written.copy_from_slice(&[0xC0 + round; 5000]).unwrap();
            let (written, bare) = (written.publish(), running.output::<u8>(5000).unwrap().publish());
            running.finish().unwrap();
            assert!(written.to_vec().unwrap() == [0xC0 + round; 5000]);
            assert!(bare.to_vec().unwrap() == [byte; 5000], "{scrub:?}");
        }
        let running = executor.begin(&arena).unwrap();
        let view = running.output::<u8>(5000).unwrap().publish();
        running.finish().unwrap();
        let expected = if scrub == Scrub::Never { 0xC2 } else { byte };
        assert!(view.to_vec().unwrap() == [expected; 5000], "{scrub:?}");
    }
}

pub(crate) fn begin_timeout_waits_for_the_holder(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let wait = Duration::from_millis(40);
    let running = executor.begin(&arena).unwrap();
    let start = Instant::now();
    assert!(matches!(executor.begin_timeout(&arena, wait), Err(Error::Contended { .. })));
    assert!(start.elapsed() >= wait);
    let view = running.output::<u8>(1).unwrap().publish();
    let holder = std::thread::spawn(move || {
        std::thread::sleep(wait);
        running.finish().unwrap();
    });
    executor.begin_timeout(&arena, Duration::from_secs(30)).unwrap().finish().unwrap();
    holder.join().unwrap();
    assert!(view.read().is_err());
    let views = call(&executor, &arena, &[1]);
    let reader = subject.executor();
    let on_device = views[0].read_on(&reader);
    let export = views[0].export();
    assert!(on_device.is_ok() || export.is_ok());
    let holder = std::thread::spawn(move || {
        std::thread::sleep(wait);
        drop((export, on_device));
    });
    executor.begin_timeout(&arena, Duration::MAX).unwrap().finish().unwrap();
    holder.join().unwrap();
    let work = move |_: &mut device_arena::Call| {
        std::thread::sleep(wait);
        Ok(())
    };
    let soon = executor.defer(&arena, work).unwrap();
    executor.begin_timeout(&arena, Duration::from_secs(30)).unwrap().finish().unwrap();
    soon.wait().unwrap();
    assert_eq!(arena.stats().refused_begins, 1, "a wait that ends well is no refusal");
}
