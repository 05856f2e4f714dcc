//! Lists of copies in a device's memory, launched again and again.

use std::sync::{Arc, Mutex, PoisonError};

use super::copies;
use super::device::Device;
use super::library::check_not_forked;
use super::list::{Listed, RANGE_WORDS};
use super::stream::{self, GpuStream};
use super::{blocks, watcher};
use crate::backend::{Block, CopyRange, Placement, Vendor};
use crate::error::{Error, Result};

/// A list in device memory. Dropped, it is freed once the streams that it was launched in have passed.
#[derive(Debug)]
pub(crate) struct GpuPrepared {
    device: Arc<Device>,
    listed: Listed,
    /// None where there are no bytes.
    held: Option<Held>,
}

/// What is given back.
#[derive(Debug)]
struct Held {
    /// None once it is freed.
    block: Option<Block>,
    /// Where the list was launched.
    streams: Mutex<Vec<Arc<GpuStream>>>,
}

impl GpuPrepared {
    pub(super) fn new(stream: &Arc<GpuStream>, ranges: &[CopyRange]) -> Result<Self> {
        let device = Arc::clone(stream.device());
        // Here, since a capture may be under way when the list is launched.
        device.kernels()?;
        let mut list = vec![0u64; ranges.len() * RANGE_WORDS];
        let listed = Listed::write_words(&mut list, ranges);
        if listed.is_empty() {
            return Ok(Self { device, listed, held: None });
        }
        let bytes = listed.bytes();
        let queueing = stream.queue_outside_captures("prepare")?;
        let block = blocks::allocate(&device, Placement::Device, bytes)?;
        let upload =
            CopyRange { destination: block.address.as_ptr(), source: list.as_ptr().cast::<u8>(), bytes };
        // SAFETY: both ends are as long, and live until the stream has passed, which is waited for.
        let uploaded = unsafe { copies::transfer(stream, &queueing, upload) };
        let outcome = uploaded.and_then(|()| stream.wait_for_borrowed(queueing));
        // Where it failed, the list goes, behind what may be on its way to it.
        let streams = outcome.as_ref().map_or_else(|_| vec![Arc::clone(stream)], |()| Vec::new());
        let held = Held { block: Some(block), streams: Mutex::new(streams) };
        let prepared = Self { device, listed, held: Some(held) };
        outcome.map(|()| prepared)
    }

    pub(super) fn vendor(&self) -> Vendor {
        self.device.driver.vendor()
    }

    /// # Safety
    ///
    /// As [`crate::backend::Backend::copy_prepared`].
    pub(super) unsafe fn launch(&self, stream: &Arc<GpuStream>) -> Result<()> {
        if stream.device().context() != self.device.context() {
            return Err(Error::Option { option: "stream", reason: "the list is in another device's memory" });
        }
        let Some(Held { block: Some(block), streams }) = &self.held else { return Ok(()) };
        {
            let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
            if !streams.iter().any(|known| known.identity() == stream.identity()) {
                streams.push(Arc::clone(stream));
            }
        }
        let address = block.address.as_ptr().addr();
        let queueing = stream.queue("copy_prepared")?;
        // SAFETY: the list stays until the stream has passed, and longer where a graph needs it, by the caller. So do the ranges.
        unsafe { self.listed.launch(stream, &queueing, address) }
    }
}

impl Held {
    /// Waits and frees. False where either failed for now: what is left is done another time.
    fn free(&mut self) -> bool {
        let streams = self.streams.get_mut().unwrap_or_else(PoisonError::into_inner);
        while let Some(stream) = streams.last() {
            let queueing = stream.queue_outside_captures("free");
            match queueing.and_then(|queueing| stream.wait_for_borrowed(queueing)) {
                Err(error) if !error.is_of_lost_device() => return false,
                // A lost device reads nothing any more.
                _ => drop(streams.pop()),
            }
        }
        let Some(block) = self.block.take() else { return true };
        // SAFETY: the list is nobody else's, and all launches have passed.
        match unsafe { blocks::free(None, block) } {
            Err(refused) if !refused.error.is_of_lost_device() => {
                self.block = Some(refused.value);
                false
            }
            _ => true,
        }
    }
}

impl Drop for GpuPrepared {
    fn drop(&mut self) {
        let Some(mut held) = self.held.take() else { return };
        if check_not_forked(self.vendor()).is_err() {
            // The memory is the parent's, whose threads are not here.
            return;
        }
        let can_wait = !stream::is_in_host_work() && crate::backends::host::can_wait();
        if !(can_wait && held.free()) {
            watcher::retry(Box::new(move || held.free()));
        }
    }
}
