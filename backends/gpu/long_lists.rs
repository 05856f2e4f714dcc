//! Lists of as many ranges as no launch carries itself: they are written into pinned memory, and most are taken from there
//! into the device's by a launch of their own before the one that reads them. The device looks into a list more often than
//! once, and each look at the host's memory takes it a microsecond or two.

use std::sync::{Mutex, PoisonError};

use super::blocks;
use super::event::GpuEvent;
use super::list::{self, Listed, RANGE_WORDS};
use super::moves::is_long_move;
use super::stream::{GpuStream, Queueing};
use crate::backend::{Block, CopyRange, Placement};
use crate::error::Result;

/// Ranges of one list. The device copies those of one while the host writes the next.
pub(super) const LONG_LIST: usize = 16384;

/// Ranges of a list that is read where it was written, at most, if no range of it has to be looked for: one launch is sooner
/// under way than two. Measured on an H200.
const READ_IN_PLACE: usize = 1024;

/// Words of one list.
const WORDS: usize = LONG_LIST * RANGE_WORDS;

/// Lists that can be on their way at once.
const LISTS: usize = 4;

/// Memory that holds long lists until their launch has passed.
#[derive(Debug, Default)]
pub(super) struct LongLists(Mutex<Vec<List>>);

#[derive(Debug)]
struct List {
    /// Pinned: what the host writes.
    written: Block,
    /// On the device.
    taken: Block,
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
            for block in [list.written, list.taken] {
                // SAFETY: the list was taken out, and the launch that read it has passed, or its device is lost.
                let _ = unsafe { blocks::free(None, block) };
            }
        }
    }

    /// A list that no launch reads any more.
    fn take(&self, stream: &GpuStream) -> Result<List> {
        let mut lists = self.lock();
        let mut free = None;
        for (at, list) in lists.iter().enumerate() {
            if list.event.has_passed()? {
                free = Some(at);
                break;
            }
        }
        if free.is_none() && lists.len() >= LISTS {
            // The first was launched first.
            lists.first().map_or(Ok(true), |list| list.event.wait(None))?;
            free = Some(0);
        }
        if let Some(at) = free {
            return Ok(lists.remove(at));
        }
        drop(lists);
        List::new(stream)
    }
}

impl List {
    fn new(stream: &GpuStream) -> Result<Self> {
        let device = stream.device();
        let event = GpuEvent::new(device)?;
        let bytes = WORDS * size_of::<u64>();
        let written = blocks::allocate(device, Placement::HostCoherent, bytes)?;
        match blocks::allocate(device, Placement::Device, bytes) {
            Ok(taken) => Ok(Self { written, taken, event }),
            Err(error) => {
                // SAFETY: nobody knows of the block.
                let _ = unsafe { blocks::free(None, written) };
                Err(error)
            }
        }
    }

    /// Queues what the ranges are copied by. False where nothing was, because one of them [is long](is_long_move).
    ///
    /// # Safety
    ///
    /// As [`copies::copy`](super::copies::copy); no launch that is under way reads the list, there are no more ranges than it
    /// holds, and it stays as it is until the stream has passed.
    unsafe fn launch(
        &self,
        stream: &GpuStream,
        queueing: &Queueing<'_>,
        ranges: &[CopyRange],
    ) -> Result<bool> {
        debug_assert!(ranges.len() <= LONG_LIST);
        let (written, taken) = (self.written.address.as_ptr(), self.taken.address.as_ptr());
        // SAFETY: the block has as many words, at their alignment; the host reaches it, and nothing reads it, by the caller.
        let words = unsafe { std::slice::from_raw_parts_mut(written.cast::<u64>(), WORDS) };
        let listed = Listed::write_words(words, ranges);
        if listed.has_overlaps() && ranges.iter().any(is_long_move) {
            return Ok(false);
        }
        if listed.is_empty() {
            return Ok(true);
        }
        let mut list = written;
        if !listed.is_read_once(READ_IN_PLACE) {
            list = taken;
            let take = CopyRange { destination: taken, source: written.cast_const(), bytes: listed.bytes() };
            // SAFETY: both blocks hold as many bytes, and are the list's own.
            unsafe { list::copy_few_queued(stream, queueing, &[take]) }?;
        }
        // SAFETY: list and ranges are the caller's promise.
        unsafe { listed.launch(stream, queueing, list.addr()) }?;
        Ok(true)
    }
}

/// False where nothing was queued, because a range [is long](is_long_move) and overlaps itself, which is seen on the way.
///
/// # Safety
///
/// As [`copies::copy`](super::copies::copy); there are no more ranges than a long list holds.
pub(super) unsafe fn copy(stream: &GpuStream, ranges: &[CopyRange]) -> Result<bool> {
    debug_assert!(ranges.len() <= LONG_LIST);
    let list = stream.long_lists.take(stream)?;
    // Held until the event is recorded: a capture that began in between would take it.
    let queueing = match stream.queue_outside_captures("copy") {
        Ok(queueing) => queueing,
        Err(error) => {
            stream.long_lists.lock().push(list);
            return Err(error);
        }
    };
    // SAFETY: no launch reads a list that was taken, and none gets it again before the event has passed.
    let launched = unsafe { list.launch(stream, &queueing, ranges) };
    // Of a launch that was refused, what the list was to be taken by may be under way. Where no event says when the list is
    // free again, the stream does; and where that does not, nobody gets it.
    let noted = list.event.record(stream).or_else(|_| stream.wait_for_borrowed(queueing));
    if noted.is_ok() {
        stream.long_lists.lock().push(list);
    }
    launched
}
