//! Scrubs against the driver's fills, and ranges that overlap themselves.

use device_arena::backend::{Backend, CopyRange, ScrubRange};

use crate::memory::{Gpu, Pieces, words};
use crate::report::{Report, Row};
use crate::timing::{Clock, Contender, Outcome, Span};

pub const SCRUBS: &str = "scrubs";
pub const OVERLAPS: &str = "overlaps";

/// Fills of one range and of several, device time and end to end.
pub fn scrubs(gpu: &Gpu, pieces: &Pieces, clock: &Clock<'_>, report: &mut Report) -> Outcome {
    const MIB: usize = 1 << 20;
    for (count, mib) in [(1, 1), (1, 16), (1, 256), (1, 1024), (1, 4096), (2, 512), (16, 64)] {
        let bytes = gpu.effort.scaled(mib * MIB);
        let ranges: Vec<ScrubRange> =
            (0..count).map(|at| ScrubRange { address: pieces.to(at * bytes), bytes, value: 0x5a }).collect();
        // SAFETY: the ranges are of a piece that the bench has alone.
        let own = || unsafe { gpu.cuda.rewind(Some(&gpu.stream), None, &ranges) }.map_err(words);
        let driver = || {
            let mut ranges = ranges.iter();
            // SAFETY: as above.
            ranges.try_for_each(|range| unsafe {
                gpu.driver.fill(range.address, range.value, range.bytes, gpu.raw)
            })
        };
        let contenders = || {
            let mut all = vec![Contender::new("scrub", own), Contender::new("cuMemsetD8Async", driver)];
            if let Some(peers) = &gpu.peers {
                let runtime = || {
                    let mut ranges = ranges.iter();
                    // SAFETY: as above.
                    ranges.try_for_each(|range| unsafe {
                        peers.fill(range.address, range.value, range.bytes, gpu.raw)
                    })
                };
                all.push(Contender::new("cudaMemsetAsync", runtime));
            }
            all
        };
        check_scrub(gpu, pieces, count * bytes, own, report)?;
        let id = if count == 1 { format!("{mib} MiB") } else { format!("{count} x {mib} MiB") };
        let mut row = Row::new(SCRUBS, id, count as u64, (count * bytes) as u64);
        let timed = clock.end_to_end(&mut contenders());
        report.add(&mut row, Span::EndToEnd, timed);
        let timed = clock.device(&mut contenders());
        report.add(&mut row, Span::Device, timed);
        report.rows.push(row);
    }
    Ok(())
}

/// Runs a scrub over other bytes, and reads its ends and what is behind it.
fn check_scrub(
    gpu: &Gpu,
    pieces: &Pieces,
    bytes: usize,
    scrub: impl FnOnce() -> Outcome,
    report: &mut Report,
) -> Outcome {
    const LOOKED_AT: usize = 4096;
    // SAFETY: the piece is larger than what is scrubbed.
    unsafe { gpu.driver.fill(pieces.to(0), 0x11, bytes + LOOKED_AT, gpu.raw) }?;
    scrub()?;
    let mut found = vec![0u8; LOOKED_AT];
    for (at, expected) in [(0, 0x5a), (bytes / 2, 0x5a), (bytes - LOOKED_AT, 0x5a), (bytes, 0x11)] {
        // SAFETY: as above; the buffer is as long.
        unsafe { gpu.transfer(found.as_mut_ptr(), pieces.to(at), LOOKED_AT) }?;
        if found.iter().any(|byte| *byte != expected) {
            report.wrong.push(format!("WRONG BYTES: a scrub of {bytes} bytes, at {at}"));
        }
    }
    Ok(())
}

/// A range that moves within itself, up and down. The driver's copy may not overlap: its users go by other memory.
pub fn overlaps(gpu: &Gpu, pieces: &Pieces, clock: &Clock<'_>, report: &mut Report) -> Outcome {
    const BY: usize = 4096;
    let bytes = gpu.effort.scaled(64 << 20);
    let between = gpu.block(bytes)?;
    for (id, from, to) in [("64 MiB up by 4 KiB", 0, BY), ("64 MiB down by 4 KiB", BY, 0)] {
        let range = CopyRange { destination: pieces.to(to), source: pieces.to(from), bytes };
        // SAFETY: the range is of a piece that the bench has alone.
        let own = || unsafe { gpu.cuda.copy(Some(&gpu.stream), &[range]) }.map_err(words);
        let driver = || {
            let middle = between.address().as_ptr();
            // SAFETY: as above, and of a block of its own.
            unsafe {
                gpu.driver.copy(middle, range.source, bytes, gpu.raw)?;
                gpu.driver.copy(range.destination, middle, bytes, gpu.raw)
            }
        };
        check_move(gpu, pieces, &range, own, report)?;
        let contenders = || [Contender::new("copy", own), Contender::new("two cuMemcpyAsync", driver)];
        let mut row = Row::new(OVERLAPS, id, 1, 2 * bytes as u64);
        let timed = clock.end_to_end(&mut contenders());
        report.add(&mut row, Span::EndToEnd, timed);
        let timed = clock.device(&mut contenders());
        report.add(&mut row, Span::Device, timed);
        report.rows.push(row);
    }
    gpu.synchronize()?;
    gpu.free(between);
    Ok(())
}

/// Moves the pattern once, and reads all of it.
fn check_move(
    gpu: &Gpu,
    pieces: &Pieces,
    range: &CopyRange,
    copy: impl FnOnce() -> Outcome,
    report: &mut Report,
) -> Outcome {
    let mut expected = vec![0u8; range.bytes];
    let mut found = vec![0u8; range.bytes];
    // SAFETY: the pieces are larger than the range, and the buffers as long.
    unsafe {
        gpu.transfer(range.source.cast_mut(), pieces.from(0), range.bytes)?;
        gpu.transfer(expected.as_mut_ptr(), range.source, range.bytes)?;
        copy()?;
        gpu.transfer(found.as_mut_ptr(), range.destination, range.bytes)?;
    }
    if found != expected {
        report.wrong.push(format!("WRONG BYTES: a move of {} bytes within itself", range.bytes));
    }
    Ok(())
}
