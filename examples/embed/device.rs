//! The verbs of `verbs.rs` on a GPU, with kernels of their own: `kernels.cu` beside this file.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use device_arena::backend::Vendor;
use device_arena::{Arena, Error, Executor, Kernel, LaunchShape, Refused, Result, Scratch, TapeView, View};

use crate::verbs::DIM;

/// The kernels, as the vendor's driver takes them: text that it compiles and that ends as a C string, or machine code.
fn image(vendor: Vendor) -> &'static [u8] {
    match vendor {
        #[cfg(feature = "rocm")]
        Vendor::Rocm => include_bytes!("kernels.hipfb"),
        _ => concat!(include_str!("kernels.ptx"), "\0").as_bytes(),
    }
}

/// As in `kernels.cu`: threads of a block, those of its largest at most, and bytes of text that a thread takes.
const THREADS: u32 = 32;
const SUM_THREADS: u32 = 256;
const RUN: usize = 128;

/// A GPU with the verbs' kernels in it.
pub struct Device {
    executor: Executor,
    count: Kernel,
    sum: Kernel,
    write: Kernel,
    rows: Kernel,
    sum_threads: u32,
    /// The most offsets of tokens that any call had: so many the next one makes room for.
    most: AtomicUsize,
}

/// Texts as tokens, in the GPU's memory: a list of strings for each, as on the host.
pub struct DeviceTokens {
    /// The bytes of all tokens. What follows the last is room that nobody needed.
    pub bytes: View<u8>,
    /// Where each token begins in the bytes, and where the last one ends.
    pub offsets: View<u64>,
    /// Each text's first token, and at the end how many tokens there are.
    pub first: View<u64>,
}

/// The arguments of a launch: pointers to values as the kernel declares them.
macro_rules! arguments {
    ($($value:expr),+ $(,)?) => { &mut [$((&raw mut $value).cast::<c_void>()),+] };
}

impl Device {
    pub fn new(executor: &Executor) -> Result<Self> {
        let names = ["embed_count", "embed_sum", "embed_write", "embed_rows"];
        // SAFETY: the image is whole, and text ends with a zero byte.
        let [count, sum, write, rows] = unsafe { executor.load_kernels(image(executor.vendor()), names) }?;
        let sum_threads = executor.device()?.block_threads.map_or(THREADS, |most| most.min(SUM_THREADS));
        let (executor, most) = (executor.clone(), AtomicUsize::new(0));
        Ok(Self { executor, count, sum, write, rows, sum_threads, most })
    }

    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Takes texts apart. How many tokens there are only the kernels know: this waits for them.
    pub fn tokenize(&self, texts: &TapeView, arena: &Arena) -> Result<DeviceTokens> {
        let mut call = self.executor.begin(arena)?;
        let tokens = call.scratch(|scope| self.split(texts, scope));
        if tokens.is_err() {
            // What is queued may read the texts still, which are only lent.
            self.executor.synchronize().ok();
        }
        call.finish()?;
        tokens
    }

    fn split(&self, texts: &TapeView, scope: &mut Scratch) -> Result<DeviceTokens> {
        let call = scope.call();
        // Brings the texts to the GPU, unless it reaches them where they are.
        let staged = call.stage(texts)?;
        let mut strings = call.output::<u8>(texts.byte_len())?;
        let mut first = call.output::<u64>(texts.len() + 1)?;
        let most = self.most.load(Ordering::Relaxed);
        let mut room = call.device_room_aligned::<u64>(most, align_of::<u64>())?;

        let runs = texts.byte_len().div_ceil(RUN).max(1);
        let mut sums = scope.take_on_device::<[u64; 2]>(runs + 1)?;
        let each_run = LaunchShape::linear(runs as u64, THREADS);
        let one_block = LaunchShape::linear(1, self.sum_threads);
        let (mut bytes, mut offsets) = (staged.bytes_ptr(), staged.offsets_ptr());
        let (mut len, mut runs) = (texts.len() as u64, runs as u64);
        let (mut to_strings, mut to_first) = (strings.device_ptr()?, first.device_ptr()?);
        // SAFETY: the arguments are as the kernels declare them. The texts are borrowed until `collect` has waited.
        unsafe {
            self.executor.launch(&self.count, each_run, arguments![bytes, offsets, len, sums, runs])?;
            self.executor.launch(&self.sum, one_block, arguments![sums, runs])?;
        }
        let offsets_of_tokens = loop {
            let mut to_room = room.device_ptr();
            let arguments = arguments![bytes, offsets, len, sums, runs, to_strings, to_room, to_first];
            // SAFETY: as above.
            unsafe { self.executor.launch(&self.write, each_run, arguments) }?;
            match room.collect() {
                Ok(output) => break output,
                // The kernel has said what it needs. It runs once more, into a room of that size.
                Err(Refused { error: Error::Overflow { needed, .. }, value }) => {
                    room = value.regrow(call, needed)?
                }
                Err(refused) => return Err(refused.into()),
            }
        };
        self.most.fetch_max(offsets_of_tokens.len(), Ordering::Relaxed);
        let (bytes, offsets) = (strings.publish(), offsets_of_tokens.publish());
        Ok(DeviceTokens { bytes, offsets, first: first.publish() })
    }

    /// Makes one row of [`DIM`] numbers of each text. It only queues: who reads the rows waits.
    pub fn embed(&self, tokens: &DeviceTokens, arena: &Arena) -> Result<View<f32>> {
        // Guards for work on the GPU. They may go before it has passed: what comes after it is queued behind it.
        let bytes = tokens.bytes.read_on(&self.executor)?;
        let offsets = tokens.offsets.read_on(&self.executor)?;
        let first = tokens.first.read_on(&self.executor)?;
        let texts = first.view().len().saturating_sub(1);
        let call = self.executor.begin(arena)?;
        let mut rows = call.output::<f32>(texts * DIM)?;

        let (mut bytes, mut offsets, mut first) =
            (bytes.device_ptr(), offsets.device_ptr(), first.device_ptr());
        let (mut len, mut to_rows) = (texts as u64, rows.device_ptr()?);
        // One block a text.
        let shape = LaunchShape::linear(len * u64::from(THREADS), THREADS);
        // SAFETY: the arguments are as the kernel declares them, and what they point to is held by guards and the call.
        unsafe { self.executor.launch(&self.rows, shape, arguments![bytes, offsets, first, len, to_rows]) }?;
        let view = rows.publish();
        call.finish()?;
        Ok(view)
    }
}
