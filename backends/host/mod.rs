//! The host: pages of the operating system, a queue with one worker thread as its stream, copies by several threads.

mod copies;
mod event;
mod pages;
mod stream;

use std::any::Any;
use std::ffi::c_void;
use std::time::Duration;

pub(crate) use event::HostEvent;
pub(crate) use stream::HostStream;

use crate::backend::{
    Backend, Block, CopyRange, CopyRows, DeviceInfo, Event, EventKind, HostRetry, HostWork, Origin,
    Placement, PreparedCopies, PreparedKind, RoomReset, ScrubRange, Stream, StreamKind, Vendor, fill_on_host,
    wrong_vendor,
};
use crate::error::{Error, Refused, Result};
use crate::pointer::PointerInfo;

/// The backend of the host. It has one device, ordinal 0: the processor and its memory. Copies of 16 MiB and more in one list
/// are made by 2 to 8 threads, which are half the cores, where the calling thread may use 4 or more.
#[derive(Debug, Clone, Copy, Default)]
pub struct Host;

#[cfg_attr(not(gpu), allow(unused_variables, reason = "there is no other vendor to refuse"))]
fn host_stream<'s>(operation: &'static str, stream: &'s Stream) -> Result<&'s HostStream> {
    match &stream.0 {
        StreamKind::Host(stream) => Ok(stream),
        #[cfg(gpu)]
        StreamKind::Gpu(_) => Err(wrong_vendor(operation, "stream", Vendor::Host)),
    }
}

#[cfg_attr(not(gpu), allow(unused_variables, reason = "there is no other vendor to refuse"))]
fn host_event<'e>(operation: &'static str, event: &'e Event) -> Result<&'e HostEvent> {
    match &event.0 {
        EventKind::Host(event) => Ok(event),
        #[cfg(gpu)]
        EventKind::Gpu(_) => Err(wrong_vendor(operation, "event", Vendor::Host)),
    }
}

/// The memory that the system has available, where it says so.
pub(crate) fn free_bytes() -> Option<u64> {
    pages::free_bytes()
}

/// Whether the calling thread may wait for a host stream: it may not where it does the work of one.
pub(crate) fn can_wait() -> bool {
    !stream::is_worker()
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

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn is_host_accessible(&self, _placement: Placement) -> bool {
        true
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![DeviceInfo {
            ordinal: 0,
            name: "host".into(),
            architecture: std::env::consts::ARCH.into(),
            total_bytes: pages::total_bytes(),
            reaches_pageable_memory: true,
            shares_page_tables: true,
            multiprocessors: None,
            block_threads: None,
            pci_address: None,
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

    fn allocate(
        &self,
        ordinal: u32,
        _stream: Option<&Stream>,
        _placement: Placement,
        bytes: usize,
    ) -> Result<Block> {
        check_ordinal(ordinal)?;
        pages::allocate(bytes)
    }

    unsafe fn free(&self, _stream: Option<&Stream>, block: Block) -> Result<(), Refused<Block>> {
        match block.origin {
            // The mapping ends with its owner.
            Origin::Pages(pages) => drop(pages),
            #[cfg(gpu)]
            Origin::Gpu(_) => return Err(Refused::new(wrong_vendor("free", "block", Vendor::Host), block)),
        }
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
    ) -> Result<Stream, Refused<Box<dyn Any + Send + Sync>>> {
        if raw.is_null() {
            let error = wrong_vendor("adopt_stream", "null stream", Vendor::Host);
            return Err(Refused::new(error, keep_alive));
        }
        // SAFETY: the caller vouches that `raw` is a live host stream's handle.
        Ok(Stream(StreamKind::Host(unsafe { HostStream::adopt(raw, keep_alive) })))
    }

    fn raw_stream(&self, stream: &Stream) -> Result<*mut c_void> {
        Ok(host_stream("raw_stream", stream)?.raw())
    }

    fn start(&self, stream: &Stream) -> Result<()> {
        host_stream("start", stream)?.start()
    }

    fn enqueue(&self, stream: &Stream, work: HostWork) -> Result<Event, Refused<HostWork>> {
        match host_stream("enqueue", stream) {
            Ok(stream) => stream.enqueue(work).map(|event| Event(EventKind::Host(event))),
            Err(error) => Err(Refused::new(error, work)),
        }
    }

    fn record(&self, stream: &Stream) -> Result<Event> {
        Ok(Event(EventKind::Host(host_stream("record", stream)?.record())))
    }

    fn stream_wait(&self, stream: &Stream, event: &Event) -> Result<()> {
        host_stream("stream_wait", stream)?.wait_for(host_event("stream_wait", event)?.clone())
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        host_stream("synchronize", stream)?.record().wait(None).map(drop)
    }

    fn is_capturing(&self, _stream: &Stream) -> Result<bool> {
        Ok(false)
    }

    fn is_idle(&self, stream: &Stream) -> Result<bool> {
        Ok(host_stream("is_idle", stream)?.is_idle())
    }

    fn has_passed(&self, event: &Event) -> Result<bool> {
        Ok(host_event("has_passed", event)?.has_passed())
    }

    fn wait(&self, event: &Event, timeout: Option<Duration>) -> Result<bool> {
        host_event("wait", event)?.wait(timeout)
    }

    fn can_wait(&self) -> bool {
        can_wait()
    }

    fn notify(&self, event: &Event, then: HostWork) -> Result<(), Refused<HostWork>> {
        match host_event("notify", event) {
            Ok(event) => {
                event.notify(then);
                Ok(())
            }
            Err(error) => Err(Refused::new(error, then)),
        }
    }

    fn retry(&self, mut work: HostRetry) {
        work();
    }

    unsafe fn copy(&self, stream: Option<&Stream>, ranges: &[CopyRange]) -> Result<()> {
        if is_idle(stream)? {
            // SAFETY: the caller of `copy` vouches that each range is live and untouched until the stream has passed, which
            // is here.
            unsafe { copies::copy(ranges) };
            return Ok(());
        }
        let ranges = ranges.to_vec();
        // SAFETY: as above, when the work's turn comes.
        in_order(stream, move || unsafe { copies::copy(&ranges) })
    }

    unsafe fn copy_rows(&self, stream: Option<&Stream>, rows: &CopyRows) -> Result<()> {
        if is_idle(stream)? {
            // SAFETY: as above, of rows and their numbers.
            unsafe { copies::copy_rows(rows) };
            return Ok(());
        }
        let rows = *rows;
        // SAFETY: as above, when the work's turn comes.
        in_order(stream, move || unsafe { copies::copy_rows(&rows) })
    }

    fn prepare(&self, stream: Option<&Stream>, ranges: &[CopyRange]) -> Result<PreparedCopies> {
        stream.map(|stream| host_stream("prepare", stream)).transpose()?;
        Ok(PreparedCopies::new(PreparedKind::Host(ranges.into()), ranges))
    }

    unsafe fn copy_prepared(&self, stream: Option<&Stream>, prepared: &PreparedCopies) -> Result<()> {
        let ranges = match &prepared.kind {
            PreparedKind::Host(ranges) => std::sync::Arc::clone(ranges),
            #[cfg(gpu)]
            PreparedKind::Gpu(_) => return Err(wrong_vendor("copy_prepared", "list", Vendor::Host)),
        };
        // SAFETY: as for `copy`; the work shares the list.
        in_order(stream, move || unsafe { copies::copy(&ranges) })
    }

    unsafe fn transfer(&self, stream: Option<&Stream>, range: CopyRange) -> Result<()> {
        // SAFETY: the caller's promise is the same, and says more.
        unsafe { self.copy(stream, &[range]) }
    }

    unsafe fn transfer_and_wait(&self, stream: Option<&Stream>, range: CopyRange) -> Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.transfer(stream, range) }?;
        stream.map_or(Ok(()), |stream| self.synchronize(stream))
    }

    unsafe fn rewind(
        &self,
        stream: Option<&Stream>,
        reset: Option<&RoomReset>,
        ranges: &[ScrubRange],
    ) -> Result<()> {
        if reset.is_some() {
            return Err(wrong_vendor("rewind", "room", Vendor::Host));
        }
        if is_idle(stream)? {
            // SAFETY: the caller of `rewind` holds each range alone.
            unsafe { fill_on_host(ranges) };
            return Ok(());
        }
        let ranges = ranges.to_vec();
        // SAFETY: as above, until the stream has passed.
        in_order(stream, move || unsafe { fill_on_host(&ranges) })
    }
}

/// Whether nothing is ahead of what would be queued.
fn is_idle(stream: Option<&Stream>) -> Result<bool> {
    let stream = stream.map(|stream| host_stream("work", stream)).transpose()?;
    Ok(stream.is_none_or(HostStream::is_idle))
}

/// Runs `work` now where nothing is ahead of it, and on the stream's worker otherwise.
fn in_order(stream: Option<&Stream>, work: impl FnOnce() + Send + 'static) -> Result<()> {
    match stream.map(|stream| host_stream("work", stream)).transpose()? {
        Some(stream) if !stream.is_idle() => stream.enqueue(Box::new(work)).map(drop).map_err(Error::from),
        _ => {
            work();
            Ok(())
        }
    }
}
