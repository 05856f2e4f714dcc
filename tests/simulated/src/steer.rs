//! How a test in the process steers the driver, and what it can count.

use std::ffi::{CStr, c_char};

use crate::core::{faults, lock, wake};

/// # Safety
///
/// `text` is null or a C string.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    // SAFETY: by the caller's promise.
    if text.is_null() { None } else { unsafe { CStr::from_ptr(text) }.to_str().ok() }
}

/// After `after` more calls of `function`, the next `times` return `status`; zero times is all of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_simulated_fail(
    function: *const c_char,
    after: u64,
    times: u64,
    status: u32,
) {
    // SAFETY: by the caller's promise.
    if let Some(function) = unsafe { text(function) } {
        faults::lock().plan(function, after, times, status);
    }
}

/// Forgets planned failures, and finds lost devices again.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_simulated_clear() {
    faults::lock().clear();
    let mut state = lock();
    state.lost.clear();
    state.contexts.values_mut().for_each(|context| context.broken = None);
}

/// From now on every call on the ordinal fails with 719.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_simulated_lose_device(ordinal: i32) {
    lock().lost.insert(ordinal);
    wake();
}

/// Sets what an environment variable would have set; `name` is without its prefix. One if there is no such setting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_simulated_set(name: *const c_char, value: *const c_char) -> u32 {
    // SAFETY: by the caller's promise.
    let (Some(name), Some(value)) = (unsafe { text(name) }, unsafe { text(value) }) else { return 1 };
    let known = lock().settings.set(name, value);
    #[cfg(any(hip, rtc))]
    let known = known || crate::hip::set(name, value);
    wake();
    u32::from(!known)
}

/// The calls of a function so far; null for all functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_simulated_calls(function: *const c_char) -> u64 {
    // SAFETY: by the caller's promise.
    faults::lock().calls(unsafe { text(function) })
}

/// How many there are of a kind: device_bytes, host_bytes, streams, events, modules, graphs, contexts. All ones for a
/// kind that there is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_simulated_live(kind: *const c_char) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { text(kind) }.and_then(|kind| lock().live(kind)).unwrap_or(u64::MAX)
}
