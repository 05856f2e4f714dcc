//! The library as C holds it: the drivers that it found. Every handle keeps it.

use std::mem::MaybeUninit;
use std::sync::Arc;

use arenas::backend::{AnyBackend, Backend, Vendor};

use crate::border::{Answer, cross, handle_out, needed};
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{get, insert, object, remove};

/// The loaded drivers.
pub type device_arena_library_t = u64;

/// Whose driver.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum device_arena_vendor_t {
    /// The operating system and the processor's own memory.
    DEVICE_ARENA_VENDOR_HOST = 0,
    /// NVIDIA's driver.
    DEVICE_ARENA_VENDOR_CUDA = 1,
    /// AMD's runtime, HIP.
    DEVICE_ARENA_VENDOR_ROCM = 2,
}

impl From<Vendor> for device_arena_vendor_t {
    fn from(vendor: Vendor) -> Self {
        match vendor {
            Vendor::Cuda => Self::DEVICE_ARENA_VENDOR_CUDA,
            Vendor::Rocm => Self::DEVICE_ARENA_VENDOR_ROCM,
            // The crate has no others.
            _ => Self::DEVICE_ARENA_VENDOR_HOST,
        }
    }
}

/// What every object keeps, as its last field: the drivers go when all else is gone.
pub(crate) struct Library {
    _drivers: Vec<AnyBackend>,
}

/// A library handle's object: the handle's own share.
pub(crate) struct LibraryHandle(pub(crate) Arc<Library>);
object!(LibraryHandle, Library);

/// The library behind a handle.
pub(crate) fn library_of(handle: device_arena_library_t) -> Answer<Arc<Library>> {
    Ok(Arc::clone(&get::<LibraryHandle>(handle)?.0))
}

/// A function that looks for one vendor's driver.
type Find = fn() -> arenas::Result<Option<AnyBackend>>;

/// Every driver that is there and has devices, and what those say that are there and fail.
fn drivers() -> impl Iterator<Item = arenas::Result<AnyBackend>> {
    let all: &[Find] = &[
        #[cfg(feature = "cuda")]
        || Ok(arenas::backend::Cuda::if_present()?.map(AnyBackend::Cuda)),
        #[cfg(feature = "rocm")]
        || Ok(arenas::backend::Rocm::if_present()?.map(AnyBackend::Rocm)),
    ];
    all.iter().filter_map(|find| find().transpose())
}

fn count() -> Answer<u32> {
    let mut devices = 0;
    for backend in drivers() {
        devices += backend?.devices()?.len();
    }
    Ok(u32::try_from(devices).unwrap_or(u32::MAX))
}

/// Loads the drivers that there are, once a process. A machine without any has the host alone, which is no failure, and
/// neither is a driver that is broken: whoever asks for its devices is told.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_library_load(
    library: Option<&mut MaybeUninit<device_arena_library_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let library = handle_out("library", library)?;
        let found = drivers().filter_map(arenas::Result::ok).collect();
        library.write(insert(LibraryHandle(Arc::new(Library { _drivers: found })))?);
        Ok(())
    })
}

/// Lets the library go. Whatever was made with it goes on: the drivers go with the last of that.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_library_free(
    library: device_arena_library_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || remove::<LibraryHandle>(library).map(drop))
}

/// How many GPUs the drivers offer: NVIDIA's first, then AMD's. UNAVAILABLE or DRIVER for a driver that is there and fails.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_library_device_count(
    library: device_arena_library_t,
    count_out: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("count_out", count_out)?;
        library_of(library)?;
        out.write(count()?);
        Ok(())
    })
}
