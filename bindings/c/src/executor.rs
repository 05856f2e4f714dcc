//! Executors: where calls compute.

use std::ffi::{c_char, c_void};
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::sync::Arc;

use arenas::Executor;
use arenas::backend::{AnyBackend, Host};

use crate::border::{Answer, Message, Refusal, cross, handle_out, needed};
use crate::library::{Library, device_arena_library_t, device_arena_vendor_t, library_of};
use crate::owner::Owner;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{get, insert, object, remove};

/// Where calls compute: the host, or one device together with one stream.
pub type device_arena_executor_t = u64;

/// A caller's function that takes its pointer back: it is called once, on any thread, and must not unwind.
pub type device_arena_release_t = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

pub(crate) struct ExecutorObject {
    pub(crate) executor: Executor,
    pub(crate) library: Arc<Library>,
}

/// An executor handle's object: the handle's own share, so that arenas keep the executor and not its handle.
pub(crate) struct ExecutorHandle(pub(crate) Arc<ExecutorObject>);
object!(ExecutorHandle, Executor);

/// The executor behind a handle.
pub(crate) fn executor_of(handle: device_arena_executor_t) -> Answer<Arc<ExecutorObject>> {
    Ok(Arc::clone(&get::<ExecutorHandle>(handle)?.0))
}

/// The executor behind a handle, or none for 0.
pub(crate) fn executor_or_none(handle: device_arena_executor_t) -> Answer<Option<Arc<ExecutorObject>>> {
    if handle == 0 { Ok(None) } else { executor_of(handle).map(Some) }
}

fn make(
    executor: Option<&mut MaybeUninit<device_arena_executor_t>>,
    library: device_arena_library_t,
    make: impl FnOnce() -> Answer<Executor>,
) -> Answer {
    let out = handle_out("executor", executor)?;
    let library = library_of(library)?;
    let executor = make()?;
    out.write(insert(ExecutorHandle(Arc::new(ExecutorObject { executor, library })))?);
    Ok(())
}

/// The host, with a queue of its own.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_executor_host(
    executor: Option<&mut MaybeUninit<device_arena_executor_t>>,
    library: device_arena_library_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || make(executor, library, || Ok(Executor::host()?)))
}

/// The first GPU that a driver offers, and the host where no driver or no device exists. Any other failure is one, not a
/// slow run.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_executor_best(
    executor: Option<&mut MaybeUninit<device_arena_executor_t>>,
    library: device_arena_library_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || make(executor, library, || Ok(Executor::best()?)))
}

/// The device of that number among all GPUs, with a stream of its own: NVIDIA's come first, then AMD's. UNAVAILABLE where
/// there is none of that number, or no driver at all.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_executor_vram(
    executor: Option<&mut MaybeUninit<device_arena_executor_t>>,
    library: device_arena_library_t,
    number: u32,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || make(executor, library, || Ok(Executor::for_vram(number)?)))
}

/// A vendor's backend by its number, which C may have made up.
fn backend_of(vendor: i32) -> Answer<AnyBackend> {
    #[cfg(feature = "cuda")]
    if vendor == device_arena_vendor_t::DEVICE_ARENA_VENDOR_CUDA as i32 {
        return Ok(AnyBackend::Cuda(arenas::backend::Cuda::load()?));
    }
    #[cfg(feature = "rocm")]
    if vendor == device_arena_vendor_t::DEVICE_ARENA_VENDOR_ROCM as i32 {
        return Ok(AnyBackend::Rocm(arenas::backend::Rocm::load()?));
    }
    if vendor == device_arena_vendor_t::DEVICE_ARENA_VENDOR_HOST as i32 {
        return Ok(AnyBackend::Host(Host));
    }
    Err(Refusal::invalid(format!("this library has no vendor of number {vendor}")))
}

/// A device by its vendor, a `device_arena_vendor_t`, and its ordinal as that vendor's driver counts it.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_executor_of_vendor(
    executor: Option<&mut MaybeUninit<device_arena_executor_t>>,
    library: device_arena_library_t,
    vendor: i32,
    ordinal: u32,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || make(executor, library, || Ok(Executor::on(backend_of(vendor)?, ordinal)?)))
}

/// An executor on a stream that somebody else made: a `CUstream` or a `hipStream_t`, by its vendor, a
/// `device_arena_vendor_t`. Null and the handles of default streams are refused. `release`, which may be null, is called
/// with `user_data` once the stream is not used any more; after a failure it is not, and never will be.
///
/// # Safety
///
/// `stream` is a live stream of that vendor, and it and its context live until `release` is called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_executor_adopt(
    executor: Option<&mut MaybeUninit<device_arena_executor_t>>,
    library: device_arena_library_t,
    vendor: i32,
    stream: *mut c_void,
    user_data: *mut c_void,
    release: device_arena_release_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let adopt = || {
            let backend = backend_of(vendor)?;
            let owner = Box::new(Owner { data: user_data, release });
            // SAFETY: the stream lives until its owner is dropped, by this function's own contract.
            unsafe { Executor::adopt(backend, stream, owner) }.map_err(|refused| {
                if let Ok(owner) = refused.value.downcast::<Owner>() {
                    owner.forget();
                }
                Refusal::from(refused.error)
            })
        };
        make(executor, library, adopt)
    })
}

/// Lets the executor go. Arenas that were made for it go on, and keep it alive.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_executor_free(
    executor: device_arena_executor_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || remove::<ExecutorHandle>(executor).map(drop))
}

/// Whose driver the executor computes with.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_executor_vendor(
    executor: device_arena_executor_t,
    vendor_out: Option<&mut MaybeUninit<device_arena_vendor_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("vendor_out", vendor_out)?;
        out.write(executor_of(executor)?.executor.vendor().into());
        Ok(())
    })
}

/// A device, as its driver describes it.
#[repr(C)]
#[derive(Debug)]
pub struct device_arena_device_t {
    /// Whose driver.
    pub vendor: device_arena_vendor_t,
    /// The device's number as its driver counts it; 0 for the host.
    pub ordinal: u32,
    /// Memory in bytes; 0 where the driver does not say.
    pub total_bytes: u64,
    /// The driver's name for it, which ends with NUL.
    pub name: [c_char; 128],
    /// The architecture, which ends with NUL.
    pub architecture: [c_char; 64],
}

fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut place = [0; N];
    // What does not fit is cut.
    let _ = Message { text: &mut place, used: 0 }.write_str(text);
    place
}

/// Describes the device that the executor computes on.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_executor_describe(
    executor: device_arena_executor_t,
    device_out: Option<&mut MaybeUninit<device_arena_device_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out: &mut MaybeUninit<_> = needed("device_out", device_out)?;
        let executor = &executor_of(executor)?.executor;
        let device = executor.device()?;
        out.write(device_arena_device_t {
            vendor: executor.vendor().into(),
            ordinal: device.ordinal,
            total_bytes: device.total_bytes.unwrap_or(0),
            name: text(&device.name),
            architecture: text(&device.architecture),
        });
        Ok(())
    })
}

/// The executor's stream for launches and libraries that take one: a `CUstream` or a `hipStream_t`. It lives as long as the
/// executor does.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_executor_stream(
    executor: device_arena_executor_t,
    stream_out: Option<&mut MaybeUninit<*mut c_void>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("stream_out", stream_out)?;
        out.write(executor_of(executor)?.executor.stream()?);
        Ok(())
    })
}

/// Blocks until everything that is queued on the executor has passed. INVALID_ARGUMENT on the queue's own worker; DRIVER for
/// an error of the queued work.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_executor_synchronize(
    executor: device_arena_executor_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || Ok(executor_of(executor)?.executor.synchronize()?))
}
