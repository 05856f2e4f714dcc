//! What a reader holds while it reads.

use std::ops::Deref;

use bytemuck::Pod;

use super::View;
use crate::arena::Core;

/// Holds a view's values for reading, and the arena at its generation: a slice of them, until it is dropped.
///
/// ```
/// use device_arena::{Arena, Error, Holder};
///
/// let arena = Arena::host();
/// let call = arena.begin()?;
/// let view = call.output_from_slice(&[3u16, 1, 2])?.publish();
/// call.finish()?;
/// let guard = view.read()?;
/// assert_eq!(guard.iter().max(), Some(&3));
/// assert!(matches!(arena.begin(), Err(Error::Contended { holder: Holder::Readers(1), .. })));
/// drop(guard);
/// arena.begin()?.finish()?;
/// # Ok::<(), Error>(())
/// ```
#[must_use = "the values are held only as long as the guard"]
pub struct ReadGuard<'v, T: Pod> {
    view: &'v View<T>,
}

impl<'v, T: Pod> ReadGuard<'v, T> {
    /// # Safety
    ///
    /// The caller has counted a reader of the view, and gives it to the guard.
    #[inline]
    pub(super) unsafe fn new(view: &'v View<T>) -> Self {
        Self { view }
    }
}

/// The values of a view that has a reader counted.
///
/// # Safety
///
/// The reader stays counted as long as the borrow.
#[inline]
pub(super) unsafe fn values<T: Pod>(view: &View<T>) -> &[T] {
    debug_assert!(view.address.is_aligned());
    // SAFETY: the view's output was `len` values of `T: Pod`. While a reader is counted no call begins, and so
    // nobody writes them; the reader owns the blocks as well.
    unsafe { std::slice::from_raw_parts(view.address.as_ptr(), view.len) }
}

impl<T: Pod> Deref for ReadGuard<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the guard has a reader counted, and uncounts it when it is dropped.
        unsafe { values(self.view) }
    }
}

impl<T: Pod + std::fmt::Debug> std::fmt::Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Pod> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard's reader was counted once; the view has a reference.
        unsafe { Core::end_read(self.view.core.as_non_null()) };
    }
}

/// Holds a view's values as a guard does, and borrows nothing: for code that knows no lifetimes.
///
/// ```
/// # use device_arena::{Arena, Error};
/// let arena = Arena::host();
/// let call = arena.begin()?;
/// let view = call.output_from_slice(&[1u8, 2, 3])?.publish();
/// call.finish()?;
/// let export = view.export()?;
/// drop(view);
/// std::thread::spawn(move || assert_eq!(*export, [1, 2, 3])).join().unwrap();
/// # Ok::<(), Error>(())
/// ```
#[must_use = "the values are held only as long as the export"]
pub struct Export<T: Pod> {
    view: View<T>,
}

impl<T: Pod> Export<T> {
    /// # Safety
    ///
    /// The caller has counted a reader of the view, and gives it to the export.
    pub(super) unsafe fn new(view: View<T>) -> Self {
        Self { view }
    }

    /// The view that is held.
    #[must_use]
    pub fn view(&self) -> &View<T> {
        &self.view
    }
}

impl<T: Pod> Deref for Export<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the export has a reader counted, and uncounts it when it is dropped.
        unsafe { values(&self.view) }
    }
}

impl<T: Pod + std::fmt::Debug> std::fmt::Debug for Export<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Pod> Drop for Export<T> {
    fn drop(&mut self) {
        // SAFETY: the export's reader was counted once; the view, dropped after this, has a reference.
        unsafe { Core::end_read(self.view.core.as_non_null()) };
    }
}
