//! How devices are counted, and what a broken driver is to the other's devices.

use device_arena::backend::{Rocm, Vendor};
use device_arena::{Error, Executor, Status};

use crate::drivers::{alone, ask, both};

#[test]
fn nvidias_ordinals_are_counted_first_then_amds() {
    let Some(both) = both() else { return };
    let all = both.cuda.count + both.rocm.count;
    for number in 0..all {
        let executor = Executor::for_vram(number).unwrap();
        let expected = if number < both.cuda.count {
            (Vendor::Cuda, number)
        } else {
            (Vendor::Rocm, number - both.cuda.count)
        };
        assert_eq!((executor.vendor(), executor.ordinal()), expected);
    }
    let error = Executor::for_vram(all).unwrap_err();
    assert_eq!(error.status(), Status::Unavailable);
    assert!(error.to_string().contains(&all.to_string()), "{error}");
}

#[test]
fn the_best_executor_is_number_zero() {
    let Some(_both) = both() else { return };
    let best = Executor::best().unwrap();
    assert_eq!((best.vendor(), best.ordinal()), (Vendor::Cuda, 0));
}

/// A driver that fails is in nobody's way who has found a device before, and is an error where it would have to answer.
#[test]
fn a_broken_second_driver_does_not_hide_the_first() {
    let name = "ordinals::a_broken_second_driver_does_not_hide_the_first";
    if !alone(name, &[("DEVICE_ARENA_SIMULATED_FAULTS", "hipInit:0:0:999")]) {
        return;
    }
    if Rocm::load().is_ok() {
        println!("skipped: needs the simulated drivers");
        return;
    }
    assert_eq!(Executor::best().unwrap().vendor(), Vendor::Cuda);
    assert!(matches!(Executor::rocm(0), Err(Error::Driver { vendor: Vendor::Rocm, code: 999, .. })));
    assert!(matches!(Executor::for_vram(99), Err(Error::Driver { vendor: Vendor::Rocm, .. })));
    let local = 7u8;
    assert!(matches!(ask(&raw const local), Err(Error::Driver { vendor: Vendor::Rocm, .. })));
}

#[test]
fn an_absent_second_driver_is_no_error() {
    let name = "ordinals::an_absent_second_driver_is_no_error";
    if !alone(name, &[("DEVICE_ARENA_ROCM_LIBRARY", "/nowhere/libamdhip64.so")]) {
        return;
    }
    assert!(Rocm::if_present().unwrap().is_none());
    assert_eq!(Executor::best().unwrap().vendor(), Vendor::Cuda);
    let local = 7u8;
    assert!(ask(&raw const local).is_ok());
    assert!(matches!(Executor::for_vram(99), Err(Error::Unavailable { vendor: Vendor::Host, .. })));
}
