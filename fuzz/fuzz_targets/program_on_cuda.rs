//! The bytes of a fuzzer as a program, on a device's memory and on host-coherent pages.
#![no_main]

use std::sync::LazyLock;

use device_arena::Placement;
use device_arena::backend::{AnyBackend, Cuda};
use device_arena_model::{Subject, fuzz_program_on};

static SUBJECTS: LazyLock<[Subject; 2]> = LazyLock::new(|| {
    let subject = |name, placement| {
        let cuda = AnyBackend::Cuda(Cuda::load().expect("the CUDA driver"));
        Subject::devices(name, cuda, placement).expect("its devices")
    };
    [subject("cuda", Placement::Device), subject("cuda host-coherent", Placement::HostCoherent)]
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| SUBJECTS.iter().for_each(|subject| fuzz_program_on(subject, data)));
