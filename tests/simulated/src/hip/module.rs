//! Modules, functions and launches.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::stream::given;
use super::{Handle, bundle, cu, done, enter, write};
use crate::core::status::{Result, Status};

/// The runtime reads an image as long as its module is there. So much of it is looked at again.
const LOOKED_AT: usize = 4096;

const INVALID_CONFIGURATION: Status = Status(9);

struct Loaded {
    image: usize,
    bytes: usize,
    hash: u64,
    kernels: Vec<String>,
    /// The CUDA driver's modules that have them.
    modules: Vec<usize>,
}

static MODULES: LazyLock<Mutex<HashMap<usize, Loaded>>> = LazyLock::new(Mutex::default);

fn modules() -> MutexGuard<'static, HashMap<usize, Loaded>> {
    MODULES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn handle(number: usize) -> Handle {
    std::ptr::with_exposed_provenance_mut(number)
}

/// A hash of the first bytes of an image, which faults if they are gone.
fn hash(image: usize, bytes: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    let image: *const u8 = std::ptr::with_exposed_provenance(image);
    // SAFETY: whoever loaded the image keeps its bytes readable until its module is unloaded.
    unsafe { std::slice::from_raw_parts(image, bytes) }.hash(&mut hasher);
    hasher.finish()
}

/// What the CUDA driver loads for an image that has these kernels: text that names them.
#[cfg(not(forward))]
fn stand_ins(kernels: &[String]) -> Vec<CString> {
    let mut text = ".version 7.0\n.target sm_50\n.address_size 64\n".to_owned();
    for kernel in kernels {
        text += &format!(".visible .entry {kernel}()\n{{\n}}\n");
    }
    CString::new(text).into_iter().collect()
}

/// What the CUDA driver loads for an image that has these kernels: the texts of the same kernels for it.
#[cfg(forward)]
fn stand_ins(kernels: &[String]) -> Vec<CString> {
    const TEXTS: [&str; 4] = [
        include_str!("../../../../backends/kernels/images/arena.ptx"),
        include_str!("../../../gpu/kernels.ptx"),
        include_str!("../../../../examples/embed/kernels.ptx"),
        include_str!("../../../../examples/compact.ptx"),
    ];
    let has = |text: &&str| kernels.iter().any(|kernel| text.contains(&format!(".entry {kernel}(")));
    TEXTS.into_iter().filter(has).filter_map(|text| CString::new(text).ok()).collect()
}

/// Whether images that were not compiled by this process load.
fn images_load() -> bool {
    #[cfg(not(forward))]
    return crate::core::lock().settings.machine_code;
    #[cfg(forward)]
    return true;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleLoadData(module: *mut Handle, image: *const c_void) -> u32 {
    enter("hipModuleLoadData", || {
        if module.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let (start, found) = unsafe { bundle::pick(image) }?;
        if !found.compiled && !images_load() {
            return Err(Status::NO_BINARY_FOR_GPU);
        }
        let mut loaded = Vec::new();
        for text in stand_ins(&found.kernels) {
            let mut module = std::ptr::null_mut();
            match done(unsafe { cu::cuModuleLoadData(&mut module, text.as_ptr().cast()) }) {
                Ok(()) => loaded.push(module.expose_provenance()),
                Err(status) => {
                    unload(&loaded)?;
                    return Err(status);
                }
            }
        }
        let first = *loaded.first().ok_or(Status::NO_BINARY_FOR_GPU)?;
        let (image, bytes) = (start.expose_provenance(), found.bytes.min(LOOKED_AT));
        let hash = hash(image, bytes);
        modules().insert(first, Loaded { image, bytes, hash, kernels: found.kernels, modules: loaded });
        unsafe { write(module, handle(first)) }
    })
}

fn unload(loaded: &[usize]) -> Result<()> {
    loaded.iter().try_for_each(|&module| done(unsafe { cu::cuModuleUnload(handle(module)) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleUnload(module: Handle) -> u32 {
    enter("hipModuleUnload", || {
        let loaded = modules().get(&module.addr()).ok_or(Status::INVALID_HANDLE)?.modules.clone();
        unload(&loaded)?;
        modules().remove(&module.addr());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleGetFunction(
    function: *mut Handle,
    module: Handle,
    name: *const c_char,
) -> u32 {
    enter("hipModuleGetFunction", || {
        if function.is_null() || name.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let modules = modules();
        let loaded = modules.get(&module.addr()).ok_or(Status::INVALID_HANDLE)?;
        if hash(loaded.image, loaded.bytes) != loaded.hash {
            return Err(Status::INVALID_IMAGE);
        }
        // SAFETY: the caller's C string.
        let text = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Status::NOT_FOUND)?;
        if text.is_empty() {
            return Err(Status::INVALID_VALUE);
        }
        if !loaded.kernels.iter().any(|kernel| kernel == text) {
            return Err(Status::NOT_FOUND);
        }
        let mut outcome = Err(Status::NOT_FOUND);
        for &module in &loaded.modules {
            outcome = done(unsafe { cu::cuModuleGetFunction(function, handle(module), name) });
            if outcome != Err(Status::NOT_FOUND) {
                break;
            }
        }
        outcome
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleLaunchKernel(
    function: Handle,
    blocks_x: u32,
    blocks_y: u32,
    blocks_z: u32,
    threads_x: u32,
    threads_y: u32,
    threads_z: u32,
    shared: u32,
    stream: Handle,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> u32 {
    enter("hipModuleLaunchKernel", || {
        let stream = given(stream)?;
        if function.is_null() {
            return Err(Status::INVALID_IMAGE);
        }
        if !parameters.is_null() && !extra.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        if [threads_x, threads_y, threads_z].contains(&0) {
            return Err(INVALID_CONFIGURATION);
        }
        done(unsafe {
            cu::cuLaunchKernel(
                function, blocks_x, blocks_y, blocks_z, threads_x, threads_y, threads_z, shared, stream,
                parameters, extra,
            )
        })
    })
}
