//! Memory that a user has from the driver, of every kind.

use std::ffi::c_void;

use device_arena::{Error, Executor, PointerInfo, Result, classify};

use crate::driver::{self, Access, Handle, Location, Properties, ok};
use crate::functions::Function;

/// What the driver says of a pointer.
pub(crate) fn ask(pointer: *const u8) -> Result<PointerInfo> {
    // SAFETY: classification reads nothing, and the tests keep the memory.
    unsafe { classify(pointer) }
}

pub(crate) fn ask_range(pointer: *const u8, bytes: usize) -> Result<PointerInfo> {
    // SAFETY: as above.
    unsafe { device_arena::classify_range(pointer, bytes) }
}

/// One allocation, freed when it is dropped.
pub(crate) struct Memory {
    executor: Executor,
    address: u64,
    bytes: usize,
    kind: Kind,
}

enum Kind {
    Device,
    Managed,
    Pinned,
    Pool,
}

impl Memory {
    fn new(executor: &Executor, bytes: usize, kind: Kind) -> Self {
        let mut address = 0u64;
        let place = &raw mut address;
        let stream = executor.stream().unwrap();
        // SAFETY: the driver writes one address.
        let made = executor.with_current(|| unsafe {
            match kind {
                Kind::Device => driver::mem_alloc(place, bytes),
                Kind::Managed => driver::mem_alloc_managed(place, bytes, 1),
                Kind::Pinned => driver::host_alloc(place.cast(), bytes, 0),
                Kind::Pool => driver::mem_alloc_async(place, bytes, stream),
            }
        });
        ok(made.unwrap());
        Self { executor: executor.clone(), address, bytes, kind }
    }

    pub(crate) fn device(executor: &Executor, bytes: usize) -> Self {
        Self::new(executor, bytes, Kind::Device)
    }

    pub(crate) fn managed(executor: &Executor, bytes: usize) -> Self {
        Self::new(executor, bytes, Kind::Managed)
    }

    pub(crate) fn pinned(executor: &Executor, bytes: usize) -> Self {
        Self::new(executor, bytes, Kind::Pinned)
    }

    /// It is there once the executor's stream has passed.
    pub(crate) fn pool(executor: &Executor, bytes: usize) -> Self {
        let memory = Self::new(executor, bytes, Kind::Pool);
        executor.synchronize().unwrap();
        memory
    }

    pub(crate) fn pointer(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address as usize)
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.bytes);
        let stream = self.executor.stream().unwrap();
        let from = bytes.as_ptr().addr() as u64;
        // SAFETY: both ends are as long, and live until the stream has passed below.
        let copied = self
            .executor
            .with_current(|| unsafe { driver::copy_async(self.address, from, bytes.len(), stream) });
        ok(copied.unwrap());
        self.executor.synchronize().unwrap();
    }

    /// Memory that the host reaches as well.
    pub(crate) fn as_slice(&self) -> &[u8] {
        assert!(matches!(self.kind, Kind::Managed | Kind::Pinned));
        // SAFETY: the host reaches it, and nothing is queued that writes it.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let (address, stream) = (self.address, self.executor.stream().unwrap());
        // SAFETY: the allocation is this one's alone.
        let freed = self.executor.with_current(|| unsafe {
            match self.kind {
                Kind::Pinned => driver::host_free(address as usize as *mut c_void),
                Kind::Pool => driver::mem_free_async(address, stream),
                Kind::Device | Kind::Managed => driver::mem_free(address),
            }
        });
        if !std::thread::panicking() {
            ok(freed.unwrap());
            self.executor.synchronize().unwrap();
        }
    }
}

/// Pages of the process that the driver was told about.
pub(crate) struct Registered<'b> {
    executor: Executor,
    bytes: &'b mut [u8],
}

impl<'b> Registered<'b> {
    pub(crate) fn new(executor: &Executor, bytes: &'b mut [u8]) -> Self {
        let (address, len): (Handle, _) = (bytes.as_mut_ptr().cast(), bytes.len());
        // SAFETY: the pages are live, and unregistered before they go.
        ok(executor.with_current(|| unsafe { driver::host_register(address, len, 0) }).unwrap());
        Self { executor: executor.clone(), bytes }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let address: Handle = self.bytes.as_mut_ptr().cast();
        // SAFETY: they were registered.
        let _ = self.executor.with_current(|| unsafe { driver::host_unregister(address) });
    }
}

/// Reserved addresses, of which parts are mapped.
pub(crate) struct Virtual {
    executor: Executor,
    address: u64,
    bytes: usize,
    pub(crate) granule: usize,
    mapped: Vec<(u64, usize)>,
}

impl Virtual {
    pub(crate) fn reserve(executor: &Executor, granules: usize) -> Self {
        let properties = Properties::pinned(executor.ordinal() as i32);
        let (mut granule, mut address) = (0, 0);
        let bytes = executor.with_current(|| {
            // SAFETY: the driver writes one size, and one address.
            unsafe {
                ok(driver::granularity(&raw mut granule, &raw const properties, 0));
                ok(driver::address_reserve(&raw mut address, granules * granule, 0, 0, 0));
            }
            granules * granule
        });
        let bytes = bytes.unwrap();
        Self { executor: executor.clone(), address, bytes, granule, mapped: Vec::new() }
    }

    /// Maps memory of its own behind so many granules.
    pub(crate) fn map(&mut self, first: usize, granules: usize) {
        let ordinal = self.executor.ordinal() as i32;
        let (address, bytes) = (self.address + (first * self.granule) as u64, granules * self.granule);
        let properties = Properties::pinned(ordinal);
        let access = Access { location: Location::device(ordinal), flags: 3 };
        let mapped = self.executor.with_current(|| {
            let mut memory = 0;
            // SAFETY: the addresses are reserved and nothing is mapped there. What is mapped keeps the memory.
            unsafe {
                ok(driver::mem_create(&raw mut memory, bytes, &raw const properties, 0));
                ok(driver::mem_map(address, bytes, 0, memory, 0));
                ok(driver::mem_release(memory));
                ok(driver::mem_set_access(address, bytes, &raw const access, 1));
            }
        });
        mapped.unwrap();
        self.mapped.push((address, bytes));
    }

    pub(crate) fn pointer(&self, offset: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address as usize + offset)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Virtual {
    fn drop(&mut self) {
        let mapped = std::mem::take(&mut self.mapped);
        let freed = self.executor.with_current(|| {
            // SAFETY: nothing uses what is mapped.
            let unmapped =
                mapped.iter().map(|&(address, bytes)| unsafe { driver::mem_unmap(address, bytes) });
            let mut codes: Vec<_> = unmapped.collect();
            // SAFETY: nothing is mapped there any more.
            codes.push(unsafe { driver::address_free(self.address, self.bytes) });
            codes
        });
        if !std::thread::panicking() {
            freed.unwrap().into_iter().for_each(ok);
        }
    }
}

/// A stream that the crate does not know.
pub(crate) struct RawStream {
    executor: Executor,
    pub(crate) handle: Handle,
}

impl RawStream {
    pub(crate) fn new(executor: &Executor) -> Self {
        Self::try_new(executor).unwrap()
    }

    /// As far as the driver grants one.
    pub(crate) fn try_new(executor: &Executor) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the driver writes one handle; the stream waits for no default stream.
        let code = executor.with_current(|| unsafe { driver::stream_create(&raw mut handle, 1) })?;
        if code != 0 {
            let (vendor, operation) = (executor.vendor(), Function::StreamCreate.name());
            return Err(Error::Driver { vendor, operation, code: i64::from(code), name: "" });
        }
        Ok(Self::of(executor, handle))
    }

    /// One that was made already.
    pub(crate) fn of(executor: &Executor, handle: Handle) -> Self {
        Self { executor: executor.clone(), handle }
    }

    /// Captures what `work` queues; answers the graph's handle, null where the capture was spoilt.
    pub(crate) fn capture<R>(&self, mode: u32, work: impl FnOnce() -> R) -> (R, Handle) {
        capture(&self.executor, self.handle, mode, work)
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        // SAFETY: the stream is this one's alone.
        let _ = self.executor.with_current(|| unsafe { driver::stream_destroy(self.handle) });
    }
}

// SAFETY: a stream belongs to its context, not to a thread.
unsafe impl Send for RawStream {}
// SAFETY: drivers take calls for one stream from several threads.
unsafe impl Sync for RawStream {}

pub(crate) const GLOBAL: u32 = 0;
pub(crate) const RELAXED: u32 = 2;
pub(crate) const MODES: [u32; 3] = [GLOBAL, 1, RELAXED];

/// As a user captures a stream of theirs, or that of an executor.
pub(crate) fn capture<R>(
    executor: &Executor,
    stream: Handle,
    mode: u32,
    work: impl FnOnce() -> R,
) -> (R, Handle) {
    // SAFETY: the stream is alive.
    ok(executor.with_current(|| unsafe { driver::stream_begin_capture(stream, mode) }).unwrap());
    let result = work();
    let mut graph = std::ptr::null_mut();
    // SAFETY: the driver writes one handle, null where the capture was spoilt.
    let code = executor.with_current(|| unsafe { driver::stream_end_capture(stream, &raw mut graph) });
    assert_eq!(code.unwrap() == 0, !graph.is_null());
    (result, graph)
}

/// Launches a graph once, waits, and lets it go.
pub(crate) fn launch_and_drop(executor: &Executor, graph: Handle) {
    assert!(!graph.is_null(), "the capture was spoilt");
    let stream = executor.stream().unwrap();
    let launched = executor.with_current(|| {
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph is alive, and so is what its work uses.
        unsafe {
            ok(driver::graph_instantiate(&raw mut executable, graph, 0));
            ok(driver::graph_launch(executable, stream));
            ok(driver::stream_synchronize(stream));
            ok(driver::graph_exec_destroy(executable));
            ok(driver::graph_destroy(graph));
        }
    });
    launched.unwrap();
}
