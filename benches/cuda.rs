//! What a GPU shows, from one run and as ratios: classification against the driver's bare query, a steady call against the
//! driver's own pool, copies and scrubs against the driver's.
//!
//! ```text
//! cargo bench --features cuda --bench cuda
//! ```

use std::ffi::{c_int, c_uint, c_void};
use std::hint::black_box;
use std::time::Instant;

use device_arena::backend::{Backend, Block, CopyRange, Cuda, ScrubRange, Stream};
use device_arena::{Arena, ArenaOptions, Executor, Placement};

/// The driver's functions that the peers are, by the names of its header.
struct Driver {
    pointer_attributes: unsafe extern "C" fn(c_uint, *mut c_uint, *mut *mut c_void, u64) -> c_int,
    alloc_async: unsafe extern "C" fn(*mut u64, usize, *mut c_void) -> c_int,
    free_async: unsafe extern "C" fn(u64, *mut c_void) -> c_int,
    default_pool: unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int,
    set_pool_attribute: unsafe extern "C" fn(*mut c_void, c_uint, *mut c_void) -> c_int,
    /// The runtime's own pair, where its library is here.
    runtime: Option<Runtime>,
    copy_async: unsafe extern "C" fn(u64, u64, usize, *mut c_void) -> c_int,
    fill_async: unsafe extern "C" fn(u64, u8, usize, *mut c_void) -> c_int,
}

/// `cudaMallocAsync` and `cudaFreeAsync`.
type Runtime = (
    unsafe extern "C" fn(*mut u64, usize, *mut c_void) -> c_int,
    unsafe extern "C" fn(u64, *mut c_void) -> c_int,
);

fn runtime() -> Option<Runtime> {
    let names = ["libcudart.so.13", "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so", "libcudart.so"];
    // SAFETY: the library is the vendor's runtime, and is never closed.
    let library = names.into_iter().find_map(|name| unsafe { libloading::Library::new(name) }.ok())?;
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    // SAFETY: the types are those of the runtime's declarations.
    unsafe { Some((*library.get(b"cudaMallocAsync\0").ok()?, *library.get(b"cudaFreeAsync\0").ok()?)) }
}

impl Driver {
    fn open(name: &str) -> Self {
        // SAFETY: the library is the driver that the crate has loaded already.
        let library: &'static libloading::Library =
            Box::leak(Box::new(unsafe { libloading::Library::new(name) }.expect("the driver's library")));
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the type is that of the driver's declaration.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }.expect($name)
            };
        }
        Self {
            pointer_attributes: function!("cuPointerGetAttributes"),
            alloc_async: function!("cuMemAllocAsync"),
            free_async: function!("cuMemFreeAsync"),
            default_pool: function!("cuDeviceGetDefaultMemPool"),
            set_pool_attribute: function!("cuMemPoolSetAttribute"),
            runtime: runtime(),
            copy_async: function!("cuMemcpyAsync"),
            fill_async: function!("cuMemsetD8Async"),
        }
    }
}

/// Times two works in turns, so that a machine whose speed drifts does not decide between them. The medians of `rounds`
/// rounds, in nanoseconds for one of `times`.
fn pair(rounds: usize, times: u32, mut own: impl FnMut(), mut peer: impl FnMut()) -> (f64, f64) {
    let sample = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        for _ in 0..times {
            work();
        }
        start.elapsed().as_nanos() as f64 / f64::from(times)
    };
    let (mut owns, mut peers) = (Vec::new(), Vec::new());
    for round in 0..rounds + 2 {
        let (a, b) = (sample(&mut own), sample(&mut peer));
        // The first rounds load what is loaded once.
        if round >= 2 {
            owns.push(a);
            peers.push(b);
        }
    }
    let median = |mut seen: Vec<f64>| {
        seen.sort_by(f64::total_cmp);
        seen[seen.len() / 2]
    };
    (median(owns), median(peers))
}

struct Bench {
    cuda: Cuda,
    driver: Driver,
    executor: Executor,
    stream: Stream,
    raw: *mut c_void,
}

fn line(what: &str, own: f64, peer: f64, unit: &str, ratio: f64, aim: &str) {
    println!("{what:<46} {own:>10.1} {peer:>10.1} {unit:<5} {ratio:>8.2}  {aim}");
}

impl Bench {
    fn block(&self, bytes: usize) -> Block {
        self.cuda.allocate(0, Some(&self.stream), Placement::Device, bytes).unwrap()
    }

    fn free(&self, block: Block) {
        // SAFETY: the bench has the block alone.
        unsafe { self.cuda.free(Some(&self.stream), block) }.unwrap();
    }

    fn classification(&self) {
        const IDS: [c_uint; 8] = [2, 8, 9, 1, 7, 11, 12, 17];
        let block = self.block(1 << 20);
        let host = vec![0u8; 4096];
        let device = block.address().as_ptr().cast_const();
        for (what, pointer) in [("a device pointer", device), ("a host pointer", host.as_ptr())] {
            let bare = || {
                let (mut values, mut ids) = ([0u64; IDS.len()], IDS);
                let mut slots: [*mut c_void; IDS.len()] =
                    std::array::from_fn(|at| (&raw mut values[at]).cast());
                // SAFETY: each attribute has a slot of eight bytes.
                let code = unsafe {
                    (self.driver.pointer_attributes)(
                        IDS.len() as c_uint,
                        ids.as_mut_ptr(),
                        slots.as_mut_ptr(),
                        black_box(pointer).addr() as u64,
                    )
                };
                black_box((code, values));
            };
            let classify = || {
                // SAFETY: the memory is live.
                let _ = black_box(unsafe { device_arena::classify(black_box(pointer)) });
            };
            let (own, bare) = pair(21, 20_000, classify, bare);
            line(&format!("classify {what}"), own, bare, "ns", own / bare, "at most 1.15");
        }
        let arena = Arena::new(&self.executor);
        let call = self.executor.begin(&arena).unwrap();
        let mut offset = 0;
        let again = || {
            offset = (offset + 4096) % (1 << 19);
            // SAFETY: the memory is live.
            let info = unsafe { call.classify_range(black_box(device.wrapping_add(offset)), 256) };
            black_box(info.unwrap());
        };
        let (seen, _) = pair(21, 20_000, again, || ());
        println!(
            "{:<46} {seen:>10.1} {:>10} {:<5} {:>8}  under 50 ns",
            "another pointer, allocation seen", "", "ns", ""
        );
        call.finish().unwrap();
        self.free(block);
    }

    fn steady_call(&self) {
        let sizes = [1 << 20, 256 << 10, 4 << 10];
        let arena = ArenaOptions::new().first_capacity(4 << 20).build(&self.executor).unwrap();
        let own = || {
            let call = self.executor.begin(&arena).unwrap();
            for bytes in sizes {
                let mut output = call.output::<u8>(bytes).unwrap();
                black_box(output.device_ptr().unwrap());
                drop(output.publish());
            }
            call.finish().unwrap();
        };
        let mut pool = std::ptr::null_mut();
        let mut most = u64::MAX;
        // SAFETY: the driver writes the pool; the attribute is the release threshold, of 64 bits.
        unsafe {
            assert_eq!((self.driver.default_pool)(&raw mut pool, 0), 0);
            assert_eq!((self.driver.set_pool_attribute)(pool, 4, (&raw mut most).cast()), 0);
        }
        let peer = || {
            let mut addresses = [0u64; 3];
            for (address, bytes) in addresses.iter_mut().zip(sizes) {
                // SAFETY: the driver writes one address.
                assert_eq!(unsafe { (self.driver.alloc_async)(address, bytes, self.raw) }, 0);
            }
            for address in addresses {
                // SAFETY: the memory was just allocated.
                assert_eq!(unsafe { (self.driver.free_async)(address, self.raw) }, 0);
            }
        };
        let (ours, theirs) = self.executor.with_current(|| pair(21, 5000, own, peer)).unwrap();
        self.cuda.synchronize(&self.stream).unwrap();
        line(
            "a steady call of three, driver's warm pool",
            ours,
            theirs,
            "ns",
            theirs / ours,
            "at least 20 times faster",
        );
        let Some((alloc, free)) = self.driver.runtime else {
            return println!("skipped: the runtime's cudaMallocAsync: no libcudart is here");
        };
        let peer = || {
            let mut addresses = [0u64; 3];
            for (address, bytes) in addresses.iter_mut().zip(sizes) {
                // SAFETY: the runtime writes one address.
                assert_eq!(unsafe { alloc(address, bytes, self.raw) }, 0);
            }
            for address in addresses {
                // SAFETY: the memory was just allocated.
                assert_eq!(unsafe { free(address, self.raw) }, 0);
            }
        };
        let (ours, theirs) = self.executor.with_current(|| pair(21, 5000, own, peer)).unwrap();
        self.cuda.synchronize(&self.stream).unwrap();
        line(
            "a steady call of three, cudaMallocAsync",
            ours,
            theirs,
            "ns",
            theirs / ours,
            "at least 20 times faster",
        );
    }

    fn copies(&self) {
        for (count, bytes) in [(1, 1 << 30), (16, 64 << 20), (1024, 64 << 10), (1024, 1024), (16_384, 256)] {
            let total = count * bytes;
            let (from, to) = (self.block(total), self.block(total));
            let at = |block: &Block, row: usize| block.address().as_ptr().wrapping_add(row * bytes);
            let ranges: Vec<_> = (0..count)
                .map(|row| CopyRange { destination: at(&to, count - 1 - row), source: at(&from, row), bytes })
                .collect();
            let own = || {
                // SAFETY: the ranges are of blocks that the bench has alone.
                unsafe { self.cuda.copy(Some(&self.stream), &ranges) }.unwrap();
                self.cuda.synchronize(&self.stream).unwrap();
            };
            let peer = || {
                for range in &ranges {
                    let (to, from) = (range.destination.addr() as u64, range.source.addr() as u64);
                    // SAFETY: as above.
                    assert_eq!(unsafe { (self.driver.copy_async)(to, from, bytes, self.raw) }, 0);
                }
                self.cuda.synchronize(&self.stream).unwrap();
            };
            let (own, peer) = self.executor.with_current(|| pair(9, 1, own, peer)).unwrap();
            let what = format!("copy {count} x {bytes} B, end to end");
            line(&what, own / 1e3, peer / 1e3, "us", peer / own, "times a loop of the driver's");
            self.free(from);
            self.free(to);
        }
    }

    fn scrubs(&self) {
        for (count, bytes) in [(1, 1 << 20), (1, 1 << 30), (2, 512 << 20), (16, 64 << 20)] {
            let block = self.block(count * bytes);
            let ranges: Vec<_> = (0..count)
                .map(|row| {
                    let address = block.address().as_ptr().wrapping_add(row * bytes);
                    ScrubRange { address, bytes, value: 0 }
                })
                .collect();
            let own = || {
                // SAFETY: the ranges are of a block that the bench has alone.
                unsafe { self.cuda.rewind(Some(&self.stream), None, &ranges) }.unwrap();
                self.cuda.synchronize(&self.stream).unwrap();
            };
            let peer = || {
                for range in &ranges {
                    // SAFETY: as above.
                    let code =
                        unsafe { (self.driver.fill_async)(range.address.addr() as u64, 0, bytes, self.raw) };
                    assert_eq!(code, 0);
                }
                self.cuda.synchronize(&self.stream).unwrap();
            };
            let (own, peer) = self.executor.with_current(|| pair(9, 1, own, peer)).unwrap();
            let what = format!("scrub {count} x {bytes} B, end to end");
            line(&what, own / 1e3, peer / 1e3, "us", peer / own, "times the driver's memset");
            self.free(block);
        }
    }
}

fn main() {
    let cuda = match Cuda::load() {
        Ok(cuda) => cuda,
        Err(error) => return println!("bench skipped: cuda ({error})"),
    };
    // A stream of the bench's own, which the executor works on too.
    let stream = cuda.create_stream(0).unwrap();
    let raw = cuda.raw_stream(&stream).unwrap();
    // SAFETY: the stream lives to the end of the program's work.
    let executor =
        unsafe { Executor::adopt(device_arena::backend::AnyBackend::Cuda(cuda), raw, Box::new(())) }.unwrap();
    let device = executor.device().unwrap();
    println!(
        "{} ({}), driver for CUDA {}, {}",
        device.name,
        device.architecture,
        cuda.version(),
        cuda.library()
    );
    println!("{:<46} {:>10} {:>10} {:<5} {:>8}", "", "own", "peer", "", "ratio");
    let driver = Driver::open(cuda.library());
    let bench = Bench { cuda, driver, executor, stream, raw };
    bench.classification();
    bench.steady_call();
    bench.copies();
    bench.scrubs();
}
