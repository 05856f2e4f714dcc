//! What an arena says of itself.

use arenas::{ArenaDescription, ArenaStats, Residency};

/// Which memory bytes are in.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum device_arena_residency_t {
    /// Host pages.
    DEVICE_ARENA_RESIDENCY_RAM = 0,
    /// Memory of one device.
    DEVICE_ARENA_RESIDENCY_VRAM = 1,
}

/// Where an arena's outputs are.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct device_arena_description_t {
    /// Which memory.
    pub residency: device_arena_residency_t,
    /// The device's ordinal, as its driver counts; -1 for host pages, host-coherent ones too.
    pub device: i32,
}

impl From<ArenaDescription> for device_arena_description_t {
    fn from(description: ArenaDescription) -> Self {
        let residency = match description.residency {
            Residency::Ram => device_arena_residency_t::DEVICE_ARENA_RESIDENCY_RAM,
            Residency::Vram => device_arena_residency_t::DEVICE_ARENA_RESIDENCY_VRAM,
        };
        Self { residency, device: description.device }
    }
}

/// A reading of an arena's counters.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct device_arena_stats_t {
    /// Blocks asked of the driver, and given.
    pub allocations: u64,
    /// Blocks given back to the driver.
    pub frees: u64,
    /// Blocks that the driver did not take back, which is tried again.
    pub failed_frees: u64,
    /// What the arena has from the driver now.
    pub bytes_reserved: u64,
    /// What the last call has taken: outputs rounded up to the alignment, and open scratch.
    pub bytes_used: u64,
    /// The most that any call had taken at once, or wanted, since the arena was made or trimmed.
    pub bytes_high_water: u64,
    /// Rewinds: each call begun is one.
    pub rewinds: u64,
    /// Begins, reserves and trims refused as contended.
    pub refused_begins: u64,
    /// Uses of stale views refused.
    pub refused_stale_reads: u64,
    /// The number of the last call.
    pub generation: u64,
    /// Zeros.
    pub reserved: [u64; 6],
}

impl device_arena_stats_t {
    pub(crate) fn new(stats: &ArenaStats, generation: u64) -> Self {
        Self {
            allocations: stats.allocations,
            frees: stats.frees,
            failed_frees: stats.failed_frees,
            bytes_reserved: stats.bytes_reserved,
            bytes_used: stats.bytes_used,
            bytes_high_water: stats.bytes_high_water,
            rewinds: stats.rewinds,
            refused_begins: stats.refused_begins,
            refused_stale_reads: stats.refused_stale_reads,
            generation,
            reserved: [0; 6],
        }
    }
}
