//! cust's streams as executors.

use std::sync::Arc;

use cust::context::{Context, CurrentContext};
use cust::error::CudaResult;
use cust::stream::{Stream, StreamFlags};
use cust::sys;
use device_arena::backend::{AnyBackend, Cuda};
use device_arena::{Executor, Result};

/// One of cust's streams together with its context, which a stream of cust's does not keep: without it, the stream is gone.
/// Cheap to clone; two clones are the same stream.
#[derive(Debug, Clone)]
pub struct ContextStream(Arc<Parts>);

/// The stream goes first, and needs its context as it does.
#[derive(Debug)]
struct Parts {
    stream: Arc<Stream>,
    context: Context,
}

impl ContextStream {
    /// A new stream in that context, whatever context is current on the thread, and that stays so.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn new(context: Context, priority: Option<i32>) -> CudaResult<Self> {
        let stream = in_context(&context, || Stream::new(StreamFlags::DEFAULT, priority))?;
        Ok(Self(Arc::new(Parts { stream: Arc::new(stream), context })))
    }

    /// A stream that is there already.
    ///
    /// # Safety
    ///
    /// The stream was made while `context`, or a clone of it, was current, and at no time since have all of them been
    /// dropped.
    #[must_use]
    pub unsafe fn of(stream: Arc<Stream>, context: Context) -> Self {
        Self(Arc::new(Parts { stream, context }))
    }

    /// An executor on this stream, in its context. Both live as long as the executor and its arenas.
    ///
    /// # Errors
    ///
    /// What [`Cuda::load`] says; [`Error::Driver`](device_arena::Error::Driver).
    pub fn executor(&self) -> Result<Executor> {
        let cuda = AnyBackend::Cuda(Cuda::load()?);
        // SAFETY: the stream is alive in its context, and the clone keeps both.
        Ok(unsafe { Executor::adopt(cuda, self.raw().cast(), Box::new(self.clone())) }?)
    }

    /// The stream, for cust's launches.
    #[must_use]
    pub fn stream(&self) -> &Arc<Stream> {
        &self.0.stream
    }

    /// The stream's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    pub(crate) fn raw(&self) -> sys::CUstream {
        self.0.stream.as_inner()
    }
}

/// Runs `work` with the context current, and makes current afterwards what was so before.
fn in_context<R>(context: &Context, work: impl FnOnce() -> CudaResult<R>) -> CudaResult<R> {
    let mut before = std::ptr::null_mut();
    // SAFETY: the driver writes one handle, null for none. Where it fails, so does the next call, with an error.
    let _ = unsafe { sys::cuCtxGetCurrent(&raw mut before) };
    CurrentContext::set_current(context)?;
    let outcome = work();
    // SAFETY: the context was current, or there was none: then this one leaves.
    let _ = unsafe { sys::cuCtxSetCurrent(before) };
    outcome
}
