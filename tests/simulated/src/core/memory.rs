//! The allocations of every device and of the host, and who can touch them when.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::OwnedFd;

use super::pages::{self, PAGE, Region};
use super::status::{Result, Status};
use super::virtual_memory::{Physical, Reservation};

/// What drivers promise of an address.
const ALIGNMENT: usize = 512;

/// Address space for each byte of memory: freed memory leaves holes.
const SPREAD: usize = 4;

const HOST_SPACE: usize = 64 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Pool,
    /// A mapped part of a reservation.
    Virtual,
    Pinned,
    /// Memory of the process that the driver was told about.
    Registered,
    Managed,
    /// What registered memory is to the devices, where that is elsewhere.
    Alias,
    /// Device memory of another process.
    Opened,
}

impl Kind {
    /// Whether the process may touch it only through the driver.
    pub(crate) fn on_device(self) -> bool {
        matches!(self, Kind::Device | Kind::Pool | Kind::Virtual | Kind::Alias | Kind::Opened)
    }
}

pub(crate) struct Allocation {
    pub start: usize,
    pub bytes: usize,
    pub kind: Kind,
    pub ordinal: i32,
    /// Zero where the driver names none.
    pub context: u64,
    /// Never used twice.
    pub id: u64,
    /// The pages it lies in.
    pub page: usize,
    pub page_bytes: usize,
    /// Ordinals that may touch it, for virtual memory.
    pub access: BTreeSet<i32>,
    /// The pages that running works have open, each as its start and its end.
    pub opened: Vec<(usize, usize)>,
    /// What is mapped here, for virtual memory.
    pub physical: u64,
    /// Where the same memory is for the device, or for the host of what the device has. Zero if it is here.
    pub other: usize,
    /// How often it was opened, for another process's.
    pub openings: u32,
    /// What the handle that it was opened by names: a process with its file, and the allocation there.
    pub origin: (u64, u64),
}

impl Allocation {
    /// Whether any device may touch it.
    pub(crate) fn reachable(&self) -> bool {
        self.kind != Kind::Virtual || !self.access.is_empty()
    }

    /// Where the host and where the devices see what is at an address of it. They differ for registered memory.
    pub(crate) fn host_and_device(&self, address: usize) -> (usize, usize) {
        let there = self.other.wrapping_add(address - self.start);
        match self.kind {
            Kind::Alias => (there, address),
            Kind::Registered if self.other != 0 => (address, there),
            _ => (address, address),
        }
    }

    pub(crate) fn holds(&self, address: usize, bytes: usize) -> bool {
        address >= self.start && bytes <= self.bytes && address - self.start <= self.bytes - bytes
    }
}

#[derive(Default)]
pub(crate) struct Memory {
    pub allocations: BTreeMap<usize, Allocation>,
    pub reservations: BTreeMap<usize, Reservation>,
    pub physical: HashMap<u64, Physical>,
    devices: Vec<Region>,
    pub(super) host: Option<Region>,
    /// Files of exported memory, by the allocation's id.
    pub(super) exported: HashMap<u64, OwnedFd>,
    /// Bytes in use of each ordinal.
    pub used: Vec<u64>,
    pub capacity: u64,
    ids: u64,
}

impl Memory {
    pub(crate) fn new(devices: usize, capacity: u64) -> Memory {
        Memory {
            devices: (0..devices).map(|_| Region::new(capacity as usize * SPREAD)).collect(),
            host: Some(Region::new(HOST_SPACE)),
            used: vec![0; devices],
            capacity,
            ..Memory::default()
        }
    }

    /// Takes bytes of an ordinal's memory, if it has them.
    pub(crate) fn charge(&mut self, ordinal: i32, bytes: u64) -> Result<()> {
        let used = &mut self.used[ordinal as usize];
        if bytes > self.capacity - *used {
            return Err(Status::OUT_OF_MEMORY);
        }
        *used += bytes;
        Ok(())
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(crate) fn allocate(&mut self, kind: Kind, bytes: usize, ordinal: i32, context: u64) -> Result<usize> {
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let rounded = bytes.checked_next_multiple_of(ALIGNMENT).ok_or(Status::OUT_OF_MEMORY)?;
        if kind.on_device() {
            self.charge(ordinal, rounded as u64)?;
        }
        let page_bytes = rounded.next_multiple_of(PAGE);
        let region =
            if kind.on_device() { &mut self.devices[ordinal as usize] } else { self.host.as_mut().unwrap() };
        // SAFETY: the pages were reserved, and nobody has them.
        let page = region
            .take(page_bytes)
            .filter(|&page| unsafe { pages::populate(page, page_bytes, !kind.on_device()) });
        let Some(page) = page else {
            if kind.on_device() {
                self.used[ordinal as usize] -= rounded as u64;
            }
            return Err(Status::OUT_OF_MEMORY);
        };
        // At the end of its pages, so that what runs past it faults.
        let start = page + page_bytes - rounded;
        self.insert(Allocation {
            start,
            bytes,
            kind,
            ordinal,
            context,
            id: 0,
            page,
            page_bytes,
            access: BTreeSet::new(),
            opened: Vec::new(),
            physical: 0,
            other: 0,
            openings: 0,
            origin: (0, 0),
        });
        Ok(start)
    }

    pub(crate) fn insert(&mut self, mut allocation: Allocation) {
        allocation.id = self.next_id();
        self.allocations.insert(allocation.start, allocation);
    }

    /// Tells the driver of memory of the process. It may get an address of its own on the devices.
    pub(crate) fn register(
        &mut self,
        start: usize,
        bytes: usize,
        ordinal: i32,
        context: u64,
        aliased: bool,
    ) -> Result<()> {
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let end = start.checked_add(bytes).ok_or(Status::INVALID_VALUE)?;
        if self.allocations.range(..end).next_back().is_some_and(|(_, last)| last.start + last.bytes > start)
        {
            return Err(Status::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let other = if aliased { self.alias(start, bytes, ordinal, context)? } else { 0 };
        self.insert(Allocation {
            start,
            bytes,
            kind: Kind::Registered,
            ordinal,
            context,
            id: 0,
            page: start,
            page_bytes: 0,
            access: BTreeSet::new(),
            opened: Vec::new(),
            physical: 0,
            other,
            openings: 0,
            origin: (0, 0),
        });
        Ok(())
    }

    /// The allocation that has the byte at `address`.
    pub(crate) fn find(&self, address: usize) -> Option<&Allocation> {
        let (_, allocation) = self.allocations.range(..=address).next_back()?;
        allocation.holds(address, 1).then_some(allocation)
    }

    /// Whether an address is one of ours, with memory behind it or without.
    pub(crate) fn is_reserved(&self, address: usize) -> bool {
        self.devices.iter().chain(&self.host).any(|region| region.contains(address))
            || self.reservation(address).is_some()
    }

    /// Frees the allocation of one of these kinds that starts there.
    pub(crate) fn free(&mut self, start: usize, kinds: &[Kind]) -> Result<()> {
        if !self.allocations.get(&start).is_some_and(|allocation| kinds.contains(&allocation.kind)) {
            return Err(Status::INVALID_VALUE);
        }
        let allocation = self.allocations.remove(&start).unwrap();
        self.exported.remove(&allocation.id);
        let region = match allocation.kind {
            Kind::Registered if allocation.other == 0 => return Ok(()),
            Kind::Registered => return self.free(allocation.other, &[Kind::Alias]),
            Kind::Virtual => unreachable!("unmapped, not freed"),
            Kind::Device | Kind::Pool => {
                let rounded = allocation.bytes.next_multiple_of(ALIGNMENT) as u64;
                self.used[allocation.ordinal as usize] -= rounded;
                &mut self.devices[allocation.ordinal as usize]
            }
            Kind::Pinned | Kind::Managed | Kind::Alias | Kind::Opened => self.host.as_mut().unwrap(),
        };
        // SAFETY: whoever frees memory says that nobody uses it; queued work that does will fault.
        unsafe { pages::withdraw(allocation.page, allocation.page_bytes) };
        region.give_back(allocation.page);
        Ok(())
    }

    /// Frees all that a context owns.
    pub(crate) fn free_of_context(&mut self, context: u64) {
        let owned = self.allocations.values().filter(|allocation| allocation.context == context);
        let starts: Vec<_> = owned.map(|allocation| (allocation.start, allocation.kind)).collect();
        // What registered memory has on the devices goes with it.
        for (start, kind) in starts.into_iter().filter(|(_, kind)| *kind != Kind::Alias) {
            let _ = self.free(start, &[kind]);
        }
    }

    /// Bytes that are live: of devices, or of the host.
    pub(crate) fn live(&self, device: bool) -> u64 {
        if device {
            return self.used.iter().sum();
        }
        let host = self
            .allocations
            .values()
            .filter(|allocation| matches!(allocation.kind, Kind::Pinned | Kind::Managed));
        host.map(|allocation| allocation.bytes as u64).sum()
    }
}
