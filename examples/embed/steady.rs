//! The steady loop, and what an arena refuses.

use std::time::{Duration, Instant};

use device_arena::{Arena, Error, Executor, Residency, Result, Tape, View};
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::engine::{Engine, TokenList};

/// The calls after which no arena asks the driver for anything. The first call outgrows what it has, the second
/// replaces that by one block; and the two arenas that rows land in take turns.
pub const WARM_UP: u64 = 3;

/// The arenas of the loop.
pub struct Arenas {
    /// Where tokens land.
    pub tokens: Arena,
    /// Where the next call's rows land.
    pub rows: Arena,
    /// Where the rows of the best call so far are. The two change places whenever a call was better.
    pub kept: Arena,
}

impl Arenas {
    /// Nothing is allocated yet.
    pub fn new(executor: &Executor) -> Self {
        Self { tokens: Arena::new(executor), rows: Arena::new(executor), kept: Arena::new(executor) }
    }

    /// Keeps the rows of the last call, by giving the next one the other arena.
    fn keep_rows(&mut self) {
        std::mem::swap(&mut self.rows, &mut self.kept);
    }

    fn sum(&self, count: impl Fn(&Arena) -> u64) -> u64 {
        [&self.tokens, &self.rows, &self.kept].into_iter().map(count).sum()
    }

    fn allocations(&self) -> u64 {
        self.sum(|arena| arena.stats().allocations)
    }
}

/// What one call of the loop answered.
pub struct Rows {
    pub view: View<f32>,
    pub call: u64,
    pub time: Duration,
}

/// What happened in the loop.
pub struct Outcome {
    pub calls: u64,
    pub allocations_warmup: u64,
    pub allocations_steady: u64,
    pub high_water_bytes: u64,
    /// The mean of the calls after the warm-up, or of all where there are none.
    pub time: Duration,
    /// The rows of the fastest call, kept.
    pub best: Rows,
    /// How many tokens there are.
    pub tokens: usize,
    /// The first token of each text, of the last call.
    pub first: View<u64>,
}

/// Tokenizes and embeds the whole tape, `calls` times and once at least.
pub fn steady_loop(engine: &impl Engine, tape: &Tape, arenas: &mut Arenas, calls: u64) -> Result<Outcome> {
    let run = |arenas: &Arenas, call| {
        let started = Instant::now();
        let tokens = engine.tokenize(&tape.view(), &arenas.tokens)?;
        let view = engine.embed(&tokens, &arenas.rows)?;
        // A GPU has only been told what to do by now.
        engine.executor().synchronize()?;
        Ok::<_, Error>((tokens, Rows { view, call, time: started.elapsed() }))
    };
    let mut progress = Progress::new(calls);
    let (mut tokens, mut best) = run(arenas, 1)?;
    arenas.keep_rows();
    let mut allocations_warmup = arenas.allocations();
    let mut time = best.time;
    for call in 2..=calls {
        progress.show(call);
        let (next_tokens, rows) = run(arenas, call)?;
        tokens = next_tokens;
        time = if call == WARM_UP + 1 { rows.time } else { time + rows.time };
        if call <= WARM_UP || rows.time < best.time {
            best = rows;
            arenas.keep_rows();
        }
        if call <= WARM_UP {
            allocations_warmup = arenas.allocations();
        }
    }
    let timed = if calls > WARM_UP { calls - WARM_UP } else { calls };
    Ok(Outcome {
        calls,
        allocations_warmup,
        allocations_steady: arenas.allocations() - allocations_warmup,
        high_water_bytes: arenas.sum(|arena| arena.stats().bytes_high_water),
        time: time.div_f64(timed as f64),
        best,
        tokens: tokens.len(),
        first: tokens.first().clone(),
    })
}

/// What came of a use that has to be refused.
pub enum Attempt {
    Refused(Error),
    /// It went through, or failed in another way: a defect.
    NotRefused,
    /// There is nothing to try it on.
    NoDevice,
}

impl Attempt {
    fn of<T>(outcome: Result<T>, is_expected: impl Fn(&Error) -> bool) -> Self {
        match outcome {
            Err(error) if is_expected(&error) => Self::Refused(error),
            _ => Self::NotRefused,
        }
    }
}

/// Uses that an arena has to refuse.
pub struct Refusals {
    pub stale: Attempt,
    pub contended: Attempt,
    pub wrong_executor: Attempt,
}

impl Refusals {
    /// Begins a call while somebody reads, then begins one all the same and reads what is gone.
    pub fn provoke(executor: &Executor, host: &Executor, arenas: &Arenas, first: &View<u64>) -> Result<Self> {
        let begin = || Attempt::of(executor.begin(&arenas.tokens), |e| matches!(e, Error::Contended { .. }));
        let contended = match arenas.tokens.describe().residency {
            Residency::Ram => {
                let _guard = first.read()?;
                begin()
            }
            Residency::Vram => {
                let _guard = first.read_on(executor)?;
                begin()
            }
        };
        executor.begin(&arenas.tokens)?.finish()?;
        let stale = Attempt::of(first.to_vec(), |e| matches!(e, Error::Stale { .. }));
        let wrong_executor = match arenas.rows.describe().residency {
            Residency::Ram => Attempt::NoDevice,
            Residency::Vram => {
                Attempt::of(host.begin(&arenas.rows), |e| matches!(e, Error::WrongExecutor { .. }))
            }
        };
        Ok(Self { stale, contended, wrong_executor })
    }
}

/// A bar on standard error, where that is a terminal and the run is long.
struct Progress {
    bar: ProgressBar,
    started: Instant,
    is_long: bool,
}

impl Progress {
    fn new(calls: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(calls), ProgressDrawTarget::hidden());
        Self { bar, started: Instant::now(), is_long: false }
    }

    /// Shows that `call` begins.
    fn show(&mut self, call: u64) {
        if !self.is_long && self.started.elapsed() > Duration::from_secs(1) {
            self.is_long = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(call - 1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
