//! Sizes, lengths, alignments and limits.

use device_arena::{Arena, ArenaOptions, Error, Executor, Growth, Placement, Pod, Status, View};

#[test]
fn byte_sizes_that_overflow() {
    let arena = Arena::host();
    let mut call = arena.begin().unwrap();
    for len in [usize::MAX, usize::MAX / 4, usize::MAX / 8 + 1, isize::MAX as usize / 4 + 1] {
        let refused = call.output::<u64>(len).unwrap_err();
        assert!(
            matches!(refused, Error::SizeOverflow { .. } | Error::OutOfMemory { .. }),
            "{len}: {refused}"
        );
        assert!(call.output::<u8>(len).is_err());
        assert!(call.writer_with_capacity::<u64>(len).is_err());
        assert!(call.tape_output_with_capacity(len, 0).is_err());
        assert!(call.scratch(|scope| scope.take::<u64>(len).map(drop)).is_err());
        assert!(arena.begin().is_err());
    }
    let overflow = Error::SizeOverflow { operation: "output", elements: usize::MAX, element_bytes: 8 };
    assert_eq!(call.output::<u64>(usize::MAX).unwrap_err(), overflow);
    assert_eq!(overflow.status(), Status::InvalidArgument);
    let mut writer = call.writer::<u64>().unwrap();
    writer.push(1).unwrap();
    assert!(writer.reserve(usize::MAX).is_err());
    assert_eq!(*writer.as_slice(), [1]);
    drop(writer);
    assert_eq!(arena.stats().bytes_used, 0, "nothing was taken");
    call.finish().unwrap();
    for bytes in [usize::MAX, isize::MAX as usize, 1 << 60] {
        assert!(arena.reserve(bytes).is_err());
    }
    arena.begin().unwrap().finish().unwrap();
}

#[test]
fn no_values_and_values_of_no_size() {
    let arena = Arena::host();
    let mut call = arena.begin().unwrap();
    let none: View<u64> = call.output(0).unwrap().publish();
    let units: View<()> = call.output(usize::MAX).unwrap().publish();
    let mut writer = call.writer::<[u32; 0]>().unwrap();
    writer.extend([[], []]).unwrap();
    let written = writer.publish();
    let empty_tape = call.tape_output().unwrap().publish();
    call.scratch(|scope| {
        assert_eq!(scope.take::<u64>(0).unwrap().len(), 0);
        assert_eq!(scope.take::<()>(5).unwrap().len(), 5);
    });
    call.finish().unwrap();
    assert_eq!(none.read().unwrap().len(), 0);
    assert_eq!(units.read().unwrap().len(), usize::MAX);
    assert_eq!((written.len(), written.byte_len()), (2, 0));
    assert_eq!(units.slice(7..).unwrap().to_vec().unwrap().len(), usize::MAX - 7);
    assert_eq!(none.slice(0..0).unwrap().len(), 0);
    assert!(empty_tape.is_empty() && empty_tape.read().unwrap().tape().iter().unwrap().next().is_none());
    arena.begin().unwrap().finish().unwrap();
    assert!(matches!(none.read(), Err(Error::Stale { .. })));
    let stats = arena.stats();
    assert_eq!(stats.allocations, 1, "the tape's first offset alone took room");
}

#[test]
fn alignments_that_cannot_be() {
    for alignment in [0, 3, 48, 4097, 8192, usize::MAX] {
        let refused = ArenaOptions::new().alignment(alignment).build_host().unwrap_err();
        assert_eq!(refused, Error::Alignment { alignment, largest: 4096 });
    }
    assert_eq!(ArenaOptions::new().alignment(1).build_host().unwrap().alignment(), 64);
    assert_eq!(ArenaOptions::new().alignment(4096).build_host().unwrap().alignment(), 4096);
}

macro_rules! aligned {
    ($name:ident, $align:literal) => {
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[repr(C, align($align))]
        struct $name([u8; $align]);
        // SAFETY: bytes alone, as many as the alignment, so there is no padding.
        unsafe impl bytemuck::Zeroable for $name {}
        // SAFETY: as above.
        unsafe impl Pod for $name {}
    };
}

aligned!(Align256, 256);
aligned!(Align4096, 4096);
aligned!(Align8192, 8192);

#[test]
fn types_aligned_beyond_the_arena_and_beyond_a_block() {
    let arena = ArenaOptions::new().growth(Growth::Exact).first_capacity(1).build_host().unwrap();
    let sizes = |arena: &Arena| {
        let mut call = arena.begin().unwrap();
        let mut addresses = Vec::new();
        for _ in 0..3 {
            let mut small = call.output::<u8>(1).unwrap();
            let mut wide = call.output::<Align256>(2).unwrap();
            let mut page = call.output::<Align4096>(1).unwrap();
            let mut writer = call.writer::<Align256>().unwrap();
            writer.push(Align256([9; 256])).unwrap();
            small.fill(1).unwrap();
            wide.fill(Align256([2; 256])).unwrap();
            page.fill(Align4096([3; 4096])).unwrap();
            addresses.push(wide.as_slice().unwrap().as_ptr().addr() % 256);
            addresses.push(page.as_slice().unwrap().as_ptr().addr() % 4096);
            addresses.push(writer.as_slice().as_ptr().addr() % 256);
            assert_eq!(small.as_slice().unwrap(), [1]);
            assert_eq!(wide.as_slice().unwrap(), [Align256([2; 256]); 2]);
            let aligned = call.scratch(|scope| {
                scope.take::<u8>(3).unwrap();
                scope.take::<Align4096>(1).unwrap().as_ptr().addr() % 4096
            });
            addresses.push(aligned);
        }
        assert!(addresses.iter().all(|&off| off == 0));
        let refused = Error::Alignment { alignment: 8192, largest: 4096 };
        assert_eq!(call.output::<Align8192>(1).unwrap_err(), refused);
        assert_eq!(call.output::<Align8192>(0).unwrap_err(), refused);
        assert_eq!(call.writer::<Align8192>().unwrap_err(), refused);
        assert_eq!(call.scratch(|scope| scope.take::<Align8192>(1).map(drop)).unwrap_err(), refused);
        call.finish().unwrap();
    };
    sizes(&arena);
    sizes(&arena);
    let steady = arena.stats();
    assert_eq!(steady.allocations - steady.frees, 1);
    for _ in 0..10 {
        sizes(&arena);
    }
    assert_eq!(arena.stats().allocations, steady.allocations, "padding is counted in the high-water mark");
}

#[test]
fn a_limit_below_the_first_output() {
    let arena = ArenaOptions::new().byte_limit(8192).build_host().unwrap();
    let call = arena.begin().unwrap();
    let refused = call.output::<u8>(8193).unwrap_err();
    assert_eq!(refused, Error::OverLimit { requested: 12288, reserved: 0, limit: 8192 });
    assert_eq!(refused.status(), Status::OverLimit);
    let view = call.output_from_slice(&[1u8; 8192]).unwrap().publish();
    assert!(call.output::<u8>(1).is_err());
    call.finish().unwrap();
    assert_eq!(*view.read().unwrap(), [1; 8192]);
    assert_eq!(arena.stats().bytes_reserved, 8192, "the first capacity gave way to the limit");
}

#[test]
fn a_placement_on_a_device_that_the_host_does_not_have() {
    let executor = Executor::host().unwrap();
    let on = |placement| ArenaOptions::new().placement(placement).build(&executor);
    assert!(matches!(on(Placement::Device), Err(Error::Option { option: "placement", .. })));
    assert!(on(Placement::Host).is_ok() && on(Placement::HostCoherent).is_ok());
}

#[test]
fn ranges_and_lengths_that_do_not_fit() {
    let arena = Arena::host();
    let call = arena.begin().unwrap();
    let mut output = call.output::<u16>(4).unwrap();
    let mismatch = Error::LengthMismatch { operation: "copy_from_slice", expected: 4, actual: 3 };
    assert_eq!(output.copy_from_slice(&[1, 2, 3]).unwrap_err(), mismatch);
    assert_eq!(output.fill_from_iter([1, 2]).unwrap(), 2);
    assert_eq!(output.fill_from_iter(0..).unwrap(), 4);
    let refused = output.publish_prefix(5).unwrap_err();
    assert_eq!(refused.error, Error::OutOfRange { operation: "publish_prefix", start: 0, end: 5, len: 4 });
    let view = refused.value.publish_prefix(3).unwrap();
    call.finish().unwrap();
    for range in [(0, 4), (3, 2), (4, 4), (usize::MAX, usize::MAX)] {
        assert!(matches!(view.slice(range.0..range.1), Err(Error::OutOfRange { .. })), "{range:?}");
    }
    assert!(view.slice(..=usize::MAX).is_err());
    assert_eq!(view.slice(1..=2).unwrap().to_vec().unwrap(), [1, 2]);
    assert!(matches!(view.copy_to(&mut [0; 2]), Err(Error::LengthMismatch { .. })));
}

#[test]
fn more_memory_than_the_machine_has_left_is_an_error_and_not_a_kill() {
    let Some(total) = Executor::host().unwrap().device().unwrap().total_bytes else {
        println!("skipped: this system does not say how much memory it has");
        return;
    };
    let arena = Arena::host();
    let bytes = usize::try_from(total).unwrap() - 4096;
    match arena.reserve(bytes) {
        Err(Error::OutOfMemory { requested, free: Some(free), total: Some(has), .. }) => {
            assert_eq!((requested, has), (bytes.next_multiple_of(4096), total));
            assert!(free < total);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(arena.stats().bytes_reserved, 0);
}

#[test]
fn a_small_first_call_does_not_refuse_large_ones_for_good() {
    let options = ArenaOptions::new().byte_limit(1 << 20);
    for growth in [Growth::Exact, Growth::default()] {
        let arena = options.growth(growth).build_host().unwrap();
        let output = |bytes: usize| {
            let call = arena.begin().unwrap();
            let outcome = call.output::<u8>(bytes).map(drop);
            call.finish().unwrap();
            outcome
        };
        output(10).unwrap();
        output(1_000_000).unwrap();
        output(10).unwrap();
        for ramp in [100_000, 200_000, 400_000, 500_000, 700_000, 1 << 20] {
            output(ramp).unwrap();
            assert!(arena.stats().bytes_reserved <= 1 << 20);
        }
        assert!(matches!(output((1 << 20) + 1), Err(Error::OverLimit { .. })));
        let steady = arena.stats();
        output(1 << 20).unwrap();
        assert_eq!(arena.stats().allocations, steady.allocations, "{growth:?}");
    }
}

#[test]
fn a_call_that_the_limit_stopped_is_granted_the_next_time() {
    let options = ArenaOptions::new().byte_limit(1 << 20).first_capacity(1);
    for growth in [Growth::Exact, Growth::default()] {
        let arena = options.growth(growth).build_host().unwrap();
        let two = || -> device_arena::Result<()> {
            let call = arena.begin()?;
            let small = call.output_from_slice(&[7u8; 100_000])?.publish();
            let large = call.output::<u8>(900_000)?.publish();
            call.finish()?;
            assert!(small.read()?.iter().all(|&byte| byte == 7) && large.read().is_ok());
            Ok(())
        };
        // The block of an earlier call is in the way at first, and gone at the second try.
        let call = arena.begin().unwrap();
        drop(call.output::<u8>(200_000).unwrap());
        call.finish().unwrap();
        let first = two();
        assert!(matches!(first, Err(Error::OverLimit { .. })), "{growth:?}: {first:?}");
        two().unwrap();
        let steady = arena.stats();
        two().unwrap();
        assert_eq!(arena.stats().allocations, steady.allocations, "{growth:?}");
        assert!(steady.bytes_reserved <= 1 << 20);
    }
}
