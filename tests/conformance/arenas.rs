//! Promises 1 and 2, and what an arena reports.

use device_arena::backend::Backend;
use device_arena::{Arena, Call, DeviceGuard, Error, Executor, Export, Growth, View};

use crate::Subject;

/// Runs a call of outputs of these many bytes; answers their views.
pub(crate) fn call(executor: &Executor, arena: &Arena, sizes: &[usize]) -> Vec<View<u8>> {
    let call = executor.begin(arena).unwrap();
    let views = sizes.iter().map(|&bytes| output(&call, bytes)).collect();
    call.finish().unwrap();
    views
}

fn output(call: &Call, bytes: usize) -> View<u8> {
    call.output::<u8>(bytes).unwrap().publish()
}

pub(crate) fn making_an_arena_allocates_nothing(subject: &Subject) {
    let executor = subject.executor();
    let arena = subject.arena(&executor);
    call(&executor, &arena, &[]);
    call(&executor, &arena, &[0, 0]);
    assert_eq!(arena.stats().allocations, 0);
    call(&executor, &arena, &[1]);
    assert_eq!(arena.stats().allocations, 1);
}

pub(crate) fn a_steady_loop_allocates_once(subject: &Subject) {
    let executor = subject.executor();
    let arena = subject.arena(&executor);
    for round in 0..1000usize {
        call(&executor, &arena, &[1000, round, 17]);
    }
    let stats = arena.stats();
    assert_eq!((stats.allocations, stats.frees, stats.rewinds), (1, 0, 1000));
}

pub(crate) fn a_chain_is_replaced_by_one_block(subject: &Subject) {
    let executor = subject.executor();
    for growth in [Growth::Exact, Growth::default()] {
        let options = subject.options().first_capacity(1).growth(growth);
        let arena = options.build(&executor).unwrap();
        let sizes = [5000, 3000, 9000, 1];
        call(&executor, &arena, &sizes);
        assert!(arena.stats().allocations > 1, "{growth:?}: the call outgrew its block");
        let need: usize = sizes.iter().map(|bytes| bytes.next_multiple_of(arena.alignment())).sum();
        assert_eq!(arena.stats().bytes_high_water, need as u64);
        call(&executor, &arena, &sizes);
        let after = arena.stats();
        assert_eq!(after.allocations - after.frees, 1, "{growth:?}: one block is left");
        assert!(after.bytes_reserved >= need as u64);
        if growth == Growth::Exact {
            let block = subject.backend.block_alignment();
            assert_eq!(after.bytes_reserved, need.next_multiple_of(block) as u64);
        }
        for other in [&sizes[..], &[1, 9000, 3000, 5000], &[need], &[]] {
            call(&executor, &arena, other);
        }
        let steady = arena.stats();
        assert_eq!((steady.allocations, steady.frees), (after.allocations, after.frees), "{growth:?}");
    }
}

pub(crate) fn no_address_moves_when_a_call_outgrows_its_block(subject: &Subject) {
    let executor = subject.executor();
    let arena = subject.options().first_capacity(1).build(&executor).unwrap();
    let running = executor.begin(&arena).unwrap();
    let mut outputs = Vec::new();
    for index in 0..20u8 {
        let mut output = running.output::<u8>(1000 * usize::from(index) + 1).unwrap();
        output.copy_from_slice(&vec![index; output.len()]).unwrap();
        outputs.push(output);
    }
    let views: Vec<_> = outputs.into_iter().map(device_arena::Output::publish).collect();
    running.finish().unwrap();
    for (view, index) in views.iter().zip(0..) {
        assert!(view.to_vec().unwrap().iter().all(|&byte| byte == index));
    }
}

pub(crate) fn reserve_makes_the_first_call_steady(subject: &Subject) {
    let executor = subject.executor();
    let arena = subject.arena(&executor);
    arena.reserve(1 << 20).unwrap();
    let reserved = arena.stats();
    assert_eq!(reserved.allocations, 1);
    let views = call(&executor, &arena, &[1 << 19, 1 << 19]);
    // Views of the last call stay current.
    arena.reserve(3 << 20).unwrap();
    assert!(views.iter().all(View::is_current));
    assert_eq!(arena.stats().allocations, 2);
    call(&executor, &arena, &[3 << 20]);
    let after = arena.stats();
    assert_eq!((after.allocations, after.frees), (2, 1), "the large block stays, the small one goes");
    arena.reserve(0).unwrap();
    arena.reserve(3 << 20).unwrap();
    assert_eq!(arena.stats().allocations, 2);
}

pub(crate) fn trim_gives_everything_back(subject: &Subject) {
    let executor = subject.executor();
    let arena = subject.arena(&executor);
    assert_eq!(arena.trim().unwrap(), 0);
    let views = call(&executor, &arena, &[100_000]);
    let reserved = arena.stats().bytes_reserved;
    assert_eq!(arena.trim().unwrap() as u64, reserved);
    assert!(matches!(views[0].read(), Err(Error::Stale { .. })));
    let stats = arena.stats();
    assert_eq!((stats.bytes_reserved, stats.bytes_used, stats.bytes_high_water), (0, 0, 0));
    assert_eq!(stats.allocations, stats.frees);
    call(&executor, &arena, &[1]);
    assert!(arena.stats().bytes_reserved < reserved, "the high-water mark is forgotten");
}

pub(crate) fn close_reports_what_it_freed(subject: &Subject) {
    let executor = subject.executor();
    let arena = subject.arena(&executor);
    let views = call(&executor, &arena, &[10]);
    let guard = views[0].read_on(&executor).map(Held::Device).or_else(|_| views[0].export().map(Held::Host));
    let guard = guard.unwrap();
    let refused = arena.close().unwrap_err();
    assert!(matches!(refused.error, Error::Contended { .. }));
    drop(guard);
    let reserved = refused.value.stats().bytes_reserved;
    assert_eq!(refused.value.close().unwrap() as u64, reserved);
    assert!(matches!(views[0].read(), Err(Error::Stale { .. })));
}

/// Whichever guard the memory has.
#[expect(dead_code, reason = "held for its drop")]
enum Held {
    Host(Export<u8>),
    Device(DeviceGuard<u8>),
}

pub(crate) fn the_limit_holds_at_every_instant(subject: &Subject) {
    let executor = subject.executor();
    let limit = 64 << 10;
    let options = subject.options().first_capacity(4096).byte_limit(limit).growth(Growth::Exact);
    let arena = options.build(&executor).unwrap();
    let running = executor.begin(&arena).unwrap();
    let mut views = Vec::new();
    let refused = loop {
        match running.output::<u8>(4096) {
            Ok(output) => views.push(output.publish()),
            Err(error) => break error,
        }
        assert!(arena.stats().bytes_reserved <= limit as u64);
    };
    assert_eq!(refused, Error::OverLimit { requested: 4096, reserved: limit, limit });
    assert_eq!(views.len(), 16);
    running.finish().unwrap();
    assert!(views.iter().all(|view| view.to_vec().is_ok()), "the refusal took nothing away");
    // The replacement would pass the limit, so the chain stays, and serves the same call again.
    let before = arena.stats();
    call(&executor, &arena, &[4096; 16]);
    assert_eq!((arena.stats().allocations, arena.stats().frees), (before.allocations, before.frees));
    let block = subject.backend.block_alignment();
    let small = subject.options().byte_limit(block - 1).build(&executor).unwrap();
    let running = executor.begin(&small).unwrap();
    assert!(matches!(running.output::<u8>(1), Err(Error::OverLimit { .. })));
    running.finish().unwrap();
    assert_eq!(small.stats().allocations, 0);
}

pub(crate) fn stats_count_what_happened(subject: &Subject) {
    let executor = subject.executor();
    let arena = subject.options().alignment(256).build(&executor).unwrap();
    let views = call(&executor, &arena, &[1, 256, 257]);
    let running = executor.begin(&arena).unwrap();
    assert!(executor.begin(&arena).is_err() && arena.trim().is_err() && arena.reserve(9).is_err());
    assert!(views[0].read().is_err() && views[1].to_vec().is_err());
    let output = running.output::<u8>(300).unwrap();
    let stats = arena.stats();
    assert_eq!(stats.bytes_used, 512);
    assert_eq!(stats.bytes_high_water, 256 + 256 + 512);
    assert_eq!(stats.rewinds, 2);
    assert_eq!((stats.refused_begins, stats.refused_stale_reads), (3, 2));
    drop(output);
    running.finish().unwrap();
}
