//! Address space: regions that are reserved once, so that a freed address never becomes the process's own memory.

use std::collections::BTreeMap;
use std::io::Error;
use std::sync::LazyLock;

pub(crate) const PAGE: usize = 4096;

/// What fresh memory holds: reads of what nobody wrote show.
pub(crate) const POISON: u8 = 0xC5;

/// Pages full of poison. Private mappings of it cost no memory until they are written.
const POISON_BYTES: usize = 4 << 20;

static POISON_FILE: LazyLock<libc::c_int> =
    LazyLock::new(|| poisoned_file(POISON_BYTES).expect("a file in memory"));

/// A file in memory that is full of poison.
pub(crate) fn poisoned_file(bytes: usize) -> Result<libc::c_int, Error> {
    // SAFETY: a fresh file of our own, and a buffer that outlives the writes.
    unsafe {
        let file = libc::memfd_create(c"device-arena-simulated".as_ptr(), libc::MFD_CLOEXEC);
        if file < 0 {
            return Err(Error::last_os_error());
        }
        let chunk = vec![POISON; 1 << 20];
        let mut written = 0;
        while written < bytes {
            let some = libc::write(file, chunk.as_ptr().cast(), chunk.len().min(bytes - written));
            if some <= 0 {
                let error = Error::last_os_error();
                libc::close(file);
                return Err(error);
            }
            written += some as usize;
        }
        Ok(file)
    }
}

/// Reserves address space that nothing can be read from.
pub(crate) fn reserve(bytes: usize, alignment: usize) -> Option<usize> {
    // SAFETY: fresh mappings at addresses that the system picks, and the parts of them that are given back.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let whole = bytes.checked_add(alignment)?;
        let at = libc::mmap(std::ptr::null_mut(), whole, libc::PROT_NONE, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return None;
        }
        let start = (at as usize).next_multiple_of(alignment);
        let head = start - at as usize;
        if head > 0 {
            libc::munmap(at, head);
        }
        if alignment - head > 0 {
            libc::munmap((start + bytes) as *mut libc::c_void, alignment - head);
        }
        Some(start)
    }
}

/// Makes reserved pages into poisoned ones.
///
/// # Safety
///
/// The pages are reserved and nobody uses them.
pub(crate) unsafe fn populate(start: usize, bytes: usize, open: bool) -> bool {
    let protection = if open { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
    let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
    (start..start + bytes).step_by(POISON_BYTES).all(|at| {
        let some = POISON_BYTES.min(start + bytes - at);
        // SAFETY: as above.
        unsafe {
            libc::mmap(at as *mut libc::c_void, some, protection, flags, *POISON_FILE, 0) != libc::MAP_FAILED
        }
    })
}

/// Maps a file's bytes over reserved pages.
///
/// # Safety
///
/// As for `populate`.
pub(crate) unsafe fn map_file(start: usize, bytes: usize, file: libc::c_int) -> bool {
    // SAFETY: as above.
    unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        libc::mmap(start as *mut libc::c_void, bytes, libc::PROT_NONE, flags, file, 0) != libc::MAP_FAILED
    }
}

/// Gives the memory of pages back, and keeps their addresses reserved.
///
/// # Safety
///
/// Nobody uses the pages.
pub(crate) unsafe fn withdraw(start: usize, bytes: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: as above.
    unsafe { libc::mmap(start as *mut libc::c_void, bytes, libc::PROT_NONE, flags, -1, 0) };
}

/// Lets the process touch pages, or not.
///
/// # Safety
///
/// The pages are ours.
pub(crate) unsafe fn protect(start: usize, bytes: usize, open: bool) {
    let protection = if open { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
    // SAFETY: as above.
    unsafe { libc::mprotect(start as *mut libc::c_void, bytes, protection) };
}

/// Reserved addresses that are given out first fit, so that a freed one is soon used again.
pub(crate) struct Region {
    start: usize,
    bytes: usize,
    /// Start to end.
    taken: BTreeMap<usize, usize>,
}

impl Region {
    pub(crate) fn new(bytes: usize) -> Region {
        let bytes = bytes.next_multiple_of(PAGE);
        let start = reserve(bytes, PAGE).expect("address space");
        Region { start, bytes, taken: BTreeMap::new() }
    }

    pub(crate) fn contains(&self, address: usize) -> bool {
        address >= self.start && address - self.start < self.bytes
    }

    /// Whole pages, with one that stays closed before them and one after.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<usize> {
        let mut at = self.start + PAGE;
        for (&start, &end) in &self.taken {
            if at + bytes + PAGE <= start {
                break;
            }
            at = end + PAGE;
        }
        if at + bytes + PAGE > self.start + self.bytes {
            return None;
        }
        self.taken.insert(at, at + bytes);
        Some(at)
    }

    pub(crate) fn give_back(&mut self, start: usize) {
        self.taken.remove(&start);
    }
}
