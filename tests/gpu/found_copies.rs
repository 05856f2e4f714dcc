//! Found by a hostile reading of long lists and of long moves: what one launch still reads while another is written, what fails
//! between two launches, and what goes with its stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use device_arena::backend::{AnyBackend, Backend, Block, CopyRange, Stream};
use device_arena::{Arena, ArenaOptions, Error, Executor, Placement, Result};

use crate::failing::each_call_fails_once;
use crate::functions::Function;
use crate::simulated::{OUT_OF_MEMORY, Simulated, UNKNOWN, simulated_or_skip};
use crate::turn::turn;
use crate::vendor;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// From, to, how many bytes: within one block.
type Copy = (usize, usize, usize);

/// A block, and a stream whose work it is for.
struct Bench {
    backend: AnyBackend,
    stream: Arc<Stream>,
    block: Option<Block>,
    /// What is in the block, once the copies so far are made.
    expected: Vec<u8>,
}

impl Bench {
    fn new(bytes: usize) -> Result<Self> {
        let backend = vendor::load()?;
        let stream = Arc::new(backend.create_stream(0)?);
        let block = Some(backend.allocate(0, Some(&stream), Placement::Device, bytes)?);
        let expected = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
        let bench = Self { backend, stream, block, expected };
        bench.write()?;
        Ok(bench)
    }

    fn place(&self, at: usize) -> *mut u8 {
        self.block.as_ref().unwrap().address().as_ptr().wrapping_add(at)
    }

    fn transfer(&self, destination: *mut u8, source: *const u8, bytes: usize) -> Result<()> {
        let range = CopyRange { destination, source, bytes };
        // SAFETY: both ends are live until this returns.
        unsafe { self.backend.transfer_and_wait(Some(&self.stream), range) }
    }

    fn write(&self) -> Result<()> {
        self.transfer(self.place(0), self.expected.as_ptr(), self.expected.len())
    }

    fn read(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.expected.len()];
        self.transfer(bytes.as_mut_ptr(), self.place(0), bytes.len())?;
        Ok(bytes)
    }

    fn ranges(&self, copies: &[Copy]) -> Vec<CopyRange> {
        let range = |&(from, to, bytes): &Copy| CopyRange {
            destination: self.place(to),
            source: self.place(from),
            bytes,
        };
        copies.iter().map(range).collect()
    }

    fn copy(&self, copies: &[Copy]) -> Result<()> {
        // SAFETY: the ranges are of the block, which is the test's, and don't clash.
        unsafe { self.backend.copy(Some(&self.stream), &self.ranges(copies)) }
    }

    /// Copies, and expects it.
    fn copied(&mut self, copies: &[Copy]) -> Result<()> {
        self.copy(copies)?;
        done(&mut self.expected, copies);
        Ok(())
    }

    /// Copies, while all calls of that function fail with that status, if there is one.
    fn copied_although(&mut self, simulated: &Simulated, fails: Option<(Function, u32)>, copies: &[Copy]) {
        if let Some((function, status)) = fails {
            simulated.fail(function, 0, 0, status);
        }
        let outcome = self.copied(copies);
        simulated.clear();
        outcome.unwrap();
    }

    /// Every byte is what it has to be. The block and the stream go.
    fn expect_all(self) {
        assert!(self.read().unwrap() == self.expected);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let Some(block) = self.block.take() else { return };
        // SAFETY: the test has the block alone, and its work is in the stream.
        let free = |block| unsafe { self.backend.free(Some(&self.stream), block) };
        // Where a call fails once, that may be this one.
        let freed = free(block).or_else(|refused| free(refused.value));
        assert!(freed.is_ok() || std::thread::panicking());
    }
}

fn done(bytes: &mut [u8], copies: &[Copy]) {
    for &(from, to, count) in copies {
        bytes.copy_within(from..from + count, to);
    }
}

/// Ranges of many lengths, so that each tile has to be looked for: from the block's first quarter to another.
fn varied(quarter: usize, count: usize, to: usize) -> Vec<Copy> {
    let step = quarter / count;
    (0..count).map(|at| (at * step, to * quarter + at * step, at * 37 % step)).collect()
}

fn late(simulated: &Simulated) {
    simulated.set("LATE", "1");
    simulated.set("LATE_MS", "0");
}

const QUARTER: usize = 2 * MIB;

#[test]
fn no_list_is_written_over_while_a_launch_reads_it() {
    let Some(turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let mut bench = Bench::new(4 * QUARTER).unwrap();
    late(&simulated);
    for round in 0..20 {
        // Lists of all rooms, so that some are made anew, and each of two launches; none, the first or the second is refused.
        let count = [150, 2200, 400, 3000][round % 4];
        let copies = varied(QUARTER, count, 1 + round % 3);
        let refused = round % 5;
        if refused < 2 {
            simulated.fail(Function::LaunchKernel, refused as u64, 1, UNKNOWN);
        }
        let outcome = bench.copied(&copies);
        assert_eq!(outcome.is_err(), refused < 2, "{round}: {outcome:?}");
    }
    bench.expect_all();
    turn.nothing_is_left();
}

#[test]
fn what_no_event_says_the_end_of_is_neither_used_again_nor_freed() {
    let Some(mut turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let mut bench = Bench::new(4 * QUARTER).unwrap();
    late(&simulated);
    for round in 0..4 {
        let list = varied(QUARTER, 150 + round, 1 + round % 3);
        let moved = [(QUARTER + round, QUARTER + 3, 300 * KIB)];
        for copies in [&list[..], &moved] {
            // What was queued stays so, and nobody can be told when it has passed.
            let fails = (round % 2 == 0).then_some((Function::EventRecord, UNKNOWN));
            bench.copied_although(&simulated, fails, copies);
        }
    }
    bench.expect_all();
    // Two lists, and what is between twice: the driver's to keep.
    let left = turn.left();
    assert!(left.iter().all(|(kind, _)| kind.ends_with("_bytes")), "{left:?}");
    turn.forgive();
}

// They were refused, although the device reads them where they were written as well.
#[test]
fn long_lists_are_copied_where_the_device_has_no_memory_for_them() {
    let Some(turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    for count in [200, 3000] {
        let mut bench = Bench::new(4 * QUARTER).unwrap();
        for (round, is_full) in [true, true, false, true].into_iter().enumerate() {
            let fails = is_full.then_some((Function::MemAlloc, OUT_OF_MEMORY));
            bench.copied_although(&simulated, fails, &varied(QUARTER, count, 1 + round % 3));
        }
        bench.expect_all();
    }
    turn.nothing_is_left();
}

#[test]
fn long_moves_are_made_where_the_device_has_no_memory_between() {
    let Some(turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let mut bench = Bench::new(2 * MIB).unwrap();
    for is_full in [true, false, true] {
        for copies in
            [[(3, 17, MIB), (MIB + 64, MIB + 30, 300 * KIB)], [(17, 3, MIB), (MIB + 30, MIB + 64, 5)]]
        {
            let fails = is_full.then_some((Function::MemAlloc, OUT_OF_MEMORY));
            bench.copied_although(&simulated, fails, &copies);
        }
    }
    bench.expect_all();
    turn.nothing_is_left();
}

#[test]
fn long_lists_and_long_moves_each_of_whose_calls_fails_once() {
    each_call_fails_once(ArenaOptions::new(), |_| {
        // A list that is taken to the device; the same once more, and a long move.
        let mut bench = Bench::new(MIB)?;
        let mut copies = varied(MIB / 4, 150, 3);
        copies.push((MIB / 4, MIB / 4 + 77, 300 * KIB));
        for copies in [&copies[..150], &copies] {
            bench.copied(copies)?;
        }
        assert!(bench.read()? == bench.expected);
        Ok(())
    });
}

// Each was moved in parts, one after the other, where one launch has a block for each.
#[test]
fn many_long_moves_of_one_list_go_at_once_and_what_is_far_longer_in_parts() {
    let Some(turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let mut bench = Bench::new(20 * MIB).unwrap();
    let (step, moved) = (320 * KIB, 300 * KIB);
    let mut list: Vec<Copy> =
        (0..16).map(|at| (at * step + at % 3, at * step + 99 * (at % 2), moved)).collect();
    for others in [0, 200] {
        list.extend((0..others).map(|at| (10 * MIB + at, 10 * MIB + KIB + at, 1)));
        // A list that is long is taken to the device by one launch more, where its ranges are not alike.
        let listed = 1 + u64::from(others > 0);
        for (last, launches) in [(None, listed), (Some((11 * MIB, 11 * MIB + 5, 8 * MIB)), listed + 2)] {
            let mut copies = list.clone();
            copies.extend(last);
            let before = simulated.calls(Function::LaunchKernel);
            bench.copied(&copies).unwrap();
            let made = simulated.calls(Function::LaunchKernel) - before;
            assert!(made <= launches, "{made} launches of {} copies", copies.len());
        }
    }
    bench.expect_all();
    turn.nothing_is_left();
}

#[test]
fn a_stream_that_goes_on_the_drivers_thread_leaves_nothing_of_its_lists_and_moves() {
    let Some(turn) = turn() else { return };
    let bench = Bench::new(4 * QUARTER).unwrap();
    for round in 0..3 {
        let other = bench.backend.create_stream(0).unwrap();
        let raw = bench.backend.raw_stream(&bench.stream).unwrap();
        let owner = Box::new(Arc::clone(&bench.stream));
        // SAFETY: the stream lives as long as its owner.
        let stream = unsafe { bench.backend.adopt_stream(raw, owner) }.unwrap();
        let mut copies = varied(QUARTER, 2100 + round, 1);
        copies.push((2 * QUARTER, 2 * QUARTER + 5, MIB));
        // SAFETY: as of the block's own stream.
        unsafe { bench.backend.copy(Some(&stream), &bench.ranges(&copies)) }.unwrap();
        let (sender, receiver) = mpsc::channel();
        let work = Box::new(move || {
            drop(stream);
            sender.send(()).unwrap();
        });
        bench.backend.enqueue(&other, work).map_err(Error::from).unwrap();
        bench.backend.synchronize(&other).unwrap();
        receiver.recv().unwrap();
    }
    drop(bench);
    turn.nothing_is_left();
}

/// Several threads copy within one stream, each in its own part of the block, while another captures it now and then.
#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn threads_that_list_and_move_within_one_stream_don_t_take_each_others_memory() {
    let Some(turn) = turn() else { return };
    let bench = Bench::new(4 * QUARTER).unwrap();
    let raw = bench.backend.raw_stream(&bench.stream).unwrap();
    // SAFETY: the stream lives as long as the keep-alive.
    let executor =
        unsafe { Executor::adopt(bench.backend.clone(), raw, Box::new(Arc::clone(&bench.stream))) }.unwrap();
    let arena = Arena::new(&executor);
    arena.reserve(1000).unwrap();
    let is_done = AtomicBool::new(false);
    let mut expected = bench.expected.clone();
    std::thread::scope(|threads| {
        let (bench, is_done) = (&bench, &is_done);
        let capturer = threads.spawn(move || {
            while !is_done.load(Ordering::SeqCst) {
                executor.capture(&arena, |_| Ok(())).unwrap().launch().unwrap();
                std::thread::yield_now();
            }
        });
        let workers: Vec<_> = (0..4)
            .map(|part| {
                threads.spawn(move || {
                    let mut own = bench.expected.clone();
                    for round in 0..12 {
                        let at = part * QUARTER;
                        let lists = varied(QUARTER / 4, 200, 1 + round % 3);
                        let list: Vec<_> =
                            lists.iter().map(|&(from, to, bytes)| (at + from, at + to, bytes)).collect();
                        let moved = [(at + round, at + 2 * round + 1, 500 * KIB + part)];
                        for copies in [&list[..], &moved] {
                            match bench.copy(copies) {
                                Ok(()) => done(&mut own, copies),
                                Err(error) => assert!(matches!(error, Error::Capturing { .. }), "{error}"),
                            }
                        }
                    }
                    own[part * QUARTER..(part + 1) * QUARTER].to_vec()
                })
            })
            .collect();
        for (part, worker) in workers.into_iter().enumerate() {
            expected[part * QUARTER..(part + 1) * QUARTER].copy_from_slice(&worker.join().unwrap());
        }
        is_done.store(true, Ordering::SeqCst);
        capturer.join().unwrap();
    });
    assert!(bench.read().unwrap() == expected);
    drop(bench);
    turn.nothing_is_left();
}
