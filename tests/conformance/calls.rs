//! Promises 3 to 7: calls, views, guards and deferred work.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use device_arena::backend::Backend;
use device_arena::{Arena, ArenaOptions, Error, Executor, Holder, StaleReason};

use crate::Subject;
use crate::arenas::{call, executor};

fn arena(subject: &Subject) -> (Executor, Arena) {
    let executor = executor(subject);
    let arena = Arena::new(&executor);
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
    assert_eq!(*view.read().unwrap(), *b"mine");
}

pub(crate) fn a_guard_and_an_export_keep_begins_away(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let views = call(&executor, &arena, &[8]);
    let guard = views[0].read().unwrap();
    let export = views[0].export().unwrap();
    let readers = |count| Error::Contended { operation: "begin", holder: Holder::Readers(count) };
    assert_eq!(executor.begin(&arena).unwrap_err(), readers(2));
    drop(guard);
    assert_eq!(executor.begin(&arena).unwrap_err(), readers(1));
    let other = std::thread::spawn(move || drop(export));
    other.join().unwrap();
    executor.begin(&arena).unwrap().finish().unwrap();
}

pub(crate) fn an_abandoned_call_leaves_stale_views(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let running = executor.begin(&arena).unwrap();
    let view = running.output::<u8>(4).unwrap().publish();
    assert!(matches!(view.read(), Err(Error::Pending { .. })));
    drop(running);
    assert!(matches!(view.read(), Err(Error::Stale { .. })));
    let next = executor.begin(&arena).unwrap();
    assert!(next.generation() > view.generation());
    next.finish().unwrap();
    assert!(matches!(view.read(), Err(Error::Stale { .. })));
}

pub(crate) fn outputs_are_aligned_and_apart(subject: &Subject) {
    let executor = executor(subject);
    for alignment in [1, 64, 256, 4096] {
        let arena = ArenaOptions::new().alignment(alignment).build(&executor).unwrap();
        let alignment = alignment.max(subject.backend.output_alignment());
        assert_eq!(arena.alignment(), alignment);
        let running = executor.begin(&arena).unwrap();
        let mut outputs: Vec<_> = (1..50).map(|bytes| running.output::<u8>(bytes).unwrap()).collect();
        let mut spans = Vec::new();
        for output in &mut outputs {
            let start = output.as_mut_slice().unwrap().as_ptr().addr();
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
    let (executor, arena) = arena(subject);
    let (open, opened) = mpsc::channel::<()>();
    let mut soon = executor
        .defer(&arena, move |call| {
            let _ = opened.recv();
            Ok(call.output_from_slice(b"later")?.publish())
        })
        .unwrap();
    assert!(!soon.is_done().unwrap());
    let refused = executor.begin(&arena).unwrap_err();
    assert_eq!(refused, Error::Contended { operation: "begin", holder: Holder::Deferred });
    assert!(soon.wait_timeout(Duration::from_millis(20)).unwrap().is_none());
    drop(open);
    let view = soon.wait().unwrap();
    assert_eq!(*view.read().unwrap(), *b"later");
    executor.begin(&arena).unwrap().finish().unwrap();
}

pub(crate) fn a_call_deferred_as_it_is_ends_with_its_event(subject: &Subject) {
    let (executor, arena) = arena(subject);
    let other = Arena::new(&executor);
    let (open, opened) = mpsc::channel::<()>();
    let ahead = executor
        .defer(&other, move |_| {
            let _ = opened.recv();
            Ok(())
        })
        .unwrap();
    let running = executor.begin(&arena).unwrap();
    let view = running.output_from_slice(b"queued").unwrap().publish();
    let soon = executor.defer_call(running).unwrap();
    assert!(matches!(view.read(), Err(Error::Pending { .. })));
    assert!(view.is_current());
    assert!(matches!(executor.begin(&arena), Err(Error::Contended { holder: Holder::Deferred, .. })));
    drop(open);
    ahead.wait().unwrap();
    // Whoever looks first ends it: here the wait, in the next case the reader.
    soon.wait().unwrap();
    assert_eq!(*view.read().unwrap(), *b"queued");
    let running = executor.begin(&arena).unwrap();
    let view = running.output_from_slice(b"again").unwrap().publish();
    drop(executor.defer_call(running).unwrap());
    executor.synchronize().unwrap();
    assert_eq!(*view.read().unwrap(), *b"again");
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
    let export = views[0].export().unwrap();
    let holder = std::thread::spawn(move || {
        std::thread::sleep(wait);
        drop(export);
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
