//! The reference model of `device-arena`: what arenas, calls, outputs, views, readers, scratch and deferred work
//! answer, written down without a byte of memory and without a thread, and the programs that hold every backend
//! to it.
//!
//! A [`Program`] is a list of [`Op`]s whose operands are picked, modulo what exists, when the program runs. So
//! every list of operations is a program, and what is left of it once some are taken out still is one: that is
//! what makes failures shrink, and lets a fuzzer write programs.
//!
//! [`run`] runs a program on the [`Subject`] and on the model in lock-step, and compares every answer and every
//! byte. A failure prints the program as it ran, one operation a line, with the names that things had.

mod fuzz;
mod lane;
mod model;
mod plans;
mod program;
mod run;
mod subject;
mod tapes;
mod value;

pub use fuzz::{fuzz_program, fuzz_program_on, fuzz_tape};
pub use model::{LAST_GENERATION, MAX_OUTPUTS, MAX_READERS};
pub use plans::{
    check_planner, check_schedule, check_table, clashing, fault_of, first_hazard, fuzz_plan, least_peak,
};
pub use program::{
    Align, Begin, Deferral, Ending, First, Growth, Limit, Op, Options, Place, Program, Read, Release, Room,
    Scrub, Step, Type, Write,
};
pub use run::{Failure, Report, run};
pub use subject::{Candidate, Subject, candidates};
pub use tapes::{check_tape, check_tape_of};
