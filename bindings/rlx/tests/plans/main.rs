//! rlx's planner with all of its options, on graphs of many shapes, held against device-arena's verifier; and plans that
//! were broken on purpose.

mod broken;
mod graphs;
mod oracle;
mod taken;
