//! Objects that one thread uses at a time: another one that comes meanwhile is refused, not made to wait.

use std::sync::{Mutex, PoisonError, TryLockError};

use crate::border::{Answer, Refusal};
use crate::status::device_arena_status_t::DEVICE_ARENA_STATUS_CONTENDED;

/// A value for one thread at a time, until somebody takes it away.
pub(crate) struct Exclusive<T> {
    what: &'static str,
    value: Mutex<Option<T>>,
}

/// A value that was refused, and why.
pub(crate) type Back<T> = Box<(T, Refusal)>;

impl<T> Exclusive<T> {
    pub(crate) fn new(what: &'static str, value: T) -> Self {
        Self { what, value: Mutex::new(Some(value)) }
    }

    /// Uses the value.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> Answer<R>) -> Answer<R> {
        self.slot(|slot| match slot {
            Some(value) => work(value),
            None => Err(self.gone()),
        })
    }

    /// Takes the value away.
    pub(crate) fn take(&self) -> Answer<T> {
        self.use_up(Ok)
    }

    /// Takes the value away for `work`, which may refuse it and give it back.
    pub(crate) fn use_up<R>(&self, work: impl FnOnce(T) -> Result<R, Back<T>>) -> Answer<R> {
        self.slot(|slot| match work(slot.take().ok_or_else(|| self.gone())?) {
            Ok(result) => Ok(result),
            Err(back) => {
                let (value, refusal) = *back;
                *slot = Some(value);
                Err(refusal)
            }
        })
    }

    /// Takes the value away from whoever uses it, and waits for that: for the end of what was lent.
    pub(crate) fn withdraw(&self) -> Option<T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn slot<R>(&self, work: impl FnOnce(&mut Option<T>) -> Answer<R>) -> Answer<R> {
        match self.value.try_lock() {
            Ok(mut slot) => work(&mut slot),
            // A panic in a use of before left the value as the crate's own unwinding leaves it.
            Err(TryLockError::Poisoned(poisoned)) => work(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let message = format!("the {} is in use by another thread", self.what);
                Err(Refusal::Here(DEVICE_ARENA_STATUS_CONTENDED, message.into()))
            }
        }
    }

    fn gone(&self) -> Refusal {
        Refusal::invalid(format!("the {} has ended", self.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_user_is_refused_and_the_first_goes_on() {
        let value = Exclusive::new("call", 1);
        let outcome = value.with(|inner| {
            *inner += 1;
            let refused = value.with(|_| Ok(())).err().map(|refusal| refusal.status());
            assert_eq!(refused, Some(DEVICE_ARENA_STATUS_CONTENDED));
            assert!(value.take().is_err());
            *inner += 1;
            Ok(*inner)
        });
        assert_eq!(outcome.unwrap(), 3);
        let refused =
            value.use_up(|inner| Err::<(), _>(Box::new((inner + 1, Refusal::invalid("not this one")))));
        assert_eq!(refused.err().unwrap().to_string(), "not this one");
        assert_eq!(value.take().unwrap(), 4);
        assert_eq!(value.take().err().unwrap().to_string(), "the call has ended");
    }
}
