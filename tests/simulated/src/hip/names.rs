//! The names and the texts of errors.

use std::ffi::CStr;

use super::settings::Version;

pub(super) struct Described {
    number: u32,
    pub name: &'static CStr,
    text: &'static CStr,
}

impl Described {
    /// What it means. Versions before 5.3 say the name again.
    pub(super) fn text(&self, version: Version) -> &'static CStr {
        if version.is_at_least(5, 3) { self.text } else { self.name }
    }
}

pub(super) const UNKNOWN: Described = described(999, c"hipErrorUnknown", c"unknown error");

const fn described(number: u32, name: &'static CStr, text: &'static CStr) -> Described {
    Described { number, name, text }
}

pub(super) fn find(number: u32) -> Option<&'static Described> {
    ALL.iter().find(|described| described.number == number)
}

/// By hip_runtime_api.h. Of numbers with two names it has the one that the runtime gives.
#[rustfmt::skip]
static ALL: &[Described] = &[
    described(0, c"hipSuccess", c"no error"),
    described(1, c"hipErrorInvalidValue", c"invalid argument"),
    described(2, c"hipErrorOutOfMemory", c"out of memory"),
    described(3, c"hipErrorNotInitialized", c"initialization error"),
    described(4, c"hipErrorDeinitialized", c"driver shutting down"),
    described(5, c"hipErrorProfilerDisabled", c"profiler is disabled"),
    described(6, c"hipErrorProfilerNotInitialized", c"profiler is not initialized"),
    described(7, c"hipErrorProfilerAlreadyStarted", c"profiler already started"),
    described(8, c"hipErrorProfilerAlreadyStopped", c"profiler already stopped"),
    described(9, c"hipErrorInvalidConfiguration", c"invalid configuration argument"),
    described(12, c"hipErrorInvalidPitchValue", c"invalid pitch argument"),
    described(13, c"hipErrorInvalidSymbol", c"invalid device symbol"),
    described(17, c"hipErrorInvalidDevicePointer", c"invalid device pointer"),
    described(21, c"hipErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
    described(35, c"hipErrorInsufficientDriver", c"driver version is insufficient for runtime version"),
    described(52, c"hipErrorMissingConfiguration", c"kernel call is not configured"),
    described(53, c"hipErrorPriorLaunchFailure", c"a prior launch failed"),
    described(98, c"hipErrorInvalidDeviceFunction", c"invalid device function"),
    described(100, c"hipErrorNoDevice", c"no ROCm-capable device is detected"),
    described(101, c"hipErrorInvalidDevice", c"invalid device ordinal"),
    described(200, c"hipErrorInvalidImage", c"device kernel image is invalid"),
    described(201, c"hipErrorInvalidContext", c"invalid device context"),
    described(202, c"hipErrorContextAlreadyCurrent", c"context is already current"),
    described(205, c"hipErrorMapFailed", c"mapping of buffer object failed"),
    described(206, c"hipErrorUnmapFailed", c"unmapping of buffer object failed"),
    described(207, c"hipErrorArrayIsMapped", c"array is mapped"),
    described(208, c"hipErrorAlreadyMapped", c"resource already mapped"),
    described(209, c"hipErrorNoBinaryForGpu", c"no kernel image is available for execution on the device"),
    described(210, c"hipErrorAlreadyAcquired", c"resource already acquired"),
    described(211, c"hipErrorNotMapped", c"resource not mapped"),
    described(212, c"hipErrorNotMappedAsArray", c"resource not mapped as array"),
    described(213, c"hipErrorNotMappedAsPointer", c"resource not mapped as pointer"),
    described(214, c"hipErrorECCNotCorrectable", c"uncorrectable memory error encountered"),
    described(215, c"hipErrorUnsupportedLimit", c"limit is not supported on this architecture"),
    described(216, c"hipErrorContextAlreadyInUse", c"device is in use by another thread"),
    described(217, c"hipErrorPeerAccessUnsupported", c"peer access is not supported between these two devices"),
    described(218, c"hipErrorInvalidKernelFile", c"invalid kernel file"),
    described(219, c"hipErrorInvalidGraphicsContext", c"invalid graphics context"),
    described(300, c"hipErrorInvalidSource", c"device kernel source is invalid"),
    described(301, c"hipErrorFileNotFound", c"file not found"),
    described(302, c"hipErrorSharedObjectSymbolNotFound", c"shared object symbol not found"),
    described(303, c"hipErrorSharedObjectInitFailed", c"shared object initialization failed"),
    described(304, c"hipErrorOperatingSystem", c"call of the operating system failed"),
    described(400, c"hipErrorInvalidHandle", c"invalid resource handle"),
    described(401, c"hipErrorIllegalState", c"the operation cannot be performed in the present state"),
    described(500, c"hipErrorNotFound", c"named symbol not found"),
    described(600, c"hipErrorNotReady", c"device not ready"),
    described(700, c"hipErrorIllegalAddress", c"an illegal memory access was encountered"),
    described(701, c"hipErrorLaunchOutOfResources", c"too many resources requested for launch"),
    described(702, c"hipErrorLaunchTimeOut", c"the launch timed out and was terminated"),
    described(704, c"hipErrorPeerAccessAlreadyEnabled", c"peer access is already enabled"),
    described(705, c"hipErrorPeerAccessNotEnabled", c"peer access has not been enabled"),
    described(708, c"hipErrorSetOnActiveProcess", c"device is active in this process"),
    described(709, c"hipErrorContextIsDestroyed", c"context is destroyed"),
    described(710, c"hipErrorAssert", c"device-side assert triggered"),
    described(712, c"hipErrorHostMemoryAlreadyRegistered", c"part or all of the requested memory range is already mapped"),
    described(713, c"hipErrorHostMemoryNotRegistered", c"pointer does not correspond to a registered memory region"),
    described(719, c"hipErrorLaunchFailure", c"unspecified launch failure"),
    described(720, c"hipErrorCooperativeLaunchTooLarge", c"too many blocks in cooperative launch"),
    described(801, c"hipErrorNotSupported", c"operation not supported"),
    described(900, c"hipErrorStreamCaptureUnsupported", c"operation not permitted when stream is capturing"),
    described(901, c"hipErrorStreamCaptureInvalidated", c"operation failed due to a previous error during capture"),
    described(902, c"hipErrorStreamCaptureMerge", c"operation would result in a merge of separate capture sequences"),
    described(903, c"hipErrorStreamCaptureUnmatched", c"capture was not initiated in this stream"),
    described(904, c"hipErrorStreamCaptureUnjoined", c"capturing stream has unjoined work"),
    described(905, c"hipErrorStreamCaptureIsolation", c"dependency created on uncaptured work in another stream"),
    described(906, c"hipErrorStreamCaptureImplicit", c"operation would make the legacy stream depend on a capturing blocking stream"),
    described(907, c"hipErrorCapturedEvent", c"operation not permitted on an event last recorded in a capturing stream"),
    described(908, c"hipErrorStreamCaptureWrongThread", c"attempt to terminate a thread-local capture sequence from another thread"),
    described(910, c"hipErrorGraphExecUpdateFailure", c"the graph update was not performed: it changes what it may not"),
    described(999, c"hipErrorUnknown", c"unknown error"),
    described(1052, c"hipErrorRuntimeMemory", c"runtime memory call returned error"),
    described(1053, c"hipErrorRuntimeOther", c"runtime call other than memory returned error"),
    described(1054, c"hipErrorTbd", c"to be determined"),
];
