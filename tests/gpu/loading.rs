//! How the driver is found, and what is said where it is not.

use std::sync::{Arc, Barrier};

use device_arena::backend::Vendor;
use device_arena::{Arena, Error, Executor, Status};

use crate::functions::Function;
use crate::lab::{Lab, counting};
use crate::memory::ask;
use crate::process::{alone, is_child, run_child};
use crate::simulated::{simulated, simulated_or_skip};
use crate::turn::turn;
use crate::vendor;
use crate::vendors::version_and_library;

/// What is said where there is no driver.
#[track_caller]
fn unavailable<T>(outcome: Result<T, Error>) -> String {
    let error = outcome.err().expect("there is a driver");
    assert_eq!(error.status(), Status::Unavailable, "{error}");
    let text = error.to_string();
    let Error::Unavailable { vendor, .. } = error else { panic!("{text}") };
    assert_eq!(vendor, vendor::vendor());
    println!("{text}");
    text
}

fn host_serves() {
    let executor = Executor::best().unwrap();
    assert_eq!(executor.vendor(), Vendor::Host);
    let arena = Arena::new(&executor);
    let call = executor.begin(&arena).unwrap();
    let view = call.output_from_slice(&[1u8, 2]).unwrap().publish();
    call.finish().unwrap();
    assert_eq!(*view.read().unwrap(), [1, 2]);
}

#[test]
fn no_library_is_unavailable_with_the_names_that_were_tried() {
    if !alone(
        "loading::no_library_is_unavailable_with_the_names_that_were_tried",
        &[("LD_LIBRARY_PATH", None), (vendor::path_variable(), None)],
    ) {
        return;
    }
    if vendor::load().is_ok() {
        println!("skipped: this machine has a driver where it is looked for");
        return;
    }
    let text = unavailable(vendor::executor(0));
    if text.contains("finds no device") {
        println!("skipped: the names: this machine has a library where it is looked for, and no device");
    } else {
        for name in vendor::library_names() {
            assert!(text.contains(name), "{name} is not in: {text}");
        }
    }
    let local = 7u8;
    assert_eq!(ask(&raw const local).unwrap().kind, device_arena::MemoryKind::Unregistered);
    assert!(matches!(Executor::for_vram(0), Err(Error::Unavailable { .. })));
    host_serves();
}

#[test]
fn a_path_that_leads_nowhere_is_named_and_nothing_else_is_tried() {
    let (variable, path) = (vendor::path_variable(), "/nowhere/driver.so");
    let name = "loading::a_path_that_leads_nowhere_is_named_and_nothing_else_is_tried";
    if !alone(name, &[(variable, Some(path))]) {
        return;
    }
    let text = unavailable(vendor::executor(0));
    assert!(text.contains(path) && text.contains(variable), "{text}");
    assert!(!vendor::library_names().iter().any(|name| text.contains(name)), "{text}");
}

#[test]
fn a_file_that_is_no_library_is_named() {
    let name = "loading::a_file_that_is_no_library_is_named";
    let path = std::env::temp_dir().join(format!("device-arena-{}.so", std::process::id()));
    if !is_child(name) {
        std::fs::write(&path, b"no library").unwrap();
        run_child(name, &[(vendor::path_variable(), Some(path.to_str().unwrap()))]);
        std::fs::remove_file(&path).unwrap();
        return;
    }
    let text = unavailable(vendor::executor(0));
    assert!(text.contains(&std::env::var(vendor::path_variable()).unwrap()), "{text}");
}

#[test]
fn an_explicit_path_is_the_one_that_is_opened() {
    let name = "loading::an_explicit_path_is_the_one_that_is_opened";
    if is_child(name) {
        let backend = vendor::load().unwrap();
        assert_eq!(version_and_library(&backend).1, std::env::var(vendor::path_variable()).unwrap());
        let lab = Lab::new(0);
        let arena = Arena::new(&lab.executor);
        assert_eq!(lab.filled(&arena, 100, 7).to_vec().unwrap(), counting(7, 100));
        return;
    }
    let Some(turn) = turn() else { return };
    // The path of what the loader has found by its name.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut found = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let Some(path) = found.find(|path| path.contains(vendor::library_names()[0])) else {
        let backend = turn.backend();
        println!("skipped: this system does not say where {} is", version_and_library(&backend).1);
        return;
    };
    run_child(name, &[(vendor::path_variable(), Some(path))]);
}

#[test]
fn a_required_function_that_is_missing_is_named() {
    let name = "loading::a_required_function_that_is_missing_is_named";
    if is_child(name) {
        assert!(unavailable(vendor::executor(0)).contains(Function::PointerGetAttributes.name()));
        // A driver that is there and can't be used is no reason to be slow.
        assert!(unavailable(Executor::best()).contains(Function::PointerGetAttributes.name()));
        let local = 7u8;
        assert!(ask(&raw const local).is_err());
        return;
    }
    let Ok(path) = std::env::var("DEVICE_ARENA_TEST_MISSING_REQUIRED") else {
        println!(
            "skipped: DEVICE_ARENA_TEST_MISSING_REQUIRED names no driver that lacks a required function"
        );
        return;
    };
    run_child(name, &[(vendor::path_variable(), Some(&path))]);
}

#[test]
fn without_optional_functions_only_what_needs_them_is_refused() {
    let name = "loading::without_optional_functions_only_what_needs_them_is_refused";
    if is_child(name) {
        let Some(turn) = turn() else { panic!("no driver") };
        let lab = Lab::new(0);
        let arena = Arena::new(&lab.executor);
        for round in 0..3 {
            let view = lab.filled(&arena, 1000 << round, 7);
            assert_eq!(view.to_vec().unwrap(), counting(7, 1000 << round));
        }
        let raw = crate::memory::RawStream::new(&lab.executor);
        // SAFETY: the stream outlives what it would have become.
        let refused = unsafe { Executor::adopt(turn.backend(), raw.handle, Box::new(())) };
        assert!(unavailable(refused.map_err(Error::from)).contains(Function::StreamGetCtx.name()));
        let soon = lab.executor.defer(&arena, |call| Ok(call.output::<u8>(9)?.publish())).unwrap();
        assert_eq!(soon.wait().unwrap().len(), 9);
        return;
    }
    let Ok(path) = std::env::var("DEVICE_ARENA_TEST_MISSING_SYMBOLS") else {
        println!("skipped: DEVICE_ARENA_TEST_MISSING_SYMBOLS names no driver that lacks optional functions");
        return;
    };
    run_child(name, &[(vendor::path_variable(), Some(&path))]);
}

#[test]
fn a_driver_without_a_device_leaves_the_host() {
    let name = "loading::a_driver_without_a_device_leaves_the_host";
    if is_child(name) {
        let text = unavailable(vendor::executor(0));
        assert!(text.contains("no device"), "{text}");
        host_serves();
        return;
    }
    let Some(_turn) = turn() else { return };
    let devices =
        if simulated().is_some() { "DEVICE_ARENA_SIMULATED_DEVICES" } else { vendor::visible_devices() };
    let none = if simulated().is_some() { "0" } else { "-1" };
    run_child(name, &[(devices, Some(none))]);
}

#[test]
fn a_driver_that_fails_is_an_error_and_no_slow_run() {
    let name = "loading::a_driver_that_fails_is_an_error_and_no_slow_run";
    if is_child(name) {
        let outcomes = [Executor::best(), vendor::executor(0), Executor::for_vram(0)];
        for error in outcomes.map(|outcome| outcome.unwrap_err()) {
            let Error::Driver { vendor, operation, code, name } = error else { panic!("{error}") };
            assert_eq!((vendor, operation, code), (vendor::vendor(), Function::Init.name(), 999));
            assert!(name.to_ascii_uppercase().contains("UNKNOWN"), "{name}");
        }
        return;
    }
    let Some(_turn) = turn() else { return };
    let Some(_) = simulated_or_skip() else { return };
    let fault = format!("{}:0:0:999", Function::Init);
    run_child(name, &[("DEVICE_ARENA_SIMULATED_FAULTS", Some(&fault))]);
}

#[test]
fn two_threads_load_one_driver_once() {
    let name = "loading::two_threads_load_one_driver_once";
    if !is_child(name) {
        if turn().is_some() {
            run_child(name, &[]);
        }
        return;
    }
    let barrier = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            std::thread::spawn(move || {
                barrier.wait();
                version_and_library(&vendor::load().unwrap()).0
            })
        })
        .collect();
    let versions: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(versions.windows(2).all(|pair| pair[0] == pair[1]));
    if let Some(simulated) = simulated() {
        assert_eq!(simulated.calls(Function::Init), 1);
    }
}

#[cfg(unix)]
#[test]
fn after_a_fork_the_child_has_no_device_and_the_parent_still_has() {
    let name = "loading::after_a_fork_the_child_has_no_device_and_the_parent_still_has";
    if !is_child(name) {
        if turn().is_some() {
            run_child(name, &[]);
        }
        return;
    }
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    let view = lab.filled(&arena, 100, 7);
    assert_eq!(view.to_vec().unwrap(), counting(7, 100));
    // SAFETY: the child asks the crate alone, and ends without running anybody's destructors.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: an alarm ends the child where it would wait for good.
        unsafe { libc::alarm(20) };
        let failed = in_the_child(&lab, &arena, &view);
        // SAFETY: as above.
        unsafe { libc::_exit(failed) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's own.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child was ended by {status}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "this check failed in the child");
    assert_eq!(lab.filled(&arena, 200, 9).to_vec().unwrap(), counting(9, 200));
}

/// Zero, or which check failed first.
#[cfg(unix)]
fn in_the_child(lab: &Lab, arena: &Arena, view: &device_arena::View<u32>) -> i32 {
    let is_refused = |error: Error| error.status() == Status::Unavailable;
    let local = 7u8;
    let checks: [&dyn Fn() -> bool; 9] = [
        &|| vendor::executor(0).is_err_and(is_refused),
        &|| Executor::best().is_err_and(is_refused),
        &|| Executor::for_vram(0).is_err_and(is_refused),
        &|| ask(&raw const local).is_err_and(is_refused),
        &|| lab.executor.synchronize().is_err_and(is_refused),
        &|| lab.executor.with_current(|| ()).is_err_and(is_refused),
        &|| view.to_vec().is_err_and(is_refused),
        &|| {
            let fresh = Arena::new(&lab.executor);
            let call = lab.executor.begin(&fresh);
            call.is_ok_and(|call| call.output::<u8>(100).is_err_and(is_refused))
        },
        // Nothing is asked of the driver, and host work goes on.
        &|| arena.begin().is_ok() && Arena::host().begin().is_ok_and(|call| call.output::<u8>(9).is_ok()),
    ];
    checks.iter().position(|check| !check()).map_or(0, |at| at as i32 + 1)
}
