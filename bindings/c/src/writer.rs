//! Writers: outputs whose length is known only once they are written.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use arenas::Writer;

use crate::border::{cross, handle_out, needed};
use crate::call::{CallObject, device_arena_call_t};
use crate::exclusive::Exclusive;
use crate::executor::ExecutorObject;
use crate::library::Library;
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{get, insert, object, use_up};
use crate::view::{ViewObject, device_arena_view_t};

/// Room in an arena that grows as it is written, on the host. It may move until it is published.
pub type device_arena_writer_t = u64;

pub(crate) struct WriterObject {
    writer: Exclusive<Writer<u8>>,
    executor: Option<Arc<ExecutorObject>>,
    library: Arc<Library>,
}
object!(WriterObject, Writer);

/// Makes an output that grows, with room for so many bytes to begin with. A tape is written by two: one for the bytes, and
/// one for the offsets. DEVICE for the arena of a device.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_writer(
    writer: Option<&mut MaybeUninit<device_arena_writer_t>>,
    call: device_arena_call_t,
    capacity: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("writer", writer)?;
        let object = get::<CallObject>(call)?;
        let capacity = raw::len::<u8>("capacity", capacity)?;
        let writer = object.state.with(|state| Ok(state.call().writer_with_capacity::<u8>(capacity)?))?;
        let (executor, library) = (object.executor.clone(), Arc::clone(&object.library));
        out.write(insert(WriterObject { writer: Exclusive::new("writer", writer), executor, library })?);
        Ok(())
    })
}

/// Writes more bytes behind those that are written. After a failure none is.
///
/// # Safety
///
/// `data` is to `bytes` bytes, or null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_writer_append(
    writer: device_arena_writer_t,
    data: *const c_void,
    bytes: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        // SAFETY: the caller's promise is the same, until this returns.
        let values = unsafe { raw::bytes("data", data, bytes) }?;
        get::<WriterObject>(writer)?.writer.with(|writer| Ok(writer.extend_from_slice(values)?))
    })
}

/// How many bytes are written.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_writer_bytes(
    writer: device_arena_writer_t,
    bytes_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("bytes_out", bytes_out)?;
        get::<WriterObject>(writer)?.writer.with(|writer| {
            out.write(writer.len() as u64);
            Ok(())
        })
    })
}

/// Makes what is written a view, which can be read once the call has finished. The writer's handle is dead from then on.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_writer_publish(
    view: Option<&mut MaybeUninit<device_arena_view_t>>,
    writer: device_arena_writer_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("view", view)?;
        let (written, object) = use_up::<WriterObject, _>(writer, |object| object.writer.take())?;
        out.write(insert(ViewObject::new(written.publish(), object.executor.as_ref(), &object.library))?);
        Ok(())
    })
}

/// Drops a writer that is not published: nothing of it can be read.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_writer_free(
    writer: device_arena_writer_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || use_up::<WriterObject, _>(writer, |object| object.writer.take()).map(drop))
}
