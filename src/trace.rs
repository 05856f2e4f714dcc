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

    /// Tells the subscriber, or whoever holds this thread's notes back.
    #[inline]
    pub(crate) fn tell(self) {
        #[cfg(feature = "tracing")]
        if !self.0.is_empty() {
            held::tell(self.0);
        }
    }
}

/// Holds this thread's notes back until it is dropped: for who runs more than its own code under a lock.
#[derive(Debug)]
pub(crate) struct Untold(());

impl Untold {
    pub(crate) fn new() -> Self {
        #[cfg(feature = "tracing")]
        held::hold();
        Self(())
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        #[cfg(feature = "tracing")]
        held::release();
    }
}

#[cfg(feature = "tracing")]
mod held {
    use std::cell::RefCell;

    use super::Note;

    #[derive(Default)]
    struct Held {
        depth: usize,
        notes: Vec<Note>,
    }

    thread_local! {
        static HELD: RefCell<Held> = RefCell::new(Held::default());
    }

    /// What `access` makes of this thread's notes; nothing where the thread is ending, or holds them already.
    fn with<R>(access: impl FnOnce(&mut Held) -> R) -> Option<R> {
        HELD.try_with(|held| held.try_borrow_mut().ok().map(|mut held| access(&mut held))).ok().flatten()
    }

    pub(super) fn hold() {
        let _ = with(|held| held.depth += 1);
    }

    pub(super) fn release() {
        let notes = with(|held| {
            held.depth = held.depth.saturating_sub(1);
            if held.depth == 0 { std::mem::take(&mut held.notes) } else { Vec::new() }
        });
        notes.unwrap_or_default().into_iter().for_each(tell_one);
    }

    pub(super) fn tell(notes: Vec<Note>) {
        let mut notes = Some(notes);
        let _ = with(|held| {
            if held.depth > 0 {
                held.notes.extend(notes.take().unwrap_or_default());
            }
        });
        notes.unwrap_or_default().into_iter().for_each(tell_one);
    }

    fn tell_one(note: Note) {
        match note {
            Note::Allocated { bytes, reserved } => {
                super::event!(debug, bytes = bytes, reserved = reserved, "block allocated");
            }
            Note::ChainKept { blocks, error } => {
                super::event!(warn, blocks = blocks, error = error, "chain kept")
            }
            Note::NotFreed { bytes, error } => {
                super::event!(warn, bytes = bytes, error = error, "block not freed")
            }
        }
    }
}
