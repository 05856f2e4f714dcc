//! Found on a device: what the first launch of a kernel waits for.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use device_arena::Placement;
use device_arena::backend::{Backend, CopyRange, CopyRows, RowIndices, ScrubRange};

use crate::lab::Gate;
use crate::process::alone;
use crate::turn::turn;
use crate::vendor;

const BYTES: usize = 1 << 20;

// A driver loads a kernel's code at its first launch, and waits there for whatever the context has queued: a copy of another
// length than those before it hung behind host work that was to be let go by the same thread.
#[test]
fn the_first_long_copy_waited_for_another_streams_work() {
    let late = [("DEVICE_ARENA_SIMULATED_LOADS_LATE", Some("1"))];
    if !vendor::is_nvidia() {
        println!("skipped: NVIDIA's alone: kernels that are loaded late");
        return;
    }
    if !alone("found_kernels::the_first_long_copy_waited_for_another_streams_work", &late) {
        return;
    }
    let Some(_turn) = turn() else { return };
    let backend = vendor::load().unwrap();
    let [stream, held] = [(); 2].map(|()| Arc::new(backend.create_stream(0).unwrap()));
    let [from, to] = [(); 2].map(|()| backend.allocate(0, Some(&stream), Placement::Device, BYTES).unwrap());
    let (source, destination) = (from.address().as_ptr() as usize, to.address().as_ptr() as usize);
    let range = move |at: usize, bytes: usize| CopyRange {
        destination: (destination + at) as *mut u8,
        source: (source + at) as *const u8,
        bytes,
    };
    let rows = move |bytes: usize| CopyRows {
        destination: destination as *mut u8,
        source: source as *const u8,
        destination_stride: bytes,
        source_stride: bytes,
        bytes,
        count: 4,
        destination_rows: RowIndices::InOrder,
        source_rows: RowIndices::InOrder,
    };
    let fills = [0, 512].map(|at| ScrubRange { address: range(at, 0).destination, bytes: 256, value: 1 });
    // SAFETY: the ranges are of two blocks that the test has alone.
    unsafe { backend.copy(Some(&stream), &[range(0, 16)]) }.unwrap();
    let prepared = [16, 100 << 10].map(|bytes| backend.prepare(Some(&stream), &[range(0, bytes)]).unwrap());
    backend.synchronize(&stream).unwrap();
    let gate = Gate::on(backend.raw_stream(&held).unwrap());
    let (passed, has_passed) = channel();
    let worker = std::thread::spawn({
        let (backend, stream) = (backend.clone(), Arc::clone(&stream));
        let fills = fills.map(|fill| (fill.address as usize, fill.bytes, fill.value));
        move || {
            let fills = fills.map(|(at, bytes, value)| ScrubRange { address: at as *mut u8, bytes, value });
            // SAFETY: as above.
            unsafe {
                backend.copy(Some(&stream), &[range(0, 100 << 10)]).unwrap();
                backend.copy(Some(&stream), &[range(0, 16), range(64, 16)]).unwrap();
                for list in &prepared {
                    backend.copy_prepared(Some(&stream), list).unwrap();
                }
                for bytes in [64, 100 << 10] {
                    backend.copy_rows(Some(&stream), &rows(bytes)).unwrap();
                }
                backend.rewind(Some(&stream), None, &fills).unwrap();
            }
            backend.synchronize(&stream).unwrap();
            passed.send(()).unwrap();
            prepared
        }
    });
    let outcome = has_passed.recv_timeout(Duration::from_secs(10));
    gate.open();
    drop(worker.join().unwrap());
    for block in [from, to] {
        // SAFETY: all work has passed.
        unsafe { backend.free(Some(&stream), block) }.unwrap();
    }
    outcome.expect("a launch waits for work of another stream");
}
