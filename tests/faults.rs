//! A failure at every operation of the driver: the error says what failed, nothing is lost, and the arena is as it
//! was. `RUSTFLAGS="--cfg device_arena_faults" cargo test --test faults`
#![cfg(device_arena_faults)]

#[macro_use]
mod vendors;

use std::sync::mpsc;

use device_arena::backend::{AnyBackend, FaultPlan, Faults, Host, Operation, Vendor};
use device_arena::{Arena, ArenaOptions, Error, Executor, Growth, Result, Scrub, View};

fn subject() -> (FaultPlan, Executor) {
    println!("backend: host behind faults");
    let plan = FaultPlan::default();
    let backend = AnyBackend::Faults(Faults::new(AnyBackend::Host(Host), plan.clone()));
    (plan, Executor::on(backend, 0).unwrap())
}

fn options() -> ArenaOptions {
    ArenaOptions::new().first_capacity(1).growth(Growth::Exact)
}

/// A finished call of one output a size, each filled with its position.
fn call(executor: &Executor, arena: &Arena, sizes: &[usize]) -> Result<Vec<View<u8>>> {
    let call = executor.begin(arena)?;
    let views = sizes
        .iter()
        .zip(0..)
        .map(|(&bytes, index)| Ok(call.output_from_slice(&vec![index; bytes])?.publish()))
        .collect::<Result<Vec<_>>>()?;
    call.finish()?;
    Ok(views)
}

fn intact(views: &[View<u8>]) {
    for (view, index) in views.iter().zip(0..) {
        assert!(view.to_vec().unwrap().iter().all(|&byte| byte == index));
    }
}

#[test]
fn a_failed_first_block_leaves_the_call_usable() {
    let (plan, executor) = subject();
    let arena = options().build(&executor).unwrap();
    let call = executor.begin(&arena).unwrap();
    plan.fail(Operation::Allocate, 0, 1);
    let refused = call.output::<u8>(100).unwrap_err();
    assert!(matches!(refused, Error::OutOfMemory { requested: 4096, .. }), "{refused}");
    let before = arena.stats();
    assert_eq!((before.allocations, before.bytes_reserved, before.bytes_used), (0, 0, 0));
    let view = call.output_from_slice(&[1u8; 100]).unwrap().publish();
    call.finish().unwrap();
    assert_eq!(*view.read().unwrap(), [1; 100]);
}

#[test]
fn a_failed_large_block_falls_back_to_what_is_needed() {
    let (plan, executor) = subject();
    let arena = ArenaOptions::new().first_capacity(1 << 20).build(&executor).unwrap();
    plan.fail(Operation::Allocate, 0, 1);
    call(&executor, &arena, &[100]).unwrap();
    assert_eq!(arena.stats().bytes_reserved, 4096);
}

#[test]
fn a_failed_growth_keeps_what_the_call_has() {
    let (plan, executor) = subject();
    let arena = options().build(&executor).unwrap();
    let running = executor.begin(&arena).unwrap();
    let first = running.output_from_slice(&[0u8; 4096]).unwrap();
    let mut writer = running.writer::<u8>().unwrap();
    plan.fail(Operation::Allocate, 0, u64::MAX);
    assert!(running.output::<u8>(1).is_err());
    assert!(writer.push(1).is_err());
    plan.clear();
    writer.extend_from_slice(&[1; 4096]).unwrap();
    plan.fail(Operation::Allocate, 0, u64::MAX);
    assert!(writer.extend_from_slice(&[2; 4096]).is_err());
    assert_eq!(*writer.as_slice(), [1; 4096], "the writer is as it was");
    let views = [first.publish(), writer.publish()];
    running.finish().unwrap();
    intact(&views);
}

#[test]
fn a_failed_replacement_keeps_the_chain_and_goes_on() {
    let (plan, executor) = subject();
    let arena = options().build(&executor).unwrap();
    let sizes = [4096; 5];
    call(&executor, &arena, &sizes).unwrap();
    let chain = arena.stats();
    assert_eq!(chain.allocations, 5);
    plan.fail(Operation::Allocate, 0, u64::MAX);
    for _ in 0..3 {
        intact(&call(&executor, &arena, &sizes).unwrap());
    }
    assert_eq!((arena.stats().allocations, arena.stats().frees), (5, 0));
    assert_eq!(plan.injected(), 1, "it was tried once, and not again by each begin");
    plan.clear();
    // A call that outgrows the chain again has it replaced.
    intact(&call(&executor, &arena, &[4096; 6]).unwrap());
    intact(&call(&executor, &arena, &[4096; 6]).unwrap());
    assert_eq!(plan.live_blocks(), 1);
}

#[test]
fn a_failed_scrub_leaves_the_views_current() {
    let (plan, executor) = subject();
    for scrub in [Scrub::Zero, Scrub::Poison(7)] {
        let arena = options().scrub(scrub).build(&executor).unwrap();
        let views = call(&executor, &arena, &[10, 4096, 9000]).unwrap();
        let before = arena.stats();
        plan.fail(Operation::Rewind, 0, 1);
        let refused = executor.begin(&arena);
        if refused.is_err() {
            assert!(matches!(refused, Err(Error::Driver { code: FaultPlan::CODE, .. })));
            intact(&views);
            assert_eq!(arena.stats().rewinds, before.rewinds);
        }
        drop(refused);
        plan.clear();
        let next = executor.begin(&arena).unwrap();
        let output = next.output::<u8>(9000).unwrap();
        let value = if scrub == Scrub::Zero { 0 } else { 7 };
        assert!(output.as_slice().unwrap().iter().all(|&byte| byte == value));
        drop(output);
        next.finish().unwrap();
        arena.close().unwrap();
        assert_eq!(plan.live_blocks(), 0);
    }
}

#[test]
fn a_failed_poison_of_a_fresh_block_frees_it() {
    let (plan, executor) = subject();
    let arena = options().scrub(Scrub::Poison(7)).build(&executor).unwrap();
    let running = executor.begin(&arena).unwrap();
    plan.fail(Operation::Rewind, 0, 1);
    assert!(matches!(running.output::<u8>(10), Err(Error::Driver { .. })));
    assert_eq!((plan.live_blocks(), arena.stats().bytes_reserved), (0, 0));
    assert_eq!(*running.output::<u8>(2).unwrap().as_slice().unwrap(), [7, 7]);
    running.finish().unwrap();
}

#[test]
fn a_block_that_is_not_taken_back_is_counted_and_tried_again() {
    let (plan, executor) = subject();
    let arena = options().build(&executor).unwrap();
    call(&executor, &arena, &[4096; 3]).unwrap();
    plan.fail(Operation::Free, 0, 1);
    intact(&call(&executor, &arena, &[4096; 3]).unwrap());
    let stats = arena.stats();
    assert_eq!((stats.failed_frees, plan.live_blocks()), (1, 2), "the block and the one that stuck");
    assert_eq!(stats.bytes_reserved, 12288 + 4096);
    plan.fail(Operation::Free, 0, 1);
    assert!(matches!(arena.trim(), Err(Error::Driver { .. })));
    assert_eq!(plan.live_blocks(), 1);
    plan.fail(Operation::Free, 0, 1);
    let refused = arena.close().unwrap_err();
    assert!(matches!(refused.error, Error::Driver { .. }));
    assert_eq!(refused.value.close().unwrap(), 4096, "tried again");
    assert_eq!(plan.live_blocks(), 0);
}

#[test]
fn a_block_that_stuck_was_tried_again_by_trim_alone() {
    let (plan, executor) = subject();
    let arena = options().build(&executor).unwrap();
    call(&executor, &arena, &[4096; 3]).unwrap();
    plan.fail(Operation::Free, 0, 1);
    call(&executor, &arena, &[4096; 3]).unwrap();
    assert_eq!(plan.live_blocks(), 2);
    call(&executor, &arena, &[4096; 3]).unwrap();
    assert_eq!(plan.live_blocks(), 1);
}

#[test]
fn a_warm_block_was_gone_after_a_refused_output_that_needed_its_place() {
    let (plan, executor) = subject();
    let arena = options().byte_limit(64 << 10).build(&executor).unwrap();
    call(&executor, &arena, &[40 << 10]).unwrap();
    let running = executor.begin(&arena).unwrap();
    plan.fail(Operation::Allocate, 0, 1);
    assert!(matches!(running.output::<u8>(50 << 10), Err(Error::OutOfMemory { .. })));
    assert_eq!(arena.stats().bytes_reserved, 40 << 10);
    drop(running.output::<u8>(40 << 10).unwrap());
    running.finish().unwrap();
}

#[test]
fn a_block_that_stuck_in_trim_was_tried_again_one_begin_late() {
    let (plan, executor) = subject();
    let arena = options().build(&executor).unwrap();
    call(&executor, &arena, &[1]).unwrap();
    plan.fail(Operation::Free, 0, 1);
    assert!(arena.trim().is_err());
    call(&executor, &arena, &[]).unwrap();
    assert_eq!((plan.live_blocks(), arena.stats().bytes_reserved), (0, 0));
}

#[test]
#[cfg(feature = "tracing")]
fn a_subscriber_that_was_told_under_the_lock_of_the_deferral_it_asks_for() {
    use std::cell::RefCell;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    thread_local! {
        static SOON: RefCell<Option<device_arena::Deferred<()>>> = const { RefCell::new(None) };
    }
    struct Asks;
    impl Subscriber for Asks {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {
            SOON.with(|soon| soon.borrow().as_ref().map(|soon| soon.is_done().unwrap()));
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let (plan, executor) = subject();
        let arena = Arena::new(&executor);
        let running = executor.begin(&arena).unwrap();
        drop(running.output::<u8>(1).unwrap());
        SOON.with(|soon| *soon.borrow_mut() = Some(executor.defer_call(running).unwrap()));
        plan.fail(Operation::Free, 0, 1);
        tracing::subscriber::with_default(Asks, || drop(arena));
        done.send(plan.injected()).unwrap();
    });
    assert_eq!(is_done.recv_timeout(std::time::Duration::from_secs(30)).expect("it ends"), 1);
}

#[test]
fn a_failed_free_in_drop_is_counted_and_raised_nowhere() {
    let (plan, executor) = subject();
    let arena = options().build(&executor).unwrap();
    let views = call(&executor, &arena, &[1]).unwrap();
    plan.fail(Operation::Free, 0, 1);
    drop(arena);
    assert_eq!((plan.injected(), plan.live_blocks()), (1, 1));
    assert!(matches!(views[0].read(), Err(Error::Stale { .. })));
}

#[test]
fn a_refused_defer_gives_the_work_back_and_changes_nothing() {
    let (plan, executor) = subject();
    let arena = Arena::new(&executor);
    let views = call(&executor, &arena, &[8]).unwrap();
    let before = arena.stats();
    plan.fail(Operation::Start, 0, 1);
    let work = |call: &mut device_arena::Call| Ok(call.output_from_slice(&[9u8])?.publish());
    let refused = executor.defer(&arena, work).unwrap_err();
    assert!(matches!(refused.error, Error::Driver { operation: "start", .. }));
    assert_eq!(arena.stats(), before);
    intact(&views);
    let view = executor.defer(&arena, refused.value).unwrap().wait().unwrap();
    assert_eq!(*view.read().unwrap(), [9]);
}

#[test]
fn work_that_a_started_stream_refuses_runs_at_once() {
    let (plan, executor) = subject();
    let arena = Arena::new(&executor);
    plan.fail(Operation::Enqueue, 0, 1);
    let here = std::thread::current().id();
    let soon = executor.defer(&arena, move |call| {
        assert_eq!(std::thread::current().id(), here);
        Ok(call.output_from_slice(&[9u8])?.publish())
    });
    let soon = soon.unwrap();
    assert!(soon.is_done().unwrap());
    executor.order_after(&soon).unwrap();
    assert_eq!(*soon.wait().unwrap().read().unwrap(), [9]);
}

#[test]
fn a_contended_defer_gives_the_work_back() {
    let (_plan, executor) = subject();
    let arena = Arena::new(&executor);
    let running = executor.begin(&arena).unwrap();
    let (ran, runs) = mpsc::channel();
    let refused = executor.defer(&arena, move |_| ran.send(3).map_err(|_| Error::AlreadyTaken)).unwrap_err();
    assert!(matches!(refused.error, Error::Contended { .. }));
    executor.synchronize().unwrap();
    assert!(runs.try_recv().is_err(), "the work has not run");
    running.finish().unwrap();
    executor.defer(&arena, refused.value).unwrap().wait().unwrap();
    assert_eq!(runs.recv().unwrap(), 3);
}

#[test]
fn a_call_that_cannot_be_deferred_comes_back() {
    let (plan, executor) = subject();
    let arena = Arena::new(&executor);
    let running = executor.begin(&arena).unwrap();
    let view = running.output_from_slice(&[5u8]).unwrap().publish();
    plan.fail(Operation::Record, 0, 1);
    let refused = executor.defer_call(running).unwrap_err();
    assert!(matches!(refused.error, Error::Driver { operation: "record", .. }));
    refused.value.finish().unwrap();
    assert_eq!(*view.read().unwrap(), [5]);
}

#[test]
fn a_failed_query_of_deferred_work_keeps_the_hold() {
    let (plan, executor) = subject();
    for operation in [Operation::HasPassed, Operation::Wait] {
        let arena = Arena::new(&executor);
        let running = executor.begin(&arena).unwrap();
        let view = running.output_from_slice(&[5u8]).unwrap().publish();
        let soon = executor.defer_call(running).unwrap();
        plan.fail(operation, 0, 1);
        let failed = match operation {
            Operation::Wait => soon.wait().unwrap_err(),
            _ => view.read().unwrap_err(),
        };
        assert!(matches!(failed, Error::Driver { code: FaultPlan::CODE, .. }), "{failed}");
        assert_eq!(*view.read().unwrap(), [5], "the next look finds it");
        assert_eq!(plan.injected(), if operation == Operation::Wait { 2 } else { 1 });
    }
}

#[test]
fn an_arena_dropped_while_its_event_cannot_be_waited_for() {
    let (plan, executor) = subject();
    for operation in [Operation::Wait, Operation::HasPassed, Operation::Notify] {
        let (open, opened) = mpsc::channel::<()>();
        let other = Arena::new(&executor);
        let ahead = executor.defer(&other, move |_| Ok(opened.recv().is_ok())).unwrap();
        let arena = Arena::new(&executor);
        let running = executor.begin(&arena).unwrap();
        drop(running.output::<u8>(1).unwrap());
        let soon = executor.defer_call(running).unwrap();
        plan.fail(Operation::Wait, 0, 1);
        plan.fail(operation, 0, 1);
        drop(arena);
        plan.clear();
        drop(open);
        ahead.wait().unwrap();
        drop(soon);
        executor.synchronize().unwrap();
        drop(other);
        assert_eq!(plan.live_blocks(), 0, "{operation:?}");
    }
}

#[test]
fn an_executor_without_a_stream_is_an_error() {
    let plan = FaultPlan::default();
    plan.fail(Operation::Stream, 0, 1);
    plan.fail(Operation::Devices, 0, 1);
    let backend = AnyBackend::Faults(Faults::new(AnyBackend::Host(Host), plan));
    assert!(matches!(Executor::on(backend.clone(), 0), Err(Error::Driver { operation: "stream", .. })));
    let executor = Executor::on(backend, 0).unwrap();
    assert!(matches!(executor.device(), Err(Error::Driver { operation: "devices", .. })));
    assert!(executor.device().is_ok());
}

/// A life of an arena that meets every operation; every step may fail, and then the next goes on.
fn life(plan: &FaultPlan, executor: &Executor, options: ArenaOptions) {
    let arena = options.scrub(Scrub::Zero).build(executor).unwrap();
    for round in 0..4usize {
        if let Ok(views) = call(executor, &arena, &[3000 * round + 1, 5000, 64]) {
            // A copy to the host is an operation too, where the memory is a device's.
            let _ = views[1].to_vec().map(|bytes| assert_eq!(bytes, [1; 5000]));
            let _ = views[0].export().map(|export| assert_eq!(export[0], 0));
            let other = Executor::on(executor_backend(executor, plan), 0);
            let _ = other.and_then(|other| views[2].read_on(&other).map(drop));
        }
        let _ = arena.reserve(20_000 * round);
        let soon = executor.defer(&arena, move |call| Ok(call.output_from_slice(&[1u8; 9000])?.publish()));
        if let Ok(soon) = soon {
            let _ = executor.order_after(&soon);
            if let Ok(view) = soon.wait() {
                let _ = view.to_vec().map(|bytes| assert_eq!(bytes, [1; 9000]));
            }
        }
        if let Ok(running) = executor.begin_timeout(&arena, std::time::Duration::from_secs(10)) {
            let _ = executor.defer_call(running).map(|soon| soon.wait());
        }
        let _ = executor.synchronize();
    }
    let _ = arena.trim();
    plan.clear();
    let views = call(executor, &arena, &[100, 20_000]).unwrap();
    intact(&views);
    let stats = arena.stats();
    assert_eq!(stats.allocations - stats.frees, plan.live_blocks());
    arena.close().unwrap();
    assert_eq!(plan.live_blocks(), 0, "nothing is lost");
}

/// The backend of an executor under test, with the same plan.
fn executor_backend(executor: &Executor, plan: &FaultPlan) -> AnyBackend {
    let backend = match executor.vendor() {
        Vendor::Host => AnyBackend::Host(Host),
        vendor => vendors::load(vendor).unwrap(),
    };
    AnyBackend::Faults(Faults::new(backend, plan.clone()))
}

/// Fails each operation of a backend in turn; answers the operations that a life has not met.
fn fail_each(name: &str, backend: &AnyBackend, options: ArenaOptions) -> Vec<Operation> {
    println!("backend: {name} behind faults");
    let mut unmet = Vec::new();
    for operation in Operation::ALL {
        let mut met = 0;
        for nth in 0..40 {
            let plan = FaultPlan::default();
            let behind = AnyBackend::Faults(Faults::new(backend.clone(), plan.clone()));
            let executor = Executor::on(behind, 0).unwrap();
            plan.fail(operation, nth, 1);
            life(&plan, &executor, options);
            met += plan.injected();
        }
        println!("{operation:?}: {met} failures met");
        if met == 0 {
            unmet.push(operation);
        }
    }
    unmet
}

#[test]
fn the_nth_operation_of_each_kind_fails_and_nothing_is_lost() {
    let unmet = fail_each("host", &AnyBackend::Host(Host), options());
    // A host arena's life neither lists devices, nor classifies, nor opens streams, nor copies, nor is a device's.
    for operation in unmet {
        let met_by_tests_of_their_own = [
            Operation::Devices,
            Operation::Classify,
            Operation::Copy,
            Operation::CopyRows,
            Operation::Prepare,
            Operation::CopyPrepared,
            Operation::Transfer,
            Operation::Notify,
        ];
        assert!(met_by_tests_of_their_own.contains(&operation), "{operation:?} was never met");
    }
}

#[test]
fn rows_and_prepared_lists_of_the_host_fail_and_work_again() {
    rows_and_prepared_lists_fail_and_work_again(AnyBackend::Host(Host));
}

/// Nothing is copied where a copy fails, and the same one works then.
fn rows_and_prepared_lists_fail_and_work_again(backend: AnyBackend) {
    use device_arena::Placement;
    use device_arena::backend::{Backend, CopyRange, CopyRows, RowIndices};

    let plan = FaultPlan::default();
    let behind = AnyBackend::Faults(Faults::new(backend, plan.clone()));
    let stream = Some(behind.create_stream(0).unwrap());
    let block = behind.allocate(0, stream.as_ref(), Placement::HostCoherent, 64).unwrap();
    let at = |offset| block.address().as_ptr().wrapping_add(offset);
    // SAFETY: the host reaches the block, which has as many bytes and no work on it.
    let is_copied = |to: usize| unsafe { *at(to) == 7 };
    // SAFETY: as above.
    unsafe { at(0).write_bytes(7, 8) };
    // SAFETY: as above.
    unsafe { at(8).write_bytes(0, 56) };
    let rows = CopyRows {
        destination: at(16),
        source: at(0),
        destination_stride: 0,
        source_stride: 0,
        bytes: 8,
        count: 1,
        destination_rows: RowIndices::InOrder,
        source_rows: RowIndices::InOrder,
    };
    let range = CopyRange { destination: at(32), source: at(0), bytes: 8 };
    for operation in [Operation::CopyRows, Operation::Prepare, Operation::CopyPrepared] {
        plan.fail(operation, 0, 1);
    }
    // SAFETY: both ends are of the block, which the test has alone.
    let copy_rows = || unsafe { behind.copy_rows(stream.as_ref(), &rows) };
    let prepare = || behind.prepare(stream.as_ref(), &[range]);
    assert!(matches!(copy_rows(), Err(Error::Driver { operation: "copy_rows", .. })));
    assert!(matches!(prepare(), Err(Error::Driver { operation: "prepare", .. })));
    let prepared = prepare().unwrap();
    // SAFETY: as above.
    let copy_prepared = || unsafe { behind.copy_prepared(stream.as_ref(), &prepared) };
    assert!(matches!(copy_prepared(), Err(Error::Driver { operation: "copy_prepared", .. })));
    behind.synchronize(stream.as_ref().unwrap()).unwrap();
    assert!(!is_copied(16) && !is_copied(32));
    copy_rows().unwrap();
    copy_prepared().unwrap();
    behind.synchronize(stream.as_ref().unwrap()).unwrap();
    assert!(is_copied(16) && is_copied(32));
    assert_eq!(plan.injected(), 3);
    drop(prepared);
    // SAFETY: the test has the block alone, and its work has passed.
    unsafe { behind.free(stream.as_ref(), block) }.unwrap();
}

on_each_vendor!(
    the_nth_operation_of_a_device_fails_and_nothing_is_lost,
    rows_and_prepared_lists_fail_and_work_again,
);

#[cfg(any(feature = "cuda", feature = "rocm"))]
fn the_nth_operation_of_a_device_fails_and_nothing_is_lost(backend: AnyBackend) {
    use device_arena::Placement;
    use device_arena::backend::Backend;

    for placement in [Placement::Device, Placement::HostCoherent] {
        let unmet = fail_each(
            &format!("{}, {placement:?}", backend.vendor()),
            &backend,
            options().placement(placement),
        );
        for operation in unmet {
            let met_elsewhere = [
                Operation::Devices,
                Operation::Classify,
                Operation::Copy,
                Operation::CopyRows,
                Operation::Prepare,
                Operation::CopyPrepared,
                Operation::Notify,
                // A device runs deferred work at once.
                Operation::Enqueue,
            ];
            // What host and device share is filled by the host, and copied by it.
            let is_host_work = placement == Placement::HostCoherent
                && matches!(operation, Operation::Transfer | Operation::Rewind);
            assert!(met_elsewhere.contains(&operation) || is_host_work, "{operation:?} was never met");
        }
    }
}
