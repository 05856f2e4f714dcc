//! cudarc's streams, buffers and device pointers.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DeviceSlice};
use device_arena::{Arena, Error, Executor, MemoryKind, TapeView};

use crate::driver;
use crate::lab::{Lab, counting};
use crate::turn::turn;

/// cudarc leaves its context current on the thread.
fn with_cudarc(work: impl FnOnce(&Arc<CudaContext>) + Send) {
    std::thread::scope(|threads| {
        let outcome = threads.spawn(|| work(&CudaContext::new(0).unwrap())).join();
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

/// A context of ordinal 0 beside the primary one.
fn another_context() -> Arc<CudaContext> {
    let (mut raw, mut popped) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the driver writes one handle, and makes it current; cudarc takes it over.
    unsafe {
        driver::ok(driver::ctx_create(&raw mut raw, 0, 0));
        driver::ok(driver::ctx_pop(&raw mut popped));
        CudaContext::from_raw_context(0, 0, raw.cast()).unwrap()
    }
}

fn bytes(stream: &Arc<CudaStream>, bytes: &[u8]) -> CudaSlice<u8> {
    stream.clone_htod(bytes).unwrap()
}

#[test]
fn a_stream_of_cudarcs_is_an_executor_and_lives_as_long() {
    let Some(_turn) = turn() else { return };
    with_cudarc(|context| {
        for stream in [context.new_stream().unwrap(), context.default_stream()] {
            let executor = Executor::from_cudarc(&stream).unwrap();
            assert_eq!(executor.stream().unwrap().addr(), stream.cu_stream().addr());
            let lab = Lab::on(executor);
            let held = Arc::strong_count(&stream);
            assert!(held > 1);
            let arena = Arena::new(&lab.executor);
            for round in 1..3 {
                assert_eq!(
                    lab.filled(&arena, 40_000 * round, 1).to_vec().unwrap(),
                    counting(1, 40_000 * round)
                );
            }
            drop(lab);
            assert!(Arc::strong_count(&stream) > 1, "the arena keeps it");
            drop(arena);
            assert_eq!(Arc::strong_count(&stream), 1);
        }
    });
}

#[test]
fn a_per_thread_stream_is_refused() {
    let Some(_turn) = turn() else { return };
    with_cudarc(|context| {
        let stream = context.per_thread_stream();
        let refused = Executor::from_cudarc(&stream).unwrap_err();
        assert!(matches!(refused, Error::WrongVendor { operation: "adopt_stream", .. }), "{refused}");
        assert_eq!(Arc::strong_count(&stream), 1);
    });
}

#[test]
fn a_context_of_its_own_is_the_streams() {
    let Some(_turn) = turn() else { return };
    with_cudarc(|_| {
        let other = another_context();
        let stream = other.new_stream().unwrap();
        let lab = Lab::on(Executor::from_cudarc(&stream).unwrap());
        let current = lab.executor.with_current(driver::current).unwrap();
        assert_eq!(current.addr(), other.cu_ctx().addr());
        let arena = Arena::new(&lab.executor);
        assert_eq!(lab.filled(&arena, 1000, 1).to_vec().unwrap(), counting(1, 1000));
    });
}

#[test]
fn a_buffer_of_cudarcs_is_a_tape() {
    let Some(_turn) = turn() else { return };
    with_cudarc(|context| {
        let (theirs, ours) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let lab = Lab::on(Executor::from_cudarc(&ours).unwrap());
        let buffer = bytes(&theirs, b"onetwothree");
        let arena = Arena::new(&lab.executor);
        let call = lab.executor.begin(&arena).unwrap();
        let (tape, ordered) = TapeView::of_cudarc(&buffer, &[0u32, 3, 6, 11], &ours).unwrap();
        assert_eq!((tape.memory(), tape.len()), (MemoryKind::Device { ordinal: 0 }, 3));
        let staged = call.stage(&tape).unwrap();
        assert_eq!(staged.bytes_ptr().addr() as u64, buffer.device_ptr(&ours).0);
        let sums = lab.sums(&call, &staged);
        call.finish().unwrap();
        drop(ordered);
        let sum = |text: &[u8]| text.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        assert_eq!(sums.to_vec().unwrap(), [sum(b"one"), sum(b"two"), sum(b"three")]);
        // Bounds are the buffer's.
        let refused = TapeView::of_cudarc(&buffer, &[0u32, 12], &ours);
        assert!(matches!(refused, Err(Error::Tape { index: 1, .. })));
        // A part of a buffer is one too.
        let part = buffer.slice(3..6);
        let (tape, _ordered) = TapeView::of_cudarc(&part, &[0u64, 3], &ours).unwrap();
        assert_eq!(tape.byte_len(), 3);
    });
}

#[test]
fn a_view_is_the_source_of_cudarcs_copies() {
    let Some(_turn) = turn() else { return };
    with_cudarc(|context| {
        let (own, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let lab = Lab::on(Executor::from_cudarc(&own).unwrap());
        let arena = Arena::new(&lab.executor);
        for stream in [&own, &other] {
            let view = lab.filled(&arena, 1000, 50);
            let guard = view.read_on_cudarc(stream).unwrap();
            assert_eq!(guard.len(), 1000);
            assert!(lab.executor.begin(&arena).is_err(), "the guard holds the arena");
            assert_eq!(stream.clone_dtoh(&guard).unwrap(), counting(50, 1000));
            let mut copy = stream.alloc_zeros::<u32>(1000).unwrap();
            stream.memcpy_dtod(&guard, &mut copy).unwrap();
            drop(guard);
            assert_eq!(stream.clone_dtoh(&copy).unwrap(), counting(50, 1000));
            // Over a stream that is neither's.
            let third = context.new_stream().unwrap();
            let guard = view.read_on_cudarc(stream).unwrap();
            assert_eq!(third.clone_dtoh(&guard).unwrap(), counting(50, 1000));
        }
        let view = lab.filled(&arena, 10, 1);
        drop(lab.filled(&arena, 10, 2));
        assert!(matches!(view.read_on_cudarc(&own), Err(Error::Stale { .. })));
    });
}

#[test]
fn an_output_is_the_destination_of_cudarcs_copies() {
    let Some(_turn) = turn() else { return };
    with_cudarc(|context| {
        let (own, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let lab = Lab::on(Executor::from_cudarc(&own).unwrap());
        let arena = Arena::new(&lab.executor);
        let values = counting(9, 1000);
        let call = lab.executor.begin(&arena).unwrap();
        let mut output = call.output::<u32>(1000).unwrap();
        let refused = output.as_cudarc(&other).map(drop);
        assert!(matches!(refused, Err(Error::WrongExecutor { operation: "as_cudarc", .. })), "{refused:?}");
        own.memcpy_htod(&values, &mut output.as_cudarc(&own).unwrap()).unwrap();
        let mut second = call.output::<u32>(1000).unwrap();
        let buffer = own.clone_htod(&counting(70, 1000)).unwrap();
        own.memcpy_dtod(&buffer, &mut second.as_cudarc(&own).unwrap()).unwrap();
        let mut zeros = call.output::<u32>(1000).unwrap();
        own.memset_zeros(&mut zeros.as_cudarc(&own).unwrap()).unwrap();
        let views = [output.publish(), second.publish(), zeros.publish()];
        call.finish().unwrap();
        let read: Vec<_> = views.iter().map(|view| view.to_vec().unwrap()).collect();
        assert_eq!(read, [values, counting(70, 1000), vec![0; 1000]]);
        let host = Arena::host();
        let call = host.begin().unwrap();
        let refused = call.output::<u32>(4).unwrap().as_cudarc(&own).map(drop);
        assert!(matches!(refused, Err(Error::HostMemory { .. })), "{refused:?}");
    });
}

#[test]
fn the_default_stream_of_another_context_is_another_stream() {
    let Some(_turn) = turn() else { return };
    with_cudarc(|context| {
        let (own, other) = (context.default_stream(), another_context().default_stream());
        assert_eq!(own.cu_stream(), other.cu_stream(), "the handles are the same");
        let executor = Executor::from_cudarc(&own).unwrap();
        let arena = Arena::new(&executor);
        let call = executor.begin(&arena).unwrap();
        let mut output = call.output::<u32>(4).unwrap();
        assert!(output.as_cudarc(&own).is_ok());
        let refused = output.as_cudarc(&other).map(drop);
        assert!(matches!(refused, Err(Error::WrongExecutor { operation: "as_cudarc", .. })), "{refused:?}");
    });
}
