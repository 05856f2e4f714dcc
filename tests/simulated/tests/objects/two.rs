//! Two objects in a process.

use super::*;

#[test]
fn the_compiler_is_a_library_of_its_own_from_7() {
    let (Some(runtime), Some(compiler)) = (Object::open("hip-7-2.so"), Object::open("hiprtc.so")) else {
        return;
    };
    fill(&runtime, &compiler);
    let name = c"hiprtcCompileProgram".as_ptr();
    assert!(call!(compiler, device_arena_simulated_calls(name => *const c_char)) >= 1);
}

/// A kernel that writes where nobody may: an illegal address, which is this driver's alone.
fn poke_hip(hip: &Object, function: Handle) {
    let mut nowhere: Handle = std::ptr::without_provenance_mut(16);
    assert_eq!(launch(hip, function, &mut [(&raw mut nowhere).cast()]), 0);
    assert_eq!(call!(hip, hipDeviceSynchronize()), 700);
    call!(hip, device_arena_simulated_clear());
    assert_eq!(call!(hip, hipDeviceSynchronize()), 0);
}

fn poke_cuda(cuda: &Object, function: Handle) {
    let mut nowhere: Handle = std::ptr::without_provenance_mut(16);
    let mut parameters: [*mut c_void; 1] = [(&raw mut nowhere).cast()];
    let none: *mut Handle = std::ptr::null_mut();
    let launched = call!(cuda, cuLaunchKernel(
        function => Handle, 1 => u32, 1 => u32, 1 => u32, 32 => u32, 1 => u32, 1 => u32, 0 => u32,
        null() => Handle, parameters.as_mut_ptr() => *mut *mut c_void, none => *mut Handle,
    ));
    assert_eq!(launched, 0);
    assert_eq!(call!(cuda, cuCtxSynchronize()), 700);
    call!(cuda, device_arena_simulated_clear());
    assert_eq!(call!(cuda, cuCtxSynchronize()), 0);
}

#[test]
fn two_drivers_keep_to_themselves() {
    let (Some(cuda), Some(hip)) = (Object::open("cuda.so"), Object::open("hip-6-4.so")) else { return };
    let (mut context, mut module, mut function) = (null(), null(), null());
    let text = CString::new(include_str!("../../../gpu/kernels.ptx")).unwrap();
    assert_eq!(call!(cuda, cuInit(0 => u32)), 0);
    assert_eq!(call!(cuda, cuDevicePrimaryCtxRetain(&mut context => *mut Handle, 0 => c_int)), 0);
    assert_eq!(call!(cuda, cuCtxPushCurrent_v2(context => Handle)), 0);
    let image: *const c_void = text.as_ptr().cast();
    assert_eq!(call!(cuda, cuModuleLoadData(&mut module => *mut Handle, image => *const c_void)), 0);
    let name = c"suite_poke".as_ptr();
    let found = call!(cuda, cuModuleGetFunction(&mut function => *mut Handle, module => Handle, name => *const c_char));
    assert_eq!(found, 0);
    let poke = compiled(&hip, &hip, "suite_poke");

    // Neither knows the other's memory.
    let (mut of_cuda, mut of_hip) = (0_u64, null());
    assert_eq!(call!(cuda, cuMemAlloc_v2(&mut of_cuda => *mut u64, 64 => usize)), 0);
    assert_eq!(call!(hip, hipMalloc(&mut of_hip => *mut Handle, 64 => usize)), 0);
    let (mut kind, mut attributes) = (9_u32, [9_u32; 8]);
    let asked = call!(cuda, cuPointerGetAttribute(
        (&raw mut kind).cast() => Handle, 2 => u32, of_hip.addr() as u64 => u64,
    ));
    assert_eq!(asked, 1);
    let elsewhere: Handle = std::ptr::without_provenance_mut(of_cuda as usize);
    let place: Handle = attributes.as_mut_ptr().cast();
    assert_eq!(call!(hip, hipPointerGetAttributes(place => Handle, elsewhere => Handle)), 0);
    assert_eq!(attributes[0], 0);

    // Whichever handler of faults came last, each driver finds its own.
    for _ in 0..3 {
        poke_cuda(&cuda, function);
        poke_hip(&hip, poke);
        poke_hip(&hip, poke);
        fill(&hip, &hip);
    }
    assert_eq!(call!(cuda, cuMemFree_v2(of_cuda => u64)), 0);
    assert_eq!(call!(hip, hipFree(of_hip => Handle)), 0);
}
