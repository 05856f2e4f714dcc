//! A device that is lost in the middle of a call: errors from then on, and nothing else.

use device_arena::{Arena, ArenaOptions, Error, MemoryKind, Placement, Status, TapeView};

use crate::heap;
use crate::lab::{Lab, counting};
use crate::memory::ask;
use crate::process::{alone, is_child};
use crate::simulated::{simulated, simulated_or_skip};
use crate::turn::turn;
use crate::vendor;

const LEN: usize = 1000;

/// The answer of a device that is gone.
#[track_caller]
fn is_lost<T>(outcome: Result<T, Error>) {
    let error = outcome.err().expect("the device answers");
    assert_eq!(error.status(), Status::Driver, "{error}");
    assert!(matches!(error, Error::Driver { code: 700 | 719, .. }), "{error}");
}

#[test]
fn every_use_is_an_error_and_every_drop_returns() {
    let Some(mut turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let local = 7u8;
    for placement in [Placement::Device, Placement::HostCoherent] {
        let (lab, reader) = (Lab::new(0), vendor::executor(0).unwrap());
        let options = ArenaOptions::new().placement(placement);
        let arenas: Vec<_> = (0..6).map(|_| options.build(&lab.executor).unwrap()).collect();
        let [idle, running, read, deferred, captured, room] = &arenas[..] else { unreachable!() };
        let idle_view = lab.filled(idle, LEN, 1);
        let call = lab.executor.begin(running).unwrap();
        let mut output = lab.fill_output(&call, LEN, 2);
        let guard = lab.filled(read, LEN, 3).read_on(&reader).unwrap();
        let soon = lab.executor.defer(deferred, |call| Ok(call.output::<u8>(9)?.publish())).unwrap();
        captured.reserve(1 << 16).unwrap();
        let mut graph =
            lab.executor.capture(captured, |call| Ok(lab.fill_output(call, LEN, 4).publish())).unwrap();
        let room_call = lab.executor.begin(room).unwrap();
        let open_room = room_call.device_room::<u32>(100).unwrap();
        simulated.lose_device(0);

        is_lost(lab.executor.synchronize());
        is_lost(idle_view.to_vec());
        is_lost(call.output::<u8>(1 << 20));
        is_lost(lab.try_fill(output.device_ptr().unwrap(), LEN, 1));
        if placement == Placement::Device {
            is_lost(output.copy_from_slice(&[0; LEN]));
        }
        is_lost(open_room.collect().map(drop).map_err(Error::from));
        is_lost(soon.wait());
        is_lost(graph.launch());
        is_lost(idle_view.read_on(&reader).map(drop));
        is_lost(idle.trim());
        is_lost(Lab::load(lab.executor.clone()).map(drop));
        is_lost(vendor::executor(0));
        is_lost(call.stage(&TapeView::of(b"abc", &[0u32, 1, 3]).unwrap()).map(drop));
        // What asks nothing of the device goes on.
        assert_eq!(ask(&raw const local).unwrap().kind, MemoryKind::Unregistered);
        let view = output.publish();
        is_lost(lab.executor.defer_call(call).map(drop).map_err(Error::from));
        assert!(matches!(view.to_vec(), Err(Error::Driver { .. } | Error::Stale { .. })));
        lab.executor.begin(running).map(drop).ok();
        if turn.count() > 1 {
            let other = Lab::new(1);
            let arena = Arena::new(&other.executor);
            assert_eq!(other.filled(&arena, LEN, 8).to_vec().unwrap(), counting(8, LEN));
        }
        let host = Arena::host();
        drop(host.begin().unwrap().output_from_slice(&[1u8]).unwrap());

        drop((guard, graph, room_call, reader));
        drop((view, idle_view, arenas));
        drop(lab);
        simulated.clear();
        // What a lost device does not take back is its driver's.
        turn.forgive();
        let lab = Lab::new(0);
        let arena = Arena::new(&lab.executor);
        assert_eq!(lab.filled(&arena, LEN, 8).to_vec().unwrap(), counting(8, LEN));
    }
}

#[test]
fn nothing_of_the_hosts_memory_is_left_of_a_lost_device() {
    // What other tests leave to threads of the process is counted as well.
    if !alone("lost::nothing_of_the_hosts_memory_is_left_of_a_lost_device", &[]) {
        return;
    }
    let Some(mut turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lose = || {
        let (lab, reader) = (Lab::new(0), vendor::executor(0).unwrap());
        let options = ArenaOptions::new().first_capacity(1024);
        let arenas: Vec<_> = (0..5).map(|_| options.build(&lab.executor).unwrap()).collect();
        let [chained, read, deferred, captured, running] = &arenas[..] else { unreachable!() };
        let call = lab.executor.begin(chained).unwrap();
        let views = [100, 1000, 5000].map(|len| lab.fill_output(&call, len, 1).publish());
        call.finish().unwrap();
        let guard = lab.filled(read, LEN, 3).read_on(&reader).unwrap();
        let soon = lab.executor.defer(deferred, |call| Ok(call.output::<u8>(9)?.publish())).unwrap();
        captured.reserve(1 << 16).unwrap();
        let work = |call: &mut device_arena::Call| Ok(lab.fill_output(call, LEN, 4).publish());
        let mut graph = lab.executor.capture(captured, work).unwrap();
        let launched = graph.launch().unwrap();
        let call = lab.executor.begin(running).unwrap();
        let room = call.device_room::<u32>(100).unwrap();
        simulated.lose_device(0);
        is_lost(lab.executor.synchronize());
        is_lost(soon.wait());
        is_lost(room.collect().map(drop).map_err(Error::from));
        drop((call, guard, graph, arenas, views, launched, lab, reader));
        simulated.clear();
    };
    // What is made once in a process, and what grows by halves.
    (0..3).for_each(|_| lose());
    let before = heap::live();
    (0..20).for_each(|_| lose());
    // What could not be freed is tried again by a thread, now and then.
    let grown = || heap::live().saturating_sub(before);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while grown() >= 20 * 64 && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(grown() < 20 * 64, "{} bytes are left of 20 losses", grown());
    turn.forgive();
}

#[test]
fn waits_that_have_begun_end_when_the_device_is_lost() {
    let Some(mut turn) = turn() else { return };
    let Some(simulated) = simulated_or_skip() else { return };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    arena.reserve(1 << 16).unwrap();
    let gate = lab.gate();
    let view = lab.filled(&arena, LEN, 1);
    let lossy = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        simulated.lose_device(0);
        gate.open();
    });
    is_lost(view.to_vec());
    lossy.join().unwrap();
    drop((arena, lab));
    simulated.clear();
    turn.forgive();
}

#[test]
fn a_kernel_that_writes_where_it_may_not_is_an_error_of_the_first_wait() {
    let name = "lost::a_kernel_that_writes_where_it_may_not_is_an_error_of_the_first_wait";
    // The primary context is of no use from then on.
    if !is_child(name) && turn().is_none() || !alone(name, &[]) {
        return;
    }
    let Some(mut turn) = turn() else { panic!("no driver") };
    let lab = Lab::new(0);
    let arena = Arena::new(&lab.executor);
    let view = lab.filled(&arena, LEN, 1);
    lab.executor.synchronize().unwrap();
    let call = lab.executor.begin(&arena).unwrap();
    let output = lab.fill_output(&call, LEN, 2);
    // Nobody's address.
    lab.poke(std::ptr::without_provenance_mut(1 << 46));
    is_lost(lab.executor.synchronize());
    is_lost(call.output::<u8>(1 << 20));
    let stale = output.publish();
    call.finish().unwrap();
    is_lost(stale.to_vec());
    assert!(matches!(view.to_vec(), Err(Error::Stale { .. })));
    is_lost(arena.trim());
    drop(arena);
    drop((view, stale, lab));
    if let Some(simulated) = simulated() {
        simulated.clear();
    }
    turn.forgive();
}
