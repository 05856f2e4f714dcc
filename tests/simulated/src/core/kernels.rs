//! Kernels by name, and images that hold them.

use std::ffi::{CString, c_char, c_int, c_void};

use super::settings::Settings;
use super::status::{Result, Status};

const MAX_PARAMETERS: usize = 16;

/// A line of the table in `kernels/launch.cpp`.
#[repr(C)]
pub(crate) struct Line {
    name: *const c_char,
    parameters: u32,
    sizes: [usize; MAX_PARAMETERS],
    call: *const c_void,
    shares_memory: bool,
}

unsafe extern "C" {
    fn grid_find(name: *const c_char) -> *const Line;
    fn grid_run(
        kernel: *const Line,
        parameters: *mut *mut c_void,
        blocks: *const u32,
        threads: *const u32,
    ) -> c_int;
    fn grid_copy(to: *mut c_void, from: *const c_void, bytes: usize) -> c_int;
    fn grid_fill(to: *mut c_void, value: c_int, bytes: usize) -> c_int;
}

fn outcome(code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Status::ILLEGAL_ADDRESS) }
}

/// Copies, and says where that touched what is not open.
pub(crate) fn copy(to: usize, from: usize, bytes: usize) -> Result<()> {
    // SAFETY: a fault is caught; that the addresses are meant is the caller's promise to the driver.
    outcome(unsafe { grid_copy(to as *mut c_void, from as *const c_void, bytes) })
}

pub(crate) fn fill(to: usize, value: u8, bytes: usize) -> Result<()> {
    // SAFETY: as above.
    outcome(unsafe { grid_fill(to as *mut c_void, value.into(), bytes) })
}

/// A kernel that is there until the process ends.
#[derive(Clone, Copy)]
pub(crate) struct Kernel(&'static Line);

// SAFETY: lines are constants of the object.
unsafe impl Send for Line {}
// SAFETY: as above.
unsafe impl Sync for Line {}

/// A launch with parameters of its own.
pub(crate) struct Launch {
    kernel: Kernel,
    /// In sixteen-byte units, so that any type of parameter is aligned.
    parameters: Vec<Vec<u128>>,
    blocks: [u32; 3],
    threads: [u32; 3],
}

impl Kernel {
    pub(crate) fn find(name: &str) -> Option<Kernel> {
        let name = CString::new(name).ok()?;
        // SAFETY: a C string, and a line that is never freed.
        unsafe { grid_find(name.as_ptr()).as_ref() }.map(Kernel)
    }

    /// # Safety
    ///
    /// `parameters` has a pointer to a value for each of the kernel's.
    pub(crate) unsafe fn bind(
        self,
        parameters: *const *const c_void,
        blocks: [u32; 3],
        threads: [u32; 3],
    ) -> Result<Launch> {
        let count = self.0.parameters as usize;
        if count > 0 && parameters.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let copied = self.0.sizes[..count].iter().enumerate().map(|(index, &bytes)| {
            let mut value = vec![0_u128; bytes.div_ceil(16)];
            // SAFETY: by the caller's promise, and the copy has room for it.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    (*parameters.add(index)).cast(),
                    value.as_mut_ptr().cast::<u8>(),
                    bytes,
                )
            };
            value
        });
        Ok(Launch { kernel: self, parameters: copied.collect(), blocks, threads })
    }
}

impl Launch {
    pub(crate) fn run(&self) -> Result<()> {
        // A kernel may change its parameters, and a graph runs more than once.
        let mut values = self.parameters.clone();
        let mut pointers: Vec<*mut c_void> =
            values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
        // SAFETY: as many values as the kernel has parameters, of their sizes.
        outcome(unsafe {
            grid_run(self.kernel.0, pointers.as_mut_ptr(), self.blocks.as_ptr(), self.threads.as_ptr())
        })
    }
}

/// Two numbers around a point.
fn numbers(text: &str, between: char) -> Option<(i32, i32)> {
    let (first, second) = text.trim().split_once(between)?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

/// What was loaded.
pub(crate) struct Module {
    pub context: u64,
    /// The text, where it is one: it says which kernels there are.
    text: Option<String>,
}

impl Module {
    /// Reads an image.
    ///
    /// # Safety
    ///
    /// It is text that ends with a zero byte, or a whole ELF file.
    pub(crate) unsafe fn load(image: *const u8, context: u64, settings: &Settings) -> Result<Module> {
        if image.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: by the caller's promise; the comparison ends at the first byte that differs.
        let is_elf = b"\x7fELF".iter().enumerate().all(|(index, &byte)| unsafe { *image.add(index) } == byte);
        if is_elf {
            // SAFETY: an ELF file has a header of 64 bytes.
            let header = unsafe { std::slice::from_raw_parts(image, 64) };
            const EM_CUDA: u16 = 190;
            if header[4] != 2 || u16::from_le_bytes([header[18], header[19]]) != EM_CUDA {
                return Err(Status::INVALID_IMAGE);
            }
            let flags = u32::from_le_bytes([header[48], header[49], header[50], header[51]]);
            // Newer files have the architecture in the second byte, and say so by their ABI's version.
            let architecture = if header[8] >= 8 { flags >> 8 & 0xff } else { flags & 0xff };
            let (major, minor) = (architecture as i32 / 10, architecture as i32 % 10);
            if !settings.machine_code || major != settings.capability.0 || minor > settings.capability.1 {
                return Err(Status::NO_BINARY_FOR_GPU);
            }
            return Ok(Module { context, text: None });
        }
        // SAFETY: by the caller's promise.
        let text = unsafe { std::ffi::CStr::from_ptr(image.cast()) };
        let text = text.to_str().map_err(|_| Status::INVALID_IMAGE)?;
        let mut lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
        let version =
            lines.next().and_then(|line| line.strip_prefix(".version")).ok_or(Status::INVALID_IMAGE)?;
        // CUDA 12.0 came with PTX 8.0, and 13.0 with 9.0.
        let known = (settings.version / 1000 - 4, settings.version % 1000 / 10);
        let version = numbers(version, '.').ok_or(Status::INVALID_PTX)?;
        if version > known {
            return Err(Status::UNSUPPORTED_PTX_VERSION);
        }
        let target = lines.next().and_then(|line| line.strip_prefix(".target")).ok_or(Status::INVALID_PTX)?;
        let architecture = target.trim().strip_prefix("sm_").unwrap_or_default();
        let digits = architecture.trim_end_matches(|end: char| !end.is_ascii_digit());
        let (major, minor) = settings.capability;
        if digits.parse::<i32>().map_or(true, |architecture| architecture > major * 10 + minor) {
            return Err(Status::INVALID_PTX);
        }
        Ok(Module { context, text: Some(text.to_owned()) })
    }

    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel> {
        let listed = self.text.as_ref().is_none_or(|text| {
            text.match_indices(".entry").any(|(at, word)| {
                let rest = text[at + word.len()..].trim_start();
                rest.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(|next: char| next == '(' || next.is_whitespace()))
            })
        });
        Kernel::find(name).filter(|_| listed).ok_or(Status::NOT_FOUND)
    }
}
