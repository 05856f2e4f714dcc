//! The functions of HIP that no other vendor has in this form. Statuses are `u32`, as in the table that vendors share.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::super::gpu::table::table;

type Handle = *mut c_void;
type HostFunction = unsafe extern "C" fn(*mut c_void);
type Callback = unsafe extern "C" fn(Handle, u32, *mut c_void);

table! {
    /// What says whether there is a device at all.
    FirstTable
    required {
        init = "hipInit"(c_uint);
        device_count = "hipGetDeviceCount"(*mut c_int);
        peek_error = "hipPeekAtLastError"();
        take_error = "hipGetLastError"();
    }
    optional {}
}

table! {
    /// HIP's own functions, looked up once.
    OwnTable
    required {
        runtime_version = "hipRuntimeGetVersion"(*mut c_int);
        current_device = "hipGetDevice"(*mut c_int);
        set_device = "hipSetDevice"(c_int);
        device_name = "hipDeviceGetName"(*mut c_char, c_int, c_int);
        device_memory = "hipDeviceTotalMem"(*mut usize, c_int);
        device_attribute = "hipDeviceGetAttribute"(*mut c_int, c_uint, c_int);
        enable_peer_access = "hipDeviceEnablePeerAccess"(c_int, c_uint);
        pointer_attributes = "hipPointerGetAttributes"(*mut c_void, *const c_void);
        copy = "hipMemcpyAsync"(u64, u64, usize, c_uint, Handle);
    }
    optional {
        pci_bus_id = "hipDeviceGetPCIBusId"(*mut c_char, c_int, c_int);
        properties_r0600 = "hipGetDevicePropertiesR0600"(*mut c_void, c_int);
        properties = "hipGetDeviceProperties"(*mut c_void, c_int);
        pointer_attribute = "hipPointerGetAttribute"(*mut c_void, c_uint, u64);
        stream_device = "hipStreamGetDevice"(Handle, *mut c_int);
        // Answers no status but an ordinal, and -1 for a stream that it does not know.
        stream_device_id = "hipGetStreamDeviceId"(Handle);
        launch_host = "hipLaunchHostFunc"(Handle, HostFunction, *mut c_void);
        add_callback = "hipStreamAddCallback"(Handle, Callback, *mut c_void, c_uint);
    }
}
