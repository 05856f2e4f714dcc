//! What the tests see of HIP.

pub(crate) use super::code_object::write as write_code_object;
pub(crate) use super::targets::Target;
pub(crate) use super::{
    copy::*, device::*, error::*, event::*, graph::*, memory::*, module::*, optional::*, pointer::*,
    properties::*, rtc::*, sharing::*, stream::*, virtual_memory::*,
};

use super::code_object::CodeObject;
use super::{known, settings};

/// The settings that the environment gives.
pub(crate) fn reset_settings() {
    *settings::lock() = settings::Settings::from_environment();
}

/// Forgets what was declared.
pub(crate) fn forget_declared() {
    known::lock().clear();
}

pub(crate) fn kernels_of(image: &[u8]) -> Vec<String> {
    CodeObject::read(image).unwrap().kernels
}
