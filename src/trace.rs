//! One macro for the crate's events: `tracing` behind its feature, nothing without it.

#[cfg(feature = "tracing")]
macro_rules! event {
    ($level:ident, $($field:ident = $value:expr,)* $message:literal) => {
        ::tracing::$level!(
            target: "device_arena",
            $( $field = ::tracing::field::display(&$value), )*
            $message
        )
    };
}

#[cfg(not(feature = "tracing"))]
macro_rules! event {
    ($level:ident, $($field:ident = $value:expr,)* $message:literal) => {{
        $( let _ = &$value; )*
    }};
}

pub(crate) use event;
