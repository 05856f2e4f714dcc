//! Memory of kinds that other libraries of a process make, straight from the driver.

use std::ffi::c_void;

use device_arena::backend::Vendor;
use device_arena::{Executor, MemoryKind, Result};
use libloading::Library;

use crate::line;
use crate::pointers::sample;

const BYTES: usize = 1 << 20;

/// Asks about memory of every kind that the driver gives on that device.
pub fn report(of: &str, executor: &Executor, library: &str) -> Result<()> {
    // SAFETY: it is loaded already, and runs nothing now.
    let library = match unsafe { Library::new(library) } {
        Ok(library) => library,
        Err(error) => {
            line(format_args!("{of}.driver"), format_args!("failed: {error}"));
            return Ok(());
        }
    };
    let stream = executor.stream()?;
    let cases = [Driver::pinned, Driver::registered, Driver::managed, Driver::reserved, Driver::mapped];
    executor.with_current(|| {
        let (vendor, ordinal) = (executor.vendor(), executor.ordinal());
        let driver = Driver { of, library, vendor, ordinal };
        for case in cases {
            let outcome = case(&driver);
            driver.note(outcome);
        }
        driver.note(driver.pooled(stream));
    })
}

/// `CUmemAllocationProp` of the driver's header. AMD's has fewer flags, and is as large.
#[repr(C)]
struct Properties {
    kind: u32,
    handles: u32,
    location: u32,
    ordinal: u32,
    win32: *const c_void,
    flags: [u8; 8],
}

impl Properties {
    const PINNED: u32 = 1;
    const DEVICE: u32 = 1;
}

/// `CUmemAccessDesc`.
#[repr(C)]
struct Access {
    location: u32,
    ordinal: u32,
    flags: u32,
}

impl Access {
    const READ_AND_WRITE: u32 = 3;
}

/// A driver's function that did not do what it was asked.
struct Failed {
    function: &'static str,
    /// The driver's code; none where the driver has no such function.
    code: Option<u32>,
}

type Outcome<T = ()> = std::result::Result<T, Failed>;

struct Driver<'d> {
    of: &'d str,
    library: Library,
    vendor: Vendor,
    ordinal: u32,
}

/// Calls a function by what NVIDIA and AMD call it. The types are the declarations', by the vendors' headers.
macro_rules! call {
    ($driver:expr, $nvidia:literal | $amd:literal, ($($type:ty),*), ($($value:expr),*)) => {{
        type Function = unsafe extern "C" fn($($type),*) -> u32;
        let function = if $driver.vendor == Vendor::Cuda { $nvidia } else { $amd };
        let failed = |code| Failed { function, code };
        // SAFETY: the type is that of the driver's declaration.
        match unsafe { $driver.library.get::<Function>(function.as_bytes()) } {
            // SAFETY: handles and addresses are the driver's own, and what it writes to is live.
            Ok(function) => match unsafe { function($($value),*) } {
                0 => Ok(()),
                code => Err(failed(Some(code))),
            },
            Err(_) => Err(failed(None)),
        }
    }};
}

impl Driver<'_> {
    fn note(&self, outcome: Outcome) {
        let Err(Failed { function, code }) = outcome else { return };
        let code = code.map_or("the driver has no such function".into(), |code| format!("code {code}"));
        line(format_args!("{}.{function}", self.of), format_args!("failed: {code}"));
    }

    fn sample(&self, kind: &str, address: usize, expected: MemoryKind) {
        sample(&format!("{}.{kind}", self.of), address as *const u8, Some(expected));
    }

    fn pinned(&self) -> Outcome {
        let mut pointer = std::ptr::null_mut::<c_void>();
        call!(
            self,
            "cuMemHostAlloc" | "hipHostMalloc",
            (*mut *mut c_void, usize, u32),
            (&raw mut pointer, BYTES, 0)
        )?;
        self.sample("pinned", pointer.addr(), MemoryKind::PinnedHost);
        call!(self, "cuMemFreeHost" | "hipHostFree", (*mut c_void), (pointer))
    }

    fn registered(&self) -> Outcome {
        let mut pages = vec![0u8; BYTES];
        let pointer = pages.as_mut_ptr().cast::<c_void>();
        call!(
            self,
            "cuMemHostRegister_v2" | "hipHostRegister",
            (*mut c_void, usize, u32),
            (pointer, BYTES, 0)
        )?;
        self.sample("registered", pointer.addr(), MemoryKind::PinnedHost);
        call!(self, "cuMemHostUnregister" | "hipHostUnregister", (*mut c_void), (pointer))?;
        self.sample("registered.no.more", pointer.addr(), MemoryKind::Unregistered);
        Ok(())
    }

    fn managed(&self) -> Outcome {
        const GLOBAL: u32 = 1;
        let mut address = 0;
        call!(
            self,
            "cuMemAllocManaged" | "hipMallocManaged",
            (*mut u64, usize, u32),
            (&raw mut address, BYTES, GLOBAL)
        )?;
        self.sample("managed", address as usize, MemoryKind::Managed { ordinal: Some(self.ordinal) });
        call!(self, "cuMemFree_v2" | "hipFree", (u64), (address))
    }

    fn pooled(&self, stream: *mut c_void) -> Outcome {
        let mut address = 0;
        call!(
            self,
            "cuMemAllocAsync" | "hipMallocAsync",
            (*mut u64, usize, *mut c_void),
            (&raw mut address, BYTES, stream)
        )?;
        self.sample("pool", address as usize, MemoryKind::Device { ordinal: self.ordinal });
        call!(self, "cuMemFreeAsync" | "hipFreeAsync", (u64, *mut c_void), (address, stream))?;
        call!(self, "cuStreamSynchronize" | "hipStreamSynchronize", (*mut c_void), (stream))
    }

    /// What is said of addresses without memory: AMD's runtime does not know them.
    fn unmapped(&self) -> MemoryKind {
        if self.vendor == Vendor::Cuda { MemoryKind::Unmapped } else { MemoryKind::Unregistered }
    }

    /// Addresses without memory.
    fn reserved(&self) -> Outcome {
        let (address, bytes) = self.reserve()?;
        self.sample("reserved", address as usize, self.unmapped());
        self.give_up(address, bytes)
    }

    /// Memory that is mapped into one half of reserved addresses.
    fn mapped(&self) -> Outcome {
        let properties = self.properties();
        let (address, bytes) = self.reserve()?;
        let (mut memory, half) = (0, bytes / 2);
        call!(
            self,
            "cuMemCreate" | "hipMemCreate",
            (*mut u64, usize, *const Properties, u64),
            (&raw mut memory, half, &raw const properties, 0)
        )?;
        call!(self, "cuMemMap" | "hipMemMap", (u64, usize, usize, u64, u64), (address, half, 0, memory, 0))?;
        let access =
            Access { location: Properties::DEVICE, ordinal: self.ordinal, flags: Access::READ_AND_WRITE };
        call!(
            self,
            "cuMemSetAccess" | "hipMemSetAccess",
            (u64, usize, *const Access, usize),
            (address, half, &raw const access, 1)
        )?;
        self.sample("mapped", address as usize, MemoryKind::Device { ordinal: self.ordinal });
        self.sample("mapped.not", address as usize + half, self.unmapped());
        call!(self, "cuMemUnmap" | "hipMemUnmap", (u64, usize), (address, half))?;
        call!(self, "cuMemRelease" | "hipMemRelease", (u64), (memory))?;
        self.give_up(address, bytes)
    }

    fn properties(&self) -> Properties {
        let (win32, flags) = (std::ptr::null(), [0; 8]);
        let (kind, location) = (Properties::PINNED, Properties::DEVICE);
        Properties { kind, handles: 0, location, ordinal: self.ordinal, win32, flags }
    }

    /// Twice the step in which memory is mapped.
    fn reserve(&self) -> Outcome<(u64, usize)> {
        let (properties, mut step, mut address) = (self.properties(), 0, 0);
        call!(
            self,
            "cuMemGetAllocationGranularity" | "hipMemGetAllocationGranularity",
            (*mut usize, *const Properties, u32),
            (&raw mut step, &raw const properties, 0)
        )?;
        call!(
            self,
            "cuMemAddressReserve" | "hipMemAddressReserve",
            (*mut u64, usize, usize, u64, u64),
            (&raw mut address, 2 * step, 0, 0, 0)
        )?;
        Ok((address, 2 * step))
    }

    fn give_up(&self, address: u64, bytes: usize) -> Outcome {
        call!(self, "cuMemAddressFree" | "hipMemAddressFree", (u64, usize), (address, bytes))
    }
}
