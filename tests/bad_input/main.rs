//! Bad input, hostile use and unlucky timing: each has a stated answer. On the host backend.

mod deferred;
mod forgotten;
mod found;
mod pointers;
mod sizes;
mod threads;
