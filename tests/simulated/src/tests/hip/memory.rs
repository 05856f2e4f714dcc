//! Memory, copies and the order of streams.

use super::*;

#[test]
fn bytes_go_there_and_back() {
    let _turn = turn();
    let (stream, memory) = (stream(), device_memory(1000));
    let sent: Vec<u8> = (0..1000_u32).map(|index| (index * 7 % 251) as u8).collect();
    unsafe {
        let from = sent.as_ptr().cast_mut().cast();
        // To the device, then by any way, then refused: it is not what the addresses are.
        assert_eq!(hipMemcpyAsync(memory, from, 1000, 1, stream), 0);
        for wrong in [0, 2, 3, 5, 99] {
            assert_eq!(hipMemcpyAsync(memory, from, 1000, wrong, stream), 21, "{wrong}");
        }
        assert_eq!(hipMemcpyAsync(null(), from, 1000, 4, stream), 1);
        assert_eq!(hipMemcpyAsync(null(), from, 0, 4, stream), 0);
        assert!(bytes_at(memory, 1000, stream) == sent);
        assert_eq!(hipMemsetD8Async(memory, 9, 500, stream), 0);
        assert!(bytes_at(memory, 500, stream) == [9; 500]);
        assert_eq!(hipFree(memory), 0);
        assert_eq!(hipFree(memory), 1);
        assert_eq!(hipFree(null()), 0);
        assert_eq!(hipStreamDestroy(stream), 0);
    }
}

#[test]
fn no_bytes_have_no_address() {
    let _turn = turn();
    let mut place = 77 as Handle;
    unsafe {
        assert_eq!((hipMalloc(&mut place, 0), place), (0, null()));
        place = 77 as Handle;
        assert_eq!((hipHostMalloc(&mut place, 0, 0), place), (0, null()));
        assert_eq!(hipMalloc(std::ptr::null_mut(), 8), 1);
        assert_eq!(hipMalloc(&mut place, 1 << 40), 2);
        let (mut free, mut total) = (0, 0);
        assert_eq!(hipMemGetInfo(&mut free, &mut total), 0);
        assert_eq!((free, total), (1 << 30, 1 << 30));
    }
}

#[test]
fn flags_of_pinned_memory() {
    let _turn = turn();
    let mut place = null();
    for flags in [0, 1, 2, 4, 7, 0x4000_0000, 0x8000_0000, 0x2000_0000] {
        unsafe {
            assert_eq!(hipHostMalloc(&mut place, 64, flags), 0, "{flags:#x}");
            // It is the process's to use.
            place.cast::<u8>().write(1);
            assert_eq!(hipHostFree(place), 0);
        }
    }
    for flags in [0xC000_0000, 8, 0x1000_0000] {
        unsafe { assert_eq!(hipHostMalloc(&mut place, 64, flags), 1, "{flags:#x}") };
    }
    unsafe {
        assert_eq!(hipHostFree(null()), 0);
        assert_eq!(hipHostFree(device_memory(8)), 1);
        assert_eq!(hipHostUnregister(0x1000 as Handle), 713);
    }
    device_arena_free_all();
}

/// Frees what a test has left on purpose.
fn device_arena_free_all() {
    let starts: Vec<usize> = lock().memory.allocations.keys().copied().collect();
    for start in starts {
        unsafe { assert_eq!(hipFree(start as Handle), 0) };
    }
}
