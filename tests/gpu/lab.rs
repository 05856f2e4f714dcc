//! An executor, kernels whose answers are known, and work that waits until it is told to go on.

use std::ffi::c_void;
use std::sync::mpsc;

use device_arena::{Arena, Call, Executor, Kernel, LaunchShape, Output, Result, StagedTape, View};

use crate::driver::{self, Handle};
use crate::vendor;

/// As in `kernels.cu`.
const THREADS: u32 = 32;

const NOT_READY: u32 = 600;

/// An executor with the suite's kernels.
pub(crate) struct Lab {
    pub(crate) executor: Executor,
    sums: Kernel,
    fill: Kernel,
    add: Kernel,
    take: Kernel,
    poke: Kernel,
}

impl Lab {
    pub(crate) fn new(ordinal: u32) -> Self {
        Self::on(vendor::executor(ordinal).unwrap())
    }

    /// Every kernel has run once: a driver that loads them late may wait for other work as it does.
    pub(crate) fn on(executor: Executor) -> Self {
        let lab = Self::load(executor).unwrap();
        let arena = Arena::new(&lab.executor);
        let call = lab.executor.begin(&arena).unwrap();
        let mut room = call.device_room::<u32>(4).unwrap();
        lab.take(room.device_ptr(), 1, 1);
        let mut output = call.output::<u32>(4).unwrap();
        lab.fill(output.device_ptr().unwrap(), 4, 0);
        let mut sums = call.output::<u64>(1).unwrap();
        let places = output.device_ptr().unwrap();
        lab.add(places, places, 4, 1);
        let mut offsets = call.output::<u64>(2).unwrap();
        offsets.copy_from_slice(&[0, 1]).unwrap();
        let (to, from) = (sums.device_ptr().unwrap(), offsets.device_ptr().unwrap());
        lab.sum(places.cast(), from, 1, to);
        lab.executor.synchronize().unwrap();
        call.finish().unwrap();
        lab
    }

    pub(crate) fn load(executor: Executor) -> Result<Self> {
        let names = ["suite_sums", "suite_fill", "suite_add", "suite_take", "suite_poke"];
        // SAFETY: the image is the vendor's; where it is text, it ends with a zero byte.
        let [sums, fill, add, take, poke] = unsafe { executor.load_kernels(vendor::kernels(), names) }?;
        Ok(Self { executor, sums, fill, add, take, poke })
    }

    /// The same kernels on another executor.
    pub(crate) fn with_executor(&self, executor: Executor) -> Self {
        let (sums, fill, add) = (self.sums.clone(), self.fill.clone(), self.add.clone());
        Self { executor, sums, fill, add, take: self.take.clone(), poke: self.poke.clone() }
    }

    pub(crate) fn stream(&self) -> Handle {
        self.executor.stream().unwrap()
    }

    /// `values[i] = first + i`
    pub(crate) fn fill(&self, values: *mut u32, len: usize, first: u32) {
        self.try_fill(values, len, first).unwrap();
    }

    pub(crate) fn try_fill(&self, values: *mut u32, len: usize, first: u32) -> Result<()> {
        let shape = LaunchShape::linear(len as u64, THREADS);
        // SAFETY: the arguments are as the kernel declares them; the tests say how long the places are.
        unsafe { self.executor.launch(&self.fill, shape, (values, len as u64, first)) }
    }

    /// `to[i] = from[i] + addend`
    pub(crate) fn add(&self, from: *const u32, to: *mut u32, len: usize, addend: u32) {
        self.try_add(from, to, len, addend).unwrap();
    }

    pub(crate) fn try_add(&self, from: *const u32, to: *mut u32, len: usize, addend: u32) -> Result<()> {
        let shape = LaunchShape::linear(len as u64, THREADS);
        // SAFETY: as above.
        unsafe { self.executor.launch(&self.add, shape, (from, to, len as u64, addend)) }
    }

    pub(crate) fn sum(&self, bytes: *const u8, offsets: *const u64, items: usize, sums: *mut u64) {
        self.try_sum(bytes, offsets, items, sums).unwrap();
    }

    pub(crate) fn try_sum(
        &self,
        bytes: *const u8,
        offsets: *const u64,
        items: usize,
        sums: *mut u64,
    ) -> Result<()> {
        let shape = LaunchShape::linear(items as u64, THREADS);
        // SAFETY: as above.
        unsafe { self.executor.launch(&self.sums, shape, (bytes, offsets, items as u64, sums)) }
    }

    /// Each of `takers` takes `words` words and writes its number to them.
    pub(crate) fn take(&self, room: *mut u8, takers: usize, words: usize) {
        self.try_take(room, takers, words).unwrap();
    }

    pub(crate) fn try_take(&self, room: *mut u8, takers: usize, words: usize) -> Result<()> {
        let shape = LaunchShape::linear(takers as u64, THREADS);
        // SAFETY: as above.
        unsafe { self.executor.launch(&self.take, shape, (room, takers as u64, words as u64)) }
    }

    /// Writes where nobody may write.
    pub(crate) fn poke(&self, place: *mut u32) {
        // SAFETY: none of the memory is anybody's: the device answers with an error.
        unsafe { self.executor.launch(&self.poke, LaunchShape::linear(1, 1), (place,)) }.unwrap();
    }

    /// A call of one output that a kernel fills with `first`, `first + 1` and so on.
    pub(crate) fn filled(&self, arena: &Arena, len: usize, first: u32) -> View<u32> {
        let call = self.executor.begin(arena).unwrap();
        let view = self.fill_output(&call, len, first).publish();
        call.finish().unwrap();
        view
    }

    pub(crate) fn fill_output(&self, call: &Call, len: usize, first: u32) -> Output<u32> {
        let mut output = call.output::<u32>(len).unwrap();
        self.fill(output.device_ptr().unwrap(), len, first);
        output
    }

    /// The sum of each item's bytes, by a kernel.
    pub(crate) fn sums(&self, call: &Call, tape: &StagedTape) -> View<u64> {
        let mut sums = call.output::<u64>(tape.len()).unwrap();
        if !tape.is_empty() {
            self.sum(tape.bytes_ptr(), tape.offsets_ptr(), tape.len(), sums.device_ptr().unwrap());
        }
        sums.publish()
    }

    /// Whether the stream has work that has not passed. The driver is asked now and then, for one that answers late.
    pub(crate) fn is_busy(&self) -> bool {
        (0..10).all(|_| {
            // SAFETY: the stream is alive.
            let code = unsafe { driver::stream_query(self.stream()) };
            assert!(matches!(code, 0 | NOT_READY), "the driver answers {code}");
            code == NOT_READY
        })
    }

    /// Holds the stream up.
    pub(crate) fn gate(&self) -> Gate {
        Gate::on(self.stream())
    }
}

pub(crate) fn counting(first: u32, len: usize) -> Vec<u32> {
    (first..).take(len).collect()
}

/// What is queued behind it waits until it is opened or dropped.
#[must_use]
pub(crate) struct Gate(Option<mpsc::Sender<()>>);

unsafe extern "C" fn wait_for_gate(opened: *mut c_void) {
    // SAFETY: `Gate::on` leaked the box for this one call.
    let opened = unsafe { Box::from_raw(opened.cast::<mpsc::Receiver<()>>()) };
    let _ = opened.recv();
}

impl Gate {
    pub(crate) fn on(stream: Handle) -> Self {
        let (open, opened) = mpsc::channel();
        let opened = Box::into_raw(Box::new(opened));
        // SAFETY: the stream is alive, and the driver calls the function once.
        driver::ok(unsafe { driver::launch_host(stream, wait_for_gate, opened.cast()) });
        Self(Some(open))
    }

    pub(crate) fn open(mut self) {
        self.0.take();
    }
}
