//! The border: every function's body runs in [`cross`], and nothing but a status comes out.

use std::any::Any;
use std::borrow::Cow;
use std::ffi::c_char;
use std::fmt::{self, Write};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arenas::{Error, Refused};

use crate::status::device_arena_status_t::{self, *};
use crate::status::{DEVICE_ARENA_MESSAGE_BYTES, device_arena_error_t};

/// A place that the caller owns and a function fills in; none where the caller passed null.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// What the body of a function comes to.
pub(crate) type Answer<T = ()> = Result<T, Refusal>;

/// Why a function did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The crate's own word.
    Of(Error),
    /// What only the ABI knows of.
    Here(device_arena_status_t, Cow<'static, str>),
}

impl Refusal {
    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Here(DEVICE_ARENA_STATUS_INVALID_ARGUMENT, message.into())
    }

    pub(crate) fn status(&self) -> device_arena_status_t {
        match self {
            Self::Of(error) => error.status().into(),
            Self::Here(status, _) => *status,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(error) => error.fmt(f),
            Self::Here(_, message) => f.write_str(message),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Of(error)
    }
}

impl<T> From<Refused<T>> for Refusal {
    fn from(refused: Refused<T>) -> Self {
        Self::Of(refused.error)
    }
}

/// Runs the body of a function: catches its panic, fills in the record and answers the status.
pub(crate) fn cross(
    error: Out<'_, device_arena_error_t>,
    body: impl FnOnce() -> Answer,
) -> device_arena_status_t {
    // What a panic leaves half done is an object that is dropped with it, or that refuses from then on.
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(of_panic(payload)));
    let status = outcome.as_ref().err().map_or(DEVICE_ARENA_STATUS_OK, Refusal::status);
    if let Some(error) = error {
        report(error, status, outcome.err());
    }
    status
}

/// Fills in a record. A steady call writes no more of it than the status and an empty message.
fn report(
    error: &mut MaybeUninit<device_arena_error_t>,
    status: device_arena_status_t,
    refusal: Option<Refusal>,
) {
    let Some(refusal) = refusal else {
        let record = error.as_mut_ptr();
        // SAFETY: the record is the caller's, borrowed exclusively: both places are within it.
        unsafe {
            (&raw mut (*record).status).write(status);
            (&raw mut (*record).message).cast::<c_char>().write(0);
        }
        return;
    };
    let mut record = device_arena_error_t { status, message: [0; DEVICE_ARENA_MESSAGE_BYTES] };
    // A message that does not fit is cut, which is no failure.
    let _ = write!(Message { text: &mut record.message, used: 0 }, "{refusal}");
    error.write(record);
}

fn of_panic(payload: Box<dyn Any + Send>) -> Refusal {
    let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(message), _) => (*message).to_owned(),
        (None, Some(message)) => message.clone(),
        (None, None) => "no message".to_owned(),
    };
    // The drop of a payload may panic too.
    std::mem::forget(payload);
    Refusal::Here(DEVICE_ARENA_STATUS_INTERNAL, format!("a fault of the library: {message}").into())
}

/// Text of a fixed size that ends with NUL.
pub(crate) struct Message<'a> {
    pub(crate) text: &'a mut [c_char],
    pub(crate) used: usize,
}

impl Write for Message<'_> {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for character in more.chars() {
            // NUL would end the message early.
            let character = if character == '\0' { '?' } else { character };
            let mut encoded = [0; 4];
            let encoded = character.encode_utf8(&mut encoded).as_bytes();
            // One byte stays for the NUL.
            let room = self.text.len().saturating_sub(1);
            let Some(places) =
                self.text.get_mut(..room).and_then(|text| text.get_mut(self.used..self.used + encoded.len()))
            else {
                return Err(fmt::Error);
            };
            for (place, byte) in places.iter_mut().zip(encoded) {
                *place = c_char::from_ne_bytes([*byte]);
            }
            self.used += encoded.len();
        }
        Ok(())
    }
}

/// A place that has to be there.
pub(crate) fn needed<'a, T>(name: &'static str, out: Out<'a, T>) -> Answer<&'a mut MaybeUninit<T>> {
    out.ok_or_else(|| Refusal::invalid(format!("{name} is null")))
}

/// Fills in a place that may be absent.
pub(crate) fn tell<T>(out: Out<'_, T>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// The place of a handle, which is 0 until it is filled in.
pub(crate) fn handle_out<'a>(name: &'static str, out: Out<'a, u64>) -> Answer<&'a mut MaybeUninit<u64>> {
    let out = needed(name, out)?;
    out.write(0);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn record_of(body: impl FnOnce() -> Answer) -> (device_arena_status_t, String) {
        let mut record = MaybeUninit::zeroed();
        let status = cross(Some(&mut record), body);
        // SAFETY: `cross` fills it in.
        let record = unsafe { record.assume_init() };
        assert_eq!(record.status, status);
        // SAFETY: it ends with NUL.
        let message = unsafe { CStr::from_ptr(record.message.as_ptr()) };
        (status, message.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_panic_does_not_cross() {
        let (status, message) = record_of(|| panic!("of {}", "text"));
        assert_eq!(status, DEVICE_ARENA_STATUS_INTERNAL);
        assert_eq!(message, "a fault of the library: of text");
        assert_eq!(cross(None, || panic!("and without a record")), DEVICE_ARENA_STATUS_INTERNAL);
        let odd = record_of(|| std::panic::panic_any(7));
        assert_eq!(odd.1, "a fault of the library: no message");
    }

    #[test]
    fn success_empties_the_record() {
        assert_eq!(record_of(|| Ok(())), (DEVICE_ARENA_STATUS_OK, String::new()));
    }

    #[test]
    fn a_long_message_is_cut_between_two_characters() {
        for shift in 0..4 {
            let text = format!("{}{}", "a".repeat(shift), "€".repeat(600));
            let (_, message) = record_of(|| Err(Refusal::invalid(text.clone())));
            assert!(text.starts_with(&message));
            assert!(message.len() < DEVICE_ARENA_MESSAGE_BYTES);
            assert!(message.len() + '€'.len_utf8() >= DEVICE_ARENA_MESSAGE_BYTES);
        }
    }

    #[test]
    fn a_message_has_no_nul_within() {
        assert_eq!(record_of(|| Err(Refusal::invalid("one\0two"))).1, "one?two");
    }
}
