//! Memory that is in two places: of another process, or elsewhere for the devices than for the host.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::ffi::{CString, c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::memory::{Allocation, Kind, Memory};
use super::pages::{self, PAGE};
use super::status::{Result, Status};
use super::virtual_memory::GRANULE;

unsafe extern "C" {
    /// Moves pages into a file, and maps it in their place. What threads write meanwhile is not lost.
    fn grid_move(pages: *mut c_void, bytes: usize, file: c_int, open: c_int) -> c_int;
}

/// What a handle begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"simulate");

fn new_file(bytes: usize) -> Result<OwnedFd> {
    // SAFETY: a fresh file of our own.
    unsafe {
        let file = libc::memfd_create(c"device-arena-shared".as_ptr(), libc::MFD_CLOEXEC);
        if file < 0 {
            return Err(Status::OUT_OF_MEMORY);
        }
        let file = OwnedFd::from_raw_fd(file);
        if libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) == 0 {
            Ok(file)
        } else {
            Err(Status::OUT_OF_MEMORY)
        }
    }
}

impl Memory {
    /// Maps a file as memory of the devices, closed to the process.
    fn map_closed(&mut self, file: &OwnedFd, page_bytes: usize, mut allocation: Allocation) -> Result<usize> {
        let region = self.host.as_mut().ok_or(Status::NOT_INITIALIZED)?;
        let page = region.take(page_bytes).ok_or(Status::OUT_OF_MEMORY)?;
        // SAFETY: pages that were reserved, and that nobody has.
        if !unsafe { pages::map_file(page, page_bytes, file.as_raw_fd()) } {
            region.give_back(page);
            return Err(Status::OUT_OF_MEMORY);
        }
        // It was an offset.
        allocation.start += page;
        (allocation.page, allocation.page_bytes) = (page, page_bytes);
        let start = allocation.start;
        self.insert(allocation);
        Ok(start)
    }

    /// Gives memory of the process an address on the devices.
    pub(super) fn alias(&mut self, start: usize, bytes: usize, ordinal: i32, context: u64) -> Result<usize> {
        let page = start / PAGE * PAGE;
        let page_bytes = (start + bytes).next_multiple_of(PAGE) - page;
        // A page is moved whole, so no two registrations may share one.
        let shares = |other: &Allocation| {
            other.kind == Kind::Registered
                && other.start < page + page_bytes
                && other.start + other.bytes > page
        };
        if self.allocations.values().any(shares) {
            return Err(Status::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let file = new_file(page_bytes)?;
        // SAFETY: the process's own pages, which hold the same afterwards.
        if unsafe { grid_move(page as *mut c_void, page_bytes, file.as_raw_fd(), 1) } != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let alias = allocation(start - page, bytes, Kind::Alias, ordinal, context, start);
        self.map_closed(&file, page_bytes, alias)
    }

    /// A handle of device memory for other processes.
    pub(crate) fn export(&mut self, address: usize) -> Result<[u8; 64]> {
        let found = self.find(address).filter(|found| found.kind == Kind::Device);
        let found = found.ok_or(Status::INVALID_VALUE)?;
        let (id, page, page_bytes) = (found.id, found.page, found.page_bytes);
        let (start, bytes, ordinal) = (found.start, found.bytes, found.ordinal);
        // Running work has it open, and would lose what it writes meanwhile.
        let open = c_int::from(!found.opened.is_empty());
        let file = match self.exported.entry(id) {
            Entry::Occupied(file) => file.into_mut(),
            Entry::Vacant(place) => {
                let file = new_file(page_bytes)?;
                // SAFETY: the allocation's own pages.
                if unsafe { grid_move(page as *mut c_void, page_bytes, file.as_raw_fd(), open) } != 0 {
                    return Err(Status::OUT_OF_MEMORY);
                }
                place.insert(file)
            }
        };
        let numbers = [
            MAGIC,
            u64::from(std::process::id()) << 32 | file.as_raw_fd() as u64,
            id,
            page_bytes as u64,
            (start - page) as u64,
            bytes as u64,
            (address - start) as u64,
            ordinal as u64,
        ];
        let mut handle = [0; 64];
        for (place, number) in handle.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        Ok(handle)
    }

    /// Maps what another process has exported. Its own handles a process cannot open.
    pub(crate) fn open_exported(&mut self, handle: &[u8; 64], foreign: bool) -> Result<usize> {
        let mut numbers = [0_u64; 8];
        for (number, bytes) in numbers.iter_mut().zip(handle.chunks_exact(8)) {
            *number = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        let [magic, file, id, page_bytes, offset, bytes, inside, ordinal] = numbers;
        let (process, origin) = (file >> 32, (file, id));
        let file = file as u32;
        if magic != MAGIC {
            return Err(Status::INVALID_VALUE);
        }
        if process == u64::from(std::process::id()) && !foreign {
            return Err(Status::INVALID_CONTEXT);
        }
        // It stays where it is when it is opened again.
        let again = self.allocations.values_mut().find(|other| other.openings > 0 && other.origin == origin);
        if let Some(opened) = again {
            opened.openings += 1;
            return Ok(opened.start + inside as usize);
        }
        let path = CString::new(format!("/proc/{process}/fd/{file}")).expect("no zero byte");
        // SAFETY: a path; what is there is checked before it is used.
        let file = unsafe {
            let file = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            if file < 0 {
                return Err(Status::MAP_FAILED);
            }
            OwnedFd::from_raw_fd(file)
        };
        if file_bytes(file.as_raw_fd()) != Some(page_bytes as usize) {
            return Err(Status::MAP_FAILED);
        }
        let ordinal = ordinal as i32;
        let mut opened = allocation(offset as usize, bytes as usize, Kind::Opened, ordinal, 0, 0);
        (opened.openings, opened.origin) = (1, origin);
        Ok(self.map_closed(&file, page_bytes as usize, opened)? + inside as usize)
    }

    /// Closes what was opened, once for each time that it was.
    pub(crate) fn close_opened(&mut self, address: usize) -> Result<()> {
        let start = self.find(address).filter(|found| found.kind == Kind::Opened).map(|found| found.start);
        let start = start.ok_or(Status::INVALID_VALUE)?;
        let opened = self.allocations.get_mut(&start).expect("it was found");
        opened.openings -= 1;
        if opened.openings == 0 { self.free(start, &[Kind::Opened]) } else { Ok(()) }
    }

    /// A descriptor of the file behind a handle, if it was made to be shared.
    pub(crate) fn export_physical(&self, handle: u64) -> Result<c_int> {
        let physical = self.physical.get(&handle).filter(|physical| physical.shareable);
        let physical = physical.ok_or(Status::INVALID_VALUE)?;
        // SAFETY: a file of our own that is open.
        let file = unsafe { libc::fcntl(physical.file, libc::F_DUPFD_CLOEXEC, 0) };
        if file < 0 { Err(Status::OUT_OF_MEMORY) } else { Ok(file) }
    }

    /// Takes the memory behind a descriptor, which stays the caller's.
    pub(crate) fn import_physical(&mut self, file: c_int, ordinal: i32, handle: u64) -> Result<()> {
        let bytes = file_bytes(file).filter(|bytes| *bytes > 0 && bytes.is_multiple_of(GRANULE));
        let bytes = bytes.ok_or(Status::INVALID_VALUE)?;
        // SAFETY: a descriptor that is open, as its size shows.
        let file = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, 0) };
        if file < 0 {
            return Err(Status::OUT_OF_MEMORY);
        }
        self.keep(handle, file, bytes, ordinal);
        Ok(())
    }
}

fn file_bytes(file: c_int) -> Option<usize> {
    // SAFETY: a place of our own, which is read where the call filled it.
    unsafe {
        let mut status = std::mem::zeroed::<libc::stat>();
        (libc::fstat(file, &mut status) == 0).then_some(status.st_size as usize)
    }
}

/// With an offset for its start.
fn allocation(
    start: usize,
    bytes: usize,
    kind: Kind,
    ordinal: i32,
    context: u64,
    other: usize,
) -> Allocation {
    Allocation {
        start,
        bytes,
        kind,
        ordinal,
        context,
        id: 0,
        page: 0,
        page_bytes: 0,
        access: BTreeSet::new(),
        opened: Vec::new(),
        physical: 0,
        other,
        openings: 0,
        origin: (0, 0),
    }
}
