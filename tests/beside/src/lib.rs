//! Uses both crates' types in one signature, which is what sharing one cudarc means.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use device_arena::{Executor, Result};

/// An executor on somebody else's stream.
///
/// # Errors
///
/// As [`Executor::from_cudarc`].
pub fn executor(stream: &Arc<CudaStream>) -> Result<Executor> {
    Executor::from_cudarc(stream)
}
