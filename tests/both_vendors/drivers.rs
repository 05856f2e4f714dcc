//! The drivers, and what their own functions do beside the crate.

use std::ffi::c_void;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use device_arena::backend::{AnyBackend, Backend, Cuda, Rocm, Vendor};
use device_arena::{Executor, PointerInfo, Result, classify};

/// What a test has of one vendor.
pub(crate) struct Side {
    pub(crate) backend: AnyBackend,
    library: libloading::Library,
    pub(crate) count: u32,
}

pub(crate) struct Both {
    pub(crate) cuda: Side,
    pub(crate) rocm: Side,
    _turn: MutexGuard<'static, ()>,
}

static TURNS: Mutex<()> = Mutex::new(());

/// Both drivers; none where one is missing, which is printed, or a failure where it is required.
pub(crate) fn both() -> Option<Both> {
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let cuda = Cuda::load().map(|it| (AnyBackend::Cuda(it), it.library().to_owned()));
    let rocm = Rocm::load().map(|it| (AnyBackend::Rocm(it), it.library().to_owned()));
    let (cuda, rocm) = (present("cuda", cuda)?, present("rocm", rocm)?);
    println!("backend: cuda and rocm");
    Some(Both { cuda, rocm, _turn: turn })
}

fn present(name: &str, found: Result<(AnyBackend, String)>) -> Option<Side> {
    match found {
        Ok((backend, path)) => {
            let count = backend.devices().unwrap().len() as u32;
            // SAFETY: the crate has opened the library before.
            let library = unsafe { libloading::Library::new(path) }.unwrap();
            Some(Side { backend, library, count })
        }
        Err(error) => {
            let required = std::env::var("DEVICE_ARENA_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|one| one == name), "{name} is required: {error}");
            println!("backend skipped: {name} ({error})");
            None
        }
    }
}

impl Side {
    pub(crate) fn executor(&self) -> Executor {
        Executor::on(self.backend.clone(), 0).unwrap()
    }

    pub(crate) fn vendor(&self) -> Vendor {
        self.backend.vendor()
    }

    fn function<F: Copy>(&self, cuda: &str, hip: &str) -> F {
        let name = if self.vendor() == Vendor::Cuda { cuda } else { hip };
        // SAFETY: the callers name functions of these types.
        *unsafe { self.library.get::<F>(name.as_bytes()) }.unwrap()
    }

    /// Device memory from the driver itself.
    pub(crate) fn allocate(&self, bytes: usize) -> *mut u8 {
        type Alloc = unsafe extern "C" fn(*mut u64, usize) -> u32;
        let allocate: Alloc = self.function("cuMemAlloc_v2", "hipMalloc");
        let mut address = 0;
        // SAFETY: the driver writes one address.
        let code = self.executor().with_current(|| unsafe { allocate(&raw mut address, bytes) }).unwrap();
        assert_eq!(code, 0);
        std::ptr::with_exposed_provenance_mut(address as usize)
    }

    pub(crate) fn free(&self, memory: *mut u8) {
        let free: unsafe extern "C" fn(u64) -> u32 = self.function("cuMemFree_v2", "hipFree");
        // SAFETY: the memory is the test's own.
        let code = self.executor().with_current(|| unsafe { free(memory.addr() as u64) }).unwrap();
        assert_eq!(code, 0);
    }

    /// Tells the driver of host pages.
    pub(crate) fn register(&self, pages: &mut [u8]) {
        type Register = unsafe extern "C" fn(*mut c_void, usize, u32) -> u32;
        let register: Register = self.function("cuMemHostRegister_v2", "hipHostRegister");
        let (start, bytes) = (pages.as_mut_ptr().cast(), pages.len());
        // SAFETY: the pages are the test's own until they are unregistered.
        assert_eq!(self.executor().with_current(|| unsafe { register(start, bytes, 0) }).unwrap(), 0);
    }

    pub(crate) fn unregister(&self, pages: &mut [u8]) {
        type Unregister = unsafe extern "C" fn(*mut c_void) -> u32;
        let unregister: Unregister = self.function("cuMemHostUnregister", "hipHostUnregister");
        let start = pages.as_mut_ptr().cast();
        // SAFETY: the pages were registered before.
        assert_eq!(self.executor().with_current(|| unsafe { unregister(start) }).unwrap(), 0);
    }
}

/// What the drivers say of a pointer.
pub(crate) fn ask(pointer: *const u8) -> Result<PointerInfo> {
    // SAFETY: classification reads nothing, and the tests keep the memory.
    unsafe { classify(pointer) }
}

const CHILD: &str = "DEVICE_ARENA_TEST_CHILD";

/// In the child, true; in the parent, runs this test once more, alone and with these variables, where both drivers are.
#[track_caller]
pub(crate) fn alone(test: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var(CHILD).is_ok_and(|name| name == test) {
        return true;
    }
    if both().is_none() {
        return false;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(CHILD, test).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "the child ran no test {test}");
    false
}
