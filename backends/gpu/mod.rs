mod blocks;
mod copies;
mod device;
pub(crate) mod devices;
pub(crate) mod driver;
mod event;
pub(crate) mod found;
pub(crate) mod functions;
mod graph;
mod kernel;
pub(crate) mod library;
mod list;
mod long_lists;
mod moves;
mod prepared;
mod rows;
pub(crate) mod stream;
pub(crate) mod table;
mod watcher;

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::blocks::Allocation;
pub(crate) use self::device::{Device, KeepAlive};
use self::driver::Driver;
pub(crate) use self::event::GpuEvent;
pub(crate) use self::graph::{Capture, Graph};
pub(crate) use self::kernel::{Kernel, Module, Shape};
pub(crate) use self::prepared::GpuPrepared;
pub(crate) use self::stream::GpuStream;
use crate::backend::{
    Backend, Block, CopyRange, CopyRows, DeviceInfo, Event, EventKind, HostRetry, HostWork, Placement,
    PreparedCopies, PreparedKind, RoomReset, ScrubRange, Stream, StreamKind, Vendor, wrong_vendor,
};
use crate::error::{Error, Refused, Result};
use crate::pointer::PointerInfo;

/// A GPU backend over one vendor's driver.
#[derive(Debug)]
pub struct Gpu<D: 'static>(pub(crate) &'static D);

impl<D> Clone for Gpu<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Gpu<D> {}

fn gpu_stream<'s>(vendor: Vendor, operation: &'static str, stream: &'s Stream) -> Result<&'s Arc<GpuStream>> {
    match &stream.0 {
        StreamKind::Gpu(stream) if stream.driver().vendor() == vendor => Ok(stream),
        _ => Err(wrong_vendor(operation, "stream", vendor)),
    }
}

fn some_stream<'s>(
    vendor: Vendor,
    operation: &'static str,
    stream: Option<&'s Stream>,
) -> Result<&'s Arc<GpuStream>> {
    gpu_stream(vendor, operation, stream.ok_or_else(copies::needs_stream)?)
}

fn gpu_event<'e>(vendor: Vendor, operation: &'static str, event: &'e Event) -> Result<&'e GpuEvent> {
    match &event.0 {
        EventKind::Gpu(event) if event.vendor() == vendor => Ok(event),
        _ => Err(wrong_vendor(operation, "event", vendor)),
    }
}

/// A stream that somebody else made, on a device that is known.
///
/// # Safety
///
/// As [`GpuStream::adopt`].
pub(crate) unsafe fn adopted(raw: *mut c_void, device: Arc<Device>, owner: KeepAlive) -> Stream {
    // SAFETY: the caller's promise is the same.
    Stream(StreamKind::Gpu(Arc::new(unsafe { GpuStream::adopt(raw, device, owner) })))
}

impl<D: Driver> Backend for Gpu<D> {
    fn vendor(&self) -> Vendor {
        self.0.vendor()
    }

    fn check(&self) -> Result<()> {
        library::check_not_forked(self.0.vendor())
    }

    fn is_host_accessible(&self, placement: Placement) -> bool {
        placement != Placement::Device
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        driver::check_callable(self.0, "devices")?;
        Ok(devices::described(self.0)?.to_vec())
    }

    #[inline]
    unsafe fn classify(&self, pointer: *const u8) -> Result<PointerInfo> {
        driver::check_callable(self.0, "classify")?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.classify(pointer) }
    }

    fn block_alignment(&self) -> usize {
        blocks::ALIGNMENT
    }

    fn output_alignment(&self) -> usize {
        blocks::ALIGNMENT
    }

    fn allocate(
        &self,
        ordinal: u32,
        stream: Option<&Stream>,
        placement: Placement,
        bytes: usize,
    ) -> Result<Block> {
        match stream {
            Some(stream) => {
                let stream = gpu_stream(self.vendor(), "allocate", stream)?;
                let _queueing = stream.queue_outside_captures("allocate")?;
                blocks::allocate(stream.device(), placement, bytes)
            }
            None => blocks::allocate(&devices::primary(self.0, ordinal)?, placement, bytes),
        }
    }

    unsafe fn free(&self, stream: Option<&Stream>, block: Block) -> Result<(), Refused<Block>> {
        match stream.map(|stream| gpu_stream(self.vendor(), "free", stream)).transpose() {
            // SAFETY: the caller's promise is the same.
            Ok(stream) => unsafe { blocks::free(stream.map(Arc::as_ref), block) },
            Err(error) => Err(Refused::new(error, block)),
        }
    }

    fn create_stream(&self, ordinal: u32) -> Result<Stream> {
        let stream = GpuStream::create(devices::primary(self.0, ordinal)?)?;
        Ok(Stream(StreamKind::Gpu(Arc::new(stream))))
    }

    unsafe fn adopt_stream(
        &self,
        raw: *mut c_void,
        keep_alive: Box<dyn Any + Send + Sync>,
    ) -> Result<Stream, Refused<Box<dyn Any + Send + Sync>>> {
        let owner: KeepAlive = Arc::new(keep_alive);
        let device = driver::check_callable(self.0, "adopt_stream").and_then(|()| {
            // SAFETY: the caller vouches for a live stream, and that it lives as long as its owner.
            unsafe { self.0.device_of_stream(raw, &owner) }
        });
        match device {
            // SAFETY: as above.
            Ok(device) => Ok(unsafe { adopted(raw, device, owner) }),
            Err(error) => Err(Refused::new(error, Arc::into_inner(owner).unwrap_or_else(|| Box::new(())))),
        }
    }

    fn raw_stream(&self, stream: &Stream) -> Result<*mut c_void> {
        Ok(gpu_stream(self.vendor(), "raw_stream", stream)?.raw())
    }

    fn start(&self, stream: &Stream) -> Result<()> {
        gpu_stream(self.vendor(), "start", stream)?.refuse_capture("start")
    }

    fn enqueue(&self, stream: &Stream, work: HostWork) -> Result<Event, Refused<HostWork>> {
        match gpu_stream(self.vendor(), "enqueue", stream) {
            Ok(stream) => stream.enqueue(work).map(|event| Event(EventKind::Gpu(event))),
            Err(error) => Err(Refused::new(error, work)),
        }
    }

    fn record(&self, stream: &Stream) -> Result<Event> {
        let stream = gpu_stream(self.vendor(), "record", stream)?;
        let _queueing = stream.queue_outside_captures("record")?;
        let event = GpuEvent::new(stream.device())?;
        event.record(stream)?;
        Ok(Event(EventKind::Gpu(event)))
    }

    fn stream_wait(&self, stream: &Stream, event: &Event) -> Result<()> {
        let stream = gpu_stream(self.vendor(), "stream_wait", stream)?;
        stream.wait_for(gpu_event(self.vendor(), "stream_wait", event)?)
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        gpu_stream(self.vendor(), "synchronize", stream)?.synchronize()
    }

    fn is_capturing(&self, stream: &Stream) -> Result<bool> {
        gpu_stream(self.vendor(), "is_capturing", stream)?.is_capturing()
    }

    fn is_idle(&self, stream: &Stream) -> Result<bool> {
        gpu_stream(self.vendor(), "is_idle", stream)?.is_idle()
    }

    fn has_passed(&self, event: &Event) -> Result<bool> {
        gpu_event(self.vendor(), "has_passed", event)?.has_passed()
    }

    fn wait(&self, event: &Event, timeout: Option<Duration>) -> Result<bool> {
        gpu_event(self.vendor(), "wait", event)?.wait(timeout)
    }

    fn can_wait(&self) -> bool {
        !stream::is_in_host_work() && crate::backends::host::can_wait()
    }

    fn notify(&self, event: &Event, then: HostWork) -> Result<(), Refused<HostWork>> {
        let event = match gpu_event(self.vendor(), "notify", event) {
            Ok(event) => event,
            Err(error) => return Err(Refused::new(error, then)),
        };
        match event.has_passed() {
            Ok(true) => {
                then();
                Ok(())
            }
            Ok(false) | Err(Error::WouldDeadlock { .. }) => watcher::watch(event.clone(), then),
            Err(error) => Err(Refused::new(error, then)),
        }
    }

    fn retry(&self, work: HostRetry) {
        watcher::retry(work);
    }

    unsafe fn copy(&self, stream: Option<&Stream>, ranges: &[CopyRange]) -> Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { copies::copy(some_stream(self.vendor(), "copy", stream)?, ranges) }
    }

    unsafe fn copy_rows(&self, stream: Option<&Stream>, rows: &CopyRows) -> Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { rows::copy(some_stream(self.vendor(), "copy_rows", stream)?, rows) }
    }

    fn prepare(&self, stream: Option<&Stream>, ranges: &[CopyRange]) -> Result<PreparedCopies> {
        let prepared = GpuPrepared::new(some_stream(self.vendor(), "prepare", stream)?, ranges)?;
        Ok(PreparedCopies::new(PreparedKind::Gpu(prepared), ranges))
    }

    unsafe fn copy_prepared(&self, stream: Option<&Stream>, prepared: &PreparedCopies) -> Result<()> {
        let stream = some_stream(self.vendor(), "copy_prepared", stream)?;
        match &prepared.kind {
            // SAFETY: the caller's promise is the same.
            PreparedKind::Gpu(prepared) if prepared.vendor() == self.vendor() => unsafe {
                prepared.launch(stream)
            },
            _ => Err(wrong_vendor("copy_prepared", "list", self.vendor())),
        }
    }

    unsafe fn transfer(&self, stream: Option<&Stream>, range: CopyRange) -> Result<()> {
        let stream = some_stream(self.vendor(), "transfer", stream)?;
        // A graph would do it again when both ends are gone.
        let queueing = stream.queue_outside_captures("transfer")?;
        // SAFETY: the caller's promise is the same.
        unsafe { copies::transfer(stream, &queueing, range) }
    }

    unsafe fn transfer_and_wait(&self, stream: Option<&Stream>, range: CopyRange) -> Result<()> {
        let stream = some_stream(self.vendor(), "transfer", stream)?;
        let queueing = stream.queue_outside_captures("transfer")?;
        // SAFETY: the caller's promise is the same.
        unsafe { copies::transfer(stream, &queueing, range) }?;
        stream.wait_for_borrowed(queueing)
    }

    unsafe fn rewind(
        &self,
        stream: Option<&Stream>,
        reset: Option<&RoomReset>,
        ranges: &[ScrubRange],
    ) -> Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { copies::rewind(some_stream(self.vendor(), "rewind", stream)?, reset, ranges) }
    }
}
