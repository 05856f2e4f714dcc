//! Copies and fills.

use super::pointer::{self, Kind};
use super::stream::given;
use super::{Handle, cu, done, enter};
use crate::core::status::{Result, Status};

const INVALID_DIRECTION: Status = Status(21);

/// Whether memory at an address can be called a host's, and a device's.
fn sides(address: Handle) -> Result<(bool, bool)> {
    Ok(match pointer::behind(address.addr() as u64)?.map(|behind| behind.kind) {
        None => (true, false),
        Some(Kind::Device) => (false, true),
        Some(Kind::Host | Kind::Managed) => (true, true),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemcpyAsync(
    to: Handle,
    from: Handle,
    bytes: usize,
    kind: u32,
    stream: Handle,
) -> u32 {
    enter("hipMemcpyAsync", || {
        let stream = given(stream)?;
        if bytes == 0 {
            return Ok(());
        }
        if to.is_null() || from.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // From and to: host to host, host to device, device to host, device to device.
        let (from_device, to_device) = match kind {
            0..=3 => (kind & 2 != 0, kind & 1 != 0),
            4 => {
                return done(unsafe {
                    cu::cuMemcpyAsync(to.addr() as u64, from.addr() as u64, bytes, stream)
                });
            }
            _ => return Err(INVALID_DIRECTION),
        };
        let fits = |(host, device), wanted: bool| if wanted { device } else { host };
        if !fits(sides(from)?, from_device) || !fits(sides(to)?, to_device) {
            return Err(INVALID_DIRECTION);
        }
        done(unsafe { cu::cuMemcpyAsync(to.addr() as u64, from.addr() as u64, bytes, stream) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemsetD8Async(to: Handle, value: u8, bytes: usize, stream: Handle) -> u32 {
    enter("hipMemsetD8Async", || {
        let stream = given(stream)?;
        if to.is_null() && bytes > 0 {
            return Err(Status::INVALID_VALUE);
        }
        done(unsafe { cu::cuMemsetD8Async(to.addr() as u64, value, bytes, stream) })
    })
}
