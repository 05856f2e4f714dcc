//! Inputs on their way to where a call computes, and results on their way back.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::border::{cross, needed};
use crate::call::{CallObject, device_arena_call_t};
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::get;
use crate::tape::{TapeObject, device_arena_tape_t};
use crate::view::{ViewObject, device_arena_view_t};

/// A tape where a call computes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct device_arena_staged_t {
    /// The bytes' address there.
    pub bytes: *const c_void,
    /// How many bytes there are.
    pub byte_count: u64,
    /// The address there of the offsets, which count from `bytes`: one more than there are items, or none for no items.
    pub offsets: *const u64,
    /// How many items there are.
    pub items: u64,
    /// How many bytes were copied into the call's arena, offsets included: none where all of the tape was reachable.
    pub copied_bytes: u64,
}

/// Brings a tape to where the call computes. What is reachable there is used where it is, and the tape's memory has to live
/// until the work that reads it has passed; what is not is copied into the call's arena, where it is until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_stage(
    call: device_arena_call_t,
    tape: device_arena_tape_t,
    staged_out: Option<&mut MaybeUninit<device_arena_staged_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("staged_out", staged_out)?;
        let tape = get::<TapeObject>(tape)?;
        get::<CallObject>(call)?.state.with(|state| {
            let staged = state.call().stage(&tape.tape)?;
            out.write(device_arena_staged_t {
                bytes: staged.bytes_ptr().cast(),
                byte_count: staged.byte_len() as u64,
                offsets: staged.offsets_ptr(),
                items: staged.len() as u64,
                copied_bytes: staged.copied_bytes() as u64,
            });
            Ok(())
        })
    })
}

/// Copies all bytes of a view that the call published to the host's memory, before the call's end: `bytes` is as many as the
/// view has. From a device it waits for what the call has queued so far. INVALID_ARGUMENT for the view of another call.
///
/// # Safety
///
/// `data` is to `bytes` bytes that nobody else uses meanwhile, or null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_call_collect(
    call: device_arena_call_t,
    view: device_arena_view_t,
    data: *mut c_void,
    bytes: u64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let view = get::<ViewObject>(view)?;
        // SAFETY: the caller's promise is the same, until this returns.
        let places = unsafe { raw::bytes_mut("data", data, bytes) }?;
        get::<CallObject>(call)?.state.with(|state| Ok(state.call().collect(&view.view, places)?))
    })
}
