//! The crate's tables of functions are its own declarations of a driver that it does not link. Here each of HIP's is
//! held against somebody else's: as many arguments, and each of the same size and alignment, and so the result. An entry
//! that differs does not compile, and neither does one that nobody else declares and that [`lacking`] does not name.

pub mod lacking;
pub mod layout;
mod values;

pub use {hip_sys, pastey};

/// HIP's functions by their names: those of `hip-sys`, and those that it lacks.
pub mod hip {
    pub use hip_sys::hiprt::*;

    pub use crate::lacking::functions::*;
}

/// The crate's own files, where they say `super`, and this package's macro for theirs.
#[path = "../../../backends"]
pub mod backends {
    pub mod gpu {
        pub mod table {
            pub(crate) use crate::table;
        }
        pub mod functions;
    }
    pub mod rocm {
        pub mod functions;
    }
}

/// Every entry's name.
pub const TABLES: [&[&str]; 3] = {
    use backends::{gpu, rocm};
    [gpu::functions::Table::NAMES, rocm::functions::FirstTable::NAMES, rocm::functions::OwnTable::NAMES]
};
