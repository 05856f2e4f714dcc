//! Reserved addresses, memory without an address, and the mapping of one into the other.

use std::collections::BTreeSet;

use super::memory::{Allocation, Kind, Memory};
use super::pages;
use super::status::{Result, Status};

/// What mappings come in. HIP says the host's page.
pub(crate) const GRANULE: usize = if cfg!(feature = "cuda") { 2 << 20 } else { 4096 };

pub(crate) struct Reservation {
    pub start: usize,
    pub bytes: usize,
}

/// Memory that is a file, so that it can be mapped more than once.
pub(crate) struct Physical {
    pub(super) file: libc::c_int,
    bytes: usize,
    ordinal: i32,
    /// Whether it may be given to other processes.
    pub(super) shareable: bool,
    /// Whether it is of this process, and so in use of the ordinal's memory.
    own: bool,
    /// What keeps it: its handle and its mappings.
    references: u32,
    released: bool,
}

impl Memory {
    pub(crate) fn reserve(&mut self, bytes: usize, alignment: usize) -> Result<usize> {
        if bytes == 0 || !bytes.is_multiple_of(GRANULE) || !(alignment == 0 || alignment.is_power_of_two()) {
            return Err(Status::INVALID_VALUE);
        }
        let start = pages::reserve(bytes, alignment.max(GRANULE)).ok_or(Status::OUT_OF_MEMORY)?;
        self.reservations.insert(start, Reservation { start, bytes });
        Ok(start)
    }

    pub(crate) fn unreserve(&mut self, start: usize, bytes: usize) -> Result<()> {
        let whole = self.reservations.get(&start).is_some_and(|reservation| reservation.bytes == bytes);
        if !whole || self.allocations.range(start..start + bytes).next().is_some() {
            return Err(Status::INVALID_VALUE);
        }
        self.reservations.remove(&start);
        // SAFETY: the reservation's own pages, with nothing mapped.
        unsafe { libc::munmap(start as *mut libc::c_void, bytes) };
        Ok(())
    }

    pub(crate) fn reservation(&self, address: usize) -> Option<&Reservation> {
        let (_, reservation) = self.reservations.range(..=address).next_back()?;
        (address - reservation.start < reservation.bytes).then_some(reservation)
    }

    pub(crate) fn create(&mut self, ordinal: i32, bytes: usize, shareable: bool, handle: u64) -> Result<()> {
        if bytes == 0 || !bytes.is_multiple_of(GRANULE) {
            return Err(Status::INVALID_VALUE);
        }
        self.charge(ordinal, bytes as u64)?;
        let Ok(file) = pages::poisoned_file(bytes) else {
            self.used[ordinal as usize] -= bytes as u64;
            return Err(Status::OUT_OF_MEMORY);
        };
        let physical =
            Physical { file, bytes, ordinal, shareable, own: true, references: 1, released: false };
        self.physical.insert(handle, physical);
        Ok(())
    }

    /// Keeps memory of somebody else.
    pub(super) fn keep(&mut self, handle: u64, file: libc::c_int, bytes: usize, ordinal: i32) {
        let physical =
            Physical { file, bytes, ordinal, shareable: true, own: false, references: 1, released: false };
        self.physical.insert(handle, physical);
    }

    pub(crate) fn release(&mut self, handle: u64) -> Result<()> {
        let physical = self.physical.get_mut(&handle).filter(|physical| !physical.released);
        physical.ok_or(Status::INVALID_VALUE)?.released = true;
        self.drop_reference(handle);
        Ok(())
    }

    fn drop_reference(&mut self, handle: u64) {
        let Some(physical) = self.physical.get_mut(&handle) else { return };
        physical.references -= 1;
        if physical.references == 0 {
            // SAFETY: our own file, and its last use.
            unsafe { libc::close(physical.file) };
            if physical.own {
                self.used[physical.ordinal as usize] -= physical.bytes as u64;
            }
            self.physical.remove(&handle);
        }
    }

    /// Maps all of a handle's memory at `start`. Nobody may touch it before `set_access`.
    pub(crate) fn map(&mut self, start: usize, bytes: usize, handle: u64) -> Result<()> {
        let reservation = self.reservation(start).ok_or(Status::INVALID_VALUE)?;
        let end = start.checked_add(bytes).ok_or(Status::INVALID_VALUE)?;
        let fits = end <= reservation.start + reservation.bytes && start.is_multiple_of(GRANULE);
        let occupied = self
            .allocations
            .range(..end)
            .next_back()
            .is_some_and(|(_, last)| last.start + last.bytes > start);
        let physical =
            self.physical.get_mut(&handle).filter(|physical| !physical.released && physical.bytes == bytes);
        let physical = physical.filter(|_| fits && !occupied).ok_or(Status::INVALID_VALUE)?;
        // SAFETY: pages of the reservation that nothing is mapped in.
        if !unsafe { pages::map_file(start, bytes, physical.file) } {
            return Err(Status::OUT_OF_MEMORY);
        }
        physical.references += 1;
        let ordinal = physical.ordinal;
        self.insert(Allocation {
            start,
            bytes,
            kind: Kind::Virtual,
            ordinal,
            context: 0,
            id: 0,
            page: start,
            page_bytes: bytes,
            access: BTreeSet::new(),
            opened: Vec::new(),
            physical: handle,
            other: 0,
            openings: 0,
            origin: (0, 0),
        });
        Ok(())
    }

    /// The starts of the mappings that make up exactly these bytes.
    fn mappings(&self, start: usize, bytes: usize) -> Result<Vec<usize>> {
        let end = start.checked_add(bytes).ok_or(Status::INVALID_VALUE)?;
        let mut at = start;
        let mut starts = Vec::new();
        while at < end {
            let allocation = self.allocations.get(&at).filter(|allocation| allocation.kind == Kind::Virtual);
            starts.push(at);
            at += allocation.ok_or(Status::INVALID_VALUE)?.bytes;
        }
        if at == end && bytes > 0 { Ok(starts) } else { Err(Status::INVALID_VALUE) }
    }

    pub(crate) fn unmap(&mut self, start: usize, bytes: usize) -> Result<()> {
        for start in self.mappings(start, bytes)? {
            let allocation = self.allocations.remove(&start).unwrap();
            // SAFETY: as for memory that is freed.
            unsafe { pages::withdraw(allocation.page, allocation.page_bytes) };
            self.drop_reference(allocation.physical);
        }
        Ok(())
    }

    pub(crate) fn set_access(&mut self, start: usize, bytes: usize, ordinal: i32, may: bool) -> Result<()> {
        for start in self.mappings(start, bytes)? {
            let access = &mut self.allocations.get_mut(&start).unwrap().access;
            if may {
                access.insert(ordinal);
            } else {
                access.remove(&ordinal);
            }
        }
        Ok(())
    }
}
