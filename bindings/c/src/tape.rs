//! Tapes: many variable-length inputs in one buffer.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use arenas::{MemoryKind, Offset, TapeView};

use crate::border::{Answer, Refusal, cross, handle_out, needed};
use crate::library::{Library, device_arena_library_t, library_of};
use crate::raw;
use crate::status::{device_arena_error_t, device_arena_status_t};
use crate::table::{get, insert, object, remove};

/// A checked look at a tape: item `i` is the bytes from offset `i` to offset `i + 1`. It owns neither.
pub type device_arena_tape_t = u64;

/// How wide offsets are.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum device_arena_offsets_t {
    /// `uint32_t`.
    DEVICE_ARENA_OFFSETS_U32 = 0,
    /// `uint64_t`.
    DEVICE_ARENA_OFFSETS_U64 = 1,
    /// `int32_t`, as Arrow's strings have them.
    DEVICE_ARENA_OFFSETS_I32 = 2,
    /// `int64_t`, as Arrow's large strings have them.
    DEVICE_ARENA_OFFSETS_I64 = 3,
}

/// The class of memory behind a pointer.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum device_arena_memory_t {
    /// No driver claims it: pageable host memory, and also freed pointers and ones past an end.
    DEVICE_ARENA_MEMORY_UNREGISTERED = 0,
    /// Host pages that a driver has pinned or registered.
    DEVICE_ARENA_MEMORY_PINNED_HOST = 1,
    /// Memory of one device, or an address that a device alone has for host pages.
    DEVICE_ARENA_MEMORY_DEVICE = 2,
    /// Memory that the driver moves between host and device.
    DEVICE_ARENA_MEMORY_MANAGED = 3,
    /// Addresses that a driver has reserved and mapped nothing to.
    DEVICE_ARENA_MEMORY_UNMAPPED = 4,
}

impl device_arena_memory_t {
    pub(crate) fn of(kind: MemoryKind) -> Answer<Self> {
        match kind {
            MemoryKind::Unregistered => Ok(Self::DEVICE_ARENA_MEMORY_UNREGISTERED),
            MemoryKind::PinnedHost => Ok(Self::DEVICE_ARENA_MEMORY_PINNED_HOST),
            MemoryKind::Device { .. } => Ok(Self::DEVICE_ARENA_MEMORY_DEVICE),
            MemoryKind::Managed { .. } => Ok(Self::DEVICE_ARENA_MEMORY_MANAGED),
            MemoryKind::Unmapped => Ok(Self::DEVICE_ARENA_MEMORY_UNMAPPED),
            _ => Err(Refusal::invalid("memory of a class that this ABI has no number for")),
        }
    }
}

pub(crate) struct TapeObject {
    /// The caller keeps what it looks at: see the functions that make one.
    pub(crate) tape: TapeView<'static>,
    _library: Arc<Library>,
}
object!(TapeObject, Tape);

/// Memory of a tape, as C hands it in.
#[derive(Clone, Copy)]
struct Parts {
    bytes: *const c_void,
    byte_count: u64,
    offsets: *const c_void,
    offset_count: u64,
    is_span: bool,
}

impl Parts {
    /// # Safety
    ///
    /// As the functions that make a tape.
    unsafe fn tape(self, offset_type: i32) -> Answer<TapeView<'static>> {
        use device_arena_offsets_t::*;
        // SAFETY: the caller's promise is the same, of each of these.
        unsafe {
            match offset_type {
                _ if offset_type == DEVICE_ARENA_OFFSETS_U32 as i32 => self.of::<u32>(),
                _ if offset_type == DEVICE_ARENA_OFFSETS_U64 as i32 => self.of::<u64>(),
                _ if offset_type == DEVICE_ARENA_OFFSETS_I32 as i32 => self.of::<i32>(),
                _ if offset_type == DEVICE_ARENA_OFFSETS_I64 as i32 => self.of::<i64>(),
                _ => Err(Refusal::invalid(format!("there are no offsets of number {offset_type}"))),
            }
        }
    }

    /// # Safety
    ///
    /// As the functions that make a tape.
    unsafe fn of<O: Offset>(self) -> Answer<TapeView<'static>> {
        let offsets: *const O = self.offsets.cast();
        if self.is_span {
            // SAFETY: the caller lends both until the tape is freed.
            let bytes = unsafe { raw::bytes("bytes", self.bytes, self.byte_count) }?;
            // SAFETY: as above.
            let offsets = unsafe { raw::values("offsets", offsets, self.offset_count) }?;
            return Ok(TapeView::of(bytes, offsets)?);
        }
        let byte_count = raw::len::<u8>("bytes", self.byte_count)?;
        let offset_count = raw::len::<O>("offsets", self.offset_count)?;
        // SAFETY: as above.
        Ok(unsafe { TapeView::from_raw(self.bytes.cast(), byte_count, offsets, offset_count) }?)
    }
}

/// # Safety
///
/// As the functions that make a tape.
unsafe fn make(
    out: Option<&mut MaybeUninit<device_arena_tape_t>>,
    library: device_arena_library_t,
    parts: Parts,
    offset_type: i32,
) -> Answer {
    let out = handle_out("tape", out)?;
    let library = library_of(library)?;
    // SAFETY: the caller's promise is the same.
    let tape = unsafe { parts.tape(offset_type) }?;
    out.write(insert(TapeObject { tape, _library: library })?);
    Ok(())
}

/// A tape over the host's memory; no driver is asked. `offset_type` is a `device_arena_offsets_t`. There is one more offset
/// than there are items, or none for no items; they never decrease, none is negative, and the last lies within the bytes: or
/// else INVALID_ARGUMENT, and a message that names the first that is wrong.
///
/// # Safety
///
/// `bytes` and `offsets` are to as many bytes and offsets, or null for none; both live, and nobody writes them, until the
/// tape is freed and work that reads it has passed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_tape_of_span(
    tape: Option<&mut MaybeUninit<device_arena_tape_t>>,
    library: device_arena_library_t,
    bytes: *const c_void,
    byte_count: u64,
    offsets: *const c_void,
    offset_count: u64,
    offset_type: i32,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    let parts = Parts { bytes, byte_count, offsets, offset_count, is_span: true };
    // SAFETY: the caller's promise is the same.
    cross(error, || unsafe { make(tape, library, parts, offset_type) })
}

/// A tape over any memory: the drivers are asked what the pointers are. The bytes may be a device's; offsets have to be the
/// host's to read, and are DEVICE else. As `device_arena_tape_of_span` otherwise.
///
/// # Safety
///
/// As `device_arena_tape_of_span`. For memory that no driver claims, nobody but the caller can vouch for that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn device_arena_tape_of_pointer(
    tape: Option<&mut MaybeUninit<device_arena_tape_t>>,
    library: device_arena_library_t,
    bytes: *const c_void,
    byte_count: u64,
    offsets: *const c_void,
    offset_count: u64,
    offset_type: i32,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    let parts = Parts { bytes, byte_count, offsets, offset_count, is_span: false };
    // SAFETY: the caller's promise is the same.
    cross(error, || unsafe { make(tape, library, parts, offset_type) })
}

/// What a tape says of itself.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct device_arena_tape_description_t {
    /// How many items there are.
    pub items: u64,
    /// How many bytes there are, those that no item covers included.
    pub bytes: u64,
    /// What the bytes' memory is. A span that no driver was asked about is unregistered.
    pub memory: device_arena_memory_t,
    /// The ordinal of the bytes' device; -1 for the host's memory.
    pub device: i32,
}

/// Describes a tape.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_tape_describe(
    tape: device_arena_tape_t,
    description_out: Option<&mut MaybeUninit<device_arena_tape_description_t>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let out = needed("description_out", description_out)?;
        let tape = &get::<TapeObject>(tape)?.tape;
        let device = match tape.memory() {
            MemoryKind::Device { ordinal } => i32::try_from(ordinal).unwrap_or(i32::MAX),
            _ => -1,
        };
        out.write(device_arena_tape_description_t {
            items: tape.len() as u64,
            bytes: tape.byte_len() as u64,
            memory: device_arena_memory_t::of(tape.memory())?,
            device,
        });
        Ok(())
    })
}

/// An item's address and size. DEVICE where its bytes are a device's; INVALID_ARGUMENT beyond the last.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_tape_item(
    tape: device_arena_tape_t,
    index: u64,
    data_out: Option<&mut MaybeUninit<*const c_void>>,
    bytes_out: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || {
        let (data_out, bytes_out) = (needed("data_out", data_out)?, needed("bytes_out", bytes_out)?);
        let item = get::<TapeObject>(tape)?.tape.get(usize::try_from(index).unwrap_or(usize::MAX))?;
        data_out.write(raw::const_address_of(item));
        bytes_out.write(item.len() as u64);
        Ok(())
    })
}

/// Lets a tape go. Its memory is the caller's.
#[unsafe(no_mangle)]
pub extern "C" fn device_arena_tape_free(
    tape: device_arena_tape_t,
    error: Option<&mut MaybeUninit<device_arena_error_t>>,
) -> device_arena_status_t {
    cross(error, || remove::<TapeObject>(tape).map(drop))
}
