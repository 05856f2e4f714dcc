//! What was found wrong with AMD's runtime beneath: each test is named after what went wrong.

use std::time::Duration;

use device_arena::backend::AnyBackend;
use device_arena::{Arena, Error, MemoryKind, TapeView};

use crate::amd::{amd, device_address, leave_an_error, take};
use crate::functions::Function;
use crate::lab::{Gate, Lab};
use crate::memory::{Registered, ask, ask_range};
use crate::process::{is_child, run_child};
use crate::simulated::simulated_or_skip;
use crate::vendor;

/// Opens a gate after a while, from another thread.
fn open_soon(gate: Gate) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        gate.open();
    })
}

/// Before 7.0 the runtime has forgotten the caller's error by then, and one of this crate's was left in its place.
#[test]
fn a_failure_was_left_where_an_error_of_the_callers_had_been() {
    let Some(amd) = amd() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    let call = lab.executor.begin(&arena).unwrap();
    let mut output = call.output::<u32>(100).unwrap();
    let place = output.device_ptr().unwrap();
    leave_an_error();
    simulated.fail(Function::LaunchKernel, 0, 1, 999);
    assert!(lab.try_fill(place, 100, 0).is_err());
    simulated.clear();
    // From 7.0 on the caller's is there until then, and a failure takes its place.
    assert_eq!(take(), if amd.is_since(7, 0) { 999 } else { 0 });
    call.finish().unwrap();
}

/// Pinned pages that the device knows by another address were read after the call had said that they are free again.
#[test]
fn pages_with_two_addresses_were_copied_after_they_were_given_back() {
    let Some(_amd) = amd() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    simulated.set("REGISTER_ALIAS", "1");
    let mut pages = vec![1u8; 1 << 16];
    let start = pages.as_mut_ptr();
    let registered = Registered::new(&lab.executor, &mut pages);
    let arena = Arena::new(&lab.executor);
    let call = lab.executor.begin(&arena).unwrap();
    let opener = open_soon(lab.gate());
    // SAFETY: the pages are live, and not written while the slice is used.
    let slice = unsafe { std::slice::from_raw_parts(start, 1 << 16) };
    let staged = call.stage(&TapeView::of(slice, &[0u64, 5000]).unwrap()).unwrap();
    assert_ne!(staged.bytes_ptr(), start.cast_const());
    // SAFETY: the slice is used no more.
    unsafe { start.write_bytes(2, 1 << 16) };
    let sums = lab.sums(&call, &staged);
    call.finish().unwrap();
    assert_eq!(sums.to_vec().unwrap(), [5000]);
    opener.join().unwrap();
    drop(registered);
    simulated.restore("REGISTER_ALIAS", "0");
}

/// The runtime names no start of pages that it knows by two addresses: any length from there was taken for theirs.
#[test]
fn pages_with_two_addresses_had_no_end() {
    let Some(_amd) = amd() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let executor = vendor::executor(0).unwrap();
    simulated.set("REGISTER_ALIAS", "1");
    let mut pages = vec![1u8; 1 << 16];
    let (start, half) = (pages.as_ptr(), 1 << 15);
    let registered = Registered::new(&executor, &mut pages[..half]);
    for offset in [0, 1, half - 1] {
        let info = ask(start.wrapping_add(offset)).unwrap();
        assert_eq!((info.kind, info.allocation), (MemoryKind::PinnedHost, Some((start.addr(), half))));
    }
    assert!(ask_range(start, half).is_ok());
    assert!(matches!(ask_range(start, half + 1), Err(Error::OutOfAllocation { .. })));
    // By the other address as well.
    let alias = executor.with_current(|| device_address(start)).unwrap();
    let info = ask(alias.wrapping_add(9)).unwrap();
    assert_eq!((info.kind, info.allocation), (MemoryKind::Device { ordinal: 0 }, Some((alias.addr(), half))));
    assert!(matches!(ask_range(alias, half + 1), Err(Error::OutOfAllocation { .. })));
    drop(registered);
    simulated.restore("REGISTER_ALIAS", "0");
}

/// Before 7.0 any call overwrites it, and the first question of a process has to look for the runtime.
#[test]
fn an_error_of_the_callers_was_lost_where_the_first_question_looked_for_the_runtime() {
    let name = "amd_found::an_error_of_the_callers_was_lost_where_the_first_question_looked_for_the_runtime";
    if !is_child(name) {
        let Some(amd) = amd() else { return };
        let AnyBackend::Rocm(rocm) = amd.turn.backend() else { panic!("another backend") };
        run_child(name, &[("DEVICE_ARENA_TEST_LIBRARY", Some(rocm.library()))]);
        return;
    }
    // SAFETY: the crate is to open it as well.
    let library = unsafe { libloading::Library::new(std::env::var_os("DEVICE_ARENA_TEST_LIBRARY").unwrap()) };
    let library = Box::leak(Box::new(library.unwrap()));
    // SAFETY: the types are those of the declarations.
    let (set_device, peek) = unsafe {
        (
            *library.get::<unsafe extern "C" fn(i32) -> u32>(b"hipSetDevice\0").unwrap(),
            *library.get::<unsafe extern "C" fn() -> u32>(b"hipPeekAtLastError\0").unwrap(),
        )
    };
    // SAFETY: any number is taken.
    let code = unsafe { set_device(99) };
    assert_ne!(code, 0);
    let local = 7u8;
    assert_eq!(ask(&raw const local).unwrap().kind, MemoryKind::Unregistered);
    // SAFETY: it takes nothing.
    assert_eq!(unsafe { peek() }, code);
}
