//! What a batch copies from and to beside slots, and where the arena's own bytes are.

use device_arena::{ArenaOptions, Error, Output};

use crate::promises::each;
use crate::subjects::Subject;

/// An open output's address, for whoever makes the copies.
fn raw(subject: &Subject, output: &mut Output<u8>) -> *mut u8 {
    if subject.is_host() { output.as_mut_slice().unwrap().as_mut_ptr() } else { output.device_ptr().unwrap() }
}

#[test]
fn raw_memory_is_an_end_of_a_batch_and_of_a_list_that_serves_later_runs() {
    each(|subject, planned| {
        let other = ArenaOptions::new().placement(subject.placement).build(&subject.executor).unwrap();
        let call = subject.executor.begin(&other).unwrap();
        let mut output = call.output_from_slice(&[1u8, 2, 3, 4, 0, 0, 0, 0]).unwrap();
        let memory = raw(subject, &mut output);

        let mut run = planned.begin().unwrap();
        let place = if subject.is_host() {
            run.bytes_mut().unwrap().as_mut_ptr()
        } else {
            run.device_ptr(1).unwrap()
        };
        let mut copies = run.copies();
        copies.copy::<u8>((2, 0), (2, 100), 4).unwrap();
        // SAFETY: the output is open until the last launch, and the place is the run's own; neither has another user.
        unsafe { copies.copy_raw(place, memory, 4) };
        copies.launch().unwrap();
        let mut values = [9u8; 5];
        run.read(1, &mut values).unwrap();
        assert_eq!(values, [1, 2, 3, 4, 0]);

        let mut copies = run.copies();
        // SAFETY: as above.
        unsafe { copies.copy_raw(memory.wrapping_add(4), place.wrapping_add(1), 3) };
        let list = copies.prepare().unwrap();
        drop(run);
        for _ in 0..2 {
            let mut run = planned.begin().unwrap();
            list.launch(&mut run).unwrap();
            run.clear(1).unwrap();
        }
        let view = output.publish();
        call.finish().unwrap();
        subject.executor.synchronize().unwrap();
        assert_eq!(view.to_vec().unwrap(), [1, 2, 3, 4, 0, 0, 0, 0]);
    });
}

#[test]
fn raw_memory_that_clashes_with_a_slot_is_refused() {
    each(|subject, planned| {
        let mut run = planned.begin().unwrap();
        let place = if subject.is_host() {
            run.bytes_mut().unwrap().as_mut_ptr()
        } else {
            run.device_ptr(1).unwrap()
        };
        let mut copies = run.copies();
        copies.copy::<u8>((1, 0), (2, 0), 100).unwrap();
        // SAFETY: both ends are the run's own.
        unsafe { copies.copy_raw(place.wrapping_add(5120), place.wrapping_add(50), 1) };
        assert!(matches!(copies.launch(), Err(Error::ClashingCopies { first: 0, second: 1, .. })));
    });
}

#[test]
fn an_open_output_is_read_by_a_batch() {
    each(|subject, planned| {
        let other = ArenaOptions::new().placement(subject.placement).build(&subject.executor).unwrap();
        let call = subject.executor.begin(&other).unwrap();
        let mut output = call.output_from_slice(&[5u32, 6, 7]).unwrap();
        let mut run = planned.begin().unwrap();
        let mut copies = run.copies();
        assert_eq!(copies.copy_from_output((1, 248), &mut output).unwrap(), 2);
        copies.launch().unwrap();
        let mut values = [0u32; 4];
        assert_eq!(run.read_from(1, 247, &mut values).unwrap(), 3);
        assert_eq!(values, [0, 5, 6, 0]);
    });
}

#[test]
fn offsets_count_from_the_first_address_in_runs_and_in_views() {
    each(|subject, planned| {
        let mut run = planned.begin().unwrap();
        if subject.is_host() {
            assert!(matches!(run.base_device_ptr(), Err(Error::HostMemory { .. })));
            let base = run.bytes().unwrap().as_ptr();
            let view = run.finish().unwrap();
            assert_eq!(view.bytes().read().unwrap().as_ptr(), base);
            return;
        }
        let base = run.base_device_ptr().unwrap();
        let offset = planned.byte_offset(7).unwrap() as usize;
        assert_eq!(run.device_ptr(7).unwrap(), base.wrapping_add(offset));
        let view = run.finish().unwrap();
        let guard = view.bytes().read_on(&subject.executor).unwrap();
        assert_eq!(guard.device_ptr(), base.cast_const());
        let slot = view.slot::<u8>(7).unwrap().read_on(&subject.executor).unwrap();
        assert_eq!(slot.device_ptr(), base.wrapping_add(offset).cast_const());
    });
}

/// Each is refused for itself, and the graph is of the rest.
#[cfg(any(feature = "cuda", feature = "rocm"))]
#[test]
fn views_outputs_and_twins_are_refused_in_a_capture_and_do_not_spoil_it() {
    each(|subject, planned| {
        if subject.is_host() {
            return;
        }
        let other = subject.arena(&crate::promises::plan()).unwrap();
        other.write(1, b"view").unwrap();
        let view = other.last().unwrap().slot::<u8>(1).unwrap();
        // On a stream of its own.
        let elsewhere =
            crate::subjects::subjects().into_iter().find(|other| other.name == subject.name).unwrap();
        let twin = elsewhere.arena(&crate::promises::plan()).unwrap();
        let mut twin = twin.begin().unwrap();
        planned.write(2, b"kept").unwrap();
        let mut captured = planned
            .capture(|run| {
                let mut copies = run.copies();
                copies.copy_from_view((1, 0), &view)?;
                assert!(matches!(copies.launch(), Err(Error::Capturing { .. })));
                assert!(matches!(run.copy_into(&mut twin), Err(Error::Capturing { .. })));
                assert!(matches!(twin.copy_into(run), Err(Error::Capturing { .. })));
                assert!(matches!(run.write(1, b"now"), Err(Error::Capturing { .. })));
                assert!(matches!(run.read(1, &mut [0u8; 4]), Err(Error::Capturing { .. })));
                let mut copies = run.copies();
                copies.copy::<u8>((1, 0), (2, 0), 4)?;
                assert!(matches!(copies.prepare(), Err(Error::Capturing { .. })));
                assert!(matches!(planned.begin(), Err(Error::Contended { .. })));
                run.copy_prefix::<u8>(1, 2, 4)?;
                Ok(())
            })
            .unwrap();
        let copied = captured.launch().unwrap();
        assert_eq!(&copied.slot::<u8>(1).unwrap().to_vec().unwrap()[..4], b"kept");
        assert_eq!(view.to_vec().unwrap()[..4], *b"view");
    });
}
