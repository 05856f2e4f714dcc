//! The verbs of `verbs.rs` on a GPU, with kernels of their own: `kernels.cu` beside this file.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use device_arena::{Arena, Error, Executor, Kernel, LaunchShape, Refused, Result, Scratch, TapeView, View};

use crate::verbs::DIM;

/// Text that the driver compiles when it is loaded. It takes it as a C string.
const PTX: &str = concat!(include_str!("kernels.ptx"), "\0");
/// As in `kernels.cu`: threads of a block, and bytes of text that a thread takes.
const THREADS: u32 = 32;
const SUM_THREADS: u32 = 64;
const RUN: usize = 128;

/// A GPU with the verbs' kernels in it.
pub struct Device {
    executor: Executor,
    count: Kernel,
    sum: Kernel,
    write: Kernel,
    rows: Kernel,
    /// The most tokens that any call had: so many the next one makes room for.
    most: AtomicUsize,
}

/// Texts as tokens, in the GPU's memory.
pub struct DeviceTokens {
    /// The bytes of all tokens, one behind the other. What follows the last is room that nobody needed.
    pub strings: View<u8>,
    /// Where each token begins and ends in them.
    pub tokens: View<[u64; 2]>,
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
        // SAFETY: the text ends with a zero byte.
        let [count, sum, write, rows] = unsafe { executor.load_kernels(PTX.as_bytes(), names) }?;
        Ok(Self { executor: executor.clone(), count, sum, write, rows, most: AtomicUsize::new(0) })
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
        let mut room = call.device_room::<[u64; 2]>(self.most.load(Ordering::Relaxed))?;

        let runs = texts.byte_len().div_ceil(RUN).max(1);
        let mut sums = scope.take_on_device::<[u64; 2]>(runs + 1)?;
        let each_run = LaunchShape::linear(runs as u64, THREADS);
        let one_block = LaunchShape::linear(1, SUM_THREADS);
        let (mut bytes, mut offsets) = (staged.bytes_ptr(), staged.offsets_ptr());
        let (mut len, mut runs) = (texts.len() as u64, runs as u64);
        let (mut to_strings, mut to_first) = (strings.device_ptr()?, first.device_ptr()?);
        // SAFETY: the arguments are as the kernels declare them. The texts are borrowed until `collect` has waited.
        unsafe {
            self.executor.launch(&self.count, each_run, arguments![bytes, offsets, len, sums, runs])?;
            self.executor.launch(&self.sum, one_block, arguments![sums, runs])?;
        }
        let tokens = loop {
            let mut to_room = room.device_ptr();
            let arguments = arguments![bytes, offsets, len, sums, runs, to_strings, to_room, to_first];
            // SAFETY: as above.
            unsafe { self.executor.launch(&self.write, each_run, arguments) }?;
            match room.collect() {
                Ok(tokens) => break tokens,
                // The kernel has said what it needs. It runs once more, into a room of that size.
                Err(Refused { error: Error::Overflow { needed, .. }, value }) => {
                    room = value.regrow(call, needed)?
                }
                Err(refused) => return Err(refused.into()),
            }
        };
        self.most.fetch_max(tokens.len(), Ordering::Relaxed);
        Ok(DeviceTokens { strings: strings.publish(), tokens: tokens.publish(), first: first.publish() })
    }

    /// Makes one row of [`DIM`] numbers of each text. It only queues: who reads the rows waits.
    pub fn embed(&self, tokens: &DeviceTokens, arena: &Arena) -> Result<View<f32>> {
        // Guards for work on the GPU. They may go before it has passed: what comes after it is queued behind it.
        let strings = tokens.strings.read_on(&self.executor)?;
        let spans = tokens.tokens.read_on(&self.executor)?;
        let first = tokens.first.read_on(&self.executor)?;
        let texts = first.view().len().saturating_sub(1);
        let call = self.executor.begin(arena)?;
        let mut rows = call.output::<f32>(texts * DIM)?;

        let (mut strings, mut spans, mut first) =
            (strings.device_ptr(), spans.device_ptr(), first.device_ptr());
        let (mut len, mut to_rows) = (texts as u64, rows.device_ptr()?);
        // One block a text.
        let shape = LaunchShape::linear(len * u64::from(THREADS), THREADS);
        // SAFETY: the arguments are as the kernel declares them, and what they point to is held by guards and the call.
        unsafe { self.executor.launch(&self.rows, shape, arguments![strings, spans, first, len, to_rows]) }?;
        let view = rows.publish();
        call.finish()?;
        Ok(view)
    }
}
