//! Device-sized outputs: room that a kernel takes for itself, piece by piece.

use std::marker::PhantomData;
use std::ptr::NonNull;

use bytemuck::Pod;

use super::{Call, Output};
use crate::backend::{Backend, CopyRange, RoomReset};
use crate::error::{Error, Refused, Result, StaleReason};

/// The header in front of the room, as `include/device_arena.h` declares it, with the padding that keeps the room behind
/// it aligned.
const HEADER: usize = 256;

/// What every piece is rounded up to, unless a room asks for more.
const PIECE: usize = 16;

/// Room whose length the device decides: kernels take pieces of it by `device_arena_take` of the public header
/// `include/device_arena.h`, one atomic addition each.
///
/// Where a kernel asks for more than there is, nothing is written past the room, and [`collect`](Self::collect) says how
/// much it needed: [`regrow`](Self::regrow) makes a room of that size, and the kernel runs again from the start. The next
/// call of the arena has one block for all of it.
///
/// Pieces are in the order in which threads came, which differs from run to run.
#[derive(Debug)]
#[must_use = "a room that is dropped leaves nothing to be read"]
pub struct DeviceRoom<T: Pod> {
    /// Header and room, in one piece.
    bytes: Output<u8>,
    alignment: usize,
    _values: PhantomData<T>,
}

// SAFETY: a room offers addresses for a device's work alone, and its values only as an output.
unsafe impl<T: Pod + Send> Send for DeviceRoom<T> {}
// SAFETY: as above.
unsafe impl<T: Pod + Sync> Sync for DeviceRoom<T> {}

impl Call {
    /// Room for as many as `len` values, of which kernels take what they need: see [`DeviceRoom`]. Pieces are rounded up
    /// to 16 bytes. One launch makes the header; a call that asks for no such room launches nothing.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output); [`Error::HostMemory`] for host pages; [`Error::Driver`].
    pub fn device_room<T: Pod>(&self, len: usize) -> Result<DeviceRoom<T>> {
        self.device_room_aligned(len, PIECE.max(align_of::<T>()))
    }

    /// As [`device_room`](Self::device_room), with pieces rounded up to `alignment` bytes: to as little as the alignment of
    /// `T`, where the values are to be counted one by one.
    ///
    /// # Errors
    ///
    /// As [`device_room`](Self::device_room); [`Error::Alignment`] for what is no power of two between the alignment of
    /// `T` and 256.
    pub fn device_room_aligned<T: Pod>(&self, len: usize, alignment: usize) -> Result<DeviceRoom<T>> {
        if !alignment.is_power_of_two() || !(align_of::<T>()..=HEADER).contains(&alignment) {
            return Err(Error::Alignment { alignment: alignment.max(align_of::<T>()), largest: HEADER });
        }
        let overflow = || super::size_overflow::<T>("device_room", len);
        let bytes = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(HEADER));
        // No room for host pages is to be taken for nothing.
        super::check_device(self.core(), "device_room")?;
        let mut bytes = self.output::<u8>(bytes.ok_or_else(overflow)?)?;
        bytes.device_ptr()?;
        let room = DeviceRoom { bytes, alignment, _values: PhantomData };
        match room.reset() {
            Ok(()) => Ok(room),
            Err(error) => {
                self.give_back(room.bytes);
                Err(error)
            }
        }
    }
}

impl<T: Pod> DeviceRoom<T> {
    fn header(&self) -> NonNull<u8> {
        self.bytes.address()
    }

    fn base(&self) -> NonNull<T> {
        // SAFETY: the output is a header longer than the room.
        unsafe { self.header().add(HEADER) }.cast()
    }

    /// The address of the `device_arena_room`, for kernels on the executor's stream.
    #[must_use]
    pub fn device_ptr(&mut self) -> *mut u8 {
        self.header().as_ptr()
    }

    /// The address of the room itself.
    #[must_use]
    pub fn base_device_ptr(&mut self) -> *mut T {
        self.base().as_ptr()
    }

    /// How many values there is room for; none of a type without size.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity_bytes().checked_div(size_of::<T>()).unwrap_or(0)
    }

    fn capacity_bytes(&self) -> usize {
        self.bytes.len() - HEADER
    }

    /// Makes the whole room free again, in the stream's order: for a kernel that runs once more.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`]; [`Error::Capturing`] while the stream is being captured for anything but this very call.
    pub fn reset(&self) -> Result<()> {
        let reset = RoomReset {
            room: self.header().as_ptr(),
            base: self.base().as_ptr().cast(),
            capacity: self.capacity_bytes() as u64,
            alignment: self.alignment as u64,
            generation: self.bytes.hold().generation(),
        };
        let hold = self.bytes.hold();
        let (core, stream) = (hold.core(), hold.stream());
        hold.check_capture("device_room")?;
        // SAFETY: header and room are of the running call, and work that uses them is in the stream.
        unsafe { core.source.backend.rewind(stream, Some(&reset), &[]) }?;
        self.bytes.note_queued();
        Ok(())
    }

    /// Waits for the stream and reads what the kernels have asked for so far, in bytes. Past the room's size it is what
    /// they needed.
    ///
    /// # Errors
    ///
    /// What the driver says, the errors of queued work among it; [`Error::Capturing`].
    pub fn taken_bytes(&self) -> Result<u64> {
        let mut cursor = 0u64;
        let (destination, source) = ((&raw mut cursor).cast(), self.header().as_ptr().cast_const());
        // SAFETY: the header's first field is the cursor; both ends are live until this returns.
        unsafe { self.bytes.hold().transfer(CopyRange { destination, source, bytes: size_of::<u64>() }) }?;
        Ok(cursor)
    }

    /// Waits for the stream, and makes an output of what the kernels took: from the room's start, the gaps between
    /// pieces included. Whole values of `T` are counted, so that with pieces of 16 bytes there can be more of a smaller
    /// type than were asked for: [`device_room_aligned`](Call::device_room_aligned) counts them exactly.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] where they asked for more than there is, with what they needed; what the driver says. The
    /// room comes back with it.
    pub fn collect(self) -> Result<Output<T>, Refused<Self>> {
        let capacity = self.capacity_bytes() as u64;
        let needed = match self.taken_bytes() {
            Ok(taken) if taken <= capacity => taken,
            Ok(needed) => {
                return Err(Refused::new(Error::Overflow { operation: "collect", needed, capacity }, self));
            }
            Err(error) => return Err(Refused::new(error, self)),
        };
        let len = usize::try_from(needed).unwrap_or(0).checked_div(size_of::<T>()).unwrap_or(0);
        let base = self.base();
        Ok(self.bytes.into_part(base, len))
    }

    /// A larger room of the same call in the place of this one, for a kernel that runs again: for as many bytes as
    /// [`Error::Overflow`] named. What this one held stays taken until the arena is rewound.
    ///
    /// # Errors
    ///
    /// As [`Call::device_room`], and this room with it; [`Error::Stale`] for another call.
    pub fn regrow(self, call: &Call, needed: u64) -> Result<Self, Refused<Self>> {
        if !self.bytes.is_of(call) {
            let (generation, reason) = (self.bytes.hold().generation(), StaleReason::Rewound);
            return Err(Refused::new(Error::Stale { generation, reason }, self));
        }
        let len = usize::try_from(needed).map(|bytes| bytes.div_ceil(size_of::<T>().max(1)));
        let len = len.unwrap_or(usize::MAX).max(self.capacity());
        call.device_room_aligned(len, self.alignment).map_err(|error| Refused::new(error, self))
    }
}
