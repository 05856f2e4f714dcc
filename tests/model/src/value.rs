//! The types of the values that programs write, and the bytes that tell one output from every other.

use bytemuck::{Pod, Zeroable};

/// A type that a program can have outputs of.
pub(crate) trait Value: Pod + Send + Sync + std::fmt::Debug {}

/// Values that are aligned beyond most arenas.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(256))]
pub(crate) struct Wide([u8; 256]);

// SAFETY: an array of bytes with the size of its alignment has no padding, and any bytes are a value.
unsafe impl Zeroable for Wide {}
// SAFETY: as above.
unsafe impl Pod for Wide {}

/// Values that are aligned beyond every block of the host.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8192))]
pub(crate) struct Vast([u8; 8192]);

// SAFETY: an array of bytes with the size of its alignment has no padding, and any bytes are a value.
unsafe impl Zeroable for Vast {}
// SAFETY: as above.
unsafe impl Pod for Vast {}

impl Value for u8 {}
impl Value for [u8; 3] {}
impl Value for u32 {}
impl Value for u64 {}
impl Value for Wide {}
impl Value for Vast {}
impl Value for () {}

/// Runs `$body` with `$T` as the type that `$type` names.
macro_rules! with_type {
    ($type:expr, $T:ident => $body:expr) => {
        match $type {
            $crate::program::Type::Byte => {
                type $T = u8;
                $body
            }
            $crate::program::Type::Odd => {
                type $T = [u8; 3];
                $body
            }
            $crate::program::Type::Word => {
                type $T = u32;
                $body
            }
            $crate::program::Type::Long => {
                type $T = u64;
                $body
            }
            $crate::program::Type::Wide => {
                type $T = $crate::value::Wide;
                $body
            }
            $crate::program::Type::Vast => {
                type $T = $crate::value::Vast;
                $body
            }
            $crate::program::Type::Unit => {
                type $T = ();
                $body
            }
        }
    };
}
pub(crate) use with_type;

impl crate::program::Type {
    pub(crate) fn size(self) -> usize {
        with_type!(self, T => size_of::<T>())
    }

    pub(crate) fn align(self) -> usize {
        with_type!(self, T => align_of::<T>())
    }
}

/// The bytes of values; none for values of no size.
pub(crate) fn bytes_of<T: Value>(values: &[T]) -> &[u8] {
    if size_of::<T>() == 0 { &[] } else { bytemuck::cast_slice(values) }
}

/// The bytes of values, to be written.
pub(crate) fn bytes_of_mut<T: Value>(values: &mut [T]) -> &mut [u8] {
    if size_of::<T>() == 0 { &mut [] } else { bytemuck::cast_slice_mut(values) }
}

/// Byte `position` of what is written under `token`. Eight bytes in a row are of one token alone, to all
/// practical purposes.
fn byte(token: u64, position: usize) -> u8 {
    let mut mixed = token.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (position as u64 / 8);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)).to_le_bytes()[position % 8]
}

/// The bytes from `start` on that are written under `token`.
pub(crate) fn pattern(token: u64, start: usize, len: usize) -> Vec<u8> {
    (start..start + len).map(|position| byte(token, position)).collect()
}

/// What a device fills room of so many bytes with under `token`: one byte throughout, or two, of a half each.
pub(crate) fn fills(token: u64, len: usize) -> Vec<(std::ops::Range<usize>, u8)> {
    let value = byte(token, 0);
    if token.is_multiple_of(4) && len >= 2 {
        vec![(0..len / 2, value), (len / 2..len, !value)]
    } else {
        vec![(0..len, value)]
    }
}

/// The bytes of such a fill.
pub(crate) fn filled(token: u64, len: usize) -> Vec<u8> {
    let fills = fills(token, len).into_iter();
    fills.flat_map(|(range, value)| range.map(move |_| value)).collect()
}

/// The values whose bytes are `token`'s, from value `start` on.
pub(crate) fn values<T: Value>(token: u64, start: usize, len: usize) -> Vec<T> {
    let mut values = vec![T::zeroed(); len];
    bytes_of_mut(&mut values).copy_from_slice(&pattern(token, start * size_of::<T>(), len * size_of::<T>()));
    values
}
