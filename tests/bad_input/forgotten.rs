//! Calls, outputs and guards that are forgotten, dropped early or dropped by a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use device_arena::{Arena, Call, Error, Holder, Result, Scrub, View};

fn published(arena: &Arena) -> View<u32> {
    let call = arena.begin().unwrap();
    let view = call.output_from_slice(&[1u32, 2]).unwrap().publish();
    call.finish().unwrap();
    view
}

fn contended_by(arena: &Arena) -> Holder {
    match arena.begin() {
        Err(Error::Contended { holder, .. }) => holder,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_forgotten_call_leaves_its_arena_contended() {
    let arena = Arena::host();
    std::mem::forget(arena.begin().unwrap());
    assert_eq!(contended_by(&arena), Holder::Call);
    assert!(arena.trim().is_err() && arena.reserve(1).is_err());
    let refused = arena.close().unwrap_err();
    assert!(matches!(refused.error, Error::Contended { .. }));
}

#[test]
fn a_forgotten_output_leaves_its_arena_contended_and_its_call_readable() {
    let arena = Arena::host();
    let call = arena.begin().unwrap();
    let view = call.output_from_slice(&[7u8]).unwrap().publish();
    std::mem::forget(call.output::<u8>(9).unwrap());
    call.finish().unwrap();
    assert_eq!(*view.read().unwrap(), [7]);
    assert_eq!(contended_by(&arena), Holder::Output);
}

#[test]
fn guards_forgotten_until_the_count_is_full() {
    let arena = Arena::host();
    let view = published(&arena);
    let limit = loop {
        match view.read() {
            Ok(guard) => std::mem::forget(guard),
            Err(Error::TooManyReaders { limit }) => break limit,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(view.is_current());
    assert!(matches!(view.export(), Err(Error::TooManyReaders { .. })));
    assert_eq!(contended_by(&arena), Holder::Readers(limit));
}

#[test]
fn views_forgotten_and_cloned_keep_nothing_but_their_own_memory() {
    let arena = Arena::host();
    for _ in 0..10_000 {
        std::mem::forget(published(&arena));
    }
    assert_eq!(arena.stats().allocations, 1);
    assert!(arena.close().is_ok());
}

#[test]
fn a_call_dropped_by_a_question_mark_after_publishing() {
    let arena = Arena::host();
    let mut published = None;
    let mut verb = || -> Result<()> {
        let call = arena.begin()?;
        published = Some(call.output_from_slice(&[1u8])?.publish());
        drop(call.output::<u8>(usize::MAX)?);
        call.finish()
    };
    assert!(verb().is_err());
    let view = published.unwrap();
    assert!(matches!(view.read(), Err(Error::Stale { .. })));
    arena.begin().unwrap().finish().unwrap();
}

#[test]
fn a_panic_inside_a_call_abandons_it() {
    let arena = Arena::host();
    let earlier = published(&arena);
    let mut inner = None;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let call = arena.begin().unwrap();
        inner = Some(call.output_from_slice(&[1u8]).unwrap().publish());
        let _open = call.output_from_fn(4, |i| if i == 2 { panic!("the caller's own") } else { i as u8 });
    }));
    assert!(panicked.is_err());
    assert!(matches!(inner.unwrap().read(), Err(Error::Stale { .. })));
    assert!(matches!(earlier.read(), Err(Error::Stale { .. })));
    arena.begin().unwrap().finish().unwrap();
}

#[test]
fn a_panic_inside_a_scratch_scope_frees_its_room() {
    let arena = Arena::host();
    let mut call = arena.begin().unwrap();
    let before = arena.stats().bytes_used;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        call.scratch(|outer| {
            outer.take::<u8>(1000).unwrap();
            outer.scratch(|inner| {
                inner.take::<u8>(1000).unwrap();
                panic!("the caller's own")
            })
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(arena.stats().bytes_used, before);
    call.finish().unwrap();
}

#[test]
fn closures_that_come_back_to_their_own_call() {
    let arena = Arena::host();
    let call = arena.begin().unwrap();
    // Room is taken before the user's code runs, so that what it opens lies elsewhere.
    let mut opened = Vec::new();
    let output = call
        .output_from_fn(100, |i| {
            opened.push(call.output_from_slice(&[0xFFu8; 64]).unwrap());
            i as u8
        })
        .unwrap();
    let mut writer = call.writer::<u8>().unwrap();
    writer
        .extend((0..100u8).inspect(|_| opened.push(call.output_from_slice(&[0xFFu8; 64]).unwrap())))
        .unwrap();
    assert!(output.as_slice().unwrap().iter().copied().eq(0..100));
    assert!(writer.as_slice().iter().copied().eq(0..100));
    assert!(opened.iter().all(|output| output.as_slice().unwrap() == [0xFF; 64]));
    drop(opened);
    let (output, written) = (output.publish(), writer.publish());
    call.finish().unwrap();
    assert_eq!(*output.read().unwrap(), *written.read().unwrap());
}

#[test]
fn a_call_swapped_with_another() {
    let (first, second) = (Arena::host(), Arena::host());
    let (mut a, mut b) = (first.begin().unwrap(), second.begin().unwrap());
    let swap = |one: &mut Call, other: &mut Call| std::mem::swap(one, other);
    let view = a.output_from_slice(&[1u8]).unwrap().publish();
    swap(&mut a, &mut b);
    a.finish().unwrap();
    assert!(matches!(view.read(), Err(Error::Pending { .. })));
    b.finish().unwrap();
    assert_eq!(*view.read().unwrap(), [1]);
}

#[test]
fn scratch_room_stays_apart_from_outputs_across_blocks() {
    let arena = device_arena::ArenaOptions::new()
        .first_capacity(1)
        .growth(device_arena::Growth::Exact)
        .scrub(Scrub::Poison(0x5A))
        .build_host()
        .unwrap();
    for round in 0..3u8 {
        let mut call = arena.begin().unwrap();
        let mut outputs = Vec::new();
        call.scratch(|outer| {
            let kept = outer.take::<u8>(4096).unwrap();
            assert!(kept.iter().all(|&byte| byte == 0x5A));
            kept.fill(round);
            for size in [100, 5000, 4096] {
                outputs.push(outer.call().output_from_fn(size, |_| 0xEEu8).unwrap());
                outer.scratch(|inner| {
                    inner.take::<u8>(6000).unwrap().fill(0xDD);
                    inner.take::<u8>(64).unwrap().fill(0xCC);
                });
                outer.take::<u8>(64).unwrap().fill(0xBB);
            }
            assert!(kept.iter().all(|&byte| byte == round));
        });
        call.scratch(|again| again.take::<u8>(4096).unwrap().fill(0xAA));
        assert!(outputs.iter().all(|output| output.as_slice().unwrap().iter().all(|&byte| byte == 0xEE)));
        drop(outputs);
        call.finish().unwrap();
    }
    let stats = arena.stats();
    assert_eq!(stats.allocations - stats.frees, 1);
}
