//! Memory that is in two places.

use super::*;
use crate::structures::{AccessDescription, AllocationProperties, Location, SharedMemory};

fn attribute(id: u32, address: u64) -> u64 {
    let (mut slot, ids) = (0_u64, [id]);
    let mut place: *mut c_void = (&raw mut slot).cast();
    assert_eq!(unsafe { cuPointerGetAttributes(1, ids.as_ptr(), &mut place, address) }, 0);
    slot
}

#[test]
fn a_handle_is_for_other_processes() {
    let _turn = turn();
    let memory = device_memory(5000);
    let mut handle = SharedMemory { bytes: [0; 64] };
    let (mut opened, mut again, inside) = (0, 0, 100);
    let (mut base, mut bytes) = (0, 0);
    unsafe {
        assert_eq!(cuIpcGetMemHandle(&mut handle, memory + inside), 0);
        assert_eq!(cuIpcOpenMemHandle_v2(&mut opened, handle, 0), 1);
        assert_eq!(cuIpcOpenMemHandle_v2(&mut opened, handle, 1), 201);
        set("IPC_FOREIGN", "1");
        assert_eq!(cuIpcOpenMemHandle_v2(&mut opened, handle, 1), 0);
        assert_eq!(cuMemGetAddressRange_v2(&mut base, &mut bytes, opened), 0);
        assert_eq!((base, bytes), (opened - inside, 5000));
        assert_eq!([attribute(2, opened), attribute(9, opened)], [2, 0]);
        assert_eq!(cuMemsetD8Async(memory, 6, 5000, null()), 0);
        assert_eq!(bytes_at(base, 5000, null()), [6; 5000]);
        assert_eq!((cuIpcOpenMemHandle_v2(&mut again, handle, 1), again), (0, opened));
        assert_eq!([cuIpcCloseMemHandle(opened), cuIpcCloseMemHandle(opened)], [0; 2]);
        assert_eq!(cuIpcCloseMemHandle(opened), 1);
        assert_eq!(cuMemFree_v2(memory), 0);
        assert_eq!(cuIpcOpenMemHandle_v2(&mut opened, handle, 1), 205);
    }
}

#[test]
fn registered_memory_elsewhere() {
    let _turn = turn();
    set("REGISTER_ALIAS", "1");
    let mut memory = vec![7_u8; 5000];
    let own = memory.as_mut_ptr();
    let (mut there, mut base, mut bytes) = (0, 0, 0);
    unsafe {
        assert_eq!(cuMemHostRegister_v2(own.cast(), 5000, 0), 0);
        assert_eq!(cuMemHostGetDevicePointer_v2(&mut there, own.cast(), 0), 0);
        assert_ne!(there, own as u64);
        for address in [own as u64 + 5, there + 5] {
            let both = [attribute(3, address), attribute(4, address), attribute(2, address)];
            assert_eq!(both, [there + 5, own as u64 + 5, 1]);
        }
        assert_eq!(cuMemGetAddressRange_v2(&mut base, &mut bytes, there + 4999), 0);
        assert_eq!((base, bytes), (there, 5000));
        // The process has it where it was, and nowhere else.
        assert!(is_readable(own as u64) && !is_readable(there));
        assert_eq!(cuMemsetD8Async(there, 9, 100, null()), 0);
        assert_eq!(cuStreamSynchronize(null()), 0);
        assert_eq!((memory[99], memory[100]), (9, 7));
        assert_eq!(cuMemHostUnregister(there as *mut c_void), 713);
        assert_eq!(cuMemHostUnregister(own.cast()), 0);
        assert_eq!(attribute(2, there), 0);
    }
}

#[test]
fn a_descriptor_is_the_same_memory() {
    const GRANULE: usize = 2 << 20;
    let _turn = turn();
    let location = Location { kind: 1, id: 0 };
    let wanted = AllocationProperties { kind: 1, handle_types: 1, location, win32: 0, flags: [0; 8] };
    let access = AccessDescription { location, flags: 3 };
    let (mut memory, mut other, mut file, mut place) = (0, 0, -1, 0);
    unsafe {
        assert_eq!(cuMemCreate(&mut memory, GRANULE, &wanted, 0), 0);
        assert_eq!(cuMemExportToShareableHandle((&raw mut file).cast(), memory, 1, 0), 0);
        assert_eq!(cuMemImportFromShareableHandle(&mut other, file as usize as Handle, 1), 0);
        assert_eq!(libc::close(file), 0);
        assert_eq!(live("device_bytes"), GRANULE as u64);
        assert_eq!(cuMemAddressReserve(&mut place, 2 * GRANULE, 0, 0, 0), 0);
        assert_eq!(cuMemMap(place, GRANULE, 0, memory, 0), 0);
        assert_eq!(cuMemMap(place + GRANULE as u64, GRANULE, 0, other, 0), 0);
        assert_eq!(cuMemSetAccess(place, 2 * GRANULE, &access, 1), 0);
        assert_eq!(cuMemsetD8Async(place, 8, GRANULE, null()), 0);
        assert_eq!(bytes_at(place + GRANULE as u64, 16, null()), [8; 16]);
        assert_eq!(cuMemUnmap(place, 2 * GRANULE), 0);
        for memory in [memory, other] {
            assert_eq!(cuMemRelease(memory), 0);
        }
        assert_eq!(cuMemAddressFree(place, 2 * GRANULE), 0);
    }
}
