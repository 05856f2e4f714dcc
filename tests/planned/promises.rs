//! What is promised of runs, and of the views that they leave.

use device_arena::plan::{MemoryPlan, Slot};
use device_arena::{ArenaOptions, Error, Executor, Placement, PlannedArena, Rows, Status};

use crate::subjects::{Subject, subjects};

pub(crate) fn plan() -> MemoryPlan {
    let slots = [Slot::new(1, 0, 1000), Slot::new(2, 1024, 4096), Slot::new(7, 5120, 3).named("tail")];
    MemoryPlan::builder().alignment(256).slots(slots).total(8192).build().unwrap()
}

pub(crate) fn each(test: impl Fn(&Subject, PlannedArena)) {
    for subject in subjects() {
        println!("backend: {}", subject.name);
        let arena = subject.arena(&plan()).unwrap();
        test(&subject, arena);
    }
}

#[test]
fn making_one_allocates_nothing_and_the_first_run_does_once() {
    each(|_, arena| {
        assert_eq!(arena.stats().allocations, 0);
        for _ in 0..5 {
            arena.begin().unwrap().finish().unwrap();
        }
        assert_eq!(arena.stats().allocations, 1);
    });
}

#[test]
fn padding_is_zero_in_the_first_run() {
    each(|_, arena| {
        let run = arena.begin().unwrap();
        let mut bytes = vec![1u8; 8192];
        assert_eq!(run.read_at(0, &mut bytes).unwrap(), 8192);
        assert!(bytes.iter().all(|&byte| byte == 0));
    });
}

#[test]
fn bytes_survive_runs_and_abandoned_ones() {
    each(|_, arena| {
        assert_eq!(arena.write(2, &[1u32, 2, 3]).unwrap(), 3);
        drop(arena.begin().unwrap());
        let run = arena.begin().unwrap();
        let mut values = [0u32; 4];
        assert_eq!(run.read(2, &mut values).unwrap(), 4);
        assert_eq!(values, [1, 2, 3, 0]);
    });
}

#[test]
fn a_second_run_is_contended_and_changes_nothing() {
    each(|_, arena| {
        let mut run = arena.begin().unwrap();
        run.write(1, b"held").unwrap();
        let error = arena.begin().unwrap_err();
        assert_eq!(error.status(), Status::Contended);
        assert!(matches!(arena.write(1, b"no"), Err(Error::Contended { .. })));
        let view = run.finish().unwrap();
        assert_eq!(&view.slot::<u8>(1).unwrap().to_vec().unwrap()[..4], b"held");
    });
}

#[test]
fn readers_hold_runs_off() {
    each(|subject, arena| {
        arena.write(1, b"read").unwrap();
        let view = arena.last().unwrap().slot::<u8>(1).unwrap();
        if subject.placement != Placement::Device {
            // What the device did with coherent memory has to have passed.
            subject.executor.synchronize().unwrap();
            let guard = view.read().unwrap();
            assert!(matches!(arena.begin(), Err(Error::Contended { .. })));
            assert_eq!(&guard[..4], b"read");
        }
        if !subject.is_host() {
            let guard = view.read_on(&subject.executor).unwrap();
            assert!(matches!(arena.begin(), Err(Error::Contended { .. })));
            drop(guard);
        }
        drop(arena.begin().unwrap());
    });
}

#[test]
fn an_unknown_node_is_named_and_makes_no_view_stale() {
    each(|_, arena| {
        arena.write(1, b"x").unwrap();
        let view = arena.last().unwrap();
        let error = arena.write(3, b"y").unwrap_err();
        assert!(matches!(error, Error::UnknownNode { node: 3, .. }), "{error}");
        assert!(view.is_current());
        assert!(matches!(view.slot::<u8>(3), Err(Error::UnknownNode { node: 3, .. })));
        assert!(matches!(arena.byte_offset(3), Err(Error::UnknownNode { node: 3, .. })));
        assert!(!arena.has(3) && arena.has(7));
    });
}

#[test]
fn offsets_are_in_bytes_and_in_whole_elements() {
    let slots = [Slot::new(1, 6, 10), Slot::new(2, 1 << 40, 64)];
    let plan = MemoryPlan::builder().slots(slots).build().unwrap();
    assert_eq!(plan.byte_offset(1).unwrap(), 6);
    assert_eq!(plan.elem_offset::<u16>(1).unwrap(), 3);
    assert_eq!(plan.slot_elems::<u32>(1).unwrap(), 2);
    let error = plan.elem_offset::<u32>(1).unwrap_err();
    assert!(matches!(error, Error::ElementOffset { node: 1, offset: 6, element: 4 }), "{error}");
    // Past what 32 bits count.
    assert!(matches!(plan.elem_offset::<u8>(2), Err(Error::ElementOffset { node: 2, .. })));
    assert!(matches!(plan.elem_offset::<u64>(2), Err(Error::ElementOffset { node: 2, .. })));
    assert_eq!(plan.elem_offset_64::<u64>(2).unwrap(), 1 << 37);
    // Of a type without a size there are none.
    assert_eq!(plan.slot_elems::<[u8; 0]>(1).unwrap(), 0);
    assert!(plan.elem_offset::<[u8; 0]>(1).is_err());
}

#[test]
fn amounts_are_clamped_and_returned_and_a_start_beyond_is_an_error() {
    each(|_, arena| {
        let mut run = arena.begin().unwrap();
        assert_eq!(run.write(7, b"abcdef").unwrap(), 3);
        assert_eq!(run.write_from(7, 3, b"x").unwrap(), 0);
        let error = run.write_from(7, 4, b"x").unwrap_err();
        assert!(
            matches!(error, Error::OutOfSlot { node: 7, offset: 5120, size: 3, start: 4, .. }),
            "{error}"
        );
        assert_eq!(run.copy_prefix::<u8>(1, 7, usize::MAX).unwrap(), 3);
        assert_eq!(run.copy_range::<u16>(1, 400, 2, 2000, 500).unwrap(), 48);
        assert!(matches!(run.copy_range::<u8>(1, 1001, 2, 0, 1), Err(Error::OutOfSlot { node: 1, .. })));
        let mut tail = [9u8; 5];
        assert_eq!(run.read(7, &mut tail).unwrap(), 3);
        assert_eq!(&tail, b"abc\x09\x09");
        assert!(matches!(run.read_at::<u8>(8193, &mut tail), Err(Error::OutOfArena { .. })));
        assert_eq!(run.read_at::<u8>(8190, &mut tail).unwrap(), 2);
    });
}

#[test]
fn a_twin_of_another_plan_is_refused() {
    each(|subject, arena| {
        let other = MemoryPlan::builder().alignment(256).slot(Slot::new(1, 0, 1000)).total(8192).build();
        let other = subject.arena(&other.unwrap()).unwrap();
        let (mut run, mut twin) = (arena.begin().unwrap(), other.begin().unwrap());
        assert!(matches!(run.copy_into(&mut twin), Err(Error::AnotherPlan { .. })));
    });
}

/// From the host to each device and back, and between placements.
#[test]
fn a_twin_may_be_anywhere() {
    let all = subjects();
    for one in &all {
        for other in &all {
            let (from, to) = (one.arena(&plan()).unwrap(), other.arena(&plan()).unwrap());
            from.write(2, &[5u64, 6, 7]).unwrap();
            let (mut run, mut twin) = (from.begin().unwrap(), to.begin().unwrap());
            assert_eq!(run.copy_into(&mut twin).unwrap(), 8192);
            // What this one gets next comes behind the copy.
            run.clear(2).unwrap();
            let mut values = [0u64; 3];
            twin.read(2, &mut values).unwrap();
            assert_eq!(values, [5, 6, 7], "{} to {}", one.name, other.name);
        }
    }
}

#[test]
fn nothing_is_lost_where_the_block_can_not_be_made() {
    each(|subject, _| {
        let plan = MemoryPlan::builder().slot(Slot::new(1, 0, 1 << 50)).build().unwrap();
        let arena = subject.arena(&plan).unwrap();
        let error = arena.begin().unwrap_err();
        assert_eq!(error.status(), Status::OutOfMemory, "{error}");
        assert!(arena.holder().is_none());
        assert!(arena.begin().is_err());
    });
}

#[test]
fn a_plan_of_nothing_is_a_plan() {
    for subject in subjects() {
        let plan = MemoryPlan::builder().slot(Slot::new(1, 0, 0)).build().unwrap();
        let arena = subject.arena(&plan).unwrap();
        let mut run = arena.begin().unwrap();
        assert_eq!(run.write(1, b"x").unwrap(), 0);
        assert_eq!(run.copy_prefix::<u8>(1, 1, 9).unwrap(), 0);
        assert!(run.finish().unwrap().slot::<u8>(1).unwrap().is_empty());
    }
}

#[test]
fn a_run_can_be_left_to_what_is_queued() {
    each(|subject, arena| {
        let mut run = arena.begin().unwrap();
        run.write(1, b"soon").unwrap();
        if subject.is_host() {
            return;
        }
        let (view, deferred) = run.defer(&subject.executor).unwrap();
        deferred.wait().unwrap();
        assert_eq!(&view.slot::<u8>(1).unwrap().to_vec().unwrap()[..4], b"soon");
        drop(arena.begin().unwrap());
    });
}

#[test]
fn a_run_that_is_not_deferred_comes_back() {
    each(|subject, arena| {
        let other = Executor::host().unwrap();
        let mut run = arena.begin().unwrap();
        run.write(1, b"mine").unwrap();
        let (view, deferred) = match run.defer(&other) {
            Ok(both) => both,
            Err(refused) => {
                assert!(matches!(refused.error, Error::WrongExecutor { .. }), "{}", refused.error);
                refused.value.defer(&subject.executor).unwrap()
            }
        };
        deferred.wait().unwrap();
        assert_eq!(&view.slot::<u8>(1).unwrap().to_vec().unwrap()[..4], b"mine");
    });
}

#[test]
fn copies_that_clash_are_refused_before_any_moves() {
    each(|_, arena| {
        let mut run = arena.begin().unwrap();
        run.write(2, &[7u8; 4096]).unwrap();
        let mut copies = run.copies();
        copies.copy::<u8>((1, 0), (2, 0), 100).unwrap();
        copies.copy::<u8>((1, 99), (2, 500), 100).unwrap();
        let error = copies.launch().unwrap_err();
        assert!(matches!(error, Error::ClashingCopies { first: 0, second: 1, .. }), "{error}");
        let mut values = [9u8; 300];
        run.read(1, &mut values).unwrap();
        assert_eq!(values, [0; 300]);
    });
}

#[test]
fn views_and_outputs_are_ends_of_a_batch() {
    each(|subject, planned| {
        let other = ArenaOptions::new().placement(subject.placement).build(&subject.executor).unwrap();
        let call = subject.executor.begin(&other).unwrap();
        let view = call.output_from_slice(&[1u32, 2, 3, 4]).unwrap().publish();
        call.finish().unwrap();
        let mut run = planned.begin().unwrap();
        let mut copies = run.copies();
        assert_eq!(copies.copy_from_view((1, 2), &view).unwrap(), 4);
        copies.launch().unwrap();
        let mut values = [0u32; 7];
        run.read(1, &mut values).unwrap();
        assert_eq!(values, [0, 0, 1, 2, 3, 4, 0]);

        // The view's arena goes on behind what was queued.
        let call = subject.executor.begin(&other).unwrap();
        let mut output = call.output::<u32>(3).unwrap();
        let mut copies = run.copies();
        assert_eq!(copies.copy_to_output(&mut output, (1, 3)).unwrap(), 3);
        copies.launch().unwrap();
        let copied = output.publish();
        call.finish().unwrap();
        subject.executor.synchronize().unwrap();
        assert_eq!(copied.to_vec().unwrap(), [2, 3, 4]);
    });
}

#[test]
fn an_output_of_another_executor_is_refused() {
    each(|subject, planned| {
        if subject.is_host() {
            return;
        }
        let other = Executor::on(backend_of(subject), 0).unwrap();
        let arena = device_arena::Arena::new(&other);
        let call = other.begin(&arena).unwrap();
        let mut output = call.output::<u32>(3).unwrap();
        let mut run = planned.begin().unwrap();
        let mut copies = run.copies();
        assert!(matches!(copies.copy_from_output((1, 0), &mut output), Err(Error::WrongExecutor { .. })));
    });
}

fn backend_of(subject: &Subject) -> device_arena::backend::AnyBackend {
    crate::vendors::load(subject.executor.vendor()).unwrap()
}

#[test]
fn a_prepared_list_serves_later_runs_and_no_other_arena() {
    each(|subject, planned| {
        let mut run = planned.begin().unwrap();
        let mut copies = run.copies();
        copies.copy::<u8>((1, 0), (2, 0), 8).unwrap();
        copies.rows::<u8>(&Rows::new(4, 2).to(1, 100, 10).from(2, 0, 2)).unwrap();
        let list = copies.prepare().unwrap();
        assert_eq!((list.count(), list.bytes()), (1, 16));
        for round in 0..3u8 {
            run.write(2, &[round; 8]).unwrap();
            list.launch(&mut run).unwrap();
            let mut values = [9u8; 140];
            run.read(1, &mut values).unwrap();
            assert_eq!(values[..8], [round; 8]);
            assert_eq!((values[100], values[101], values[130], values[131]), (round, round, round, round));
            run.finish().unwrap();
            run = planned.begin().unwrap();
        }
        let other = subject.arena(&plan()).unwrap();
        let mut other = other.begin().unwrap();
        assert!(matches!(list.launch(&mut other), Err(Error::Option { .. })));
    });
}

#[test]
fn a_prepared_list_takes_no_views() {
    each(|subject, planned| {
        let other = ArenaOptions::new().placement(subject.placement).build(&subject.executor).unwrap();
        let call = subject.executor.begin(&other).unwrap();
        let view = call.output_from_slice(&[1u32, 2]).unwrap().publish();
        call.finish().unwrap();
        let mut run = planned.begin().unwrap();
        let mut copies = run.copies();
        copies.copy_from_view((1, 0), &view).unwrap();
        assert!(matches!(copies.prepare(), Err(Error::Option { .. })));
    });
}

#[cfg(any(feature = "cuda", feature = "rocm"))]
#[test]
fn a_captured_run_keeps_its_lists_and_its_bytes() {
    each(|subject, planned| {
        if subject.is_host() {
            assert!(matches!(planned.capture(|_| Ok(())), Err(Error::HostMemory { .. })));
            return;
        }
        let mut run = planned.begin().unwrap();
        run.write(2, &[1u8, 2, 3, 4]).unwrap();
        let mut copies = run.copies();
        copies.copy::<u8>((2, 100), (2, 0), 4).unwrap();
        let list = copies.prepare().unwrap();
        run.finish().unwrap();
        let mut captured = planned
            .capture(|run| {
                list.launch(run)?;
                run.copy_range::<u8>(1, 0, 2, 100, 4)?;
                run.clear(7)
            })
            .unwrap();
        drop(list);
        for _ in 0..3 {
            let view = captured.launch().unwrap();
            assert_eq!(view.slot::<u8>(1).unwrap().to_vec().unwrap()[..4], [1, 2, 3, 4]);
            assert!(matches!(planned.begin(), Err(Error::Contended { .. })));
        }
        drop(captured);
        drop(planned.begin().unwrap());
    });
}

/// A graph would read it again when it is gone.
#[cfg(any(feature = "cuda", feature = "rocm"))]
#[test]
fn a_capture_takes_no_work_on_another_arena_and_no_view() {
    each(|subject, planned| {
        if subject.is_host() {
            return;
        }
        let other = subject.arena(&plan()).unwrap();
        let mut run = other.begin().unwrap();
        let mut copies = run.copies();
        copies.copy::<u8>((1, 0), (2, 0), 4).unwrap();
        let list = copies.prepare().unwrap();
        let captured = planned.capture(|own| {
            assert!(matches!(list.launch(&mut run), Err(Error::Capturing { .. })));
            if subject.placement == Placement::Device {
                // Coherent memory is the host's to write.
                assert!(matches!(run.clear(1), Err(Error::Capturing { .. })));
                assert!(matches!(run.copy_prefix::<u8>(1, 2, 4), Err(Error::Capturing { .. })));
                assert!(matches!(run.write(1, b"x"), Err(Error::Capturing { .. })));
            }
            own.clear(1)
        });
        captured.unwrap().launch().unwrap();
    });
}
