//! Which symbols each object has.

use super::*;

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
        ("hipGetStreamDeviceId", [true; 4]),
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
        "hipGetStreamDeviceId",
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
