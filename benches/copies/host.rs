//! Copies of the host backend, against plain loops; and what several threads take that are told how many they are. The
//! backend decides that for itself: by the bytes, and by how many cores there are.

use std::cell::RefCell;
use std::time::Instant;

use device_arena::backend::{Backend, CopyRange, Host};

use crate::memory::words;
use crate::report::{Report, Row};
use crate::timing::{Effort, Outcome, Span, Timing, micros};
use crate::works::Numbers;

pub const HOST: &str = "host copies";

/// One large range against `copy_nonoverlapping`, and many against a loop of it.
pub fn copies(effort: Effort, report: &mut Report) -> Outcome {
    const MIB: usize = 1 << 20;
    let largest = effort.scaled(256 * MIB);
    let source: Vec<u8> = (0..largest).map(|at| (at % 253) as u8).collect();
    let destination = RefCell::new(vec![1u8; largest]);
    let works = [
        ("one of 256 MiB", 1, largest),
        ("65536 x 1536 B", effort.scaled(65536), 1536),
        ("1024 x 64 KiB", effort.scaled(1024), 64 << 10),
        ("16384 x 256 B", effort.scaled(16384), 256),
    ];
    for (id, count, bytes) in works {
        let mut order: Vec<usize> = (0..count).collect();
        Numbers(7).shuffle(&mut order);
        let to = destination.borrow_mut().as_mut_ptr();
        let ranges: Vec<CopyRange> = order
            .iter()
            .map(|row| CopyRange {
                destination: to.wrapping_add(row * bytes),
                source: source.as_ptr().wrapping_add(row * bytes),
                bytes,
            })
            .collect();
        // SAFETY: the ranges are of memory that nobody else has, and don't clash.
        let own = || unsafe { Host.copy(None, &ranges) }.map_err(words);
        let plain = || {
            for range in &ranges {
                // SAFETY: as above; source and destination are memory of their own.
                unsafe { std::ptr::copy_nonoverlapping(range.source, range.destination, range.bytes) };
            }
        };
        destination.borrow_mut().fill(1);
        own()?;
        let moved = count * bytes;
        if destination.borrow()[..moved] != source[..moved]
            || destination.borrow()[moved..].iter().any(|byte| *byte != 1)
        {
            report.wrong.push(format!("WRONG BYTES: host copies, {id}"));
        }
        let rounds = effort.rounds(2e3);
        let (mut owns, mut plains) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            // Whoever is second finds what the first left in caches: it is each in turn.
            for is_own in [round % 2 == 0, round % 2 != 0] {
                let begin = Instant::now();
                if is_own {
                    own()?;
                    owns.push(micros(begin.elapsed()));
                } else {
                    plain();
                    plains.push(micros(begin.elapsed()));
                }
            }
        }
        // Apart from those two: what many threads wrote lies in their cores' caches, and who comes next pays for it.
        let mut shared = THREADS.map(|_| Vec::new());
        for _ in 0..rounds {
            for (threads, times) in THREADS.into_iter().zip(&mut shared) {
                let begin = Instant::now();
                by_threads(&ranges, threads);
                times.push(micros(begin.elapsed()));
            }
        }
        let mut row = Row::new(HOST, id, count as u64, 2 * moved as u64);
        row.add("copy on the host", Span::Host, Timing::of(owns, 1));
        row.add("copy_nonoverlapping", Span::Host, Timing::of(plains, 1));
        for (name, times) in ["2 threads", "4 threads", "8 threads"].into_iter().zip(shared) {
            row.add(name, Span::Host, Timing::of(times, 1));
        }
        report.rows.push(row);
    }
    Ok(())
}

const THREADS: [usize; 3] = [2, 4, 8];

/// The ranges, or the parts of a single one, shared out evenly among threads that are started for it.
fn by_threads(ranges: &[CopyRange], threads: usize) {
    let parts: Vec<CopyRange> = match ranges {
        [range] => {
            let part = range.bytes.div_ceil(threads).next_multiple_of(4096);
            let part_at = |at: usize| CopyRange {
                destination: range.destination.wrapping_add(at),
                source: range.source.wrapping_add(at),
                bytes: part.min(range.bytes - at),
            };
            (0..range.bytes).step_by(part).map(part_at).collect()
        }
        _ => ranges.to_vec(),
    };
    std::thread::scope(|scope| {
        for share in parts.chunks(parts.len().div_ceil(threads)) {
            let share: Vec<_> = share
                .iter()
                .map(|range| {
                    (range.destination.expose_provenance(), range.source.expose_provenance(), range.bytes)
                })
                .collect();
            scope.spawn(move || {
                for (destination, source, bytes) in share {
                    let source = std::ptr::with_exposed_provenance::<u8>(source);
                    let destination = std::ptr::with_exposed_provenance_mut(destination);
                    // SAFETY: the ranges are live until the scope ends, and no byte is in two of them.
                    unsafe { std::ptr::copy_nonoverlapping(source, destination, bytes) };
                }
            });
        }
    });
}
