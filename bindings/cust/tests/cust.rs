//! cust's streams, buffers and device pointers. The driver is linked, and may be one over host memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cust::CudaFlags;
use cust::context::{Context, CurrentContext};
use cust::device::Device;
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::{Stream, StreamFlags};
use device_arena::backend::Cuda;
use device_arena::{Arena, ArenaOptions, Error, Executor, View};
use device_arena_cust::{ContextStream, CustCall, CustGuard, CustOutput};

static TURNS: Mutex<()> = Mutex::new(());

/// A context, one test at a time; none where there is no device, which is printed, or a failure where
/// `DEVICE_ARENA_REQUIRE` names it.
fn context() -> Option<(Context, MutexGuard<'static, ()>)> {
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = Cuda::load() {
        let required = std::env::var("DEVICE_ARENA_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|name| name == "cuda"), "cuda is required: {error}");
        println!("backend skipped: cuda ({error})");
        return None;
    }
    cust::init(CudaFlags::empty()).unwrap();
    Some((Context::new(Device::get_device(0).unwrap()).unwrap(), turn))
}

fn counting(len: u32) -> Vec<u32> {
    (0..len).collect()
}

/// A view of `0, 1, 2` and so on.
fn counted(executor: &Executor, arena: &Arena, len: u32) -> View<u32> {
    let call = executor.begin(arena).unwrap();
    let view = call.output_from_slice(&counting(len)).unwrap().publish();
    call.finish().unwrap();
    view
}

/// What the device has at an address, by the stream's own copy.
///
/// # Safety
///
/// There are as many bytes.
unsafe fn bytes_at(address: *const u8, bytes: usize, stream: &Stream) -> Vec<u8> {
    let mut copy = vec![0u8; bytes];
    // SAFETY: both ends are that long, and the stream is waited for.
    let code = unsafe {
        cust::sys::cuMemcpyDtoHAsync_v2(
            copy.as_mut_ptr().cast(),
            address.addr() as u64,
            bytes,
            stream.as_inner(),
        )
    };
    assert_eq!(code, cust::sys::cudaError_enum::CUDA_SUCCESS);
    stream.synchronize().unwrap();
    copy
}

#[test]
fn a_stream_of_custs_is_an_executor_and_lives_as_long() {
    let Some((context, _turn)) = context() else { return };
    let stream = ContextStream::new(context, None).unwrap();
    let theirs = Arc::downgrade(stream.stream());
    let executor = stream.executor().unwrap();
    assert_eq!(executor.stream().unwrap().addr(), stream.stream().as_inner().addr());
    assert_eq!(executor, stream.executor().unwrap());
    drop(stream);
    let arena = Arena::new(&executor);
    drop(executor.clone());
    for round in 1..4 {
        assert_eq!(counted(&executor, &arena, 9000 * round).to_vec().unwrap(), counting(9000 * round));
    }
    drop(executor);
    assert!(theirs.upgrade().is_some(), "the arena keeps it");
    drop(arena);
    assert!(theirs.upgrade().is_none());
}

#[test]
fn a_stream_that_is_there_already_is_taken_and_the_current_context_stays() {
    let Some((context, _turn)) = context() else { return };
    let stream = Arc::new(Stream::new(StreamFlags::DEFAULT, None).unwrap());
    // SAFETY: it was made in that context just now.
    let stream = unsafe { ContextStream::of(stream, context) };
    let executor = stream.executor().unwrap();
    let arena = Arena::new(&executor);
    assert_eq!(counted(&executor, &arena, 100).to_vec().unwrap(), counting(100));
    let current = CurrentContext::get_device().unwrap();
    assert_eq!(current.as_raw(), executor.ordinal() as i32);
}

#[test]
fn a_stream_is_made_in_its_context_where_another_is_current_or_none() {
    let Some((context, _turn)) = context() else { return };
    std::thread::scope(|threads| {
        let worker = threads.spawn(|| {
            let stream = ContextStream::new(context, None).unwrap();
            assert!(CurrentContext::get_device().is_err(), "nothing was current, and nothing is");
            let executor = stream.executor().unwrap();
            let arena = Arena::new(&executor);
            assert_eq!(counted(&executor, &arena, 100).to_vec().unwrap(), counting(100));
        });
        worker.join().unwrap();
    });
    if Device::num_devices().unwrap() < 2 {
        println!("skipped: the second device's context: needs two ordinals");
        return;
    }
    let second = Context::new(Device::get_device(1).unwrap()).unwrap();
    let first = Context::new(Device::get_device(0).unwrap()).unwrap();
    let stream = ContextStream::new(second, None).unwrap();
    assert_eq!(CurrentContext::get_device().unwrap().as_raw(), 0);
    assert_eq!(stream.executor().unwrap().ordinal(), 1);
    drop(first);
}

#[test]
fn a_buffer_of_custs_is_a_tape() {
    let Some((context, _turn)) = context() else { return };
    let stream = ContextStream::new(context, None).unwrap();
    let executor = stream.executor().unwrap();
    let buffer = DeviceBuffer::from_slice(b"onetwothree").unwrap();
    let arena = Arena::new(&executor);
    let call = executor.begin(&arena).unwrap();
    let tape = call.stage_cust(&buffer, &[0u32, 3, 6, 11], &stream).unwrap();
    assert_eq!(tape.bytes_ptr().addr() as u64, buffer.as_device_ptr().as_raw(), "used where it is");
    assert_eq!((tape.len(), tape.byte_len()), (3, 11));
    // SAFETY: the tape has 11 bytes and 4 offsets.
    let (bytes, offsets) = unsafe {
        (
            bytes_at(tape.bytes_ptr(), 11, stream.stream()),
            bytes_at(tape.offsets_ptr().cast(), 32, stream.stream()),
        )
    };
    assert_eq!(bytes, b"onetwothree");
    let offsets: Vec<u64> =
        offsets.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    assert_eq!(offsets, [0, 3, 6, 11]);
    call.finish().unwrap();
    // No bytes at all are a tape too.
    let empty = DeviceBuffer::<u8>::from_slice(&[]).unwrap();
    let call = executor.begin(&arena).unwrap();
    assert_eq!(call.stage_cust(&empty, &[0u64, 0], &stream).unwrap().len(), 1);
}

#[test]
fn bounds_are_the_buffers_and_the_stream_is_the_executors() {
    let Some((context, _turn)) = context() else { return };
    let stream = ContextStream::new(context.clone(), None).unwrap();
    let other = ContextStream::new(context, None).unwrap();
    let executor = stream.executor().unwrap();
    let buffer = DeviceBuffer::from_slice(b"one").unwrap();
    let arena = Arena::new(&executor);
    let call = executor.begin(&arena).unwrap();
    let refused = call.stage_cust(&buffer, &[0u32, 4], &stream).map(drop);
    assert!(matches!(refused, Err(Error::Tape { index: 1, .. })), "{refused:?}");
    let refused = call.stage_cust(&buffer, &[0u32, 3], &other).map(drop);
    assert!(matches!(refused, Err(Error::WrongExecutor { operation: "stage_cust", .. })), "{refused:?}");
    let host = Arena::host();
    let on_host = host.begin().unwrap();
    let refused = on_host.stage_cust(&buffer, &[0u32, 3], &stream).map(drop);
    assert!(matches!(refused, Err(Error::HostMemory { operation: "stage_cust" })), "{refused:?}");
}

#[test]
fn what_is_queued_without_a_stream_has_passed_before_the_tape_is_read() {
    let Some((context, _turn)) = context() else { return };
    let stream = ContextStream::new(context, None).unwrap();
    let executor = stream.executor().unwrap();
    let arena = Arena::new(&executor);
    let mut buffer = DeviceBuffer::from_slice(&vec![1u8; 1 << 20]).unwrap();
    for value in 2..20 {
        buffer.set_8(value).unwrap();
        let call = executor.begin(&arena).unwrap();
        let tape = call.stage_cust(&buffer, &[0u32, 1 << 20], &stream).unwrap();
        // SAFETY: the tape has as many bytes.
        let bytes = unsafe { bytes_at(tape.bytes_ptr(), 1 << 20, stream.stream()) };
        assert!(bytes.iter().all(|&byte| byte == value), "{value}");
        call.finish().unwrap();
    }
}

#[test]
fn a_buffer_of_another_device_is_copied_before_it_can_go() {
    let Some((context, _turn)) = context() else { return };
    if Device::num_devices().unwrap() < 2 {
        println!("skipped: needs two ordinals");
        return;
    }
    let second = Context::new(Device::get_device(1).unwrap()).unwrap();
    let buffer = DeviceBuffer::from_slice(&vec![7u8; 1 << 20]).unwrap();
    let stream = ContextStream::new(context, None).unwrap();
    let executor = stream.executor().unwrap();
    let arena = Arena::new(&executor);
    let call = executor.begin(&arena).unwrap();
    let tape = call.stage_cust(&buffer, &[0u32, 1 << 20], &stream).unwrap();
    assert_ne!(tape.bytes_ptr().addr() as u64, buffer.as_device_ptr().as_raw());
    let (copy, bytes) = (tape.bytes_ptr(), tape.byte_len());
    drop(buffer);
    // SAFETY: the copy is in the arena, which the call holds.
    assert_eq!(unsafe { bytes_at(copy, bytes, stream.stream()) }, vec![7u8; 1 << 20]);
    call.finish().unwrap();
    drop(second);
}

#[test]
fn views_and_outputs_are_device_pointers_of_custs() {
    let Some((context, _turn)) = context() else { return };
    let stream = ContextStream::new(context, None).unwrap();
    let executor = stream.executor().unwrap();
    let (first, second) = (Arena::new(&executor), Arena::new(&executor));
    let view = counted(&executor, &first, 1000);
    let guard = view.read_on(&executor).unwrap();
    let call = executor.begin(&second).unwrap();
    let mut output = call.output::<u32>(1000).unwrap();
    let (to, from) = (output.cust_ptr().unwrap(), guard.cust_ptr());
    assert_eq!(from.as_ptr(), guard.device_ptr());
    // SAFETY: both ends are 4000 bytes, and the stream orders the copy.
    let code =
        unsafe { cust::sys::cuMemcpyAsync(to.as_raw(), from.as_raw(), 4000, stream.stream().as_inner()) };
    assert_eq!(code, cust::sys::cudaError_enum::CUDA_SUCCESS);
    drop(guard);
    let copy = output.publish();
    call.finish().unwrap();
    assert_eq!(copy.to_vec().unwrap(), counting(1000));
    let host = Arena::host();
    let call = host.begin().unwrap();
    let refused = call.output::<u32>(4).unwrap().cust_ptr();
    assert!(matches!(refused, Err(Error::HostMemory { .. })), "{refused:?}");
}

#[test]
fn another_stream_of_custs_reads_a_view_in_order() {
    let Some((context, _turn)) = context() else { return };
    let ours = ContextStream::new(context.clone(), None).unwrap().executor().unwrap();
    let stream = ContextStream::new(context, None).unwrap();
    let theirs = stream.executor().unwrap();
    let arena = Arena::new(&ours);
    for len in [1000, 2000, 500] {
        let view = counted(&ours, &arena, len);
        let guard = view.read_on(&theirs).unwrap();
        // SAFETY: the guard holds as many values.
        let bytes = unsafe { bytes_at(guard.cust_ptr().as_ptr().cast(), len as usize * 4, stream.stream()) };
        let expected: Vec<u8> = counting(len).into_iter().flat_map(u32::to_ne_bytes).collect();
        assert_eq!(bytes, expected);
    }
}

#[test]
fn a_buffer_of_custs_is_whole_after_a_call_has_used_it() {
    let Some((context, _turn)) = context() else { return };
    let stream = ContextStream::new(context, None).unwrap();
    let executor = stream.executor().unwrap();
    let arena = Arena::new(&executor);
    let buffer = DeviceBuffer::from_slice(b"whole").unwrap();
    let call = executor.begin(&arena).unwrap();
    call.stage_cust(&buffer, &[0u32, 5], &stream).unwrap();
    call.finish().unwrap();
    executor.begin(&arena).unwrap().finish().unwrap();
    drop((arena, executor));
    let mut copy = [0u8; 5];
    buffer.copy_to(&mut copy).unwrap();
    assert_eq!(&copy, b"whole");
}

#[test]
fn a_tape_that_is_refused_has_left_nothing_that_reads_the_buffer() {
    let Some((context, _turn)) = context() else { return };
    if Device::num_devices().unwrap() < 2 {
        println!("skipped: needs two ordinals");
        return;
    }
    let second = Context::new(Device::get_device(1).unwrap()).unwrap();
    let buffer = DeviceBuffer::from_slice(&vec![7u8; 1 << 20]).unwrap();
    let stream = ContextStream::new(context, None).unwrap();
    let executor = stream.executor().unwrap();
    // There is room for the bytes and not for the offsets.
    let options = ArenaOptions::new().first_capacity(2 << 20).byte_limit(2 << 20);
    let arena = options.build(&executor).unwrap();
    let call = executor.begin(&arena).unwrap();
    let refused = call.stage_cust(&buffer, &vec![0u32; 1 << 20], &stream).map(drop);
    assert!(matches!(refused, Err(Error::OverLimit { .. })), "{refused:?}");
    drop(buffer);
    executor.synchronize().unwrap();
    call.finish().unwrap();
    drop(second);
}
