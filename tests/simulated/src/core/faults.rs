//! Failures on purpose, and how often each function was called.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::settings::PREFIX;
use super::status::{Result, Status};

#[derive(Default)]
pub(crate) struct Faults {
    calls: HashMap<&'static str, u64>,
    planned: Vec<Fault>,
}

struct Fault {
    function: String,
    /// Calls that still succeed.
    after: u64,
    /// Calls that fail then. `u64::MAX` is every one.
    times: u64,
    status: Status,
}

static FAULTS: LazyLock<Mutex<Faults>> = LazyLock::new(|| {
    let mut faults = Faults::default();
    if let Ok(list) = std::env::var(format!("{PREFIX}FAULTS")) {
        for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let mut fields = part.split(':');
            let function = fields.next().unwrap_or_default();
            let numbers: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
            let [after, times, status] = numbers[..] else {
                panic!("{PREFIX}FAULTS: {part} is not FUNCTION:AFTER:TIMES:STATUS");
            };
            faults.plan(function, after, times, status as u32);
        }
    }
    Mutex::new(faults)
});

pub(crate) fn lock() -> MutexGuard<'static, Faults> {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Faults {
    /// After `after` more calls, the next `times` fail. Zero times is every call from then on.
    pub(crate) fn plan(&mut self, function: &str, after: u64, times: u64, status: u32) {
        let times = if times == 0 { u64::MAX } else { times };
        self.planned.push(Fault { function: function.to_owned(), after, times, status: Status(status) });
    }

    pub(crate) fn clear(&mut self) {
        self.planned.clear();
    }

    /// Counts a call, and fails it where that was planned.
    pub(crate) fn count(&mut self, function: &'static str) -> Result<()> {
        *self.calls.entry(function).or_default() += 1;
        let mut outcome = Ok(());
        for fault in self.planned.iter_mut().filter(|fault| fault.function == function) {
            if fault.after > 0 {
                fault.after -= 1;
            } else if fault.times > 0 && outcome.is_ok() {
                if fault.times != u64::MAX {
                    fault.times -= 1;
                }
                outcome = Err(fault.status);
            }
        }
        outcome
    }

    /// The calls of one function so far, or of all.
    pub(crate) fn calls(&self, function: Option<&str>) -> u64 {
        match function {
            Some(function) => self.calls.get(function).copied().unwrap_or(0),
            None => self.calls.values().sum(),
        }
    }
}
