//! The device that is measured, two pieces of its memory with a pattern in one of them, and whether a copy put every byte
//! where it belongs.

use std::ops::Range;
use std::time::Instant;

use device_arena::backend::{AnyBackend, Backend, Block, CopyRange, Cuda, DeviceInfo, Stream};
use device_arena::{Executor, Placement};

use crate::driver::{Driver, Events, Handle};
use crate::peers::Peers;
use crate::timing::{Clock, Effort, Outcome};
use crate::works::{Numbers, Place, Work};

/// The device, and who works on it.
pub struct Gpu {
    pub cuda: Cuda,
    pub executor: Executor,
    pub stream: Stream,
    pub raw: Handle,
    pub driver: Driver,
    pub peers: Option<Peers>,
    pub info: DeviceInfo,
    pub events: Option<Events>,
    pub effort: Effort,
    /// When the program began.
    pub begin: Instant,
}

/// An error of the crate, in words.
pub fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Gpu {
    /// The first device, with a stream of the bench's own that the executor works on too.
    pub fn open(effort: Effort, begin: Instant) -> Result<Self, String> {
        let cuda = Cuda::load().map_err(words)?;
        let stream = cuda.create_stream(0).map_err(words)?;
        let raw = cuda.raw_stream(&stream).map_err(words)?;
        // SAFETY: the stream lives to the end of the program's work.
        let executor = unsafe { Executor::adopt(AnyBackend::Cuda(cuda), raw, Box::new(())) };
        let executor = executor.map_err(|refused| words(refused.error))?;
        let info = executor.device().map_err(words)?;
        let driver = Driver::open(cuda.library())?;
        let events = executor.with_current(|| driver.events()).map_err(words)?;
        Ok(Self { cuda, executor, stream, raw, driver, peers: None, info, events, effort, begin })
    }

    pub fn block(&self, bytes: usize) -> Result<Block, String> {
        self.cuda.allocate(0, Some(&self.stream), Placement::Device, bytes).map_err(words)
    }

    pub fn free(&self, block: Block) {
        // SAFETY: the bench has the block alone.
        let _ = unsafe { self.cuda.free(Some(&self.stream), block) };
    }

    pub fn synchronize(&self) -> Outcome {
        self.driver.synchronize(self.raw)
    }

    /// What times this device; `delay` is memory that nobody needs.
    pub fn clock(&self, delay: &Block) -> Clock<'_> {
        let Self { driver, events, effort, begin, .. } = self;
        let delay = (delay.address().as_ptr(), delay.bytes());
        Clock { driver, stream: self.raw, events: *events, effort: *effort, begin: *begin, delay }
    }

    /// Copies from anywhere to anywhere, and waits.
    ///
    /// # Safety
    ///
    /// Both ends are live and as long.
    pub unsafe fn transfer(&self, to: *mut u8, from: *const u8, bytes: usize) -> Outcome {
        // SAFETY: the caller's promise is the same.
        unsafe { self.driver.copy(to, from, bytes, self.raw) }?;
        self.synchronize()
    }
}

/// A prime number of bytes that repeat, so that no range which is moved by a round number looks like another.
const PERIOD: usize = 8_388_593;
/// What the destination holds before a copy.
const BEFORE: u8 = 0xe7;
/// Destinations that are no larger are read back whole; of others, windows at the ends of ranges.
const WHOLE: usize = 128 << 20;
const WINDOW: usize = 4096;
/// Ranges of which both ends are read back.
const LOOKED_AT: usize = 48;

/// Where copies come from and go to.
pub struct Pieces {
    pub source: Block,
    pub destination: Block,
    pattern: Vec<u8>,
}

impl Pieces {
    /// Two pieces of so many bytes, the first of which is filled with the pattern.
    pub fn new(gpu: &Gpu, bytes: usize) -> Result<Self, String> {
        let mut numbers = Numbers(42);
        let pattern: Vec<u8> =
            (0..PERIOD.div_ceil(8)).flat_map(|_| numbers.next().to_le_bytes()).take(PERIOD).collect();
        let pieces = Self { source: gpu.block(bytes)?, destination: gpu.block(bytes)?, pattern };
        let to = pieces.source.address().as_ptr();
        let mut filled = PERIOD.min(bytes);
        // SAFETY: both ends are as long.
        unsafe { gpu.transfer(to, pieces.pattern.as_ptr(), filled) }?;
        while filled < bytes {
            // A whole number of periods each time.
            let more = filled.min(bytes - filled);
            // SAFETY: both ranges are within the piece, one behind the other.
            unsafe { gpu.transfer(to.wrapping_add(filled), to, more) }?;
            filled += more;
        }
        Ok(pieces)
    }

    pub fn free(self, gpu: &Gpu) {
        gpu.free(self.source);
        gpu.free(self.destination);
    }

    pub fn from(&self, offset: usize) -> *mut u8 {
        self.source.address().as_ptr().wrapping_add(offset)
    }

    pub fn to(&self, offset: usize) -> *mut u8 {
        self.destination.address().as_ptr().wrapping_add(offset)
    }

    /// A range as the crate takes it.
    pub fn range(&self, place: &Place) -> CopyRange {
        CopyRange { destination: self.to(place.to), source: self.from(place.from), bytes: place.bytes }
    }

    /// Writes the pattern as it is at that offset of the source.
    fn pattern_at(&self, offset: usize, mut to: &mut [u8]) {
        let mut at = offset % PERIOD;
        while !to.is_empty() {
            let bytes = to.len().min(PERIOD - at);
            let (part, rest) = to.split_at_mut(bytes);
            part.copy_from_slice(&self.pattern[at..at + bytes]);
            (to, at) = (rest, 0);
        }
    }

    /// Runs a copy once and holds what it wrote, and what it had to leave, against the list.
    pub fn check(
        &self,
        gpu: &Gpu,
        work: &Work,
        copy: &mut dyn FnMut() -> Outcome,
    ) -> Result<Checked, String> {
        let area = work.destination();
        // SAFETY: the area is within the piece, which the bench has alone.
        unsafe { gpu.driver.fill(self.to(area.start), BEFORE, area.len(), gpu.raw) }?;
        copy()?;
        gpu.synchronize()?;
        let mut places = work.places.clone();
        places.sort_unstable_by_key(|place| place.to);
        let mut buffer = Vec::new();
        let mut expected = Vec::new();
        for window in windows(&places, &area) {
            buffer.resize(window.len(), 0);
            // SAFETY: the window is within the piece, and the buffer as long.
            unsafe { gpu.transfer(buffer.as_mut_ptr(), self.to(window.start), window.len()) }?;
            self.expect(&places, &window, &mut expected);
            if buffer != expected {
                let at = buffer.iter().zip(&expected).position(|(found, expected)| found != expected);
                return Ok(Checked::Wrong { at: window.start + at.unwrap_or(0) });
            }
        }
        Ok(Checked::Right)
    }

    /// What a window of the destination has to hold.
    fn expect(&self, places: &[Place], window: &Range<usize>, expected: &mut Vec<u8>) {
        expected.clear();
        expected.resize(window.len(), BEFORE);
        let first = places.partition_point(|place| place.to + place.bytes <= window.start);
        for place in places[first..].iter().take_while(|place| place.to < window.end) {
            let begin = place.to.max(window.start);
            let end = (place.to + place.bytes).min(window.end);
            let from = place.from + (begin - place.to);
            self.pattern_at(from, &mut expected[begin - window.start..end - window.start]);
        }
    }
}

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    Right,
    /// The first offset of the destination that is not as it should be.
    Wrong {
        at: usize,
    },
}

/// The parts of the destination that are read back.
fn windows(places: &[Place], area: &Range<usize>) -> Vec<Range<usize>> {
    if area.len() <= WHOLE {
        return area.clone().step_by(1 << 20).map(|at| at..(at + (1 << 20)).min(area.end)).collect();
    }
    let around = |at: usize| at.saturating_sub(WINDOW / 2).max(area.start)..(at + WINDOW / 2).min(area.end);
    let step = (places.len() / LOOKED_AT).max(1);
    let looked_at = places.iter().step_by(step).chain(places.last());
    let ends = looked_at.flat_map(|place| [around(place.to), around(place.to + place.bytes)]);
    // And what lies between, evenly.
    ends.chain(area.clone().step_by(area.len() / LOOKED_AT).map(around)).collect()
}
