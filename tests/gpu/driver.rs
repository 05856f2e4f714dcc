//! The driver's own functions, for what a user does beside the crate. They are looked up in the library that the crate has
//! found. The vendors' declarations are alike, but for what is written out here.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::functions::Function;
use crate::turn::Turn;
use crate::vendor;
use crate::vendors::version_and_library;

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

/// `CUmemAllocationProp`; AMD's has fewer flags, and is as large.
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

/// `CUmemAccessDesc`, likewise.
#[repr(C)]
pub(crate) struct Access {
    pub(crate) location: Location,
    pub(crate) flags: u32,
}

/// The library is open already: this is the same one once more.
fn library() -> &'static libloading::Library {
    static LIBRARY: OnceLock<libloading::Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let backend = vendor::load().unwrap();
        let (_, library) = version_and_library(&backend);
        // SAFETY: the crate has opened it before.
        unsafe { libloading::Library::new(library) }.unwrap()
    })
}

/// A function of the library.
///
/// # Safety
///
/// `F` is the type of a pointer to that function.
pub(crate) unsafe fn symbol<F: Copy>(name: &str) -> Option<F> {
    // SAFETY: the caller vouches for the type; the library stays open.
    unsafe { library().get::<F>(name.as_bytes()) }.ok().map(|function| *function)
}

pub(crate) fn exports(name: &str) -> bool {
    // SAFETY: any function is at an address, and it is not called.
    unsafe { symbol::<*const c_void>(name) }.is_some()
}

macro_rules! functions {
    ($($name:ident = $function:ident($($argument:ident: $type:ty),* $(,)?);)+) => {
        $(
            /// # Safety
            ///
            /// As the driver's documentation says.
            pub(crate) unsafe fn $name($($argument: $type),*) -> u32 {
                let name = Function::$function.name();
                // SAFETY: the type is that of the driver's declaration.
                let function = unsafe { symbol::<unsafe extern "C" fn($($type),*) -> u32>(name) };
                // SAFETY: the caller's promise is the same.
                unsafe { function.expect(name)($($argument),*) }
            }
        )+
    };
}

functions! {
    ctx_get_current = CtxGetCurrent(context: *mut Handle);
    ctx_push = CtxPush(context: Handle);
    ctx_pop = CtxPop(context: *mut Handle);
    ctx_create = CtxCreate(context: *mut Handle, flags: u32, device: c_int);
    ctx_destroy = CtxDestroy(context: Handle);
    primary_state = DevicePrimaryCtxGetState(device: c_int, flags: *mut u32, active: *mut c_int);
    get_device = CtxGetCurrent(device: *mut c_int);
    set_device = CtxPush(device: c_int);
    can_access_peer = DeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
    mem_alloc = MemAlloc(address: *mut u64, bytes: usize);
    mem_free = MemFree(address: u64);
    mem_alloc_managed = MemAllocManaged(address: *mut u64, bytes: usize, flags: u32);
    mem_alloc_async = MemAllocAsync(address: *mut u64, bytes: usize, stream: Handle);
    mem_free_async = MemFreeAsync(address: u64, stream: Handle);
    host_alloc = MemHostAlloc(address: *mut Handle, bytes: usize, flags: u32);
    host_free = MemFreeHost(address: Handle);
    host_register = MemHostRegister(address: Handle, bytes: usize, flags: u32);
    host_unregister = MemHostUnregister(address: Handle);
    address_reserve = MemAddressReserve(address: *mut u64, bytes: usize, align: usize, hint: u64, flags: u64);
    address_free = MemAddressFree(address: u64, bytes: usize);
    mem_create = MemCreate(memory: *mut u64, bytes: usize, properties: *const Properties, flags: u64);
    mem_release = MemRelease(memory: u64);
    mem_map = MemMap(address: u64, bytes: usize, offset: usize, memory: u64, flags: u64);
    mem_unmap = MemUnmap(address: u64, bytes: usize);
    mem_set_access = MemSetAccess(address: u64, bytes: usize, access: *const Access, count: usize);
    granularity = MemGetAllocationGranularity(bytes: *mut usize, properties: *const Properties, option: u32);
    copy_on_nvidia = MemcpyAsync(to: u64, from: u64, bytes: usize, stream: Handle);
    copy_on_amd = MemcpyAsync(to: u64, from: u64, bytes: usize, kind: u32, stream: Handle);
    stream_create = StreamCreate(stream: *mut Handle, flags: u32);
    stream_destroy = StreamDestroy(stream: Handle);
    stream_query = StreamQuery(stream: Handle);
    stream_synchronize = StreamSynchronize(stream: Handle);
    stream_begin_capture = StreamBeginCapture(stream: Handle, mode: u32);
    stream_end_capture = StreamEndCapture(stream: Handle, graph: *mut Handle);
    graph_instantiate = GraphInstantiate(executable: *mut Handle, graph: Handle, flags: u64);
    graph_launch = GraphLaunch(executable: Handle, stream: Handle);
    graph_destroy = GraphDestroy(graph: Handle);
    graph_exec_destroy = GraphExecDestroy(executable: Handle);
    launch_work = LaunchHost(stream: Handle, work: Work, argument: Handle);
    add_callback = LaunchHost(stream: Handle, callback: Callback, argument: Handle, flags: u32);
}

/// # Safety
///
/// As the driver's documentation says.
pub(crate) unsafe fn copy_async(to: u64, from: u64, bytes: usize, stream: Handle) -> u32 {
    /// The pointers say which way.
    const DEFAULT: u32 = 4;
    if vendor::is_nvidia() {
        // SAFETY: the caller's promise is the same.
        unsafe { copy_on_nvidia(to, from, bytes, stream) }
    } else {
        // SAFETY: as above.
        unsafe { copy_on_amd(to, from, bytes, DEFAULT, stream) }
    }
}

/// What a stream runs on the host.
pub(crate) type Work = unsafe extern "C" fn(Handle);
/// As an older library takes it: with the stream, and its status.
type Callback = unsafe extern "C" fn(Handle, u32, Handle);

/// # Safety
///
/// As the driver's documentation says.
pub(crate) unsafe fn launch_host(stream: Handle, work: Work, argument: Handle) -> u32 {
    unsafe extern "C" fn run(_: Handle, _: u32, both: Handle) {
        // SAFETY: the box was leaked below, for this one call.
        let (work, argument) = *unsafe { Box::from_raw(both.cast::<(Work, Handle)>()) };
        // SAFETY: the promise of who launched it.
        unsafe { work(argument) };
    }
    if Function::LaunchHost.name() == "hipStreamAddCallback" {
        let both = Box::into_raw(Box::new((work, argument)));
        // SAFETY: the caller's promise is the same.
        return unsafe { add_callback(stream, run, both.cast(), 0) };
    }
    // SAFETY: as above.
    unsafe { launch_work(stream, work, argument) }
}

/// Fails the test where a call of the driver did not succeed.
#[track_caller]
pub(crate) fn ok(code: u32) {
    assert_eq!(code, 0, "the driver answers {code}");
}

/// The context that is current on this thread, null for none. AMD's runtime has a device instead, by its number: on a thread
/// that has chosen none it is 0, which is null as well.
pub(crate) fn current() -> Handle {
    let (mut context, mut device) = (std::ptr::null_mut(), 0);
    if vendor::is_nvidia() {
        // SAFETY: the driver writes one handle.
        ok(unsafe { ctx_get_current(&raw mut context) });
        return context;
    }
    // SAFETY: the runtime writes one number.
    ok(unsafe { get_device(&raw mut device) });
    std::ptr::without_provenance_mut(device as usize)
}

/// Makes what [`current`] has answered current until it is dropped.
pub(crate) struct Pushed {
    before: Handle,
}

impl Pushed {
    /// # Safety
    ///
    /// The context is alive until this is dropped.
    pub(crate) unsafe fn new(context: Handle) -> Self {
        let before = current();
        if vendor::is_nvidia() {
            // SAFETY: the caller's promise.
            ok(unsafe { ctx_push(context) });
        } else {
            // SAFETY: any number is taken.
            ok(unsafe { set_device(context.addr() as c_int) });
        }
        Self { before }
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        if vendor::is_nvidia() {
            // SAFETY: the driver writes one handle.
            unsafe { ctx_pop(&raw mut popped) };
        } else {
            // SAFETY: any number is taken.
            unsafe { set_device(self.before.addr() as c_int) };
        }
    }
}

/// What somebody else may have current: a context beside the primary ones, or another device where there are no contexts.
pub(crate) struct Context(Handle);

impl Context {
    /// On NVIDIA's driver alone.
    pub(crate) fn new(ordinal: i32) -> Self {
        let (mut context, mut popped) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the driver writes one handle, and makes it current.
        unsafe {
            ok(ctx_create(&raw mut context, 0, ordinal));
            ok(ctx_pop(&raw mut popped));
        }
        Self(context)
    }

    /// Another than that of an executor of the first ordinal: on NVIDIA's driver a context of `ordinal`, elsewhere the
    /// second device, for want of which the skip is printed.
    pub(crate) fn other(turn: &Turn, ordinal: u32) -> Option<Self> {
        if vendor::is_nvidia() {
            return Some(Self::new(ordinal as i32));
        }
        turn.has_two().then(|| Self(std::ptr::without_provenance_mut(1)))
    }

    pub(crate) fn handle(&self) -> Handle {
        self.0
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if vendor::is_nvidia() {
            // SAFETY: the context is this one's alone.
            unsafe { ctx_destroy(self.0) };
        }
    }
}

// SAFETY: a context belongs to no thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}
