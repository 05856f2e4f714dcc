//! What `hip-sys` has no declaration of, as AMD's headers declare it. A name that `hip-sys` has after all does not compile,
//! and neither does one that is an entry of no table.

/// Declares functions for [`crate::hip`]. They are there to be compared with, and nobody can call them.
macro_rules! lacking {
    ($( $name:ident($($argument:ident: $type:ty),*); )*) => {
        pub const NAMES: &[&str] = &[$( stringify!($name) ),*];

        pub mod functions {
            use std::ffi::{c_int, c_void};

            $(
                /// # Safety
                ///
                /// It has no body to run.
                #[allow(non_snake_case, reason = "HIP's own name")]
                pub unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
                    unreachable!("{:?}", ($($argument,)*))
                }
            )*
        }

        $(
            $crate::lacks!($name);
            const _: () = assert!(
                $crate::layout::has(&$crate::TABLES, stringify!($name)),
                concat!(stringify!($name), " is an entry of no table")
            );
        )*
    };
}

/// Holds that `hip-sys` has no such function.
#[macro_export]
macro_rules! lacks {
    ($name:ident) => {
        #[allow(non_upper_case_globals, unused_imports, reason = "a name of HIP's, if it is one")]
        const _: () = {
            struct Nobodys;
            const $name: Nobodys = Nobodys;
            {
                // The nearer of the two is meant.
                use $crate::hip_sys::hiprt::*;
                let _: Nobodys = $name;
            }
        };
    };
}

lacking! {
    hipGetDevicePropertiesR0600(properties: *mut c_void, device: c_int);
    hipStreamGetDevice(stream: *mut c_void, device: *mut c_int);
}
