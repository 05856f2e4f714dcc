//! The drivers' allocations that a call has asked about.

use crate::pointer::{AllocationOrigin, PointerInfo};

/// How many are remembered: a call is given few buffers, and a longer search costs what a question does.
const MOST: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Seen {
    infos: Vec<PointerInfo>,
    oldest: usize,
}

impl Seen {
    /// What is known of a range, if it lies in an allocation that was asked about.
    #[inline]
    pub(crate) fn find(&self, pointer: *const u8, bytes: usize) -> Option<PointerInfo> {
        if bytes == 0 {
            return None;
        }
        self.infos.iter().find(|info| info.holds(pointer, bytes)).copied()
    }

    /// Remembers an allocation that the driver names. Where virtual memory ends changes while it is in use.
    pub(crate) fn note(&mut self, info: PointerInfo) {
        let is_named = info.allocation.is_some() && info.buffer_id.is_some();
        if !is_named || info.origin == AllocationOrigin::Virtual {
            return;
        }
        if self.infos.len() < MOST {
            if self.infos.try_reserve(1).is_ok() {
                self.infos.push(info);
            }
        } else if let Some(place) = self.infos.get_mut(self.oldest) {
            *place = info;
            self.oldest = (self.oldest + 1) % MOST;
        }
    }

    /// Forgets them all: a later call asks again.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.infos.clear();
    }
}
