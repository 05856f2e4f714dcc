//! What a device is like: attributes, by HIP's numbers, and the two structures of properties.

use std::ffi::{c_char, c_int};

use super::device::{valid, write_text};
use super::{cu, done, enter, settings, write};
use crate::core::status::{Result, Status};

/// An attribute by cuda.h's number.
fn by_cuda(attribute: u32, ordinal: c_int) -> Result<c_int> {
    let mut value = 0;
    // SAFETY: a place of our own.
    done(unsafe { cu::cuDeviceGetAttribute(&mut value, attribute, ordinal) })?;
    Ok(value)
}

/// HIP's numbers, with CUDA's for the same.
const SAME: &[(u32, u32)] = &[
    (0, 32),  // corrected errors
    (2, 40),  // copy engines
    (3, 19),  // mapped host memory
    (4, 91),  // registered memory is at the host's address
    (5, 13),  // clock, kHz
    (6, 20),  // compute mode
    (8, 31),  // concurrent kernels
    (9, 89),  // managed memory beside the host
    (10, 95), // cooperative launch
    (12, 15), // overlap
    (16, 18), // integrated
    (19, 38), // second cache's bytes
    (24, 83), // managed memory
    (26, 2),  // a block's dimensions
    (27, 3),
    (28, 4),
    (29, 5), // a grid's dimensions
    (30, 6),
    (31, 7),
    (55, 1),
    (56, 1),  // threads of a block
    (57, 39), // threads of a multiprocessor
    (58, 11), // pitch
    (59, 37), // bus width
    (60, 36), // memory clock
    (63, 16), // multiprocessors
    (65, 88), // pageable memory
    (66, 100),
    (67, 33), // PCI bus, device, domain
    (68, 34),
    (69, 50),
    (71, 12), // registers of a block, of a multiprocessor
    (72, 82),
    (74, 8), // shared memory of a block, of one on request, of a multiprocessor
    (75, 97),
    (76, 81),
    (78, 78),  // priorities
    (83, 9),   // constant memory
    (85, 41),  // unified addresses
    (88, 115), // pools
    (10015, 16),
];

/// Has its number from 5.3 on.
const VIRTUAL_MEMORY: u32 = 89;

fn attribute(id: u32, ordinal: c_int) -> Result<c_int> {
    let settings = settings::lock().clone();
    if let Some((_, cuda)) = SAME.iter().find(|(hip, _)| *hip == id) {
        return by_cuda(*cuda, ordinal);
    }
    match id {
        23 => Ok(settings.target.capability().0),
        61 => Ok(settings.target.capability().1),
        // Lanes of a wavefront: zero is what the architecture says.
        87 => Ok(match by_cuda(10, ordinal)? {
            0 => settings.target.wavefront(),
            lanes => lanes,
        }),
        VIRTUAL_MEMORY if settings.version.is_at_least(5, 3) => by_cuda(102, ordinal),
        // In bytes, cut to what an int holds.
        84 => {
            let mut bytes = 0;
            done(unsafe { cu::cuDeviceTotalMem_v2(&mut bytes, ordinal) })?;
            Ok(c_int::try_from(bytes).unwrap_or(c_int::MAX))
        }
        // The name, which was never an int, and what is only in a structure.
        64 | 86 => Err(Status::INVALID_VALUE),
        // Fine-grained memory, a large bar.
        10011 | 10016 => Ok(1),
        0..=88 | 10000..=10016 => Ok(0),
        _ => Err(Status::INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDeviceGetAttribute(value: *mut c_int, id: u32, ordinal: c_int) -> u32 {
    enter("hipDeviceGetAttribute", || unsafe { write(value, attribute(id, valid(ordinal)?)?) })
}

/// Where a structure has what is written; the rest is zero.
struct Layout {
    bytes: usize,
    total: usize,
    warp: usize,
    multiprocessors: usize,
    pci_bus: usize,
    architecture: usize,
}

/// `hipDeviceProp_t` of 5, which `hipGetDeviceProperties` writes in every version.
const R0000: Layout =
    Layout { bytes: 792, total: 256, warp: 276, multiprocessors: 336, pci_bus: 368, architecture: 396 };

/// `hipDeviceProp_t` of 6 and on.
const R0600: Layout =
    Layout { bytes: 1472, total: 288, warp: 308, multiprocessors: 388, pci_bus: 584, architecture: 1160 };

/// A structure's names are this long.
const NAME: c_int = 256;

unsafe fn properties(place: *mut u8, ordinal: c_int, layout: &Layout) -> Result<()> {
    // Not a device: a value, as the runtime has it.
    let ordinal = valid(ordinal)?;
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    let architecture = {
        let settings = settings::lock();
        settings.target.full_name(settings.xnack)
    };
    let mut total = 0_usize;
    // SAFETY: the caller has room for the structure, and each field is inside of it.
    unsafe {
        place.write_bytes(0, layout.bytes);
        done(cu::cuDeviceGetName(place.cast(), NAME, ordinal))?;
        done(cu::cuDeviceTotalMem_v2(&mut total, ordinal))?;
        write(place.add(layout.total).cast(), total)?;
        write(place.add(layout.warp).cast(), attribute(87, ordinal)?)?;
        write(place.add(layout.multiprocessors).cast(), attribute(63, ordinal)?)?;
        write(place.add(layout.pci_bus).cast(), attribute(67, ordinal)?)?;
        write_text(place.add(layout.architecture).cast::<c_char>(), NAME, &architecture)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDeviceProperties(place: *mut u8, ordinal: c_int) -> u32 {
    enter("hipGetDeviceProperties", || unsafe { properties(place, ordinal, &R0000) })
}

#[cfg_attr(any(feature = "hip-6-4", feature = "hip-7-2"), unsafe(no_mangle))]
pub unsafe extern "C" fn hipGetDevicePropertiesR0600(place: *mut u8, ordinal: c_int) -> u32 {
    enter("hipGetDevicePropertiesR0600", || unsafe { properties(place, ordinal, &R0600) })
}
