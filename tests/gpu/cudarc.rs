//! cudarc's streams, buffers and device pointers.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr};
use device_arena::{Arena, Error, Executor};

use crate::driver;
use crate::lab::{Lab, counting};
use crate::turn::turn_of_nvidia;

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
    let Some(_turn) = turn_of_nvidia("cudarc") else { return };
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
    let Some(_turn) = turn_of_nvidia("cudarc") else { return };
    with_cudarc(|context| {
        let stream = context.per_thread_stream();
        let refused = Executor::from_cudarc(&stream).unwrap_err();
        assert!(matches!(refused, Error::WrongVendor { operation: "adopt_stream", .. }), "{refused}");
        assert_eq!(Arc::strong_count(&stream), 1);
    });
}

#[test]
fn a_context_of_its_own_is_the_streams() {
    let Some(_turn) = turn_of_nvidia("cudarc") else { return };
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
    let Some(_turn) = turn_of_nvidia("cudarc") else { return };
    with_cudarc(|context| {
        let (theirs, ours) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let lab = Lab::on(Executor::from_cudarc(&ours).unwrap());
        let buffer = bytes(&theirs, b"onetwothree");
        let arena = Arena::new(&lab.executor);
        let call = lab.executor.begin(&arena).unwrap();
        let (staged, ordered) = call.stage_cudarc(&buffer, &[0u32, 3, 6, 11], &ours).unwrap();
        assert_eq!(staged.bytes_ptr().addr() as u64, buffer.device_ptr(&ours).0, "used where it is");
        let sums = lab.sums(&call, &staged);
        call.finish().unwrap();
        drop(ordered);
        let sum = |text: &[u8]| text.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        assert_eq!(sums.to_vec().unwrap(), [sum(b"one"), sum(b"two"), sum(b"three")]);
        // Bounds are the buffer's, and the stream is the executor's.
        let call = lab.executor.begin(&arena).unwrap();
        let refused = call.stage_cudarc(&buffer, &[0u32, 12], &ours).map(drop);
        assert!(matches!(refused, Err(Error::Tape { index: 1, .. })), "{refused:?}");
        let refused = call.stage_cudarc(&buffer, &[0u32, 3], &theirs).map(drop);
        assert!(matches!(refused, Err(Error::WrongExecutor { .. })), "{refused:?}");
        // A part of a buffer is one too.
        let part = buffer.slice(3..6);
        let (staged, _ordered) = call.stage_cudarc(&part, &[0u64, 3], &ours).unwrap();
        assert_eq!(staged.byte_len(), 3);
        let host = Arena::host();
        let call = host.begin().unwrap();
        let refused = call.stage_cudarc(&buffer, &[0u32, 3], &ours).map(drop);
        assert!(matches!(refused, Err(Error::HostMemory { .. })), "{refused:?}");
    });
}

#[test]
fn views_and_outputs_are_device_pointers_of_cudarcs() {
    let Some(_turn) = turn_of_nvidia("cudarc") else { return };
    with_cudarc(|context| {
        let stream = context.new_stream().unwrap();
        let lab = Lab::on(Executor::from_cudarc(&stream).unwrap());
        let (first, second) = (Arena::new(&lab.executor), Arena::new(&lab.executor));
        let view = lab.filled(&first, 1000, 50);
        let guard = view.read_on(&lab.executor).unwrap();
        let call = lab.executor.begin(&second).unwrap();
        let mut output = call.output::<u32>(1000).unwrap();
        let (to, from) = (output.cu_device_ptr().unwrap(), guard.cu_device_ptr());
        // SAFETY: both ends are 4000 bytes, and the stream orders the copy.
        unsafe { cudarc::driver::result::memcpy_dtod_async(to, from, 4000, stream.cu_stream()) }.unwrap();
        drop(guard);
        let copy = output.publish();
        call.finish().unwrap();
        assert_eq!(copy.to_vec().unwrap(), counting(50, 1000));
        let host = Arena::host();
        let call = host.begin().unwrap();
        let refused = call.output::<u32>(4).unwrap().cu_device_ptr();
        assert!(matches!(refused, Err(Error::HostMemory { .. })), "{refused:?}");
    });
}

#[test]
fn the_default_stream_of_another_context_is_another_stream() {
    let Some(_turn) = turn_of_nvidia("cudarc") else { return };
    with_cudarc(|context| {
        let (own, other) = (context.default_stream(), another_context().default_stream());
        assert_eq!(own.cu_stream(), other.cu_stream(), "the handles are the same");
        let executor = Executor::from_cudarc(&own).unwrap();
        let arena = Arena::new(&executor);
        let buffer = bytes(&own, b"one");
        let call = executor.begin(&arena).unwrap();
        assert!(call.stage_cudarc(&buffer, &[0u32, 3], &own).is_ok());
        let refused = call.stage_cudarc(&buffer, &[0u32, 3], &other).map(drop);
        assert!(
            matches!(refused, Err(Error::WrongExecutor { operation: "stage_cudarc", .. })),
            "{refused:?}"
        );
    });
}
