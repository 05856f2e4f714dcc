//! What must not be mixed, and what works side by side.

use device_arena::backend::Vendor;
use device_arena::{Arena, ArenaOptions, Error, Placement};

use crate::drivers::{Side, both};

fn filled(side: &Side, bytes: &[u8]) -> (device_arena::Executor, Arena, device_arena::View<u8>) {
    let executor = side.executor();
    let arena = Arena::new(&executor);
    let call = executor.begin(&arena).unwrap();
    let view = call.output_from_slice(bytes).unwrap().publish();
    call.finish().unwrap();
    (executor, arena, view)
}

#[test]
fn an_arena_of_one_vendor_serves_no_executor_of_the_other() {
    let Some(both) = both() else { return };
    for (owner, other) in [(&both.cuda, &both.rocm), (&both.rocm, &both.cuda)] {
        for placement in [Placement::Device, Placement::HostCoherent] {
            let arena = ArenaOptions::new().placement(placement).build(&owner.executor()).unwrap();
            let refused = other.executor().begin(&arena).map(drop);
            let Err(Error::WrongExecutor { arena, executor, .. }) = refused else { panic!("{refused:?}") };
            assert_eq!((arena, executor), (owner.vendor(), other.vendor()));
        }
    }
}

#[test]
fn a_view_is_not_read_on_the_other_vendors_stream() {
    let Some(both) = both() else { return };
    let is_refused = |error: &Error| matches!(error, Error::WrongVendor { .. });
    for (owner, other) in [(&both.cuda, &both.rocm), (&both.rocm, &both.cuda)] {
        let (_executor, _arena, view) = filled(owner, b"bytes of one vendor");
        assert!(view.read_on(&other.executor()).is_err_and(|error| is_refused(&error)));
        let executor = other.executor();
        let arena = Arena::new(&executor);
        let call = executor.begin(&arena).unwrap();
        let mut output = call.output::<u8>(view.len()).unwrap();
        assert!(output.copy_from_view(&view).is_err_and(|error| is_refused(&error)));
        // By the host it goes.
        output.copy_from_slice(&view.to_vec().unwrap()).unwrap();
        assert_eq!(output.publish().len(), view.len());
        call.finish().unwrap();
    }
}

#[test]
fn neither_reaches_the_others_devices() {
    let Some(both) = both() else { return };
    let (cuda, rocm) = (both.cuda.executor(), both.rocm.executor());
    for (from, to) in [(&cuda, &rocm), (&rocm, &cuda)] {
        assert!(matches!(from.reach(to), Err(Error::Unreachable { .. })));
        assert_ne!(from, to);
    }
}

#[test]
fn an_event_of_one_vendor_is_nothing_to_the_other() {
    let Some(both) = both() else { return };
    for (owner, other) in [(&both.cuda, &both.rocm), (&both.rocm, &both.cuda)] {
        let (executor, arena, _view) = filled(owner, b"any");
        let soon = executor.defer(&arena, |call| Ok(call.output::<u8>(9)?.publish())).unwrap();
        let refused = other.executor().order_after(&soon);
        assert!(matches!(refused, Err(Error::WrongVendor { .. })), "{refused:?}");
        assert_eq!(soon.wait().unwrap().len(), 9);
    }
}

#[test]
fn both_work_at_once() {
    let Some(both) = both() else { return };
    std::thread::scope(|scope| {
        for (side, seed) in [(&both.cuda, 3u8), (&both.rocm, 5)] {
            scope.spawn(move || {
                let executor = side.executor();
                let arena = Arena::new(&executor);
                for round in 0..50usize {
                    let bytes: Vec<u8> = (0..round * 100).map(|i| seed.wrapping_mul(i as u8)).collect();
                    let call = executor.begin(&arena).unwrap();
                    let view = call.output_from_slice(&bytes).unwrap().publish();
                    call.finish().unwrap();
                    assert_eq!(view.to_vec().unwrap(), bytes, "{:?}", side.vendor());
                }
                assert!(arena.stats().allocations < 50);
            });
        }
    });
    assert_ne!(both.cuda.vendor(), Vendor::Rocm);
}
