//! Scratch: room inside a call that is free again when its scope ends.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use arenas::{Scratch, ScratchScope};

use crate::border::{Answer, Refusal, cross, handle_out, needed};
use crate::call::{CallObject, CallState, device_arena_call_t};
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{KIND_SHIFT, Kind, get};

/// A scope of scratch room in a call. Scopes nest, and end in the reverse of the order in which they began.
pub type device_arena_scratch_t = u64;

/// The scopes that are open in a call, the innermost last. Their handles are numbers that the process counts up: none comes
/// twice, so that one of another call, or one that has ended, is refused.
#[derive(Default)]
pub(crate) struct Scopes(Vec<(device_arena_scratch_t, ScratchScope)>);

fn next_handle() -> device_arena_scratch_t {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(1);
    (Kind::Scratch as u64) << KIND_SHIFT | COUNT.fetch_add(1, Ordering::Relaxed)
}

impl CallState {
    /// The innermost scope, which has to be the one that is meant.
    fn check_innermost(&self, handle: device_arena_scratch_t) -> Answer {
        match self.scopes.0.last() {
            Some((innermost, _)) if *innermost == handle => Ok(()),
            _ if self.scopes.0.iter().any(|(open, _)| *open == handle) => {
                Err(Refusal::invalid("another scratch scope is open within this one"))
            }
            _ => Err(Refusal::invalid("the call has no such scratch scope open")),
        }
    }

    fn take<T>(
        &mut self,
        handle: device_arena_scratch_t,
        take: impl FnOnce(&mut Scratch<'_>) -> Answer<T>,
    ) -> Answer<T> {
        self.check_innermost(handle)?;
        let (call, scopes) = self.parts();
        match scopes.0.last() {
            Some((_, scope)) => take(&mut call.scratch_of(scope)?),
            None => Err(Refusal::invalid("the call has no scratch scope open")),
        }
    }
}

/// Begins a scope of scratch room in a call.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_scratch_begin(
    scratch: Option<&mut MaybeUninit<device_arena_scratch_t>>,
    call: device_arena_call_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = handle_out("scratch", scratch)?;
        get::<CallObject>(call)?.state.with(|state| {
            let (call, scopes) = state.parts();
            let (handle, scope) = (next_handle(), call.begin_scratch()?);
            scopes.0.push((handle, scope));
            out.write(handle);
            Ok(())
        })
    })
}

/// Room for so many bytes until the scope ends, on the host: it shows what it held before. The scope is the innermost that is
/// open. DEVICE for the arena of a device.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_scratch_take(
    call: device_arena_call_t,
    scratch: device_arena_scratch_t,
    bytes: u64,
    data_out: Option<&mut MaybeUninit<*mut c_void>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("data_out", data_out)?;
        let bytes = raw::len::<u8>("bytes", bytes)?;
        get::<CallObject>(call)?.state.with(|state| {
            out.write(state.take(scratch, |scope| Ok(raw::address_of(scope.take::<u8>(bytes)?)))?);
            Ok(())
        })
    })
}

/// Room for so many bytes until the scope ends, for a device's kernels. Work that uses it is to be queued on the executor's
/// stream before the scope ends. INVALID_ARGUMENT for host pages.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_scratch_take_on_device(
    call: device_arena_call_t,
    scratch: device_arena_scratch_t,
    bytes: u64,
    pointer_out: Option<&mut MaybeUninit<*mut c_void>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("pointer_out", pointer_out)?;
        let bytes = raw::len::<u8>("bytes", bytes)?;
        get::<CallObject>(call)?.state.with(|state| {
            out.write(state.take(scratch, |scope| Ok(scope.take_on_device::<u8>(bytes)?.cast()))?);
            Ok(())
        })
    })
}

/// Ends a scope, which is the innermost that is open: its room is free again. Scopes that are open when their call ends go
/// with it.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_call_scratch_end(
    call: device_arena_call_t,
    scratch: device_arena_scratch_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        get::<CallObject>(call)?.state.with(|state| {
            state.check_innermost(scratch)?;
            let (call, scopes) = state.parts();
            if let Some((_, scope)) = scopes.0.pop() {
                call.end_scratch(scope)?;
            }
            Ok(())
        })
    })
}
