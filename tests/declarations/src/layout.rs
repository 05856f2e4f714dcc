//! What is compared: how a function takes its arguments and gives its result.

/// Size and alignment in bytes.
pub type Layout = (usize, usize);

pub const fn of<T>() -> Layout {
    (size_of::<T>(), align_of::<T>())
}

/// A function as a caller sees it.
pub trait Signature: Copy {
    const ARGUMENTS: &'static [Layout];
    const RESULT: Layout;
}

macro_rules! signatures {
    ($($argument:ident)*) => {
        impl<R, $($argument),*> Signature for unsafe extern "C" fn($($argument),*) -> R {
            const ARGUMENTS: &'static [Layout] = &[$(of::<$argument>()),*];
            const RESULT: Layout = of::<R>();
        }
    };
}

signatures! {}
signatures! { A }
signatures! { A B }
signatures! { A B C }
signatures! { A B C D }
signatures! { A B C D E }
signatures! { A B C D E F }
signatures! { A B C D E F G }
signatures! { A B C D E F G H }
signatures! { A B C D E F G H I }
signatures! { A B C D E F G H I J }
signatures! { A B C D E F G H I J K }

pub const fn arguments<F: Signature>(_: F) -> &'static [Layout] {
    F::ARGUMENTS
}

pub const fn result<F: Signature>(_: F) -> Layout {
    F::RESULT
}

pub const fn same(one: Layout, other: Layout) -> bool {
    one.0 == other.0 && one.1 == other.1
}

/// Whether one of the tables has the name.
pub const fn has(tables: &[&[&str]], name: &str) -> bool {
    let mut at = 0;
    while at < tables.len() {
        let mut entry = 0;
        while entry < tables[at].len() {
            if is(tables[at][entry].as_bytes(), name.as_bytes()) {
                return true;
            }
            entry += 1;
        }
        at += 1;
    }
    false
}

const fn is(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Stands for a type that the compiler is to find.
#[macro_export]
macro_rules! any {
    ($argument:ty) => {
        _
    };
}

/// HIP's name of an entry: its only one, or the second.
#[macro_export]
macro_rules! own_name {
    ($hip:tt) => {
        $hip
    };
    ($cuda:tt $hip:tt) => {
        $hip
    };
}

/// Holds one entry against the declaration of that name.
#[macro_export]
macro_rules! entry {
    ($cuda:tt $hip:tt ($($argument:ty),*)) => {
        $crate::entry!($hip ($($argument),*));
    };
    ($hip:tt ($($argument:ty),*)) => {
        const _: () = {
            // Of another number of arguments, this is no cast.
            let theirs = $crate::pastey::paste!($crate::hip::[<$hip>]) as unsafe extern "C" fn($($crate::any!($argument)),*) -> _;
            let _arguments = $crate::layout::arguments(theirs);
            let mut _at = 0;
            $(
                assert!(
                    $crate::layout::same($crate::layout::of::<$argument>(), _arguments[_at]),
                    concat!($hip, ": the declaration has another size or alignment than ", stringify!($argument))
                );
                _at += 1;
            )*
            assert!(
                $crate::layout::same($crate::layout::of::<u32>(), $crate::layout::result(theirs)),
                concat!($hip, ": the declared result is no u32")
            );
        };
    };
}

/// What a file of functions calls: in place of the crate's macro of that name, which makes a table to look up.
#[macro_export]
macro_rules! table {
    (
        $(#[$meta:meta])* $table:ident
        required { $( $field:ident = $first:tt $(| $second:tt)? ($($argument:ty),* $(,)?); )* }
        optional { $( $spare:ident = $spare_first:tt $(| $spare_second:tt)? ($($spare_argument:ty),* $(,)?); )* }
    ) => {
        $(#[$meta])*
        pub enum $table {}

        impl $table {
            /// The entries' names.
            pub const NAMES: &[&str] = &[
                $( $crate::own_name!($first $($second)?), )*
                $( $crate::own_name!($spare_first $($spare_second)?), )*
            ];
        }
        $( $crate::entry!($first $($second)? ($($argument),*)); )*
        $( $crate::entry!($spare_first $($spare_second)? ($($spare_argument),*)); )*
    };
}
