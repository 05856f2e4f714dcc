//! A vendor's driver, looked for once in a process and never again.

use std::sync::OnceLock;

use super::Gpu;
use super::driver::{self, Driver, status};
use super::library::Library;
use crate::backend::Vendor;
use crate::error::{Error, Result};

/// Why there is no driver.
#[derive(Debug)]
pub(crate) struct Missing {
    error: Error,
    /// There is no library, or it finds no device: nothing that a user would have to mend.
    is_absent: bool,
    /// A library that was opened stays open.
    _library: Option<Library>,
}

impl Missing {
    pub(crate) fn library(error: Error) -> Self {
        Self { error, is_absent: true, _library: None }
    }

    /// A library that can't be used.
    pub(crate) fn unusable(error: Error, library: Library) -> Self {
        Self { error, is_absent: false, _library: Some(library) }
    }

    /// What a status of `operation`, which is not zero, says of the whole driver.
    pub(crate) fn by_status(
        vendor: Vendor,
        operation: &'static str,
        (code, name): (u32, &'static str),
        library: Library,
    ) -> Self {
        match code {
            status::NO_DEVICE | status::INVALID_DEVICE | status::STUB_LIBRARY => {
                let answer = format!(": {operation} answers {code} ({name})");
                Self::device(vendor, &answer, library)
            }
            code => {
                let code = i64::from(code);
                Self::unusable(Error::Driver { vendor, operation, code, name }, library)
            }
        }
    }

    pub(crate) fn device(vendor: Vendor, answer: &str, library: Library) -> Self {
        let detail = format!("{} finds no device{answer}", library.name);
        Self { error: Error::Unavailable { vendor, detail }, is_absent: true, _library: Some(library) }
    }
}

/// Where the outcome of looking for a driver is kept.
pub(crate) struct Search<D> {
    outcome: OnceLock<Result<D, Missing>>,
    find: fn() -> Result<D, Missing>,
}

impl<D: Driver> Search<D> {
    pub(crate) const fn new(find: fn() -> Result<D, Missing>) -> Self {
        Self { outcome: OnceLock::new(), find }
    }

    fn outcome(&'static self) -> Result<&'static D, &'static Missing> {
        self.outcome.get_or_init(self.find).as_ref()
    }

    pub(crate) fn load(&'static self) -> Result<Gpu<D>> {
        match self.outcome() {
            Ok(driver) => {
                driver::check_callable(driver, "load")?;
                Ok(Gpu(driver))
            }
            Err(missing) => Err(missing.error.clone()),
        }
    }

    /// None where there is no library, or no device.
    #[inline]
    pub(crate) fn if_present(&'static self) -> Result<Option<Gpu<D>>> {
        match self.outcome.get() {
            Some(Ok(driver)) => Ok(Some(Gpu(driver))),
            _ => self.find_if_present(),
        }
    }

    #[cold]
    fn find_if_present(&'static self) -> Result<Option<Gpu<D>>> {
        match self.outcome() {
            Err(missing) if missing.is_absent => Ok(None),
            _ => self.load().map(Some),
        }
    }
}
