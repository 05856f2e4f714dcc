//! The promises of the design as properties: programs on every backend against the reference model, tapes against
//! a naive check, and threads that share one arena.

mod found;
mod programs;
mod strategies;
mod tapes;
mod threads;
#[path = "../vendors/mod.rs"]
mod vendors;
