//! Streams: queues with a thread each, the order between them, and what waits for them.

use std::collections::VecDeque;
use std::thread::ThreadId;
use std::time::Instant;

use super::capture::Clock;
use super::status::{Result, Status};
use super::work::{self, Work};
use super::{Locked, State, lock, sleep, wake};

/// A stream and how much of its work, counted from its start.
pub(crate) type Point = (u64, u64);

pub(crate) struct Stream {
    pub context: u64,
    /// Whether it and the nameless stream of its context wait for each other.
    pub blocking: bool,
    /// Whether it has a handle.
    pub named: bool,
    pub destroyed: bool,
    pub capture: Option<u64>,
    queue: VecDeque<Queued>,
    pub queued: u64,
    pub completed: u64,
    /// How much of it somebody waits for. Late work runs no further.
    demanded: u64,
    /// Questions that were answered "not ready".
    queries: u32,
    has_worker: bool,
}

struct Queued {
    after: Vec<Point>,
    work: Work,
    since: Instant,
}

#[derive(Clone)]
pub(crate) enum Mark {
    Never,
    At(Point),
    /// In a capture, after this much of each of its streams.
    Captured(u64, Clock),
}

pub(crate) struct Event {
    pub context: u64,
    pub mark: Mark,
}

impl State {
    pub(crate) fn create_stream(&mut self, context: u64, blocking: bool, named: bool) -> u64 {
        let handle = self.handle();
        self.streams.insert(
            handle,
            Stream {
                context,
                blocking,
                named,
                destroyed: false,
                capture: None,
                queue: VecDeque::new(),
                queued: 0,
                completed: 0,
                demanded: 0,
                queries: 0,
                has_worker: false,
            },
        );
        handle
    }

    /// The stream that a handle means, which has to be there and of a whole context. Null and 1 are the nameless stream
    /// of the current context, 2 is that of this thread.
    pub(crate) fn stream(&mut self, handle: u64) -> Result<u64> {
        if handle <= 2 {
            let context = self.current()?;
            let thread: Option<ThreadId> = (handle == 2).then(|| std::thread::current().id());
            if let Some(&stream) = self.nameless.get(&(context, thread)) {
                return Ok(stream);
            }
            let stream = self.create_stream(context, thread.is_some(), false);
            self.nameless.insert((context, thread), stream);
            return Ok(stream);
        }
        // A handle says its context, and none has to be current.
        let stream = self.streams.get(&handle).filter(|stream| stream.named && !stream.destroyed);
        let context = stream.ok_or(Status::INVALID_HANDLE)?.context;
        self.whole(context)?;
        Ok(handle)
    }

    /// Whether a stream is the one that orders its context.
    pub(crate) fn is_legacy(&self, stream: u64) -> bool {
        let found = &self.streams[&stream];
        !found.named && !found.blocking
    }

    /// What work on `stream` comes after, on other streams.
    fn ordered_after(&self, stream: u64) -> Vec<Point> {
        let context = self.streams[&stream].context;
        if self.is_legacy(stream) {
            let others = self.streams.iter().filter(|(_, other)| other.context == context && other.blocking);
            return others
                .map(|(&id, other)| (id, other.queued))
                .filter(|&point| !self.is_done(point))
                .collect();
        }
        let legacy = self.nameless.get(&(context, None)).filter(|_| self.streams[&stream].blocking);
        legacy
            .map(|id| (*id, self.streams[id].queued))
            .filter(|&point| !self.is_done(point))
            .into_iter()
            .collect()
    }

    /// Queues work that a capture has not taken.
    pub(crate) fn enqueue(&mut self, id: u64, work: Work, mut after: Vec<Point>) -> Point {
        after.extend(self.ordered_after(id));
        let stream = self.streams.get_mut(&id).unwrap();
        stream.queued += 1;
        stream.queue.push_back(Queued { after, work, since: Instant::now() });
        let point = (id, stream.queued);
        if !stream.has_worker {
            stream.has_worker = true;
            std::thread::Builder::new()
                .name("simulated stream".into())
                .spawn(move || serve(id))
                .expect("a thread");
        }
        wake();
        point
    }

    pub(crate) fn is_done(&self, (stream, count): Point) -> bool {
        self.streams.get(&stream).is_none_or(|stream| stream.completed >= count)
    }

    /// All that is queued on a stream now.
    pub(crate) fn end_of(&self, stream: u64) -> Point {
        (stream, self.streams[&stream].queued)
    }

    /// Lets late work run up to a point.
    pub(crate) fn demand(&mut self, (stream, count): Point) {
        if let Some(stream) = self.streams.get_mut(&stream)
            && stream.demanded < count
        {
            stream.demanded = count;
            wake();
        }
    }

    /// Whether all up to a point has run. Late work runs only for those who ask again.
    pub(crate) fn query(&mut self, point: Point) -> Result<()> {
        let limit = self.settings.late_queries;
        if self.is_done(point) {
            return Ok(());
        }
        let stream = self.streams.get_mut(&point.0).unwrap();
        stream.queries += 1;
        if stream.queries >= limit {
            stream.queries = 0;
            self.demand(point);
        }
        Err(Status::NOT_READY)
    }

    pub(crate) fn destroy_stream(&mut self, id: u64) {
        let end = self.end_of(id);
        // Nobody can ask for its work any more.
        self.demand(end);
        let stream = self.streams.get_mut(&id).unwrap();
        stream.destroyed = true;
        if !stream.has_worker {
            self.streams.remove(&id);
        }
        wake();
    }
}

/// Waits until all up to a point has run.
pub(crate) fn wait_for(mut state: Locked, point: Point) -> Locked {
    state.demand(point);
    while !state.is_done(point) {
        state = sleep(state, None);
    }
    state
}

/// Waits for all that is queued in a context.
pub(crate) fn wait_for_context(mut state: Locked, context: u64) -> Locked {
    let streams = state.streams.iter().filter(|(_, stream)| stream.context == context);
    let ends: Vec<Point> = streams.map(|(&id, stream)| (id, stream.queued)).collect();
    for &end in &ends {
        state.demand(end);
    }
    for end in ends {
        state = wait_for(state, end);
    }
    state
}

/// A stream's thread.
fn serve(id: u64) {
    let mut state = lock();
    while let Some(stream) = state.streams.get(&id) {
        let Some(next) = stream.queue.front() else {
            if stream.destroyed {
                state.streams.remove(&id);
                return;
            }
            state = sleep(state, None);
            continue;
        };
        if state.settings.late && stream.completed >= stream.demanded {
            let patience = state.settings.patience;
            let left = patience.map(|patience| patience.saturating_sub(next.since.elapsed()));
            if left.is_none_or(|left| !left.is_zero()) {
                state = sleep(state, left);
                continue;
            }
        }
        let missing: Vec<Point> = next.after.iter().copied().filter(|&point| !state.is_done(point)).collect();
        if !missing.is_empty() {
            missing.into_iter().for_each(|point| state.demand(point));
            state = sleep(state, None);
            continue;
        }
        let stream = state.streams.get_mut(&id).unwrap();
        let context = stream.context;
        let work = stream.queue.pop_front().unwrap().work;
        // What is queued behind a failure is dropped, host functions too.
        if state.whole(context).is_ok() {
            let (next, outcome) = work::run(state, context, &work);
            state = next;
            if let (Err(status), Some(context)) = (outcome, state.contexts.get_mut(&context)) {
                context.broken.get_or_insert(status);
            }
        }
        if let Some(stream) = state.streams.get_mut(&id) {
            stream.completed += 1;
        }
        wake();
    }
}
