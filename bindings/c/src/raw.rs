//! Memory of the caller's, by its address and length.

use std::ffi::c_void;

use crate::border::{Answer, Refusal};

/// Bytes to be read. Null stands for none.
///
/// # Safety
///
/// `data` is null or to `bytes` bytes that nobody writes for `'a`.
pub(crate) unsafe fn bytes<'a>(name: &'static str, data: *const c_void, bytes: u64) -> Answer<&'a [u8]> {
    // SAFETY: the caller's promise is the same; any address is aligned for bytes.
    unsafe { values(name, data.cast(), bytes) }
}

/// Values to be read. Null stands for none.
///
/// # Safety
///
/// `data` is null or to `count` values that nobody writes for `'a`.
pub(crate) unsafe fn values<'a, T>(name: &'static str, data: *const T, count: u64) -> Answer<&'a [T]> {
    let count = len::<T>(name, count)?;
    if count == 0 {
        return Ok(&[]);
    }
    if data.is_null() || !data.is_aligned() {
        let what = if data.is_null() { "null" } else { "not aligned" };
        return Err(Refusal::invalid(format!("{name} is {what}, with a length of {count}")));
    }
    // SAFETY: not null, aligned and within the address space; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// Bytes to be written. Null stands for none.
///
/// # Safety
///
/// `data` is null or to `bytes` bytes that are the caller's alone for `'a`. Memory that another language made counts as
/// written: no compiler knows otherwise, and what is handed such bytes only writes them.
pub(crate) unsafe fn bytes_mut<'a>(
    name: &'static str,
    data: *mut c_void,
    bytes: u64,
) -> Answer<&'a mut [u8]> {
    let count = len::<u8>(name, bytes)?;
    if count == 0 {
        return Ok(&mut []);
    }
    if data.is_null() {
        return Err(Refusal::invalid(format!("{name} is null, with a length of {count}")));
    }
    // SAFETY: not null and within the address space; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), count) })
}

/// A length that memory can have.
pub(crate) fn len<T>(name: &'static str, count: u64) -> Answer<usize> {
    let most = (isize::MAX as u64).checked_div(size_of::<T>() as u64).unwrap_or(isize::MAX as u64);
    match usize::try_from(count) {
        Ok(len) if count <= most => Ok(len),
        _ => Err(Refusal::invalid(format!("{name} can't have a length of {count}"))),
    }
}

/// The address of room, which is aligned as outputs are even where there is none.
pub(crate) fn address_of(room: &mut [u8]) -> *mut c_void {
    const ALIGNMENT: usize = 256;
    if room.is_empty() { std::ptr::without_provenance_mut(ALIGNMENT) } else { room.as_mut_ptr().cast() }
}

/// The address of published bytes, likewise.
pub(crate) fn const_address_of(bytes: &[u8]) -> *const c_void {
    if bytes.is_empty() { address_of(&mut []) } else { bytes.as_ptr().cast() }
}
