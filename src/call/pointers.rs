//! What is behind the pointers that a call is given: the driver is asked once an allocation.

use super::Call;
use crate::error::Result;
use crate::pointer::{PointerInfo, classify_range};

impl Call {
    /// As [`classify_range`], and the driver is asked once in this call for each allocation that it knows: another range
    /// of one that was seen costs no question. Memory that no driver claims is asked about each time, since it may have
    /// become a driver's.
    ///
    /// # Errors
    ///
    /// As [`classify_range`].
    ///
    /// # Safety
    ///
    /// As [`classify`](crate::classify), for as long as the call runs: an allocation that is freed and made anew
    /// meanwhile is answered for as the one before.
    pub unsafe fn classify_range(&self, pointer: *const u8, bytes: usize) -> Result<PointerInfo> {
        if let Some(info) = self.with_room(|_, room| room.seen.find(pointer, bytes)) {
            return Ok(info);
        }
        // SAFETY: the caller's promise is the same.
        let info = unsafe { classify_range(pointer, bytes) }?;
        self.with_room(|_, room| room.seen.note(info));
        Ok(info)
    }
}
