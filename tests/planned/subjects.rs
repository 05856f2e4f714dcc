//! Where planned arenas are under test.

use device_arena::plan::MemoryPlan;
use device_arena::{Executor, Placement, PlannedArena, Result};

use crate::vendors;

/// An executor, and where its arenas are.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) executor: Executor,
    pub(crate) placement: Placement,
}

impl Subject {
    pub(crate) fn arena(&self, plan: &MemoryPlan) -> Result<PlannedArena> {
        PlannedArena::placed(&self.executor, self.placement, plan.clone())
    }

    pub(crate) fn is_host(&self) -> bool {
        self.placement == Placement::Host
    }
}

/// The host, and every device that is here, in both placements; the others are skipped by name.
pub(crate) fn subjects() -> Vec<Subject> {
    let host =
        Subject { name: "host".into(), executor: Executor::host().unwrap(), placement: Placement::Host };
    let mut all = vec![host];
    for &vendor in vendors::ALL {
        if vendors::present(vendor).is_none() {
            continue;
        }
        for (placement, suffix) in [(Placement::Device, ""), (Placement::HostCoherent, " host-coherent")] {
            let executor = vendors::executor(vendor, 0).unwrap();
            all.push(Subject { name: format!("{vendor}{suffix}"), executor, placement });
        }
    }
    all
}
