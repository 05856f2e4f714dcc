//! What an arena has done so far, counted where it happens.

use std::sync::atomic::{AtomicU64, Ordering};

/// A reading of an arena's counters. Sizes are bytes. Displayed, it is the line that a report of an out-of-memory
/// should carry.
///
/// ```
/// use device_arena::ArenaOptions;
///
/// let arena = ArenaOptions::new().first_capacity(4096).byte_limit(8192).build_host()?;
/// let call = arena.begin()?;
/// let kept = call.output::<u8>(1000)?.publish();
/// if let Err(error) = call.output::<u8>(1 << 20) {
///     let report = format!("{error}; {}", arena.stats());
///     assert!(report.contains("4096 bytes reserved, 1024 used, 1024 at most"), "{report}");
/// }
/// call.finish()?;
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ArenaStats {
    /// Blocks asked of the driver, and given.
    pub allocations: u64,
    /// Blocks given back to the driver.
    pub frees: u64,
    /// Blocks that the driver did not take back. They stay with the arena, which tries again.
    pub failed_frees: u64,
    /// What the arena has from the driver now.
    pub bytes_reserved: u64,
    /// What the current generation's call has taken: outputs rounded up to the alignment, and open scratch.
    /// For types aligned beyond it, what their alignment may cost is included.
    pub bytes_used: u64,
    /// The most that any call had taken at once, or wanted where the limit refused it or `reserve` promised it, since the
    /// arena was made or trimmed.
    pub bytes_high_water: u64,
    /// Rewinds: each call begun is one.
    pub rewinds: u64,
    /// Begins, reserves and trims refused as contended.
    pub refused_begins: u64,
    /// Uses of stale views refused.
    pub refused_stale_reads: u64,
}

impl std::fmt::Display for ArenaStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} bytes reserved, {} used, {} at most; {} allocations, {} frees, {} failed frees; \
             {} rewinds, {} refused begins, {} refused stale reads",
            self.bytes_reserved,
            self.bytes_used,
            self.bytes_high_water,
            self.allocations,
            self.frees,
            self.failed_frees,
            self.rewinds,
            self.refused_begins,
            self.refused_stale_reads,
        )
    }
}

/// The counters. Those that only the lease's holder writes are stored, not added to.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    allocations: AtomicU64,
    frees: AtomicU64,
    failed_frees: AtomicU64,
    reserved: AtomicU64,
    used: AtomicU64,
    high_water: AtomicU64,
    rewinds: AtomicU64,
    refused_begins: AtomicU64,
    refused_stale_reads: AtomicU64,
}

fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn allocated(&self, reserved: usize) {
        bump(&self.allocations);
        self.reserved.store(reserved as u64, Ordering::Relaxed);
    }

    pub(crate) fn freed(&self, reserved: usize) {
        bump(&self.frees);
        self.reserved.store(reserved as u64, Ordering::Relaxed);
    }

    pub(crate) fn failed_free(&self) {
        bump(&self.failed_frees);
    }

    #[inline]
    pub(crate) fn used(&self, bytes: usize) {
        self.used.store(bytes as u64, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn high_water(&self, bytes: usize) {
        self.high_water.store(bytes as u64, Ordering::Relaxed);
    }

    /// Counted by the lease's holder alone.
    #[inline]
    pub(crate) fn rewound(&self) {
        self.rewinds.store(self.rewinds.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    pub(crate) fn refused_begin(&self) {
        bump(&self.refused_begins);
    }

    pub(crate) fn refused_stale_read(&self) {
        bump(&self.refused_stale_reads);
    }

    pub(crate) fn read(&self) -> ArenaStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ArenaStats {
            allocations: get(&self.allocations),
            frees: get(&self.frees),
            failed_frees: get(&self.failed_frees),
            bytes_reserved: get(&self.reserved),
            bytes_used: get(&self.used),
            bytes_high_water: get(&self.high_water),
            rewinds: get(&self.rewinds),
            refused_begins: get(&self.refused_begins),
            refused_stale_reads: get(&self.refused_stale_reads),
        }
    }
}
