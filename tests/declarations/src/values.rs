//! Layouts and numbers of HIP's that the crate writes out, as `hip-sys` has them.

use std::mem::offset_of;

use hip_sys::hiprt::*;

macro_rules! equal {
    ($( $theirs:expr => $ours:expr; )*) => {
        $( const _: () = assert!($theirs as i64 == $ours, concat!(stringify!($theirs), " is not ", stringify!($ours))); )*
    };
}

// What a pointer is. The kind was `memoryType` in HIP 5, and is `type` now.
equal! {
    size_of::<hipPointerAttribute_t>() => 32;
    align_of::<hipPointerAttribute_t>() => 8;
    offset_of!(hipPointerAttribute_t, memoryType) => 0;
    offset_of!(hipPointerAttribute_t, device) => 4;
    offset_of!(hipPointerAttribute_t, devicePointer) => 8;
    offset_of!(hipPointerAttribute_t, hostPointer) => 16;
    offset_of!(hipPointerAttribute_t, isManaged) => 24;
    offset_of!(hipPointerAttribute_t, allocationFlags) => 28;
    hipMemoryType::hipMemoryTypeHost => 0;
    hipMemoryType::hipMemoryTypeDevice => 1;
    hipMemoryType::hipMemoryTypeUnified => 3;
    hipPointer_attribute::HIP_POINTER_ATTRIBUTE_BUFFER_ID => 7;
}

// A device's properties, as they were before HIP 6: less than the room that the crate has for any version's.
const _: () = assert!(size_of::<hipDeviceProp_t>() <= 16 << 10);
equal! {
    offset_of!(hipDeviceProp_t, gcnArchName) => 396;
}

equal! {
    hipDeviceAttribute_t::hipDeviceAttributeMaxThreadsPerBlock => 56;
    hipDeviceAttribute_t::hipDeviceAttributeMultiprocessorCount => 63;
    hipDeviceAttribute_t::hipDeviceAttributePageableMemoryAccess => 65;
    hipDeviceAttribute_t::hipDeviceAttributePageableMemoryAccessUsesHostPageTables => 66;
}

equal! {
    hipMemcpyKind::hipMemcpyDefault => 4;
    hipStreamNonBlocking => 1;
    hipHostMallocPortable => 1;
    hipHostMallocMapped => 2;
    hipHostMallocCoherent => 0x4000_0000;
    hipEventDisableTiming => 2;
    hipStreamCaptureMode::hipStreamCaptureModeRelaxed => 2;
}

equal! {
    hipError_t::hipErrorInvalidValue => 1;
    hipError_t::hipErrorOutOfMemory => 2;
    hipError_t::hipErrorDeinitialized => 4;
    hipError_t::hipErrorNoDevice => 100;
    hipError_t::hipErrorInvalidDevice => 101;
    hipError_t::hipErrorNotFound => 500;
    hipError_t::hipErrorNotReady => 600;
    hipError_t::hipErrorPeerAccessAlreadyEnabled => 704;
    hipError_t::hipErrorStreamCaptureUnsupported => 900;
    hipError_t::hipErrorStreamCaptureImplicit => 906;
    hipError_t::hipErrorCapturedEvent => 907;
}
