//! The host: pages of the operating system, a queue with one worker thread as its stream.

mod event;
mod pages;
mod stream;

use std::any::Any;
use std::ffi::c_void;
use std::time::Duration;

pub(crate) use event::HostEvent;
pub(crate) use stream::HostStream;

use crate::backend::{
    Backend, Block, CopyRange, DeviceInfo, Event, EventKind, HostWork, Origin, ScrubRange, Stream,
    StreamKind, Vendor,
};
use crate::error::{Error, Refused, Result};
use crate::pointer::PointerInfo;

/// The backend of the host. It has one device, ordinal 0: the processor and its memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Host;

fn host_stream(stream: &Stream) -> &HostStream {
    let StreamKind::Host(stream) = &stream.0;
    stream
}

fn host_event(event: &Event) -> &HostEvent {
    let EventKind::Host(event) = &event.0;
    event
}

fn check_ordinal(ordinal: u32) -> Result<()> {
    if ordinal == 0 {
        return Ok(());
    }
    Err(Error::Unavailable {
        vendor: Vendor::Host,
        detail: format!("there is no ordinal {ordinal}, the host is ordinal 0"),
    })
}

impl Backend for Host {
    fn vendor(&self) -> Vendor {
        Vendor::Host
    }

    fn is_host_accessible(&self) -> bool {
        true
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![DeviceInfo {
            ordinal: 0,
            name: "host".into(),
            architecture: std::env::consts::ARCH.into(),
            total_bytes: pages::total_bytes(),
        }])
    }

    unsafe fn classify(&self, _pointer: *const u8) -> Result<PointerInfo> {
        // The host registers nothing, and can't tell live memory from freed.
        Ok(PointerInfo::UNREGISTERED)
    }

    fn block_alignment(&self) -> usize {
        pages::PAGE
    }

    fn output_alignment(&self) -> usize {
        // A cache line of x86-64 and most of arm64, and the widest vector register.
        64
    }

    fn allocate(&self, ordinal: u32, bytes: usize) -> Result<Block> {
        check_ordinal(ordinal)?;
        pages::allocate(bytes)
    }

    unsafe fn free(&self, block: Block) -> Result<(), Refused<Block>> {
        // The mapping ends with its owner.
        let Origin::Pages(pages) = block.origin;
        drop(pages);
        Ok(())
    }

    fn create_stream(&self, ordinal: u32) -> Result<Stream> {
        check_ordinal(ordinal)?;
        Ok(Stream(StreamKind::Host(HostStream::new())))
    }

    unsafe fn adopt_stream(
        &self,
        raw: *mut c_void,
        keep_alive: Box<dyn Any + Send + Sync>,
    ) -> Result<Stream> {
        if raw.is_null() {
            return Err(crate::backend::wrong_vendor("adopt_stream", "null stream", Vendor::Host));
        }
        // SAFETY: the caller vouches that `raw` is a live host stream's handle.
        Ok(Stream(StreamKind::Host(unsafe { HostStream::adopt(raw, keep_alive) })))
    }

    fn raw_stream(&self, stream: &Stream) -> Result<*mut c_void> {
        Ok(host_stream(stream).raw())
    }

    fn start(&self, stream: &Stream) -> Result<()> {
        host_stream(stream).start()
    }

    fn enqueue(&self, stream: &Stream, work: HostWork) -> Result<Event, Refused<HostWork>> {
        host_stream(stream).enqueue(work).map(|event| Event(EventKind::Host(event)))
    }

    fn record(&self, stream: &Stream) -> Result<Event> {
        Ok(Event(EventKind::Host(host_stream(stream).record())))
    }

    fn stream_wait(&self, stream: &Stream, event: &Event) -> Result<()> {
        host_stream(stream).wait_for(host_event(event).clone())
    }

    fn has_passed(&self, event: &Event) -> Result<bool> {
        Ok(host_event(event).has_passed())
    }

    fn wait(&self, event: &Event, timeout: Option<Duration>) -> Result<bool> {
        host_event(event).wait(timeout)
    }

    fn can_wait(&self) -> bool {
        !stream::is_worker()
    }

    fn notify(&self, event: &Event, then: HostWork) -> Result<(), Refused<HostWork>> {
        host_event(event).notify(then);
        Ok(())
    }

    unsafe fn copy(&self, stream: Option<&Stream>, ranges: &[CopyRange]) -> Result<()> {
        let ranges = ranges.to_vec();
        in_order(stream, move || {
            for range in &ranges {
                // SAFETY: the caller of `copy` vouches that each range is live and untouched until the stream
                // has passed, which is here; `copy` allows the range to overlap itself.
                unsafe { std::ptr::copy(range.source, range.destination, range.bytes) };
            }
        })
    }

    unsafe fn rewind(&self, stream: Option<&Stream>, ranges: &[ScrubRange]) -> Result<()> {
        if stream.is_none() {
            // SAFETY: the caller of `rewind` holds each range alone.
            unsafe { fill(ranges) };
            return Ok(());
        }
        let ranges = ranges.to_vec();
        // SAFETY: as above, until the stream has passed.
        in_order(stream, move || unsafe { fill(&ranges) })
    }
}

/// Fills each range with its value.
///
/// # Safety
///
/// The caller holds each range alone, and each lies within live host memory.
unsafe fn fill(ranges: &[ScrubRange]) {
    for range in ranges {
        debug_assert!(!range.address.is_null());
        // SAFETY: this function's own contract.
        unsafe { range.address.write_bytes(range.value, range.bytes) };
    }
}

/// Runs `work` now where nothing is ahead of it, and on the stream's worker otherwise.
fn in_order(stream: Option<&Stream>, work: impl FnOnce() + Send + 'static) -> Result<()> {
    match stream.map(host_stream) {
        Some(stream) if !stream.is_idle() => stream.enqueue(Box::new(work)).map(drop).map_err(Error::from),
        _ => {
            work();
            Ok(())
        }
    }
}
