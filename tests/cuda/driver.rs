//! The driver's own functions, for what a user does beside the crate. They are looked up in the library that the crate has
//! found.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use device_arena::backend::Cuda;

pub(crate) type Handle = *mut c_void;

/// How the driver counts an allocation's place.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Location {
    pub(crate) kind: u32,
    pub(crate) id: c_int,
}

impl Location {
    pub(crate) fn device(ordinal: i32) -> Self {
        Self { kind: 1, id: ordinal }
    }
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Properties {
    kind: u32,
    handle_types: u32,
    location: Location,
    win32: usize,
    flags: [u8; 8],
}

impl Properties {
    pub(crate) fn pinned(ordinal: i32) -> Self {
        let location = Location::device(ordinal);
        Self { kind: 1, handle_types: 0, location, win32: 0, flags: [0; 8] }
    }
}

/// `CUmemAccessDesc`.
#[repr(C)]
pub(crate) struct Access {
    pub(crate) location: Location,
    pub(crate) flags: u32,
}

/// The library is open already: this is the same one once more.
fn library() -> &'static libloading::Library {
    static LIBRARY: OnceLock<libloading::Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let cuda = Cuda::load().unwrap();
        // SAFETY: the crate has opened it before.
        unsafe { libloading::Library::new(cuda.library()) }.unwrap()
    })
}

/// A function of the library, by a name that ends with a zero byte.
///
/// # Safety
///
/// `F` is the type of a pointer to that function.
pub(crate) unsafe fn symbol<F: Copy>(name: &str) -> Option<F> {
    // SAFETY: the caller vouches for the type; the library stays open.
    unsafe { library().get::<F>(name.as_bytes()) }.ok().map(|function| *function)
}

macro_rules! functions {
    ($($name:ident = $symbol:literal($($argument:ident: $type:ty),* $(,)?);)+) => {
        $(
            /// # Safety
            ///
            /// As the driver's documentation says.
            pub(crate) unsafe fn $name($($argument: $type),*) -> u32 {
                // SAFETY: the type is that of the driver's declaration.
                let function = unsafe {
                    symbol::<unsafe extern "C" fn($($type),*) -> u32>(concat!($symbol, "\0"))
                };
                // SAFETY: the caller's promise is the same.
                unsafe { function.expect($symbol)($($argument),*) }
            }
        )+
    };
}

functions! {
    ctx_get_current = "cuCtxGetCurrent"(context: *mut Handle);
    ctx_push = "cuCtxPushCurrent_v2"(context: Handle);
    ctx_pop = "cuCtxPopCurrent_v2"(context: *mut Handle);
    ctx_create = "cuCtxCreate_v2"(context: *mut Handle, flags: u32, device: c_int);
    ctx_destroy = "cuCtxDestroy_v2"(context: Handle);
    primary_state = "cuDevicePrimaryCtxGetState"(device: c_int, flags: *mut u32, active: *mut c_int);
    can_access_peer = "cuDeviceCanAccessPeer"(can: *mut c_int, device: c_int, peer: c_int);
    mem_alloc = "cuMemAlloc_v2"(address: *mut u64, bytes: usize);
    mem_free = "cuMemFree_v2"(address: u64);
    mem_alloc_managed = "cuMemAllocManaged"(address: *mut u64, bytes: usize, flags: u32);
    mem_alloc_async = "cuMemAllocAsync"(address: *mut u64, bytes: usize, stream: Handle);
    mem_free_async = "cuMemFreeAsync"(address: u64, stream: Handle);
    host_alloc = "cuMemHostAlloc"(address: *mut Handle, bytes: usize, flags: u32);
    host_free = "cuMemFreeHost"(address: Handle);
    host_register = "cuMemHostRegister_v2"(address: Handle, bytes: usize, flags: u32);
    host_unregister = "cuMemHostUnregister"(address: Handle);
    address_reserve = "cuMemAddressReserve"(address: *mut u64, bytes: usize, align: usize, hint: u64, flags: u64);
    address_free = "cuMemAddressFree"(address: u64, bytes: usize);
    mem_create = "cuMemCreate"(memory: *mut u64, bytes: usize, properties: *const Properties, flags: u64);
    mem_release = "cuMemRelease"(memory: u64);
    mem_map = "cuMemMap"(address: u64, bytes: usize, offset: usize, memory: u64, flags: u64);
    mem_unmap = "cuMemUnmap"(address: u64, bytes: usize);
    mem_set_access = "cuMemSetAccess"(address: u64, bytes: usize, access: *const Access, count: usize);
    granularity = "cuMemGetAllocationGranularity"(bytes: *mut usize, properties: *const Properties, option: u32);
    copy_async = "cuMemcpyAsync"(to: u64, from: u64, bytes: usize, stream: Handle);
    stream_create = "cuStreamCreate"(stream: *mut Handle, flags: u32);
    stream_destroy = "cuStreamDestroy_v2"(stream: Handle);
    stream_query = "cuStreamQuery"(stream: Handle);
    stream_synchronize = "cuStreamSynchronize"(stream: Handle);
    stream_begin_capture = "cuStreamBeginCapture_v2"(stream: Handle, mode: u32);
    stream_end_capture = "cuStreamEndCapture"(stream: Handle, graph: *mut Handle);
    graph_instantiate = "cuGraphInstantiateWithFlags"(executable: *mut Handle, graph: Handle, flags: u64);
    graph_launch = "cuGraphLaunch"(executable: Handle, stream: Handle);
    graph_destroy = "cuGraphDestroy"(graph: Handle);
    graph_exec_destroy = "cuGraphExecDestroy"(executable: Handle);
    launch_host = "cuLaunchHostFunc"(stream: Handle, work: unsafe extern "C" fn(*mut c_void), argument: Handle);
}

/// Fails the test where a call of the driver did not succeed.
#[track_caller]
pub(crate) fn ok(code: u32) {
    assert_eq!(code, 0, "the driver answers {code}");
}

/// The context that is current on this thread; null for none.
pub(crate) fn current() -> Handle {
    let mut context = std::ptr::null_mut();
    // SAFETY: the driver writes one handle.
    ok(unsafe { ctx_get_current(&raw mut context) });
    context
}

/// Makes a context current until it is dropped.
pub(crate) struct Pushed(());

impl Pushed {
    /// # Safety
    ///
    /// The context is alive until this is dropped.
    pub(crate) unsafe fn new(context: Handle) -> Self {
        // SAFETY: the caller's promise.
        ok(unsafe { ctx_push(context) });
        Self(())
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        unsafe { ctx_pop(&raw mut popped) };
    }
}
