//! Addresses that the runtime knows and the CUDA driver below does not, or not as HIP does.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pointer::Behind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// A variable that is `__managed__`.
    Managed,
    /// Memory that another client of HSA allocated.
    Foreign,
    /// A pool has it back, and keeps it.
    Pooled,
    /// Memory of another process.
    Opened,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub what: Known,
    pub bytes: u64,
    pub ordinal: i32,
}

/// By where they start.
pub(super) struct Table(BTreeMap<u64, Entry>);

static TABLE: Mutex<Table> = Mutex::new(Table(BTreeMap::new()));

pub(super) fn lock() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    pub(super) fn add(&mut self, start: u64, entry: Entry) {
        self.taken(start, entry.bytes);
        self.0.insert(start, entry);
    }

    pub(super) fn remove(&mut self, start: u64) {
        self.0.remove(&start);
    }

    #[cfg(test)]
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Where it starts, and what it is.
    pub(super) fn find(&self, address: u64) -> Option<(u64, Entry)> {
        let (&start, &entry) = self.0.range(..=address).next_back()?;
        (address - start < entry.bytes).then_some((start, entry))
    }

    /// Forgets what lies where something new was allocated.
    pub(super) fn taken(&mut self, start: u64, bytes: u64) {
        let before = self.0.range(..=start).next_back().map(|(&start, _)| start);
        let inside = self.0.range(start..start.saturating_add(bytes)).map(|(&start, _)| start);
        let near: Vec<u64> = before.into_iter().chain(inside).collect();
        for other in near {
            if self.0.get(&other).is_some_and(|entry| other + entry.bytes > start) {
                self.0.remove(&other);
            }
        }
    }

    /// Pool memory that is freed stays the runtime's.
    pub(super) fn freed_to_pool(&mut self, freed: Option<Behind>) {
        if let Some(freed) = freed {
            let entry = Entry { what: Known::Pooled, bytes: freed.bytes, ordinal: freed.ordinal };
            self.add(freed.start, entry);
        }
    }
}
