//! Code objects, bundles, and the compiler.

use super::*;

/// A file with these kernels, for a target as clang names it.
fn image(target: &str, kernels: &[&str]) -> Vec<u8> {
    let (target, modes) = Target::parse(target).unwrap();
    let kernels: Vec<String> = kernels.iter().map(|&kernel| kernel.to_owned()).collect();
    let mut file = write_code_object(target, modes, &kernels);
    // Not from the compiler of the process.
    file[15] = 0;
    file
}

fn load(image: &[u8]) -> (u32, Handle) {
    let mut module = null();
    (unsafe { hipModuleLoadData(&mut module, image.as_ptr().cast()) }, module)
}

/// Whether it loads, and unloads it.
fn status_of(image: &[u8]) -> u32 {
    let (status, module) = load(image);
    if status == 0 {
        assert_eq!(unsafe { hipModuleUnload(module) }, 0);
    }
    status
}

fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut header = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    header.extend((entries.len() as u64).to_le_bytes());
    let names: usize = entries.iter().map(|(name, _)| 24 + name.len()).sum();
    let mut at = (header.len() + names).next_multiple_of(4096);
    let mut bodies = Vec::new();
    for (name, body) in entries {
        for number in [at, body.len(), name.len()] {
            header.extend((number as u64).to_le_bytes());
        }
        header.extend(name.bytes());
        bodies.push((at, *body));
        at += body.len().next_multiple_of(4096);
    }
    header.resize(at, 0);
    for (at, body) in bodies {
        header[at..at + body.len()].copy_from_slice(body);
    }
    header
}

#[test]
fn a_code_object_is_for_its_target() {
    let _turn = turn();
    for (device, xnack, image_of, status) in [
        ("gfx90a", "0", "gfx90a", 0),
        ("gfx90a", "0", "gfx90a:xnack-", 0),
        ("gfx90a", "0", "gfx90a:sramecc+:xnack-", 0),
        ("gfx90a", "0", "gfx90a:xnack+", 209),
        ("gfx90a", "1", "gfx90a:xnack+", 0),
        ("gfx90a", "0", "gfx90a:sramecc-", 209),
        ("gfx90a", "0", "gfx942", 209),
        ("gfx942", "0", "gfx942", 0),
        ("gfx1100", "0", "gfx1100", 0),
        ("gfx1100", "0", "gfx1101", 209),
    ] {
        set("GFX", device);
        set("XNACK", xnack);
        assert_eq!(status_of(&image(image_of, &["compact"])), status, "{image_of} on {device}");
    }
    set("XNACK", "0");
    // Generic code from 6.4 on, and of its own family.
    for (version, device, generic, status) in [
        (60_443_484, "gfx906", "gfx9-generic", 0),
        (60_343_484, "gfx906", "gfx9-generic", 209),
        (60_443_484, "gfx90a", "gfx9-generic", 209),
        (60_443_484, "gfx942", "gfx9-4-generic", 0),
        (70_226_015, "gfx1036", "gfx10-3-generic", 0),
        (70_226_015, "gfx1103", "gfx11-generic", 0),
        (70_226_015, "gfx1201", "gfx12-generic", 0),
        (70_226_015, "gfx1201", "gfx11-generic", 209),
    ] {
        set_version(version);
        set("GFX", device);
        assert_eq!(status_of(&image(generic, &["compact"])), status, "{generic} on {device}, {version}");
    }
}

#[test]
fn what_is_no_code_object_is_refused() {
    let _turn = turn();
    let mut module = null();
    assert_eq!(status_of(b"garbage that is long enough"), 200);
    unsafe {
        assert_eq!(hipModuleLoadData(&mut module, std::ptr::null()), 1);
        assert_eq!(hipModuleLoadData(std::ptr::null_mut(), c"".as_ptr().cast()), 1);
        assert_eq!(hipModuleUnload(null()), 400);
    }
    let mut file = image("gfx90a", &["compact"]);
    file[18] = 190;
    assert_eq!(status_of(&file), 200);
    set("CUBIN", "0");
    assert_eq!(status_of(&image("gfx90a", &["compact"])), 209);
}

#[test]
fn a_bundle_has_its_own_target_before_the_generic_one() {
    let _turn = turn();
    let (own, other) = (image("gfx90a", &["compact"]), image("gfx1030", &["suite_fill"]));
    let both = [("hipv4-amdgcn-amd-amdhsa--gfx90a", &own[..]), ("hipv4-amdgcn-amd-amdhsa--gfx1030", &other)];
    let file = bundle(&[("host-x86_64-unknown-linux--", &[]), both[0], both[1]]);
    let has = |file: &[u8], kernel: &std::ffi::CStr| {
        let (status, module) = load(file);
        assert_eq!(status, 0);
        let mut function = null();
        let status = unsafe { hipModuleGetFunction(&mut function, module, kernel.as_ptr()) };
        assert_eq!(unsafe { hipModuleUnload(module) }, 0);
        status == 0
    };
    assert!(has(&file, c"compact") && !has(&file, c"suite_fill"));
    set("GFX", "gfx1030");
    assert!(!has(&file, c"compact") && has(&file, c"suite_fill"));
    set("GFX", "gfx1100");
    // Nothing for the device: no image at all, from 7.0 on.
    for (version, status) in [(50_221_153, 209), (60_443_484, 209), (70_226_015, 200)] {
        set_version(version);
        assert_eq!(status_of(&file), status, "{version}");
    }

    let generic = image("gfx11-generic", &["suite_add"]);
    let exact = image("gfx1100", &["suite_take"]);
    let file = bundle(&[
        ("hipv4-amdgcn-amd-amdhsa--gfx11-generic", &generic),
        ("hipv4-amdgcn-amd-amdhsa--gfx1100", &exact),
    ]);
    set_version(60_443_484);
    assert!(has(&file, c"suite_take"));
    set("GFX", "gfx1101");
    assert!(has(&file, c"suite_add"));
    set_version(60_343_484);
    assert_eq!(status_of(&file), 209);
    // What it says of retried accesses counts.
    set("GFX", "gfx90a");
    let file = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", &own)]);
    assert_eq!(status_of(&file), 209);
    set("XNACK", "1");
    assert_eq!(status_of(&file), 0);
}

#[test]
fn an_image_outlives_its_module() {
    let _turn = turn();
    let mut file = image("gfx90a", &["compact", "nobody_has_it"]);
    let (status, module) = load(&file);
    let mut function = null();
    unsafe {
        assert_eq!(status, 0);
        assert_eq!(hipModuleGetFunction(&mut function, module, c"compact".as_ptr()), 0);
        assert_eq!(hipModuleGetFunction(&mut function, module, c"nobody_has_it".as_ptr()), 500);
        assert_eq!(hipModuleGetFunction(&mut function, module, c"suite_fill".as_ptr()), 500);
        assert_eq!(hipModuleGetFunction(&mut function, module, c"".as_ptr()), 1);
    }
    file[80] ^= 0xff;
    unsafe {
        assert_eq!(hipModuleGetFunction(&mut function, module, c"compact".as_ptr()), 200);
        assert_eq!(hipModuleUnload(module), 0);
        assert_eq!(hipModuleGetFunction(&mut function, module, c"compact".as_ptr()), 400);
        assert_eq!(hipModuleUnload(module), 400);
    }
}

/// The status, the log, and the code if there is any.
fn compile(source: &str, options: &[&str]) -> (u32, String, Vec<u8>) {
    let source = CString::new(source).unwrap();
    let options: Vec<CString> = options.iter().map(|&option| CString::new(option).unwrap()).collect();
    let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
    let mut program = null();
    let none = std::ptr::null();
    unsafe {
        assert_eq!(hiprtcCreateProgram(&mut program, source.as_ptr(), none, 0, none.cast(), none.cast()), 0);
        let status = hiprtcCompileProgram(program, options.len() as c_int, options.as_ptr());
        let (mut bytes, mut code_bytes) = (0, 0);
        assert_eq!(hiprtcGetProgramLogSize(program, &mut bytes), 0);
        let mut log = vec![0_u8; bytes];
        assert_eq!(hiprtcGetProgramLog(program, log.as_mut_ptr().cast()), 0);
        assert_eq!(hiprtcGetCodeSize(program, &mut code_bytes), 0);
        assert_eq!(code_bytes > 0, status == 0);
        let mut code = vec![0_u8; code_bytes];
        assert_eq!(hiprtcGetCode(program, code.as_mut_ptr().cast()), 0);
        assert_eq!(hiprtcDestroyProgram(&mut program), 0);
        assert!(program.is_null());
        (status, String::from_utf8(log).unwrap(), code)
    }
}

const SUITE: &str = include_str!("../../../../gpu/kernels.cu");

#[test]
fn what_is_compiled_runs() {
    let _turn = turn();
    let before = calls("hiprtcCompileProgram");
    let (status, log, code) = compile(SUITE, &["--std=c++17", "--offload-arch=gfx90a:sramecc+:xnack-"]);
    assert_eq!((status, log.as_str()), (0, ""));
    assert_eq!(calls("hiprtcCompileProgram"), before + 1);
    // It loads where images do not.
    set("CUBIN", "0");
    let (status, module) = load(&code);
    assert_eq!(status, 0);
    let mut function = null();
    let memory = device_memory(64);
    let (mut values, mut count, mut first) = (memory, 16_u64, 5_u32);
    let mut parameters =
        [(&raw mut values).cast(), (&raw mut count).cast(), (&raw mut first).cast::<c_void>()];
    let stream = stream();
    unsafe {
        for name in [c"suite_sums", c"suite_fill", c"suite_add", c"suite_take", c"suite_poke"] {
            assert_eq!(hipModuleGetFunction(&mut function, module, name.as_ptr()), 0, "{name:?}");
        }
        assert_eq!(hipModuleGetFunction(&mut function, module, c"suite_fill".as_ptr()), 0);
        let none = std::ptr::null_mut();
        let launched =
            hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, parameters.as_mut_ptr(), none);
        assert_eq!(launched, 0);
        let words: Vec<u32> = bytes_at(memory, 64, stream)
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, (5..21).collect::<Vec<u32>>());
        assert_eq!(hipModuleUnload(module), 0);
        assert_eq!(hipFree(memory), 0);
        assert_eq!(hipStreamDestroy(stream), 0);
    }
}

#[test]
fn compilation_fails_with_a_log() {
    let _turn = turn();
    set_version(60_443_484);
    // Without an architecture, of one that nobody has, of one that is newer, of a source with an error.
    let (status, log, _) = compile(SUITE, &[]);
    assert!(status == 6 && log.contains("architecture"), "{status} {log}");
    let (status, log, _) = compile(SUITE, &["--offload-arch=gfx1234"]);
    assert!(status == 6 && log.contains("gfx1234"), "{status} {log}");
    set_version(60_043_484);
    assert_eq!(compile(SUITE, &["--offload-arch=gfx1201"]).0, 6);
    assert_eq!(compile("#error here\n", &["--offload-arch=gfx90a"]).0, 6);
    assert_eq!(compile("#ifdef OTHER\n#error here\n#endif\n", &["--offload-arch=gfx90a"]).0, 0);
    set_version(60_443_484);
    assert_eq!(compile(SUITE, &["--offload-arch=gfx1201"]).0, 0);
    assert_eq!(compile(SUITE, &["--offload-arch=gfx9-generic"]).0, 0);
    // Integers of a fixed width are the compiler's own before 7.0.
    let plain = r#"extern "C" __global__ void k(uint32_t* x) {}"#;
    let own = format!("typedef unsigned uint32_t;\n{plain}");
    for (version, statuses) in [(60_443_484, [0, 0]), (70_226_015, [6, 0])] {
        set_version(version);
        assert_eq!([plain, &own].map(|source| compile(source, &["--offload-arch=gfx90a"]).0), statuses);
    }
}

const ARCHITECTURE: &str = "DEVICE_ARENA_SIMULATED_TEST_ARCHITECTURE";

#[test]
#[ignore = "in a process of its own"]
fn in_a_child_compile() {
    let value = std::env::var(ARCHITECTURE).unwrap();
    let _turn = turn();
    let (version, architecture) = value.split_once(' ').unwrap();
    set("HIP_VERSION", version);
    assert_eq!(compile(SUITE, &[&format!("--offload-arch={architecture}")]).0, 0);
}

#[test]
fn an_unknown_architecture_ends_the_process_before_6() {
    for (version, architecture, ends) in [
        (50_221_153, "gfx90a", false),
        (50_221_153, "gfx1100", true),
        (50_221_153, "gfx942", true),
        (50_731_921, "gfx1100", false),
        (50_731_921, "gfx1201", true),
    ] {
        let value = format!("{version} {architecture}");
        let child = in_a_child("tests::images::in_a_child_compile", ARCHITECTURE, &value);
        assert_eq!(!child.status.success(), ends, "{value}");
        let said = String::from_utf8_lossy(&child.stderr);
        assert_eq!(said.contains("munmap_chunk(): invalid pointer"), ends, "{value}: {said}");
    }
}

#[test]
fn kernels_are_found_in_a_source() {
    let _turn = turn();
    let source = r#"
        // extern "C" __global__ void commented(int x) {}
        /* extern "C" __global__ void this_too(int x) {} */
        __global__ void mangled(int x) {}
        extern "C" __global__ __launch_bounds__(64, 2) void bounded(int* x) { if (x) { *x = 1; } }
        extern "C" __global__
        __attribute__((amdgpu_flat_work_group_size(1, 64))) void
        attributed(int* x) {}
    "#;
    let (status, _, code) = compile(source, &["--offload-arch=gfx90a"]);
    assert_eq!(status, 0);
    let names = crate::hip::kernels_of(&code);
    assert_eq!(names, ["bounded", "attributed"]);
}

/// A code object of clang's with these kernels, if there is such a clang.
fn by_clang(target: &str, version: u32) -> Option<Vec<u8>> {
    let folder = std::env::temp_dir().join(format!("device-arena-simulated-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, image) = (folder.join("two.hip"), folder.join("two.hsaco"));
    let kernel = "__attribute__((global)) void";
    let text =
        format!("extern \"C\" {kernel} first(int* x) {{ *x = 1; }}\nextern \"C\" {kernel} second() {{}}\n");
    std::fs::write(&source, text).unwrap();
    let mut clang = std::process::Command::new("clang-19");
    clang.args(["-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "--no-gpu-bundle-output", "-w"]);
    clang.args([format!("--offload-arch={target}"), format!("-mcode-object-version={version}")]);
    let built = clang.arg(&source).arg("-o").arg(&image).status();
    let read = built.is_ok_and(|status| status.success()).then(|| std::fs::read(&image).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    read
}

#[test]
fn what_clang_makes_is_read() {
    let _turn = turn();
    set_version(60_443_484);
    for (target, version, device) in [
        ("gfx90a", 4, "gfx90a"),
        ("gfx90a:xnack-", 5, "gfx90a"),
        ("gfx942", 5, "gfx942"),
        ("gfx1030", 5, "gfx1030"),
        ("gfx11-generic", 6, "gfx1101"),
    ] {
        let Some(image) = by_clang(target, version) else {
            println!("skipped: {target}: there is no clang-19 that makes it");
            continue;
        };
        let mut names = crate::hip::kernels_of(&image);
        names.sort();
        assert_eq!(names, ["first", "second"], "{target}");
        set("GFX", device);
        assert_eq!(status_of(&image), 0, "{target}");
        set("GFX", "gfx906");
        assert_eq!(status_of(&image), 209, "{target}");
    }
}
