//! The contract between the crate and a vendor: [`Backend`], what it hands out, and the closed set of
//! implementations. The implementations are in `backends/`, one folder a vendor.
//!
//! The trait is sealed: it is public so that the conformance suite can hold every backend to it, and so that
//! its rules can be read. Programs use [`Executor`](crate::Executor) and [`Arena`](crate::Arena).
//!
//! # Rules for every method
//!
//! - No method panics, and none blocks unless its documentation says so.
//! - A failure is an [`Error`] that names the vendor and the driver's call; after it nothing has changed.
//! - Any method may be called from any thread. Whatever device is current on the thread stays current.

mod copies;

use std::any::Any;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::time::Duration;

use enum_dispatch::enum_dispatch;

pub(crate) use self::copies::PreparedKind;
pub use self::copies::{CopyRows, PreparedCopies, RowIndices};
#[cfg(feature = "cuda")]
pub use crate::backends::cuda::{Cuda, CudaDriver};
#[cfg(device_arena_faults)]
pub use crate::backends::faults::{FaultPlan, Faults, Operation};
#[cfg(gpu)]
pub use crate::backends::gpu::Gpu;
pub use crate::backends::host::Host;
#[cfg(feature = "rocm")]
pub use crate::backends::rocm::{Rocm, RocmDriver};
use crate::error::{Error, Refused, Result};
use crate::pointer::PointerInfo;

/// Whose driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vendor {
    /// The operating system and the processor's own memory.
    Host,
    /// NVIDIA's driver.
    Cuda,
    /// AMD's runtime, HIP.
    Rocm,
}

impl std::fmt::Display for Vendor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Cuda => "cuda",
            Self::Rocm => "rocm",
        })
    }
}

/// One device, as its driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The device's number as its driver counts it.
    pub ordinal: u32,
    /// The driver's name for it.
    pub name: String,
    /// The architecture, as the driver or the compiler spells it.
    pub architecture: String,
    /// Memory in bytes, where the driver says.
    pub total_bytes: Option<u64>,
    /// Whether its kernels reach pageable host memory: at all, which can mean a fault for each page.
    pub reaches_pageable_memory: bool,
    /// Whether they do so by the host's own page tables, without a fault.
    pub shares_page_tables: bool,
    /// How many multiprocessors it has.
    pub multiprocessors: Option<u32>,
    /// How many threads a block of a kernel can have, at most.
    pub block_threads: Option<u32>,
    /// Where the device is on the PCI bus, which is the same in every process: domain, bus and device.
    pub pci_address: Option<(u32, u32, u32)>,
}

/// Where an arena's blocks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Placement {
    /// Host pages, for calls on the host.
    Host,
    /// Memory of the executor's device.
    Device,
    /// Pinned host pages that the executor's device reaches too, at the same address. On a host executor these are host
    /// pages.
    HostCoherent,
}

/// One allocation from a driver: `bytes` bytes at `address`, aligned to the backend's
/// [`block_alignment`](Backend::block_alignment).
///
/// The address can be dereferenced on the host only where the backend's blocks of its placement are
/// [`host_accessible`](Backend::is_host_accessible).
#[derive(Debug)]
pub struct Block {
    pub(crate) address: NonNull<u8>,
    pub(crate) bytes: usize,
    pub(crate) origin: Origin,
}

impl Block {
    /// Where the block starts.
    #[must_use]
    pub fn address(&self) -> NonNull<u8> {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

// SAFETY: a block is an address and what frees it; neither belongs to a thread, and every access through the
// address is ordered by whoever holds the block.
unsafe impl Send for Block {}
// SAFETY: as above; a shared block offers its address and its size alone.
unsafe impl Sync for Block {}

/// What frees a block.
#[derive(Debug)]
pub(crate) enum Origin {
    /// Pages of the operating system, unmapped when this is dropped.
    Pages(memmap2::MmapRaw),
    /// A driver's allocation, freed in the context that it came from.
    #[cfg(gpu)]
    Gpu(crate::backends::gpu::Allocation),
}

/// A queue of work in order.
#[derive(Debug)]
pub struct Stream(pub(crate) StreamKind);

impl Stream {
    /// What no other stream has at the same time, however often it was adopted.
    pub(crate) fn identity(&self) -> (usize, usize) {
        match &self.0 {
            StreamKind::Host(stream) => (0, stream.raw().addr()),
            #[cfg(gpu)]
            StreamKind::Gpu(stream) => stream.identity(),
        }
    }

    /// The ordinal of its device.
    pub(crate) fn ordinal(&self) -> u32 {
        match &self.0 {
            StreamKind::Host(_) => 0,
            #[cfg(gpu)]
            StreamKind::Gpu(stream) => stream.device().info.ordinal,
        }
    }
}

#[derive(Debug)]
pub(crate) enum StreamKind {
    Host(crate::backends::host::HostStream),
    #[cfg(gpu)]
    Gpu(std::sync::Arc<crate::backends::gpu::GpuStream>),
}

/// A point in a stream's work that can be asked for and waited for.
#[derive(Debug, Clone)]
pub struct Event(pub(crate) EventKind);

#[derive(Debug, Clone)]
pub(crate) enum EventKind {
    Host(crate::backends::host::HostEvent),
    #[cfg(gpu)]
    Gpu(crate::backends::gpu::GpuEvent),
}

/// Work for the host to do in a stream's order.
pub type HostWork = Box<dyn FnOnce() + Send>;

/// Work for the host to do again until it answers true.
pub type HostRetry = Box<dyn FnMut() -> bool + Send>;

/// As many ranges a rewind fills all or none of; of more, some may be filled where the driver refuses the others.
pub const SCRUBS_AT_ONCE: usize = 16;

/// One range of a batched copy.
#[derive(Debug, Clone, Copy)]
pub struct CopyRange {
    /// Where the bytes go.
    pub destination: *mut u8,
    /// Where they come from.
    pub source: *const u8,
    /// How many.
    pub bytes: usize,
}

/// One range that a rewind fills.
#[derive(Debug, Clone, Copy)]
pub struct ScrubRange {
    /// Where the range starts.
    pub address: *mut u8,
    /// Its size in bytes.
    pub bytes: usize,
    /// The byte that fills it.
    pub value: u8,
}

/// Fills each range with its value, by the host.
///
/// # Safety
///
/// The caller holds each range alone, no device has work on it, and it lies within live memory that the host reaches.
pub(crate) unsafe fn fill_on_host(ranges: &[ScrubRange]) {
    for range in ranges {
        debug_assert!(!range.address.is_null());
        // SAFETY: this function's own contract.
        unsafe { range.address.write_bytes(range.value, range.bytes) };
    }
}

/// A room for device-sized outputs as a rewind makes it anew: what the device's header says from then on. See
/// `include/device_arena.h`.
#[derive(Debug, Clone, Copy)]
pub struct RoomReset {
    /// The header's address; null for none.
    pub room: *mut u8,
    /// Where the room starts.
    pub base: *mut u8,
    /// Its size in bytes.
    pub capacity: u64,
    /// What every taken piece is rounded up to, in bytes: a power of two.
    pub alignment: u64,
    /// The generation of the call.
    pub generation: u64,
}

impl RoomReset {
    /// No header.
    #[cfg_attr(not(gpu), allow(dead_code, reason = "only a device asks"))]
    pub(crate) const NONE: Self = Self {
        room: std::ptr::null_mut(),
        base: std::ptr::null_mut(),
        capacity: 0,
        alignment: 1,
        generation: 0,
    };
}

// SAFETY: a range is an address and a size; who may touch what is behind it is said by `Backend::copy`.
unsafe impl Send for CopyRange {}
// SAFETY: as above; a shared one is read alone.
unsafe impl Sync for CopyRange {}
// SAFETY: as above, by `Backend::rewind`.
unsafe impl Send for ScrubRange {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Host {}
    #[cfg(gpu)]
    impl<D> Sealed for crate::backends::gpu::Gpu<D> {}
    #[cfg(device_arena_faults)]
    impl Sealed for super::Faults {}
    impl Sealed for super::AnyBackend {}
}

/// What a vendor supplies: the whole of it.
#[enum_dispatch]
pub trait Backend: sealed::Sealed {
    /// Whose driver this is.
    fn vendor(&self) -> Vendor;

    /// An error where the backend can't be used any more, and none of its memory either: in the child of a fork.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`].
    fn check(&self) -> Result<()>;

    /// Whether the host can read and write this backend's blocks of that placement.
    fn is_host_accessible(&self, placement: Placement) -> bool;

    /// The devices, in the driver's order. Empty where the driver finds none.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] where the driver fails to say.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;

    /// What is behind `pointer`. Makes no context, and is legal while a stream is being captured.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] where the query fails; a pointer that no driver knows is an answer, not a failure.
    ///
    /// # Safety
    ///
    /// The pointer is not dereferenced. The answer holds while the caller keeps the memory allocated.
    unsafe fn classify(&self, pointer: *const u8) -> Result<PointerInfo>;

    /// The alignment of every block's address, in bytes, and the step in which block sizes are rounded up.
    fn block_alignment(&self) -> usize;

    /// The least alignment of an output in a block, in bytes: 64 or more.
    fn output_alignment(&self) -> usize;

    /// A block of at least `bytes` bytes for the work of a stream, or of any stream of the ordinal; `bytes` is above
    /// zero. On the host its bytes are zero and its pages are touched by the calling thread; on a device they are what
    /// they are. May block, as the driver does.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] with the bytes asked for; [`Error::Unavailable`] for an ordinal that does not exist;
    /// [`Error::Capturing`] while the stream is being captured, which an allocation would spoil.
    fn allocate(
        &self,
        ordinal: u32,
        stream: Option<&Stream>,
        placement: Placement,
        bytes: usize,
    ) -> Result<Block>;

    /// Gives a block back, once the work that is in the stream has passed. May block, as the driver does.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], [`Error::Capturing`], and the block with it: nothing is freed then.
    ///
    /// # Safety
    ///
    /// The caller holds the block alone: the block came from this backend, and all work that uses it is in the stream
    /// or has passed.
    unsafe fn free(&self, stream: Option<&Stream>, block: Block) -> Result<(), Refused<Block>>;

    /// A stream of its own on a device. Dropping it waits for the work that is queued in it, where
    /// the thread [`can_wait`](Self::can_wait). A prepared list of a device that was launched in a stream keeps it, be it made
    /// here or adopted: it goes with the last of them.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] for an ordinal that does not exist, [`Error::Driver`] otherwise.
    fn create_stream(&self, ordinal: u32) -> Result<Stream>;

    /// A stream that somebody else made and owns. `keep_alive` is dropped with the adopted stream.
    ///
    /// # Errors
    ///
    /// [`Error::WrongVendor`] for null, [`Error::Driver`] otherwise; `keep_alive` comes back with it.
    ///
    /// # Safety
    ///
    /// `raw` is a live stream of this backend's vendor and stays alive as long as `keep_alive` does.
    unsafe fn adopt_stream(
        &self,
        raw: *mut c_void,
        keep_alive: Box<dyn Any + Send + Sync>,
    ) -> Result<Stream, Refused<Box<dyn Any + Send + Sync>>>;

    /// The stream's own handle, as [`adopt_stream`](Self::adopt_stream) takes it. Borrowed from the stream.
    ///
    /// # Errors
    ///
    /// [`Error::WrongVendor`] for a stream of another vendor; so for every method below that takes one.
    fn raw_stream(&self, stream: &Stream) -> Result<*mut c_void>;

    /// Makes sure that [`enqueue`](Self::enqueue) does not fail from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] where the system gives no worker thread, and in the child of a fork that came after it.
    fn start(&self, stream: &Stream) -> Result<()>;

    /// Runs `work` on the host in the stream's order, off the calling thread. Returns the event behind it, which
    /// passes even if the work panics. On a device the work may not wait for a stream, and not ask its driver for
    /// anything: it runs on the driver's own thread.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] where the system gives no worker thread; the work comes back with it.
    fn enqueue(&self, stream: &Stream, work: HostWork) -> Result<Event, Refused<HostWork>>;

    /// An event behind all work that is in the stream now.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`]; [`Error::Capturing`], since no event of a capture can be asked for.
    fn record(&self, stream: &Stream) -> Result<Event>;

    /// Makes all later work of `stream` wait for `event`, without the host.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`]; [`Error::Driver`].
    fn stream_wait(&self, stream: &Stream, event: &Event) -> Result<()>;

    /// Blocks until all work that is in the stream now has passed.
    ///
    /// # Errors
    ///
    /// [`Error::WouldDeadlock`] on the thread that does the stream's work; [`Error::Capturing`];
    /// [`Error::Driver`], also for an error of that work.
    fn synchronize(&self, stream: &Stream) -> Result<()>;

    /// Whether the work of the stream is being captured into a graph.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`].
    fn is_capturing(&self, stream: &Stream) -> Result<bool>;

    /// Whether all work of the stream has passed. Never blocks.
    ///
    /// # Errors
    ///
    /// As [`synchronize`](Self::synchronize), but for the wait.
    fn is_idle(&self, stream: &Stream) -> Result<bool>;

    /// Whether the event has passed. Never blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], also for an error of the work before the event.
    fn has_passed(&self, event: &Event) -> Result<bool>;

    /// Blocks until the event has passed, or for `timeout` at most; says which.
    ///
    /// # Errors
    ///
    /// [`Error::WouldDeadlock`] on the thread that the event itself waits for, [`Error::Driver`] otherwise.
    fn wait(&self, event: &Event, timeout: Option<Duration>) -> Result<bool>;

    /// Whether the calling thread may wait for a stream's work: it may not where it does such work itself.
    fn can_wait(&self) -> bool;

    /// Runs `then` once the event has passed: on the calling thread where it has already.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], and `then` comes back.
    fn notify(&self, event: &Event, then: HostWork) -> Result<(), Refused<HostWork>>;

    /// Calls `work` on another thread, now and then, until it answers true: for what can't be done here and now. On the
    /// host there is no such thing, and it is done once, here.
    fn retry(&self, work: HostRetry);

    /// Moves every range, in the stream's order, or at once where there is no stream, which a device refuses. A range
    /// that overlaps itself moves as `memmove` would. [`Host`] has several threads for 16 MiB and more.
    ///
    /// A device's stream keeps what it comes to need for this outside of captures: for lists of more than 128 ranges up to 2 MiB
    /// of pinned pages and as much of the device's memory, for ranges of 256 KiB or more that overlap themselves 8 MiB of it.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`]; [`Error::Capturing`]; [`Error::OutOfMemory`]. Where the list is long, the ranges before those that were
    /// refused may be moved, and so may a part of a long one that overlaps itself: what it had may be nowhere then.
    ///
    /// # Safety
    ///
    /// Every range is live, within the reach of the stream's device, and no other work touches it, until the stream has
    /// passed; no range's destination clashes with another range of the list. The caller upholds all three; the list
    /// itself is free on return.
    unsafe fn copy(&self, stream: Option<&Stream>, ranges: &[CopyRange]) -> Result<()>;

    /// Moves rows that are alike, by one launch: in the stream's order, or at once where there is no stream, which a device
    /// refuses. A row that overlaps itself moves as `memmove` would, and one whose source is its destination stays. A device
    /// reads the numbers of the rows when the work runs. Legal while the stream is being captured.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`]; nothing is moved then.
    ///
    /// # Safety
    ///
    /// Every row that is moved is live on both sides, and so are the arrays of numbers, all within the reach of the stream's
    /// device; no other work touches them until the stream has passed; no row's destination clashes with another row on
    /// either side, nor with the numbers. The caller upholds all three. A captured launch is made again by its graph, for
    /// which the same holds.
    unsafe fn copy_rows(&self, stream: Option<&Stream>, rows: &CopyRows) -> Result<()>;

    /// Puts a list where the stream's device reads it, for any number of launches by [`copy_prepared`](Self::copy_prepared).
    /// Blocks until it is there, behind the work that is in the stream.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; [`Error::Capturing`]; [`Error::Driver`], also for an error of the work before it;
    /// [`Error::Option`] where a device is given no stream.
    fn prepare(&self, stream: Option<&Stream>, ranges: &[CopyRange]) -> Result<PreparedCopies>;

    /// Moves every range of the list as [`copy`](Self::copy) does, by exactly one launch, or none where there are no bytes:
    /// nothing is uploaded and nothing allocated. Legal while the stream is being captured.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`]; [`Error::WrongVendor`] for a list of another backend, and [`Error::Option`] for one of another
    /// device. Nothing is moved then.
    ///
    /// # Safety
    ///
    /// As [`copy`](Self::copy), for every launch. A captured launch is made again by its graph: the list is alive until the
    /// last of these has passed, which is the caller's to see to.
    unsafe fn copy_prepared(&self, stream: Option<&Stream>, prepared: &PreparedCopies) -> Result<()>;

    /// Moves one range between any two memories, of other devices and pageable host pages too, in the stream's order
    /// or at once where there is no stream, which a device refuses. It does not overlap itself.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`]; [`Error::Capturing`]: a graph would do it again when both ends are gone. Nothing has moved then.
    ///
    /// # Safety
    ///
    /// As [`copy`](Self::copy), but for the device's reach. Pageable host pages have been read or written when this
    /// returns.
    unsafe fn transfer(&self, stream: Option<&Stream>, range: CopyRange) -> Result<()>;

    /// As [`transfer`](Self::transfer), and waits until the stream has passed: on an error, nothing uses either end any
    /// more.
    ///
    /// # Errors
    ///
    /// As [`transfer`](Self::transfer), and of the work before it.
    ///
    /// # Safety
    ///
    /// As [`transfer`](Self::transfer), until this returns.
    unsafe fn transfer_and_wait(&self, stream: Option<&Stream>, range: CopyRange) -> Result<()>;

    /// Makes a room for device-sized outputs anew where one is given, and fills the ranges that the last call wrote: in
    /// the stream's order, or at once where there is no stream, which a device refuses.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`]; nothing was filled then, of [`SCRUBS_AT_ONCE`] ranges at the most.
    ///
    /// # Safety
    ///
    /// Room and ranges lie within blocks of this backend that the caller holds alone until the stream has passed.
    unsafe fn rewind(
        &self,
        stream: Option<&Stream>,
        reset: Option<&RoomReset>,
        ranges: &[ScrubRange],
    ) -> Result<()>;
}

/// The closed set of backends. A new vendor adds its variant here.
#[enum_dispatch(Backend)]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnyBackend {
    /// Host pages, one worker thread a stream.
    Host(Host),
    /// NVIDIA's driver.
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
    /// AMD's runtime.
    #[cfg(feature = "rocm")]
    Rocm(Rocm),
    /// Another backend, some of whose operations fail on purpose.
    #[cfg(device_arena_faults)]
    Faults(Faults),
}

/// Every backend that has a driver and devices of its own, in the order in which devices are counted. A driver is looked
/// for when its turn comes: a broken one is in nobody's way who has found a device before.
pub(crate) fn available() -> impl Iterator<Item = Result<AnyBackend>> {
    let finders: [fn() -> Result<Option<AnyBackend>>; 2] = [
        #[cfg(feature = "cuda")]
        || Ok(Cuda::if_present()?.map(AnyBackend::Cuda)),
        #[cfg(not(feature = "cuda"))]
        || Ok(None),
        #[cfg(feature = "rocm")]
        || Ok(Rocm::if_present()?.map(AnyBackend::Rocm)),
        #[cfg(not(feature = "rocm"))]
        || Ok(None),
    ];
    finders.into_iter().filter_map(|find| find().transpose())
}

pub(crate) fn wrong_vendor(operation: &'static str, what: &'static str, vendor: Vendor) -> Error {
    Error::WrongVendor { operation, what, vendor }
}
