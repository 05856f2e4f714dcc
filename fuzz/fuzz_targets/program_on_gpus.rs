//! The bytes of a fuzzer as a program, on the GPUs of every vendor that is here, in either placement.
#![no_main]

use std::sync::LazyLock;

use device_arena::backend::{AnyBackend, Vendor};
use device_arena_model::{Candidate, Subject, candidates, fuzz_program_on};

fn vendors() -> Vec<(Vendor, device_arena::Result<AnyBackend>)> {
    vec![
        #[cfg(feature = "cuda")]
        (Vendor::Cuda, device_arena::backend::Cuda::load().map(AnyBackend::Cuda)),
        #[cfg(feature = "rocm")]
        (Vendor::Rocm, device_arena::backend::Rocm::load().map(AnyBackend::Rocm)),
    ]
}

static SUBJECTS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
    let mut subjects = Vec::new();
    for candidate in candidates(&vendors()).into_iter().skip(1) {
        match candidate {
            Candidate::Present(subject) => subjects.push(subject),
            Candidate::Absent { name, reason } => eprintln!("backend skipped: {name}, {reason}"),
        }
    }
    assert!(!subjects.is_empty(), "there is no GPU's driver");
    subjects
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| SUBJECTS.iter().for_each(|subject| fuzz_program_on(subject, data)));
