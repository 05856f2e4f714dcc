//! Views: read-only looks at published outputs, and what a reader holds.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::{Arc, Weak};

use arenas::{DeviceGuard, Export, View};

use crate::border::{Answer, Refusal, cross, handle_out, needed, tell};
use crate::description::device_arena_description_t;
use crate::executor::{ExecutorObject, device_arena_executor_t, executor_or_none};
use crate::library::Library;
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{get, insert, object, remove};

/// A read-only look at a published output. It holds nothing, and outlives its arena harmlessly: every use of one whose arena
/// was rewound or freed is INVALID_ARGUMENT, whatever else is wrong with the use.
pub type device_arena_view_t = u64;

/// What a reader holds while it reads: no call can begin until it is ended.
pub type device_arena_guard_t = u64;

pub(crate) struct ViewObject {
    pub(crate) view: View<u8>,
    /// The executor of the view's call: a view keeps nothing but the library.
    executor: Weak<ExecutorObject>,
    pub(crate) library: Arc<Library>,
}
object!(ViewObject, View);

impl ViewObject {
    pub(crate) fn new(
        view: View<u8>,
        executor: Option<&Arc<ExecutorObject>>,
        library: &Arc<Library>,
    ) -> Self {
        let executor = executor.map_or_else(Weak::new, Arc::downgrade);
        Self { view, executor, library: Arc::clone(library) }
    }

    /// Holds the bytes for a device's work: that of an executor, or of the view's own where it is 0.
    pub(crate) fn read_on(&self, executor: device_arena_executor_t) -> Answer<DeviceGuard<u8>> {
        let reader = match executor_or_none(executor)? {
            Some(reader) => Some(reader),
            None => self.executor.upgrade(),
        };
        match reader {
            Some(reader) => Ok(self.view.read_on(&reader.executor)?),
            // The view of an arena of host pages, or one whose arena has gone, which comes first.
            None => {
                self.view.slice(..)?;
                Err(Refusal::invalid("the memory is the host's, out of a device's reach"))
            }
        }
    }
}

/// Who holds a view's bytes.
pub(crate) enum Held {
    Host { _export: Export<u8> },
    Device { _guard: DeviceGuard<u8> },
}

pub(crate) struct GuardObject {
    _held: Held,
    _library: Arc<Library>,
}
object!(GuardObject, Guard);

/// What a view says of itself.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct device_arena_view_description_t {
    /// Where the bytes are.
    pub arena: device_arena_description_t,
    /// How many there are.
    pub bytes: u64,
    /// The number of the call that published the view.
    pub generation: u64,
    /// 1 while the arena is at the view's call still, and 0 once the view is stale. Only a guard keeps it 1.
    pub is_current: u32,
    /// Zero.
    pub reserved: u32,
}

/// Describes a view: a stale one too.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_view_describe(
    view: device_arena_view_t,
    description_out: Option<&mut MaybeUninit<device_arena_view_description_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("description_out", description_out)?;
        let view = &get::<ViewObject>(view)?.view;
        out.write(device_arena_view_description_t {
            arena: view.describe().into(),
            bytes: view.byte_len() as u64,
            generation: view.generation(),
            is_current: view.is_current().into(),
            reserved: 0,
        });
        Ok(())
    })
}

/// Holds the bytes for reading on the host: no call can begin until `device_arena_view_read_end`, until which the address
/// holds. `bytes_out` may be null. INVALID_ARGUMENT for a stale view; DEVICE for a device's memory; PENDING before the call has
/// finished.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_view_read_begin(
    guard: Option<&mut MaybeUninit<device_arena_guard_t>>,
    view: device_arena_view_t,
    data_out: Option<&mut MaybeUninit<*const c_void>>,
    bytes_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("guard", guard)?;
        let data_out = needed("data_out", data_out)?;
        let object = get::<ViewObject>(view)?;
        let export = object.view.export()?;
        let (data, bytes) = (raw::const_address_of(&export), export.len());
        let held = Held::Host { _export: export };
        out.write(insert(GuardObject { _held: held, _library: Arc::clone(&object.library) })?);
        data_out.write(data);
        tell(bytes_out, bytes as u64);
        Ok(())
    })
}

/// Holds the bytes for work on a device, and orders the reader's stream after the work of the view's call: 0 for the executor
/// that the view's call computed on. No call can begin until `device_arena_view_read_end`, and the next one's work then waits
/// for what the reader has queued by that time. INVALID_ARGUMENT for a stale view, and for host pages.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_view_device_pointer(
    guard: Option<&mut MaybeUninit<device_arena_guard_t>>,
    view: device_arena_view_t,
    executor: device_arena_executor_t,
    pointer_out: Option<&mut MaybeUninit<*const c_void>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("guard", guard)?;
        let pointer_out = needed("pointer_out", pointer_out)?;
        let object = get::<ViewObject>(view)?;
        let guard = object.read_on(executor)?;
        let pointer = guard.device_ptr();
        let held = Held::Device { _guard: guard };
        out.write(insert(GuardObject { _held: held, _library: Arc::clone(&object.library) })?);
        pointer_out.write(pointer.cast());
        Ok(())
    })
}

/// Ends the reading that either of the two functions above began.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_view_read_end(
    guard: device_arena_guard_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || remove::<GuardObject>(guard).map(drop))
}

/// Copies all bytes of a view to the host's memory, from a device's too: `bytes` is as many as the view has. It waits for the
/// work of the view's call.
///
/// # Safety
///
/// `data` is to `bytes` bytes that nobody else uses meanwhile, or null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_view_copy_to_host(
    view: device_arena_view_t,
    data: *mut c_void,
    bytes: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let object = get::<ViewObject>(view)?;
        // SAFETY: the caller's promise is the same, until this returns.
        let places = unsafe { raw::bytes_mut("data", data, bytes) }?;
        Ok(object.view.copy_to(places)?)
    })
}

/// A view of some of a view's bytes: `bytes` from byte `start` on.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_view_slice(
    slice: Option<&mut MaybeUninit<device_arena_view_t>>,
    view: device_arena_view_t,
    start: u64,
    bytes: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("slice", slice)?;
        let object = get::<ViewObject>(view)?;
        let (start, bytes) = (raw::len::<u8>("start", start)?, raw::len::<u8>("bytes", bytes)?);
        let slice = object.view.slice(start..start.saturating_add(bytes))?;
        let executor = object.executor.clone();
        out.write(insert(ViewObject { view: slice, executor, library: Arc::clone(&object.library) })?);
        Ok(())
    })
}

/// Lets a view go. Guards of it go on.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_view_free(
    view: device_arena_view_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || remove::<ViewObject>(view).map(drop))
}
