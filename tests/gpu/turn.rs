//! A test's turn with the driver, and what it has to leave behind: nothing.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use device_arena::Arena;
use device_arena::backend::{AnyBackend, Backend};

use crate::driver::{self, Handle};
use crate::simulated::{KINDS, Simulated, simulated};
use crate::vendor;
use crate::vendors::{present, version_and_library};

static TURNS: Mutex<()> = Mutex::new(());

/// The driver is this test's until it is dropped. Then the same context is current as at first, and the simulated driver
/// has no memory, streams, events, modules or graphs more than it had.
pub(crate) struct Turn {
    backend: AnyBackend,
    current: Handle,
    live: Option<[u64; KINDS.len()]>,
    _turn: MutexGuard<'static, ()>,
}

/// A turn; none where there is no driver, which is printed, or a failure where `DEVICE_ARENA_REQUIRE` names it.
pub(crate) fn turn() -> Option<Turn> {
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let backend = present(vendor::vendor())?;
    let devices = backend.devices().unwrap();
    let kind = if simulated().is_some() { "simulated" } else { "real" };
    let (vendor, version) = (backend.vendor(), version_and_library(&backend).0);
    println!("backend: {vendor}, {kind} driver {version}, {} x {}", devices.len(), devices[0].name);
    static WARM: Once = Once::new();
    WARM.call_once(|| warm(&backend));
    if let Some(simulated) = simulated() {
        settle(&simulated);
    }
    let live = simulated().map(|simulated| simulated.all_live());
    Some(Turn { backend, current: driver::current(), live, _turn: turn })
}

/// As [`turn`], for what NVIDIA's driver alone has; the skip is printed.
pub(crate) fn turn_of_nvidia(what: &str) -> Option<Turn> {
    let turn = turn()?;
    if !vendor::is_nvidia() {
        println!("skipped: NVIDIA's alone: {what}");
        return None;
    }
    Some(turn)
}

/// Primary contexts, and the crate's kernels in them, stay for as long as the process.
fn warm(backend: &AnyBackend) {
    for ordinal in 0..backend.devices().unwrap().len() as u32 {
        let executor = vendor::executor(ordinal).unwrap();
        let arena = Arena::new(&executor);
        let call = executor.begin(&arena).unwrap();
        drop(call.device_room::<u32>(1).unwrap());
        call.finish().unwrap();
        executor.synchronize().unwrap();
    }
}

/// Waits until nobody calls the driver: what failed in a drop is tried again for a while.
fn settle(simulated: &Simulated) {
    let start = Instant::now();
    let mut calls = simulated.all_calls();
    while start.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(4));
        if simulated.all_calls() == calls {
            return;
        }
        calls = simulated.all_calls();
    }
}

impl Turn {
    pub(crate) fn backend(&self) -> AnyBackend {
        self.backend.clone()
    }

    pub(crate) fn count(&self) -> u32 {
        self.backend.devices().unwrap().len() as u32
    }

    /// Whether there is a second device; the skip is printed.
    pub(crate) fn has_two(&self) -> bool {
        let has_two = self.count() > 1;
        if !has_two {
            println!("skipped: needs two ordinals");
        }
        has_two
    }

    /// What the driver has more than when the turn began, by kind; nothing on a real driver, which does not say.
    pub(crate) fn left(&self) -> Vec<(&'static str, i64)> {
        let (Some(simulated), Some(live)) = (simulated(), self.live) else { return Vec::new() };
        let now = simulated.all_live();
        let differences = KINDS.iter().zip(now.iter().zip(live));
        let differences = differences.map(|(kind, (now, before))| (*kind, *now as i64 - before as i64));
        // Less than before is what an earlier test was allowed to leave, and the crate has freed since.
        differences.filter(|(_, difference)| *difference > 0).collect()
    }

    /// Fails where something is left, which threads of the crate's own may hold for a moment.
    #[track_caller]
    pub(crate) fn nothing_is_left(&self) {
        let start = Instant::now();
        loop {
            let left = self.left();
            if left.is_empty() {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(5), "left behind: {left:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What is left is no leak of the crate's: the driver was made to keep it.
    pub(crate) fn forgive(&mut self) {
        self.live = simulated().map(|simulated| simulated.all_live());
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(simulated) = simulated() {
            simulated.clear();
            let defaults = [
                ("LATE", "0"),
                ("LATE_QUERIES", "3"),
                ("LATE_MS", "200"),
                ("PEER", "1"),
                ("FREE_WAITS", "0"),
                ("LOADS_LATE", "0"),
                ("REGISTER_ALIAS", "0"),
                ("IPC_FOREIGN", "0"),
            ];
            for (name, default) in defaults {
                simulated.restore(name, default);
            }
        }
        if !std::thread::panicking() {
            self.nothing_is_left();
            assert_eq!(driver::current(), self.current, "another context is current");
        }
    }
}
