//! Captures: work that becomes a graph, and the calls that a capture forbids.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::ThreadId;

use super::State;
use super::status::{Result, Status};
use super::stream::{Mark, Point};
use super::work::Work;

/// How much of each stream of a capture comes before.
pub(crate) type Clock = BTreeMap<u64, u64>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Global,
    ThreadLocal,
    Relaxed,
}

impl Mode {
    pub(crate) fn from_number(number: u32) -> Result<Mode> {
        match number {
            0 => Ok(Mode::Global),
            1 => Ok(Mode::ThreadLocal),
            2 => Ok(Mode::Relaxed),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

thread_local! {
    static THREAD_MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

/// Sets this thread's mode, and returns the one before.
pub(crate) fn exchange(mode: Mode) -> Mode {
    THREAD_MODE.replace(mode)
}

pub(crate) struct Capture {
    origin: u64,
    mode: Mode,
    thread: ThreadId,
    invalidated: bool,
    /// In the order in which they were captured, which is an order that they may run in.
    nodes: Vec<Work>,
    clocks: BTreeMap<u64, Clock>,
}

impl State {
    /// What `stream` takes part in.
    fn capture_of(&mut self, stream: u64) -> Option<(u64, &mut Capture)> {
        let id = self.streams[&stream].capture?;
        self.captures.get_mut(&id).map(|capture| (id, capture))
    }

    /// Refuses a call that may disturb a capture, and invalidates those that it would.
    pub(crate) fn unsafe_in_captures(&mut self) -> Result<()> {
        let thread = std::thread::current().id();
        let thread_mode = THREAD_MODE.get();
        let mut outcome = Ok(());
        for capture in self.captures.values_mut() {
            let own =
                capture.thread == thread && capture.mode != Mode::Relaxed && thread_mode != Mode::Relaxed;
            if own || (capture.mode == Mode::Global && thread_mode == Mode::Global) {
                capture.invalidated = true;
                outcome = Err(Status::STREAM_CAPTURE_UNSUPPORTED);
            }
        }
        outcome
    }

    /// Refuses to wait for or ask a stream that is being captured.
    pub(crate) fn not_capturing(&mut self, stream: u64) -> Result<()> {
        if let Some((_, capture)) = self.capture_of(stream) {
            capture.invalidated = true;
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        self.not_implicit(stream, true)
    }

    /// The stream that orders its context can't, while another of the context is being captured.
    pub(crate) fn not_implicit(&mut self, stream: u64, invalidate: bool) -> Result<()> {
        if !self.is_legacy(stream) {
            return Ok(());
        }
        let context = self.streams[&stream].context;
        let blocking = self.streams.values().filter(|other| other.context == context && other.blocking);
        let Some(id) = blocking.filter_map(|other| other.capture).next() else { return Ok(()) };
        if let Some(capture) = self.captures.get_mut(&id).filter(|_| invalidate) {
            capture.invalidated = true;
        }
        Err(Status::STREAM_CAPTURE_IMPLICIT)
    }

    /// Refuses to wait for all of a context while any of it is being captured.
    pub(crate) fn context_not_capturing(&mut self, context: u64) -> Result<()> {
        let captured: Vec<u64> = self
            .streams
            .iter()
            .filter(|(_, s)| s.context == context && s.capture.is_some())
            .map(|(&id, _)| id)
            .collect();
        captured.into_iter().try_for_each(|id| self.not_capturing(id))
    }

    pub(crate) fn begin_capture(&mut self, stream: u64, mode: Mode) -> Result<()> {
        if self.is_legacy(stream) {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        if self.streams[&stream].capture.is_some() {
            return Err(Status::ILLEGAL_STATE);
        }
        let id = self.handle();
        self.captures.insert(
            id,
            Capture {
                origin: stream,
                mode,
                thread: std::thread::current().id(),
                invalidated: false,
                nodes: Vec::new(),
                clocks: BTreeMap::from([(stream, Clock::new())]),
            },
        );
        self.streams.get_mut(&stream).unwrap().capture = Some(id);
        Ok(())
    }

    /// The graph of a capture that ends.
    pub(crate) fn end_capture(&mut self, stream: u64) -> Result<u64> {
        let Some((id, capture)) = self.capture_of(stream) else { return Err(Status::ILLEGAL_STATE) };
        if capture.mode != Mode::Relaxed && capture.thread != std::thread::current().id() {
            capture.invalidated = true;
            return Err(Status::STREAM_CAPTURE_WRONG_THREAD);
        }
        if capture.origin != stream {
            capture.invalidated = true;
            return Err(Status::STREAM_CAPTURE_UNMATCHED);
        }
        let capture = self.drop_capture(id);
        if capture.invalidated {
            return Err(Status::STREAM_CAPTURE_INVALIDATED);
        }
        let joined = &capture.clocks[&stream];
        let open = capture.clocks.iter().any(|(other, clock)| clock.get(other) > joined.get(other));
        if open {
            return Err(Status::STREAM_CAPTURE_UNJOINED);
        }
        let graph = self.handle();
        self.graphs.insert(graph, Arc::new(capture.nodes));
        Ok(graph)
    }

    fn drop_capture(&mut self, id: u64) -> Capture {
        for stream in self.streams.values_mut().filter(|stream| stream.capture == Some(id)) {
            stream.capture = None;
        }
        self.captures.remove(&id).unwrap()
    }

    /// A stream that ends takes its capture with it, or invalidates the one that it joined.
    pub(crate) fn stop_capturing(&mut self, stream: u64) {
        let Some((id, capture)) = self.capture_of(stream) else { return };
        capture.invalidated = true;
        if capture.origin == stream {
            self.drop_capture(id);
        }
    }

    /// Zero for none, one for active, two for invalidated.
    pub(crate) fn capture_status(&mut self, stream: u64) -> Result<u32> {
        self.not_implicit(stream, false)?;
        Ok(self.capture_of(stream).map_or(0, |(_, capture)| if capture.invalidated { 2 } else { 1 }))
    }

    /// Queues work, or gives it to the stream's capture. The point is there if it was queued.
    pub(crate) fn submit(&mut self, stream: u64, work: Work) -> Result<Option<Point>> {
        self.not_implicit(stream, true)?;
        let Some((_, capture)) = self.capture_of(stream) else {
            return Ok(Some(self.enqueue(stream, work, Vec::new())));
        };
        if capture.invalidated {
            return Err(Status::STREAM_CAPTURE_INVALIDATED);
        }
        capture.nodes.push(work);
        *capture.clocks.entry(stream).or_default().entry(stream).or_default() += 1;
        Ok(None)
    }

    pub(crate) fn is_capturing(&self, stream: u64) -> bool {
        self.streams[&stream].capture.is_some()
    }

    pub(crate) fn record(&mut self, event: u64, stream: u64) -> Result<()> {
        self.not_implicit(stream, true)?;
        let mark = match self.capture_of(stream) {
            Some((_, capture)) if capture.invalidated => return Err(Status::STREAM_CAPTURE_INVALIDATED),
            Some((id, capture)) => {
                Mark::Captured(id, capture.clocks.get(&stream).cloned().unwrap_or_default())
            }
            None => Mark::At(self.enqueue(stream, Work::Nothing, Vec::new())),
        };
        self.events.get_mut(&event).unwrap().mark = mark;
        Ok(())
    }

    /// Lets a stream wait for an event. The wait for a captured one makes the stream a part of that capture.
    pub(crate) fn wait_for_event(&mut self, stream: u64, event: u64) -> Result<()> {
        self.not_implicit(stream, true)?;
        let mark = self.events[&event].mark.clone();
        let capturing = self.capture_of(stream).map(|(id, _)| id);
        match (mark, capturing) {
            (Mark::Never, _) => Ok(()),
            (Mark::At(point), None) => {
                self.enqueue(stream, Work::Nothing, vec![point]);
                Ok(())
            }
            (Mark::At(_), Some(id)) => {
                self.captures.get_mut(&id).unwrap().invalidated = true;
                Err(Status::STREAM_CAPTURE_ISOLATION)
            }
            (Mark::Captured(id, _), Some(own)) if id != own => {
                self.captures.get_mut(&own).unwrap().invalidated = true;
                Err(Status::STREAM_CAPTURE_MERGE)
            }
            (Mark::Captured(id, clock), _) => {
                // Recorded in a capture that has ended: it is of no use any more.
                let capture = self.captures.get_mut(&id).ok_or(Status::INVALID_VALUE)?;
                if capture.invalidated {
                    return Err(Status::STREAM_CAPTURE_INVALIDATED);
                }
                let own = capture.clocks.entry(stream).or_default();
                for (other, count) in clock {
                    let known = own.entry(other).or_default();
                    *known = count.max(*known);
                }
                self.streams.get_mut(&stream).unwrap().capture = Some(id);
                Ok(())
            }
        }
    }

    /// The point of an event that may be asked: one in a capture may not.
    pub(crate) fn ask(&mut self, event: u64) -> Result<Option<Point>> {
        match self.events[&event].mark.clone() {
            Mark::Captured(id, _) => {
                self.captures.get_mut(&id).ok_or(Status::INVALID_VALUE)?.invalidated = true;
                Err(Status::CAPTURED_EVENT)
            }
            mark => {
                self.unsafe_in_captures()?;
                Ok(if let Mark::At(point) = mark { Some(point) } else { None })
            }
        }
    }
}
