//! Readers on other streams, whose work the arena's own stream has to come behind; and blocks that outlive their arena,
//! since nobody could wait.

use crate::arena::core::Core;
use crate::backend::{AnyBackend, Backend, Block, Event};
use crate::error::Result;
use crate::executor::Executor;
use crate::sync::{Ordering, lock};

/// So many readers' events are kept before those that have passed are looked for.
const MANY_READERS: usize = 16;

impl Core {
    /// Whether readers on other streams are to be waited for.
    #[inline]
    pub(crate) fn has_readers(&self) -> bool {
        self.has_readers.load(Ordering::Acquire)
    }

    /// Notes the event behind the work of a reader on another stream. The caller sees to the attention of the next
    /// begin. Where the host reaches the bytes as well, the arena's stream waits at once: what the host asks of it then
    /// speaks for the reader too.
    ///
    /// # Safety
    ///
    /// The caller is an owner of the blocks.
    pub(crate) unsafe fn note_reader(&self, event: Event) -> Result<()> {
        if self.source.is_shared_with_device() {
            // SAFETY: the caller's promise is the same.
            let Some(stream) = (unsafe { self.source.stream() }) else { return Ok(()) };
            return self.source.backend.stream_wait(stream, &event);
        }
        let mut readers = lock(&self.readers);
        if readers.len() >= MANY_READERS {
            // A result that is read for long would have an event for each of its readers.
            readers.retain(|event| !self.source.backend.has_passed(event).unwrap_or(false));
        }
        readers.push(event);
        self.has_readers.store(true, Ordering::Release);
        Ok(())
    }

    /// Makes the stream wait for the readers on other streams.
    ///
    /// # Safety
    ///
    /// The caller is an owner of the blocks.
    pub(crate) unsafe fn order_after_readers(&self) -> Result<()> {
        let mut readers = lock(&self.readers);
        // SAFETY: the caller's promise is the same.
        let Some(stream) = (unsafe { self.source.stream() }) else { return Ok(()) };
        while let Some(event) = readers.last() {
            self.source.backend.stream_wait(stream, event)?;
            readers.pop();
        }
        self.has_readers.store(false, Ordering::Release);
        Ok(())
    }

    /// Makes sure that readers on other streams are behind what the arena's stream waits for, or waits for them here.
    ///
    /// # Safety
    ///
    /// The caller is an owner of the blocks, or the last of them.
    pub(super) unsafe fn wait_for_readers(&self) -> Result<()> {
        // SAFETY: the caller's promise is the same.
        if unsafe { self.order_after_readers() }.is_ok() {
            return Ok(());
        }
        let events = std::mem::take(&mut *lock(&self.readers));
        self.has_readers.store(false, Ordering::Release);
        for event in &events {
            match self.source.backend.wait(event, None) {
                Err(error) if !error.is_of_lost_device() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Tries blocks again that a driver did not take back from an arena that is gone: within a capture, and on the driver's
/// own thread. The executor is kept until then.
pub(super) fn free_later(backend: AnyBackend, executor: Executor, blocks: Vec<Block>) {
    let (mut left, again) = (blocks, backend.clone());
    let mut executor = Some(executor);
    backend.retry(Box::new(move || {
        for _ in 0..left.len() {
            let block = left.swap_remove(0);
            // SAFETY: the blocks came from this backend; their arena is gone, and the stream is asked to pass.
            match unsafe { again.free(executor.as_ref().map(Executor::as_stream), block) } {
                Err(refused) if refused.error.is_of_lost_device() => {}
                Err(refused) => left.push(refused.value),
                Ok(()) => {}
            }
        }
        if left.is_empty() {
            drop(executor.take());
        }
        left.is_empty()
    }));
}
