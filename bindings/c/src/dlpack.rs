//! Views as tensors of DLPack, in its versioned struct.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arenas::backend::Vendor;
use arenas::{Error, Residency};

use crate::border::{Answer, Refusal, cross, needed};
use crate::executor::device_arena_executor_t;
use crate::library::Library;
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::get;
use crate::view::{Held, ViewObject, device_arena_view_t};

const CPU: i32 = 1;
const CUDA: i32 = 2;
const ROCM: i32 = 10;
const READ_ONLY: u64 = 1;

/// `DLPackVersion`: a consumer takes any minor version of a major one that it knows.
#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    id: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// The versioned tensor of `dlpack.h`, which C knows by that header.
pub struct DLManagedTensorVersioned {
    _opaque: [u8; 0],
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Managed {
    version: Version,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    flags: u64,
    tensor: Tensor,
}

/// A tensor, and what it needs as long as its consumer has it. The consumer knows the address of the first field.
#[repr(C)]
struct Lent {
    managed: Managed,
    _shape: Vec<i64>,
    _strides: Vec<i64>,
    _held: Held,
    _library: Arc<Library>,
}

/// Takes a tensor back from its consumer.
///
/// # Safety
///
/// `managed` is of [`lend`], and its consumer does not use it any more.
unsafe extern "C" fn take_back(managed: *mut Managed) {
    if managed.is_null() {
        return;
    }
    // SAFETY: the tensor is the first field of a box that `lend` leaked, and comes back once.
    let lent = unsafe { Box::from_raw(managed.cast::<Lent>()) };
    // A panic must not get to the consumer.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(lent)));
}

/// Whether elements of the type in that shape are all of a view's bytes.
fn check(dtype: DataType, shape: &[i64], bytes: usize) -> Answer {
    let bits = usize::from(dtype.bits) * usize::from(dtype.lanes);
    if bits == 0 || !bits.is_multiple_of(8) {
        let (bits, lanes) = (dtype.bits, dtype.lanes);
        return Err(Refusal::invalid(format!("no element has {bits} bits in {lanes} lanes here")));
    }
    let mut elements = 1usize;
    for &extent in shape {
        let extent = usize::try_from(extent)
            .map_err(|_| Refusal::invalid(format!("shape has an extent of {extent}")))?;
        elements = elements
            .checked_mul(extent)
            .ok_or_else(|| Refusal::invalid("shape has more elements than there are addresses"))?;
    }
    let element = bits / 8;
    match elements.checked_mul(element) {
        Some(needed) if needed == bytes => Ok(()),
        _ => Err(Error::LengthMismatch {
            operation: "dlpack",
            expected: bytes.checked_div(element).unwrap_or(0),
            actual: elements,
        }
        .into()),
    }
}

/// Strides in elements, the last dimension dense.
fn strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    let mut stride = 1i64;
    for (place, extent) in strides.iter_mut().zip(shape).rev() {
        *place = stride;
        // Of a shape without elements nothing is ever reached.
        stride = stride.saturating_mul((*extent).max(1));
    }
    strides
}

/// Holds a view and makes a tensor of it.
fn lend(
    view: &ViewObject,
    executor: device_arena_executor_t,
    dtype: DataType,
    shape: Vec<i64>,
) -> Answer<*mut DLManagedTensorVersioned> {
    let (held, data, device) = match view.view.describe().residency {
        Residency::Ram => {
            let export = view.view.export()?;
            let data = raw::const_address_of(&export);
            (Held::Host { _export: export }, data, Device { kind: CPU, id: 0 })
        }
        Residency::Vram => {
            let guard = view.read_on(executor)?;
            let kind = if guard.reader().vendor() == Vendor::Rocm { ROCM } else { CUDA };
            let id = view.view.describe().device;
            let data = guard.device_ptr().cast::<c_void>();
            (Held::Device { _guard: guard }, data, Device { kind, id })
        }
    };
    // Checked with the view held, so that what is stale is refused as that.
    check(dtype, &shape, view.view.byte_len())?;
    let scalar = (usize::from(dtype.bits) / 8).max(1);
    if !data.addr().is_multiple_of(scalar) {
        return Err(Refusal::invalid(format!("the view's address is no multiple of {scalar} bytes")));
    }
    let ndim = i32::try_from(shape.len()).map_err(|_| Refusal::invalid("shape has too many dimensions"))?;
    let (mut strides, mut shape) = (strides(&shape), shape);
    let tensor = Tensor {
        // A tensor without elements has no address.
        data: if view.view.is_empty() { std::ptr::null_mut() } else { data.cast_mut() },
        device,
        ndim,
        dtype,
        // Where they are does not change when the vectors move.
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let managed = Managed {
        version: Version { major: 1, minor: 0 },
        manager_ctx: std::ptr::null_mut(),
        deleter: Some(take_back),
        flags: READ_ONLY,
        tensor,
    };
    let library = Arc::clone(&view.library);
    let lent = Lent { managed, _shape: shape, _strides: strides, _held: held, _library: library };
    let lent = Box::into_raw(Box::new(lent));
    // SAFETY: it was just leaked, and nobody else knows it.
    unsafe { (*lent).managed.manager_ctx = lent.cast() };
    Ok(lent.cast())
}

/// Makes a view a tensor of DLPack without copying: a `DLManagedTensorVersioned` of version 1, flagged as read-only. Until
/// its consumer calls its deleter, the view's arena is held as by a reader, and a begin is CONTENDED. `type_code`, `bits` and
/// `lanes` are those of `DLDataType`, and `shape` has `ndim` extents whose elements are all bytes of the view: null for one
/// dimension of as many as there are. A device's tensor is for the stream of `executor`, which waits for the work of the
/// view's call: 0 for the executor that the call computed on. A consumer on another stream waits by itself before, and is done
/// before it calls the deleter.
///
/// # Safety
///
/// `shape` is null or to `ndim` extents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_view_dlpack(
    tensor: Option<&mut MaybeUninit<*mut DLManagedTensorVersioned>>,
    view: device_arena_view_t,
    executor: device_arena_executor_t,
    type_code: u8,
    bits: u8,
    lanes: u16,
    ndim: i32,
    shape: *const i64,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("tensor", tensor)?;
        out.write(std::ptr::null_mut());
        let object = get::<ViewObject>(view)?;
        let ndim = u64::try_from(ndim).map_err(|_| Refusal::invalid(format!("ndim is {ndim}")))?;
        let dtype = DataType { code: type_code, bits, lanes };
        let shape = if shape.is_null() && ndim == 1 {
            let element = usize::from(bits) * usize::from(lanes) / 8;
            vec![object.view.byte_len().checked_div(element).unwrap_or(0) as i64]
        } else {
            // SAFETY: the caller's promise is the same, until this returns.
            unsafe { raw::values("shape", shape, ndim) }?.to_vec()
        };
        out.write(lend(&object, executor, dtype, shape)?);
        Ok(())
    })
}
