//! The room of a call as an allocator: collections in it, and what is left of them for later calls to see.
#![cfg(feature = "allocator-api2")]

use std::alloc::Layout;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use device_arena::{Arena, ArenaOptions, Growth, Scrub};
use proptest::prelude::*;

/// A type with padding, which a typed copy leaves uninitialised.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Padded(u8, u64);

#[test]
fn collections_grow_beside_outputs() {
    let arena = Arena::host();
    for _ in 0..3 {
        let call = arena.begin().unwrap();
        let mut first = Vec::new_in(call.host().unwrap());
        let mut second = Vec::new_in(call.host().unwrap());
        let mut outputs = std::vec::Vec::new();
        for i in 0..1000u32 {
            first.push(Padded(i as u8, u64::from(i)));
            second.push(Box::new_in(i, call.host().unwrap()));
            if i % 100 == 0 {
                outputs.push(call.output_from_slice(&[0xFFu8; 100]).unwrap());
            }
        }
        assert!(first.iter().zip(0u32..).all(|(value, i)| *value == Padded(i as u8, u64::from(i))));
        assert!(second.iter().zip(0..).all(|(value, i)| **value == i));
        assert!(outputs.iter().all(|output| output.as_slice().unwrap() == [0xFF; 100]));
        drop((first, second, outputs));
        call.finish().unwrap();
    }
    let stats = arena.stats();
    assert_eq!(stats.allocations - stats.frees, 1);
}

#[test]
fn a_lone_collection_grows_in_place_and_is_given_back() {
    let arena = ArenaOptions::new().first_capacity(1 << 20).build_host().unwrap();
    let call = arena.begin().unwrap();
    let mut values = Vec::new_in(call.host().unwrap());
    values.push(0u64);
    let address = values.as_ptr();
    values.extend(1..10_000);
    assert_eq!(values.as_ptr(), address);
    values.shrink_to(100);
    drop(values);
    assert_eq!(arena.stats().bytes_used, 0);
    let output = call.output::<u8>(1 << 16).unwrap();
    assert!(output.as_slice().unwrap().iter().all(|&byte| byte == 0), "zeroed before reuse");
    drop(output);
    call.finish().unwrap();
}

#[test]
fn what_a_collection_left_is_zeroed_before_another_call_sees_it() {
    for growth in [Growth::Exact, Growth::default()] {
        let arena = ArenaOptions::new().growth(growth).first_capacity(1).build_host().unwrap();
        for _ in 0..3 {
            let call = arena.begin().unwrap();
            let mut kept = Vec::new_in(call.host().unwrap());
            kept.resize(3000, 0xEEu8);
            let between = call.output_from_slice(&[0xDDu8; 64]).unwrap().publish();
            let mut more = Vec::new_in(call.host().unwrap());
            more.resize(9000, 0xCCu8);
            std::mem::forget((kept, more));
            drop(between);
            call.finish().unwrap();
            let call = arena.begin().unwrap();
            let output = call.output::<u8>(12_000).unwrap();
            assert!(!output.as_slice().unwrap().iter().any(|byte| matches!(byte, 0xEE | 0xCC)));
            drop(output);
            call.finish().unwrap();
        }
    }
}

#[test]
fn layouts_that_cannot_be() {
    let arena = ArenaOptions::new().byte_limit(1 << 16).scrub(Scrub::Zero).build_host().unwrap();
    let call = arena.begin().unwrap();
    let allocator = call.host().unwrap();
    assert!(allocator.allocate(Layout::from_size_align(1, 8192).unwrap()).is_err());
    assert!(allocator.allocate(Layout::from_size_align(isize::MAX as usize, 1).unwrap()).is_err());
    assert!(allocator.allocate(Layout::from_size_align(1 << 17, 1).unwrap()).is_err());
    let none = allocator.allocate(Layout::from_size_align(0, 1 << 20).unwrap()).unwrap();
    assert_eq!(none.cast::<u8>().as_ptr().addr() % (1 << 20), 0);
    assert_eq!(arena.stats().allocations, 0);
    call.finish().unwrap();
}

#[derive(Debug, Clone)]
enum Step {
    Allocate(usize, usize),
    Resize(usize, usize, usize),
    Free(usize),
    Output(usize),
}

fn steps() -> impl Strategy<Value = std::vec::Vec<Step>> {
    let align = (0u32..13).prop_map(|shift| 1usize << shift);
    let step = prop_oneof![
        (0usize..3000, align.clone()).prop_map(|(size, align)| Step::Allocate(size, align)),
        (any::<usize>(), 0usize..6000, align).prop_map(|(i, size, align)| Step::Resize(i, size, align)),
        any::<usize>().prop_map(Step::Free),
        (0usize..2000).prop_map(Step::Output),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Allocations keep their bytes through moves, and never overlap another or an output.
    #[test]
    fn allocations_keep_their_bytes(programs in prop::collection::vec(steps(), 1..4)) {
        let arena = ArenaOptions::new().first_capacity(1).build_host().unwrap();
        for steps in programs {
            let call = arena.begin().unwrap();
            let allocator = call.host().unwrap();
            let mut live: std::vec::Vec<(std::ptr::NonNull<u8>, Layout, u8)> = std::vec::Vec::new();
            let mut outputs = std::vec::Vec::new();
            let holds = |address: std::ptr::NonNull<u8>, bytes: usize, tag: u8| {
                // SAFETY: the test wrote all bytes of the allocation.
                unsafe { std::slice::from_raw_parts(address.as_ptr(), bytes) }.iter().all(|&byte| byte == tag)
            };
            for (step, tag) in steps.into_iter().zip(1u8..) {
                match step {
                    Step::Allocate(size, align) => {
                        let layout = Layout::from_size_align(size, align).unwrap();
                        let address = allocator.allocate(layout).unwrap().cast::<u8>();
                        // SAFETY: the allocation is of `size` bytes.
                        unsafe { address.write_bytes(tag, size) };
                        live.push((address, layout, tag));
                    }
                    Step::Resize(index, size, align) if !live.is_empty() => {
                        let index = index % live.len();
                        let (address, old, tag) = live[index];
                        let new = Layout::from_size_align(size, align).unwrap();
                        // SAFETY: the allocation is live and of the old layout; what grows is written whole.
                        let moved = unsafe {
                            if size >= old.size() {
                                let moved = allocator.grow(address, old, new).unwrap().cast::<u8>();
                                prop_assert!(holds(moved, old.size(), tag));
                                moved.write_bytes(tag, size);
                                moved
                            } else {
                                allocator.shrink(address, old, new).unwrap().cast::<u8>()
                            }
                        };
                        live[index] = (moved, new, tag);
                    }
                    Step::Free(index) if !live.is_empty() => {
                        let (address, layout, tag) = live.swap_remove(index % live.len());
                        prop_assert!(holds(address, layout.size(), tag));
                        // SAFETY: the allocation is live and of this layout.
                        unsafe { allocator.deallocate(address, layout) };
                    }
                    Step::Output(len) => outputs.push(call.output_from_fn(len, |_| 0xFFu8).unwrap()),
                    Step::Resize(..) | Step::Free(_) => {}
                }
                for (address, layout, tag) in &live {
                    prop_assert_eq!(address.as_ptr().addr() % layout.align(), 0);
                    prop_assert!(holds(*address, layout.size(), *tag));
                }
                let intact = |output: &device_arena::Output<u8>| {
                    output.as_slice().unwrap().iter().all(|&byte| byte == 0xFF)
                };
                prop_assert!(outputs.iter().all(intact));
            }
            drop(outputs);
            call.finish().unwrap();
        }
    }
}
