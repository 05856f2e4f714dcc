//! Programs, on every backend that is here.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use device_arena::backend::Vendor;
use device_arena_model::{Candidate, Program, Report, Subject, candidates, run};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::strategies::program;
use crate::vendors;

/// How many programs a backend runs, unless `DEVICE_ARENA_PROGRAMS` says otherwise.
const PROGRAMS: u32 = 1024;

fn setting(name: &str, default: u32) -> u32 {
    match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")),
        Err(_) => default,
    }
}

/// Runs programs on a backend; answers what they met.
fn run_programs(subject: &Subject, programs: impl Strategy<Value = Program>, count: u32) -> Report {
    // A failure prints its program in full, which is what a regression test is made from: no file of seeds. One
    // that fails by waiting in vain takes long to shrink.
    let (cases, max_shrink_time) = (count, 120_000);
    let config = Config { cases, max_shrink_time, failure_persistence: None, ..Config::default() };
    // A device that a failure has broken fails every program after it: the first is the one to look at.
    let first = Mutex::new(None);
    let (total, ran) = (Mutex::new(Report::default()), AtomicU32::new(0));
    let outcome = TestRunner::new(config).run(&programs, |program| {
        let report = run(subject, &program).map_err(|failure| {
            let failure = failure.to_string();
            first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| failure.clone());
            TestCaseError::fail(failure)
        })?;
        ran.fetch_add(1, Ordering::Relaxed);
        total.lock().unwrap_or_else(PoisonError::into_inner).add(&report);
        Ok(())
    });
    if let Err(failure) = outcome {
        let first = first.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or_default();
        panic!("{}: {failure}\nthe first that failed: {first}", subject.name());
    }
    println!("backend under test: {}, {} programs", subject.name(), ran.into_inner());
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Every backend that is here; the others are skipped by name, unless `DEVICE_ARENA_REQUIRE` has their vendor's.
pub(crate) fn subjects() -> Vec<Subject> {
    let required = std::env::var("DEVICE_ARENA_REQUIRE").unwrap_or_default();
    let is_required = |name: &str| required.split(',').any(|it| name.split(' ').next() == Some(it));
    let vendors = [Vendor::Cuda, Vendor::Rocm].map(|vendor| (vendor, vendors::load(vendor)));
    let present = candidates(&vendors).into_iter().filter_map(|candidate| match candidate {
        Candidate::Present(subject) => Some(subject),
        Candidate::Absent { name, reason } => {
            assert!(!is_required(&name), "{name} is required: {reason}");
            println!("backend skipped: {name}, {reason}");
            None
        }
    });
    present.collect()
}

/// What programs must have met for the property to be about anything. Each line is one of the promises at work.
const MUST_MEET: &[&str] = &[
    "abandon",
    "abandon with outputs open",
    "already taken",
    "alignment",
    "arena closed",
    "arena dropped while held",
    "begin",
    "begin that waited",
    "contended: call",
    "contended: deferred",
    "contended: output",
    "contended: readers",
    "defer",
    "defer_call",
    "defer_call behind work",
    "deferred dropped",
    "deferred error",
    "deferred outcome",
    "deferred panic",
    "export",
    "export by its call",
    "finish with outputs open",
    "guard",
    "length mismatch",
    "order_after",
    "out of memory",
    "out of range",
    "over limit",
    "pending",
    "publish",
    "read",
    "release",
    "reserve",
    "scratch scope",
    "scratch scope that panicked",
    "size overflow",
    "slice",
    "stale: arena dropped",
    "stale: rewound",
    "steady loop",
    "tape read",
    "trim",
];

/// And what devices add.
const MUST_MEET_ON_DEVICES: &[&str] =
    &["copy", "device guard", "device guard of another executor", "host memory", "wrong executor"];

/// And what programs of this length meet only where the limits are small.
const MUST_MEET_UNDER_SMALL_LIMITS: &[&str] = &["too many outputs", "too many readers"];

/// Whoever holds streams of such a subject up keeps everybody else's of the process waiting: they take turns.
pub(crate) fn turn(subject: &Subject) -> Option<MutexGuard<'static, ()>> {
    static TURNS: Mutex<()> = Mutex::new(());
    subject.is_one_at_a_time().then(|| TURNS.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn programs_agree_with_the_model() {
    // Backends take their time side by side, where they can.
    std::thread::scope(|scope| {
        for subject in subjects() {
            scope.spawn(move || {
                let _turn = turn(&subject);
                programs_agree_on(&subject);
            });
        }
    });
}

fn programs_agree_on(subject: &Subject) {
    let count = setting("DEVICE_ARENA_PROGRAMS", PROGRAMS);
    let report = run_programs(subject, program(), count);
    for (what, times) in &report.met {
        println!("    {times:8} {}: {what}", subject.name());
    }
    let small = MUST_MEET_UNDER_SMALL_LIMITS.iter().filter(|_| cfg!(device_arena_small_limits));
    let devices = MUST_MEET_ON_DEVICES.iter().filter(|_| subject.name() != "host");
    let unmet: Vec<_> = MUST_MEET
        .iter()
        .chain(small)
        .chain(devices)
        .filter(|what| !report.met.contains_key(**what))
        .collect();
    assert!(unmet.is_empty() || count < PROGRAMS, "{}: no program met {unmet:?}", subject.name());
}
