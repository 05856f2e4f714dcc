//! The stream of a device's executor, used beside it: what a program's own kernels would do, and what holds them up.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use device_arena::backend::{AnyBackend, Backend, CopyRange, Event, ScrubRange, Stream};
use device_arena::{Arena, Executor, Placement, Result};

use crate::value::fills;

/// How long a driver gets to run host work that nothing holds up.
const SOON: Duration = Duration::from_millis(500);

/// The way to a stream. Clones are the same stream.
#[derive(Clone)]
pub(crate) struct Lane {
    backend: AnyBackend,
    stream: Arc<Stream>,
}

/// The way to a stream that others keep alive, as long as they do.
pub(crate) struct Faint {
    backend: AnyBackend,
    stream: Weak<Stream>,
}

impl Faint {
    pub(crate) fn lane(&self) -> Option<Lane> {
        Some(Lane { backend: self.backend.clone(), stream: self.stream.upgrade()? })
    }
}

/// Lets one device reach another, and copies from it once: a driver that maps memory for that waits as well.
fn introduce(backend: &AnyBackend, ordinal: u32, other: u32) -> Result<()> {
    let own = Executor::on(backend.clone(), ordinal)?;
    let peer = Executor::on(backend.clone(), other)?;
    // Some machines have no way between them; copies get through all the same.
    let _ = own.reach(&peer);
    let (from, to) = (Arena::new(&peer), Arena::new(&own));
    let call = peer.begin(&from)?;
    let view = call.output_from_slice(&[1u8; 100])?.publish();
    call.finish()?;
    let call = own.begin(&to)?;
    call.output::<u8>(100)?.copy_from_view(&view)?;
    call.finish()?;
    own.synchronize()
}

/// Runs each of the crate's kernels once: a driver that loads them late waits for what is queued, and a gate for good.
fn warm_up(backend: &AnyBackend, ordinal: u32) -> Result<()> {
    const BYTES: usize = 4096;
    let stream = backend.create_stream(ordinal)?;
    let block = backend.allocate(ordinal, Some(&stream), Placement::Device, BYTES)?;
    let at = |offset: usize| block.address().as_ptr().wrapping_add(offset);
    let fills = [0, 64].map(|offset| ScrubRange { address: at(offset), bytes: 64, value: 1 });
    let copies = |count: usize| -> Vec<_> {
        let range = |i| CopyRange { destination: at(2048 + i), source: at(i), bytes: 1 };
        (0..count).map(range).collect()
    };
    // SAFETY: the ranges are of a block that this function has alone, and are apart; few of them, and many.
    unsafe {
        backend.rewind(Some(&stream), None, &fills)?;
        backend.copy(Some(&stream), &copies(2))?;
        backend.copy(Some(&stream), &copies(1000))?;
    }
    backend.synchronize(&stream)?;
    // SAFETY: all work on the block has passed.
    unsafe { backend.free(Some(&stream), block) }.map_err(|refused| refused.error)
}

impl Lane {
    pub(crate) fn faint(&self) -> Faint {
        Faint { backend: self.backend.clone(), stream: Arc::downgrade(&self.stream) }
    }

    pub(crate) fn new(backend: AnyBackend, stream: Arc<Stream>) -> Self {
        Self { backend, stream }
    }

    /// Whether host work of one stream keeps that of another waiting.
    pub(crate) fn is_one_at_a_time(backend: &AnyBackend) -> Result<bool> {
        let ordinals: Vec<_> = backend.devices()?.iter().map(|device| device.ordinal).collect();
        for &ordinal in &ordinals {
            warm_up(backend, ordinal)?;
            for &other in &ordinals {
                introduce(backend, ordinal, other)?;
            }
        }
        let (held, other) = (backend.create_stream(0)?, backend.create_stream(0)?);
        let (open, opened) = channel::<()>();
        let gate = backend
            .enqueue(&held, Box::new(move || opened.recv().unwrap_or(())))
            .map_err(|refused| refused.error)?;
        let behind = backend.enqueue(&other, Box::new(|| ())).map_err(|refused| refused.error)?;
        let passed = backend.wait(&behind, Some(SOON));
        drop(open);
        backend.wait(&gate, None)?;
        Ok(!passed?)
    }

    /// Holds the stream up until the other end of `opened` is dropped.
    pub(crate) fn gate(&self, opened: Receiver<()>) -> Result<()> {
        let wait = Box::new(move || opened.recv().unwrap_or(()));
        self.backend.enqueue(&self.stream, wait).map(drop).map_err(|refused| refused.error)
    }

    /// A point behind all that is in the stream now.
    pub(crate) fn mark(&self) -> Result<Event> {
        self.backend.record(&self.stream)
    }

    /// Whether a point has passed within a time.
    pub(crate) fn passes(&self, event: &Event, within: Duration) -> Result<bool> {
        self.backend.wait(event, Some(within))
    }

    /// Waits for all that is in the stream.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.backend.synchronize(&self.stream)
    }

    /// Queues what a kernel would write under `token`: the bytes that [`fills`] says.
    ///
    /// # Safety
    ///
    /// The room is of a call whose work is in this stream's order, and nobody else uses it.
    pub(crate) unsafe fn fill(&self, address: *mut u8, len: usize, token: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let ranges: Vec<_> = fills(token, len)
            .into_iter()
            .map(|(range, value)| ScrubRange {
                address: address.wrapping_add(range.start),
                bytes: range.len(),
                value,
            })
            .collect();
        // SAFETY: the caller's promise is the same.
        unsafe { self.backend.rewind(Some(&self.stream), None, &ranges) }
    }

    /// What a kernel in this stream would see.
    ///
    /// # Safety
    ///
    /// The bytes are held for this stream's work.
    pub(crate) unsafe fn read(&self, address: *const u8, len: usize) -> Result<Vec<u8>> {
        let mut copy = vec![0u8; len];
        if len != 0 {
            let range = CopyRange { destination: copy.as_mut_ptr(), source: address, bytes: len };
            // SAFETY: the caller's promise is the same; the copy is live until the stream has passed, below.
            unsafe { self.backend.transfer(Some(&self.stream), range) }?;
            self.backend.synchronize(&self.stream)?;
        }
        Ok(copy)
    }
}
