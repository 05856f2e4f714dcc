//! Lists whose places are known to exist.

use std::ops::Range;

/// A list that is asked only for places that it has, by how they were made. Elsewhere it answers the default and takes
/// nothing, so that no path of the library panics; builds with debug assertions do.
#[derive(Debug, Clone, Default)]
pub(super) struct Row<T>(Vec<T>);

impl<T: Clone + Default> Row<T> {
    pub(super) fn new(value: T, count: usize) -> Self {
        Self(vec![value; count])
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn at(&self, place: usize) -> T {
        debug_assert!(place < self.0.len(), "{place} of {}", self.0.len());
        self.0.get(place).cloned().unwrap_or_default()
    }

    pub(super) fn put(&mut self, place: usize, value: T) {
        debug_assert!(place < self.0.len(), "{place} of {}", self.0.len());
        if let Some(known) = self.0.get_mut(place) {
            *known = value;
        }
    }

    pub(super) fn get(&self, place: usize) -> Option<&T> {
        self.0.get(place)
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.0.get_mut(place)
    }

    pub(super) fn part(&self, range: Range<usize>) -> &[T] {
        self.0.get(range).unwrap_or_default()
    }

    pub(super) fn as_slice(&self) -> &[T] {
        &self.0
    }

    pub(super) fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T> From<Vec<T>> for Row<T> {
    fn from(list: Vec<T>) -> Self {
        Self(list)
    }
}
