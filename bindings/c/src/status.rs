//! What every function answers, and the record that it fills in.

use std::ffi::{CStr, c_char};

use arenas::Status;

/// What a function answers. The numbers are stable.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum device_arena_status_t {
    /// It did what it was asked for.
    DEVICE_ARENA_STATUS_OK = 0,
    /// A stale view, a dead handle, a wrong executor, a bad tape, a null pointer; a range, a size or an option that can't be.
    DEVICE_ARENA_STATUS_INVALID_ARGUMENT = 1,
    /// Host access to a device's memory.
    DEVICE_ARENA_STATUS_DEVICE = 2,
    /// Somebody else holds the arena, or another thread is using the handle. The refusal changed nothing.
    DEVICE_ARENA_STATUS_CONTENDED = 3,
    /// The driver or the system has no memory of that size.
    DEVICE_ARENA_STATUS_OUT_OF_MEMORY = 4,
    /// The arena's own limits: bytes, readers, outputs.
    DEVICE_ARENA_STATUS_OVER_LIMIT = 5,
    /// No driver, no device, no worker thread.
    DEVICE_ARENA_STATUS_UNAVAILABLE = 6,
    /// Not yet: the call has not finished, or its work has not passed.
    DEVICE_ARENA_STATUS_PENDING = 7,
    /// A driver's call or deferred work failed.
    DEVICE_ARENA_STATUS_DRIVER = 8,
    /// A fault of this library, caught at its border.
    DEVICE_ARENA_STATUS_INTERNAL = 9,
}

use self::device_arena_status_t::*;

impl From<Status> for device_arena_status_t {
    fn from(status: Status) -> Self {
        match status {
            Status::InvalidArgument => DEVICE_ARENA_STATUS_INVALID_ARGUMENT,
            Status::Device => DEVICE_ARENA_STATUS_DEVICE,
            Status::Contended => DEVICE_ARENA_STATUS_CONTENDED,
            Status::OutOfMemory => DEVICE_ARENA_STATUS_OUT_OF_MEMORY,
            Status::OverLimit => DEVICE_ARENA_STATUS_OVER_LIMIT,
            Status::Unavailable => DEVICE_ARENA_STATUS_UNAVAILABLE,
            Status::Pending => DEVICE_ARENA_STATUS_PENDING,
            Status::Driver => DEVICE_ARENA_STATUS_DRIVER,
            // A word that this ABI has no number for yet.
            _ => DEVICE_ARENA_STATUS_INTERNAL,
        }
    }
}

impl device_arena_status_t {
    const ALL: [Self; 10] = [
        DEVICE_ARENA_STATUS_OK,
        DEVICE_ARENA_STATUS_INVALID_ARGUMENT,
        DEVICE_ARENA_STATUS_DEVICE,
        DEVICE_ARENA_STATUS_CONTENDED,
        DEVICE_ARENA_STATUS_OUT_OF_MEMORY,
        DEVICE_ARENA_STATUS_OVER_LIMIT,
        DEVICE_ARENA_STATUS_UNAVAILABLE,
        DEVICE_ARENA_STATUS_PENDING,
        DEVICE_ARENA_STATUS_DRIVER,
        DEVICE_ARENA_STATUS_INTERNAL,
    ];

    /// The status of a number that C hands in, which may be any.
    pub(crate) fn of_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|status| *status as i32 == number)
    }

    pub(crate) fn name(self) -> &'static CStr {
        match self {
            DEVICE_ARENA_STATUS_OK => c"OK",
            DEVICE_ARENA_STATUS_INVALID_ARGUMENT => c"INVALID_ARGUMENT",
            DEVICE_ARENA_STATUS_DEVICE => c"DEVICE",
            DEVICE_ARENA_STATUS_CONTENDED => c"CONTENDED",
            DEVICE_ARENA_STATUS_OUT_OF_MEMORY => c"OUT_OF_MEMORY",
            DEVICE_ARENA_STATUS_OVER_LIMIT => c"OVER_LIMIT",
            DEVICE_ARENA_STATUS_UNAVAILABLE => c"UNAVAILABLE",
            DEVICE_ARENA_STATUS_PENDING => c"PENDING",
            DEVICE_ARENA_STATUS_DRIVER => c"DRIVER",
            DEVICE_ARENA_STATUS_INTERNAL => c"INTERNAL",
        }
    }
}

/// The bytes of an error record's message, its NUL included.
pub const DEVICE_ARENA_MESSAGE_BYTES: usize = 1020;

/// What a function filled in: its caller owns it. After success the status is OK and the message empty.
#[repr(C)]
#[derive(Debug)]
pub struct device_arena_error_t {
    /// What the function answered.
    pub status: device_arena_status_t,
    /// What was refused and why: one line of UTF-8 that ends with NUL, cut between two characters where it is too long.
    pub message: [c_char; DEVICE_ARENA_MESSAGE_BYTES],
}

/// The version of this ABI: it counts up where something that was there changes, and not where something is added.
pub const DEVICE_ARENA_ABI_VERSION: u32 = 1;

/// The ABI version of the library that was loaded, to be held against `DEVICE_ARENA_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_abi_version() -> u32 {
    DEVICE_ARENA_ABI_VERSION
}

/// The name of a status, such as "CONTENDED"; "UNKNOWN" for a number that is none. It is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_status_name(status: i32) -> *const c_char {
    device_arena_status_t::of_number(status).map_or(c"UNKNOWN", device_arena_status_t::name).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_no_status_has_a_name_all_the_same() {
        for number in [-1, 10, i32::MIN, i32::MAX] {
            // SAFETY: the names are static and end with NUL.
            let name = unsafe { CStr::from_ptr(device_arena_status_name(number)) };
            assert_eq!(name, c"UNKNOWN");
        }
        // SAFETY: as above.
        assert_eq!(unsafe { CStr::from_ptr(device_arena_status_name(3)) }, c"CONTENDED");
    }
}
