//! The driver's functions that are used. A status is a `u32`, not an enum: a code that this crate does not know would
//! be undefined behaviour in one. Handles are untyped pointers and device addresses 64-bit integers, which the
//! drivers pass alike.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// A function of the driver, under the name that errors carry.
#[derive(Clone, Copy)]
pub(crate) struct Function<F> {
    pub(crate) name: &'static str,
    pub(crate) call: F,
}

type Handle = *mut c_void;
type HostFunction = unsafe extern "C" fn(*mut c_void);

/// Declares a table of functions, and how it is looked up.
macro_rules! table {
    (
        $(#[$meta:meta])* $table:ident
        required { $( $field:ident = $name:literal($($argument:ty),* $(,)?); )+ }
        optional { $( $spare:ident = $spare_name:literal($($spare_argument:ty),* $(,)?); )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub(crate) struct $table {
            $( pub(crate) $field:
                $crate::backends::gpu::table::Function<unsafe extern "C" fn($($argument),*) -> u32>, )+
            $( pub(crate) $spare:
                Option<$crate::backends::gpu::table::Function<unsafe extern "C" fn($($spare_argument),*) -> u32>>, )+
        }

        impl $table {
            /// # Errors
            ///
            /// [`Error::Unavailable`](crate::Error::Unavailable), with the name of the first that the library lacks.
            pub(crate) fn load(library: &$crate::backends::gpu::library::Library) -> crate::Result<Self> {
                Ok(Self {
                    $( $field: $crate::backends::gpu::table::Function {
                        name: $name,
                        // SAFETY: the type is that of the driver's declaration.
                        call: unsafe { library.function($name) }.ok_or_else(|| library.lacks($name))?,
                    }, )+
                    // SAFETY: as above.
                    $( $spare: unsafe { library.function($spare_name) }
                        .map(|call| $crate::backends::gpu::table::Function { name: $spare_name, call }), )+
                })
            }
        }

        impl std::fmt::Debug for $table {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($table)).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use table;

table! {
    /// The functions that every vendor has, looked up once.
    Table
    required {
    mem_get_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
    mem_alloc = "cuMemAlloc_v2"(*mut u64, usize);
    mem_free = "cuMemFree_v2"(u64);
    host_alloc = "cuMemHostAlloc"(*mut Handle, usize, c_uint);
    host_free = "cuMemFreeHost"(Handle);
    host_device_pointer = "cuMemHostGetDevicePointer_v2"(*mut u64, Handle, c_uint);
    address_range = "cuMemGetAddressRange_v2"(*mut u64, *mut usize, u64);
    stream_create = "cuStreamCreate"(*mut Handle, c_uint);
    stream_destroy = "cuStreamDestroy_v2"(Handle);
    stream_query = "cuStreamQuery"(Handle);
    stream_wait_event = "cuStreamWaitEvent"(Handle, Handle, c_uint);
    stream_begin_capture = "cuStreamBeginCapture_v2"(Handle, c_uint);
    stream_end_capture = "cuStreamEndCapture"(Handle, *mut Handle);
    graph_instantiate = "cuGraphInstantiateWithFlags"(*mut Handle, Handle, u64);
    graph_launch = "cuGraphLaunch"(Handle, Handle);
    graph_exec_destroy = "cuGraphExecDestroy"(Handle);
    graph_destroy = "cuGraphDestroy"(Handle);
    event_create = "cuEventCreate"(*mut Handle, c_uint);
    event_record = "cuEventRecord"(Handle, Handle);
    event_query = "cuEventQuery"(Handle);
    event_synchronize = "cuEventSynchronize"(Handle);
    event_destroy = "cuEventDestroy_v2"(Handle);
    launch_host = "cuLaunchHostFunc"(Handle, HostFunction, *mut c_void);
    copy = "cuMemcpyAsync"(u64, u64, usize, Handle);
    fill = "cuMemsetD8Async"(u64, u8, usize, Handle);
    module_load = "cuModuleLoadData"(*mut Handle, *const c_void);
    module_unload = "cuModuleUnload"(Handle);
    module_function = "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
    launch = "cuLaunchKernel"(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
    can_access_peer = "cuDeviceCanAccessPeer"(*mut c_int, c_int, c_int);
    enable_peer_access = "cuCtxEnablePeerAccess"(Handle, c_uint);
    }
    optional {
    error_name = "cuGetErrorName"(u32, *mut *const c_char);
    stream_is_capturing = "cuStreamIsCapturing"(Handle, *mut c_int);
    exchange_capture_mode = "cuThreadExchangeStreamCaptureMode"(*mut c_uint);
    }
}
