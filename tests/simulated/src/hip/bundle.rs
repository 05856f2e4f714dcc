//! Images that hold code objects for several targets, as clang bundles them.

use std::ffi::c_void;

use super::code_object::CodeObject;
use super::settings;
use super::targets::Target;
use crate::core::status::{Result, Status};

const MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";

/// More than any bundle has.
const MOST: u64 = 4096;

/// Whether an image begins like this. The comparison ends at the first byte that differs.
unsafe fn begins(image: *const u8, magic: &[u8]) -> bool {
    // SAFETY: an image is no shorter than what it begins with.
    magic.iter().enumerate().all(|(index, &byte)| unsafe { *image.add(index) } == byte)
}

/// The code object of an image that runs on the devices, and where it starts.
///
/// # Safety
///
/// `image` is a whole code object or bundle, or begins like neither.
pub(super) unsafe fn pick(image: *const c_void) -> Result<(*const u8, CodeObject)> {
    if image.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    let image: *const u8 = image.cast();
    let settings = settings::lock().clone();
    // SAFETY: by the caller's promise, here and below.
    unsafe {
        if begins(image, MAGIC) {
            // Nothing for the device is no image from 7.0 on.
            let none = if settings.version.is_at_least(7, 0) {
                Status::INVALID_IMAGE
            } else {
                Status::NO_BINARY_FOR_GPU
            };
            let found = in_bundle(image, &settings)?.ok_or(none)?;
            return Ok((found, CodeObject::at(found)?));
        }
        if !begins(image, b"\x7fELF") {
            return Err(Status::INVALID_IMAGE);
        }
        let found = CodeObject::at(image)?;
        if !found.is_of_known_machine() || !found.runs_on(settings.target, settings.xnack, settings.version) {
            return Err(Status::NO_BINARY_FOR_GPU);
        }
        Ok((image, found))
    }
}

/// Where a bundle has the code for the devices' own target, or else for the generic one.
unsafe fn in_bundle(image: *const u8, settings: &settings::Settings) -> Result<Option<*const u8>> {
    // SAFETY: the bundle's fields, as its header and entries say where they are.
    let long = |at: usize| unsafe { image.add(at).cast::<u64>().read_unaligned() };
    let count = long(MAGIC.len());
    if count > MOST {
        return Err(Status::INVALID_IMAGE);
    }
    let mut at = MAGIC.len() + 8;
    let (mut own, mut generic) = (None, None);
    for _ in 0..count {
        let (start, bytes, name_bytes) = (long(at), long(at + 8), long(at + 16) as usize);
        // SAFETY: as above.
        let name = unsafe { std::slice::from_raw_parts(image.add(at + 24), name_bytes) };
        at += 24 + name_bytes;
        let Some((target, fits)) = std::str::from_utf8(name).ok().and_then(|name| of_entry(name, settings))
        else {
            continue;
        };
        if bytes == 0 || !fits {
            continue;
        }
        // SAFETY: as above.
        let found = unsafe { image.add(start as usize) };
        if target.name == settings.target.name {
            own = own.or(Some(found));
        } else if target.name == settings.target.generic && settings.version.is_at_least(6, 4) {
            generic = generic.or(Some(found));
        }
    }
    Ok(own.or(generic))
}

/// The target of an entry like `hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`, and whether the devices have on and
/// off what it says.
fn of_entry(name: &str, settings: &settings::Settings) -> Option<(&'static Target, bool)> {
    if !name.starts_with("hip") {
        return None;
    }
    let (_, id) = name.split_once("amdgcn-amd-amdhsa-")?;
    let id = id.strip_prefix('-').unwrap_or(id);
    let (target, modes) = Target::parse(id)?;
    let (sramecc, xnack) = settings.target.modes(settings.xnack);
    Some((target, modes.0.runs_on(sramecc) && modes.1.runs_on(xnack)))
}
