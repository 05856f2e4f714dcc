//! The simulated driver's own functions: failures on purpose, and counts.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use crate::driver::symbol;
use crate::functions::Function;

/// Status codes of the driver.
pub(crate) const UNKNOWN: u32 = 999;
pub(crate) const OUT_OF_MEMORY: u32 = 2;

/// What a driver has that is to be given back.
pub(crate) const KINDS: [&str; 7] =
    ["device_bytes", "host_bytes", "streams", "events", "modules", "graphs", "contexts"];

#[derive(Clone, Copy)]
pub(crate) struct Simulated {
    fail: unsafe extern "C" fn(*const c_char, u64, u64, u32),
    clear: unsafe extern "C" fn(),
    lose_device: unsafe extern "C" fn(i32),
    set: unsafe extern "C" fn(*const c_char, *const c_char) -> u32,
    calls: unsafe extern "C" fn(*const c_char) -> u64,
    live: unsafe extern "C" fn(*const c_char) -> u64,
}

/// The simulated driver, if it is the one that the crate has found.
pub(crate) fn simulated() -> Option<Simulated> {
    static FOUND: OnceLock<Option<Simulated>> = OnceLock::new();
    // SAFETY: the types are those of the simulated driver's README.
    *FOUND.get_or_init(|| unsafe {
        Some(Simulated {
            fail: symbol("device_arena_simulated_fail")?,
            clear: symbol("device_arena_simulated_clear")?,
            lose_device: symbol("device_arena_simulated_lose_device")?,
            set: symbol("device_arena_simulated_set")?,
            calls: symbol("device_arena_simulated_calls")?,
            live: symbol("device_arena_simulated_live")?,
        })
    })
}

/// As [`simulated`], and the skip is printed.
pub(crate) fn simulated_or_skip() -> Option<Simulated> {
    let found = simulated();
    if found.is_none() {
        println!("skipped: needs the simulated driver");
    }
    found
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

impl Simulated {
    /// Lets `times` calls of a function fail, after so many that succeed; zero times is all of them.
    pub(crate) fn fail(&self, function: Function, after: u64, times: u64, status: u32) {
        // SAFETY: the name is a C string.
        unsafe { (self.fail)(text(function.name()).as_ptr(), after, times, status) }
    }

    /// Forgets failures, and finds lost devices again.
    pub(crate) fn clear(&self) {
        // SAFETY: it takes nothing.
        unsafe { (self.clear)() }
    }

    pub(crate) fn lose_device(&self, ordinal: i32) {
        // SAFETY: any number is taken.
        unsafe { (self.lose_device)(ordinal) }
    }

    pub(crate) fn set(&self, name: &str, value: &str) {
        // SAFETY: both are C strings.
        assert_eq!(unsafe { (self.set)(text(name).as_ptr(), text(value).as_ptr()) }, 0, "{name}={value}");
    }

    /// How often a function was called.
    pub(crate) fn calls(&self, function: Function) -> u64 {
        // SAFETY: the name is a C string.
        unsafe { (self.calls)(text(function.name()).as_ptr()) }
    }

    /// How often a function was called that only one vendor has.
    #[cfg(feature = "rocm")]
    pub(crate) fn calls_of(&self, name: &str) -> u64 {
        // SAFETY: the name is a C string.
        unsafe { (self.calls)(text(name).as_ptr()) }
    }

    /// How often any function was called.
    pub(crate) fn all_calls(&self) -> u64 {
        // SAFETY: null stands for all of them.
        unsafe { (self.calls)(std::ptr::null()) }
    }

    pub(crate) fn live(&self, kind: &str) -> u64 {
        // SAFETY: the kind is a C string.
        unsafe { (self.live)(text(kind).as_ptr()) }
    }

    pub(crate) fn all_live(&self) -> [u64; KINDS.len()] {
        KINDS.map(|kind| self.live(kind))
    }

    /// Puts a setting back to what the environment says, or to the default.
    pub(crate) fn restore(&self, name: &str, default: &str) {
        let value = std::env::var(format!("DEVICE_ARENA_SIMULATED_{name}"));
        self.set(name, value.as_deref().unwrap_or(default).trim());
    }
}
