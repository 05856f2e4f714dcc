//! A backend some of whose operations fail on purpose: for tests, under `cfg(device_arena_faults)`.

use std::any::Any;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backend::{
    AnyBackend, Backend, Block, CopyRange, CopyRows, DeviceInfo, Event, HostRetry, HostWork, Placement,
    PreparedCopies, RoomReset, ScrubRange, Stream, Vendor,
};
use crate::error::{Error, Refused, Result};
use crate::pointer::PointerInfo;

/// The operations that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// [`Backend::devices`].
    Devices,
    /// [`Backend::classify`].
    Classify,
    /// [`Backend::allocate`].
    Allocate,
    /// [`Backend::free`].
    Free,
    /// [`Backend::create_stream`] and [`Backend::adopt_stream`].
    Stream,
    /// [`Backend::start`].
    Start,
    /// [`Backend::enqueue`].
    Enqueue,
    /// [`Backend::record`].
    Record,
    /// [`Backend::stream_wait`].
    StreamWait,
    /// [`Backend::has_passed`].
    HasPassed,
    /// [`Backend::wait`].
    Wait,
    /// [`Backend::notify`].
    Notify,
    /// [`Backend::copy`].
    Copy,
    /// [`Backend::copy_rows`].
    CopyRows,
    /// [`Backend::prepare`].
    Prepare,
    /// [`Backend::copy_prepared`].
    CopyPrepared,
    /// [`Backend::transfer`] and [`Backend::transfer_and_wait`].
    Transfer,
    /// [`Backend::synchronize`].
    Synchronize,
    /// [`Backend::rewind`].
    Rewind,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 19] = [
        Self::Devices,
        Self::Classify,
        Self::Allocate,
        Self::Free,
        Self::Stream,
        Self::Start,
        Self::Enqueue,
        Self::Record,
        Self::StreamWait,
        Self::HasPassed,
        Self::Wait,
        Self::Notify,
        Self::Copy,
        Self::CopyRows,
        Self::Prepare,
        Self::CopyPrepared,
        Self::Transfer,
        Self::Synchronize,
        Self::Rewind,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Devices => "devices",
            Self::Classify => "classify",
            Self::Allocate => "allocate",
            Self::Free => "free",
            Self::Stream => "stream",
            Self::Start => "start",
            Self::Enqueue => "enqueue",
            Self::Record => "record",
            Self::StreamWait => "stream_wait",
            Self::HasPassed => "has_passed",
            Self::Wait => "wait",
            Self::Notify => "notify",
            Self::Copy => "copy",
            Self::CopyRows => "copy_rows",
            Self::Prepare => "prepare",
            Self::CopyPrepared => "copy_prepared",
            Self::Transfer => "transfer",
            Self::Synchronize => "synchronize",
            Self::Rewind => "rewind",
        }
    }
}

/// Which operations fail. Clones are the same plan, so that a test can change it while the backend runs.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    faults: Vec<Fault>,
    injected: u64,
    live_blocks: u64,
}

#[derive(Debug)]
struct Fault {
    operation: Operation,
    after: u64,
    times: u64,
}

impl FaultPlan {
    /// The code of an injected failure.
    pub const CODE: i64 = -1;

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `after` operations of this kind pass from now on, then makes `times` of them fail.
    pub fn fail(&self, operation: Operation, after: u64, times: u64) {
        self.plan().faults.push(Fault { operation, after, times });
    }

    /// Forgets every fault that is left.
    pub fn clear(&self) {
        self.plan().faults.clear();
    }

    /// How many failures there have been.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.plan().injected
    }

    /// How many blocks were allocated and not freed.
    #[must_use]
    pub fn live_blocks(&self) -> u64 {
        self.plan().live_blocks
    }

    fn fails(&self, operation: Operation) -> bool {
        let mut plan = self.plan();
        for fault in plan.faults.iter_mut().filter(|fault| fault.operation == operation) {
            if fault.after > 0 {
                fault.after -= 1;
            } else if fault.times > 0 {
                fault.times -= 1;
                plan.injected += 1;
                return true;
            }
        }
        false
    }
}

/// A backend that does what another does, but for the operations that its plan makes fail.
#[derive(Debug, Clone)]
pub struct Faults {
    inner: Arc<AnyBackend>,
    plan: FaultPlan,
}

impl Faults {
    /// `inner`, with the faults of `plan`.
    #[must_use]
    pub fn new(inner: AnyBackend, plan: FaultPlan) -> Self {
        Self { inner: Arc::new(inner), plan }
    }

    fn meet(&self, operation: Operation) -> Result<()> {
        if !self.plan.fails(operation) {
            return Ok(());
        }
        let vendor = self.inner.vendor();
        Err(Error::Driver { vendor, operation: operation.name(), code: FaultPlan::CODE, name: "injected" })
    }
}

impl Backend for Faults {
    fn vendor(&self) -> Vendor {
        self.inner.vendor()
    }

    fn check(&self) -> Result<()> {
        self.inner.check()
    }

    fn is_host_accessible(&self, placement: Placement) -> bool {
        self.inner.is_host_accessible(placement)
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        self.meet(Operation::Devices)?;
        self.inner.devices()
    }

    unsafe fn classify(&self, pointer: *const u8) -> Result<PointerInfo> {
        self.meet(Operation::Classify)?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.inner.classify(pointer) }
    }

    fn block_alignment(&self) -> usize {
        self.inner.block_alignment()
    }

    fn output_alignment(&self) -> usize {
        self.inner.output_alignment()
    }

    fn allocate(
        &self,
        ordinal: u32,
        stream: Option<&Stream>,
        placement: Placement,
        bytes: usize,
    ) -> Result<Block> {
        self.meet(Operation::Allocate).map_err(|_| Error::OutOfMemory {
            vendor: self.inner.vendor(),
            operation: Operation::Allocate.name(),
            requested: bytes,
            free: None,
            total: None,
        })?;
        let block = self.inner.allocate(ordinal, stream, placement, bytes)?;
        self.plan.plan().live_blocks += 1;
        Ok(block)
    }

    unsafe fn free(&self, stream: Option<&Stream>, block: Block) -> Result<(), Refused<Block>> {
        match self.meet(Operation::Free) {
            Ok(()) => {
                // SAFETY: the caller's promise is the same.
                let freed = unsafe { self.inner.free(stream, block) };
                freed.inspect(|()| self.plan.plan().live_blocks -= 1)
            }
            Err(error) => Err(Refused { error, value: block }),
        }
    }

    fn create_stream(&self, ordinal: u32) -> Result<Stream> {
        self.meet(Operation::Stream)?;
        self.inner.create_stream(ordinal)
    }

    unsafe fn adopt_stream(
        &self,
        raw: *mut c_void,
        keep_alive: Box<dyn Any + Send + Sync>,
    ) -> Result<Stream, Refused<Box<dyn Any + Send + Sync>>> {
        match self.meet(Operation::Stream) {
            // SAFETY: the caller's promise is the same.
            Ok(()) => unsafe { self.inner.adopt_stream(raw, keep_alive) },
            Err(error) => Err(Refused { error, value: keep_alive }),
        }
    }

    fn raw_stream(&self, stream: &Stream) -> Result<*mut c_void> {
        self.inner.raw_stream(stream)
    }

    fn start(&self, stream: &Stream) -> Result<()> {
        self.meet(Operation::Start)?;
        self.inner.start(stream)
    }

    fn enqueue(&self, stream: &Stream, work: HostWork) -> Result<Event, Refused<HostWork>> {
        match self.meet(Operation::Enqueue) {
            Ok(()) => self.inner.enqueue(stream, work),
            Err(error) => Err(Refused { error, value: work }),
        }
    }

    fn record(&self, stream: &Stream) -> Result<Event> {
        self.meet(Operation::Record)?;
        self.inner.record(stream)
    }

    fn stream_wait(&self, stream: &Stream, event: &Event) -> Result<()> {
        self.meet(Operation::StreamWait)?;
        self.inner.stream_wait(stream, event)
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        self.meet(Operation::Synchronize)?;
        self.inner.synchronize(stream)
    }

    fn is_capturing(&self, stream: &Stream) -> Result<bool> {
        self.inner.is_capturing(stream)
    }

    fn is_idle(&self, stream: &Stream) -> Result<bool> {
        self.inner.is_idle(stream)
    }

    fn has_passed(&self, event: &Event) -> Result<bool> {
        self.meet(Operation::HasPassed)?;
        self.inner.has_passed(event)
    }

    fn wait(&self, event: &Event, timeout: Option<Duration>) -> Result<bool> {
        self.meet(Operation::Wait)?;
        self.inner.wait(event, timeout)
    }

    fn can_wait(&self) -> bool {
        self.inner.can_wait()
    }

    fn notify(&self, event: &Event, then: HostWork) -> Result<(), Refused<HostWork>> {
        match self.meet(Operation::Notify) {
            Ok(()) => self.inner.notify(event, then),
            Err(error) => Err(Refused { error, value: then }),
        }
    }

    fn retry(&self, work: HostRetry) {
        self.inner.retry(work);
    }

    unsafe fn copy(&self, stream: Option<&Stream>, ranges: &[CopyRange]) -> Result<()> {
        self.meet(Operation::Copy)?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.inner.copy(stream, ranges) }
    }

    unsafe fn copy_rows(&self, stream: Option<&Stream>, rows: &CopyRows) -> Result<()> {
        self.meet(Operation::CopyRows)?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.inner.copy_rows(stream, rows) }
    }

    fn prepare(&self, stream: Option<&Stream>, ranges: &[CopyRange]) -> Result<PreparedCopies> {
        self.meet(Operation::Prepare)?;
        self.inner.prepare(stream, ranges)
    }

    unsafe fn copy_prepared(&self, stream: Option<&Stream>, prepared: &PreparedCopies) -> Result<()> {
        self.meet(Operation::CopyPrepared)?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.inner.copy_prepared(stream, prepared) }
    }

    unsafe fn transfer(&self, stream: Option<&Stream>, range: CopyRange) -> Result<()> {
        self.meet(Operation::Transfer)?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.inner.transfer(stream, range) }
    }

    unsafe fn transfer_and_wait(&self, stream: Option<&Stream>, range: CopyRange) -> Result<()> {
        self.meet(Operation::Transfer)?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.inner.transfer_and_wait(stream, range) }
    }

    unsafe fn rewind(
        &self,
        stream: Option<&Stream>,
        reset: Option<&RoomReset>,
        ranges: &[ScrubRange],
    ) -> Result<()> {
        self.meet(Operation::Rewind)?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.inner.rewind(stream, reset, ranges) }
    }
}
