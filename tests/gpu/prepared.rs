//! Prepared lists of copies: what a launch costs, in captures, and how they go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use device_arena::backend::{
    AnyBackend, Backend, Block, CopyRange, CopyRows, PreparedCopies, RowIndices, Stream,
};
use device_arena::{Arena, Error, Executor, Placement};

use crate::functions::Function;
use crate::simulated::{OUT_OF_MEMORY, UNKNOWN, simulated, simulated_or_skip};
use crate::turn::turn;
use crate::vendor;

const STEP: usize = 40;

/// A backend's stream, two blocks, and an executor on the stream.
struct Bench {
    backend: AnyBackend,
    stream: Arc<Stream>,
    executor: Executor,
    from: Option<Block>,
    to: Option<Block>,
    count: usize,
}

impl Bench {
    fn new(count: usize) -> Self {
        let backend = vendor::load().unwrap();
        let stream = Arc::new(backend.create_stream(0).unwrap());
        let raw = backend.raw_stream(&stream).unwrap();
        // SAFETY: the stream lives as long as the keep-alive.
        let executor =
            unsafe { Executor::adopt(backend.clone(), raw, Box::new(Arc::clone(&stream))) }.unwrap();
        let block = || Some(backend.allocate(0, Some(&stream), Placement::Device, count * STEP).unwrap());
        let (from, to) = (block(), block());
        let bench = Self { backend, stream, executor, from, to, count };
        bench.write(bench.to(0), &vec![0; count * STEP]);
        bench
    }

    fn from(&self, at: usize) -> *mut u8 {
        self.from.as_ref().unwrap().address().as_ptr().wrapping_add(at)
    }

    fn to(&self, at: usize) -> *mut u8 {
        self.to.as_ref().unwrap().address().as_ptr().wrapping_add(at)
    }

    fn transfer(&self, destination: *mut u8, source: *const u8, bytes: usize) {
        let range = CopyRange { destination, source, bytes };
        // SAFETY: both ends are live until this returns.
        unsafe { self.backend.transfer_and_wait(Some(&self.stream), range) }.unwrap();
    }

    fn write(&self, place: *mut u8, bytes: &[u8]) {
        self.transfer(place, bytes.as_ptr(), bytes.len());
    }

    fn rewrite(&self, seed: usize) -> Vec<u8> {
        let bytes: Vec<u8> = (0..self.count * STEP).map(|at| ((at + seed) * 7 % 253) as u8).collect();
        self.write(self.from(0), &bytes);
        bytes
    }

    fn expect(&self, bytes: &[u8]) {
        let mut got = vec![0; bytes.len()];
        self.transfer(got.as_mut_ptr(), self.to(0), bytes.len());
        assert!(got == bytes);
    }

    /// Everything, from the one block to the other, as many ranges as there are.
    fn ranges(&self) -> Vec<CopyRange> {
        let range = |row: usize| CopyRange {
            destination: self.to(row * STEP),
            source: self.from(row * STEP),
            bytes: STEP,
        };
        (0..self.count).map(range).collect()
    }

    fn prepare(&self) -> PreparedCopies {
        self.backend.prepare(Some(&self.stream), &self.ranges()).unwrap()
    }

    fn launch(&self, prepared: &PreparedCopies) {
        // SAFETY: the ranges are of blocks that the test has alone, and don't clash.
        unsafe { self.backend.copy_prepared(Some(&self.stream), prepared) }.unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for block in [self.from.take(), self.to.take()].into_iter().flatten() {
            // SAFETY: the test has the block alone, and its work is in the stream.
            let freed = unsafe { self.backend.free(Some(&self.stream), block) };
            assert!(freed.is_ok() || std::thread::panicking());
        }
    }
}

#[test]
fn a_launch_of_a_prepared_list_or_of_rows_is_one_call_of_the_driver_that_does_anything() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let bench = Bench::new(5000);
    let prepared = bench.prepare();
    let rows = CopyRows {
        destination: bench.to(0),
        source: bench.from(0),
        destination_stride: STEP,
        source_stride: STEP,
        bytes: STEP,
        count: bench.count,
        destination_rows: RowIndices::InOrder,
        source_rows: RowIndices::InOrder,
    };
    bench.launch(&prepared);
    bench.backend.synchronize(&bench.stream).unwrap();
    let others = [
        Function::MemAlloc,
        Function::MemHostAlloc,
        Function::MemcpyAsync,
        Function::MemsetAsync,
        Function::EventCreate,
        Function::EventRecord,
        Function::StreamSynchronize,
        Function::EventSynchronize,
    ];
    let counts = || others.map(|function| simulated.calls(function));
    for round in 0..3 {
        let source = bench.rewrite(round);
        let (launches, before) = (simulated.calls(Function::LaunchKernel), counts());
        bench.launch(&prepared);
        assert_eq!((simulated.calls(Function::LaunchKernel), counts()), (launches + 1, before));
        bench.expect(&source);

        let source = bench.rewrite(round + 100);
        let (launches, before) = (simulated.calls(Function::LaunchKernel), counts());
        // SAFETY: as for `launch`.
        unsafe { bench.backend.copy_rows(Some(&bench.stream), &rows) }.unwrap();
        assert_eq!((simulated.calls(Function::LaunchKernel), counts()), (launches + 1, before));
        bench.expect(&source);
    }
    let launches = simulated.calls(Function::LaunchKernel);
    let nothing = bench.backend.prepare(Some(&bench.stream), &[]).unwrap();
    bench.launch(&nothing);
    assert_eq!(simulated.calls(Function::LaunchKernel), launches, "nothing to copy, and nothing to launch");
}

#[test]
fn prepared_lists_and_rows_are_captured() {
    let Some(_turn) = turn() else { return };
    for count in [1, 200, 5000] {
        let bench = Bench::new(count);
        let prepared = bench.prepare();
        // Rows by number as well, behind the list: each to where it was already.
        let numbers: Vec<u8> = (0..count as u32).flat_map(u32::to_ne_bytes).collect();
        let array = bench.backend.allocate(0, Some(&bench.stream), Placement::Device, numbers.len()).unwrap();
        bench.write(array.address().as_ptr(), &numbers);
        let numbers = RowIndices::U32(array.address().as_ptr().cast_const().cast());
        let rows = CopyRows {
            destination: bench.to(0),
            source: bench.from(0),
            destination_stride: STEP,
            source_stride: STEP,
            bytes: STEP / 2,
            count,
            destination_rows: numbers,
            source_rows: numbers,
        };
        let arena = Arena::new(&bench.executor);
        arena.reserve(1000).unwrap();
        let mut captured = bench
            .executor
            .capture(&arena, |call| {
                let view = call.output::<u32>(10)?.publish();
                assert!(matches!(
                    bench.backend.prepare(Some(&bench.stream), &bench.ranges()).map(drop),
                    Err(Error::Capturing { .. })
                ));
                // SAFETY: the list, its ranges and the rows are there until the graph is gone.
                unsafe {
                    bench.backend.copy_prepared(Some(&bench.stream), &prepared)?;
                    bench.backend.copy_rows(Some(&bench.stream), &rows)?;
                }
                Ok(view)
            })
            .unwrap();
        bench.expect(&vec![0; count * STEP]);
        for round in 0..3 {
            let source = bench.rewrite(round);
            captured.launch().unwrap();
            bench.expect(&source);
        }
        drop(captured);
        drop(prepared);
        // SAFETY: the graph is gone, and its work has passed.
        unsafe { bench.backend.free(Some(&bench.stream), array) }.unwrap();
    }
}

#[test]
fn a_list_that_is_dropped_during_a_capture_goes_when_that_has_ended() {
    let Some(turn) = turn() else { return };
    let bench = Bench::new(100);
    let prepared = bench.prepare();
    let source = bench.rewrite(1);
    bench.launch(&prepared);
    let arena = Arena::new(&bench.executor);
    arena.reserve(1000).unwrap();
    let mut captured = bench
        .executor
        .capture(&arena, |call| {
            drop(prepared);
            Ok(call.output::<u32>(10)?.publish())
        })
        .unwrap();
    // The capture was not spoilt.
    captured.launch().unwrap();
    bench.expect(&source);
    drop((captured, arena, bench));
    turn.nothing_is_left();
}

#[test]
fn a_dropped_list_waits_for_every_stream_and_leaves_nothing() {
    let Some(turn) = turn() else { return };
    for round in 0..3 {
        let bench = Bench::new(3000);
        let other = bench.backend.create_stream(0).unwrap();
        let prepared = bench.prepare();
        let source = bench.rewrite(round);
        if let Some(simulated) = simulated() {
            simulated.set("LATE", "1");
            simulated.set("LATE_MS", "0");
        }
        bench.launch(&prepared);
        // The same copies once more, by another stream behind the first.
        let event = bench.backend.record(&bench.stream).unwrap();
        bench.backend.stream_wait(&other, &event).unwrap();
        // SAFETY: the ranges are of blocks that the test has alone; the streams follow each other.
        unsafe { bench.backend.copy_prepared(Some(&other), &prepared) }.unwrap();
        // The list keeps the stream until it goes.
        drop(other);
        drop(prepared);
        bench.expect(&source);
        drop((event, bench));
    }
    turn.nothing_is_left();
}

#[test]
fn a_list_that_the_driver_refuses_leaves_nothing() {
    let Some(turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let bench = Bench::new(300);
    let source = bench.rewrite(3);
    drop(bench.prepare());
    let before = simulated.all_live();
    for (function, status) in [(Function::MemAlloc, OUT_OF_MEMORY), (Function::MemcpyAsync, UNKNOWN)] {
        simulated.fail(function, 0, 1, status);
        let refused = bench.backend.prepare(Some(&bench.stream), &bench.ranges()).unwrap_err();
        let is_out_of_memory = matches!(refused, Error::OutOfMemory { .. });
        assert_eq!(is_out_of_memory, function == Function::MemAlloc, "{refused}");
        assert_eq!(simulated.all_live(), before, "{function}");
    }
    let prepared = bench.prepare();
    simulated.fail(Function::LaunchKernel, 0, 1, UNKNOWN);
    // SAFETY: as for `launch`.
    let refused = unsafe { bench.backend.copy_prepared(Some(&bench.stream), &prepared) };
    assert!(matches!(refused, Err(Error::Driver { .. })));
    bench.launch(&prepared);
    bench.expect(&source);
    // What can't be freed at once is tried again.
    let frees = simulated.calls(Function::MemFree);
    simulated.fail(Function::MemFree, 0, 2, UNKNOWN);
    drop(prepared);
    let start = Instant::now();
    while simulated.calls(Function::MemFree) < frees + 3 {
        assert!(start.elapsed() < Duration::from_secs(5), "the list was not freed");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(bench);
    turn.nothing_is_left();
}

#[test]
fn a_list_is_for_its_own_device_and_needs_a_stream() {
    let Some(_turn) = turn() else { return };
    let bench = Bench::new(100);
    let refused = bench.backend.prepare(None, &bench.ranges()).unwrap_err();
    assert!(matches!(refused, Error::Option { option: "stream", .. }));
    let prepared = bench.prepare();
    // SAFETY: nothing is launched.
    let refused = unsafe { bench.backend.copy_prepared(None, &prepared) }.unwrap_err();
    assert!(matches!(refused, Error::Option { option: "stream", .. }));
    let host = AnyBackend::Host(device_arena::backend::Host);
    // SAFETY: as above.
    let refused = unsafe { host.copy_prepared(None, &prepared) }.unwrap_err();
    assert!(matches!(refused, Error::WrongVendor { what: "list", .. }));
    let of_the_host = host.prepare(None, &[]).unwrap();
    // SAFETY: as above.
    let refused = unsafe { bench.backend.copy_prepared(Some(&bench.stream), &of_the_host) }.unwrap_err();
    assert!(matches!(refused, Error::WrongVendor { what: "list", .. }));
    if bench.backend.devices().unwrap().len() < 2 {
        println!("skipped: a list of another device, there is one alone");
        return;
    }
    let elsewhere = bench.backend.create_stream(1).unwrap();
    // SAFETY: as above.
    let refused = unsafe { bench.backend.copy_prepared(Some(&elsewhere), &prepared) }.unwrap_err();
    assert!(matches!(refused, Error::Option { option: "stream", .. }));
}
