//! The crate's kernels for a device that none of the images serves, compiled by hiprtc as they are loaded.

use std::ffi::{CString, c_char, c_int, c_void};

use super::load::ROOTS;
use super::{RocmDriver, Version, architecture};
use crate::backend::Vendor;
use crate::backends::gpu::library::{Library, Names};
use crate::backends::gpu::table::table;
use crate::backends::kernels;
use crate::error::{Error, Result};

type Program = *mut c_void;

table! {
    /// The compiler's functions.
    CompilerTable
    required {
        create = "hiprtcCreateProgram"(
            *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
        );
        compile = "hiprtcCompileProgram"(Program, c_int, *const *const c_char);
        log_size = "hiprtcGetProgramLogSize"(Program, *mut usize);
        log = "hiprtcGetProgramLog"(Program, *mut c_char);
        code_size = "hiprtcGetCodeSize"(Program, *mut usize);
        code = "hiprtcGetCode"(Program, *mut c_char);
        destroy = "hiprtcDestroyProgram"(*mut Program);
    }
    optional {}
}

/// No more of the compiler's log than this is repeated, in bytes.
const LONGEST_LOG: usize = 2000;

/// A compiler of the runtime's own kind: another version's code may be too new for it.
const fn names(version: Version) -> Names {
    let candidates: &[&str] = if cfg!(windows) {
        &["hiprtc.dll"]
    } else if version.0 < Version::new(6, 0).0 {
        &["libhiprtc.so.5", "libhiprtc.so"]
    } else if version.0 < Version::new(7, 0).0 {
        &["libhiprtc.so.6", "libhiprtc.so"]
    } else {
        &["libhiprtc.so.7", "libhiprtc.so.10", "libhiprtc.so"]
    };
    Names {
        vendor: Vendor::Rocm,
        path_variable: "DEVICE_ARENA_HIPRTC_LIBRARY",
        candidates,
        prefers_loaded: true,
        root_variables: ROOTS,
        in_roots: if cfg!(windows) { "bin/hiprtc.dll" } else { "lib/libhiprtc.so" },
    }
}

/// A program that is destroyed when this is dropped.
struct Compilation<'t> {
    table: &'t CompilerTable,
    program: Program,
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is this compilation's own.
        let _ = unsafe { (self.table.destroy.call)(&raw mut self.program) };
    }
}

impl RocmDriver {
    /// A code object for `architecture`, which is to be one that the runtime has named itself: before HIP 6, one that the
    /// compiler does not know ends the process.
    pub(super) fn compile(&self, architecture: &str) -> Result<Vec<u8>> {
        if !architecture::is_architecture(architecture) {
            let detail = format!("{} does not say what its device's architecture is", self.library.name);
            return Err(Error::Unavailable { vendor: Vendor::Rocm, detail });
        }
        let table = self.compiler(architecture)?;
        let option = format!("--offload-arch={architecture}");
        let Ok(option) = CString::new(option) else { return Err(failed("compile", architecture, 1, "")) };
        let options = [option.as_ptr(), c"-O3".as_ptr(), c"-std=c++17".as_ptr()];
        let mut program = std::ptr::null_mut();
        let (source, name) = (kernels::SOURCE.as_ptr().cast(), c"arena.cu".as_ptr());
        let (headers, names) = (std::ptr::null(), std::ptr::null());
        // SAFETY: the source and the name end with zero bytes, and there are no headers; the compiler writes one handle.
        match unsafe { (table.create.call)(&raw mut program, source, name, 0, headers, names) } {
            0 => {}
            code => return Err(failed(table.create.name, architecture, code, "")),
        }
        let compilation = Compilation { table, program };
        // SAFETY: the program is alive, the options end with zero bytes, and there are as many.
        match unsafe { (table.compile.call)(program, options.len() as c_int, options.as_ptr()) } {
            0 => {}
            code => return Err(failed(table.compile.name, architecture, code, &compilation.log())),
        }
        let mut bytes = 0;
        // SAFETY: the compiler writes one number.
        match unsafe { (table.code_size.call)(program, &raw mut bytes) } {
            0 if bytes != 0 => {}
            code => return Err(failed(table.code_size.name, architecture, code, "")),
        }
        let Some(mut code_object) = room(bytes) else {
            return Err(failed(table.code_size.name, architecture, 0, "more bytes than there is memory"));
        };
        // SAFETY: the room is as long as the compiler has said.
        match unsafe { (table.code.call)(program, code_object.as_mut_ptr().cast()) } {
            0 => Ok(code_object),
            code => Err(failed(table.code.name, architecture, code, "")),
        }
    }

    /// The compiler, looked for once.
    fn compiler(&self, architecture: &str) -> Result<&CompilerTable> {
        let found = self.compiler.get_or_init(|| self.find_compiler());
        found.as_ref().map_err(|error| {
            let detail = format!("there is no kernel image for {architecture}, and no compiler: {error}");
            Error::Unavailable { vendor: Vendor::Rocm, detail }
        })
    }

    /// A library of its own, and until HIP 7 a part of the runtime's, which before 6 is to be preferred.
    fn find_compiler(&self) -> Result<CompilerTable> {
        let in_runtime = || CompilerTable::load(&self.library).ok();
        let names = names(self.version);
        let alone = || Library::open(&names).and_then(|library| CompilerTable::load(&library));
        if self.version < Version::new(6, 0)
            && !names.is_explicit()
            && let Some(table) = in_runtime()
        {
            return Ok(table);
        }
        alone().or_else(|error| match in_runtime() {
            Some(table) if !names.is_explicit() => Ok(table),
            _ => Err(error),
        })
    }
}

impl Compilation<'_> {
    fn log(&self) -> String {
        let mut bytes = 0;
        // SAFETY: the compiler writes one number.
        let code = unsafe { (self.table.log_size.call)(self.program, &raw mut bytes) };
        if code != 0 || bytes == 0 {
            return String::new();
        }
        let Some(mut log) = room(bytes) else { return String::new() };
        // SAFETY: the room is as long as the compiler has said.
        if unsafe { (self.table.log.call)(self.program, log.as_mut_ptr().cast()) } != 0 {
            return String::new();
        }
        log.truncate(LONGEST_LOG);
        String::from_utf8_lossy(&log).trim_end_matches(['\0', '\n']).to_owned()
    }
}

/// So many zero bytes; none where there is no memory for them.
fn room(bytes: usize) -> Option<Vec<u8>> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).ok()?;
    room.resize(bytes, 0);
    Some(room)
}

/// The compiler's statuses are numbered apart from the runtime's.
fn failed(operation: &str, architecture: &str, code: u32, log: &str) -> Error {
    let separator = if log.is_empty() { "" } else { ": " };
    let detail = format!("{operation} for {architecture} answers {code}{separator}{log}");
    Error::Unavailable { vendor: Vendor::Rocm, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_beyond_memory_was_asked_for() {
        assert_eq!(room(3).as_deref(), Some(&[0u8; 3][..]));
        assert!(room(usize::MAX).is_none() && room(isize::MAX as usize).is_none());
    }
}
