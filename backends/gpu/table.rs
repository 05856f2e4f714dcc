//! Tables of a driver's functions. A status is a `u32`, not an enum: a code that this crate does not know would be undefined
//! behaviour in one.

/// A function of the driver, under the name that errors carry.
#[derive(Clone, Copy)]
pub(crate) struct Function<F> {
    pub(crate) name: &'static str,
    pub(crate) call: F,
}

/// Declares a table of functions, and how it is looked up. Of two names, the first is NVIDIA's and the second AMD's.
macro_rules! table {
    (
        $(#[$meta:meta])* $table:ident
        required { $( $field:ident = $($name:literal)|+ ($($argument:ty),* $(,)?); )* }
        optional { $( $spare:ident = $($spare_name:literal)|+ ($($spare_argument:ty),* $(,)?); )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub(crate) struct $table {
            $( pub(crate) $field:
                $crate::backends::gpu::table::Function<unsafe extern "C" fn($($argument),*) -> u32>, )*
            $( pub(crate) $spare:
                Option<$crate::backends::gpu::table::Function<unsafe extern "C" fn($($spare_argument),*) -> u32>>, )*
        }

        impl $table {
            /// # Errors
            ///
            /// [`Error::Unavailable`](crate::Error::Unavailable), with the name of the first that the library lacks.
            pub(crate) fn load(library: &$crate::backends::gpu::library::Library) -> crate::Result<Self> {
                Ok(Self {
                    $( $field: {
                        let name = library.own_name(&[$($name),+]);
                        // SAFETY: the type is that of the driver's declaration.
                        let call = unsafe { library.function(name) }.ok_or_else(|| library.lacks(name))?;
                        $crate::backends::gpu::table::Function { name, call }
                    }, )*
                    $( $spare: {
                        let name = library.own_name(&[$($spare_name),+]);
                        // SAFETY: as above.
                        let call = unsafe { library.function(name) };
                        call.map(|call| $crate::backends::gpu::table::Function { name, call })
                    }, )*
                })
            }
        }

        impl std::fmt::Debug for $table {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($table)).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use table;
