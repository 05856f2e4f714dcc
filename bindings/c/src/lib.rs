//! The C ABI of `device-arena`. `include/device_arena.h` is made from these sources, and documents them for C.
//!
//! Every function goes through [`border`], and every handle is a number that [`table`] knows: no panic gets out, and no
//! number that a caller makes up, frees twice or mixes up does more than being refused.

#![allow(non_camel_case_types, reason = "the types have the names that C knows them by")]
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

#[cfg(test)]
mod abi;
mod arena;
mod border;
mod call;
mod copies;
mod deferred;
mod description;
mod dlpack;
mod exclusive;
mod executor;
mod library;
mod output;
mod owner;
mod plan;
mod planned;
mod pointer;
mod raw;
mod run;
mod scratch;
mod stage;
mod status;
mod table;
mod tape;
mod view;
