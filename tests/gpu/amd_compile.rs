//! The crate's kernels on devices that none of its images serves: they are compiled by the runtime's own compiler, for the
//! architecture that the runtime itself has named.

use device_arena::{Arena, ArenaOptions, Error, Executor, Result, Scrub};

use crate::amd::{Amd, amd};
use crate::process::{is_child, run_child};
use crate::simulated::simulated_or_skip;
use crate::vendor;

/// The test in its child, with these variables; in the parent none.
fn in_child(name: &str, variables: &[(&str, &str)]) -> Option<Amd> {
    if is_child(name) {
        return Some(amd().expect("a runtime"));
    }
    drop(amd()?);
    simulated_or_skip()?;
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, Some(*value))).collect();
    run_child(name, &variables);
    None
}

/// Runs the crate's kernels: a room that is made anew, and what the last call wrote scrubbed.
fn rewound(executor: &Executor) -> Result<()> {
    let arena = ArenaOptions::new().scrub(Scrub::Poison(0xA5)).build(executor)?;
    for _ in 0..3 {
        let call = executor.begin(&arena)?;
        let _room = call.device_room::<u32>(1000)?;
        let views = [(); 3].map(|()| call.output::<u8>(5000).map(|output| output.publish()));
        call.finish()?;
        for view in views {
            assert_eq!(view?.to_vec()?, [0xA5; 5000]);
        }
    }
    Ok(())
}

/// How often the compiler was asked, by the runtime's own library; none where the compiler has a library of its own.
fn compilations() -> Option<u64> {
    let simulated = simulated_or_skip()?;
    crate::driver::exports("hiprtcCompileProgram").then(|| simulated.calls_of("hiprtcCompileProgram"))
}

#[test]
fn where_no_image_loads_the_kernels_are_compiled_once() {
    let name = "amd_compile::where_no_image_loads_the_kernels_are_compiled_once";
    let Some(_amd) = in_child(name, &[("DEVICE_ARENA_SIMULATED_CUBIN", "0")]) else { return };
    let executor = vendor::executor(0).unwrap();
    for _ in 0..2 {
        rewound(&executor).unwrap();
    }
    // Once for each device: a test's turn has warmed up all of them.
    if let Some(count) = compilations() {
        assert_eq!(count, executor_count());
    }
}

fn executor_count() -> u64 {
    use device_arena::backend::Backend;
    vendor::load().unwrap().devices().unwrap().len() as u64
}

/// From 6.4 on an image serves it that it shares with others; before, runtimes know no such images.
#[test]
fn an_architecture_without_an_image_of_its_own_is_served() {
    let name = "amd_compile::an_architecture_without_an_image_of_its_own_is_served";
    let Some(amd) = in_child(name, &[("DEVICE_ARENA_SIMULATED_GFX", "gfx1032")]) else { return };
    let executor = vendor::executor(0).unwrap();
    assert_eq!(executor.device().unwrap().architecture, "gfx1032");
    rewound(&executor).unwrap();
    if let Some(count) = compilations() {
        assert_eq!(count == 0, amd.is_since(6, 4), "{count} compilations");
    }
}

#[test]
fn a_device_of_32_lanes_runs_the_kernels() {
    let name = "amd_compile::a_device_of_32_lanes_runs_the_kernels";
    let Some(_amd) = in_child(name, &[("DEVICE_ARENA_SIMULATED_GFX", "gfx1100")]) else { return };
    rewound(&vendor::executor(0).unwrap()).unwrap();
}

#[test]
fn a_device_of_64_lanes_runs_the_kernels() {
    let name = "amd_compile::a_device_of_64_lanes_runs_the_kernels";
    let Some(_amd) = in_child(name, &[("DEVICE_ARENA_SIMULATED_GFX", "gfx942")]) else { return };
    rewound(&vendor::executor(0).unwrap()).unwrap();
}

#[test]
fn without_a_compiler_the_error_says_what_is_missing() {
    let name = "amd_compile::without_a_compiler_the_error_says_what_is_missing";
    let variables =
        [("DEVICE_ARENA_SIMULATED_CUBIN", "0"), ("DEVICE_ARENA_HIPRTC_LIBRARY", "/nowhere/libhiprtc.so")];
    // Before 7.0 there is one in the runtime's own library, which is not the one that was named.
    if !is_child(name) {
        in_child(name, &variables);
        return;
    }
    let executor = vendor::executor(0).unwrap();
    let arena = Arena::new(&executor);
    let call = executor.begin(&arena).unwrap();
    let error = call.device_room::<u32>(1).map(drop).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Unavailable { .. }), "{text}");
    assert!(text.contains("gfx90a") && text.contains("/nowhere/libhiprtc.so"), "{text}");
    // What needs no kernels works.
    let view = call.output_from_slice(&[1u8, 2, 3]).unwrap().publish();
    call.finish().unwrap();
    assert_eq!(view.to_vec().unwrap(), [1, 2, 3]);
}

#[test]
fn a_compilation_that_fails_is_an_error() {
    let name = "amd_compile::a_compilation_that_fails_is_an_error";
    let faults = "hiprtcCompileProgram:0:0:6";
    let variables = [("DEVICE_ARENA_SIMULATED_CUBIN", "0"), ("DEVICE_ARENA_SIMULATED_FAULTS", faults)];
    if !is_child(name) {
        in_child(name, &variables);
        return;
    }
    let executor = vendor::executor(0).unwrap();
    let arena = Arena::new(&executor);
    let call = executor.begin(&arena).unwrap();
    let error = call.device_room::<u32>(1).map(drop).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("hiprtcCompileProgram") && text.contains("answers 6"), "{text}");
}

/// A lost device or a lack of memory was told as the lack of a compiler, which would not have mended it.
#[test]
fn a_device_that_fails_is_no_lack_of_a_compiler() {
    let name = "amd_compile::a_device_that_fails_is_no_lack_of_a_compiler";
    for code in ["2", "719"] {
        let faults = format!("hipModuleLoadData:0:0:{code}");
        let variables = [
            ("DEVICE_ARENA_SIMULATED_FAULTS", faults.as_str()),
            ("DEVICE_ARENA_HIPRTC_LIBRARY", "/nowhere/libhiprtc.so"),
            ("DEVICE_ARENA_TEST_CODE", code),
        ];
        if !is_child(name) {
            in_child(name, &variables);
            continue;
        }
        let code: i64 = std::env::var("DEVICE_ARENA_TEST_CODE").unwrap().parse().unwrap();
        let executor = vendor::executor(0).unwrap();
        let arena = Arena::new(&executor);
        let call = executor.begin(&arena).unwrap();
        let error = call.device_room::<u32>(1).map(drop).unwrap_err();
        assert!(matches!(error, Error::Driver { code: found, .. } if found == code), "{error}");
        return;
    }
}
