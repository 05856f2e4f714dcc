//! Planned arenas where the driver refuses a part of what they ask for, or is late with it.

use device_arena::backend::{Backend, CopyRange};
use device_arena::plan::{MemoryPlan, Slot};
use device_arena::{CopyBatch, Error, Executor, Placement, PlannedArena, Rows, Run};

use crate::driver;
use crate::functions::Function;
use crate::memory::{RELAXED, RawStream};
use crate::simulated::{Simulated, UNKNOWN, simulated_or_skip};
use crate::turn::turn;
use crate::vendor;

fn plan() -> MemoryPlan {
    MemoryPlan::builder()
        .alignment(256)
        .slots([Slot::new(1, 0, 1024), Slot::new(2, 1024, 1024)])
        .build()
        .unwrap()
}

fn coherent(executor: &Executor) -> PlannedArena {
    let arena = PlannedArena::placed(executor, Placement::HostCoherent, plan()).unwrap();
    arena.write(2, &[7u8; 1024]).unwrap();
    arena
}

/// A list and rows, which are a launch each.
fn two_launches(run: &mut Run) -> CopyBatch<'_> {
    let mut copies = run.copies();
    copies.copy::<u8>((1, 0), (2, 0), 8).unwrap();
    copies.rows::<u8>(&Rows::new(4, 2).to(1, 100, 10).from(2, 0, 2)).unwrap();
    copies
}

/// What is queued stays queued until somebody waits for it.
fn late(simulated: &Simulated) {
    simulated.set("LATE", "1");
    simulated.set("LATE_MS", "0");
    simulated.set("LATE_QUERIES", "1000000");
}

fn in_time(simulated: &Simulated) {
    simulated.clear();
    simulated.restore("LATE", "0");
    simulated.restore("LATE_MS", "200");
    simulated.restore("LATE_QUERIES", "3");
}

fn fail_the_second_launch(simulated: &Simulated) {
    simulated.fail(Function::LaunchKernel, 1, 1, UNKNOWN);
}

#[test]
fn the_host_waits_for_the_copies_that_were_queued_before_one_was_refused() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    let arena = coherent(&executor);
    for prepared in [false, true] {
        let mut run = arena.begin().unwrap();
        run.clear(1).unwrap();
        let list = two_launches(&mut run).prepare().unwrap();
        executor.synchronize().unwrap();
        late(&simulated);
        fail_the_second_launch(&simulated);
        let refused = if prepared { list.launch(&mut run) } else { two_launches(&mut run).launch() };
        assert!(matches!(refused, Err(Error::Driver { .. })), "{refused:?}");
        assert!(matches!(run.bytes().map(drop), Err(Error::Pending { .. })), "prepared: {prepared}");
        let view = run.finish().unwrap();
        assert!(matches!(view.bytes().read().map(drop), Err(Error::Pending { .. })), "prepared: {prepared}");
        in_time(&simulated);
        executor.synchronize().unwrap();
        assert_eq!(view.slot::<u8>(1).unwrap().read().unwrap()[..10], [7, 7, 7, 7, 7, 7, 7, 7, 0, 0]);
    }
}

#[test]
fn the_host_waits_for_what_a_graph_took_before_something_was_refused() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    let arena = coherent(&executor);
    let mut captured = arena
        .capture(|run| {
            fail_the_second_launch(&simulated);
            assert!(matches!(two_launches(run).launch(), Err(Error::Driver { .. })));
            Ok(())
        })
        .unwrap();
    late(&simulated);
    let view = captured.launch().unwrap();
    assert!(matches!(view.bytes().read().map(drop), Err(Error::Pending { .. })));
    in_time(&simulated);
    executor.synchronize().unwrap();
    assert_eq!(view.slot::<u8>(1).unwrap().read().unwrap()[..8], [7; 8]);
}

#[test]
fn a_block_that_could_not_be_zeroed_is_zeroed_by_the_next_run() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    let arena = PlannedArena::new(&executor, plan()).unwrap();
    simulated.fail(Function::MemsetAsync, 0, 1, UNKNOWN);
    assert!(matches!(arena.begin().map(drop), Err(Error::Driver { .. })));
    assert_eq!(arena.holder(), None);
    let run = arena.begin().unwrap();
    let mut bytes = [1u8; 2048];
    run.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 2048]);
}

/// Each arena goes while the copy is queued still.
#[test]
fn a_twin_of_another_device_that_goes_at_once_is_copied_first() {
    let Some(turn) = turn() else { return };
    if !turn.has_two() {
        return;
    }
    let Some(simulated) = simulated_or_skip() else { return };
    for source_first in [false, true] {
        let (one, other) = (vendor::executor(0).unwrap(), vendor::executor(1).unwrap());
        let (from, to) =
            (PlannedArena::new(&one, plan()).unwrap(), PlannedArena::new(&other, plan()).unwrap());
        from.write(2, &[7u8; 1024]).unwrap();
        let (mut run, mut twin) = (from.begin().unwrap(), to.begin().unwrap());
        late(&simulated);
        run.copy_into(&mut twin).unwrap();
        run.clear(2).unwrap();
        let mut bytes = [0u8; 1024];
        if source_first {
            drop((run, from, one));
            twin.read(2, &mut bytes).unwrap();
            assert_eq!(bytes, [7; 1024]);
        } else {
            drop((twin, to, other));
            run.read(2, &mut bytes).unwrap();
            assert_eq!(bytes, [0; 1024]);
        }
        in_time(&simulated);
    }
    turn.nothing_is_left();
}

/// More copies than a launch takes along, so that their list lies in memory of its own.
fn a_long_list(run: &mut Run) -> CopyBatch<'_> {
    let mut copies = run.copies();
    for at in 0..300 {
        copies.copy::<u8>((1, at * 3), (2, at), 1).unwrap();
    }
    copies
}

#[test]
fn a_long_list_that_is_refused_leaves_nothing() {
    let Some(turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    for refused in [Function::LaunchKernel, Function::MemHostAlloc, Function::EventCreate] {
        let executor = vendor::executor(0).unwrap();
        let arena = PlannedArena::new(&executor, plan()).unwrap();
        arena.write(2, &[7u8; 300]).unwrap();
        let mut run = arena.begin().unwrap();
        simulated.fail(refused, 0, 1, UNKNOWN);
        assert!(matches!(a_long_list(&mut run).launch(), Err(Error::Driver { .. })));
        a_long_list(&mut run).launch().unwrap();
        let mut bytes = [0u8; 4];
        run.read(1, &mut bytes).unwrap();
        assert_eq!(bytes, [7, 0, 0, 7]);
    }
    turn.nothing_is_left();
}

#[test]
fn captures_of_another_thread_take_nothing_of_a_long_list() {
    let Some(turn) = turn() else { return };
    let executor = vendor::executor(0).unwrap();
    let (arena, captured) =
        (PlannedArena::new(&executor, plan()).unwrap(), PlannedArena::new(&executor, plan()).unwrap());
    arena.write(2, &[7u8; 300]).unwrap();
    captured.write(2, &[7u8; 300]).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for _ in 0..300 {
                let mut graph = captured.capture(|run| run.copy_prefix::<u8>(1, 2, 4).map(drop)).unwrap();
                graph.launch().unwrap();
            }
        });
        for _ in 0..500 {
            let mut run = arena.begin().unwrap();
            match a_long_list(&mut run).launch() {
                Ok(()) | Err(Error::Capturing { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    drop((arena, captured, executor));
    turn.nothing_is_left();
}

/// Whoever captures a stream has it from elsewhere, so that what was made for it here can go meanwhile.
#[test]
fn a_long_list_on_its_way_stays_where_its_stream_goes_in_a_capture() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let home = vendor::executor(0).unwrap();
    let (raw, backend) = (RawStream::new(&home), vendor::load().unwrap());
    let block = backend.allocate(0, None, Placement::Device, 4096).unwrap();
    let place = |at: usize| block.address().as_ptr().wrapping_add(at);
    // SAFETY: the stream lives as long as the test.
    let stream = unsafe { backend.adopt_stream(raw.handle, Box::new(())) }.unwrap();
    late(&simulated);
    let range = |at| CopyRange { destination: place(2048 + at), source: place(at), bytes: 1 };
    let ranges: Vec<_> = (0..300).map(range).collect();
    // SAFETY: the ranges are of the block, which is the test's, and don't clash.
    unsafe { backend.copy(Some(&stream), &ranges) }.unwrap();
    let ((), graph) = raw.capture(RELAXED, || drop(stream));
    assert!(!graph.is_null(), "the capture was spoilt");
    // SAFETY: the graph is this test's alone.
    driver::ok(unsafe { driver::graph_destroy(graph) });
    // SAFETY: the stream is alive.
    driver::ok(home.with_current(|| unsafe { driver::stream_synchronize(raw.handle) }).unwrap());
    // SAFETY: what used the block has passed.
    unsafe { backend.free(None, block) }.unwrap();
}
