//! A machine without devices.

use super::*;

#[test]
fn a_machine_without_devices() {
    if object("cuda.so").is_some() {
        in_a_child("nothing::in_a_child_without_devices", &PathBuf::new());
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
