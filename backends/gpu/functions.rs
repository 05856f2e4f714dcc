//! The functions that every vendor has in one form: as NVIDIA's driver calls them, and as HIP does. Handles are untyped
//! pointers and device addresses 64-bit integers, which both pass alike.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::table::table;

type Handle = *mut c_void;

table! {
    /// The functions that every vendor has, looked up once.
    Table
    required {
        mem_get_info = "cuMemGetInfo_v2" | "hipMemGetInfo"(*mut usize, *mut usize);
        mem_alloc = "cuMemAlloc_v2" | "hipMalloc"(*mut u64, usize);
        mem_free = "cuMemFree_v2" | "hipFree"(u64);
        host_alloc = "cuMemHostAlloc" | "hipHostMalloc"(*mut Handle, usize, c_uint);
        host_free = "cuMemFreeHost" | "hipHostFree"(Handle);
        host_device_pointer = "cuMemHostGetDevicePointer_v2" | "hipHostGetDevicePointer"(*mut u64, Handle, c_uint);
        address_range = "cuMemGetAddressRange_v2" | "hipMemGetAddressRange"(*mut u64, *mut usize, u64);
        stream_create = "cuStreamCreate" | "hipStreamCreateWithFlags"(*mut Handle, c_uint);
        stream_destroy = "cuStreamDestroy_v2" | "hipStreamDestroy"(Handle);
        stream_query = "cuStreamQuery" | "hipStreamQuery"(Handle);
        stream_wait_event = "cuStreamWaitEvent" | "hipStreamWaitEvent"(Handle, Handle, c_uint);
        stream_begin_capture = "cuStreamBeginCapture_v2" | "hipStreamBeginCapture"(Handle, c_uint);
        stream_end_capture = "cuStreamEndCapture" | "hipStreamEndCapture"(Handle, *mut Handle);
        graph_instantiate = "cuGraphInstantiateWithFlags" | "hipGraphInstantiateWithFlags"(*mut Handle, Handle, u64);
        graph_launch = "cuGraphLaunch" | "hipGraphLaunch"(Handle, Handle);
        graph_exec_destroy = "cuGraphExecDestroy" | "hipGraphExecDestroy"(Handle);
        graph_destroy = "cuGraphDestroy" | "hipGraphDestroy"(Handle);
        event_create = "cuEventCreate" | "hipEventCreateWithFlags"(*mut Handle, c_uint);
        event_record = "cuEventRecord" | "hipEventRecord"(Handle, Handle);
        event_query = "cuEventQuery" | "hipEventQuery"(Handle);
        event_synchronize = "cuEventSynchronize" | "hipEventSynchronize"(Handle);
        event_destroy = "cuEventDestroy_v2" | "hipEventDestroy"(Handle);
        fill = "cuMemsetD8Async" | "hipMemsetD8Async"(u64, u8, usize, Handle);
        module_load = "cuModuleLoadData" | "hipModuleLoadData"(*mut Handle, *const c_void);
        module_unload = "cuModuleUnload" | "hipModuleUnload"(Handle);
        module_function = "cuModuleGetFunction" | "hipModuleGetFunction"(*mut Handle, Handle, *const c_char);
        launch = "cuLaunchKernel" | "hipModuleLaunchKernel"(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
        );
        can_access_peer = "cuDeviceCanAccessPeer" | "hipDeviceCanAccessPeer"(*mut c_int, c_int, c_int);
    }
    optional {
        stream_is_capturing = "cuStreamIsCapturing" | "hipStreamIsCapturing"(Handle, *mut c_int);
        exchange_capture_mode = "cuThreadExchangeStreamCaptureMode" | "hipThreadExchangeStreamCaptureMode"(*mut c_uint);
    }
}
