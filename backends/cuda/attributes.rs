//! What is asked of a pointer, in one query: one attribute that a driver does not know fails them all.

use std::ffi::c_uint;

use cudarc::driver::sys::CUpointer_attribute as Attribute;

/// The attributes that every driver has which the crate runs on.
const ALWAYS: [Attribute; 7] = [
    Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
    Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
    Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    Attribute::CU_POINTER_ATTRIBUTE_CONTEXT,
    Attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID,
    Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
    Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
];

/// Pools came with this version, and the attribute that tells their memory.
const POOLS_SINCE: u32 = 11_030;

pub(super) const MOST: usize = ALWAYS.len() + 1;

/// The attributes to ask for.
#[derive(Debug)]
pub(super) struct Attributes {
    ids: [c_uint; MOST],
    count: usize,
}

impl Attributes {
    pub(super) fn known_to(version: u32) -> Self {
        let mut ids = [0; MOST];
        for (id, attribute) in ids.iter_mut().zip(ALWAYS) {
            *id = attribute as c_uint;
        }
        let mut count = ALWAYS.len();
        if version >= POOLS_SINCE
            && let Some(id) = ids.get_mut(count)
        {
            *id = Attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE as c_uint;
            count += 1;
        }
        Self { ids, count }
    }

    /// The identifiers, which the driver reads and nobody writes.
    #[inline]
    pub(super) fn ids(&self) -> *mut c_uint {
        self.ids.as_ptr().cast_mut()
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// The answers, in the order of the attributes. The driver writes from one byte to eight of each, and the rest stays
/// zero: on the little-endian machines that it runs on, a slot is the value.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Answers {
    memory_type: u64,
    is_managed: u64,
    ordinal: u64,
    context: u64,
    buffer_id: u64,
    start: u64,
    bytes: u64,
    pool: u64,
}

const _: () = assert!(size_of::<Answers>() == MOST * size_of::<u64>());

impl Answers {
    #[inline]
    pub(super) fn memory_type(&self) -> u32 {
        self.memory_type as u32
    }

    #[inline]
    pub(super) fn is_managed(&self) -> bool {
        self.is_managed != 0
    }

    /// The ordinal; none for the negative numbers that mean no device.
    #[inline]
    pub(super) fn ordinal(&self) -> Option<u32> {
        u32::try_from(self.ordinal as u32 as i32).ok()
    }

    #[inline]
    pub(super) fn context(&self) -> usize {
        self.context as usize
    }

    #[inline]
    pub(super) fn buffer_id(&self) -> Option<u64> {
        (self.buffer_id != 0).then_some(self.buffer_id)
    }

    #[inline]
    pub(super) fn range(&self) -> Option<(usize, usize)> {
        (self.bytes != 0).then_some((self.start as usize, self.bytes as usize))
    }

    #[inline]
    pub(super) fn is_pooled(&self) -> bool {
        self.pool != 0
    }
}
