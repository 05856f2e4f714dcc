//! Lists in pinned memory, for as many ranges as no launch carries itself.

use std::sync::{Mutex, PoisonError};

use super::blocks;
use super::event::GpuEvent;
use super::list::Listed;
use super::stream::GpuStream;
use crate::backend::{Block, CopyRange, Placement};
use crate::backends::kernels::CopyRange as KernelCopy;
use crate::error::Result;

/// Ranges of one list.
pub(super) const LONG_LIST: usize = 4096;

/// Lists that can be on their way at once.
const LISTS: usize = 4;

/// Pinned memory that holds long lists until their launch has passed.
#[derive(Debug, Default)]
pub(super) struct LongLists(Mutex<Vec<List>>);

#[derive(Debug)]
struct List {
    block: Block,
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
            let _ = unsafe { blocks::free(None, list.block) };
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
        let event = GpuEvent::new(stream.device())?;
        let bytes = LONG_LIST * size_of::<KernelCopy>();
        Ok(List { block: blocks::allocate(stream.device(), Placement::HostCoherent, bytes)?, event })
    }
}

/// # Safety
///
/// As [`copies::copy`](super::copies::copy); there are no more ranges than a long list holds.
pub(super) unsafe fn copy(stream: &GpuStream, ranges: &[CopyRange]) -> Result<()> {
    debug_assert!(ranges.len() <= LONG_LIST);
    let kernels = stream.device().kernels()?;
    let list = stream.long_lists.take(stream)?;
    // SAFETY: the block holds as many ranges, the host reaches it, and no launch reads it.
    let places = unsafe {
        std::slice::from_raw_parts_mut(list.block.address.as_ptr().cast::<KernelCopy>(), LONG_LIST)
    };
    let listed = Listed::write(places, ranges);
    let address = list.block.address.as_ptr().addr();
    let mut arguments = listed.arguments(&address);
    let shape = listed.shape(&stream.device().limits);
    // Held until the event is recorded: a capture that began in between would take it.
    let queueing = stream.queue_outside_captures("copy");
    let launched = queueing.and_then(|queueing| {
        // SAFETY: the arguments are as the kernel declares them; the list stays as it is until the event has passed.
        unsafe { listed.kernel(kernels).launch_queued(stream, &queueing, shape, &mut arguments) }?;
        // Where no event says when the list is free again, the stream does.
        Ok(list.event.record(stream).or_else(|_| stream.wait_for_borrowed(queueing)).is_ok())
    });
    // One that was refused is free: its event has passed.
    let (noted, launched) = launched.map_or_else(|error| (true, Err(error)), |noted| (noted, Ok(())));
    if noted {
        stream.long_lists.lock().push(list);
    }
    launched
}
