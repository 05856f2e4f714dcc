//! Finding a driver's library, and its functions in it, without ever linking it.

use std::ffi::{CString, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::backend::Vendor;
use crate::error::{Error, Result};

/// Where to look for a driver.
pub(crate) struct Names {
    pub(crate) vendor: Vendor,
    /// An environment variable that holds an explicit path. Where it is set, nothing else is tried.
    pub(crate) path_variable: &'static str,
    /// File names and paths, in the order in which they are tried.
    pub(crate) candidates: &'static [&'static str],
    /// Whether a library that the process has loaded before is taken first.
    pub(crate) prefers_loaded: bool,
    /// Environment variables that hold the folder of an installation, which is tried last.
    pub(crate) root_variables: &'static [&'static str],
    /// Where the library is in such a folder.
    pub(crate) in_roots: &'static str,
}

impl Names {
    /// Whether the user has named a path, beside which nothing else counts.
    #[cfg(feature = "rocm")]
    pub(crate) fn is_explicit(&self) -> bool {
        self.paths().1
    }

    /// What is tried, and whether it is an explicit path.
    fn paths(&self) -> (Vec<PathBuf>, bool) {
        let value = |name| std::env::var_os(name).filter(|path: &OsString| !path.is_empty());
        if let Some(path) = value(self.path_variable) {
            return (vec![PathBuf::from(path)], true);
        }
        let roots = self.root_variables.iter().filter_map(|&name| value(name));
        let in_roots = roots.map(|root| PathBuf::from(root).join(self.in_roots));
        (self.candidates.iter().map(PathBuf::from).chain(in_roots).collect(), false)
    }
}

/// A driver's library. It stays open until the process ends: a driver has threads and handlers of its own.
#[derive(Debug)]
pub(crate) struct Library {
    handle: &'static libloading::Library,
    vendor: Vendor,
    /// The name that it was found under.
    pub(crate) name: String,
}

impl Library {
    /// Opens the first that is there.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`], with every name that was tried and what came of it.
    pub(crate) fn open(names: &Names) -> Result<Self> {
        let vendor = names.vendor;
        let (paths, is_explicit) = names.paths();
        let mut tried = Vec::new();
        if names.prefers_loaded && !is_explicit {
            let found = paths.iter().find_map(|path| Some((already_loaded(path)?, path)));
            if let Some((library, path)) = found {
                return Ok(Self::keep(library, vendor, path));
            }
        }
        for path in paths {
            // SAFETY: opening a library runs its initialisers. These are the vendor's driver, which any program that
            // uses the device opens, or the file that the user named for one.
            match unsafe { libloading::Library::new(path.as_os_str()) } {
                Ok(library) => return Ok(Self::keep(library, vendor, &path)),
                Err(error) => tried.push(format!("{} ({})", path.display(), reason(&error))),
            }
        }
        let from = if is_explicit { format!(", as {} says", names.path_variable) } else { String::new() };
        Err(Error::Unavailable {
            vendor,
            detail: format!("no driver library{from}: tried {}", tried.join(", ")),
        })
    }

    fn keep(library: libloading::Library, vendor: Vendor, path: &Path) -> Self {
        Self { handle: Box::leak(Box::new(library)), vendor, name: path.display().to_string() }
    }

    /// This vendor's own of a function's names: NVIDIA's comes first. A function of one vendor alone has one name.
    pub(crate) fn own_name(&self, names: &[&'static str]) -> &'static str {
        let (first, last) = (names.first(), names.last());
        let name = if self.vendor == Vendor::Cuda { first } else { last };
        name.copied().unwrap_or_default()
    }

    /// The function of that name, if the library has it.
    ///
    /// # Safety
    ///
    /// `F` is the type of a pointer to a function of the driver's declaration of that name.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &'static str) -> Option<F> {
        let symbol = CString::new(name).ok()?;
        // SAFETY: the caller vouches for the type; the library is never closed.
        unsafe { self.handle.get::<F>(symbol.as_bytes_with_nul()) }.ok().map(|function| *function)
    }

    /// The error for a function that an older driver lacks.
    pub(crate) fn lacks(&self, name: &'static str) -> Error {
        let (vendor, library) = (self.vendor, &self.name);
        Error::Unavailable { vendor, detail: format!("the driver {library} is too old: it lacks {name}") }
    }
}

/// A library that the process has, by its file's or its own name.
fn already_loaded(path: &Path) -> Option<libloading::Library> {
    #[cfg(target_os = "linux")]
    {
        use libloading::os::unix::{Library, RTLD_NOW};
        // SAFETY: nothing is loaded, so that no initialiser runs.
        let library = unsafe { Library::open(Some(path.as_os_str()), RTLD_NOW | libc::RTLD_NOLOAD) };
        library.ok().map(Into::into)
    }
    #[cfg(windows)]
    {
        libloading::os::windows::Library::open_already_loaded(path.as_os_str()).ok().map(Into::into)
    }
    #[cfg(not(any(target_os = "linux", windows)))]
    {
        let _ = path;
        None
    }
}

/// The loader's own words, where it has any.
fn reason(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

static FORKED: AtomicBool = AtomicBool::new(false);

/// Notes from now on when this process is a fork's child. No driver works there, and what one answers then differs by
/// version: from an error to a wait without end.
pub(crate) fn watch_forks() {
    #[cfg(unix)]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        extern "C" fn in_child() {
            FORKED.store(true, Ordering::Relaxed);
        }
        ONCE.call_once(|| {
            // SAFETY: the handler stores to an atomic, which any handler may do. Where there is no room for one more
            // handler, forks go unnoticed, and the driver answers for itself.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
    }
}

/// An error in the child of a fork that came after [`watch_forks`].
#[inline]
pub(crate) fn check_not_forked(vendor: Vendor) -> Result<()> {
    if FORKED.load(Ordering::Relaxed) { Err(forked(vendor)) } else { Ok(()) }
}

#[cold]
fn forked(vendor: Vendor) -> Error {
    let detail =
        "the driver was loaded before this process was forked, and does not work in the child".into();
    Error::Unavailable { vendor, detail }
}
