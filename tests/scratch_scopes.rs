//! Scratch scopes that are begun and ended by themselves, and copies of a running call's results.

use device_arena::{Arena, Error, Refused, Status};

fn used(arena: &Arena) -> u64 {
    arena.stats().bytes_used
}

#[test]
fn room_is_free_again_when_its_scope_ends() {
    let arena = Arena::host();
    let mut call = arena.begin().unwrap();
    let kept = call.output_from_slice(&[1u64, 2, 3]).unwrap().publish();
    let before = used(&arena);
    let mut addresses = Vec::new();
    for round in 0..3u8 {
        let scope = call.begin_scratch().unwrap();
        let room = call.scratch_of(&scope).unwrap().take::<u8>(4096).unwrap();
        room.fill(round);
        addresses.push(room.as_ptr());
        assert_eq!(used(&arena), before + 4096);
        call.end_scratch(scope).unwrap();
        assert_eq!(used(&arena), before);
    }
    assert_eq!(addresses[0], addresses[1]);
    assert_eq!(addresses[1], addresses[2]);
    call.finish().unwrap();
    assert_eq!(*kept.read().unwrap(), [1, 2, 3]);
}

#[test]
fn a_scope_that_is_not_the_innermost_neither_takes_nor_ends() {
    let arena = Arena::host();
    let mut call = arena.begin().unwrap();
    let outer = call.begin_scratch().unwrap();
    let inner = call.begin_scratch().unwrap();
    call.scratch_of(&inner).unwrap().take::<u8>(100).unwrap();
    let taken = used(&arena);
    assert_eq!(call.scratch_of(&outer).unwrap_err().status(), Status::InvalidArgument);
    let Err(Refused { error, value: outer }) = call.end_scratch(outer) else { panic!("it ended") };
    assert!(matches!(error, Error::ScratchOrder { operation: "end_scratch" }));
    assert_eq!(used(&arena), taken);
    call.end_scratch(inner).unwrap();
    call.scratch_of(&outer).unwrap().take::<u8>(100).unwrap();
    call.end_scratch(outer).unwrap();
    assert_eq!(used(&arena), 0);
    call.finish().unwrap();
}

/// The mark of another call's scope would lead anywhere: the same arena, generation and depth must not be enough.
#[test]
fn a_scope_of_another_call_is_refused() {
    let old = {
        let arena = Arena::host();
        let mut call = arena.begin().unwrap();
        let scope = call.begin_scratch().unwrap();
        call.scratch_of(&scope).unwrap().take::<u8>(1 << 20).unwrap();
        call.finish().unwrap();
        scope
    };
    let arena = Arena::host();
    let mut call = arena.begin().unwrap();
    let own = call.begin_scratch().unwrap();
    assert!(call.scratch_of(&old).is_err());
    let refused = call.end_scratch(old).unwrap_err();
    assert!(matches!(refused.error, Error::ScratchOrder { .. }));
    call.scratch_of(&own).unwrap().take::<u8>(8).unwrap().fill(1);
    call.end_scratch(own).unwrap();
    let earlier = call.begin_scratch().unwrap();
    call.finish().unwrap();
    let mut call = arena.begin().unwrap();
    let own = call.begin_scratch().unwrap();
    assert!(call.scratch_of(&earlier).is_err(), "of the call before, of the same arena");
    assert!(call.end_scratch(earlier).is_err());
    drop(arena);
    call.end_scratch(own).unwrap();
    call.finish().unwrap();
}

/// One that is dropped is in the way of those outside of it, and of nothing else.
#[test]
fn a_scope_that_is_dropped_stays_the_innermost() {
    let arena = Arena::host();
    let mut call = arena.begin().unwrap();
    let outer = call.begin_scratch().unwrap();
    drop(call.begin_scratch().unwrap());
    assert!(call.scratch_of(&outer).is_err());
    let inner = call.begin_scratch().unwrap();
    call.scratch_of(&inner).unwrap().take::<u8>(8).unwrap();
    call.end_scratch(inner).unwrap();
    assert!(call.end_scratch(outer).is_err());
    call.finish().unwrap();
}

#[test]
fn a_scope_that_outlives_its_call_and_arena_frees_nothing() {
    let arena = Arena::host();
    let mut call = arena.begin().unwrap();
    let scope = call.begin_scratch().unwrap();
    drop(call);
    drop(arena);
    std::thread::spawn(move || drop(scope)).join().unwrap();
}

#[test]
fn closures_nest_in_scopes_and_leave_them_as_they_were() {
    let arena = Arena::host();
    let mut call = arena.begin().unwrap();
    let scope = call.begin_scratch().unwrap();
    let outer = call.scratch_of(&scope).unwrap().take::<u32>(16).unwrap();
    outer.fill(9);
    let (address, before) = (outer.as_ptr(), used(&arena));
    let sum = call.scratch(|inner| {
        let room = inner.take::<u32>(16).unwrap();
        assert_ne!(room.as_ptr(), address);
        room.fill(2);
        room.iter().sum::<u32>()
    });
    assert_eq!((sum, used(&arena)), (32, before));
    call.end_scratch(scope).unwrap();
    call.finish().unwrap();
}

#[test]
fn a_scope_that_is_left_open_ends_with_its_call() {
    let arena = Arena::host();
    for _ in 0..3 {
        let mut call = arena.begin().unwrap();
        let scope = call.begin_scratch().unwrap();
        call.scratch_of(&scope).unwrap().take::<u8>(10_000).unwrap();
        drop(scope);
        call.finish().unwrap();
    }
    let call = arena.begin().unwrap();
    assert_eq!(used(&arena), 0);
    assert_eq!(arena.stats().allocations, 1);
    call.finish().unwrap();
}

#[test]
fn a_running_call_collects_what_others_can_not_read_yet() {
    let (arena, other) = (Arena::host(), Arena::host());
    let call = arena.begin().unwrap();
    let view = call.output_from_slice(&[5u16, 6, 7]).unwrap().publish();
    assert_eq!(view.to_vec().unwrap_err().status(), Status::Pending);
    let mut values = [0u16; 3];
    call.collect(&view, &mut values).unwrap();
    assert_eq!(values, [5, 6, 7]);
    let wrong = call.collect(&view, &mut [0u16; 2]).unwrap_err();
    assert!(matches!(wrong, Error::LengthMismatch { expected: 3, actual: 2, .. }));
    let another = other.begin().unwrap();
    assert!(matches!(another.collect(&view, &mut values), Err(Error::Stale { .. })));
    another.finish().unwrap();
    call.finish().unwrap();
    let call = arena.begin().unwrap();
    assert!(matches!(call.collect(&view, &mut values), Err(Error::Stale { .. })));
    call.finish().unwrap();
}
