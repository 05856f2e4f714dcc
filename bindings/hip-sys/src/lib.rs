#![doc = include_str!("../README.md")]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod pointer;
mod stage;
mod stream;

pub use pointer::{HipGuard, HipOutput};
pub use stage::HipCall;
pub use stream::{HipExecutor, adopt};

mod sealed {
    pub trait Sealed {}

    impl Sealed for device_arena::Call {}
    impl Sealed for device_arena::Executor {}
    impl<T: device_arena::Pod> Sealed for device_arena::DeviceGuard<T> {}
    impl<T: device_arena::Pod> Sealed for device_arena::Output<T> {}
}
