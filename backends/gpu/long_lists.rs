//! Lists of as many ranges as no launch carries itself: they are written into pinned memory, and most are taken from there
//! into the device's by a launch of their own before the one that reads them. The device looks into a list more often than
//! once, and each look at the host's memory takes it a microsecond or two.

use std::sync::{Mutex, PoisonError};

use super::blocks;
use super::event::GpuEvent;
use super::list::{self, Listed, RANGE_WORDS};
use super::stream::{GpuStream, Queueing};
use crate::backend::{Block, CopyRange, Placement};
use crate::error::Result;

/// Ranges of one list. The device copies those of one while the host writes the next.
pub(super) const LONG_LIST: usize = 16384;

/// Tiles of a list that is read where it was written, at most, if no range of it has to be looked for: one launch is sooner
/// under way than two, as long as few tiles read in the host's memory. Measured on an H200.
const READ_IN_PLACE: u64 = 2048;

/// Ranges that there is room for in each list.
const LEAST: usize = 1024;

/// Lists that can be on their way at once.
const LISTS: usize = 4;

/// Memory that holds long lists until their launch has passed.
#[derive(Debug, Default)]
pub(super) struct LongLists(Mutex<Vec<List>>);

#[derive(Debug)]
struct List {
    /// Pinned: what the host writes.
    written: Block,
    /// As long, on the device; none before it is needed, and where there is no memory for it.
    taken: Option<Block>,
    /// Behind the launch that reads the list.
    event: GpuEvent,
}

impl LongLists {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<List>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the lists, each once its launch has passed: a capture of the stream that began behind that has nothing to say to
    /// it. A list that can't be waited for is left to the driver, which may read it still.
    pub(super) fn free(&self) {
        let lists = std::mem::take(&mut *self.lock());
        for list in lists {
            if list.event.wait(None).is_err_and(|error| !error.is_of_lost_device()) {
                continue;
            }
            // SAFETY: the list was taken out, and the launch that read it has passed, or its device is lost.
            unsafe { list.free() };
        }
    }

    /// A list that no launch reads any more, with room for as many ranges.
    fn take(&self, stream: &GpuStream, ranges: usize) -> Result<List> {
        let mut lists = self.lock();
        let mut free = None;
        for (at, list) in lists.iter().enumerate() {
            if list.holds(ranges) && list.event.has_passed()? {
                free = Some(at);
                break;
            }
        }
        if free.is_none() && lists.len() >= LISTS {
            // The first was launched first.
            lists.first().map_or(Ok(true), |list| list.event.wait(None))?;
            free = Some(0);
        }
        let list = free.map(|at| lists.remove(at));
        drop(lists);
        match list {
            Some(list) if list.holds(ranges) => return Ok(list),
            // SAFETY: the list was taken out, and the launch that read it has passed.
            Some(list) => unsafe { list.free() },
            None => {}
        }
        List::new(stream, ranges)
    }
}

impl List {
    fn new(stream: &GpuStream, ranges: usize) -> Result<Self> {
        let room = ranges.max(LEAST).next_power_of_two();
        let bytes = room * RANGE_WORDS * size_of::<u64>();
        let event = GpuEvent::new(stream.device())?;
        let written = blocks::allocate(stream.device(), Placement::HostCoherent, bytes)?;
        Ok(Self { written, taken: None, event })
    }

    fn holds(&self, ranges: usize) -> bool {
        self.written.bytes / (RANGE_WORDS * size_of::<u64>()) >= ranges
    }

    /// # Safety
    ///
    /// Nothing reads the list.
    unsafe fn free(self) {
        for block in [Some(self.written), self.taken].into_iter().flatten() {
            // SAFETY: the caller's promise is the same.
            let _ = unsafe { blocks::free(None, block) };
        }
    }

    /// Writes the ranges, and makes what the device is to have them in. None where some overlap themselves, which is seen on
    /// the way, and `may_overlap` says that they may not.
    ///
    /// # Safety
    ///
    /// Nothing reads the list, and it holds as many ranges.
    unsafe fn write(
        &mut self,
        stream: &GpuStream,
        ranges: &[CopyRange],
        may_overlap: impl FnOnce() -> bool,
    ) -> Option<Listed> {
        debug_assert!(self.holds(ranges.len()));
        let words = self.written.address.as_ptr().cast::<u64>();
        // SAFETY: the block has as many words, at their alignment; the host reaches it, and nothing reads it, by the caller.
        let words = unsafe { std::slice::from_raw_parts_mut(words, self.written.bytes / size_of::<u64>()) };
        let listed = Listed::write_words(words, ranges);
        if listed.has_overlaps() && !may_overlap() {
            return None;
        }
        if !listed.is_read_in_few_trips(READ_IN_PLACE) && self.taken.is_none() {
            // Where there is no memory for it, the list is read where it was written: that takes longer, and no more.
            self.taken = blocks::allocate(stream.device(), Placement::Device, self.written.bytes).ok();
        }
        Some(listed)
    }

    /// Queues what the ranges are copied by.
    ///
    /// # Safety
    ///
    /// As [`copies::copy`](super::copies::copy), for the ranges that were [written](Self::write) last; the list stays as it is
    /// until the stream has passed.
    unsafe fn launch(&self, stream: &GpuStream, queueing: &Queueing<'_>, listed: &Listed) -> Result<()> {
        let mut list = self.written.address.as_ptr();
        let taken = self.taken.as_ref().filter(|_| !listed.is_read_in_few_trips(READ_IN_PLACE));
        if let Some(taken) = taken.map(|block| block.address.as_ptr()) {
            let take = CopyRange { destination: taken, source: list.cast_const(), bytes: listed.bytes() };
            // SAFETY: both blocks hold as many bytes, and are the list's own.
            unsafe { list::copy_few_queued(stream, queueing, &[take]) }?;
            list = taken;
        }
        // SAFETY: list and ranges are the caller's promise.
        unsafe { listed.launch(stream, queueing, list.addr()) }
    }
}

/// False where nothing was queued, because some ranges overlap themselves and `may_overlap` says that they may not.
///
/// # Safety
///
/// As [`copies::copy`](super::copies::copy); there are no more ranges than a long list holds.
pub(super) unsafe fn copy(
    stream: &GpuStream,
    ranges: &[CopyRange],
    may_overlap: impl FnOnce() -> bool,
) -> Result<bool> {
    debug_assert!(ranges.len() <= LONG_LIST);
    let mut list = stream.long_lists.take(stream, ranges.len())?;
    let unused = |list, outcome| {
        stream.long_lists.lock().push(list);
        outcome
    };
    // SAFETY: no launch reads a list that was taken, and it has room.
    let listed = match unsafe { list.write(stream, ranges, may_overlap) } {
        Some(listed) if !listed.is_empty() => listed,
        nothing => return unused(list, Ok(nothing.is_some())),
    };
    // Held until the event is recorded: a capture that began in between would take it.
    let queueing = match stream.queue_outside_captures("copy") {
        Ok(queueing) => queueing,
        Err(error) => return unused(list, Err(error)),
    };
    // SAFETY: the list was written, and none gets it again before the event has passed.
    let launched = unsafe { list.launch(stream, &queueing, &listed) };
    // Of a launch that was refused, what the list was to be taken by may be under way. Where no event says when the list is
    // free again, the stream does; and where that does not, nobody gets it.
    let noted = list.event.record(stream).or_else(|_| stream.wait_for_borrowed(queueing));
    if noted.is_ok() {
        stream.long_lists.lock().push(list);
    }
    launched.map(|()| true)
}
