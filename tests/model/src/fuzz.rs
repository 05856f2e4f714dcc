//! What the fuzz targets run, shared with the tests.

use arbitrary::{Arbitrary, Unstructured};

use crate::program::Program;
use crate::subject::Subject;

/// Reads `data` as a tape of every offset width, and holds the crate's word on it against a naive check.
///
/// # Panics
///
/// Where the two disagree.
pub fn fuzz_tape(data: &[u8]) {
    if let Err(mismatch) = crate::tapes::check_tape(data) {
        panic!("{mismatch}");
    }
}

/// Reads `data` as a program, and runs it on the host and on the model.
///
/// # Panics
///
/// Where the two disagree.
pub fn fuzz_program(data: &[u8]) {
    fuzz_program_on(&Subject::host(), data);
}

/// Reads `data` as a program, and runs it on a subject and on the model.
///
/// # Panics
///
/// Where the two disagree.
pub fn fuzz_program_on(subject: &Subject, data: &[u8]) {
    let Ok(program) = Program::arbitrary(&mut Unstructured::new(data)) else { return };
    if let Err(failure) = crate::run::run(subject, &program) {
        panic!("{failure}");
    }
}
