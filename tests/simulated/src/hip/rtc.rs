//! The compiler of kernels at run time. It finds the kernels of a source, and makes a code object that names them.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::settings::version;
use super::targets::Target;
use super::{Handle, attempt, code_object, write};
use crate::core::status::{Result, Status};

const INVALID_INPUT: Status = Status(3);
const INVALID_PROGRAM: Status = Status(4);
const COMPILATION: Status = Status(6);

const ERRORS: &[&CStr] = &[
    c"HIPRTC_SUCCESS",
    c"HIPRTC_ERROR_OUT_OF_MEMORY",
    c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
    c"HIPRTC_ERROR_INVALID_INPUT",
    c"HIPRTC_ERROR_INVALID_PROGRAM",
    c"HIPRTC_ERROR_INVALID_OPTION",
    c"HIPRTC_ERROR_COMPILATION",
    c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
    c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
    c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
    c"HIPRTC_ERROR_INTERNAL_ERROR",
];

#[derive(Default)]
struct Program {
    source: String,
    log: String,
    /// None before it was compiled.
    code: Vec<u8>,
}

#[derive(Default)]
struct Programs {
    programs: HashMap<usize, Program>,
    made: usize,
}

static PROGRAMS: LazyLock<Mutex<Programs>> = LazyLock::new(Mutex::default);

fn programs() -> MutexGuard<'static, Programs> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<T>(program: Handle, body: impl FnOnce(&mut Program) -> Result<T>) -> Result<T> {
    body(programs().programs.get_mut(&program.addr()).ok_or(INVALID_PROGRAM)?)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> u32 {
    attempt("hiprtcVersion", || {
        if major.is_null() || minor.is_null() {
            return Err(INVALID_INPUT);
        }
        // It is a constant, and not the runtime's version.
        unsafe {
            write(major, if version().is_at_least(5, 3) { 9 } else { 0 })?;
            write(minor, 0)
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetErrorString(error: u32) -> *const c_char {
    attempt("hiprtcGetErrorString", || Ok(()));
    ERRORS.get(error as usize).unwrap_or(&c"HIPRTC_ERROR_UNKNOWN").as_ptr()
}

/// Headers are taken and have no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcCreateProgram(
    program: *mut Handle,
    source: *const c_char,
    _name: *const c_char,
    headers: c_int,
    _texts: *const *const c_char,
    _names: *const *const c_char,
) -> u32 {
    attempt("hiprtcCreateProgram", || {
        if program.is_null() || source.is_null() || headers < 0 {
            return Err(INVALID_INPUT);
        }
        // SAFETY: the caller's C string.
        let source = unsafe { CStr::from_ptr(source) }.to_string_lossy().into_owned();
        let mut programs = programs();
        programs.made += 1;
        let handle = 0x6_0000_0000 + programs.made * 16;
        programs.programs.insert(handle, Program { source, ..Program::default() });
        unsafe { write(program, std::ptr::without_provenance_mut(handle)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcDestroyProgram(program: *mut Handle) -> u32 {
    attempt("hiprtcDestroyProgram", || {
        // SAFETY: null or the caller's.
        let place = unsafe { program.as_mut() }.ok_or(INVALID_INPUT)?;
        programs().programs.remove(&place.addr()).ok_or(INVALID_PROGRAM)?;
        *place = std::ptr::null_mut();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcCompileProgram(
    program: Handle,
    count: c_int,
    options: *const *const c_char,
) -> u32 {
    attempt("hiprtcCompileProgram", || {
        let mut architecture = None;
        for index in 0..usize::try_from(count).map_err(|_| INVALID_INPUT)? {
            // SAFETY: so many C strings of the caller's.
            let option = unsafe { CStr::from_ptr(*options.add(index)) }.to_string_lossy().into_owned();
            for name in ["--offload-arch=", "--gpu-architecture="] {
                if let Some(value) = option.strip_prefix(name) {
                    architecture = Some(value.to_owned());
                }
            }
        }
        with(program, |program| program.compile(architecture.as_deref()))
    })
}

impl Program {
    fn compile(&mut self, architecture: Option<&str>) -> Result<()> {
        self.code.clear();
        let Some(architecture) = architecture else {
            self.log = "error: please provide an architecture\n".to_owned();
            return Err(COMPILATION);
        };
        let version = version();
        let known = Target::parse(architecture)
            .filter(|(target, _)| version.is_at_least(target.known_from.0, target.known_from.1));
        let Some((target, modes)) = known else {
            // The compiler of these versions corrupts its heap over a name that it does not know.
            if version.major() < 6 {
                let _ = std::io::stderr().write_all(b"munmap_chunk(): invalid pointer\n");
                std::process::abort();
            }
            self.log = format!("error: invalid target ID '{architecture}'\n");
            return Err(COMPILATION);
        };
        let source = without_comments(&self.source);
        let missing = if version.is_at_least(7, 0) { undefined_type(&source) } else { None };
        if let Some(error) = error_in(&source).or(missing) {
            self.log = format!("error: {error}\n");
            return Err(COMPILATION);
        }
        self.log.clear();
        self.code = code_object::write(target, modes, &kernels(&source));
        Ok(())
    }
}

fn without_comments(source: &str) -> String {
    let mut kept = String::new();
    let mut rest = source;
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        kept.push_str(&rest[..at]);
        let (end, skipped) = if rest[at..].starts_with("//") { ("\n", 0) } else { ("*/", 2) };
        let after = rest[at..].find(end).map_or(rest.len(), |found| at + found + skipped);
        kept.push(' ');
        rest = &rest[after..];
    }
    kept.push_str(rest);
    kept
}

/// What an `#error` says that no condition is around.
fn error_in(source: &str) -> Option<String> {
    let mut depth = 0;
    source.lines().map(str::trim_start).find_map(|line| {
        depth += i32::from(line.starts_with("#if")) - i32::from(line.starts_with("#endif"));
        line.strip_prefix("#error").filter(|_| depth == 0).map(|text| text.trim().to_owned())
    })
}

/// An integer of a fixed width that the source uses and does not define. The compiler has none from 7.0 on.
fn undefined_type(source: &str) -> Option<String> {
    let is_word = |next: char| next.is_alphanumeric() || next == '_';
    let words: Vec<&str> = source.split(|next| !is_word(next)).filter(|word| !word.is_empty()).collect();
    let bits = [8, 16, 32, 64].into_iter();
    let types = bits.flat_map(|bits| [format!("int{bits}_t"), format!("uint{bits}_t")]);
    types.into_iter().find_map(|name| {
        let is_used = words.contains(&name.as_str());
        let is_defined = source.contains(&format!(" {name};")) || source.contains(&format!("using {name} "));
        (is_used && !is_defined).then(|| format!("unknown type name '{name}'"))
    })
}

/// The names of what is `extern "C" __global__`.
fn kernels(source: &str) -> Vec<String> {
    const WORD: &str = "__global__";
    let mut found = Vec::new();
    for (at, _) in source.match_indices(WORD) {
        let line = source[..at].rfind('\n').map_or(0, |line| line + 1);
        let before = &source[..at];
        let declaration = before.rfind([';', '}', '{']).map_or(before, |end| &before[end..]);
        if source[line..at].trim_start().starts_with('#') || !declaration.contains("extern \"C\"") {
            continue;
        }
        found.extend(name_after(&source[at + WORD.len()..]));
    }
    found
}

/// The name of the function whose declaration goes on like this.
fn name_after(mut rest: &str) -> Option<String> {
    loop {
        rest = rest.trim_start();
        let end = rest.find(|next: char| !next.is_alphanumeric() && next != '_')?;
        let (word, after) = rest.split_at(end);
        let after = after.trim_start();
        if word.is_empty() {
            return None;
        }
        if !after.starts_with('(') {
            rest = after.trim_start_matches('*');
            continue;
        }
        if !word.starts_with("__") {
            return Some(word.to_owned());
        }
        // An attribute, with its arguments in brackets.
        let mut depth = 0;
        let close = after.find(|next| {
            depth += i32::from(next == '(') - i32::from(next == ')');
            depth == 0
        })?;
        rest = &after[close + 1..];
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetCodeSize(program: Handle, bytes: *mut usize) -> u32 {
    attempt("hiprtcGetCodeSize", || {
        with(program, |program| unsafe { write(bytes, program.code.len()) }.map_err(|_| INVALID_INPUT))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetCode(program: Handle, place: *mut c_char) -> u32 {
    attempt("hiprtcGetCode", || with(program, |program| unsafe { copy(&program.code, place) }))
}

/// Copies where the caller has room, as they say by having asked for the size.
unsafe fn copy(bytes: &[u8], place: *mut c_char) -> Result<()> {
    if place.is_null() {
        return Err(INVALID_INPUT);
    }
    // SAFETY: by the caller's promise.
    unsafe { place.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(())
}

/// A log does not end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetProgramLogSize(program: Handle, bytes: *mut usize) -> u32 {
    attempt("hiprtcGetProgramLogSize", || {
        with(program, |program| unsafe { write(bytes, program.log.len()) }.map_err(|_| INVALID_INPUT))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetProgramLog(program: Handle, place: *mut c_char) -> u32 {
    attempt("hiprtcGetProgramLog", || with(program, |program| unsafe { copy(program.log.as_bytes(), place) }))
}
