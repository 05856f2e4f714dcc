//! Slots above 4 GiB: offsets and lengths have 64 bits on the way to the kernels, too. Where there is room for them.

use device_arena::plan::{MemoryPlan, Slot};
use device_arena::{Placement, Rows};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::model::Model;
use crate::programs::{fail, plan, run_steps, step};
use crate::subjects::{Subject, subjects};

const FAR: u64 = (4 << 30) + 4096;

/// The devices that have 8 GiB free, and the host where `DEVICE_ARENA_FAR` is set and it has as much: most of the time goes
/// into its pages. The others are skipped by name.
fn roomy() -> impl Iterator<Item = Subject> {
    subjects().into_iter().filter(|subject| {
        let free = subject.executor.free_bytes().unwrap().unwrap_or(0);
        let is_meant = match subject.placement {
            Placement::Device => true,
            Placement::Host => std::env::var_os("DEVICE_ARENA_FAR").is_some(),
            _ => false,
        };
        let is_roomy = is_meant && free >= 8 << 30;
        let (word, name) = (if is_roomy { "backend" } else { "skipped" }, &subject.name);
        println!("{word}: {name}: four GiB and more, for devices with 8 GiB free, and hosts with DEVICE_ARENA_FAR set");
        is_roomy
    })
}

#[test]
fn slots_beyond_four_gib_are_themselves() {
    let slots =
        [Slot::new(1, 0, 64 << 10), Slot::new(2, FAR, 64 << 10), Slot::new(3, FAR + (64 << 10), 64 << 10)];
    let plan = MemoryPlan::builder().alignment(256).slots(slots).build().unwrap();
    for subject in roomy() {
        let arena = subject.arena(&plan).unwrap();
        let mut run = arena.begin().unwrap();
        let values: Vec<u32> = (0..16 << 10).collect();
        assert_eq!(run.write(2, &values).unwrap(), values.len());
        assert_eq!(run.copy_prefix::<u32>(3, 2, usize::MAX).unwrap(), values.len());
        let mut copies = run.copies();
        copies.rows::<u32>(&Rows::new(2, 100).from(2, 50, 1000).to(1, 0, 100)).unwrap();
        copies.launch().unwrap();
        let view = run.finish().unwrap();
        assert_eq!(view.slot::<u32>(3).unwrap().to_vec().unwrap(), values);
        let near = view.slot::<u32>(1).unwrap().slice(..201).unwrap().to_vec().unwrap();
        assert_eq!((near[0], near[99], near[100], near[199], near[200]), (50, 149, 1050, 1149, 0));
        let mut far = [0u32; 2];
        assert_eq!(view.read_at((FAR + 4) / 4, &mut far).unwrap(), 2);
        assert_eq!(far, [1, 2]);
    }
}

/// The same plan behind 4 GiB, so that whoever cuts an offset off writes before it.
fn moved(plan: &MemoryPlan) -> MemoryPlan {
    let slots = plan.slots().iter().cloned().map(|mut slot| {
        slot.offset += FAR;
        slot
    });
    MemoryPlan::builder().slots(slots).total(FAR + plan.total()).build().unwrap()
}

#[test]
fn programs_beyond_four_gib_agree_with_the_model() {
    for subject in roomy() {
        let config = Config { cases: 1, failure_persistence: None, ..Config::default() };
        let programs = (plan(), prop::collection::vec(step(), 20..40));
        let outcome = TestRunner::new(config).run(&programs, |(plan, steps)| {
            let plan = moved(&plan);
            let arena = subject.arena(&plan).map_err(fail)?;
            run_steps(&arena, None, Model::from(FAR, &plan), &steps)?;
            let mut near = vec![1u8; 64 << 10];
            arena.begin().map_err(fail)?.read_at(0, &mut near).map_err(fail)?;
            prop_assert!(near.iter().all(|&byte| byte == 0), "something near was written");
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{}: {failure}", subject.name);
        }
    }
}
