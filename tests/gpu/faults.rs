//! What a user does, with each of its calls of the driver failing once: see `failing.rs`.

use device_arena::{
    Arena, ArenaOptions, Error, Executor, Growth, Placement, Refused, Result, Scrub, TapeView, View,
};

use crate::failing::{Scene, each_call_fails_once};
use crate::lab::{Lab, counting};
use crate::memory::RawStream;
use crate::vendor;

const LEN: usize = 100;

/// Fails with what the kernels wrote, where it is not what they should have written.
#[track_caller]
fn expect(view: &View<u32>, first: u32, len: usize) -> Result<()> {
    assert_eq!(view.to_vec()?, counting(first, len));
    Ok(())
}

fn filled(scene: &Scene, len: usize, first: u32) -> Result<View<u32>> {
    let call = scene.lab.executor.begin(&scene.arena)?;
    let mut output = call.output::<u32>(len)?;
    scene.lab.try_fill(output.device_ptr()?, len, first)?;
    let view = output.publish();
    call.finish()?;
    Ok(view)
}

fn coherent() -> ArenaOptions {
    ArenaOptions::new().placement(Placement::HostCoherent)
}

#[test]
fn a_call_that_grows_and_is_copied_out() {
    for options in [ArenaOptions::new().first_capacity(1024), coherent().first_capacity(1024)] {
        each_call_fails_once(options, |scene| {
            for len in [LEN, 3 * LEN, 20 * LEN] {
                let view = filled(scene, len, 7)?;
                expect(&view, 7, len)?;
            }
            // A chain, and one block in its place.
            for _ in 0..2 {
                let call = scene.lab.executor.begin(&scene.arena)?;
                let mut views = Vec::new();
                for len in [LEN, 40 * LEN, 90 * LEN] {
                    let mut output = call.output::<u32>(len)?;
                    scene.lab.try_fill(output.device_ptr()?, len, 9)?;
                    views.push((output.publish(), len));
                }
                call.finish()?;
                views.iter().try_for_each(|(view, len)| expect(view, 9, *len))?;
            }
            Ok(())
        });
    }
}

#[test]
fn copies_in_from_the_host() {
    for options in [ArenaOptions::new(), coherent()] {
        each_call_fails_once(options, |scene| {
            let call = scene.lab.executor.begin(&scene.arena)?;
            let view = call.output_from_slice(&counting(3, LEN))?.publish();
            call.finish()?;
            expect(&view, 3, LEN)?;
            let mut copy = vec![0; LEN];
            view.copy_to(&mut copy)?;
            assert_eq!(copy, counting(3, LEN));
            Ok(())
        });
    }
}

#[test]
fn a_reader_on_another_stream_and_the_call_behind_it() {
    each_call_fails_once(ArenaOptions::new(), |scene| {
        for round in 0..2 {
            let view = filled(scene, LEN, 7)?;
            let guard = view.read_on(&scene.reader)?;
            let reader = scene.lab.with_executor(scene.reader.clone());
            let call = scene.reader.begin(&scene.target)?;
            let mut output = call.output::<u32>(LEN)?;
            reader.try_add(guard.device_ptr(), output.device_ptr()?, LEN, round)?;
            let copy = output.publish();
            call.finish()?;
            drop(guard);
            let next = filled(scene, LEN, 70)?;
            expect(&copy, 7 + round, LEN)?;
            expect(&next, 70, LEN)?;
        }
        Ok(())
    });
}

#[test]
fn a_copy_between_arenas() {
    each_call_fails_once(ArenaOptions::new(), |scene| {
        let view = filled(scene, LEN, 7)?;
        let call = scene.reader.begin(&scene.target)?;
        let mut output = call.output::<u32>(LEN)?;
        output.copy_from_view(&view)?;
        let copy = output.publish();
        call.finish()?;
        let next = filled(scene, LEN, 70)?;
        expect(&copy, 7, LEN)?;
        expect(&next, 70, LEN)
    });
}

#[test]
fn deferred_calls() {
    each_call_fails_once(ArenaOptions::new(), |scene| {
        let work = scene.lab.with_executor(scene.lab.executor.clone());
        let soon = scene.lab.executor.defer(&scene.arena, move |call| {
            let mut output = call.output::<u32>(LEN)?;
            work.try_fill(output.device_ptr()?, LEN, 7)?;
            Ok(output.publish())
        })?;
        scene.reader.order_after(&soon)?;
        soon.is_done()?;
        expect(&soon.wait()?, 7, LEN)?;
        let call = scene.lab.executor.begin(&scene.arena)?;
        let mut output = call.output::<u32>(LEN)?;
        scene.lab.try_fill(output.device_ptr()?, LEN, 8)?;
        let view = output.publish();
        scene.lab.executor.defer_call(call)?.wait()?;
        expect(&view, 8, LEN)
    });
}

#[test]
fn rooms_that_overflow() {
    each_call_fails_once(ArenaOptions::new(), |scene| {
        let call = scene.lab.executor.begin(&scene.arena)?;
        let mut room = call.device_room::<u32>(40)?;
        let output = loop {
            scene.lab.try_take(room.device_ptr(), 500, 4)?;
            match room.collect() {
                Err(Refused { error: Error::Overflow { needed, .. }, value }) => {
                    room = value.regrow(&call, needed)?;
                }
                collected => break collected?,
            }
        };
        let view = output.publish();
        call.finish()?;
        let mut values = view.to_vec()?;
        values.sort_unstable();
        values.dedup();
        assert_eq!(values, counting(0, 500));
        Ok(())
    });
}

#[test]
fn a_staged_tape() {
    each_call_fails_once(ArenaOptions::new(), |scene| {
        let tape = TapeView::of(b"onetwothree", &[0u32, 3, 6, 11])?;
        let call = scene.lab.executor.begin(&scene.arena)?;
        let staged = call.stage(&tape)?;
        let mut sums = call.output::<u64>(staged.len())?;
        scene.lab.try_sum(staged.bytes_ptr(), staged.offsets_ptr(), staged.len(), sums.device_ptr()?)?;
        let view = sums.publish();
        call.finish()?;
        let sum = |text: &[u8]| text.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        assert_eq!(view.to_vec()?, [sum(b"one"), sum(b"two"), sum(b"three")]);
        Ok(())
    });
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn a_captured_call_and_its_launches() {
    each_call_fails_once(ArenaOptions::new(), |scene| {
        let mut captured = scene.lab.executor.capture(&scene.arena, |call| {
            let mut output = call.output::<u32>(LEN)?;
            scene.lab.try_fill(output.device_ptr()?, LEN, 7)?;
            Ok(output.publish())
        })?;
        for _ in 0..2 {
            let view = captured.launch()?;
            drop(view.read_on(&scene.reader)?);
            expect(&view, 7, LEN)?;
        }
        Ok(())
    });
}

#[test]
fn scrubs() {
    for options in [ArenaOptions::new(), coherent()] {
        let options = options.scrub(Scrub::Poison(0x11)).first_capacity(1024).growth(Growth::Exact);
        each_call_fails_once(options, |scene| {
            for len in [LEN, 5 * LEN, LEN] {
                let mut call = scene.lab.executor.begin(&scene.arena)?;
                let view = call.scratch(|scope| {
                    let scratch = scope.take_on_device::<u32>(50)?;
                    scene.lab.try_fill(scratch, 50, 1)?;
                    let mut output = scope.call().output::<u32>(len)?;
                    scene.lab.try_add(scratch, output.device_ptr()?, 50, 0)?;
                    Ok::<_, Error>(output.publish())
                })?;
                call.finish()?;
                let values = view.to_vec()?;
                assert_eq!(values[..50], counting(1, 50));
                assert!(values[50..].iter().all(|&word| word == 0x1111_1111));
            }
            Ok(())
        });
    }
}

#[test]
fn reserve_trim_and_the_next_call() {
    each_call_fails_once(ArenaOptions::new(), |scene| {
        scene.arena.reserve(1 << 20)?;
        expect(&filled(scene, LEN, 7)?, 7, LEN)?;
        scene.arena.trim()?;
        expect(&filled(scene, LEN, 8)?, 8, LEN)
    });
}

#[test]
fn executors_kernels_and_adopted_streams() {
    each_call_fails_once(ArenaOptions::new(), |scene| {
        let lab = Lab::load(vendor::executor(0)?)?;
        let arena = Arena::new(&lab.executor);
        let call = lab.executor.begin(&arena)?;
        let mut output = call.output::<u32>(LEN)?;
        lab.try_fill(output.device_ptr()?, LEN, 7)?;
        let view = output.publish();
        call.finish()?;
        expect(&view, 7, LEN)?;
        let raw = RawStream::try_new(&scene.lab.executor)?;
        // SAFETY: the stream outlives the executor, which is dropped before it.
        let adopted = unsafe { Executor::adopt(scene.backend.clone(), raw.handle, Box::new(())) }?;
        adopted.synchronize()
    });
}
