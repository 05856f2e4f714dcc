//! The planner: a ladder of rungs, each of which begins with the best plan of those before it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::greedy::{Layout, MOST_VISITS, RULES, place};
use super::problem::Problem;
use super::search::{Budget, improve};
use super::{Buffer, MemoryPlan, bound};
use crate::error::Result;

/// Finds room for buffers. First it tries greedy orders (by size, area, lifetime, start and contention, each in the lowest
/// and in the tightest gap), then it searches for something lower, for as long as it may. The best plan so far is the
/// answer, however the search ends; it is checked as every plan is.
///
/// Where thousands of buffers are live at once, the greedy orders have a limit of their own to the neighbours that they look
/// at, so that planning 100,000 buffers takes seconds, not hours, without a deadline, too.
///
/// The same buffers, options and seed give the same plan on every machine, whatever order the buffers come in, as long as
/// the steps end the search. A deadline or a cancellation can only end it sooner, and then the plan depends on how fast the
/// machine is.
///
/// ```
/// use device_arena::plan::{Buffer, Planner};
///
/// let buffers: Vec<_> = (0..40).map(|id| Buffer::new(id, id / 2..id + 3, 64 * (1 + id * 7 % 5))).collect();
/// let planned = Planner::new().seed(7).steps(10_000).plan(&buffers)?;
/// assert!(planned.peak() >= planned.lower_bound());
/// assert_eq!(planned.plan(), Planner::new().seed(7).steps(10_000).plan(&buffers)?.plan());
/// planned.plan().verify(&buffers)?;
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Planner {
    alignment: u64,
    seed: u64,
    steps: u64,
    time_limit: Option<Duration>,
    cancel: Option<Arc<AtomicBool>>,
}

impl Default for Planner {
    fn default() -> Self {
        Self { alignment: 1, seed: 0, steps: 200_000, time_limit: None, cancel: None }
    }
}

/// What ended a planner's search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stop {
    /// There is nothing lower, or the search does not know where to look for it.
    Done,
    /// The step budget.
    Steps,
    /// The deadline.
    Deadline,
    /// The flag.
    Cancelled,
}

impl Planner {
    /// A planner that aligns as the buffers ask, searches for 200,000 steps, and has no deadline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Aligns every buffer to this many bytes at least, a power of two.
    #[must_use]
    pub fn alignment(self, alignment: u64) -> Self {
        Self { alignment, ..self }
    }

    /// What the search's choices are drawn from.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// How many steps the search may take; with none, the best greedy plan is the answer. A step is one buffer that is tried
    /// at one offset, or as many as it takes to look at 256 moments of time: less than a microsecond in most cases.
    #[must_use]
    pub fn steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// How long planning may take. The greedy orders heed it, too: what they have not placed by then goes on top of what it
    /// meets. The checks of buffers and plan, in O(n log n), are made in any case.
    #[must_use]
    pub fn time_limit(self, limit: Duration) -> Self {
        Self { time_limit: Some(limit), ..self }
    }

    /// A flag that ends planning, as a deadline does, once it is true.
    #[must_use]
    pub fn cancel(self, flag: Arc<AtomicBool>) -> Self {
        Self { cancel: Some(flag), ..self }
    }

    /// Finds room for buffers.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`](crate::Error::Plan): an alignment that is no power of two, an id that comes twice, a lifetime without
    /// a step, an alias of a buffer that does not exist, of itself or of a smaller one, fixed offsets that are not aligned or
    /// clash, sizes whose sum leaves 63 bits.
    pub fn plan(&self, buffers: &[Buffer]) -> Result<Planned> {
        let started = Instant::now();
        let problem = Problem::new(buffers, self.alignment)?;
        let lower_bound = bound::of(&problem);
        let deadline = self.time_limit.and_then(|limit| started.checked_add(limit));
        let mut budget = Budget::new(self.steps, deadline, self.cancel.as_deref());

        let mut best: Option<Layout> = None;
        let mut visits = MOST_VISITS;
        for (order, fit) in RULES {
            if best.as_ref().is_some_and(|best| best.peak <= lower_bound || budget.is_over()) {
                break;
            }
            let layout = place(&problem, order, fit, &mut visits, || budget.is_over());
            if best.as_ref().is_none_or(|best| layout.peak < best.peak) {
                best = Some(layout);
            }
        }
        let mut best = best.unwrap_or_else(|| Layout::new(&[], Vec::new()));
        let (greedy_peak, greedy_time) = (best.peak, started.elapsed());

        let mut is_least = best.peak <= lower_bound;
        if !is_least {
            let found = improve(&problem, &best, self.seed, &mut budget);
            best = found.layout.unwrap_or(best);
            let is_rounded = problem.items.iter().any(|item| item.size % problem.grain != 0);
            is_least = best.peak <= lower_bound || (found.is_least && !is_rounded);
        }
        Ok(Planned {
            plan: problem.plan(buffers, &best.offsets)?,
            lower_bound,
            greedy_peak,
            greedy_time,
            steps: budget.spent(),
            stop: budget.stop().unwrap_or(Stop::Done),
            is_least,
            time: started.elapsed(),
        })
    }
}

/// A plan, and what is known of how good it is. Sizes are bytes.
#[derive(Debug, Clone)]
pub struct Planned {
    plan: MemoryPlan,
    lower_bound: u64,
    greedy_peak: u64,
    greedy_time: Duration,
    steps: u64,
    stop: Stop,
    is_least: bool,
    time: Duration,
}

impl Planned {
    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &MemoryPlan {
        &self.plan
    }

    /// The plan, alone.
    #[must_use]
    pub fn into_plan(self) -> MemoryPlan {
        self.plan
    }

    /// The bytes that the plan needs: its [`total`](MemoryPlan::total).
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.plan.total()
    }

    /// The bytes that no plan can do without: [`lower_bound`](super::lower_bound).
    #[must_use]
    pub fn lower_bound(&self) -> u64 {
        self.lower_bound
    }

    /// How far the peak is above the lower bound. Not all of that can be saved, as a rule.
    #[must_use]
    pub fn waste(&self) -> u64 {
        self.peak().saturating_sub(self.lower_bound)
    }

    /// Whether it is known that no plan needs less: the peak is the lower bound, or the search has tried everything below.
    #[must_use]
    pub fn is_least(&self) -> bool {
        self.is_least
    }

    /// The peak of the best greedy plan, which the search began with.
    #[must_use]
    pub fn greedy_peak(&self) -> u64 {
        self.greedy_peak
    }

    /// How long the greedy orders took, all of them.
    #[must_use]
    pub fn greedy_time(&self) -> Duration {
        self.greedy_time
    }

    /// How many steps the search took.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// What ended the search.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// How long planning took, in all.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.time
    }
}
