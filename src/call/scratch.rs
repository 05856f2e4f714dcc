//! Room inside a call that is free again when its scope ends.

use std::marker::PhantomData;
use std::ptr::NonNull;

use bytemuck::Pod;

use super::{Call, size_overflow};
use crate::arena::{Access, CoreRef, ScratchMark};
use crate::error::{Error, Refused, Result};

/// A scope of scratch room. What it hands out lives until the scope ends, and can't leave it.
///
/// Scopes nest: an inner one borrows its parent, and the parent's room stays usable meanwhile.
///
/// ```
/// # let arena = device_arena::Arena::host();
/// let mut call = arena.begin()?;
/// call.scratch(|outer| {
///     let sums = outer.take::<u64>(2)?;
///     for (round, sum) in sums.iter_mut().enumerate() {
///         *sum = outer.scratch(|inner| {
///             let terms = inner.take::<u64>(100)?; // the same room each round
///             terms.fill(round as u64);
///             Ok::<_, device_arena::Error>(terms.iter().sum())
///         })?;
///     }
///     assert_eq!(sums, [0, 100]);
///     Ok::<_, device_arena::Error>(())
/// })?;
/// call.finish()?;
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug)]
pub struct Scratch<'s> {
    call: &'s Call,
    /// Invariant, so that room of one scope can't be taken for another's.
    _scope: PhantomData<fn(&'s ()) -> &'s ()>,
}

/// Ends a scope, by a panic too.
struct End<'c> {
    call: &'c Call,
    mark: ScratchMark,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.call.with_room(|core, room| room.release(&core.counters, self.mark));
    }
}

/// Runs `work` in a scope of its own. The callers hold the call or the outer scope exclusively, so that scopes end
/// in the reverse of the order in which they began.
pub(super) fn scope<R>(call: &Call, work: impl for<'s> FnOnce(&mut Scratch<'s>) -> R) -> R {
    let end = End { call, mark: call.with_room(|_, room| room.mark()) };
    work(&mut Scratch { call: end.call, _scope: PhantomData })
}

impl<'s> Scratch<'s> {
    /// The call, to open outputs from.
    pub fn call(&self) -> &'s Call {
        self.call
    }

    /// Room for `len` values until the scope ends. It shows what it held before.
    ///
    /// # Errors
    ///
    /// As [`Call::output`], and [`Error::Device`] where the host can't write.
    // Each call hands out other room, so the borrow need not last as long as the room does.
    pub fn take<T: Pod>(&mut self, len: usize) -> Result<&'s mut [T]> {
        self.call.host_access("scratch", Access::Room)?;
        let address = self.room::<T>(len)?;
        // SAFETY: the room is `len` values of `T: Pod`, initialised as all room is. It is free again only when the
        // scope ends, which is after `'s`: a closure's scope works for any `'s`, so nothing of that lifetime leaves it;
        // one that was begun borrows the call exclusively for `'s`, without which nobody ends it. Nothing else leads to
        // the room.
        Ok(unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), len) })
    }

    /// Room for `len` values until the scope ends, for the device's kernels: its address. Work that uses it is to be queued
    /// on the executor's stream before the scope ends; the stream orders what the room is used for next.
    ///
    /// # Errors
    ///
    /// As [`Call::output`], and [`Error::HostMemory`] for host pages.
    pub fn take_on_device<T: Pod>(&mut self, len: usize) -> Result<*mut T> {
        let core = self.call.core();
        super::check_device(core, "scratch")?;
        let room = self.room::<T>(len)?;
        if core.source.is_shared_with_device() {
            core.fence.take_scratch(self.call.generation);
        }
        Ok(room.as_ptr())
    }

    fn room<T: Pod>(&self, len: usize) -> Result<NonNull<T>> {
        let core = self.call.core();
        let overflow = || size_overflow::<T>("scratch", len);
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(overflow)?;
        if bytes == 0 {
            core.source.check_alignment(align_of::<T>())?;
            return Ok(NonNull::dangling());
        }
        let take = |room: &mut crate::arena::Room| {
            room.take_scratch(&core.source, &core.counters, bytes, align_of::<T>())
        };
        Ok(self.call.with_room(|_, room| take(room))?.cast())
    }

    /// Runs `work` in a scope within this one.
    pub fn scratch<R>(&mut self, work: impl for<'i> FnOnce(&mut Scratch<'i>) -> R) -> R {
        scope(self.call, work)
    }
}

/// A scope of scratch room that was begun by itself, for code that can't put what it does into a closure: it borrows nothing.
/// [`Call::end_scratch`] ends it; one that is dropped instead keeps its room, and stays the innermost, to the end of the call.
#[derive(Debug)]
#[must_use = "a scope that is dropped keeps its room to the end of the call"]
pub struct ScratchScope {
    /// With the generation, whose scope it is: no other call has both as long as this keeps the core.
    core: CoreRef,
    generation: u64,
    /// How many scopes were open with this one. No other of the call's has as many before this one is used up.
    depth: u32,
    mark: ScratchMark,
}

impl Call {
    /// Begins a scope of scratch room that [`end_scratch`](Self::end_scratch) ends. Scopes end in the reverse of the order in
    /// which they began, and [`scratch`](Self::scratch) may be used within.
    ///
    /// ```
    /// # use device_arena::{Arena, Error};
    /// # let arena = Arena::host();
    /// let mut call = arena.begin()?;
    /// let scope = call.begin_scratch()?;
    /// call.scratch_of(&scope)?.take::<u32>(1000)?.fill(7);
    /// let inner = call.begin_scratch()?;
    /// assert!(matches!(call.scratch_of(&scope), Err(Error::ScratchOrder { .. })));
    /// call.end_scratch(inner)?;
    /// call.end_scratch(scope)?;
    /// call.finish()?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ScratchOrder`] where as many scopes are open as a call can count, 2^32 - 1.
    pub fn begin_scratch(&mut self) -> Result<ScratchScope> {
        let depth =
            self.scopes.get().checked_add(1).ok_or(Error::ScratchOrder { operation: "begin_scratch" })?;
        // SAFETY: the call is an owner.
        let core = unsafe { CoreRef::new(self.core) };
        let mark = self.with_room(|_, room| room.mark());
        self.scopes.set(depth);
        Ok(ScratchScope { core, generation: self.generation, depth, mark })
    }

    /// The scope's room, to take from.
    ///
    /// # Errors
    ///
    /// [`Error::ScratchOrder`] for a scope of another call, and for one in which another is open.
    pub fn scratch_of<'s>(&'s mut self, scope: &'s ScratchScope) -> Result<Scratch<'s>> {
        self.check_innermost("scratch_of", scope)?;
        Ok(Scratch { call: self, _scope: PhantomData })
    }

    /// Ends a scope: its room is free again.
    ///
    /// # Errors
    ///
    /// [`Error::ScratchOrder`] as [`scratch_of`](Self::scratch_of), and the scope with it.
    pub fn end_scratch(&mut self, scope: ScratchScope) -> Result<(), Refused<ScratchScope>> {
        match self.check_innermost("end_scratch", &scope) {
            Ok(()) => {
                self.with_room(|core, room| room.release(&core.counters, scope.mark));
                self.scopes.set(scope.depth - 1);
                Ok(())
            }
            Err(error) => Err(Refused::new(error, scope)),
        }
    }

    fn check_innermost(&self, operation: &'static str, scope: &ScratchScope) -> Result<()> {
        let is_own = scope.core.as_non_null() == self.core && scope.generation == self.generation;
        if is_own && scope.depth == self.scopes.get() {
            Ok(())
        } else {
            Err(Error::ScratchOrder { operation })
        }
    }
}
