//! Handles: numbers that say which object of which kind, and which of all that were ever in its place.
//!
//! A handle is `kind (8 bits) | generation (24) | index (32)`. Freeing an object moves its place to the next generation, so
//! that the old number is refused; a place whose generations are used up is not used again. An object that a function of
//! another thread is using lives until that returns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::border::{Answer, Refusal};
use crate::status::device_arena_status_t::DEVICE_ARENA_STATUS_OUT_OF_MEMORY;

/// What a handle is of.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Library = 1,
    Executor = 2,
    Arena = 3,
    Call = 4,
    Scratch = 5,
    Output = 6,
    View = 7,
    Guard = 8,
    Tape = 9,
    Deferred = 10,
    Plan = 11,
    Planned = 12,
    Run = 13,
    Writer = 14,
}

impl Kind {
    const ALL: [Self; 14] = [
        Self::Library,
        Self::Executor,
        Self::Arena,
        Self::Call,
        Self::Scratch,
        Self::Output,
        Self::View,
        Self::Guard,
        Self::Tape,
        Self::Deferred,
        Self::Plan,
        Self::Planned,
        Self::Run,
        Self::Writer,
    ];

    pub(crate) fn of(handle: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u64 == handle >> KIND_SHIFT)
    }

    /// Its name with the article.
    pub(crate) fn one(self) -> String {
        let name = self.name();
        let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {name}")
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Executor => "executor",
            Self::Arena => "arena",
            Self::Call => "call",
            Self::Scratch => "scratch scope",
            Self::Output => "output",
            Self::View => "view",
            Self::Guard => "guard",
            Self::Tape => "tape",
            Self::Deferred => "deferred result",
            Self::Plan => "plan",
            Self::Planned => "planned arena",
            Self::Run => "run",
            Self::Writer => "writer",
        }
    }
}

pub(crate) const KIND_SHIFT: u32 = 56;
const GENERATION_SHIFT: u32 = 32;
const LAST_GENERATION: u32 = (1 << (KIND_SHIFT - GENERATION_SHIFT)) - 1;

/// Something that handles lead to.
pub(crate) trait Object: Send + Sync + Sized + 'static {
    const KIND: Kind;

    fn table() -> &'static Table<Self>;
}

/// Makes a type an object with a table of its own.
macro_rules! object {
    ($type:ty, $kind:ident) => {
        impl $crate::table::Object for $type {
            const KIND: $crate::table::Kind = $crate::table::Kind::$kind;

            fn table() -> &'static $crate::table::Table<Self> {
                static TABLE: $crate::table::Table<$type> = $crate::table::Table::new();
                &TABLE
            }
        }
    };
}
pub(crate) use object;

/// All objects of one kind.
pub(crate) struct Table<T> {
    places: Mutex<Places<T>>,
}

struct Places<T> {
    all: Vec<Place<T>>,
    free: Vec<u32>,
}

struct Place<T> {
    generation: u32,
    object: Option<Arc<T>>,
}

impl<T: Object> Table<T> {
    pub(crate) const fn new() -> Self {
        Self { places: Mutex::new(Places { all: Vec::new(), free: Vec::new() }) }
    }

    /// The table is whole whenever it is not locked, since nothing that is done to it panics half way.
    fn places(&self) -> MutexGuard<'_, Places<T>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, object: T) -> Answer<u64> {
        let object = Arc::new(object);
        let mut places = self.places();
        let index = match places.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(places.all.len()).map_err(|_| full())?;
                // Freeing takes no memory: what it needs is there beforehand.
                places.all.try_reserve(1).map_err(|_| full())?;
                let all = places.all.len() + 1;
                places.free.try_reserve(all).map_err(|_| full())?;
                places.all.push(Place { generation: 1, object: None });
                index
            }
        };
        let place = places.all.get_mut(index as usize).ok_or_else(full)?;
        place.object = Some(object);
        Ok(number(T::KIND, place.generation, index))
    }

    fn get(&self, handle: u64) -> Answer<Arc<T>> {
        let (index, generation) = parts::<T>(handle)?;
        let places = self.places();
        let place = places.all.get(index).filter(|place| place.generation == generation);
        place.and_then(|place| place.object.clone()).ok_or_else(dead::<T>)
    }

    fn remove(&self, handle: u64) -> Answer<Arc<T>> {
        let (index, generation) = parts::<T>(handle)?;
        let mut places = self.places();
        let place = places.all.get_mut(index).filter(|place| place.generation == generation);
        let place = place.ok_or_else(dead::<T>)?;
        let object = place.object.take().ok_or_else(dead::<T>)?;
        if place.generation < LAST_GENERATION {
            place.generation += 1;
            places.free.push(index as u32);
        }
        // The object goes outside of the lock.
        Ok(object)
    }
}

fn number(kind: Kind, generation: u32, index: u32) -> u64 {
    (kind as u64) << KIND_SHIFT | u64::from(generation) << GENERATION_SHIFT | u64::from(index)
}

fn parts<T: Object>(handle: u64) -> Answer<(usize, u32)> {
    if handle == 0 {
        return Err(Refusal::invalid(format!("no {} was given: the handle is 0", T::KIND.name())));
    }
    let needed = T::KIND.one();
    match Kind::of(handle) {
        Some(kind) if kind == T::KIND => {
            Ok(((handle as u32) as usize, (handle >> GENERATION_SHIFT) as u32 & LAST_GENERATION))
        }
        Some(kind) => {
            Err(Refusal::invalid(format!("the handle is of {}, where one of {needed} is needed", kind.one())))
        }
        None => Err(Refusal::invalid(format!("the handle of {needed} is needed, and {handle:#x} is none"))),
    }
}

fn dead<T: Object>() -> Refusal {
    Refusal::invalid(format!("the handle's {} was freed or has ended", T::KIND.name()))
}

fn full() -> Refusal {
    Refusal::Here(DEVICE_ARENA_STATUS_OUT_OF_MEMORY, "there is no memory for another handle".into())
}

/// Puts an object into its table.
pub(crate) fn insert<T: Object>(object: T) -> Answer<u64> {
    T::table().insert(object)
}

/// The object that a handle leads to.
pub(crate) fn get<T: Object>(handle: u64) -> Answer<Arc<T>> {
    T::table().get(handle)
}

/// Takes what is in an object, and ends its handle with that: where it is refused, both stay. The object comes second, so that
/// it goes last: it keeps the library.
pub(crate) fn use_up<T: Object, R>(handle: u64, take: impl FnOnce(&T) -> Answer<R>) -> Answer<(R, Arc<T>)> {
    let object = get::<T>(handle)?;
    let taken = take(&object)?;
    // Another thread may have been faster, which changes nothing.
    let _ = remove::<T>(handle);
    Ok((taken, object))
}

/// Ends a handle. The object goes with its last user.
pub(crate) fn remove<T: Object>(handle: u64) -> Answer<Arc<T>> {
    T::table().remove(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(u32);
    object!(Thing, Plan);

    struct Other;
    object!(Other, Run);

    #[test]
    fn a_dead_handle_stays_dead_when_its_place_is_used_again() {
        let first = insert(Thing(1)).unwrap();
        assert_eq!(get::<Thing>(first).unwrap().0, 1);
        assert_eq!(remove::<Thing>(first).unwrap().0, 1);
        assert!(remove::<Thing>(first).is_err());
        // Other tests may take the place meanwhile: what matters is that none of them has its number.
        let later: Vec<_> = (0..8).map(|i| insert(Thing(i)).unwrap()).collect();
        assert!(!later.contains(&first));
        assert!(get::<Thing>(first).is_err());
        for handle in later {
            remove::<Thing>(handle).unwrap();
        }
    }

    #[test]
    fn numbers_that_nobody_gave_out_are_refused() {
        let thing = insert(Thing(1)).unwrap();
        for odd in [0, 1, u64::MAX, thing + 1000, thing ^ 1 << 40, 15 << 56] {
            assert!(get::<Thing>(odd).is_err(), "{odd:#x}");
            assert!(remove::<Thing>(odd).is_err(), "{odd:#x}");
        }
        let other = insert(Other).unwrap();
        let refusal = get::<Thing>(other).err().unwrap().to_string();
        assert_eq!(refusal, "the handle is of a run, where one of a plan is needed");
        assert_eq!(Kind::Arena.one(), "an arena");
        remove::<Thing>(thing).unwrap();
        remove::<Other>(other).unwrap();
    }

    #[test]
    fn a_place_without_generations_is_left_alone() {
        static TABLE: Table<Thing> = Table::new();
        let handle = TABLE.insert(Thing(1)).unwrap();
        TABLE.places().all[0].generation = LAST_GENERATION;
        let last = number(Kind::Plan, LAST_GENERATION, 0);
        assert!(TABLE.get(handle).is_err());
        TABLE.remove(last).unwrap();
        assert!(TABLE.remove(last).is_err());
        assert_eq!(TABLE.insert(Thing(2)).unwrap() as u32, 1, "the next place");
    }

    #[test]
    fn an_object_in_use_outlives_its_handle() {
        let handle = insert(Thing(5)).unwrap();
        let in_use = get::<Thing>(handle).unwrap();
        drop(remove::<Thing>(handle).unwrap());
        assert_eq!(in_use.0, 5);
    }
}
