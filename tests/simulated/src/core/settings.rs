//! What the simulated machine is like: the environment says it, and a test may change it while it runs.

use std::time::Duration;

pub(crate) const PREFIX: &str = "DEVICE_ARENA_SIMULATED_";

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How many ordinals there are. Read once, by the first initialisation.
    pub devices: i32,
    /// Bytes of each ordinal. Read once, as above.
    pub memory: u64,
    pub version: i32,
    /// Lanes of a warp. Zero is what the architecture says.
    pub warp: i32,
    /// Major and minor.
    pub capability: (i32, i32),
    /// Whether images that are machine code load at all.
    pub machine_code: bool,
    pub peers: bool,
    /// The devices see registered memory elsewhere than the host does.
    pub register_alias: bool,
    /// Handles of device memory count as another process's, even where they are this one's.
    pub ipc_foreign: bool,
    /// Freeing memory waits for the context's queued work, as the driver does and as nobody should rely on.
    pub free_waits: bool,
    /// A kernel's code is loaded by its first launch, unless by `cuFuncLoad` before, which waits for the context's queued work.
    pub loads_late: bool,
    /// Queued work runs as late as possible.
    pub late: bool,
    /// So many questions are answered "not ready" before late work runs.
    pub late_queries: u32,
    /// Late work runs after this time even if nobody asks, as a real device's would. `None` for never.
    pub patience: Option<Duration>,
}

impl Settings {
    pub(crate) fn from_environment() -> Settings {
        let mut settings = Settings {
            devices: 2,
            memory: 1 << 30,
            version: 13000,
            warp: if cfg!(feature = "cuda") { 32 } else { 0 },
            capability: (9, 0),
            machine_code: true,
            peers: true,
            register_alias: false,
            ipc_foreign: false,
            free_waits: false,
            loads_late: false,
            late: false,
            late_queries: 3,
            patience: Some(Duration::from_millis(200)),
        };
        for name in [
            "DEVICES",
            "MEMORY",
            "VERSION",
            "WARP",
            "CAPABILITY",
            "CUBIN",
            "PEER",
            "REGISTER_ALIAS",
            "IPC_FOREIGN",
            "FREE_WAITS",
            "LOADS_LATE",
            "LATE",
            "LATE_QUERIES",
            "LATE_MS",
        ] {
            if let Ok(value) = std::env::var(format!("{PREFIX}{name}")) {
                // A misspelt setting would make a suite test something else than it says.
                assert!(settings.set(name, value.trim()), "{PREFIX}{name} can't be {value}");
            }
        }
        settings
    }

    /// Whether there is such a setting and it takes such a value.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> bool {
        fn put<T: std::str::FromStr>(place: &mut T, value: &str) -> bool {
            value.parse().map(|value| *place = value).is_ok()
        }
        fn switch(place: &mut bool, value: &str) -> bool {
            *place = value == "1";
            matches!(value, "0" | "1")
        }
        match name {
            "DEVICES" => put(&mut self.devices, value),
            "MEMORY" => put(&mut self.memory, value),
            "VERSION" => put(&mut self.version, value),
            "WARP" => put(&mut self.warp, value),
            "CAPABILITY" => value.split_once('.').is_some_and(|(major, minor)| {
                put(&mut self.capability.0, major) && put(&mut self.capability.1, minor)
            }),
            "CUBIN" => switch(&mut self.machine_code, value),
            "PEER" => switch(&mut self.peers, value),
            "REGISTER_ALIAS" => switch(&mut self.register_alias, value),
            "IPC_FOREIGN" => switch(&mut self.ipc_foreign, value),
            "FREE_WAITS" => switch(&mut self.free_waits, value),
            "LOADS_LATE" => switch(&mut self.loads_late, value),
            "LATE" => switch(&mut self.late, value),
            "LATE_QUERIES" => put(&mut self.late_queries, value),
            "LATE_MS" => {
                let mut milliseconds = 0;
                let valid = put(&mut milliseconds, value);
                self.patience = (milliseconds != 0).then(|| Duration::from_millis(milliseconds));
                valid
            }
            _ => false,
        }
    }
}
