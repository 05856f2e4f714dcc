//! The works: every list as a list, as three arrays, prepared and as rows, and by every peer.

use std::cell::RefCell;

use device_arena::backend::{Backend, Block, CopyRange, CopyRows, PreparedCopies, RowIndices};

use crate::memory::{Checked, Gpu, Pieces, words};
use crate::peers::{Batched, Columns, Kind};
use crate::report::{Report, Row};
use crate::timing::{Clock, Contender, Effort, Outcome, Span};
use crate::works::Work;

pub const COPIES: &str = "copies";

/// Ranges that the crate passes to its kernel by value; of more, the list is in memory that launches take turns with.
const BY_VALUE: usize = 256;

/// What a work needs beside the two pieces.
struct Prepared<'a> {
    gpu: &'a Gpu,
    ranges: Vec<CopyRange>,
    columns: Columns,
    prepared: PreparedCopies,
    rows: Option<CopyRows>,
    rows_by_number: Option<CopyRows>,
    numbers: Option<Block>,
    batched: Option<Batched<'a>>,
}

impl<'a> Prepared<'a> {
    fn new(gpu: &'a Gpu, pieces: &Pieces, work: &Work, report: &mut Report) -> Result<Self, String> {
        let ranges: Vec<CopyRange> = work.places.iter().map(|place| pieces.range(place)).collect();
        let mut columns = Columns::default();
        for range in &ranges {
            columns.to.push(range.destination.cast());
            columns.from.push(range.source.cast());
            columns.bytes.push(range.bytes);
        }
        let prepared = gpu.cuda.prepare(Some(&gpu.stream), &ranges).map_err(words)?;
        let mut numbers = None;
        let (mut rows, mut rows_by_number) = (None, None);
        if let Some(regular) = &work.regular {
            let in_order = CopyRows {
                destination: pieces.to(regular.first.to),
                source: pieces.from(regular.first.from),
                destination_stride: regular.destination_stride,
                source_stride: regular.source_stride,
                bytes: regular.first.bytes,
                count: regular.order.len(),
                destination_rows: RowIndices::InOrder,
                source_rows: RowIndices::InOrder,
            };
            rows = Some(in_order);
            let bytes = size_of_val(regular.order.as_slice());
            let block = gpu.block(bytes)?;
            // SAFETY: the block holds as many numbers.
            unsafe { gpu.transfer(block.address().as_ptr(), regular.order.as_ptr().cast(), bytes) }?;
            let order = RowIndices::U32(block.address().as_ptr().cast_const().cast());
            rows_by_number = Some(CopyRows { destination_rows: order, source_rows: order, ..in_order });
            numbers = Some(block);
        }
        let batched = gpu.peers.as_ref().and_then(|peers| {
            let batched = peers.batched(&columns).and_then(|batched| {
                batched.upload(gpu.raw)?;
                gpu.synchronize()?;
                Ok(batched)
            });
            batched.map_err(|words| report.note(format!("skipped: CUB of {}: {words}", work.id))).ok()
        });
        Ok(Self { gpu, ranges, columns, prepared, rows, rows_by_number, numbers, batched })
    }

    fn copy(&self) -> Outcome {
        // SAFETY: the ranges are of pieces that the bench has alone.
        unsafe { self.gpu.cuda.copy(Some(&self.gpu.stream), &self.ranges) }.map_err(words)
    }

    /// From the layout that the peers get.
    fn copy_columns(&self, list: &RefCell<Vec<CopyRange>>) -> Outcome {
        let Columns { to, from, bytes } = &self.columns;
        let mut list = list.borrow_mut();
        list.clear();
        list.extend(to.iter().zip(from).zip(bytes).map(|((to, from), bytes)| CopyRange {
            destination: to.cast(),
            source: from.cast(),
            bytes: *bytes,
        }));
        // SAFETY: as above.
        unsafe { self.gpu.cuda.copy(Some(&self.gpu.stream), &list) }.map_err(words)
    }

    fn launch(&self) -> Outcome {
        // SAFETY: as above; the list lives as long as this.
        unsafe { self.gpu.cuda.copy_prepared(Some(&self.gpu.stream), &self.prepared) }.map_err(words)
    }

    fn copy_rows(&self, rows: &CopyRows) -> Outcome {
        // SAFETY: as above; the numbers live as long as this.
        unsafe { self.gpu.cuda.copy_rows(Some(&self.gpu.stream), rows) }.map_err(words)
    }

    fn peer_loop(&self) -> Outcome {
        let Some(peers) = &self.gpu.peers else {
            // The driver's own, without the runtime around it.
            let Columns { to, from, bytes } = &self.columns;
            let mut ranges = to.iter().zip(from).zip(bytes);
            return ranges.try_for_each(|((to, from), bytes)| {
                // SAFETY: as above.
                unsafe { self.gpu.driver.copy(to.cast(), from.cast(), *bytes, self.gpu.raw) }
            });
        };
        // SAFETY: as above.
        unsafe { peers.copy_loop(&self.columns, Kind::DeviceToDevice, self.gpu.raw) }
    }

    /// Everybody. For device times CUB's list is on the device already, and three arrays are left out: they become a list on
    /// the host.
    fn contenders<'b>(&'b self, span: Span, scratch: &'b RefCell<Vec<CopyRange>>) -> Vec<Contender<'b>> {
        let raw = self.gpu.raw;
        let mut all = vec![Contender::new("copy", || self.copy())];
        if self.ranges.len() > BY_VALUE {
            all = all.into_iter().map(Contender::one_launch_at_a_time).collect();
        }
        if span == Span::EndToEnd {
            all.push(Contender::new("three arrays", || self.copy_columns(scratch)));
        }
        all.push(Contender::new("prepared", || self.launch()));
        if let Some(rows) = &self.rows {
            all.push(Contender::new("rows", || self.copy_rows(rows)));
        }
        if let Some(rows) = &self.rows_by_number {
            all.push(Contender::new("rows by number", || self.copy_rows(rows)));
        }
        all.push(Contender::new("loop", || self.peer_loop()).one_launch_at_a_time());
        if let Some(peers) = &self.gpu.peers {
            // SAFETY: as above.
            let batch = move || unsafe { peers.copy_batch(&self.columns, raw) };
            all.push(Contender::new("batch call", batch).one_launch_at_a_time());
            if let Some(batched) = &self.batched {
                let queue = move || {
                    if span == Span::EndToEnd {
                        batched.upload(raw)?;
                    }
                    // SAFETY: as above; the list was uploaded.
                    unsafe { batched.launch(raw) }
                };
                all.push(Contender::new("CUB", queue));
            }
            if span == Span::EndToEnd {
                all.push(Contender::new("empty launch", move || peers.launch_nothing(raw)));
            }
        }
        all
    }

    /// Every way of moving the bytes, held against what has to be there.
    fn check(&self, pieces: &Pieces, work: &Work, report: &mut Report) {
        let scratch = RefCell::default();
        for mut contender in self.contenders(Span::EndToEnd, &scratch) {
            if contender.who == "empty launch" {
                continue;
            }
            match pieces.check(self.gpu, work, &mut || contender.queue_once()) {
                Ok(Checked::Right) => {}
                Ok(Checked::Wrong { at }) => {
                    report
                        .wrong
                        .push(format!("WRONG BYTES: {} of {}: at offset {at}", contender.who, work.id));
                }
                Err(words) => report.note(format!("not checked: {} of {}: {words}", contender.who, work.id)),
            }
        }
    }
}

/// The driver's own copies and fills of the sizes that are the ceiling.
pub fn ceiling(gpu: &Gpu, pieces: &Pieces, clock: &Clock<'_>, report: &mut Report) {
    let mut best: Option<f64> = None;
    for gib in [1, 4] {
        let bytes = gpu.effort.scaled(gib << 30);
        let driver = &gpu.driver;
        let mut row = Row::new("ceiling", format!("{gib} GiB"), 1, 2 * bytes as u64);
        // SAFETY: both pieces are at least as long.
        let copy = || unsafe { driver.copy(pieces.to(0), pieces.from(0), bytes, gpu.raw) };
        // SAFETY: as above.
        let fill = || unsafe { driver.fill(pieces.to(0), 0, bytes, gpu.raw) };
        let mut contenders = [Contender::new("cuMemcpyAsync", copy), Contender::new("cuMemsetD8Async", fill)];
        let timed = clock.device(&mut contenders);
        report.add(&mut row, Span::Device, timed);
        let rate = row.time("cuMemcpyAsync", Span::Device).map(|time| row.bytes as f64 / time);
        best = best.into_iter().chain(rate).max_by(f64::total_cmp);
        report.rows.push(row);
    }
    report.ceiling = best;
}

/// One work.
fn measure(gpu: &Gpu, pieces: &Pieces, clock: &Clock<'_>, work: &Work, report: &mut Report) -> Outcome {
    let prepared = Prepared::new(gpu, pieces, work, report)?;
    prepared.check(pieces, work, report);
    let scratch = RefCell::default();
    let mut row = Row::new(COPIES, work.id.as_str(), work.places.len() as u64, 2 * work.bytes());
    let mut contenders = prepared.contenders(Span::EndToEnd, &scratch);
    let timed = clock.end_to_end(&mut contenders);
    drop(contenders);
    report.add(&mut row, Span::EndToEnd, timed);
    // What the device does in the time of a long loop is wait for the host.
    let is_slow = |who: &str| row.time(who, Span::EndToEnd).is_some_and(|time| time > 5e3);
    let leaves_out =
        |who: &str| gpu.effort != Effort::Whole && matches!(who, "loop" | "batch call") && is_slow(who);
    let mut contenders = prepared.contenders(Span::Device, &scratch);
    contenders.retain(|contender| !leaves_out(contender.who));
    let timed = clock.device(&mut contenders);
    drop(contenders);
    report.add(&mut row, Span::Device, timed);
    report.rows.push(row);
    gpu.synchronize()?;
    prepared.numbers.into_iter().for_each(|block| gpu.free(block));
    Ok(())
}

/// All works.
pub fn works(gpu: &Gpu, pieces: &Pieces, clock: &Clock<'_>, works: &[Work], report: &mut Report) {
    for work in works {
        if let Err(words) = measure(gpu, pieces, clock, work, report) {
            report.note(format!("skipped: copies {}: {words}", work.id));
        }
    }
}
