//! A driver without a vendor: devices, contexts, memory, streams, events, graphs and modules over host memory.
//!
//! One lock keeps all of it. Work runs outside the lock, on one thread a stream.

mod access;
pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod faults;
pub(crate) mod kernels;
pub(crate) mod memory;
mod pages;
pub(crate) mod settings;
mod sharing;
pub(crate) mod status;
pub(crate) mod stream;
pub(crate) mod virtual_memory;
pub(crate) mod work;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use capture::Capture;
use context::{Context, Primary};
use kernels::{Kernel, Module};
use memory::Memory;
use settings::Settings;
use status::{Result, Status};
use stream::{Event, Stream};
use work::Work;

pub(crate) struct State {
    pub settings: Settings,
    pub initialised: bool,
    pub memory: Memory,
    /// Ordinals that fell off the bus.
    pub lost: BTreeSet<i32>,
    pub primaries: Vec<Primary>,
    pub contexts: HashMap<u64, Context>,
    pub streams: BTreeMap<u64, Stream>,
    /// The streams that have no handle: of a context, and of a context and a thread.
    pub nameless: HashMap<(u64, Option<ThreadId>), u64>,
    pub events: HashMap<u64, Event>,
    pub modules: HashMap<u64, Module>,
    /// With the module and its context.
    pub functions: HashMap<u64, (u64, u64, Kernel)>,
    /// Those whose code is on the device.
    pub loaded: HashSet<u64>,
    pub captures: HashMap<u64, Capture>,
    pub graphs: HashMap<u64, Arc<Vec<Work>>>,
    pub executables: HashMap<u64, Arc<Vec<Work>>>,
    handles: u64,
}

pub(crate) type Locked = MutexGuard<'static, State>;

static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| {
    Mutex::new(State {
        settings: Settings::from_environment(),
        initialised: false,
        memory: Memory::default(),
        lost: BTreeSet::new(),
        primaries: Vec::new(),
        contexts: HashMap::new(),
        streams: BTreeMap::new(),
        nameless: HashMap::new(),
        events: HashMap::new(),
        modules: HashMap::new(),
        functions: HashMap::new(),
        loaded: HashSet::new(),
        captures: HashMap::new(),
        graphs: HashMap::new(),
        executables: HashMap::new(),
        handles: 0,
    })
});

static PROGRESS: Condvar = Condvar::new();

pub(crate) fn lock() -> Locked {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until something about the state may have changed.
pub(crate) fn sleep(state: Locked, at_most: Option<Duration>) -> Locked {
    match at_most {
        None => PROGRESS.wait(state).unwrap_or_else(PoisonError::into_inner),
        Some(time) => PROGRESS.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0,
    }
}

pub(crate) fn wake() {
    PROGRESS.notify_all();
}

thread_local! {
    /// Whether this thread runs a host function: the driver may not be called from one.
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Counts a call, and fails it where that was planned, or where no call may be made.
pub(crate) fn count(function: &'static str) -> Result<()> {
    faults::lock().count(function)?;
    if IN_HOST_FUNCTION.get() { Err(Status::NOT_PERMITTED) } else { Ok(()) }
}

/// One call of the driver: counted, failed where that was planned, and never unwinding into the caller.
pub(crate) fn enter(function: &'static str, body: impl FnOnce(Locked) -> Result<()>) -> u32 {
    enter_before_initialisation(function, |state| {
        if state.initialised { body(state) } else { Err(Status::NOT_INITIALIZED) }
    })
}

pub(crate) fn enter_before_initialisation(
    function: &'static str,
    body: impl FnOnce(Locked) -> Result<()>,
) -> u32 {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // What HIP's functions are made of was counted as those.
        if cfg!(feature = "cuda") {
            count(function)?;
        }
        body(lock())
    }));
    match outcome.unwrap_or(Err(Status::UNKNOWN)) {
        Ok(()) => 0,
        Err(Status(number)) => number,
    }
}

impl State {
    pub(crate) fn initialise(&mut self) -> Result<()> {
        if self.settings.devices <= 0 {
            return Err(Status::NO_DEVICE);
        }
        if !self.initialised {
            self.memory = Memory::new(self.settings.devices as usize, self.settings.memory);
            for _ in 0..self.settings.devices {
                let handle = self.handle();
                self.primaries.push(Primary { handle, retained: 0 });
            }
            self.initialised = true;
        }
        Ok(())
    }

    /// A handle that was never given out. Handles are looked up, never followed.
    pub(crate) fn handle(&mut self) -> u64 {
        self.handles += 1;
        0x5_0000_0000 + self.handles * 16
    }

    pub(crate) fn ordinal(&self, ordinal: i32) -> Result<i32> {
        if (0..self.primaries.len() as i32).contains(&ordinal) {
            Ok(ordinal)
        } else {
            Err(Status::INVALID_DEVICE)
        }
    }

    /// How many things of a kind there are.
    pub(crate) fn live(&self, kind: &str) -> Option<u64> {
        Some(match kind {
            "device_bytes" => self.memory.live(true),
            "host_bytes" => self.memory.live(false),
            "streams" => {
                self.streams.values().filter(|stream| stream.named && !stream.destroyed).count() as u64
            }
            "events" => self.events.len() as u64,
            "modules" => self.modules.len() as u64,
            "graphs" => (self.graphs.len() + self.executables.len()) as u64,
            "contexts" => self.contexts.len() as u64,
            _ => return None,
        })
    }
}
