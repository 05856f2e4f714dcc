//! Timing in turns: every contender once a round, so that a machine whose speed drifts does not decide between them, and
//! the medians of the rounds.

use std::time::{Duration, Instant};

use crate::driver::{Driver, Events, Handle};

/// What a step of the bench comes to. An error is words for the report.
pub type Outcome = Result<(), String>;

/// What a contender does once: it queues its work, and waits for nothing.
pub type Queue<'a> = Box<dyn FnMut() -> Outcome + 'a>;

/// One side of a comparison.
pub struct Contender<'a> {
    pub who: &'static str,
    queue: Queue<'a>,
    /// Launches between two events, at most.
    most_launches: u32,
}

impl<'a> Contender<'a> {
    pub fn new(who: &'static str, queue: impl FnMut() -> Outcome + 'a) -> Self {
        Self { who, queue: Box::new(queue), most_launches: u32::MAX }
    }

    pub fn queue_once(&mut self) -> Outcome {
        (self.queue)()
    }

    /// What can't be queued many times without the host's waiting for it.
    pub fn one_launch_at_a_time(mut self) -> Self {
        self.most_launches = 1;
        self
    }
}

/// Microseconds of one run.
#[derive(Debug, Clone)]
pub struct Timing {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    pub rounds: usize,
    /// Runs that one round timed together.
    pub runs: u32,
}

impl Timing {
    pub fn of(mut samples: Vec<f64>, runs: u32) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let (least, most) = (*samples.first()?, *samples.last()?);
        Some(Self { median: samples[samples.len() / 2], least, most, rounds: samples.len(), runs })
    }
}

/// What was timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// By events of the device around the work, whose list is there already.
    Device,
    /// By the host's clock: from a list on the host until the stream has passed.
    EndToEnd,
    /// By the host's clock, of a call that waits for nothing.
    Host,
}

impl Span {
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::EndToEnd => "end to end",
            Self::Host => "host",
        }
    }
}

/// How much time the bench takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    Whole,
    Quick,
    /// Works a 64th as large, for a driver that is simulated.
    Tiny,
}

impl Effort {
    /// Rounds of a work that takes as many microseconds.
    pub fn rounds(self, microseconds: f64) -> usize {
        let [short, middle, long, longest] = match self {
            Self::Whole => [51, 15, 7, 3],
            Self::Quick => [21, 9, 3, 2],
            Self::Tiny => [2, 2, 1, 1],
        };
        match microseconds {
            ..1e3 => short,
            1e3..5e3 => middle,
            5e3..50e3 => long,
            _ => longest,
        }
    }

    /// Whether so much time has passed that the rest has to be short: GPUs are lent by the minute.
    pub fn is_late(self, begin: Instant) -> bool {
        let seconds = match self {
            Self::Whole => 80,
            Self::Quick => 25,
            Self::Tiny => 600,
        };
        begin.elapsed() > Duration::from_secs(seconds)
    }

    /// A size or a count, which is a 64th for a simulated driver.
    pub fn scaled(self, number: usize) -> usize {
        if self == Self::Tiny { (number / 64).max(1) } else { number }
    }
}

/// What times a stream.
pub struct Clock<'a> {
    pub driver: &'a Driver,
    pub stream: Handle,
    pub events: Option<Events>,
    pub effort: Effort,
    /// When the program began.
    pub begin: Instant,
    /// Memory whose fill keeps the device busy while launches are queued: address and bytes.
    pub delay: (*mut u8, usize),
}

/// As much as the delay lasts, to be sure: the time in which launches are queued behind it.
const QUEUEING: f64 = 150.0;
/// Launches in a row, at most.
const LAUNCHES: f64 = 20.0;

pub type Timed = Vec<(&'static str, Result<Timing, String>)>;

impl Clock<'_> {
    fn end_to_end_once(&self, queue: &mut Queue<'_>) -> Result<f64, String> {
        let begin = Instant::now();
        queue()?;
        self.driver.synchronize(self.stream)?;
        Ok(micros(begin.elapsed()))
    }

    /// Each from its begin until the stream has passed.
    pub fn end_to_end(&self, contenders: &mut [Contender<'_>]) -> Timed {
        self.in_turns(contenders, |clock, contender, _| clock.end_to_end_once(&mut contender.queue))
    }

    /// Each by events around as many launches in a row as can be queued while the device has something else to do: what a
    /// launch costs the host is not in it, unless that is more than the work itself.
    pub fn device(&self, contenders: &mut [Contender<'_>]) -> Timed {
        self.in_turns(contenders, |clock, contender, runs| {
            let Some(events) = clock.events else { return clock.end_to_end_once(&mut contender.queue) };
            let (address, bytes) = clock.delay;
            // SAFETY: the memory is the bench's own, and nobody reads it.
            unsafe { clock.driver.fill(address, 0, bytes, clock.stream) }?;
            let queue = &mut contender.queue;
            let mut work = || (0..runs).try_for_each(|_| queue());
            Ok(clock.driver.elapsed(events, clock.stream, &mut work)? / f64::from(runs))
        })
    }

    /// Whoever fails has its words instead of a time. The first runs, which load what is loaded once, are dropped.
    fn in_turns(
        &self,
        contenders: &mut [Contender<'_>],
        sample: impl Fn(&Self, &mut Contender<'_>, u32) -> Result<f64, String>,
    ) -> Timed {
        struct Side {
            runs: u32,
            rounds: usize,
            samples: Vec<f64>,
            failed: Option<String>,
        }
        let mut sides: Vec<Side> = Vec::new();
        for contender in contenders.iter_mut() {
            let mut side = Side { runs: 1, rounds: 0, samples: Vec::new(), failed: None };
            match self.try_out(contender) {
                Ok((queued, took)) => {
                    side.runs = (QUEUEING / queued.max(0.1)).clamp(1.0, LAUNCHES) as u32;
                    if took > QUEUEING {
                        side.runs = 1;
                    }
                    side.runs = side.runs.min(contender.most_launches);
                    side.rounds = self.effort.rounds(took);
                    if self.effort.is_late(self.begin) {
                        side.rounds = side.rounds.min(2);
                    }
                }
                Err(words) => side.failed = Some(words),
            }
            sides.push(side);
        }
        let most = sides.iter().map(|side| side.rounds).max().unwrap_or(0);
        for round in 0..most {
            for (contender, side) in contenders.iter_mut().zip(&mut sides) {
                // The slow ones take part in some of the rounds, evenly.
                let is_due = (round + 1) * side.rounds / most > round * side.rounds / most;
                if side.failed.is_some() || !is_due {
                    continue;
                }
                match sample(self, contender, side.runs) {
                    Ok(microseconds) => side.samples.push(microseconds),
                    Err(words) => side.failed = Some(words),
                }
            }
        }
        let outcome = |side: Side| match side.failed {
            Some(words) => Err(words),
            None => Timing::of(side.samples, side.runs).ok_or_else(|| "not timed".to_owned()),
        };
        contenders.iter().zip(sides).map(|(contender, side)| (contender.who, outcome(side))).collect()
    }

    /// Warms up, and answers the microseconds in which the work was queued, and in which it was done.
    fn try_out(&self, contender: &mut Contender<'_>) -> Result<(f64, f64), String> {
        let mut took = self.end_to_end_once(&mut contender.queue)?;
        let mut queued = took;
        for _ in 0..3 {
            if took > 20e3 {
                break;
            }
            let begin = Instant::now();
            (contender.queue)()?;
            queued = micros(begin.elapsed());
            self.driver.synchronize(self.stream)?;
            took = micros(begin.elapsed());
        }
        Ok((queued, took))
    }
}

pub fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// Times two calls of the host in turns, `runs` of each at a time.
pub fn on_the_host(
    effort: Effort,
    runs: u32,
    first: &mut dyn FnMut(),
    second: &mut dyn FnMut(),
) -> [Option<Timing>; 2] {
    let rounds = effort.rounds(1e3);
    let sample = |work: &mut dyn FnMut()| {
        let begin = Instant::now();
        for _ in 0..runs {
            work();
        }
        micros(begin.elapsed()) / f64::from(runs)
    };
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    for round in 0..rounds + 2 {
        let (a, b) = (sample(first), sample(second));
        // The first rounds load what is loaded once.
        if round >= 2 {
            firsts.push(a);
            seconds.push(b);
        }
    }
    [Timing::of(firsts, runs), Timing::of(seconds, runs)]
}
