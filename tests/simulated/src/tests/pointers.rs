//! What pointer queries answer, as it was measured on the real driver.

use super::*;

#[derive(Debug, PartialEq)]
struct Answer {
    kind: u64,
    managed: u64,
    ordinal: i32,
    has_context: bool,
    id: u64,
    start: u64,
    bytes: u64,
    mapped: u64,
    pool: bool,
}

const UNKNOWN: Answer = Answer {
    kind: 0,
    managed: 0,
    ordinal: -2,
    has_context: false,
    id: 0,
    start: 0,
    bytes: 0,
    mapped: 0,
    pool: false,
};

fn ask(address: u64) -> Answer {
    // Type, managed, ordinal, context, id, start, size, mapped, pool.
    let ids = [2, 8, 9, 1, 7, 11, 12, 13, 17];
    let mut slots = [0_u64; 9];
    let mut places = slots.each_mut().map(|slot| std::ptr::from_mut(slot).cast());
    assert_eq!(unsafe { cuPointerGetAttributes(9, ids.as_ptr(), places.as_mut_ptr(), address) }, 0);
    let [kind, managed, ordinal, context, id, start, bytes, mapped, pool] = slots;
    Answer {
        kind,
        managed,
        ordinal: ordinal as u32 as i32,
        has_context: context != 0,
        id,
        start,
        bytes,
        mapped,
        pool: pool != 0,
    }
}

#[test]
fn the_table() {
    let _turn = turn();
    let (local, device, host) = (0_u8, device_memory(1000), pinned(1000) as u64);
    let mut managed = 0;
    let mut pool = 0;
    let mut registered = vec![0_u8; 8192];
    let page = registered.as_mut_ptr();
    unsafe {
        assert_eq!(cuMemAllocManaged(&mut managed, 1000, 1), 0);
        assert_eq!(cuMemAllocAsync(&mut pool, 1000, null()), 0);
        assert_eq!(cuMemHostRegister_v2(page.cast(), 8192, 0), 0);
        assert_eq!(cuMemHostRegister_v2(page.add(100).cast(), 8, 0), 712);
    }
    for address in
        [0, 0x10, std::ptr::from_ref(&local) as u64, device + 1000, host + 1000, page as u64 + 8192]
    {
        assert_eq!(ask(address), UNKNOWN, "{address:#x}");
        let mut kind = 9_u32;
        unsafe { assert_eq!(cuPointerGetAttribute((&raw mut kind).cast(), 2, address), 1) };
        assert_eq!(kind, 9);
    }
    let mut ids = Vec::new();
    for (address, bytes, kind) in
        [(device, 1000, 2), (host, 1000, 1), (managed, 1000, 2), (pool, 1000, 2), (page as u64, 8192, 1)]
    {
        for inside in [address, address + 1, address + bytes - 1] {
            let answer = ask(inside);
            let id = answer.id;
            let of_pool = address == pool;
            let expected = Answer {
                kind,
                managed: u64::from(address == managed),
                ordinal: 0,
                has_context: !of_pool,
                id,
                start: address,
                bytes,
                mapped: 1,
                pool: of_pool,
            };
            assert_eq!(answer, expected);
            ids.push(id);
        }
    }
    ids.dedup();
    assert_eq!(ids.len(), 5);
    unsafe {
        assert_eq!(cuMemHostUnregister(page.cast()), 0);
        assert_eq!(cuMemHostUnregister(page.cast()), 713);
        assert_eq!(cuMemFree_v2(device), 0);
        assert_eq!(cuMemFree_v2(managed), 0);
        assert_eq!(cuMemFreeHost(host as *mut c_void), 0);
        assert_eq!(cuMemFreeAsync(pool, null()), 0);
        assert_eq!(cuStreamSynchronize(null()), 0);
    }
    for address in [page as u64, device, managed, host, pool] {
        assert_eq!(ask(address), UNKNOWN);
    }
    // The same address again, and another allocation.
    let again = device_memory(1000);
    assert_eq!(again, device);
    assert!(!ids.contains(&ask(again).id));
    unsafe { assert_eq!(cuMemFree_v2(again), 0) };
}

#[test]
fn the_widths() {
    let _turn = turn();
    let device = device_memory(64);
    let flags = [6, 8, 10, 13].map(|id| [(id, 4, "13000"), (id, 1, "12000")]);
    let others =
        [(1, 8), (2, 4), (4, 8), (7, 8), (9, 4), (12, 8), (16, 4)].map(|(id, width)| (id, width, "13000"));
    for (id, width, version) in flags.into_iter().flatten().chain(others) {
        set("VERSION", version);
        for address in [device, 0x10] {
            let mut slots = [[0x55_u8; 16], [0xAA; 16]];
            for slot in &mut slots {
                let mut place: *mut c_void = slot.as_mut_ptr().cast();
                unsafe { assert_eq!(cuPointerGetAttributes(1, &id, &mut place, address), 0) };
            }
            // A range that there is not is left as it was.
            let width = if id == 12 && address != device { 0 } else { width };
            // What is the same in both was written.
            let written = slots[0].iter().zip(slots[1]).filter(|&(&a, b)| a == b).count();
            assert_eq!(written, width, "attribute {id}");
        }
    }
}

#[test]
fn unknown_ids_fail_the_batch() {
    let _turn = turn();
    let ask = |ids: &[u32]| {
        let mut slots = [0x55_u64; 4];
        let mut places = slots.each_mut().map(|slot| std::ptr::from_mut(slot).cast());
        let status =
            unsafe { cuPointerGetAttributes(ids.len() as u32, ids.as_ptr(), places.as_mut_ptr(), 0x10) };
        (status, slots[0] == 0x55)
    };
    assert_eq!(ask(&[2, 21]), (0, false));
    assert_eq!(ask(&[2, 22]), (1, true));
    assert_eq!(ask(&[2, 0]), (1, true));
    assert_eq!(ask(&[2, 16]), (0, false));
    assert_eq!(ask(&[]), (1, true));
    set("VERSION", "12000");
    assert_eq!(ask(&[2, 21]), (1, true));
}
