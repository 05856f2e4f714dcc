#![doc = include_str!("../README.md")]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod pointer;
mod stage;
mod stream;

pub use pointer::{CustGuard, CustOutput};
pub use stage::CustCall;
pub use stream::ContextStream;

mod sealed {
    pub trait Sealed {}

    impl Sealed for device_arena::Call {}
    impl<T: device_arena::Pod> Sealed for device_arena::DeviceGuard<T> {}
    impl<T: device_arena::Pod> Sealed for device_arena::Output<T> {}
}
