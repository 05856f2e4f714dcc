//! The planner against every pair, every order, and itself.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use device_arena::plan::{Buffer, Planner, Stop};
use device_arena_model::{check_planner, fault_of, fuzz_plan, least_peak};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::{prop_assert, prop_assert_eq, proptest};

use crate::buffers::{aligned, all_kinds, config, plain, tight};

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn a_plan_keeps_every_promise(buffers in all_kinds(30), seed in any::<u64>(), steps in 0..3000u64) {
        let planned = check_planner(&buffers, &Planner::new().seed(seed).steps(steps));
        prop_assert!(matches!(planned, Ok(Some(_))), "{planned:?}");
    }

    #[test]
    fn an_alignment_of_the_planners_holds_for_all(buffers in plain(20), shift in 0..10u32) {
        let planner = Planner::new().alignment(1 << shift).steps(500);
        let planned = check_planner(&buffers, &planner).expect("a plan").expect("one that can be had");
        prop_assert!(planned.plan().iter().all(|slot| slot.offset % (1 << shift) == 0));
        prop_assert!(planned.plan().alignment() >= 1 << shift);
    }

    #[test]
    fn the_same_seed_and_steps_give_the_same_plan_in_any_order(
        (buffers, shuffled) in all_kinds(24).prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle())),
        seed in any::<u64>(),
    ) {
        let planner = Planner::new().seed(seed).steps(700);
        let (one, other) = (planner.plan(&buffers).unwrap(), planner.plan(&shuffled).unwrap());
        prop_assert_eq!(one.plan(), other.plan());
        prop_assert_eq!(one.plan().fingerprint(), other.plan().fingerprint());
        prop_assert_eq!((one.steps(), one.stop()), (other.steps(), other.stop()));
    }

    #[test]
    fn more_steps_are_never_worse(buffers in aligned(24)) {
        let peak = |steps| Planner::new().steps(steps).plan(&buffers).unwrap().peak();
        let peaks = [peak(0), peak(50), peak(500), peak(5000)];
        prop_assert!(peaks.is_sorted_by(|less, more| less >= more), "{peaks:?}");
    }

    #[test]
    fn any_bytes_are_planned_or_refused(data in vec(any::<u8>(), 0..600)) {
        fuzz_plan(&data);
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn no_layout_is_overlooked(buffers in tight(8)) {
        let planned = Planner::new().steps(50_000).plan(&buffers).unwrap();
        prop_assert!(planned.is_least(), "{planned}");
        prop_assert_eq!(planned.peak(), least_peak(&buffers));
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn what_is_called_the_least_is_the_least(buffers in plain(8)) {
        let planned = Planner::new().steps(20_000).plan(&buffers).unwrap();
        prop_assert!(planned.is_least(), "{planned}");
        prop_assert_eq!(planned.stop(), Stop::Done);
        prop_assert_eq!(planned.peak(), least_peak(&buffers).max(planned.lower_bound()));
    }

    #[test]
    fn with_alignments_and_fixed_offsets_too(buffers in aligned(7)) {
        let planned = Planner::new().steps(20_000).plan(&buffers).unwrap();
        let least = least_peak(&buffers);
        // Buffers without bytes count where they are fixed, and block nobody.
        prop_assert!(planned.peak() >= least);
        prop_assert!(!planned.is_least() || planned.peak() == least.max(planned.lower_bound()), "{planned}, {least}");
    }
}

/// Many buffers, of few of which the lifetimes or the sizes are alike.
fn crowd(count: u64) -> Vec<Buffer> {
    let mut state = 1u64;
    let mut draw = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut buffer = |id| {
        let start = draw(count);
        Buffer::new(id, start..start + 1 + draw(2 + count / 8), 64 + draw(1000) * draw(1000))
    };
    (0..count).map(&mut buffer).collect()
}

/// A rectangle of steps and bytes that is cut into pieces: they fit without a gap, and that is hard to find.
fn jigsaw(pieces: usize) -> Vec<Buffer> {
    let mut state = 3u64;
    let mut rectangles = vec![(0u64..1 << 20, 1u64 << 20)];
    while rectangles.len() < pieces {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (by, is_in_time) = (3 + (state >> 40) % 5, state >> 63 == 1);
        // The largest, so that pieces are of one kind.
        let area = |(steps, size): &(std::ops::Range<u64>, u64)| (steps.end - steps.start) * size;
        let largest = (0..rectangles.len()).max_by_key(|index| area(&rectangles[*index])).unwrap();
        let (steps, size) = rectangles.swap_remove(largest);
        if is_in_time {
            let cut = steps.start + (steps.end - steps.start) * by / 10;
            rectangles.extend([(steps.start..cut, size), (cut..steps.end, size)]);
        } else {
            let cut = size * by / 10;
            rectangles.extend([(steps.clone(), cut), (steps, size - cut)]);
        }
    }
    rectangles.into_iter().zip(0..).map(|((steps, size), id)| Buffer::new(id, steps, size)).collect()
}

#[test]
fn a_deadline_ends_the_search_and_the_plan_is_valid() {
    let buffers = jigsaw(600);
    let started = Instant::now();
    let planner = Planner::new().steps(u64::MAX).time_limit(Duration::from_millis(100));
    let planned = planner.plan(&buffers).unwrap();
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(matches!(planned.stop(), Stop::Deadline | Stop::Done), "{planned}");
    assert_eq!(fault_of(planned.plan(), &buffers), None);
}

#[test]
fn a_cancelled_planner_still_answers_a_valid_plan() {
    let buffers = crowd(300);
    let flag = Arc::new(AtomicBool::new(true));
    let planned = Planner::new().cancel(Arc::clone(&flag)).plan(&buffers).unwrap();
    assert_eq!((planned.stop(), planned.steps()), (Stop::Cancelled, 0));
    assert_eq!(fault_of(planned.plan(), &buffers), None);
    // What was not placed by then went on top: worse than greedy, and no worse than one above another.
    let all: u64 = buffers.iter().map(|buffer| buffer.size).sum();
    assert!(planned.peak() <= all);
    assert!(Planner::new().steps(0).plan(&buffers).unwrap().peak() < planned.peak());
}

#[test]
fn a_step_budget_is_kept() {
    let buffers = jigsaw(200);
    for steps in [0, 1, 63, 64, 65, 300] {
        let planned = Planner::new().steps(steps).plan(&buffers).unwrap();
        assert_eq!((planned.steps(), planned.stop()), (steps, Stop::Steps));
    }
}

#[test]
fn pieces_that_fit_without_a_gap_are_put_together() {
    let planned = Planner::new().plan(&jigsaw(200)).unwrap();
    assert_eq!((planned.peak(), planned.lower_bound()), (1 << 20, 1 << 20));
    assert!(planned.greedy_peak() > 1 << 20, "greedy orders alone don't");
}

#[test]
fn weights_that_are_pinned_leave_the_search_its_layers() {
    // A chain of layers that can be packed into two halves, above weights that live always.
    let weights = (0..40).map(|id| Buffer::new(1000 + id, id..id + 1, 100 + id).pinned());
    let layers = (0..40).map(|id| Buffer::new(id, id..id + 2, if id % 2 == 0 { 300 } else { 200 }));
    let buffers: Vec<_> = weights.chain(layers).collect();
    let planned = Planner::new().plan(&buffers).unwrap();
    assert_eq!(planned.waste(), 0, "{planned}");
    assert!(planned.is_least());
}

#[test]
fn parts_of_a_run_that_share_no_step_are_searched_one_by_one() {
    // Greedy orders waste something in each part. Alone a part is done within the budget; so are twenty.
    let part = |number: u64| {
        let base = number * 1000;
        crowd(14).into_iter().map(move |buffer| {
            let steps = base + buffer.lifetime.start..base + buffer.lifetime.end;
            Buffer::new(base + buffer.id, steps, buffer.size)
        })
    };
    let one: Vec<_> = part(0).collect();
    let all: Vec<_> = (0..20).flat_map(part).collect();
    let (one, all) = (Planner::new().plan(&one).unwrap(), Planner::new().plan(&all).unwrap());
    assert!(one.is_least() && all.is_least(), "{one}; {all}");
    assert_eq!(one.peak(), all.peak());
}

#[test]
fn a_buffer_goes_below_a_fixed_one_where_it_fits() {
    let buffers = [
        Buffer::new(1, 0..10, 100).at(100),
        Buffer::new(2, 0..10, 60),
        Buffer::new(3, 0..10, 40),
        Buffer::new(4, 2..3, 50),
    ];
    let planned = Planner::new().plan(&buffers).unwrap();
    assert_eq!((planned.peak(), planned.is_least()), (250, true));
    assert_eq!(planned.plan().get(1).unwrap().offset, 100);
}

#[test]
fn offsets_beyond_four_gibibytes_are_planned() {
    let huge = 5 << 30;
    let buffers = [Buffer::new(1, 0..2, huge), Buffer::new(2, 1..3, huge), Buffer::new(3, 2..4, huge)];
    let planned = Planner::new().alignment(1 << 21).plan(&buffers).unwrap();
    assert_eq!(planned.peak(), 2 * huge);
    assert_eq!(planned.plan().get(2).unwrap().offset, huge);
}

#[test]
fn nothing_to_plan_is_a_plan_of_nothing() {
    let planned = Planner::new().plan(&[]).unwrap();
    assert_eq!((planned.peak(), planned.lower_bound(), planned.stop()), (0, 0, Stop::Done));
    assert!(planned.is_least() && planned.plan().is_empty());
    planned.plan().verify(&[]).unwrap();
}

#[test]
fn a_fixed_buffer_above_a_gap_that_nothing_fits_does_not_keep_the_search_for_ever() {
    // Every height between the bound and the peak was tried, one byte after another, at no price.
    let huge = 1 << 40;
    let buffers = [Buffer::new(1, 0..1, huge).at(huge), Buffer::new(2, 0..1, huge + 1)];
    let planned = Planner::new().plan(&buffers).unwrap();
    assert_eq!(
        (planned.peak(), planned.lower_bound(), planned.is_least()),
        (3 * huge + 1, 2 * huge + 1, true)
    );
}

/// Buffers of which many meet, or which fall into many parts: what took time with the square of their number.
fn crowds(count: u64) -> [(&'static str, Vec<Buffer>); 6] {
    let size = |id: u64| 64 + id * 7919 % 1000;
    let of = |lifetime: fn(u64, u64) -> std::ops::Range<u64>| {
        (0..count).map(|id| Buffer::new(id, lifetime(id, count), size(id))).collect::<Vec<_>>()
    };
    let half = of(|id, count| id * 7919 % count..id * 7919 % count + count / 2);
    let nested = of(|id, count| id..2 * count - id);
    let alike = of(|_, _| 0..5);
    let aligned = half.iter().map(|buffer| buffer.clone().aligned(1 << (buffer.id % 9))).collect();
    let short = of(|id, count| id * 7919 % count..id * 7919 % count + 1 + id % 80);
    // A part that greedy orders waste something in, and a great many that they don't.
    let alone = (0..count).map(|id| Buffer::new(1000 + id, 1 << 30 | id..(1 << 30 | id) + 1, 1));
    let parts = crowd(40).into_iter().chain(alone).collect();
    [
        ("half of them at once", half),
        ("nested", nested),
        ("alike", alike),
        ("aligned", aligned),
        ("short", short),
        ("many parts", parts),
    ]
}

#[test]
fn crowds_are_planned_by_a_deadline_and_not_one_above_another() {
    for (kind, buffers) in crowds(30_000) {
        let planner = Planner::new().steps(u64::MAX).time_limit(Duration::from_millis(50));
        let planned = planner.plan(&buffers).unwrap();
        println!("{kind}: {planned}, {:?}", planned.time());
        planned.plan().verify(&buffers).unwrap();
        assert!(planned.time() < Duration::from_secs(20), "{kind}: {:?}", planned.time());
        assert!(planned.peak() < 4 * planned.lower_bound(), "{kind}: {planned}");
    }
}

#[test]
fn crowds_are_planned_without_a_deadline() {
    let count = if cfg!(debug_assertions) { 2_000 } else { 8_000 };
    for (kind, buffers) in crowds(count) {
        let planned = Planner::new().steps(1_000).plan(&buffers).unwrap();
        println!("{kind}: {planned}, {:?}", planned.time());
        planned.plan().verify(&buffers).unwrap();
        assert!(planned.time() < Duration::from_secs(120), "{kind}: {:?}", planned.time());
    }
}
