//! The kernel, and what calls it.

use std::error::Error as AnyError;
use std::ffi::c_void;
use std::path::Path;

use device_arena::backend::Vendor;
use device_arena::{
    Arena, ArenaOptions, Call, DeviceRoom, Error, Executor, Kernel, LaunchShape, Refused, Result, StagedTape,
    Tape, View,
};

/// What the kernel puts in front of each word, and what every piece of a room is a multiple of, in bytes.
const HEADER: usize = 16;

/// The kernel, as the vendor's driver takes it: text that it compiles and that ends as a C string, or machine code.
fn image(vendor: Vendor) -> &'static [u8] {
    match vendor {
        #[cfg(feature = "rocm")]
        Vendor::Rocm => include_bytes!("../compact.hipfb"),
        _ => concat!(include_str!("../compact.ptx"), "\0").as_bytes(),
    }
}

/// Keeps the words of a file that are not empty, three times over, and says whether it is what the host keeps.
pub fn keep(executor: Executor, path: &Path) -> Result<bool, Box<dyn AnyError>> {
    let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let words = Tape::from_items(text.split(u8::is_ascii_whitespace))?;
    // SAFETY: the image is whole, and text ends with a zero byte.
    let [kernel] = unsafe { executor.load_kernels(image(executor.vendor()), ["compact"]) }?;
    // Blocks as small as need be, so that the first call outgrows its own.
    let arena = ArenaOptions::new().first_capacity(4096).build(&executor)?;
    let device = Compactor { executor, kernel };

    println!("device              {}", device.executor.device()?.name);
    println!("call       room     needed  outcome    allocations");
    let mut room_bytes = text.len() / 16;
    let mut kept = None;
    for number in 1..=3 {
        let before = arena.stats().allocations;
        let found = device.compact(&words, &arena, room_bytes)?;
        for Overflow { capacity, needed } in &found.overflows {
            println!("{number:4} {capacity:10} {needed:10}  overflow");
        }
        let (capacity, needed) = (found.capacity, found.view.len());
        let allocations = arena.stats().allocations - before;
        println!("{number:4} {capacity:10} {needed:10}  collected  {allocations}");
        // The next call begins with what this one came to need.
        room_bytes = needed;
        kept = Some(words_of(&found.view.to_vec()?).ok_or("what the kernel wrote is no list of words")?);
    }

    let expected = words.view().iter()?.zip(0u64..).filter(|(word, _)| !word.is_empty());
    let expected: Vec<_> = expected.map(|(word, item)| (item, word.to_vec())).collect();
    println!("words               {}, of which {} are not empty", words.len(), expected.len());
    let is_same = kept.as_ref() == Some(&expected);
    println!(
        "kept                {}",
        if is_same { "the same as on the host" } else { "NOT WHAT THE HOST KEEPS" }
    );
    Ok(is_same)
}

struct Compactor {
    executor: Executor,
    kernel: Kernel,
}

/// A room that was too small, and what the kernel asked for. Bytes.
struct Overflow {
    capacity: usize,
    needed: u64,
}

struct Kept {
    view: View<u8>,
    /// Of the room that sufficed, in bytes.
    capacity: usize,
    overflows: Vec<Overflow>,
}

impl Compactor {
    /// Keeps what is not empty, in a room that has `room_bytes` at first.
    fn compact(&self, words: &Tape, arena: &Arena, room_bytes: usize) -> Result<Kept> {
        let call = self.executor.begin(arena)?;
        let tape = words.view();
        let staged = call.stage(&tape)?;
        let outcome = self.fill(&call, &staged, room_bytes);
        if outcome.is_err() {
            // What is queued may read the words still, which are only lent.
            self.executor.synchronize().ok();
        }
        call.finish()?;
        outcome
    }

    fn fill(&self, call: &Call, words: &StagedTape, room_bytes: usize) -> Result<Kept> {
        let mut overflows = Vec::new();
        let mut room = call.device_room::<u8>(room_bytes)?;
        loop {
            self.launch(words, &mut room)?;
            let capacity = room.capacity();
            match room.collect() {
                Ok(output) => return Ok(Kept { view: output.publish(), capacity, overflows }),
                Err(Refused { error: Error::Overflow { needed, .. }, value }) => {
                    overflows.push(Overflow { capacity, needed });
                    // The room that was too small stays taken until the next call, and nothing else moves.
                    room = value.regrow(call, needed)?;
                }
                Err(refused) => return Err(refused.into()),
            }
        }
    }

    fn launch(&self, words: &StagedTape, room: &mut DeviceRoom<u8>) -> Result<()> {
        let (mut bytes, mut offsets) = (words.bytes_ptr(), words.offsets_ptr());
        let (mut items, mut room) = (words.len() as u64, room.device_ptr());
        let arguments: &mut [*mut c_void] = &mut [
            (&raw mut bytes).cast(),
            (&raw mut offsets).cast(),
            (&raw mut items).cast(),
            (&raw mut room).cast(),
        ];
        // SAFETY: the arguments are as the kernel declares them. Words and room are held until the room is collected,
        // which waits.
        unsafe { self.executor.launch(&self.kernel, LaunchShape::linear(items, 64), arguments) }
    }
}

/// The words in their order, each with its number; none where the bytes are no list of them.
fn words_of(mut bytes: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
    let mut words = Vec::new();
    while !bytes.is_empty() {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let (item, length) = header.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
        let length = usize::try_from(number(length)?).ok()?;
        words.push((number(item)?, rest.get(..length)?.to_vec()));
        bytes = rest.get(length.next_multiple_of(HEADER)..)?;
    }
    words.sort_unstable();
    Some(words)
}
