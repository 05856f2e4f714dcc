//! The objects as a program loads them: which symbols each has, two drivers in a process, and HIP over a CUDA driver.
//!
//! `./objects FOLDER` builds them, and DEVICE_ARENA_SIMULATED_OBJECTS=FOLDER is where they are looked for.

mod forward;
mod nothing;
mod symbols;
mod two;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;

type Handle = *mut c_void;

const FOLDER: &str = "DEVICE_ARENA_SIMULATED_OBJECTS";

/// An object by its name, or a printed skip.
fn object(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os(FOLDER) else {
        println!("skipped: {FOLDER} is no folder of objects");
        return None;
    };
    let path = PathBuf::from(folder).join(name);
    assert!(path.exists(), "{} is not there", path.display());
    Some(path)
}

struct Object(Handle);

impl Object {
    fn open(name: &str) -> Option<Object> {
        let path = CString::new(object(name)?.to_str().unwrap()).unwrap();
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{path:?}");
        Some(Object(handle))
    }

    fn find(&self, function: &str) -> Handle {
        let function = CString::new(function).unwrap();
        unsafe { libc::dlsym(self.0, function.as_ptr()) }
    }
}

/// Calls a function of an object that takes arguments of these types.
macro_rules! call {
    ($object:expr, $function:ident($($argument:expr => $type:ty),* $(,)?)) => {{
        let found = $object.find(stringify!($function));
        assert!(!found.is_null(), stringify!($function));
        let function: unsafe extern "C" fn($($type),*) -> u32 = unsafe { std::mem::transmute(found) };
        unsafe { function($($argument),*) }
    }};
}
use call;

fn null() -> Handle {
    std::ptr::null_mut()
}

const SUITE: &str = include_str!("../../../gpu/kernels.cu");

/// A function of the suite's kernels, by the compiler of another object or of the same.
fn compiled(object: &Object, compiler: &Object, name: &str) -> Handle {
    let source = CString::new(SUITE).unwrap();
    let option = CString::new("--offload-arch=gfx90a").unwrap();
    let (mut program, mut bytes) = (null(), 0_usize);
    let none: *const c_void = std::ptr::null();
    let created = call!(compiler, hiprtcCreateProgram(
        &mut program => *mut Handle, source.as_ptr() => *const c_char, std::ptr::null() => *const c_char,
        0 => c_int, none => *const c_void, none => *const c_void,
    ));
    assert_eq!(created, 0);
    let options = [option.as_ptr()];
    let built = call!(compiler, hiprtcCompileProgram(
        program => Handle, 1 => c_int, options.as_ptr() => *const *const c_char,
    ));
    assert_eq!(built, 0);
    assert_eq!(call!(compiler, hiprtcGetCodeSize(program => Handle, &mut bytes => *mut usize)), 0);
    // It has to outlive the module, which nobody unloads.
    let code = Box::leak(vec![0_u8; bytes].into_boxed_slice());
    assert_eq!(call!(compiler, hiprtcGetCode(program => Handle, code.as_mut_ptr().cast() => *mut c_char)), 0);
    assert_eq!(call!(compiler, hiprtcDestroyProgram(&mut program => *mut Handle)), 0);
    let (mut module, mut function) = (null(), null());
    let image: *const c_void = code.as_ptr().cast();
    assert_eq!(call!(object, hipModuleLoadData(&mut module => *mut Handle, image => *const c_void)), 0);
    let name = CString::new(name).unwrap();
    let found = call!(object, hipModuleGetFunction(
        &mut function => *mut Handle, module => Handle, name.as_ptr() => *const c_char,
    ));
    assert_eq!(found, 0, "{name:?}");
    function
}

fn launch(object: &Object, function: Handle, parameters: &mut [*mut c_void]) -> u32 {
    let none: *mut Handle = std::ptr::null_mut();
    call!(object, hipModuleLaunchKernel(
        function => Handle, 1 => u32, 1 => u32, 1 => u32, 32 => u32, 1 => u32, 1 => u32, 0 => u32,
        null() => Handle, parameters.as_mut_ptr() => *mut *mut c_void, none => *mut Handle,
    ))
}

/// Fills device memory by a kernel, and reads it.
fn fill(object: &Object, compiler: &Object) {
    let function = compiled(object, compiler, "suite_fill");
    let mut memory = null();
    assert_eq!(call!(object, hipMalloc(&mut memory => *mut Handle, 64 => usize)), 0);
    let (mut count, mut first, mut read) = (16_u64, 5_u32, [0_u32; 16]);
    let mut parameters = [(&raw mut memory).cast(), (&raw mut count).cast(), (&raw mut first).cast()];
    assert_eq!(launch(object, function, &mut parameters), 0);
    let copied = call!(object, hipMemcpyAsync(
        read.as_mut_ptr().cast() => Handle, memory => Handle, 64 => usize, 2 => u32, null() => Handle,
    ));
    assert_eq!(copied, 0);
    assert_eq!(read, std::array::from_fn(|index| 5 + index as u32));
    assert_eq!(call!(object, hipFree(memory => Handle)), 0);
}

/// Runs one of the tests that need a process of their own, with this folder before others to find libraries in.
fn in_a_child(test: &str, libraries: &std::path::Path) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--ignored", "--exact", test]).env("LD_LIBRARY_PATH", libraries);
    child.env("DEVICE_ARENA_SIMULATED_DEVICES", if test.starts_with("nothing") { "0" } else { "2" });
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
