//! How costs grow: of a begin, of an output, of classification and of a list of copies, as sizes and counts grow by ten. What
//! should not depend on a size is a level line, what goes by the count a straight one.

use std::hint::black_box;
use std::time::Instant;

use device_arena::backend::{Backend, Block, CopyRange, CopyRows, Host, RowIndices};
use device_arena::{Arena, ArenaOptions, Executor};

use crate::memory::{Gpu, words};
use crate::report::{Report, Row};
use crate::timing::{Effort, Outcome, Span, Timing, micros};

pub const BYTES: &str = "bytes of an arena";
pub const OUTPUTS: &str = "outputs of a call";
pub const RANGES: &str = "ranges of a list, 64 B each";
pub const ALLOCATIONS: &str = "allocations of the driver";
/// The groups that have a plot each.
pub const GROUPS: [&str; 4] = [BYTES, OUTPUTS, RANGES, ALLOCATIONS];

/// Where a list lies, for the reader of the numbers.
pub const WHERE_LISTS_ARE: &str = "A list takes 24 bytes a range, and 8 more where its ranges are not cut into as many \
    tiles each. Up to 128 ranges travel with their launch. Longer lists are written into pinned host memory, 16384 ranges in \
    each of four pieces that take turns, and a launch takes each piece into device memory; where all have as many tiles, and \
    there are 2048 of those at most, they are read where they were written. A prepared list lies in device memory; rows take 96 bytes in all, whatever their \
    count.";

const SIZES: [usize; 6] = [1 << 20, 10 << 20, 100 << 20, 1 << 30, 10 << 30, 64 << 30];
const COUNTS: [usize; 7] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000];
/// Seconds that an arena may take to be made.
const LONGEST: f64 = 30.0;
/// Of a range that is copied.
const RANGE: usize = 64;

/// Whose numbers.
#[derive(Clone, Copy)]
struct Names {
    begin: &'static str,
    output: &'static str,
    each: &'static str,
    begin_after: &'static str,
}

const HOST: Names = Names {
    begin: "begin and finish, host",
    output: "with an output of all bytes, host",
    each: "each output, host",
    begin_after: "begin after them, host",
};
const DEVICE: Names = Names {
    begin: "begin and finish, device",
    output: "with an output of all bytes, device",
    each: "each output, device",
    begin_after: "begin after them, device",
};

/// Microseconds of one run: several rounds, each of as many runs as take a while.
fn time(effort: Effort, work: &mut dyn FnMut() -> Outcome) -> Result<Timing, String> {
    const LONG_ENOUGH: f64 = 2e3;
    let rounds = if effort == Effort::Whole { 9 } else { 3 };
    work()?;
    let begin = Instant::now();
    work()?;
    let runs = (LONG_ENOUGH / micros(begin.elapsed()).max(0.01)).clamp(1.0, 100_000.0) as u32;
    let mut samples = Vec::new();
    for _ in 0..rounds {
        let begin = Instant::now();
        for _ in 0..runs {
            work()?;
        }
        samples.push(micros(begin.elapsed()) / f64::from(runs));
    }
    Timing::of(samples, runs).ok_or_else(|| "not timed".to_owned())
}

/// What is in the table of a group at that number.
fn row<'r>(
    report: &'r mut Report,
    group: &'static str,
    number: usize,
    id: String,
) -> Result<&'r mut Row, String> {
    let found = report.rows.iter().position(|row| row.group == group && row.ranges == number as u64);
    let at = found.unwrap_or_else(|| {
        report.rows.push(Row::new(group, id, number as u64, 0));
        report.rows.len() - 1
    });
    report.rows.get_mut(at).ok_or_else(|| "no row".to_owned())
}

fn in_words(bytes: usize) -> String {
    if bytes >= 1 << 30 { format!("{} GiB", bytes >> 30) } else { format!("{} MiB", bytes >> 20) }
}

/// A call with outputs of so many bytes each.
fn call(executor: &Executor, arena: &Arena, count: usize, bytes: usize) -> Outcome {
    let call = executor.begin(arena).map_err(words)?;
    for _ in 0..count {
        drop(black_box(call.output::<u8>(bytes).map_err(words)?.publish()));
    }
    call.finish().map_err(words)
}

/// Arenas of more and more bytes, up to what there is.
fn arenas(executor: &Executor, names: Names, effort: Effort, free: u64, report: &mut Report) -> Outcome {
    // Seconds a byte that the last one took to be made: the host's pages are touched.
    let mut pace = 0.0;
    for bytes in SIZES {
        let why = if bytes as u64 > free {
            Some("no more memory is free")
        } else if effort != Effort::Whole && bytes > 1 << 30 {
            Some("this is a short run")
        } else if pace * bytes as f64 > LONGEST {
            Some("to touch its pages would take long")
        } else {
            None
        };
        if let Some(why) = why {
            report.note(format!("{}: arenas end below {}: {why}", names.begin, in_words(bytes)));
            break;
        }
        let arena = ArenaOptions::new().build(executor).map_err(words)?;
        let begin = Instant::now();
        arena.reserve(bytes).map_err(words)?;
        pace = begin.elapsed().as_secs_f64() / bytes as f64;
        let with_output = time(effort, &mut || call(executor, &arena, 1, bytes))?;
        let empty = time(effort, &mut || call(executor, &arena, 0, 0))?;
        let row = row(report, BYTES, bytes, in_words(bytes))?;
        row.add(names.begin, Span::Host, Some(empty));
        row.add(names.output, Span::Host, Some(with_output));
        arena.close().map_err(|refused| words(refused.error))?;
    }
    Ok(())
}

/// More and more outputs of 64 bytes, and the begin after them.
fn outputs(executor: &Executor, names: Names, effort: Effort, report: &mut Report) -> Outcome {
    const BYTES_EACH: usize = 64;
    let arena = Arena::new(executor);
    for count in COUNTS {
        arena.reserve(count * 256).map_err(words)?;
        let calls = time(effort, &mut || call(executor, &arena, count, BYTES_EACH))?;
        let empty = time(effort, &mut || call(executor, &arena, 0, 0))?;
        let mut begins = Vec::new();
        for _ in 0..if count < 100_000 { 51 } else { 5 } {
            call(executor, &arena, count, BYTES_EACH)?;
            let begin = Instant::now();
            let began = executor.begin(&arena).map_err(words)?;
            begins.push(micros(begin.elapsed()));
            began.finish().map_err(words)?;
        }
        let of_each = |time: f64| (time - empty.median).max(0.0) / count as f64;
        let each = Timing {
            median: of_each(calls.median),
            least: of_each(calls.least),
            most: of_each(calls.most),
            ..calls
        };
        let row = row(report, OUTPUTS, count, count.to_string())?;
        row.add(names.each, Span::Host, Some(each));
        row.add(names.begin_after, Span::Host, Timing::of(begins, 1));
    }
    Ok(())
}

/// Lists of more and more ranges on the host.
fn host_lists(effort: Effort, report: &mut Report) -> Outcome {
    let most = COUNTS[COUNTS.len() - 1];
    let source = vec![7u8; most * RANGE];
    let mut destination = vec![0u8; most * RANGE];
    let all = list(source.as_ptr(), destination.as_mut_ptr(), most);
    for count in COUNTS {
        let ranges = &all[..count];
        // SAFETY: the ranges are of memory that nobody else has, and don't clash.
        let copy = time(effort, &mut || unsafe { Host.copy(None, ranges) }.map_err(words))?;
        let plain = time(effort, &mut || {
            for range in black_box(ranges) {
                // SAFETY: as above; source and destination are memory of their own.
                unsafe { std::ptr::copy_nonoverlapping(range.source, range.destination, range.bytes) };
            }
            Ok(())
        })?;
        let row = row(report, RANGES, count, count.to_string())?;
        row.add("copy, host", Span::Host, Some(copy));
        row.add("copy_nonoverlapping, host", Span::Host, Some(plain));
    }
    if source != destination {
        report.wrong.push("WRONG BYTES: a long list on the host".to_owned());
    }
    Ok(())
}

/// Ranges in no order.
fn list(source: *const u8, destination: *mut u8, count: usize) -> Vec<CopyRange> {
    let mut order: Vec<usize> = (0..count).collect();
    crate::works::Numbers(7).shuffle(&mut order);
    let range = |row: usize| CopyRange {
        destination: destination.wrapping_add(row * RANGE),
        source: source.wrapping_add(row * RANGE),
        bytes: RANGE,
    };
    order.into_iter().map(range).collect()
}

/// Lists of more and more ranges on the device.
fn device_lists(gpu: &Gpu, report: &mut Report) -> Outcome {
    let counts = if gpu.effort == Effort::Tiny { &COUNTS[..5] } else { &COUNTS };
    let most = counts[counts.len() - 1];
    let (source, destination) = (gpu.block(most * RANGE)?, gpu.block(most * RANGE)?);
    let (from, to) = (source.address().as_ptr().cast_const(), destination.address().as_ptr());
    let all = list(from, to, most);
    for &count in counts {
        let ranges = &all[..count];
        let rows = CopyRows {
            destination: to,
            source: from,
            destination_stride: RANGE,
            source_stride: RANGE,
            bytes: RANGE,
            count,
            destination_rows: RowIndices::InOrder,
            source_rows: RowIndices::InOrder,
        };
        let stream = Some(&gpu.stream);
        let copy = time(gpu.effort, &mut || {
            // SAFETY: the ranges are of blocks that the bench has alone.
            unsafe { gpu.cuda.copy(stream, ranges) }.map_err(words)?;
            gpu.synchronize()
        })?;
        let prepare = time(gpu.effort, &mut || gpu.cuda.prepare(stream, ranges).map(drop).map_err(words))?;
        let prepared = gpu.cuda.prepare(stream, ranges).map_err(words)?;
        let launch = time(gpu.effort, &mut || {
            // SAFETY: as above; the list outlives its launches.
            unsafe { gpu.cuda.copy_prepared(stream, &prepared) }.map_err(words)?;
            gpu.synchronize()
        })?;
        let strided = time(gpu.effort, &mut || {
            // SAFETY: as above.
            unsafe { gpu.cuda.copy_rows(stream, &rows) }.map_err(words)?;
            gpu.synchronize()
        })?;
        let row = row(report, RANGES, count, count.to_string())?;
        row.add("copy, device", Span::Host, Some(copy));
        row.add("prepare, device", Span::Host, Some(prepare));
        row.add("prepared, device", Span::Host, Some(launch));
        row.add("rows, device", Span::Host, Some(strided));
    }
    gpu.free(source);
    gpu.free(destination);
    Ok(())
}

/// Classification while the driver has more and more allocations.
fn allocations(gpu: &Gpu, report: &mut Report) -> Outcome {
    let counts = if gpu.effort == Effort::Whole { &COUNTS[..5] } else { &COUNTS[..4] };
    let mut blocks: Vec<Block> = Vec::new();
    for &count in counts {
        while blocks.len() < count {
            blocks.push(gpu.block(64 << 10)?);
        }
        let mut at = 0;
        let mut next = || {
            // Far from the last one.
            at = (at + 7919) % blocks.len();
            blocks[at].address().as_ptr().cast_const()
        };
        let classify = time(gpu.effort, &mut || {
            // SAFETY: the block is live.
            black_box(unsafe { device_arena::classify(black_box(next())) }).map_err(words)?;
            Ok(())
        })?;
        let arena = Arena::new(&gpu.executor);
        let call = gpu.executor.begin(&arena).map_err(words)?;
        let seen = time(gpu.effort, &mut || {
            // SAFETY: as above.
            black_box(unsafe { call.classify_range(black_box(next()), 256) }).map_err(words)?;
            Ok(())
        })?;
        call.finish().map_err(words)?;
        let row = row(report, ALLOCATIONS, count, count.to_string())?;
        row.add("classify, device", Span::Host, Some(classify));
        row.add("within a call, device", Span::Host, Some(seen));
    }
    blocks.into_iter().for_each(|block| gpu.free(block));
    Ok(())
}

/// The host's part.
pub fn host(effort: Effort, report: &mut Report) -> Outcome {
    let executor = Executor::host().map_err(words)?;
    // The pages of an arena are touched when it is made: most of what there is, but for what others need.
    let free = executor.free_bytes().map_err(words)?.unwrap_or(2 << 30) / 4 * 3;
    arenas(&executor, HOST, effort, free, report)?;
    outputs(&executor, HOST, effort, report)?;
    host_lists(effort, report)
}

/// The device's part.
pub fn device(gpu: &Gpu, report: &mut Report) -> Outcome {
    let free = gpu.executor.free_bytes().map_err(words)?.unwrap_or(0);
    let free = if gpu.effort == Effort::Tiny { free.min(1 << 30) } else { free };
    arenas(&gpu.executor, DEVICE, gpu.effort, free, report)?;
    outputs(&gpu.executor, DEVICE, gpu.effort, report)?;
    device_lists(gpu, report)?;
    allocations(gpu, report)
}
