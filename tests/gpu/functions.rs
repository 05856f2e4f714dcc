//! What the drivers call their functions: a table, so that a test names a function once for all of them.

use device_arena::backend::Vendor;

use crate::driver;
use crate::vendor::vendor;

macro_rules! functions {
    ($($function:ident [$($cuda:literal),*] [$($rocm:literal),*];)+) => {
        /// A function of the driver, whatever the vendor calls it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function {
            $($function),+
        }

        impl Function {
            pub(crate) const ALL: &[Self] = &[$(Self::$function),+];

            /// The newest first; none where the vendor has no such function.
            fn names(self) -> &'static [&'static str] {
                match (vendor(), self) {
                    $((Vendor::Cuda, Self::$function) => &[$($cuda),*],)+
                    $((_, Self::$function) => &[$($rocm),*],)+
                }
            }
        }
    };
}

functions! {
    Init ["cuInit"] ["hipInit"];
    DeviceGet ["cuDeviceGet"] [];
    DeviceName [] ["hipDeviceGetName"];
    DeviceMemory [] ["hipDeviceTotalMem"];
    DeviceGetAttribute ["cuDeviceGetAttribute"] ["hipDeviceGetAttribute"];
    DeviceGetCount ["cuDeviceGetCount"] ["hipGetDeviceCount"];
    DevicePrimaryCtxRetain ["cuDevicePrimaryCtxRetain"] [];
    DevicePrimaryCtxGetState ["cuDevicePrimaryCtxGetState"] [];
    DeviceCanAccessPeer ["cuDeviceCanAccessPeer"] ["hipDeviceCanAccessPeer"];
    CtxEnablePeerAccess ["cuCtxEnablePeerAccess"] ["hipDeviceEnablePeerAccess"];
    CtxCreate ["cuCtxCreate_v2"] [];
    CtxDestroy ["cuCtxDestroy_v2"] [];
    CtxGetDevice ["cuCtxGetDevice"] [];
    CtxGetCurrent ["cuCtxGetCurrent"] ["hipGetDevice"];
    CtxPush ["cuCtxPushCurrent_v2"] ["hipSetDevice"];
    CtxPop ["cuCtxPopCurrent_v2"] [];
    GetErrorName ["cuGetErrorName"] ["hipGetErrorName"];

    MemAlloc ["cuMemAlloc_v2"] ["hipMalloc"];
    MemFree ["cuMemFree_v2"] ["hipFree"];
    MemAllocManaged ["cuMemAllocManaged"] ["hipMallocManaged"];
    MemAllocAsync ["cuMemAllocAsync"] ["hipMallocAsync"];
    MemFreeAsync ["cuMemFreeAsync"] ["hipFreeAsync"];
    MemHostAlloc ["cuMemHostAlloc"] ["hipHostMalloc"];
    MemFreeHost ["cuMemFreeHost"] ["hipHostFree"];
    MemHostGetDevicePointer ["cuMemHostGetDevicePointer_v2"] ["hipHostGetDevicePointer"];
    MemHostRegister ["cuMemHostRegister_v2"] ["hipHostRegister"];
    MemHostUnregister ["cuMemHostUnregister"] ["hipHostUnregister"];
    MemGetInfo ["cuMemGetInfo_v2"] ["hipMemGetInfo"];
    MemGetAddressRange ["cuMemGetAddressRange_v2"] ["hipMemGetAddressRange"];
    MemAddressReserve ["cuMemAddressReserve"] ["hipMemAddressReserve"];
    MemAddressFree ["cuMemAddressFree"] ["hipMemAddressFree"];
    MemCreate ["cuMemCreate"] ["hipMemCreate"];
    MemRelease ["cuMemRelease"] ["hipMemRelease"];
    MemMap ["cuMemMap"] ["hipMemMap"];
    MemUnmap ["cuMemUnmap"] ["hipMemUnmap"];
    MemSetAccess ["cuMemSetAccess"] ["hipMemSetAccess"];
    MemGetAllocationGranularity ["cuMemGetAllocationGranularity"] ["hipMemGetAllocationGranularity"];
    MemcpyAsync ["cuMemcpyAsync"] ["hipMemcpyAsync"];
    MemsetAsync ["cuMemsetD8Async"] ["hipMemsetD8Async"];
    PointerGetAttributes ["cuPointerGetAttributes"] ["hipPointerGetAttributes"];

    StreamCreate ["cuStreamCreate"] ["hipStreamCreateWithFlags"];
    StreamDestroy ["cuStreamDestroy_v2"] ["hipStreamDestroy"];
    StreamQuery ["cuStreamQuery"] ["hipStreamQuery"];
    StreamSynchronize ["cuStreamSynchronize"] ["hipStreamSynchronize"];
    StreamWaitEvent ["cuStreamWaitEvent"] ["hipStreamWaitEvent"];
    StreamGetCtx ["cuStreamGetCtx"] ["hipStreamGetDevice"];
    StreamBeginCapture ["cuStreamBeginCapture_v2"] ["hipStreamBeginCapture"];
    StreamEndCapture ["cuStreamEndCapture"] ["hipStreamEndCapture"];
    StreamIsCapturing ["cuStreamIsCapturing"] ["hipStreamIsCapturing"];
    ThreadExchangeCaptureMode ["cuThreadExchangeStreamCaptureMode"] ["hipThreadExchangeStreamCaptureMode"];
    LaunchHost ["cuLaunchHostFunc"] ["hipLaunchHostFunc", "hipStreamAddCallback"];

    EventCreate ["cuEventCreate"] ["hipEventCreateWithFlags"];
    EventDestroy ["cuEventDestroy_v2"] ["hipEventDestroy"];
    EventQuery ["cuEventQuery"] ["hipEventQuery"];
    EventRecord ["cuEventRecord"] ["hipEventRecord"];
    EventSynchronize ["cuEventSynchronize"] ["hipEventSynchronize"];

    GraphInstantiate ["cuGraphInstantiateWithFlags"] ["hipGraphInstantiateWithFlags"];
    GraphLaunch ["cuGraphLaunch"] ["hipGraphLaunch"];
    GraphDestroy ["cuGraphDestroy"] ["hipGraphDestroy"];
    GraphExecDestroy ["cuGraphExecDestroy"] ["hipGraphExecDestroy"];

    ModuleLoad ["cuModuleLoadData"] ["hipModuleLoadData"];
    ModuleUnload ["cuModuleUnload"] ["hipModuleUnload"];
    GetKernel ["cuModuleGetFunction"] ["hipModuleGetFunction"];
    LaunchKernel ["cuLaunchKernel"] ["hipModuleLaunchKernel"];
}

impl std::fmt::Display for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Function {
    /// What the vendor calls it: the newest name that this version of its library has.
    #[track_caller]
    pub(crate) fn name(self) -> &'static str {
        match self.names() {
            // So that no library is needed.
            [name] => name,
            names => {
                let found = names.iter().find(|name| driver::exports(name));
                found.unwrap_or_else(|| panic!("{} has no {self:?}", vendor()))
            }
        }
    }

    /// Whether this version of the library has it.
    pub(crate) fn is_here(self) -> bool {
        self.names().iter().any(|name| driver::exports(name))
    }
}
