//! Planned arenas: programs of writes, copies and clears against a plain model, byte for byte, on every backend that is here;
//! and what is promised of runs and their views.

mod ends;
mod far;
mod model;
mod programs;
mod promises;
mod rows;
mod subjects;
#[path = "../vendors/mod.rs"]
mod vendors;
