//! What a machine says that has AMD's own runtime and no device for it. `ci/rocm real` makes such a machine; elsewhere the
//! skip is printed.
#![cfg(all(feature = "rocm", unix))]

use std::ffi::c_int;

use device_arena::backend::{Rocm, Vendor};
use device_arena::{Arena, Error, Executor, MemoryKind, Tape, classify};

/// What makes a skip a failure.
const REQUIRED: &str = "DEVICE_ARENA_TEST_ROCM_WITHOUT_DEVICE";

const NO_DEVICE: u32 = 100;
const INVALID_DEVICE: u32 = 101;

/// Whether there is a runtime, and it knows no device: asked without the crate.
fn is_so() -> bool {
    let reason = match count() {
        Ok((NO_DEVICE | INVALID_DEVICE, count)) | Ok((0, count @ 0)) => {
            println!("a runtime without a device: it counts {count}");
            return true;
        }
        Ok((code, count)) => format!("the runtime answers {code}, and counts {count} devices"),
        Err(error) => format!("there is no runtime: {error}"),
    };
    assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set: {reason}");
    println!("skipped: {reason}");
    false
}

/// The status and the number of `hipGetDeviceCount`.
fn count() -> Result<(u32, c_int), libloading::Error> {
    let path = std::env::var_os("DEVICE_ARENA_ROCM_LIBRARY").filter(|path| !path.is_empty());
    let names =
        ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"].map(Into::into);
    let names = path.map_or(names.to_vec(), |path| vec![path]);
    // SAFETY: it is AMD's runtime, which the crate opens as well.
    let open = |name| unsafe { libloading::Library::new(name) };
    let mut opened = open(&names[0]);
    for name in &names[1..] {
        opened = opened.or_else(|_| open(name));
    }
    // It has threads and handlers of its own: it stays.
    let library = std::mem::ManuallyDrop::new(opened?);
    // SAFETY: the type is that of the declaration.
    let function = unsafe { library.get::<unsafe extern "C" fn(*mut c_int) -> u32>(b"hipGetDeviceCount\0") }?;
    let mut count = 0;
    // SAFETY: the runtime writes one number.
    Ok((unsafe { function(&raw mut count) }, count))
}

#[test]
fn the_runtime_is_unavailable_and_says_that_it_finds_no_device() {
    if !is_so() {
        return;
    }
    assert!(Rocm::if_present().unwrap().is_none());
    for error in [Rocm::load().unwrap_err(), Executor::rocm(0).unwrap_err(), Executor::rocm(7).unwrap_err()] {
        println!("{error}");
        let Error::Unavailable { vendor: Vendor::Rocm, detail } = &error else { panic!("{error}") };
        assert!(detail.contains("no device") && detail.contains("libamdhip64"), "{detail}");
    }
}

#[test]
fn the_best_executor_is_the_host_and_works() {
    if !is_so() {
        return;
    }
    #[cfg(feature = "cuda")]
    if device_arena::backend::Cuda::if_present().unwrap().is_some() {
        println!("skipped: there is a device of another vendor");
        return;
    }
    let executor = Executor::best().unwrap();
    assert_eq!(executor.vendor(), Vendor::Host);
    assert!(Executor::for_vram(0).is_err());
    let arena = Arena::new(&executor);
    for len in [10, 100_000] {
        let call = executor.begin(&arena).unwrap();
        let mut output = call.output::<u32>(len).unwrap();
        output.fill_with(|index| index as u32).unwrap();
        let view = output.publish();
        call.finish().unwrap();
        assert!(view.read().unwrap().iter().copied().eq(0..len as u32));
    }
}

#[test]
fn memory_of_the_process_is_no_drivers() {
    if !is_so() {
        return;
    }
    let (on_stack, on_heap) = ([1u8; 64], vec![1u8; 1 << 20]);
    let pointers = [on_stack.as_ptr(), on_heap.as_ptr(), on_heap[4096..].as_ptr(), REQUIRED.as_ptr()];
    for pointer in pointers {
        // SAFETY: the memory is live.
        let info = unsafe { classify(pointer) }.unwrap();
        assert_eq!((info.kind, info.vendor), (MemoryKind::Unregistered, None));
        assert!(info.is_host_accessible());
    }
    // A tape of raw pointers is the host's, and is used where it is.
    let tape = Tape::from_items(["one", "two"]).unwrap();
    let view = tape.view();
    let arena = Arena::host();
    let call = arena.begin().unwrap();
    assert_eq!(call.stage(&view).unwrap().bytes_ptr(), view.as_ptr());
    call.finish().unwrap();
}

#[test]
fn asking_again_answers_the_same_on_every_thread() {
    if !is_so() {
        return;
    }
    let first = Rocm::load().unwrap_err().to_string();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(Rocm::load().unwrap_err().to_string(), first);
                    assert!(Rocm::if_present().unwrap().is_none());
                }
            });
        }
    });
}
