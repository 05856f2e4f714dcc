//! A device as its work sees it: the context, and the crate's own kernels in it.

use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::driver::{Before, Context, Driver, OutsideCaptures, call, check_callable, status};
use super::kernel::{Kernel, Module};
use super::stream::Capturer;
use crate::backend::DeviceInfo;
use crate::backends::kernels;
use crate::error::{Error, Result};

/// One device in one context.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) driver: &'static dyn Driver,
    pub(crate) info: DeviceInfo,
    pub(crate) limits: Limits,
    context: Context,
    kernels: OnceLock<Kernels>,
    /// Who captures each stream of the context, whoever adopted it how often.
    capturers: Mutex<Vec<(usize, Weak<Capturer>)>>,
    /// Whoever owns a context that is not the primary one, which lives as long as the process. The last field: it goes
    /// last.
    _owner: Option<KeepAlive>,
}

/// Something that is held for its drop.
pub(crate) type KeepAlive = Arc<Box<dyn Any + Send + Sync>>;

/// What launches are made to measure by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Threads of a block, at most.
    pub(crate) block_threads: u32,
    pub(crate) multiprocessors: u32,
}

impl Limits {
    /// Blocks of a launch whose blocks loop: enough to keep the memory busy. 32 for each multiprocessor, measured on an H200.
    pub(crate) fn looping_blocks(&self) -> u32 {
        self.multiprocessors.saturating_mul(32).max(1)
    }

    /// Blocks of a launch, at most: on AMD all its threads are fewer than 2^32.
    pub(crate) fn blocks_of(threads: u32) -> u32 {
        (u32::MAX / threads.max(1)).min(i32::MAX.cast_unsigned())
    }
}

/// What copies ranges that are cut into tiles of one size.
#[derive(Debug)]
pub(crate) struct CopyKernels {
    /// By lists in memory.
    pub(crate) of_lists: Kernel,
    /// By lists that travel with the launch.
    pub(crate) of_few: Kernel,
}

/// The crate's kernels.
#[derive(Debug)]
pub(crate) struct Kernels {
    pub(crate) copy: CopyKernels,
    pub(crate) copy_short: CopyKernels,
    pub(crate) copy_rows: Kernel,
    pub(crate) rewind: Kernel,
}

// SAFETY: a context belongs to no thread: it is made current where it is used.
unsafe impl Send for Device {}
// SAFETY: as above; the drivers' calls may be made from any thread at once.
unsafe impl Sync for Device {}

impl Device {
    /// # Safety
    ///
    /// The context is of that device, and lives as long as its owner does, or for good where there is none.
    pub(crate) unsafe fn new(
        driver: &'static dyn Driver,
        info: DeviceInfo,
        context: Context,
        owner: Option<KeepAlive>,
    ) -> Self {
        debug_assert!(!context.is_null());
        let at_least_one = |value: Option<u32>| value.unwrap_or(1).max(1);
        let limits = Limits {
            block_threads: at_least_one(info.block_threads),
            multiprocessors: at_least_one(info.multiprocessors),
        };
        Self {
            driver,
            info,
            limits,
            context,
            kernels: OnceLock::new(),
            capturers: Mutex::default(),
            _owner: owner,
        }
    }

    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// Makes the device current on this thread until the answer is dropped.
    ///
    /// # Errors
    ///
    /// In a forked child; on the thread that does a stream's host work; what the driver says.
    #[inline]
    pub(crate) fn enter(&self, operation: &'static str) -> Result<Entered<'_>> {
        check_callable(self.driver, operation)?;
        // SAFETY: the context lives as long as the device.
        let before = unsafe { self.driver.enter(self.context) }?;
        Ok(Entered { driver: self.driver, before, _thread: PhantomData })
    }

    /// As [`enter`](Self::enter), for other code than this crate's: whatever it makes current is undone as well.
    pub(crate) fn enter_for_others(&self, operation: &'static str) -> Result<Entered<'_>> {
        check_callable(self.driver, operation)?;
        // SAFETY: the context lives as long as the device.
        let before = unsafe { self.driver.push(self.context) }?;
        Ok(Entered { driver: self.driver, before: Some(before), _thread: PhantomData })
    }

    /// Who captures the stream of that handle: one answer for all that use it.
    pub(super) fn capturer(&self, stream: *mut c_void) -> Arc<Capturer> {
        let mut capturers = self.capturers.lock().unwrap_or_else(PoisonError::into_inner);
        capturers.retain(|(_, capturer)| capturer.strong_count() != 0);
        let known = capturers.iter().find(|(handle, _)| *handle == stream.addr());
        if let Some(capturer) = known.and_then(|(_, capturer)| capturer.upgrade()) {
            return capturer;
        }
        let capturer = Arc::default();
        capturers.push((stream.addr(), Arc::downgrade(&capturer)));
        capturer
    }

    /// The address by which the device knows pinned host pages. The device is current.
    pub(super) fn address_of(&self, pages: *const u8) -> Result<u64> {
        let mut address = 0;
        // SAFETY: the driver writes one address, where it knows the pages.
        unsafe { call!(self.driver, host_device_pointer(&raw mut address, pages.cast_mut().cast(), 0)) }?;
        Ok(address)
    }

    /// Whether the device knows pinned host pages by the host's own address.
    pub(crate) fn shares_address(&self, pages: *const u8) -> Result<bool> {
        let _current = self.enter("shares_address")?;
        Ok(self.address_of(pages).is_ok_and(|address| address == pages.addr() as u64))
    }

    /// Bytes free and in all.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        let _current = self.enter("memory")?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the driver writes both.
        unsafe { call!(self.driver, mem_get_info(&raw mut free, &raw mut total)) }?;
        Ok((free as u64, total as u64))
    }

    /// The crate's kernels, loaded once.
    pub(crate) fn kernels(&self) -> Result<&Kernels> {
        if let Some(kernels) = self.kernels.get() {
            return Ok(kernels);
        }
        let module = self.load_first()?;
        let kernel = |name| module.kernel(self, name);
        let loaded = Kernels {
            copy: CopyKernels { of_lists: kernel(kernels::COPY)?, of_few: kernel(kernels::COPY_FEW)? },
            copy_short: CopyKernels {
                of_lists: kernel(kernels::COPY_SHORT)?,
                of_few: kernel(kernels::COPY_FEW_SHORT)?,
            },
            copy_rows: kernel(kernels::COPY_ROWS)?,
            rewind: kernel(kernels::REWIND)?,
        };
        // Where another thread was first, its kernels are as good, and these are unloaded.
        Ok(self.kernels.get_or_init(|| loaded))
    }

    /// The first image that the driver takes: an older one refuses machine code that a newer compiler made. The error is
    /// that of the last.
    fn load_first(&self) -> Result<Module> {
        // Where nothing can be loaded, nothing is compiled.
        check_callable(self.driver, "load")?;
        let vendor = self.driver.vendor();
        let mut outcome = Err(Error::Unavailable {
            vendor,
            detail: format!("there is no kernel image for {}", self.info.architecture),
        });
        for image in self.driver.kernel_images(&self.info) {
            // SAFETY: the images are whole: they were held against their manifest when the crate was built.
            outcome = unsafe { Module::load(self, image) };
            match &outcome {
                Ok(_) => return outcome,
                // No other image would mend that.
                Err(Error::Driver { code, .. }) if *code == i64::from(status::OUT_OF_MEMORY) => {
                    return outcome;
                }
                Err(error) if error.is_of_lost_device() => return outcome,
                Err(_) => {}
            }
        }
        match self.driver.compile_kernels(&self.info) {
            // SAFETY: the compiler has just made it.
            Some(compiled) => unsafe { Module::load(self, &compiled?) },
            None => outcome,
        }
    }

    /// Makes sure that this device's kernels reach the memory of `other`.
    ///
    /// # Errors
    ///
    /// [`Error::Unreachable`] where the machine has no way between them.
    pub(crate) fn reach(&self, other: &Self) -> Result<()> {
        if self.context == other.context {
            return Ok(());
        }
        let (own, peer) = (self.info.ordinal, other.info.ordinal);
        let unreachable = || Error::Unreachable { operation: "reach", from: own, to: peer };
        if own == peer || self.driver.vendor() != other.driver.vendor() {
            // Two contexts of one device are two address spaces, which no peer access joins, and no driver knows another's.
            return Err(unreachable());
        }
        let (Ok(device), Ok(peer_device)) = (i32::try_from(own), i32::try_from(peer)) else {
            return Err(unreachable());
        };
        let _current = self.enter("reach")?;
        let _outside = OutsideCaptures::new(self.driver);
        let mut can = 0;
        // SAFETY: the driver writes the one value.
        unsafe { call!(self.driver, can_access_peer(&raw mut can, device, peer_device)) }?;
        if can == 0 {
            return Err(unreachable());
        }
        // SAFETY: both contexts are alive, and this device's is current.
        match unsafe { self.driver.enable_peer_access(other) } {
            Err(Error::Driver { code, .. }) if code == i64::from(status::PEER_ACCESS_ALREADY_ENABLED) => {
                Ok(())
            }
            outcome => outcome,
        }
    }
}

/// Keeps a device current on this thread.
pub(crate) struct Entered<'d> {
    driver: &'d dyn Driver,
    before: Option<Before>,
    /// What is current belongs to a thread.
    _thread: PhantomData<*mut c_void>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            self.driver.leave(before);
        }
    }
}
