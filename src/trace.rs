//! One macro for the crate's events: `tracing` behind its feature, nothing without it.

#[cfg(feature = "tracing")]
macro_rules! event {
    ($level:ident, $($rest:tt)+) => { ::tracing::$level!(target: "device_arena", $($rest)+) };
}

#[cfg(not(feature = "tracing"))]
macro_rules! event {
    ($level:ident, $($field:ident = $value:expr,)* $message:literal) => {{
        $( let _ = &$value; )*
    }};
}

pub(crate) use event;
