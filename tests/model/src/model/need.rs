//! What calls need, and what that lets an arena ask of its driver.
//!
//! The model knows no blocks. It knows what the documentation promises of them, and holds the arena's own counters
//! to it.

use super::arena::Settings;

/// An arena's own counters of bytes and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
    pub(crate) reserved: u64,
    pub(crate) used: u64,
    pub(crate) high_water: u64,
}

impl Seen {
    fn blocks(&self) -> u64 {
        self.allocations - self.frees
    }
}

/// What the last operation may have done to an arena's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// It began a call.
    Began,
    /// It took room that is `asked` bytes large, alignment included.
    Took { asked: usize },
    /// It took room, more than once perhaps.
    Grew,
    /// It reserved so many bytes.
    Reserved { bytes: usize },
    /// It gave every block back.
    Trimmed,
    /// It began a call and took room, in either order.
    BeganAndGrew,
}

/// What a call needs, and what the arena has been seen to have.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    /// What outputs and open scratch have taken, rounded up.
    pub(crate) used: u64,
    /// The part of it that open scratch scopes have.
    pub(crate) scratch: u64,
    pub(crate) high_water: u64,
    /// The most that the running call had at once.
    peak: u64,
    /// Nothing but outputs of a fixed length and scratch was opened since the begin: `used` is exact.
    pub(crate) exact: bool,
    /// So it was for every call since the last trim: the high-water mark is exact.
    pub(crate) exact_mark: bool,
    pub(crate) change: Change,
    seen: Seen,
    at_begin: Seen,
    /// What the running call may take without asking the driver.
    granted: u64,
    /// What `reserve` promised to the next call.
    promised: u64,
    /// The running call has taken something, if only for a while.
    touched: bool,
    /// What the last call would have needed in all, had the limit not refused it.
    wanted: u64,
    /// What the running call has room for within the limit, whatever it finds.
    assured: u64,
}

impl Default for Need {
    fn default() -> Self {
        Self {
            used: 0,
            scratch: 0,
            high_water: 0,
            peak: 0,
            exact: true,
            exact_mark: true,
            change: Change::None,
            seen: Seen::default(),
            at_begin: Seen::default(),
            granted: 0,
            promised: 0,
            touched: false,
            wanted: 0,
            assured: 0,
        }
    }
}

/// The least block that holds so many bytes.
fn block(settings: &Settings, bytes: usize) -> usize {
    bytes.next_multiple_of(settings.block)
}

/// The room of an output of `bytes` bytes, which are not too many, and what its alignment may cost beyond it.
pub(crate) fn room(settings: &Settings, bytes: usize, align: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    bytes.next_multiple_of(settings.alignment) + align.saturating_sub(settings.alignment)
}

impl Need {
    /// One more thing that the operation may have done.
    fn change(&mut self, next: Change) {
        self.change = match (self.change, next) {
            (Change::None, next) => next,
            (Change::Began | Change::BeganAndGrew, _) | (_, Change::Began) => Change::BeganAndGrew,
            _ => Change::Grew,
        };
    }

    /// Counts room that an output took.
    pub(crate) fn take(&mut self, room: usize) {
        self.touched |= room != 0;
        self.used += room as u64;
        self.high_water = self.high_water.max(self.used);
        self.peak = self.peak.max(self.used);
        self.change(Change::Took { asked: room });
    }

    /// Counts room that scratch took.
    pub(crate) fn take_scratch(&mut self, room: usize) {
        self.take(room);
        self.scratch += room as u64;
    }

    /// Ends a scope that began with so much scratch taken.
    pub(crate) fn end_scratch(&mut self, before: u64) {
        self.used = self.used.saturating_sub(self.scratch - before);
        self.scratch = before;
    }

    /// Room was taken that only the arena can count.
    pub(crate) fn follow(&mut self) {
        (self.exact, self.exact_mark, self.touched) = (false, false, true);
        self.change(Change::Grew);
    }

    pub(crate) fn begin(&mut self) {
        (self.used, self.peak, self.scratch, self.exact, self.touched) = (0, 0, 0, true, false);
        self.assured = std::mem::take(&mut self.wanted);
        self.change(Change::Began);
    }

    pub(crate) fn trim(&mut self) {
        (self.used, self.high_water, self.exact, self.exact_mark) = (0, 0, true, true);
        // What calls needed is forgotten, and what they were refused with it.
        self.wanted = 0;
        self.change = Change::Trimmed;
    }

    /// What the arena has from its driver, as it was last seen.
    pub(crate) fn reserved(&self) -> usize {
        self.seen.reserved as usize
    }

    /// Whether the limit may forbid room for `asked` bytes: a block of just that size would pass it, beside the
    /// blocks that this call has something of.
    pub(super) fn may_be_refused(&self, settings: &Settings, asked: usize) -> bool {
        let beside = if self.touched { self.reserved() } else { 0 };
        beside + block(settings, asked) > settings.byte_limit && !self.surely_fits(asked)
    }

    /// The limit has refused room for `asked` bytes. The next call begins with what would have held it, if the
    /// limit lets one block have as much.
    pub(crate) fn refuse(&mut self, settings: &Settings, asked: usize) {
        let wanted = self.used + asked as u64;
        let possible = block(settings, wanted as usize) <= settings.byte_limit;
        self.wanted = if self.exact && possible { wanted } else { 0 };
        // The arena may count it as needed from the next begin on.
        self.exact_mark = false;
    }

    /// Whether a reserve of `bytes` bytes may be refused: no block that is there is as large for sure.
    pub(crate) fn may_refuse_reserve(&self, settings: &Settings, bytes: usize) -> bool {
        let there = self.seen.blocks() == 1 && bytes <= self.reserved();
        bytes != 0 && !there && self.reserved() + block(settings, bytes) > settings.byte_limit
    }

    /// Whether a begin may give blocks back: a chain, one that fits no more, or what the limit is in the way of.
    pub(crate) fn may_free_on_begin(&self, settings: &Settings) -> bool {
        let outgrown = self.seen.blocks() > 1 || self.seen.high_water > self.seen.reserved;
        outgrown || self.may_free_on_growth(settings)
    }

    /// Whether growth may: where the limit is in the way.
    pub(crate) fn may_free_on_growth(&self, settings: &Settings) -> bool {
        settings.byte_limit != usize::MAX && self.seen.blocks() != 0
    }

    /// Whether the promises alone say that there is room for `asked` bytes.
    fn surely_fits(&self, asked: usize) -> bool {
        // Where the call has had more than that, scratch has left room in blocks that it does not come back to.
        self.exact && self.peak.max(self.used + asked as u64) <= self.granted.max(self.assured)
    }

    /// The request that a refusal for `asked` bytes names.
    pub(crate) fn least_request(settings: &Settings, asked: usize) -> usize {
        block(settings, asked)
    }

    /// Holds the arena's counters against what the last operation may have done to them, and remembers them.
    pub(crate) fn settle(&mut self, settings: &Settings, now: Seen, in_call: bool) -> Result<(), String> {
        let (before, change) = (self.seen, std::mem::replace(&mut self.change, Change::None));
        if let Change::Reserved { bytes } = change
            && now.allocations != before.allocations
        {
            self.high_water = self.high_water.max(bytes as u64);
        }
        self.check_change(settings, before, now, change)?;
        self.check_use(now, before)?;
        if now.reserved > settings.byte_limit as u64 {
            return Err(format!(
                "{} bytes are reserved, past the limit of {}",
                now.reserved, settings.byte_limit
            ));
        }
        self.seen = now;
        (self.used, self.high_water) = (now.used, now.high_water);
        match change {
            Change::Began | Change::BeganAndGrew => {
                let one = now.blocks() == 1 && now.reserved >= now.high_water;
                let one = one || settings.byte_limit == usize::MAX;
                self.granted = self.promised.max(if one { now.high_water } else { 0 });
                (self.at_begin, self.promised) = (now, 0);
            }
            Change::Reserved { bytes } => self.promised = self.promised.max(bytes as u64),
            Change::Trimmed => self.promised = 0,
            _ => {}
        }
        // The promise of the steady loop: no more than before, so nothing asked of the driver.
        if in_call && now.high_water <= self.granted && now.allocations != self.at_begin.allocations {
            let (granted, mark) = (self.granted, now.high_water);
            return Err(format!(
                "a call that took {mark} bytes at the most, of {granted} granted, allocated"
            ));
        }
        Ok(())
    }

    fn check_use(&self, now: Seen, before: Seen) -> Result<(), String> {
        if self.exact && now.used != self.used {
            return Err(format!("{} bytes are used, and the arena counts {}", self.used, now.used));
        }
        if self.exact_mark && now.high_water != self.high_water {
            return Err(format!(
                "the high-water mark is {}, and the arena says {}",
                self.high_water, now.high_water
            ));
        }
        if now.high_water < now.used || (before.high_water > now.high_water && self.high_water != 0) {
            return Err(format!("a high-water mark of {} after {before:?}: {now:?}", now.high_water));
        }
        Ok(())
    }

    fn check_change(
        &self,
        settings: &Settings,
        before: Seen,
        now: Seen,
        change: Change,
    ) -> Result<(), String> {
        let limited = settings.byte_limit != usize::MAX;
        let same =
            |a: Seen, b: Seen| (a.allocations, a.frees, a.reserved) == (b.allocations, b.frees, b.reserved);
        let unchanged = same(before, now);
        let allocated = now.allocations - before.allocations;
        let grown = now.reserved.wrapping_sub(before.reserved) as usize;
        let kept = now.frees == before.frees;
        let plausible = match change {
            Change::None => unchanged,
            // A chain becomes one block that fits, or stays where the limit forbids that.
            Change::Began if limited && now.blocks() == 0 => true,
            // What the limit refused is granted: the mark rises to it, and one block that holds it takes their place.
            Change::Began if limited && now.high_water > before.high_water => {
                allocated == 1 && now.blocks() == 1 && now.reserved >= now.high_water
            }
            Change::Began if before.blocks() <= 1 && before.reserved >= before.high_water => unchanged,
            // One block that holds what the limit refused, where none within the limit holds the most that there was.
            Change::Began if limited && allocated == 1 && self.assured != 0 => {
                let most_fits = block(settings, now.high_water as usize) <= settings.byte_limit;
                let needed = if most_fits { now.high_water } else { now.high_water.min(self.assured) };
                now.blocks() == 1 && now.reserved >= needed
            }
            Change::Began => {
                let replaced = allocated <= 1 && now.blocks() == 1 && now.reserved >= now.high_water;
                // Or goes, so that one can come that the limit would not have let beside it.
                replaced || limited && (unchanged || now.blocks() == 0)
            }
            // An alignment's allowance is counted whether or not it cost anything.
            Change::BeganAndGrew => now.blocks() >= 1 || now.used == 0,
            Change::Took { asked } if kept || !limited => {
                unchanged || kept && allocated == 1 && self.fits(settings, before, asked, grown)
            }
            // What the limit would not let beside the old blocks, while nobody had anything of them.
            Change::Took { asked } => now.blocks() == 1 && now.reserved as usize >= block(settings, asked),
            Change::Grew => unchanged || (kept || limited) && allocated >= 1,
            Change::Reserved { bytes } => {
                now.reserved as usize >= bytes && (unchanged || kept && allocated == 1 && grown >= bytes)
            }
            Change::Trimmed => allocated == 0 && now.blocks() == 0 && now.reserved == 0,
        };
        if plausible { Ok(()) } else { Err(format!("{change:?} can't have made {before:?} into {now:?}")) }
    }

    /// Whether a new block of `grown` bytes is what growth makes of `asked`.
    fn fits(&self, settings: &Settings, before: Seen, asked: usize, grown: usize) -> bool {
        let first = [settings.first_capacity, before.high_water as usize];
        if before.blocks() == 0 && first.iter().any(|first| grown == block(settings, asked.max(*first))) {
            return true;
        }
        // The limit may have left the least that would do.
        grown == block(settings, asked) || !settings.exact_growth && grown > block(settings, asked)
    }
}
