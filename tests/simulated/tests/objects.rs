//! The objects as a program loads them: which symbols each has, two drivers in a process, and HIP over a CUDA driver.
//!
//! `./objects FOLDER` builds them, and DEVICE_ARENA_SIMULATED_OBJECTS=FOLDER is where they are looked for.

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

fn null() -> Handle {
    std::ptr::null_mut()
}

// ------------------------------------------------------------------------------------------------------------ symbols

/// What an object defines for others, and what it is linked with.
fn names(file: &str) -> Option<(Vec<String>, Vec<String>)> {
    let file = std::fs::read(object(file)?).unwrap();
    let number = |at: usize, bytes: usize| {
        file[at..at + bytes].iter().rev().fold(0_usize, |all, &byte| all << 8 | usize::from(byte))
    };
    let section = |index: usize| {
        let at = number(40, 8) + index * 64;
        (number(at + 4, 4), number(at + 24, 8), number(at + 32, 8), number(at + 40, 4))
    };
    let text = |section_of_texts: usize, at: usize| {
        let start = section(section_of_texts).1 + at;
        let end = start + file[start..].iter().position(|&byte| byte == 0).unwrap();
        String::from_utf8(file[start..end].to_vec()).unwrap()
    };
    let (mut defined, mut needed) = (Vec::new(), Vec::new());
    for index in 0..number(60, 2) {
        let (kind, start, bytes, texts) = section(index);
        match kind {
            11 => {
                let symbols = (start..start + bytes).step_by(24).filter(|&at| number(at + 6, 2) != 0);
                defined.extend(symbols.map(|at| text(texts, number(at, 4))));
            }
            6 => {
                let entries = (start..start + bytes).step_by(16).filter(|&at| number(at, 8) == 1);
                needed.extend(entries.map(|at| text(texts, number(at + 8, 8))));
            }
            _ => {}
        }
    }
    Some((defined, needed))
}

#[test]
fn each_object_has_the_symbols_of_its_driver() {
    let hips = ["hip-5-2", "hip-5-7", "hip-6-4", "hip-7-2"];
    let has = |file: &str, function: &str| {
        names(&format!("{file}.so")).map(|(defined, _)| defined.iter().any(|name| name == function))
    };
    if has("cuda", "cuInit").is_none() {
        return;
    }
    for (file, starts) in [
        ("cuda", &["cu", "device_arena_simulated_"][..]),
        ("hip-5-2", &["hip", "device_arena_simulated_"]),
        ("hip-5-7", &["hip", "device_arena_simulated_"]),
        ("hip-6-4", &["hip", "device_arena_simulated_"]),
        ("hip-7-2", &["hip", "device_arena_simulated_"]),
        ("hiprtc", &["hiprtc", "device_arena_simulated_"]),
        ("forward", &["hip"]),
    ] {
        let (defined, needed) = names(&format!("{file}.so")).unwrap();
        assert!(defined.len() > 5);
        for name in defined {
            assert!(starts.iter().any(|start| name.starts_with(start)), "{file} has {name}");
        }
        assert!(
            !needed.iter().any(|name| name.contains("libcuda") || name.contains("hip")),
            "{file}: {needed:?}"
        );
    }
    for (function, found) in [
        ("hipMalloc", [true; 4]),
        ("hipPointerGetAttributes", [true; 4]),
        ("hipGetDeviceProperties", [true; 4]),
        ("hipGetDevicePropertiesR0600", [false, false, true, true]),
        ("hipExtGetLastError", [false, false, true, true]),
        ("hipLaunchHostFunc", [false, true, true, true]),
        ("hipStreamGetDevice", [false, true, true, true]),
        ("hipDrvGetErrorName", [false, true, true, true]),
        ("hiprtcCompileProgram", [true, true, true, false]),
    ] {
        assert_eq!(hips.map(|file| has(file, function).unwrap()), found, "{function}");
    }
    assert_eq!(has("hiprtc", "hiprtcCompileProgram"), Some(true));
    for function in [
        "hipThreadExchangeStreamCaptureMode",
        "hipStreamIsCapturing",
        "hipStreamGetDevice",
        "hipPointerGetAttribute",
    ] {
        assert_eq!(
            [has("hip-missing-symbols", function), has("hip-6-4", function)],
            [Some(false), Some(true)]
        );
    }
    assert_eq!(has("hip-missing-required", "hipPointerGetAttributes"), Some(false));
    assert_eq!(has("hip-missing-required", "hipStreamIsCapturing"), Some(true));
}

#[test]
fn versions_are_those_of_the_symbols() {
    for (file, version) in [
        ("hip-5-2.so", 50_221_153),
        ("hip-5-7.so", 50_731_921),
        ("hip-6-4.so", 60_443_484),
        ("hip-7-2.so", 70_226_015),
    ] {
        let Some(object) = Object::open(file) else { return };
        let mut found: c_int = 0;
        assert_eq!(call!(object, hipRuntimeGetVersion(&mut found => *mut c_int)), 0);
        assert_eq!(found, version);
    }
}

const WITHOUT_DEVICES: &str = "in_a_child_without_devices";

#[test]
fn a_machine_without_devices() {
    if object("cuda.so").is_some() {
        in_a_child(WITHOUT_DEVICES, &PathBuf::new());
    }
}

/// What calls return where there is no device, and the names of errors, which need none.
fn without_devices(hip: &Object) -> (Vec<u32>, Vec<String>) {
    let (mut number, mut place): (c_int, Handle) = (7, null());
    let address: Handle = (&raw mut number).cast();
    let mut room = [0_u8; 4096];
    let room: Handle = room.as_mut_ptr().cast();
    let statuses = vec![
        call!(hip, hipRuntimeGetVersion(&mut number => *mut c_int)),
        call!(hip, hipDriverGetVersion(&mut number => *mut c_int)),
        call!(hip, hipGetDeviceCount(&mut number => *mut c_int)),
        number as u32,
        call!(hip, hipPeekAtLastError()),
        call!(hip, hipGetLastError()),
        call!(hip, hipInit(0 => u32)),
        call!(hip, hipSetDevice(0 => c_int)),
        call!(hip, hipGetDevice(&mut number => *mut c_int)),
        call!(hip, hipDeviceGetAttribute(&mut number => *mut c_int, 87 => u32, 0 => c_int)),
        call!(hip, hipGetDeviceProperties(room => Handle, 0 => c_int)),
        call!(hip, hipPointerGetAttributes(room => Handle, address => Handle)),
        call!(hip, hipMalloc(&mut place => *mut Handle, 64 => usize)),
        call!(hip, hipFree(null() => Handle)),
        call!(hip, hipEventCreateWithFlags(&mut place => *mut Handle, 2 => u32)),
        call!(hip, hipModuleLoadData(&mut place => *mut Handle, room => Handle)),
    ];
    let text = |function: &str, error: u32| {
        let found = hip.find(function);
        let function: unsafe extern "C" fn(u32) -> *const c_char = unsafe { std::mem::transmute(found) };
        unsafe { CStr::from_ptr(function(error)) }.to_str().unwrap().to_owned()
    };
    let names =
        (0..1100).flat_map(|error| [text("hipGetErrorName", error), text("hipGetErrorString", error)]);
    (statuses, names.collect())
}

#[test]
#[ignore = "in a process of its own"]
fn in_a_child_without_devices() {
    let simulated = without_devices(&Object::open("hip-5-2.so").unwrap());
    assert_eq!(simulated.0, [0, 0, 100, 0, 101, 101, 101, 101, 101, 101, 101, 101, 101, 101, 101, 101]);
    let real = Object(unsafe { libc::dlopen(c"libamdhip64.so.5".as_ptr(), libc::RTLD_NOW) });
    if real.0.is_null() {
        println!("skipped: comparing with the real one, which is not there");
        return;
    }
    let mut version: c_int = 0;
    call!(real, hipRuntimeGetVersion(&mut version => *mut c_int));
    let real = without_devices(&real);
    if version / 100_000 == 502 && real.0[2] == 100 {
        assert_eq!(simulated, real);
    } else {
        println!("skipped: comparing with the real one, which is {version} or has a device");
    }
}

// -------------------------------------------------------------------------------------------------- kernels by name

const SUITE: &str = include_str!("../../cuda/kernels.cu");

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

#[test]
fn the_compiler_is_a_library_of_its_own_from_7() {
    let (Some(runtime), Some(compiler)) = (Object::open("hip-7-2.so"), Object::open("hiprtc.so")) else {
        return;
    };
    fill(&runtime, &compiler);
    let name = c"hiprtcCompileProgram".as_ptr();
    assert!(call!(compiler, device_arena_simulated_calls(name => *const c_char)) >= 1);
}

// --------------------------------------------------------------------------------------------- two drivers at once

/// A kernel that writes where nobody may: an illegal address, which is this driver's alone.
fn poke_hip(hip: &Object, function: Handle) {
    let mut nowhere: Handle = std::ptr::without_provenance_mut(16);
    assert_eq!(launch(hip, function, &mut [(&raw mut nowhere).cast()]), 0);
    assert_eq!(call!(hip, hipDeviceSynchronize()), 700);
    call!(hip, device_arena_simulated_clear());
    assert_eq!(call!(hip, hipDeviceSynchronize()), 0);
}

fn poke_cuda(cuda: &Object, function: Handle) {
    let mut nowhere: Handle = std::ptr::without_provenance_mut(16);
    let mut parameters: [*mut c_void; 1] = [(&raw mut nowhere).cast()];
    let none: *mut Handle = std::ptr::null_mut();
    let launched = call!(cuda, cuLaunchKernel(
        function => Handle, 1 => u32, 1 => u32, 1 => u32, 32 => u32, 1 => u32, 1 => u32, 0 => u32,
        null() => Handle, parameters.as_mut_ptr() => *mut *mut c_void, none => *mut Handle,
    ));
    assert_eq!(launched, 0);
    assert_eq!(call!(cuda, cuCtxSynchronize()), 700);
    call!(cuda, device_arena_simulated_clear());
    assert_eq!(call!(cuda, cuCtxSynchronize()), 0);
}

#[test]
fn two_drivers_keep_to_themselves() {
    let (Some(cuda), Some(hip)) = (Object::open("cuda.so"), Object::open("hip-6-4.so")) else { return };
    let (mut context, mut module, mut function) = (null(), null(), null());
    let text = CString::new(include_str!("../../cuda/kernels.ptx")).unwrap();
    assert_eq!(call!(cuda, cuInit(0 => u32)), 0);
    assert_eq!(call!(cuda, cuDevicePrimaryCtxRetain(&mut context => *mut Handle, 0 => c_int)), 0);
    assert_eq!(call!(cuda, cuCtxPushCurrent_v2(context => Handle)), 0);
    let image: *const c_void = text.as_ptr().cast();
    assert_eq!(call!(cuda, cuModuleLoadData(&mut module => *mut Handle, image => *const c_void)), 0);
    let name = c"suite_poke".as_ptr();
    let found = call!(cuda, cuModuleGetFunction(&mut function => *mut Handle, module => Handle, name => *const c_char));
    assert_eq!(found, 0);
    let poke = compiled(&hip, &hip, "suite_poke");

    // Neither knows the other's memory.
    let (mut of_cuda, mut of_hip) = (0_u64, null());
    assert_eq!(call!(cuda, cuMemAlloc_v2(&mut of_cuda => *mut u64, 64 => usize)), 0);
    assert_eq!(call!(hip, hipMalloc(&mut of_hip => *mut Handle, 64 => usize)), 0);
    let (mut kind, mut attributes) = (9_u32, [9_u32; 8]);
    let asked = call!(cuda, cuPointerGetAttribute(
        (&raw mut kind).cast() => Handle, 2 => u32, of_hip.addr() as u64 => u64,
    ));
    assert_eq!(asked, 1);
    let elsewhere: Handle = std::ptr::without_provenance_mut(of_cuda as usize);
    let place: Handle = attributes.as_mut_ptr().cast();
    assert_eq!(call!(hip, hipPointerGetAttributes(place => Handle, elsewhere => Handle)), 0);
    assert_eq!(attributes[0], 0);

    // Whichever handler of faults came last, each driver finds its own.
    for _ in 0..3 {
        poke_cuda(&cuda, function);
        poke_hip(&hip, poke);
        poke_hip(&hip, poke);
        fill(&hip, &hip);
    }
    assert_eq!(call!(cuda, cuMemFree_v2(of_cuda => u64)), 0);
    assert_eq!(call!(hip, hipFree(of_hip => Handle)), 0);
}

// ----------------------------------------------------------------------------------------- HIP over a CUDA driver

/// Runs one of the tests that need a process of their own, with this folder before others to find libraries in.
fn in_a_child(test: &str, libraries: &std::path::Path) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--ignored", "--exact", test]).env("LD_LIBRARY_PATH", libraries);
    child.env("DEVICE_ARENA_SIMULATED_DEVICES", if test == WITHOUT_DEVICES { "0" } else { "2" });
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn forwarding_needs_a_driver_and_no_more() {
    let Some(cuda) = object("cuda.so") else { return };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (with, without) = (folder.join("with"), folder.join("without"));
    for folder in [&with, &without] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::copy(cuda, with.join("libcuda.so.1")).unwrap();
    in_a_child("in_a_child_with_a_driver", &with);
    if unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) }.is_null() {
        in_a_child("in_a_child_without_a_driver", &without);
    } else {
        println!("skipped: what there is without a driver, since this machine has one");
    }
}

#[test]
#[ignore = "in a process of its own"]
fn in_a_child_without_a_driver() {
    let hip = Object::open("forward.so").unwrap();
    let mut count: c_int = 7;
    assert_eq!(call!(hip, hipGetDeviceCount(&mut count => *mut c_int)), 100);
    assert_eq!((count, call!(hip, hipInit(0 => u32))), (0, 101));
}

#[test]
#[ignore = "in a process of its own"]
fn in_a_child_with_a_driver() {
    let hip = Object::open("forward.so").unwrap();
    let mut count: c_int = 7;
    assert_eq!(call!(hip, hipRuntimeGetVersion(&mut count => *mut c_int)), 0);
    assert_eq!(count, 60_443_484);
    assert_eq!(call!(hip, hipGetDeviceCount(&mut count => *mut c_int)), 0);
    let last = count - 1;
    assert!(hip.find("cuInit").is_null());
    fill(&hip, &hip);
    for kernel in ["suite_sums", "suite_add", "suite_take", "suite_poke"] {
        compiled(&hip, &hip, kernel);
    }

    // Pointers, with HIP's numbers and rules.
    let ask = |address: Handle| {
        let mut answer = [9_u32; 8];
        let place: Handle = answer.as_mut_ptr().cast();
        assert_eq!(call!(hip, hipPointerGetAttributes(place => Handle, address => Handle)), 0);
        (answer[0], answer[1] as i32)
    };
    let (mut memory, mut pinned, mut managed, mut pool) = (null(), null(), null(), null());
    assert_eq!(call!(hip, hipSetDevice(last => c_int)), 0);
    assert_eq!(call!(hip, hipMalloc(&mut memory => *mut Handle, 5000 => usize)), 0);
    assert_eq!(call!(hip, hipHostMalloc(&mut pinned => *mut Handle, 64 => usize, 0x4000_0000 => u32)), 0);
    assert_eq!(call!(hip, hipSetDevice(0 => c_int)), 0);
    assert_eq!(call!(hip, hipMallocManaged(&mut managed => *mut Handle, 64 => usize, 1 => u32)), 0);
    assert_eq!(call!(hip, hipMallocAsync(&mut pool => *mut Handle, 64 => usize, null() => Handle)), 0);
    let local: Handle = (&raw mut count).cast();
    let answers = [ask(memory), ask(pinned), ask(managed), ask(pool), ask(local)];
    assert_eq!(answers, [(2, last), (1, last), (3, 0), (2, 0), (0, -2)]);
    let (mut base, mut bytes) = (null(), 0_usize);
    let inside = memory.wrapping_byte_add(4999);
    let asked = call!(hip, hipMemGetAddressRange(
        &mut base => *mut Handle, &mut bytes => *mut usize, inside => Handle,
    ));
    // A driver may round up.
    assert!(asked == 0 && base == memory && (5000..=8192).contains(&bytes), "{base:?} {bytes}");
    assert_eq!(call!(hip, hipFreeAsync(pool => Handle, null() => Handle)), 0);
    assert_eq!(call!(hip, hipStreamSynchronize(null() => Handle)), 0);
    assert_eq!(ask(pool), (2, 0));

    // A stream, and its device; a capture, and what spoils it.
    let (mut stream, mut event, mut graph, mut ordinal) = (null(), null(), null(), 9);
    assert_eq!(call!(hip, hipSetDevice(last => c_int)), 0);
    assert_eq!(call!(hip, hipStreamCreateWithFlags(&mut stream => *mut Handle, 1 => u32)), 0);
    assert_eq!(call!(hip, hipEventCreateWithFlags(&mut event => *mut Handle, 2 => u32)), 0);
    assert_eq!(call!(hip, hipSetDevice(0 => c_int)), 0);
    assert_eq!(call!(hip, hipStreamGetDevice(stream => Handle, &mut ordinal => *mut c_int)), 0);
    assert_eq!(ordinal, last);
    assert_eq!(call!(hip, hipEventRecord(event => Handle, stream => Handle)), 0);
    assert_eq!(call!(hip, hipEventSynchronize(event => Handle)), 0);
    assert_eq!(call!(hip, hipStreamBeginCapture(stream => Handle, 0 => u32)), 0);
    assert_eq!(call!(hip, hipMemsetD8Async(memory => Handle, 1 => u8, 64 => usize, stream => Handle)), 0);
    assert_eq!(call!(hip, hipMalloc(&mut base => *mut Handle, 64 => usize)), 900);
    assert_eq!(call!(hip, hipGetLastError()), 900);
    assert_eq!(call!(hip, hipStreamEndCapture(stream => Handle, &mut graph => *mut Handle)), 901);
    assert_eq!(call!(hip, hipEventDestroy(event => Handle)), 0);
    assert_eq!(call!(hip, hipStreamDestroy(stream => Handle)), 0);
    for memory in [memory, managed] {
        assert_eq!(call!(hip, hipFree(memory => Handle)), 0);
    }
    assert_eq!(call!(hip, hipHostFree(pinned => Handle)), 0);
}
