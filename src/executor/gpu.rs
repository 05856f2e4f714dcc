//! What an executor of a GPU offers beside calls: its context, and kernels of the user's own.

#[cfg(gpu)]
mod capture;
#[cfg(gpu)]
mod kernel;

#[cfg(gpu)]
pub use self::capture::{Captured, CapturedViews};
#[cfg(gpu)]
pub use self::kernel::{Kernel, LaunchArguments, LaunchShape};
use super::Executor;
#[cfg(gpu)]
use crate::backend::StreamKind;
use crate::error::Result;
#[cfg(gpu)]
use crate::pointer::MemoryKind;
use crate::pointer::PointerInfo;

impl Executor {
    /// Whether kernels here reach memory where it is, without a fault for each page.
    pub(crate) fn reaches(&self, pointer: *const u8, info: &PointerInfo) -> Result<bool> {
        #[cfg(gpu)]
        if let StreamKind::Gpu(stream) = &self.as_stream().0 {
            let device = stream.device();
            let is_of_vendor = info.is_of(self.vendor());
            return match info.kind {
                // Memory of no context is mapped on the device for all of them.
                MemoryKind::Device { ordinal } => Ok(is_of_vendor
                    && ordinal == self.ordinal()
                    && (info.context == 0 || info.context == device.context().addr())),
                MemoryKind::Managed { .. } => Ok(is_of_vendor),
                MemoryKind::PinnedHost => Ok(is_of_vendor && device.shares_address(pointer)?),
                // Where each page faults, kernels that read it twice would pay twice.
                MemoryKind::Unregistered => Ok(device.info.shares_page_tables),
                MemoryKind::Unmapped => Ok(false),
            };
        }
        let _ = pointer;
        Ok(info.is_host_accessible())
    }

    /// The context that the executor works in.
    #[cfg(feature = "cudarc")]
    pub(crate) fn context(&self) -> Option<*mut std::ffi::c_void> {
        match &self.as_stream().0 {
            StreamKind::Gpu(stream) => Some(stream.device().context()),
            StreamKind::Host(_) => None,
        }
    }

    /// How many bytes the executor's device has free, where that can be said.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn free_bytes(&self) -> Result<Option<u64>> {
        #[cfg(gpu)]
        if let StreamKind::Gpu(stream) = &self.as_stream().0 {
            return stream.device().memory().map(|(free, _)| Some(free));
        }
        Ok(crate::backends::host::free_bytes())
    }

    /// Makes sure that kernels here reach the memory of `other`'s device, by peer access where they are two. Nothing has to
    /// be done on one device, and on the host.
    ///
    /// # Errors
    ///
    /// [`Error::Unreachable`](crate::Error::Unreachable) where the machine has no way between them;
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn reach(&self, other: &Self) -> Result<()> {
        #[cfg(gpu)]
        if let (StreamKind::Gpu(stream), StreamKind::Gpu(peer)) = (&self.as_stream().0, &other.as_stream().0)
        {
            return stream.device().reach(peer.device());
        }
        let _ = other;
        Ok(())
    }

    /// Runs `work` with the executor's context current on this thread, for launches and libraries of the user's own, and
    /// makes current afterwards what was so before, by a panic too. On the host it just runs. HIP's last error is the work's own
    /// afterwards from HIP 7 on; before, making a device current takes it away.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`](crate::Error::Driver), and in a forked child
    /// [`Error::Unavailable`](crate::Error::Unavailable); `work` has not run then.
    pub fn with_current<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        #[cfg(gpu)]
        if let StreamKind::Gpu(stream) = &self.as_stream().0 {
            let _current = stream.device().enter_for_others("with_current")?;
            return Ok(work());
        }
        Ok(work())
    }
}
