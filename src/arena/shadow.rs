//! What loom watches in place of an arena's bytes, which are pages of the system that it can't see: one cell for each
//! of a few outputs, one for the core's own memory. Built under `cfg(loom)` alone.

use crate::sync::UnsafeCell;

const OUTPUTS: usize = 4;

/// The cells.
#[derive(Debug)]
pub(crate) struct Shadow {
    outputs: [UnsafeCell<()>; OUTPUTS],
    memory: UnsafeCell<()>,
}

impl Shadow {
    pub(crate) fn new() -> Self {
        Self { outputs: std::array::from_fn(|_| UnsafeCell::new(())), memory: UnsafeCell::new(()) }
    }

    /// The output that a call opened as the `opened`th of its own writes its values.
    pub(crate) fn write(&self, opened: u32) {
        if let Some(output) = self.outputs.get(opened as usize % OUTPUTS) {
            output.with_mut(|_| ());
        }
    }

    /// A call has begun: every byte may be written anew.
    pub(crate) fn rewind(&self) {
        self.outputs.iter().for_each(|output| output.with_mut(|_| ()));
    }

    /// Somebody with a reference uses the core's memory.
    pub(crate) fn refer(&self) {
        self.memory.with(|_| ());
    }

    /// The core's memory goes.
    pub(crate) fn delete(&self) {
        self.memory.with_mut(|_| ());
    }
}
