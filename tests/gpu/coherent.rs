//! Host-coherent arenas: kernels and host use the same bytes, and the host waits its turn.

use device_arena::{Arena, ArenaOptions, Error, MemoryKind, Placement, Residency, Scrub};

use crate::lab::{Lab, counting};
use crate::memory::ask;
use crate::simulated::simulated_or_skip;
use crate::turn::turn;

const LEN: usize = 1000;

fn coherent(lab: &Lab) -> Arena {
    ArenaOptions::new().placement(Placement::HostCoherent).build(&lab.executor).unwrap()
}

#[test]
fn kernels_and_host_use_the_same_bytes() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    assert_eq!((arena.describe().residency, arena.describe().device), (Residency::Ram, -1));
    for round in 0..3 {
        let call = lab.executor.begin(&arena).unwrap();
        let mut input = call.output_from_slice(&counting(round, LEN)).unwrap();
        assert_eq!(input.as_slice().unwrap(), counting(round, LEN));
        assert_eq!(ask(input.as_slice().unwrap().as_ptr().cast()).unwrap().kind, MemoryKind::PinnedHost);
        let mut output = call.output::<u32>(LEN).unwrap();
        lab.add(input.device_ptr().unwrap(), output.device_ptr().unwrap(), LEN, 10);
        lab.add(input.device_ptr().unwrap(), input.device_ptr().unwrap(), LEN, 1);
        lab.executor.synchronize().unwrap();
        // The stream has passed: the room is the host's again.
        assert_eq!(output.as_slice().unwrap(), counting(round + 10, LEN));
        output.as_mut_slice().unwrap()[0] = 12345;
        let views = (input.publish(), output.publish());
        call.finish().unwrap();
        assert_eq!(views.0.to_vec().unwrap(), counting(round + 1, LEN));
        assert_eq!(*views.0.read().unwrap(), counting(round + 1, LEN));
        assert_eq!(views.1.read().unwrap()[..2], [12345, round + 11]);
    }
    let stats = arena.stats();
    assert_eq!((stats.allocations, stats.frees), (1, 0));
}

#[test]
fn after_the_device_pointer_host_access_is_pending_until_the_stream_has_passed() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    arena.reserve(1 << 16).unwrap();
    let gate = lab.gate();
    let call = lab.executor.begin(&arena).unwrap();
    let mut plain = call.output::<u32>(10).unwrap();
    let mut output = call.output::<u32>(LEN).unwrap();
    output.fill(9).unwrap();
    lab.fill(output.device_ptr().unwrap(), LEN, 3);
    let pending = |operation| Error::Pending { operation, generation: call.generation() };
    assert_eq!(output.as_slice().map(drop), Err(pending("as_slice")));
    assert_eq!(output.as_mut_slice().map(drop), Err(pending("as_mut_slice")));
    assert_eq!(output.copy_from_slice(&[0; LEN]), Err(pending("copy_from_slice")));
    // Whose pointer nobody took is the host's alone.
    plain.fill(5).unwrap();
    let (plain, view) = (plain.publish(), output.publish());
    assert_eq!(call.export(&view).map(drop), Err(pending("export")));
    call.finish().unwrap();
    assert_eq!(*plain.read().unwrap(), [5; 10]);
    assert!(matches!(view.read().map(drop), Err(Error::Pending { operation: "read", .. })));
    assert!(matches!(view.export().map(drop), Err(Error::Pending { .. })));
    assert_eq!(arena.holder(), None, "what was refused holds nothing");
    gate.open();
    lab.executor.synchronize().unwrap();
    assert_eq!(*view.read().unwrap(), counting(3, LEN));
}

#[test]
fn what_the_host_has_waited_for_is_not_pending() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    for round in 0..20 {
        let call = lab.executor.begin(&arena).unwrap();
        let mut output = call.output::<u32>(LEN).unwrap();
        output.fill(1).unwrap();
        lab.fill(output.device_ptr().unwrap(), LEN, round);
        let view = output.publish();
        call.finish().unwrap();
        lab.executor.synchronize().unwrap();
        assert_eq!(*view.read().unwrap(), counting(round, LEN));
    }
}

#[test]
fn an_explicit_copy_waits_for_the_kernel() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let view = lab.filled(&arena, LEN, 0);
    assert_eq!(view.to_vec().unwrap(), counting(0, LEN));
    let gate = lab.gate();
    let view = lab.filled(&arena, LEN, 3);
    std::thread::scope(|threads| {
        let copies = threads.spawn(|| view.to_vec().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!copies.is_finished());
        gate.open();
        assert_eq!(copies.join().unwrap(), counting(3, LEN));
    });
}

#[test]
fn the_next_calls_host_writes_are_pending_while_the_earlier_kernel_runs() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let (target, slow) = (coherent(&lab), lab.gate());
    drop(slow);
    lab.filled(&arena, LEN, 0);
    lab.filled(&target, LEN, 0);
    lab.executor.synchronize().unwrap();
    let gate = lab.gate();
    let view = lab.filled(&arena, LEN, 3);
    let copy = {
        let guard = view.read_on(&lab.executor).unwrap();
        let call = lab.executor.begin(&target).unwrap();
        let mut output = call.output::<u32>(LEN).unwrap();
        lab.add(guard.device_ptr(), output.device_ptr().unwrap(), LEN, 100);
        let copy = output.publish();
        call.finish().unwrap();
        copy
    };
    let mut call = lab.executor.begin(&arena).unwrap();
    let mut output = call.output::<u32>(LEN).unwrap();
    assert!(matches!(output.as_mut_slice().map(drop), Err(Error::Pending { .. })));
    assert!(matches!(call.writer::<u32>().map(drop), Err(Error::Pending { .. })));
    let taken = call.scratch(|scope| scope.take::<u32>(10).map(drop));
    assert!(matches!(taken, Err(Error::Pending { .. })), "{taken:?}");
    gate.open();
    lab.executor.synchronize().unwrap();
    output.as_mut_slice().unwrap().fill(77);
    let mut words = call.writer::<u32>().unwrap();
    words.push(5).unwrap();
    let views = (output.publish(), words.publish());
    call.finish().unwrap();
    assert_eq!(copy.to_vec().unwrap(), counting(103, LEN));
    assert_eq!((&*views.0.read().unwrap(), &*views.1.read().unwrap()), (&[77; LEN][..], &[5][..]));
}

#[test]
#[cfg_attr(device_arena_small_limits, ignore = "needs more generations")]
fn host_calls_in_a_row_ask_the_driver_for_nothing() {
    let Some(_turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    let run = |round: u32| {
        let call = lab.executor.begin(&arena).unwrap();
        let view = call.output_from_slice(&counting(round, LEN)).unwrap().publish();
        call.finish().unwrap();
        assert_eq!(view.read().unwrap()[0], round);
    };
    run(0);
    let before = simulated.all_calls();
    (0..100).for_each(run);
    assert_eq!(simulated.all_calls(), before);
}

#[test]
fn scratch_that_a_kernel_used_is_the_hosts_once_the_stream_has_passed() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let arena = coherent(&lab);
    arena.reserve(1 << 16).unwrap();
    let gate = lab.gate();
    let mut call = lab.executor.begin(&arena).unwrap();
    call.scratch(|scope| {
        scope.take::<u32>(10).unwrap().fill(1);
        lab.fill(scope.take_on_device::<u32>(100).unwrap(), 100, 0);
        let taken = scope.take::<u32>(10).map(drop);
        assert!(matches!(taken, Err(Error::Pending { .. })), "{taken:?}");
    });
    gate.open();
    lab.executor.synchronize().unwrap();
    call.scratch(|scope| scope.take::<u32>(10).unwrap().fill(1));
    call.finish().unwrap();
}

#[test]
fn a_scrub_comes_after_the_kernel_that_wrote() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let options = ArenaOptions::new().placement(Placement::HostCoherent).scrub(Scrub::Poison(0x11));
    let arena = options.build(&lab.executor).unwrap();
    lab.filled(&arena, LEN, 0);
    lab.executor.synchronize().unwrap();
    for is_held_up in [true, false, true] {
        let gate = is_held_up.then(|| lab.gate());
        lab.filled(&arena, LEN, 3);
        if !is_held_up {
            lab.executor.synchronize().unwrap();
        }
        let call = lab.executor.begin(&arena).unwrap();
        let view = call.output::<u32>(LEN).unwrap().publish();
        call.finish().unwrap();
        if let Some(gate) = gate {
            // The scrub is behind the kernel, and the host behind both.
            assert!(matches!(view.read().map(drop), Err(Error::Pending { .. })));
            gate.open();
        }
        lab.executor.synchronize().unwrap();
        assert!(view.read().unwrap().iter().all(|&word| word == 0x1111_1111));
    }
}

#[test]
fn a_tape_that_the_host_writes_is_read_by_a_kernel_where_it_is() {
    let Some(_turn) = turn() else { return };
    let lab = Lab::new(0);
    let (arena, target) = (coherent(&lab), Arena::new(&lab.executor));
    let call = lab.executor.begin(&arena).unwrap();
    let mut words = call.tape_output().unwrap();
    for word in [&b"one"[..], b"", b"three"] {
        words.push(word).unwrap();
    }
    let words = words.publish();
    call.finish().unwrap();
    let guard = words.read().unwrap();
    let call = lab.executor.begin(&target).unwrap();
    let staged = call.stage(&guard.tape()).unwrap();
    assert_eq!(staged.copied_bytes(), 0);
    let sums = lab.sums(&call, &staged);
    call.finish().unwrap();
    let sum = |text: &[u8]| text.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    assert_eq!(sums.to_vec().unwrap(), [sum(b"one"), 0, sum(b"three")]);
}
