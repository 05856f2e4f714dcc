//! The CUDA driver's functions that HIP's are made of.

#[cfg(not(forward))]
pub(super) use crate::cuda::{
    cuCtxEnablePeerAccess, cuCtxPopCurrent_v2, cuCtxPushCurrent_v2, cuCtxSynchronize, cuDeviceCanAccessPeer,
    cuDeviceGetAttribute, cuDeviceGetCount, cuDeviceGetName, cuDevicePrimaryCtxRetain, cuDeviceTotalMem_v2,
    cuEventCreate, cuEventDestroy_v2, cuEventQuery, cuEventRecord, cuEventSynchronize, cuGraphDestroy,
    cuGraphExecDestroy, cuGraphInstantiateWithFlags, cuGraphLaunch, cuInit, cuIpcCloseMemHandle,
    cuIpcGetMemHandle, cuIpcOpenMemHandle_v2, cuLaunchHostFunc, cuLaunchKernel, cuMemAddressFree,
    cuMemAddressReserve, cuMemAlloc_v2, cuMemAllocAsync, cuMemAllocManaged, cuMemCreate,
    cuMemExportToShareableHandle, cuMemFree_v2, cuMemFreeAsync, cuMemFreeHost, cuMemGetAddressRange_v2,
    cuMemGetAllocationGranularity, cuMemGetInfo_v2, cuMemHostAlloc, cuMemHostGetDevicePointer_v2,
    cuMemHostRegister_v2, cuMemHostUnregister, cuMemImportFromShareableHandle, cuMemMap, cuMemRelease,
    cuMemSetAccess, cuMemUnmap, cuMemcpyAsync, cuMemsetD8Async, cuModuleGetFunction, cuModuleLoadData,
    cuModuleUnload, cuPointerGetAttributes, cuStreamBeginCapture_v2, cuStreamCreate, cuStreamDestroy_v2,
    cuStreamEndCapture, cuStreamGetCtx, cuStreamIsCapturing, cuStreamQuery, cuStreamSynchronize,
    cuStreamWaitEvent, cuThreadExchangeStreamCaptureMode,
};

#[cfg(forward)]
pub(super) use forwarded::*;

/// The same functions in the machine's own driver, each looked up at its first call. The driver is never closed.
#[cfg(forward)]
mod forwarded {
    use std::ffi::{CStr, c_char, c_int, c_void};
    use std::sync::LazyLock;

    use crate::core::status::Status;
    use crate::structures::{AccessDescription, AllocationProperties, SharedMemory};

    type Handle = *mut c_void;
    type HostFunction = unsafe extern "C" fn(*mut c_void);

    static LIBRARY: LazyLock<usize> = LazyLock::new(|| {
        // HIP goes by its own variable first, and by NVIDIA's where there is none.
        if let Some(devices) = std::env::var_os("HIP_VISIBLE_DEVICES") {
            // SAFETY: a stand-in for tests, which set no variables beside the first call of a driver.
            unsafe { std::env::set_var("CUDA_VISIBLE_DEVICES", devices) };
        }
        let found = [c"libcuda.so.1", c"libcuda.so"]
            .into_iter()
            // SAFETY: the vendor's driver, which runs its initialisers.
            .map(|name| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) })
            .find(|library| !library.is_null());
        found.map_or(0, |library| library.expose_provenance())
    });

    fn find(name: &CStr) -> usize {
        let library = *LIBRARY;
        if library == 0 {
            return 0;
        }
        let library = std::ptr::with_exposed_provenance_mut(library);
        // SAFETY: an open library and a C string.
        unsafe { libc::dlsym(library, name.as_ptr()) }.expose_provenance()
    }

    macro_rules! forwarded {
        ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
            pub unsafe fn $name($($argument: $type),*) -> u32 {
                static PLACE: LazyLock<usize> = LazyLock::new(|| {
                    find(const {
                        match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                            Ok(name) => name,
                            Err(_) => panic!("a name"),
                        }
                    })
                });
                let place = *PLACE;
                if place == 0 {
                    // No driver is no device.
                    return if *LIBRARY == 0 { Status::NO_DEVICE.0 } else { Status::NOT_SUPPORTED.0 };
                }
                let place: *const c_void = std::ptr::with_exposed_provenance(place);
                // SAFETY: the type is that of the driver's declaration, and the arguments are the caller's.
                unsafe {
                    let function: unsafe extern "C" fn($($type),*) -> u32 = std::mem::transmute(place);
                    function($($argument),*)
                }
            }
        )*};
    }

    forwarded! {
        cuCtxEnablePeerAccess(peer: Handle, flags: u32);
        cuCtxPopCurrent_v2(context: *mut Handle);
        cuCtxPushCurrent_v2(context: Handle);
        cuCtxSynchronize();
        cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
        cuDeviceGetAttribute(value: *mut c_int, attribute: u32, device: c_int);
        cuDeviceGetCount(count: *mut c_int);
        cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
        cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
        cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int);
        cuEventCreate(event: *mut Handle, flags: u32);
        cuEventDestroy_v2(event: Handle);
        cuEventQuery(event: Handle);
        cuEventRecord(event: Handle, stream: Handle);
        cuEventSynchronize(event: Handle);
        cuGraphDestroy(graph: Handle);
        cuGraphExecDestroy(executable: Handle);
        cuGraphInstantiateWithFlags(executable: *mut Handle, graph: Handle, flags: u64);
        cuGraphLaunch(executable: Handle, stream: Handle);
        cuInit(flags: u32);
        cuIpcCloseMemHandle(address: u64);
        cuIpcGetMemHandle(handle: *mut SharedMemory, address: u64);
        cuIpcOpenMemHandle_v2(address: *mut u64, handle: SharedMemory, flags: u32);
        cuLaunchHostFunc(stream: Handle, function: Option<HostFunction>, argument: *mut c_void);
        cuLaunchKernel(
            function: Handle, blocks_x: u32, blocks_y: u32, blocks_z: u32, threads_x: u32, threads_y: u32,
            threads_z: u32, shared: u32, stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
        );
        cuMemAddressFree(address: u64, bytes: usize);
        cuMemAddressReserve(address: *mut u64, bytes: usize, alignment: usize, hint: u64, flags: u64);
        cuMemAllocAsync(address: *mut u64, bytes: usize, stream: Handle);
        cuMemAllocManaged(address: *mut u64, bytes: usize, flags: u32);
        cuMemAlloc_v2(address: *mut u64, bytes: usize);
        cuMemCreate(memory: *mut u64, bytes: usize, properties: *const AllocationProperties, flags: u64);
        cuMemExportToShareableHandle(place: *mut c_void, memory: u64, kind: u32, flags: u64);
        cuMemFreeAsync(address: u64, stream: Handle);
        cuMemFreeHost(address: *mut c_void);
        cuMemFree_v2(address: u64);
        cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut usize, address: u64);
        cuMemGetAllocationGranularity(bytes: *mut usize, properties: *const AllocationProperties, option: u32);
        cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
        cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: u32);
        cuMemHostGetDevicePointer_v2(device: *mut u64, host: *mut c_void, flags: u32);
        cuMemHostRegister_v2(address: *mut c_void, bytes: usize, flags: u32);
        cuMemHostUnregister(address: *mut c_void);
        cuMemImportFromShareableHandle(memory: *mut u64, shared: *mut c_void, kind: u32);
        cuMemMap(address: u64, bytes: usize, offset: usize, memory: u64, flags: u64);
        cuMemRelease(memory: u64);
        cuMemSetAccess(address: u64, bytes: usize, descriptions: *const AccessDescription, count: usize);
        cuMemUnmap(address: u64, bytes: usize);
        cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Handle);
        cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: Handle);
        cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
        cuModuleLoadData(module: *mut Handle, image: *const c_void);
        cuModuleUnload(module: Handle);
        cuPointerGetAttributes(count: u32, attributes: *const u32, places: *mut *mut c_void, address: u64);
        cuStreamBeginCapture_v2(stream: Handle, mode: u32);
        cuStreamCreate(stream: *mut Handle, flags: u32);
        cuStreamDestroy_v2(stream: Handle);
        cuStreamEndCapture(stream: Handle, graph: *mut Handle);
        cuStreamGetCtx(stream: Handle, context: *mut Handle);
        cuStreamIsCapturing(stream: Handle, status: *mut u32);
        cuStreamQuery(stream: Handle);
        cuStreamSynchronize(stream: Handle);
        cuStreamWaitEvent(stream: Handle, event: Handle, flags: u32);
        cuThreadExchangeStreamCaptureMode(mode: *mut u32);
    }
}
