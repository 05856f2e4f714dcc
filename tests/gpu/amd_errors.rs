//! The error that AMD's runtime keeps for each thread: this crate leaves none there, and takes none away by asking.

use device_arena::{Arena, MemoryKind};

use crate::amd::{amd, leave_an_error, peek, take};
use crate::functions::Function;
use crate::lab::Lab;
use crate::memory::{Memory, ask};
use crate::simulated::simulated_or_skip;
use crate::vendor;

#[test]
fn a_query_leaves_no_error() {
    let Some(_amd) = amd() else { return };
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    take();
    let local = 7u8;
    for pointer in [&raw const local, std::ptr::null(), memory.pointer(), std::ptr::without_provenance(0x10)]
    {
        ask(pointer).unwrap();
        assert_eq!(peek(), 0, "{pointer:?}");
    }
}

#[test]
fn a_query_that_fails_leaves_no_error() {
    let Some(_amd) = amd() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    take();
    for function in [Function::PointerGetAttributes, Function::MemGetAddressRange] {
        simulated.fail(function, 0, 1, 719);
        assert!(ask(memory.pointer()).is_err());
        simulated.clear();
        assert_eq!(peek(), 0);
    }
}

/// Up to 6 any call overwrites it, with success too; from 7 on a failure does.
#[test]
fn an_error_of_the_callers_survives_a_query() {
    let Some(_amd) = amd() else { return };
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    let local = 7u8;
    let code = leave_an_error();
    assert_eq!(ask(&raw const local).unwrap().kind, MemoryKind::Unregistered);
    assert_eq!(ask(memory.pointer()).unwrap().kind, MemoryKind::Device { ordinal: 0 });
    assert_eq!(ask(std::ptr::null()).unwrap().kind, MemoryKind::Unregistered);
    assert_eq!((peek(), take(), peek()), (code, code, 0));
}

#[test]
fn an_error_of_the_callers_survives_a_query_that_fails() {
    let Some(_amd) = amd() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let memory = Memory::device(&vendor::executor(0).unwrap(), 4096);
    let code = leave_an_error();
    simulated.fail(Function::PointerGetAttributes, 0, 1, 719);
    assert!(ask(memory.pointer()).is_err());
    simulated.clear();
    assert_eq!(take(), code);
}

/// "Not ready" is an error to versions before 7.
#[test]
fn a_question_for_work_that_runs_leaves_no_error() {
    let Some(_amd) = amd() else { return };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    let gate = lab.gate();
    let soon = lab.executor.defer(&arena, |call| Ok(call.output::<u8>(9)?.publish())).unwrap();
    take();
    assert!(!soon.is_done().unwrap());
    assert_eq!(peek(), 0);
    gate.open();
    assert_eq!(soon.wait().unwrap().len(), 9);
    assert_eq!(peek(), 0);
}

/// Loading, allocating, launching, waiting, freeing: with calls among them that fail.
#[test]
fn a_call_and_its_failures_leave_no_error() {
    let Some(_amd) = amd() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    take();
    let lab = Lab::new(0);
    assert_eq!(peek(), 0);
    let arena = Arena::new(&lab.executor);
    drop(lab.filled(&arena, 1000, 1));
    assert_eq!(peek(), 0);
    for function in [Function::MemAlloc, Function::LaunchKernel, Function::EventCreate, Function::MemcpyAsync]
    {
        simulated.fail(function, 0, 1, 999);
        let fresh = Arena::new(&lab.executor);
        let call = lab.executor.begin(&fresh).unwrap();
        if let Ok(mut output) = call.output::<u32>(100) {
            let _ = lab.try_fill(output.device_ptr().unwrap(), 100, 0);
            let _ = output.copy_from_slice(&[0; 100]);
        }
        let _ = call.finish();
        let _ = lab.executor.synchronize();
        simulated.clear();
        assert_eq!(peek(), 0, "{}", function.name());
    }
}

/// What other code leaves within `with_current` is its own.
#[test]
fn an_error_that_the_callers_work_leaves_stays_from_7_on() {
    let Some(amd) = amd() else { return };
    let executor = vendor::executor(0).unwrap();
    take();
    let code = executor.with_current(leave_an_error).unwrap();
    // Before 7, making another device current again overwrites it, as any call does.
    let expected = if amd.is_since(7, 0) { code } else { 0 };
    assert_eq!(take(), expected);
}
