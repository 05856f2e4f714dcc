//! What a caller lends with a function that ends the loan.

use std::ffi::c_void;

/// A caller's pointer, and the function that is told when it is not needed any more.
pub(crate) struct Owner {
    pub(crate) data: *mut c_void,
    pub(crate) release: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the pointer is handed back and nothing else is done with it; that it may be on any thread is a promise of the
// function that made this.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

impl Owner {
    /// Leaves the pointer to the caller: nothing is told.
    pub(crate) fn forget(mut self) {
        self.release = None;
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            // SAFETY: whoever made this promised that the function takes the pointer once, on any thread.
            unsafe { release(self.data) };
        }
    }
}
