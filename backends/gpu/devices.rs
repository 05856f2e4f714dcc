//! What a driver has said of its devices, and the devices that were used: each once.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::device::Device;
use super::driver::{self, Driver};
use crate::backend::DeviceInfo;
use crate::error::{Error, Result};

/// What is known of a driver's devices.
#[derive(Debug, Default)]
pub(crate) struct Known {
    infos: OnceLock<Vec<DeviceInfo>>,
    reaches_pageable: OnceLock<bool>,
    /// By ordinal.
    primaries: Mutex<Vec<Option<Arc<Device>>>>,
}

/// The devices, as the driver describes them.
pub(crate) fn described(driver: &impl Driver) -> Result<&[DeviceInfo]> {
    let infos = &driver.known().infos;
    if let Some(devices) = infos.get() {
        return Ok(devices);
    }
    let devices = (0..driver.count()?).map(|ordinal| driver.describe(ordinal)).collect::<Result<Vec<_>>>()?;
    Ok(infos.get_or_init(|| devices))
}

/// Whether there is a device that reaches pageable memory.
#[inline]
pub(crate) fn reaches_pageable_memory(driver: &impl Driver) -> bool {
    let reaches = &driver.known().reaches_pageable;
    // A driver that fails to say is asked again.
    reaches.get().copied().unwrap_or_else(|| {
        described(driver).is_ok_and(|devices| {
            *reaches.get_or_init(|| devices.iter().any(|device| device.reaches_pageable_memory))
        })
    })
}

/// The device of that number.
pub(crate) fn info(driver: &impl Driver, ordinal: u32) -> Result<&DeviceInfo> {
    let devices = described(driver)?;
    devices.get(ordinal as usize).ok_or_else(|| Error::Unavailable {
        vendor: driver.vendor(),
        detail: format!("there is no ordinal {ordinal}, the driver has {} devices", devices.len()),
    })
}

/// The device of that number in its primary context, which lives as long as the process from then on.
pub(crate) fn primary(driver: &'static impl Driver, ordinal: u32) -> Result<Arc<Device>> {
    driver::check_callable(driver, "primary")?;
    let info = info(driver, ordinal)?;
    let at = ordinal as usize;
    let mut primaries = driver.known().primaries.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some(device)) = primaries.get(at) {
        return Ok(Arc::clone(device));
    }
    let context = driver.primary_context(ordinal)?;
    // SAFETY: the context is that device's, and lives for good.
    let device = Arc::new(unsafe { Device::new(driver, info.clone(), context, None) });
    if primaries.len() <= at {
        primaries.resize(at + 1, None);
    }
    if let Some(place) = primaries.get_mut(at) {
        *place = Some(Arc::clone(&device));
    }
    Ok(device)
}
