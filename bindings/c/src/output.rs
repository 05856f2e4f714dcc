//! Outputs: room that the running call may write.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use arenas::Output;

use crate::border::{Answer, cross, handle_out, needed, tell};
use crate::exclusive::Exclusive;
use crate::executor::ExecutorObject;
use crate::library::Library;
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{get, insert, object, use_up};
use crate::view::{ViewObject, device_arena_view_t};

/// Room in an arena that the running call may write. It may be filled on any thread, and outlive its call: until it is
/// published or freed it holds the arena, and no other call can begin.
pub type device_arena_output_t = u64;

pub(crate) struct OutputObject {
    pub(crate) output: Exclusive<Output<u8>>,
    executor: Option<Arc<ExecutorObject>>,
    library: Arc<Library>,
}
object!(OutputObject, Output);

impl OutputObject {
    pub(crate) fn new(
        output: Output<u8>,
        executor: Option<Arc<ExecutorObject>>,
        library: &Arc<Library>,
    ) -> Self {
        Self { output: Exclusive::new("output", output), executor, library: Arc::clone(library) }
    }
}

/// The room's address on the host, and its size in bytes, which `bytes_out` takes and may be null. Both hold until the output
/// is published or freed. DEVICE for a device's memory; PENDING while a device may use the room.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_output_data(
    output: device_arena_output_t,
    data_out: Option<&mut MaybeUninit<*mut c_void>>,
    bytes_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("data_out", data_out)?;
        get::<OutputObject>(output)?.output.with(|output| {
            let room = output.as_mut_slice()?;
            out.write(raw::address_of(room));
            tell(bytes_out, room.len() as u64);
            Ok(())
        })
    })
}

/// The room's address for a device's kernels. Work that uses it is to be queued on the executor's stream before the call
/// ends. INVALID_ARGUMENT for host pages, which no device has been told of.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_output_device_pointer(
    output: device_arena_output_t,
    pointer_out: Option<&mut MaybeUninit<*mut c_void>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("pointer_out", pointer_out)?;
        get::<OutputObject>(output)?.output.with(|output| {
            out.write(output.device_ptr()?.cast());
            Ok(())
        })
    })
}

/// Copies bytes of the host's into the room, which has as many: in the stream's order for a device's, and done with them when
/// it returns.
///
/// # Safety
///
/// `data` is to `bytes` bytes, or null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_output_write(
    output: device_arena_output_t,
    data: *const c_void,
    bytes: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        // SAFETY: the caller's promise is the same, until this returns.
        let values = unsafe { raw::bytes("data", data, bytes) }?;
        get::<OutputObject>(output)?.output.with(|output| Ok(output.copy_from_slice(values)?))
    })
}

/// Copies all bytes of a view into the room, which has as many: from any arena to any other, but not between two vendors'
/// devices.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_output_copy_from_view(
    output: device_arena_output_t,
    view: device_arena_view_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let view = get::<ViewObject>(view)?;
        get::<OutputObject>(output)?.output.with(|output| Ok(output.copy_from_view(&view.view)?))
    })
}

/// Makes the room a view, which can be read once the call has finished. The output's handle is dead from then on.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_output_publish(
    view: Option<&mut MaybeUninit<device_arena_view_t>>,
    output: device_arena_output_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || publish(view, output, None))
}

/// Makes the first `bytes` bytes of the room a view. The rest stays taken until the arena is rewound.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_output_publish_prefix(
    view: Option<&mut MaybeUninit<device_arena_view_t>>,
    output: device_arena_output_t,
    bytes: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || publish(view, output, Some(bytes)))
}

fn publish(
    view: Option<&mut MaybeUninit<device_arena_view_t>>,
    output: device_arena_output_t,
    bytes: Option<u64>,
) -> Answer {
    let out = handle_out("view", view)?;
    let (view, object) = use_up::<OutputObject, _>(output, |object| match bytes {
        None => Ok(object.output.take()?.publish()),
        Some(bytes) => {
            let bytes = raw::len::<u8>("bytes", bytes)?;
            let publish = |room: Output<u8>| {
                room.publish_prefix(bytes).map_err(|refused| Box::new((refused.value, refused.error.into())))
            };
            object.output.use_up(publish)
        }
    })?;
    out.write(insert(ViewObject::new(view, object.executor.as_ref(), &object.library))?);
    Ok(())
}

/// Drops an output that is not published: nothing of it can be read.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_output_free(
    output: device_arena_output_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || use_up::<OutputObject, _>(output, |object| object.output.take()).map(drop))
}
