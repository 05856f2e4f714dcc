//! The crate's events: `tracing`'s behind its feature, nothing without it.
//!
//! A subscriber is the user's code. It runs outside the crate's locks and borrows, so that it may use the crate, and
//! a panic of it ends here.

#[cfg(feature = "tracing")]
macro_rules! event {
    ($level:ident, $($field:ident = $value:expr,)* $message:literal) => {
        $crate::panics::contain(|| ::tracing::$level!(
            target: "device_arena",
            $( $field = ::tracing::field::display(&$value), )*
            $message
        ))
    };
}

#[cfg(not(feature = "tracing"))]
macro_rules! event {
    ($level:ident, $($field:ident = $value:expr,)* $message:literal) => {{
        $( let _ = &$value; )*
    }};
}

pub(crate) use event;

/// Something that happened where no user's code may run.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "nobody is told"))]
pub(crate) enum Note {
    Allocated { bytes: usize, reserved: usize },
    ChainKept { blocks: usize, error: crate::Error },
    NotFreed { bytes: usize, error: crate::Error },
}

/// Notes to be told later.
#[derive(Debug, Default)]
pub(crate) struct Notes(#[cfg(feature = "tracing")] Vec<Note>);

impl Notes {
    #[cfg_attr(not(feature = "tracing"), allow(clippy::unused_self, reason = "nobody is told"))]
    pub(crate) fn push(&mut self, note: Note) {
        #[cfg(feature = "tracing")]
        self.0.push(note);
        #[cfg(not(feature = "tracing"))]
        drop(note);
    }

    /// The notes so far, which are forgotten here.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Tells the subscriber.
    #[inline]
    pub(crate) fn tell(self) {
        #[cfg(feature = "tracing")]
        for note in self.0 {
            match note {
                Note::Allocated { bytes, reserved } => {
                    event!(debug, bytes = bytes, reserved = reserved, "block allocated");
                }
                Note::ChainKept { blocks, error } => {
                    event!(warn, blocks = blocks, error = error, "chain kept")
                }
                Note::NotFreed { bytes, error } => {
                    event!(warn, bytes = bytes, error = error, "block not freed")
                }
            }
        }
    }
}
