//! Instructions a step of a steady call takes on the host: `cargo bench -p device-arena-instructions`.
//! It needs valgrind, and gungraun's runner: `cargo install --locked gungraun-runner --version 0.20.0`.
#![allow(missing_docs, reason = "the macros below make public items of their own")]

use std::hint::black_box;

use device_arena::{Arena, Call, Output, PlannedArena, View};
use device_arena_instructions as steps;
use gungraun::{library_benchmark, library_benchmark_group, main};

fn warm() -> Arena {
    steps::warm().expect("host pages")
}

fn begun() -> (Call, Arena) {
    let arena = warm();
    (arena.begin().expect("nobody holds the arena"), arena)
}

fn opened() -> (Output<f32>, Call, Arena) {
    let (call, arena) = begun();
    (call.output(256).expect("room is reserved"), call, arena)
}

fn published() -> (View<f32>, Arena) {
    let (output, call, arena) = opened();
    let view = output.publish();
    call.finish().expect("the host");
    (view, arena)
}

// What a step leaves is answered, so that its drop is not counted.

#[library_benchmark]
#[bench::warm(warm())]
fn begin_and_finish(arena: Arena) -> Arena {
    steps::begin_and_finish(black_box(&arena)).expect("nobody holds the arena");
    arena
}

#[library_benchmark]
#[bench::warm(begun())]
fn output((call, arena): (Call, Arena)) -> (Output<f32>, Call, Arena) {
    (steps::output(black_box(&call)).expect("room is reserved"), call, arena)
}

#[library_benchmark]
#[bench::warm(opened())]
fn publish((output, call, arena): (Output<f32>, Call, Arena)) -> (Call, Arena) {
    steps::publish(black_box(output));
    (call, arena)
}

#[library_benchmark]
#[bench::warm(published())]
fn read((view, arena): (View<f32>, Arena)) -> (f32, View<f32>, Arena) {
    (steps::read(black_box(&view)).expect("current"), view, arena)
}

#[library_benchmark]
#[bench::warm(begun())]
fn writer_of_1000((call, arena): (Call, Arena)) -> (View<u32>, Call, Arena) {
    (steps::writer(black_box(&call)).expect("room is reserved"), call, arena)
}

#[library_benchmark]
#[bench::warm(warm())]
fn steady_call(arena: Arena) -> ([View<f32>; 3], Arena) {
    (steps::steady_call(black_box(&arena)).expect("room is reserved"), arena)
}

fn thousand() -> (Vec<u8>, Vec<u64>) {
    (vec![0; 8000], (0..=1000).map(|item| item * 8).collect())
}

#[library_benchmark]
#[bench::warm(thousand())]
fn tape_of_1000((bytes, offsets): (Vec<u8>, Vec<u64>)) -> (usize, Vec<u8>, Vec<u64>) {
    (steps::tape(black_box(&bytes), black_box(&offsets)).expect("in order"), bytes, offsets)
}

#[library_benchmark]
#[bench::warm(steps::planned().expect("host pages"))]
fn planned_step(arena: PlannedArena) -> PlannedArena {
    steps::planned_step(black_box(&arena)).expect("nobody holds the arena");
    arena
}

library_benchmark_group!(
    name = host;
    benchmarks = begin_and_finish, output, publish, read, writer_of_1000, steady_call,
        tape_of_1000, planned_step
);
main!(library_benchmark_groups = host);
