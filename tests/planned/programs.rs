//! Programs, on a planned arena and on the model.

use device_arena::plan::{MemoryPlan, Slot};
use device_arena::{CopyBatch, Error, PlannedArena, RowOrder, Rows, Run};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::model::Model;
use crate::subjects::{Subject, subjects};

/// The size of an element: of `u8`, `u16`, `u32` or `u64`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Element {
    One,
    Two,
    Four,
    Eight,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write {
        node: u64,
        first: usize,
        bytes: Vec<u8>,
        element: Element,
    },
    Read {
        node: u64,
        first: usize,
        count: usize,
        element: Element,
    },
    ReadAt {
        first: usize,
        count: usize,
        element: Element,
    },
    Copy {
        to: (u64, usize),
        from: (u64, usize),
        count: usize,
        element: Element,
    },
    Batch {
        copies: Vec<Move>,
        element: Element,
        prepared: bool,
    },
    Rows {
        to: Side,
        from: Side,
        len: usize,
        count: usize,
        element: Element,
        prepared: bool,
    },
    Clear {
        node: u64,
    },
    /// The run ends, and the next one begins.
    Next,
    /// So does this one, but without a finish.
    Abandon,
    /// All bytes to a twin, which is compared.
    Twin,
}

/// Two places, each a node and an element, and how many elements.
pub(crate) type Move = ((u64, usize), (u64, usize), usize);

/// Where rows are: a node, an element, the elements from one row to the next, and which rows.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    node: u64,
    first: usize,
    stride: usize,
    rows: Option<Vec<u32>>,
}

/// As an element's type, for a function that is generic over it.
macro_rules! with {
    ($element:expr, $type:ident => $body:expr) => {
        match $element {
            Element::One => {
                type $type = u8;
                $body
            }
            Element::Two => {
                type $type = u16;
                $body
            }
            Element::Four => {
                type $type = u32;
                $body
            }
            Element::Eight => {
                type $type = u64;
                $body
            }
        }
    };
}

/// A plan of a few slots: side by side, with gaps, and aliases that overlap on purpose.
pub(crate) fn plan() -> impl Strategy<Value = MemoryPlan> {
    let slot = (0u64..4000, prop::sample::select(vec![1u64, 8, 64, 256]), 0u64..300);
    (prop::collection::vec(slot, 1..8), any::<bool>()).prop_map(|(slots, aliased)| {
        let (mut offset, mut builder) = (0u64, MemoryPlan::builder());
        let mut first = None;
        for (node, (size, alignment, gap)) in slots.into_iter().enumerate() {
            offset = (offset + gap).next_multiple_of(alignment);
            builder = builder.slot(Slot::new(node as u64 * 3, offset, size).aligned(alignment));
            first.get_or_insert((offset, size));
            offset += size;
        }
        if let Some((start, size)) = first.filter(|_| aliased) {
            builder = builder.slot(Slot::new(100, start + size / 3, size - size / 3).alias_of(0));
        }
        builder.total(offset + 17).build().unwrap()
    })
}

fn side() -> impl Strategy<Value = Side> {
    let stride = prop_oneof![1 => 0usize..3, 4 => 40usize..200, 1 => Just(usize::MAX / 2)];
    let rows = prop::option::weighted(0.4, prop::collection::vec(0u32..6, 0..5));
    // Mostly as many numbers as rows: the count that a program has is drawn apart.
    ((0u64..8).prop_map(|node| node * 3), 0usize..100, stride, rows)
        .prop_map(|(node, first, stride, rows)| Side { node, first, stride, rows })
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    // Every third number is a node, and 100 may be; the others are unknown.
    let node = || prop_oneof![12 => (0u64..8).prop_map(|node| node * 3), 2 => Just(100u64), 1 => 0u64..30];
    let first = || prop_oneof![3 => Just(0usize), 3 => 0usize..600, 1 => 3000usize..6000];
    let count = || prop_oneof![4 => 0usize..800, 1 => Just(1_000_000usize)];
    let element = || prop::sample::select(vec![Element::One, Element::Two, Element::Four, Element::Eight]);
    let place = || (node(), first());
    let copy = (place(), place(), count());
    prop_oneof![
        4 => (node(), first(), prop::collection::vec(any::<u8>(), 0..2000), element())
            .prop_map(|(node, first, bytes, element)| Step::Write { node, first, bytes, element }),
        2 => (node(), first(), 0usize..3000, element())
            .prop_map(|(node, first, count, element)| Step::Read { node, first, count, element }),
        1 => (0usize..20_000, 0usize..3000, element())
            .prop_map(|(first, count, element)| Step::ReadAt { first, count, element }),
        4 => (place(), place(), count(), element())
            .prop_map(|(to, from, count, element)| Step::Copy { to, from, count, element }),
        3 => (prop::collection::vec(copy, 0..6), element(), any::<bool>())
            .prop_map(|(copies, element, prepared)| Step::Batch { copies, element, prepared }),
        3 => (side(), side(), 0usize..70, 0usize..5, element(), any::<bool>())
            .prop_map(|(to, from, len, count, element, prepared)| {
                Step::Rows { to, from, len, count, element, prepared }
            }),
        1 => node().prop_map(|node| Step::Clear { node }),
        2 => Just(Step::Next),
        1 => Just(Step::Abandon),
        1 => Just(Step::Twin),
    ]
}

fn size(element: Element) -> usize {
    with!(element, T => size_of::<T>())
}

/// The outcome of a start or a node that may be wrong: the model has none, the arena an error that says so.
fn amount(outcome: Result<usize, Error>) -> Result<Option<usize>, TestCaseError> {
    match outcome {
        Ok(amount) => Ok(Some(amount)),
        Err(Error::UnknownNode { .. } | Error::OutOfSlot { .. } | Error::OutOfArena { .. }) => Ok(None),
        Err(error) => Err(TestCaseError::fail(format!("unexpected: {error}"))),
    }
}

pub(crate) fn fail(error: Error) -> TestCaseError {
    TestCaseError::fail(format!("unexpected: {error}"))
}

/// Whether two copies of a list clash: one writes what the other reads or writes. A copy onto itself does nothing.
fn clash(copies: &[(usize, usize, usize)]) -> bool {
    let overlap = |a: usize, b: usize, (a_len, b_len): (usize, usize)| a < b + b_len && b < a + a_len;
    let moves = |copy: &&(usize, usize, usize)| copy.0 != copy.1 && copy.2 != 0;
    let copies: Vec<_> = copies.iter().filter(moves).collect();
    copies.iter().enumerate().any(|(i, one)| {
        copies.iter().enumerate().any(|(j, other)| {
            let lens = (one.2, other.2);
            i != j && (overlap(one.0, other.0, lens) || overlap(one.0, other.1, lens))
        })
    })
}

/// Launches a batch whose copies are those places, by way of a list that is prepared or at once, and holds it against the
/// model.
fn finish_batch(
    run: &mut Run,
    model: &mut Model,
    places: &[(usize, usize, usize)],
    prepared: bool,
    batch: impl for<'r> Fn(&'r mut Run) -> Result<CopyBatch<'r>, Error>,
) -> Result<(), TestCaseError> {
    let outcome = if prepared {
        let list = batch(run).map_err(fail)?.prepare();
        list.and_then(|list| {
            list.launch(run)?;
            // Once more: what they read is what it was, unless a copy overlaps itself.
            if places.iter().all(|&(to, from, bytes)| to.abs_diff(from) >= bytes) {
                list.launch(run)
            } else {
                Ok(())
            }
        })
    } else {
        batch(run).map_err(fail)?.launch()
    };
    match outcome {
        Ok(()) => {
            prop_assert!(!clash(places), "a clash was taken: {:?}", places);
            places.iter().for_each(|place| model.copy(*place));
        }
        Err(Error::ClashingCopies { .. }) => prop_assert!(clash(places), "no clash: {:?}", places),
        Err(error) => return Err(fail(error)),
    }
    Ok(())
}

fn run_step(run: &mut Run, model: &mut Model, step: &Step) -> Result<(), TestCaseError> {
    match step {
        Step::Write { node, first, bytes, element } => {
            let size = size(*element);
            let bytes = &bytes[..bytes.len() / size * size];
            let written = with!(*element, T => {
                let values: Vec<T> = bytes.chunks_exact(size).map(bytemuck::pod_read_unaligned).collect();
                run.write_from(*node, *first, &values)
            });
            prop_assert_eq!(amount(written)?, model.write(*node, *first, bytes, size));
        }
        Step::Read { node, first, count, element } => {
            let (read, values) = with!(*element, T => {
                let mut values = vec![T::MAX; *count];
                let read = run.read_from(*node, *first, &mut values);
                (read, bytemuck::cast_slice::<T, u8>(&values).to_vec())
            });
            let expected = model.read(*node, *first, *count, size(*element));
            let read = amount(read)?.map(|count| &values[..count * size(*element)]);
            prop_assert_eq!(read, expected);
        }
        Step::ReadAt { first, count, element } => {
            let (read, values) = with!(*element, T => {
                let mut values = vec![T::MAX; *count];
                let read = run.read_at(model.base / size_of::<T>() as u64 + *first as u64, &mut values);
                (read, bytemuck::cast_slice::<T, u8>(&values).to_vec())
            });
            let expected = model.read_at(*first, *count, size(*element));
            let read = amount(read)?.map(|count| &values[..count * size(*element)]);
            prop_assert_eq!(read, expected);
        }
        Step::Copy { to, from, count, element } => {
            let copied = with!(*element, T => run.copy_range::<T>(to.0, to.1, from.0, from.1, *count));
            let place = model.place(*to, *from, *count, size(*element));
            prop_assert_eq!(amount(copied)?, place.map(|(_, _, bytes)| bytes / size(*element)));
            if let Some(place) = place {
                model.copy(place);
            }
        }
        Step::Rows { to, from, len, count, element, prepared } => {
            let size = size(*element);
            let order = |side: &Side| {
                side.rows.as_ref().map(|rows| rows.iter().cycle().take(*count).copied().collect::<Vec<_>>())
            };
            // A side without numbers, or with none to repeat, is in order.
            let order = |side: &Side| order(side).filter(|rows| rows.len() == *count);
            let (to_rows, from_rows) = (order(to), order(from));
            let row =
                |rows: &Option<Vec<u32>>, turn: usize| rows.as_ref().map_or(turn, |rows| rows[turn] as usize);
            let mut rows = Rows::new(*count, *len).to(to.node, to.first, to.stride).from(
                from.node,
                from.first,
                from.stride,
            );
            if let Some(order) = &to_rows {
                rows = rows.to_rows(RowOrder::At(order));
            }
            if let Some(order) = &from_rows {
                rows = rows.from_rows(RowOrder::At(order));
            }
            let mut batch = run.copies();
            let added = with!(*element, T => batch.rows::<T>(&rows));
            let place = |side: &Side, rows: &Option<Vec<u32>>, turn: usize| -> Option<usize> {
                let start = model.place((side.node, side.first), (side.node, side.first), 0, size)?.0;
                let at = row(rows, turn).checked_mul(side.stride)?.checked_mul(size)?.checked_add(start)?;
                (at.checked_add(len * size)? <= model.bytes.len()).then_some(at)
            };
            let starts = |side: &Side| {
                model.place((side.node, side.first), (side.node, side.first), 0, size).is_some()
            };
            let places: Option<Vec<_>> = (0..*count)
                .map(|turn| Some((place(to, &to_rows, turn)?, place(from, &from_rows, turn)?, len * size)))
                .collect();
            let places = places.filter(|_| starts(to) && starts(from));
            prop_assert_eq!(amount(added.map(|()| 0))?.is_some(), places.is_some());
            if let Some(places) = places {
                finish_batch(run, model, &places, *prepared, |run| {
                    let mut batch = run.copies();
                    with!(*element, T => batch.rows::<T>(&rows)).map(|()| batch)
                })?;
            }
        }
        Step::Batch { copies, element, prepared } => {
            let mut batch = run.copies();
            let mut places = Vec::new();
            for (to, from, count) in copies {
                let added = with!(*element, T => batch.copy::<T>(*to, *from, *count));
                let place = model.place(*to, *from, *count, size(*element));
                prop_assert_eq!(amount(added)?, place.map(|(_, _, bytes)| bytes / size(*element)));
                places.extend(place);
            }
            finish_batch(run, model, &places, *prepared, |run| {
                let mut batch = run.copies();
                for (to, from, count) in copies {
                    match with!(*element, T => batch.copy::<T>(*to, *from, *count)) {
                        Ok(_) | Err(Error::UnknownNode { .. } | Error::OutOfSlot { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(batch)
            })?;
        }
        Step::Clear { node } => {
            let cleared = amount(run.clear(*node).map(|()| 0))?;
            prop_assert_eq!(cleared.is_some(), model.clear(*node).is_some());
        }
        Step::Next | Step::Abandon | Step::Twin => {}
    }
    Ok(())
}

pub(crate) fn all_of(run: &Run, model: &Model) -> Result<(), TestCaseError> {
    let mut bytes = vec![0xEE; model.bytes.len()];
    let read = run.read_at::<u8>(model.base, &mut bytes).map_err(fail)?;
    prop_assert_eq!(read, bytes.len());
    same(&bytes, &model.bytes)
}

/// Long rows of bytes are not printed: where they differ first is.
fn same(bytes: &[u8], expected: &[u8]) -> Result<(), TestCaseError> {
    prop_assert_eq!(bytes.len(), expected.len());
    let differs = bytes.iter().zip(expected).position(|(one, other)| one != other);
    prop_assert!(differs.is_none(), "byte {:?} differs", differs);
    Ok(())
}

fn run_program(subject: &Subject, plan: &MemoryPlan, steps: &[Step]) -> Result<(), TestCaseError> {
    let arena = subject.arena(plan).map_err(fail)?;
    let twin: PlannedArena = subject.arena(plan).map_err(fail)?;
    run_steps(&arena, Some(&twin), Model::new(plan), steps)
}

/// Runs a program on an arena that has not run, and on its model. Without a twin, nothing is copied there.
pub(crate) fn run_steps(
    arena: &PlannedArena,
    twin: Option<&PlannedArena>,
    mut model: Model,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut run = arena.begin().map_err(fail)?;
    all_of(&run, &model)?;
    for step in steps {
        run_step(&mut run, &mut model, step)?;
        match (step, twin) {
            (Step::Next, _) => {
                let view = run.finish().map_err(fail)?;
                let bytes = view.bytes().slice(model.base as usize..).map_err(fail)?;
                same(&bytes.to_vec().map_err(fail)?, &model.bytes)?;
                run = arena.begin().map_err(fail)?;
                prop_assert!(!view.is_current());
                let is_stale = matches!(view.bytes().to_vec(), Err(Error::Stale { .. }));
                prop_assert!(is_stale);
            }
            (Step::Abandon, _) => {
                drop(run);
                run = arena.begin().map_err(fail)?;
            }
            (Step::Twin, Some(twin)) => {
                let mut other = twin.begin().map_err(fail)?;
                prop_assert_eq!(run.copy_into(&mut other).map_err(fail)?, arena.size());
                all_of(&other, &model)?;
            }
            _ => {}
        }
    }
    all_of(&run, &model)?;
    drop(run);
    prop_assert_eq!(arena.stats().allocations, 1);
    Ok(())
}

#[test]
fn programs_agree_with_the_model() {
    // Backends take their time side by side.
    std::thread::scope(|scope| {
        for subject in subjects() {
            scope.spawn(move || programs_agree_on(&subject));
        }
    });
}

fn programs_agree_on(subject: &Subject) {
    let cases = std::env::var("DEVICE_ARENA_PROGRAMS").map_or(400, |count| count.parse().unwrap());
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let programs = (plan(), prop::collection::vec(step(), 1..30));
    let outcome = TestRunner::new(config).run(&programs, |(plan, steps)| run_program(subject, &plan, &steps));
    if let Err(failure) = outcome {
        panic!("{}: {failure}", subject.name);
    }
    println!("backend under test: {}, {cases} programs", subject.name);
}
