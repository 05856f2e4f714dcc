//! Calls whose work is captured into a graph once, and launched again and again.

use std::ptr::NonNull;

use bytemuck::Pod;

use super::super::Executor;
use crate::arena::{Arena, Core, CoreRef, Word};
use crate::arena::{Phase, Scrub};
use crate::backend::{Backend, StreamKind};
use crate::backends::gpu::{Capture, Graph};
use crate::call::Call;
use crate::error::{Error, Holder, Result, StaleReason};
use crate::sync::Ordering;
use crate::view::{PublishedTape, View};

/// A call whose work was captured, and what it published. It holds its arena: blocks stay where the graph knows them, and
/// `begin`, `reserve` and `trim` are refused as contended while it lives.
///
/// Every launch is a call of its own: views of the launch before are stale, and fresh ones lead to the same addresses.
/// Dropped, it ends the last of them; its views stay current until the next begin.
#[derive(Debug)]
#[must_use = "the graph is launched from here alone"]
pub struct Captured<R> {
    graph: Graph,
    views: R,
    /// None once it is dropped.
    call: Option<Call>,
    executor: Executor,
}

impl Executor {
    /// Begins a call, captures what `work` queues on the executor's stream into a graph, and keeps both. Nothing runs
    /// before the first [`launch`](Captured::launch).
    ///
    /// The call begins before the capture does, so a chain that an earlier call has left is replaced by one block ahead
    /// of it. Within the capture, an output that the block does not hold is refused and the capture goes on: begin a
    /// call of that size before, or [`reserve`](Arena::reserve). So are explicit copies and everything that waits.
    ///
    /// `work` is a verb's body after its begin. Tapes are staged and rooms collected outside of captures. Inputs that change
    /// from launch to launch are memory that stays where it is and is written before each: an output of a call of another
    /// arena that is kept open, by [`copy_from_slice`](crate::Output::copy_from_slice), or a buffer of the caller's own.
    ///
    /// What the captured work uses beside the call's own outputs is the launcher's to keep alive as long as the graph.
    /// Other threads that use the executor meanwhile are refused, and wait for nothing.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin), and what `work` returns; [`Error::Option`] on the host, and for an arena that scrubs;
    /// [`Error::Capturing`] where the stream is being captured already; [`Error::Contended`] for an output that `work` has
    /// left open; [`Error::Stale`] for a view among the results that the call has not published; [`Error::Driver`]. The
    /// call is abandoned then.
    pub fn capture<R, W>(&self, arena: &Arena, work: W) -> Result<Captured<R>>
    where
        R: CapturedViews,
        W: FnOnce(&mut Call) -> Result<R>,
    {
        let StreamKind::Gpu(stream) = &self.as_stream().0 else {
            return Err(Error::Option {
                option: "capture",
                reason: "this executor is the host, which has no graphs",
            });
        };
        if stream.driver().table().stream_is_capturing.is_none() {
            let detail = "the driver lacks the function that tells captures (StreamIsCapturing)".into();
            return Err(Error::Unavailable { vendor: self.vendor(), detail });
        }
        if arena.scrub() != Scrub::Never {
            return Err(Error::Option {
                option: "scrub",
                reason: "a graph does not scrub between its launches",
            });
        }
        // First, so that a refusal leaves the last call's views as they are.
        stream.refuse_capture("capture")?;
        let mut call = self.begin_as("capture", arena)?;
        let generation = call.generation();
        // SAFETY: the call is an owner.
        let core = unsafe { CoreRef::new(call.core_ptr()) };
        let capture = Capture::begin(stream)?;
        let views = {
            let _marked = Marked::new(&core, generation);
            work(&mut call)
        }?;
        let graph = capture.end()?;
        let stale = || Error::Stale { generation, reason: StaleReason::Rewound };
        // The work may have left another call in this one's place, whose blocks the graph does not know.
        if call.core_ptr() != core.as_non_null() || call.generation() != generation {
            return Err(stale());
        }
        if !views.are_of(call.core_ptr(), generation) {
            return Err(stale());
        }
        // An output that is open could be written while a launch runs.
        if !call.is_settled() {
            return Err(Error::Contended { operation: "capture", holder: Holder::Output });
        }
        call.mark_captured();
        Ok(Captured { graph, views, call: Some(call), executor: self.clone() })
    }
}

/// Says whose work is being captured, by a panic of it too.
struct Marked<'c>(&'c Core);

impl<'c> Marked<'c> {
    fn new(core: &'c Core, generation: u64) -> Self {
        core.captured.store(generation, Ordering::Relaxed);
        Self(core)
    }
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        self.0.captured.store(0, Ordering::Relaxed);
    }
}

impl<R: CapturedViews> Captured<R> {
    /// Queues the captured work once more, behind everything that is in the stream and behind the readers of the launch
    /// before; answers this launch's views. Neither waits for the device.
    ///
    /// # Errors
    ///
    /// [`Error::Contended`] while somebody holds a view of the launch before; [`Error::Exhausted`];
    /// [`Error::Capturing`]; [`Error::Driver`]. Nothing was launched then, and the views of the launch before are
    /// current still.
    pub fn launch(&mut self) -> Result<R> {
        let Some(call) = &self.call else { return Err(Error::AlreadyTaken) };
        // SAFETY: the call is an owner.
        let core = unsafe { CoreRef::new(call.core_ptr()) };
        if core.state.is_exhausted() {
            return Err(Error::Exhausted { operation: "launch" });
        }
        core.state
            .start_launch()
            .map_err(|word| Error::Contended { operation: "launch", holder: word.holder() })?;
        let generation = core.state.load().generation();
        match self.queue(&core) {
            Ok(()) => {
                let generation = generation + 1;
                if core.source.is_shared_with_device() {
                    core.fence.take(generation);
                }
                core.counters.rewound();
                let launched = |word: Word| word.next_generation().with_phase(Phase::Captured);
                // SAFETY: the call is an owner and stays one.
                unsafe { Core::change(core.as_non_null(), |word| launched(word).with_attention(false)) };
                // SAFETY: the views are the captured call's, and the generation is this launch's.
                Ok(unsafe { self.views.at_generation(generation) })
            }
            Err(error) => {
                // SAFETY: as above.
                unsafe { Core::change(core.as_non_null(), |word| word.with_phase(Phase::Captured)) };
                Err(error)
            }
        }
    }

    fn queue(&self, core: &Core) -> Result<()> {
        let stream = self.executor.as_stream();
        if core.source.backend.is_capturing(stream)? {
            return Err(Error::Capturing { operation: "launch" });
        }
        // SAFETY: the call is an owner.
        unsafe { core.order_after_readers() }?;
        let StreamKind::Gpu(stream) = &stream.0 else { return Err(Error::AlreadyTaken) };
        // SAFETY: the call keeps the blocks, nobody reads them, and the stream orders the work; what else the graph
        // uses is the promise of whoever launched it into the capture.
        unsafe { self.graph.launch(stream) }
    }
}

impl<R> Drop for Captured<R> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            call.end();
        }
    }
}

/// What a captured call can publish: views, tapes, and tuples, arrays and lists of them.
///
/// # Safety
///
/// `are_of` is true only where every view within is of that core and generation, and `at_generation` makes nothing but
/// the same views of another generation.
pub unsafe trait CapturedViews: Sized {
    /// Whether every view within was published by the call of that core and generation.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the core is named by nobody else, who would have no use for it")]
    fn are_of(&self, core: NonNull<Core>, generation: u64) -> bool;

    /// The same views of another launch.
    ///
    /// # Safety
    ///
    /// They are of a captured call, and `generation` is that of a launch of it.
    #[doc(hidden)]
    unsafe fn at_generation(&self, generation: u64) -> Self;
}

// SAFETY: the one view is asked, and made anew.
unsafe impl<T: Pod> CapturedViews for View<T> {
    #[expect(private_interfaces, reason = "as in the trait")]
    fn are_of(&self, core: NonNull<Core>, generation: u64) -> bool {
        self.is_of(core, generation)
    }

    unsafe fn at_generation(&self, generation: u64) -> Self {
        // SAFETY: the caller's promise is the same.
        unsafe { View::at_generation(self, generation) }
    }
}

// SAFETY: both views are asked, and made anew.
unsafe impl CapturedViews for PublishedTape {
    #[expect(private_interfaces, reason = "as in the trait")]
    fn are_of(&self, core: NonNull<Core>, generation: u64) -> bool {
        self.bytes().is_of(core, generation) && self.offsets().is_of(core, generation)
    }

    unsafe fn at_generation(&self, generation: u64) -> Self {
        // SAFETY: the caller's promise is the same.
        unsafe { PublishedTape::at_generation(self, generation) }
    }
}

// SAFETY: every view of the list is asked, and made anew.
unsafe impl<V: CapturedViews> CapturedViews for Vec<V> {
    #[expect(private_interfaces, reason = "as in the trait")]
    fn are_of(&self, core: NonNull<Core>, generation: u64) -> bool {
        self.iter().all(|views| views.are_of(core, generation))
    }

    unsafe fn at_generation(&self, generation: u64) -> Self {
        // SAFETY: the caller's promise is the same.
        self.iter().map(|views| unsafe { views.at_generation(generation) }).collect()
    }
}

// SAFETY: every view of the array is asked, and made anew.
unsafe impl<V: CapturedViews, const N: usize> CapturedViews for [V; N] {
    #[expect(private_interfaces, reason = "as in the trait")]
    fn are_of(&self, core: NonNull<Core>, generation: u64) -> bool {
        self.iter().all(|views| views.are_of(core, generation))
    }

    unsafe fn at_generation(&self, generation: u64) -> Self {
        // SAFETY: the caller's promise is the same.
        self.each_ref().map(|views| unsafe { views.at_generation(generation) })
    }
}

macro_rules! tuples {
    ($( ($($name:ident),*) )+) => {
        $(
            // SAFETY: every view of the tuple is asked, and made anew.
            unsafe impl<$($name: CapturedViews),*> CapturedViews for ($($name,)*) {
                #[expect(private_interfaces, reason = "as in the trait")]
                #[allow(non_snake_case, unused_variables, reason = "the types name the parts; a tuple may have none")]
                fn are_of(&self, core: NonNull<Core>, generation: u64) -> bool {
                    let ($($name,)*) = self;
                    true $(&& $name.are_of(core, generation))*
                }

                #[allow(non_snake_case, unused_variables, clippy::unused_unit, reason = "as above")]
                unsafe fn at_generation(&self, generation: u64) -> Self {
                    let ($($name,)*) = self;
                    // SAFETY: the caller's promise is the same.
                    ($(unsafe { $name.at_generation(generation) },)*)
                }
            }
        )+
    };
}

tuples! { () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }
