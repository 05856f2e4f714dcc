//! The peers: `benches/peers/peers.cu` as a loaded object, which is found, or built where nvcc is.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;

use libloading::Library;

use crate::driver::{Handle, function};
use crate::timing::Outcome;

const SOURCE: &str = include_str!("../peers/peers.cu");
const LIBRARY: &str = "libpeers.so";
/// `PEERS_INTERFACE` of the source.
const INTERFACE: c_int = 1;

/// `cudaMemcpyKind`: what a copy's ends are.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    HostToDevice = 1,
    DeviceToDevice = 3,
}

/// A list in the layout that every peer takes: three arrays.
#[derive(Debug, Default)]
pub struct Columns {
    pub to: Vec<*mut c_void>,
    pub from: Vec<*const c_void>,
    pub bytes: Vec<usize>,
}

type ToList = *const *mut c_void;
type FromList = *const *const c_void;

/// The peers' functions.
#[derive(Debug)]
pub struct Peers {
    copy_loop: unsafe extern "C" fn(ToList, FromList, *const usize, usize, c_int, Handle) -> c_int,
    copy_batch: unsafe extern "C" fn(ToList, FromList, *const usize, usize, Handle) -> c_int,
    batched_create: unsafe extern "C" fn(ToList, FromList, *const usize, usize, *mut *mut c_void) -> c_int,
    batched_upload: unsafe extern "C" fn(*mut c_void, Handle) -> c_int,
    batched_launch: unsafe extern "C" fn(*mut c_void, Handle) -> c_int,
    batched_destroy: unsafe extern "C" fn(*mut c_void) -> c_int,
    fill: unsafe extern "C" fn(*mut c_void, c_int, usize, Handle) -> c_int,
    allocate: unsafe extern "C" fn(*mut *mut c_void, usize, Handle) -> c_int,
    free: unsafe extern "C" fn(*mut c_void, Handle) -> c_int,
    launch_nothing: unsafe extern "C" fn(Handle) -> c_int,
    graph_create: unsafe extern "C" fn(Handle, *mut *mut c_void) -> c_int,
    graph_launch: unsafe extern "C" fn(*mut c_void, Handle) -> c_int,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    /// What they were built with.
    pub versions: String,
}

/// Where a compiler is: as `NVCC` says, in the search path, where NVIDIA's installer puts it.
fn compiler() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("NVCC").filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let usual = PathBuf::from("/usr/local/cuda/bin");
    let mut folders = std::env::split_paths(&paths).chain([usual]);
    folders.find_map(|folder| Some(folder.join("nvcc")).filter(|file| file.is_file()))
}

/// The arguments that every build of the peers has.
fn arguments(compiler: &Path) -> Vec<String> {
    let usual = "-O3 -std=c++17 -shared -Xcompiler -fPIC -gencode arch=compute_90,code=sm_90 \
                 -gencode arch=compute_80,code=compute_80";
    let mut arguments: Vec<String> = usual.split_whitespace().map(str::to_owned).collect();
    // Wheels of the compiler have their libraries in a folder that it does not look into.
    let beside = compiler.parent().and_then(Path::parent).map(|top| top.join("lib"));
    if let Some(beside) = beside.filter(|folder| folder.join("libcudart_static.a").is_file()) {
        arguments.push(format!("-L{}", beside.display()));
    }
    arguments
}

/// Builds the object into a folder, where it is not there already, of this very source.
pub fn build(folder: &Path) -> Result<PathBuf, String> {
    let (source, object) = (folder.join("peers.cu"), folder.join(LIBRARY));
    if object.is_file() && std::fs::read_to_string(&source).is_ok_and(|text| text == SOURCE) {
        return Ok(object);
    }
    let compiler = compiler().ok_or("no nvcc")?;
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&source, SOURCE));
    written.map_err(|error| format!("{}: {error}", folder.display()))?;
    println!("building the peers with {}", compiler.display());
    // Under another name first: an object that was half written is none.
    let half = folder.join("libpeers.part.so");
    let output =
        Command::new(&compiler).args(arguments(&compiler)).arg(&source).arg("-o").arg(&half).output();
    let output = output.map_err(|error| format!("{}: {error}", compiler.display()))?;
    if !output.status.success() {
        let _ = std::fs::remove_file(&source);
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("nvcc failed: {}", words.lines().last().unwrap_or_default()));
    }
    std::fs::rename(&half, &object).map_err(|error| error.to_string())?;
    Ok(object)
}

/// Where the object is: as `DEVICE_ARENA_PEERS` says, beside the program, or in the target folder, built if need be.
fn find() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("DEVICE_ARENA_PEERS") {
        return Ok(named.into());
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let beside = program.parent().unwrap_or(Path::new("."));
    let packed = beside.join(LIBRARY);
    if packed.is_file() {
        return Ok(packed);
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    build(&if target.is_dir() { target.join("peers") } else { beside.join("peers") })
}

impl Peers {
    /// Finds or builds the object, and loads it. It stays loaded.
    pub fn load() -> Result<Self, String> {
        let path = find()?;
        // SAFETY: the object is this project's own, and does nothing on being loaded.
        let library = unsafe { Library::new(&path) }.map_err(|error| error.to_string())?;
        let library: &'static Library = Box::leak(Box::new(library));
        type Number = unsafe extern "C" fn() -> c_int;
        type Numbers = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> c_int;
        // SAFETY: the types are those of the source's declarations.
        unsafe {
            let interface = function::<Number>(library, "peers_interface")?();
            if interface != INTERFACE {
                return Err(format!("{} is of another version of the bench", path.display()));
            }
            let (mut runtime, mut driver, mut cub) = (0, 0, 0);
            function::<Numbers>(library, "peers_versions")?(&raw mut runtime, &raw mut driver, &raw mut cub);
            Ok(Self {
                copy_loop: function(library, "peers_copy_loop")?,
                copy_batch: function(library, "peers_copy_batch")?,
                batched_create: function(library, "peers_batched_create")?,
                batched_upload: function(library, "peers_batched_upload")?,
                batched_launch: function(library, "peers_batched_launch")?,
                batched_destroy: function(library, "peers_batched_destroy")?,
                fill: function(library, "peers_fill")?,
                allocate: function(library, "peers_allocate")?,
                free: function(library, "peers_free")?,
                launch_nothing: function(library, "peers_launch_nothing")?,
                graph_create: function(library, "peers_graph_create")?,
                graph_launch: function(library, "peers_graph_launch")?,
                error: function(library, "peers_error")?,
                versions: format!(
                    "CUDA runtime {}.{}, CUB {}.{}.{}",
                    runtime / 1000,
                    runtime % 1000 / 10,
                    cub / 100_000,
                    cub / 100 % 1000,
                    cub % 100
                ),
            })
        }
    }

    fn done(&self, code: c_int) -> Outcome {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the runtime's words live as long as the program.
        let words = unsafe { CStr::from_ptr((self.error)(code)) };
        Err(format!("error {code}: {}", words.to_string_lossy()))
    }

    /// One `cudaMemcpyAsync` a range.
    ///
    /// # Safety
    ///
    /// The ranges are live, and of that kind, until the stream has passed. So for every copy below.
    pub unsafe fn copy_loop(&self, list: &Columns, kind: Kind, stream: Handle) -> Outcome {
        let Columns { to, from, bytes } = list;
        // SAFETY: the columns are as long as each other; the ranges are the caller's promise.
        self.done(unsafe {
            (self.copy_loop)(to.as_ptr(), from.as_ptr(), bytes.as_ptr(), to.len(), kind as c_int, stream)
        })
    }

    /// One `cudaMemcpyBatchAsync`.
    ///
    /// # Safety
    ///
    /// As [`copy_loop`](Self::copy_loop).
    pub unsafe fn copy_batch(&self, list: &Columns, stream: Handle) -> Outcome {
        let Columns { to, from, bytes } = list;
        // SAFETY: as above.
        self.done(unsafe { (self.copy_batch)(to.as_ptr(), from.as_ptr(), bytes.as_ptr(), to.len(), stream) })
    }

    /// A list for CUB's batched copy, in pinned memory.
    pub fn batched(&self, list: &Columns) -> Result<Batched<'_>, String> {
        let Columns { to, from, bytes } = list;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the columns are as long as each other, and read before this returns.
        self.done(unsafe {
            (self.batched_create)(to.as_ptr(), from.as_ptr(), bytes.as_ptr(), to.len(), &raw mut handle)
        })?;
        Ok(Batched { peers: self, handle })
    }

    /// One `cudaMemsetAsync`.
    ///
    /// # Safety
    ///
    /// The bytes are live, and nobody else's, until the stream has passed.
    pub unsafe fn fill(&self, address: *mut u8, value: u8, bytes: usize, stream: Handle) -> Outcome {
        // SAFETY: the caller's promise is the same.
        self.done(unsafe { (self.fill)(address.cast(), c_int::from(value), bytes, stream) })
    }

    /// `cudaMallocAsync` of each size, then `cudaFreeAsync` of all.
    pub fn allocate_and_free(&self, sizes: [usize; 3], stream: Handle) -> Outcome {
        let mut addresses = [std::ptr::null_mut(); 3];
        for (address, bytes) in addresses.iter_mut().zip(sizes) {
            // SAFETY: the runtime writes one address.
            self.done(unsafe { (self.allocate)(address, bytes, stream) })?;
        }
        for address in addresses {
            // SAFETY: the memory was just allocated.
            self.done(unsafe { (self.free)(address, stream) })?;
        }
        Ok(())
    }

    /// A launch of an empty kernel.
    pub fn launch_nothing(&self, stream: Handle) -> Outcome {
        // SAFETY: the stream is the bench's own.
        self.done(unsafe { (self.launch_nothing)(stream) })
    }

    /// A graph of one empty kernel, which lives as long as the program.
    pub fn graph_of_nothing(&self, stream: Handle) -> Result<Handle, String> {
        let mut graph = std::ptr::null_mut();
        // SAFETY: the stream is the bench's own; the runtime writes one handle.
        self.done(unsafe { (self.graph_create)(stream, &raw mut graph) })?;
        Ok(graph)
    }

    /// # Safety
    ///
    /// The graph is one of [`graph_of_nothing`](Self::graph_of_nothing).
    pub unsafe fn launch_graph(&self, graph: Handle, stream: Handle) -> Outcome {
        // SAFETY: the caller's promise is the same.
        self.done(unsafe { (self.graph_launch)(graph, stream) })
    }
}

/// A list of CUB's batched copy.
#[derive(Debug)]
pub struct Batched<'a> {
    peers: &'a Peers,
    handle: Handle,
}

impl Batched<'_> {
    /// Brings the three arrays to the device.
    pub fn upload(&self, stream: Handle) -> Outcome {
        // SAFETY: the list is alive.
        self.peers.done(unsafe { (self.peers.batched_upload)(self.handle, stream) })
    }

    /// # Safety
    ///
    /// As [`Peers::copy_loop`]; the list was uploaded.
    pub unsafe fn launch(&self, stream: Handle) -> Outcome {
        // SAFETY: the caller's promise is the same.
        self.peers.done(unsafe { (self.peers.batched_launch)(self.handle, stream) })
    }
}

impl Drop for Batched<'_> {
    fn drop(&mut self) {
        // SAFETY: the list is this one's; the runtime's frees wait for what uses the memory.
        let _ = unsafe { (self.peers.batched_destroy)(self.handle) };
    }
}
