#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("device-arena needs a 64-bit target: offsets, counts and device addresses are 64 bits wide");

pub mod backend;
#[path = "../backends/mod.rs"]
mod backends;

mod arena;
mod call;
#[cfg(feature = "cudarc")]
mod cudarc;
mod error;
mod executor;
mod panics;
pub mod plan;
mod planned;
mod pointer;
mod sync;
mod tape;
mod trace;
mod view;

#[cfg(feature = "cudarc")]
pub use crate::cudarc::CudarcBytes;
pub use arena::{Arena, ArenaDescription, ArenaOptions, ArenaStats, Growth, Placement, Residency, Scrub};
pub use bytemuck::{Pod, Zeroable};
#[cfg(feature = "allocator-api2")]
pub use call::HostAllocator;
pub use call::{Call, DeviceRoom, Output, Scratch, ScratchScope, StagedTape, TapeOutput, Writer};
pub use error::{Error, Holder, Refused, Result, StaleReason, Status, TapeRule};
#[cfg(gpu)]
pub use executor::{Captured, CapturedViews, Kernel, LaunchArguments, LaunchShape};
pub use executor::{Deferred, Executor};
#[cfg(gpu)]
pub use planned::CapturedRun;
pub use planned::{CopyBatch, PlannedArena, PlannedView, PreparedBatch, RowOrder, Rows, Run};
pub use pointer::{AllocationOrigin, MemoryKind, PointerInfo, classify, classify_range};
pub use tape::{Offset, Tape, TapeView};
pub use view::{DeviceGuard, Export, PublishedTape, ReadGuard, TapeGuard, View};
