//! What an output and its view carry of their call: its generation, and whether a device knows their address.

/// A generation has fewer bits than a word, of which the last is left for the device.
const ON_DEVICE: u64 = 1 << 63;

/// The stamp of an output or a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    #[inline]
    pub(crate) fn new(generation: u64) -> Self {
        debug_assert_eq!(generation & ON_DEVICE, 0);
        Self(generation)
    }

    #[inline]
    pub(crate) fn generation(self) -> u64 {
        self.0 & !ON_DEVICE
    }

    /// Whether somebody took the device pointer.
    #[inline]
    pub(crate) fn is_on_device(self) -> bool {
        self.0 & ON_DEVICE != 0
    }

    #[inline]
    pub(crate) fn on_device(self) -> Self {
        Self(self.0 | ON_DEVICE)
    }

    /// The stamp of another generation, known to a device as this one is.
    #[cfg_attr(not(gpu), allow(dead_code, reason = "only a device captures"))]
    pub(crate) fn at(self, generation: u64) -> Self {
        Self(generation | self.0 & ON_DEVICE)
    }
}
