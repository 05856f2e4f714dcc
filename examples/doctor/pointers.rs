//! What the drivers say of pointers: of the host's own memory here.

use device_arena::{AllocationOrigin, Arena, MemoryKind, PointerInfo, Result, classify};

use crate::{failed, line};

pub fn report() {
    static STATIC: [u8; 64] = [1; 64];
    let stack = [1u8; 64];
    let heap = vec![1u8; 1 << 20];
    let unregistered = Some(MemoryKind::Unregistered);
    sample("pointer.null", std::ptr::null(), unregistered);
    sample("pointer.stack", stack.as_ptr(), unregistered);
    sample("pointer.heap", heap.as_ptr(), unregistered);
    sample("pointer.static", STATIC.as_ptr(), unregistered);
    sample("pointer.code", report as fn() as *const u8, unregistered);
    if let Err(error) = host_arena() {
        line("pointer.host.arena", failed(&error));
    }
}

fn host_arena() -> Result<()> {
    let arena = Arena::host();
    let call = arena.begin()?;
    let mut output = call.output::<u8>(1 << 20)?;
    sample("pointer.host.arena", output.as_mut_slice()?.as_ptr(), Some(MemoryKind::Unregistered));
    call.finish()
}

/// Asks about a pointer, and says so where the answer is not the expected one.
pub fn sample(name: &str, pointer: *const u8, expected: Option<MemoryKind>) {
    // SAFETY: the answer is printed, and nothing else is done with it.
    match unsafe { classify(pointer) } {
        Ok(info) => {
            let is_expected = expected.is_none_or(|expected| expected == info.kind);
            line(
                name,
                format_args!("{}{}", words(pointer, &info), if is_expected { "" } else { ", UNEXPECTED" }),
            );
        }
        Err(error) => line(name, failed(&error)),
    }
}

fn words(pointer: *const u8, info: &PointerInfo) -> String {
    let mut words = match info.kind {
        MemoryKind::Unregistered => "unregistered".into(),
        MemoryKind::PinnedHost => "pinned host".into(),
        MemoryKind::Device { ordinal } => format!("device {ordinal}"),
        MemoryKind::Managed { ordinal: Some(ordinal) } => format!("managed {ordinal}"),
        MemoryKind::Managed { ordinal: None } => "managed".into(),
        MemoryKind::Unmapped => "unmapped".into(),
        other => format!("{other:?}"),
    };
    if let Some(vendor) = info.vendor {
        words += &format!(", {vendor}'s");
    }
    match info.origin {
        AllocationOrigin::Unknown => {}
        AllocationOrigin::Direct => words += ", direct",
        AllocationOrigin::Pool => words += ", of a pool",
        AllocationOrigin::Virtual => words += ", virtual",
        other => words += &format!(", {other:?}"),
    }
    if let Some((start, bytes)) = info.allocation {
        words += &format!(", at {} of {bytes} bytes", pointer.addr().wrapping_sub(start));
    }
    if info.buffer_id.is_some() {
        words += ", with an id";
    }
    let reach = |reaches| if reaches { "reached" } else { "not reached" };
    if info.kind != MemoryKind::Unregistered {
        words += &format!(", {} by the host", reach(info.is_host_accessible()));
    }
    words + &format!(", {} by a device", reach(info.is_device_accessible))
}
