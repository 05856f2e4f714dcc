//! HIP over a CUDA driver.

use super::*;

#[test]
fn forwarding_needs_a_driver_and_no_more() {
    let Some(cuda) = object("cuda.so") else { return };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (with, without) = (folder.join("with"), folder.join("without"));
    for folder in [&with, &without] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::copy(cuda, with.join("libcuda.so.1")).unwrap();
    in_a_child("forward::in_a_child_with_a_driver", &with);
    if unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) }.is_null() {
        in_a_child("forward::in_a_child_without_a_driver", &without);
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
