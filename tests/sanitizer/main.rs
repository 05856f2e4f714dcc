//! What compute-sanitizer runs over: kernels with a planted fault each, in a process of its own. Without the tool they are
//! not run: what they do is undefined.
//!
//! `sanitizer NAME` launches one; it exits with success as far as the driver is concerned.
#![cfg(feature = "cuda")]

use std::ffi::c_void;
use std::ptr::from_mut;

use device_arena::backend::{Backend, Block};
use device_arena::{Executor, LaunchShape, Placement};

const IMAGE: &str = concat!(include_str!("kernels.ptx"), "\0");

fn launch(name: &str) {
    let executor = Executor::cuda(0).unwrap();
    let cuda = device_arena::backend::Cuda::load().unwrap();
    let bytes = 1000usize;
    let block: Block = cuda.allocate(0, None, Placement::Device, bytes).unwrap();
    // SAFETY: the image is text that ends with a zero byte.
    let [kernel] = unsafe { executor.load_kernels(IMAGE.as_bytes(), [name]) }.unwrap();
    let (mut address, mut count) = (block.address().as_ptr(), block.bytes() as u64);
    let mut arguments: [*mut c_void; 2] = [from_mut(&mut address).cast(), from_mut(&mut count).cast()];
    let shape = LaunchShape { grid: [1, 1, 1], block: [64, 1, 1], shared_bytes: 0 };
    // SAFETY: the arguments are what the kernel declares. That it does what it may not is the point: the tool that watches
    // it stops it.
    unsafe { executor.launch(&kernel, shape, &mut arguments) }.unwrap();
    let _ = executor.synchronize();
    // SAFETY: the block is held here alone, and the stream has passed or its device is lost.
    let _ = unsafe { cuda.free(None, block) };
}

macro_rules! planted {
    ($($name:ident),+) => {
        $(
            #[test]
            #[ignore = "a planted fault, for compute-sanitizer alone"]
            fn $name() {
                launch(stringify!($name));
            }
        )+
    };
}

planted!(planted_out_of_bounds, planted_barrier, planted_race, planted_unwritten);
