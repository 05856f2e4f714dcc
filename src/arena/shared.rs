//! How a call shares its arena's room with the writers that it opened.
//!
//! A call is used by one thread at a time and is the only one that opens writers, so while none is open it has
//! the room to itself and takes no lock. A writer may be on any thread: it takes the lock, and while one is open
//! the call does as well.

use crate::arena::room::Room;
use crate::sync::{AtomicU32, Mutex, Ordering, UnsafeCell, lock};
use crate::trace::Notes;

/// The room, the lock and the number of open writers.
#[derive(Debug)]
pub(crate) struct SharedRoom {
    room: UnsafeCell<Room>,
    writers: AtomicU32,
    lock: Mutex<()>,
}

// SAFETY: the methods below are the only way to the room, and their contracts make its accesses exclusive.
unsafe impl Sync for SharedRoom {}

/// The outcome, and what is to be told once nobody has the room.
#[inline]
fn access_and_take<R>(room: &mut Room, access: impl FnOnce(&mut Room) -> R) -> (R, Notes) {
    let outcome = access(room);
    (outcome, room.notes.take())
}

impl SharedRoom {
    pub(crate) fn new(room: Room) -> Self {
        Self { room: UnsafeCell::new(room), writers: AtomicU32::new(0), lock: Mutex::new(()) }
    }

    /// The room, for the running call.
    ///
    /// # Safety
    ///
    /// The caller is the call that holds the lease, or holds the lease with every output closed; `access` calls
    /// no code of the user and does not come back here.
    #[inline]
    pub(crate) unsafe fn with_call<R>(&self, access: impl FnOnce(&mut Room) -> R) -> R {
        if self.writers.load(Ordering::Acquire) == 0 {
            // SAFETY: no writer is open, none can be opened but by the caller, and the writers that there were
            // happened before. `access` does not come back here.
            let (outcome, notes) = self.room.with_mut(|room| access_and_take(unsafe { &mut *room }, access));
            notes.tell();
            outcome
        } else {
            // SAFETY: the caller holds the lease.
            unsafe { self.with_writer(access) }
        }
    }

    /// The room, for an open writer.
    ///
    /// # Safety
    ///
    /// The caller is a writer of the running call that is counted here, or the call while one is; `access` calls
    /// no code of the user and does not come back here.
    pub(crate) unsafe fn with_writer<R>(&self, access: impl FnOnce(&mut Room) -> R) -> R {
        let guard = lock(&self.lock);
        // SAFETY: while a writer is open, the call and every writer take the lock; `access` does not come back.
        let (outcome, notes) = self.room.with_mut(|room| access_and_take(unsafe { &mut *room }, access));
        drop(guard);
        notes.tell();
        outcome
    }

    /// Counts a writer.
    ///
    /// # Safety
    ///
    /// The caller is the call that holds the lease.
    pub(crate) unsafe fn open_writer(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
    }

    /// Uncounts a writer, which does not come to the room again.
    ///
    /// # Safety
    ///
    /// The caller is a writer that is counted here.
    pub(crate) unsafe fn close_writer(&self) {
        let before = self.writers.fetch_sub(1, Ordering::Release);
        debug_assert_ne!(before, 0);
    }
}
