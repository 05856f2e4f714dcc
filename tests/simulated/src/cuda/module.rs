//! Modules, functions and launches.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use super::{Handle, handle, number, write};
use crate::core::kernels::Module;
use crate::core::status::{Result, Status};
use crate::core::work::Work;
use crate::core::{Locked, enter, stream};

/// The most threads of a block: each is a thread of the system.
const MAX_THREADS: u64 = 64;

unsafe fn load(mut state: Locked, module: *mut Handle, image: *const c_void) -> Result<()> {
    let context = state.current()?;
    // SAFETY: by the caller's promise.
    let loaded = unsafe { Module::load(image.cast(), context, &state.settings) }?;
    let id = state.handle();
    unsafe { write(module, handle(id)) }?;
    state.modules.insert(id, loaded);
    Ok(())
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut Handle, image: *const c_void) -> u32 {
    enter("cuModuleLoadData", |state| unsafe { load(state, module, image) })
}

/// The options are taken and have no effect.
#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut Handle,
    image: *const c_void,
    _count: u32,
    _options: *mut c_int,
    _values: *mut *mut c_void,
) -> u32 {
    enter("cuModuleLoadDataEx", |state| unsafe { load(state, module, image) })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuModuleUnload(module: Handle) -> u32 {
    enter("cuModuleUnload", |mut state| {
        state.unsafe_in_captures()?;
        let module = number(module);
        let owner = state.modules.get(&module).ok_or(Status::INVALID_HANDLE)?.context;
        state.whole(owner)?;
        state.modules.remove(&module);
        state.functions.retain(|_, (owner, _, _)| *owner != module);
        Ok(())
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuModuleGetFunction(
    function: *mut Handle,
    module: Handle,
    name: *const c_char,
) -> u32 {
    enter("cuModuleGetFunction", |mut state| {
        if name.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let module = number(module);
        let found = state.modules.get(&module).ok_or(Status::INVALID_HANDLE)?;
        // SAFETY: the caller's C string.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Status::NOT_FOUND)?;
        if name.is_empty() {
            return Err(Status::INVALID_VALUE);
        }
        let (context, kernel) = (found.context, found.kernel(name)?);
        let id = state.handle();
        state.functions.insert(id, (module, context, kernel));
        unsafe { write(function, handle(id)) }
    })
}

/// Brings a function's code to the device. A driver that does it late waits meanwhile for what its context has queued.
pub(super) fn bring(mut state: Locked, function: u64) -> Result<Locked> {
    let &(_, context, _) = state.functions.get(&function).ok_or(Status::INVALID_HANDLE)?;
    if state.settings.loads_late && !state.loaded.contains(&function) {
        state = stream::wait_for_context(state, context);
        state.whole(context)?;
        state.loaded.insert(function);
    }
    Ok(state)
}

/// Of a function; 0 is the most threads of a block.
#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: u32, function: Handle) -> u32 {
    enter("cuFuncGetAttribute", |state| {
        let state = bring(state, number(function))?;
        let (major, minor) = state.settings.capability;
        let answer = match attribute {
            0 => 64,
            4 => 32,                     // registers
            5 | 6 => major * 10 + minor, // the PTX's and the machine code's architecture
            8 => 48 << 10,               // dynamic shared memory
            1..=16 => 0,
            _ => return Err(Status::INVALID_VALUE),
        };
        unsafe { write(value, answer) }
    })
}

#[cfg_attr(feature = "cuda", unsafe(no_mangle))]
pub unsafe extern "C" fn cuLaunchKernel(
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
    enter("cuLaunchKernel", |mut state| {
        let stream = state.stream(number(stream))?;
        state = bring(state, number(function))?;
        let &(_, owner, kernel) = state.functions.get(&number(function)).ok_or(Status::INVALID_HANDLE)?;
        // A launch is of one context.
        if owner != state.streams[&stream].context {
            return Err(Status::INVALID_HANDLE);
        }
        let blocks = [blocks_x, blocks_y, blocks_z];
        let threads = [threads_x, threads_y, threads_z];
        let size = threads.iter().map(|&count| u64::from(count)).product::<u64>();
        let grid_is_valid = blocks_x as u64 <= i32::MAX as u64 && blocks_y <= 65535 && blocks_z <= 65535;
        if blocks.contains(&0) || size == 0 || size > MAX_THREADS || !grid_is_valid || shared > 48 << 10 {
            return Err(Status::INVALID_VALUE);
        }
        if !extra.is_null() || shared != 0 {
            return Err(Status::NOT_SUPPORTED);
        }
        // SAFETY: the caller has a value for each parameter of the function.
        let launch = unsafe { kernel.bind(parameters.cast_const().cast(), blocks, threads) }?;
        state.submit(stream, Work::Launch(Arc::new(launch))).map(|_| ())
    })
}
