//! Pictures and reports.

use device_arena::plan::{MemoryPlan, Picture, Planner, Slot};
use proptest::prelude::{Strategy, any};
use proptest::{prop_assert, proptest};

use crate::buffers::{all_kinds, config};

/// What a reader of XML would refuse: it goes through every tag and every entity.
fn fault_of_xml(text: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&', '>']) {
        let (kind, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        match kind {
            b'&' => {
                let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
                if !known.iter().any(|entity| after.starts_with(entity)) {
                    return Some(format!("an entity at {after:.20}"));
                }
                rest = after;
            }
            b'<' => {
                let (tag, after) = after.split_once('>')?;
                let name = tag.split([' ', '/']).find(|name| !name.is_empty())?;
                if tag.matches('"').count() % 2 == 1 || tag.contains('<') {
                    return Some(format!("a tag {tag}"));
                }
                if tag.starts_with('/') {
                    if open.pop() != Some(name) {
                        return Some(format!("{name} is closed"));
                    }
                } else if !tag.ends_with('/') {
                    open.push(name);
                }
                rest = after;
            }
            _ => return Some("a stray >".to_owned()),
        }
    }
    let control = text.chars().find(|character| character.is_control() && *character != '\n');
    control
        .map(|control| format!("{control:?}"))
        .or_else(|| open.last().map(|name| format!("{name} is open")))
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_picture_is_well_formed_whatever_names_there_are(
        buffers in all_kinds(12),
        names in proptest::collection::vec(any::<String>().prop_map(Some), 12),
        is_true in any::<bool>(),
        capacity in proptest::option::of(any::<u64>()),
    ) {
        let mut named = buffers;
        named.iter_mut().zip(names).for_each(|(buffer, name)| buffer.name = name);
        let plan = Planner::new().steps(50).plan(&named).unwrap().into_plan();
        let mut picture = Picture::new().title("<\"&'>\u{0}").size(0, 5000);
        if is_true {
            picture = picture.true_to_time();
        }
        if let Some(capacity) = capacity {
            picture = picture.capacity(capacity);
        }
        let svg = picture.draw(&plan);
        let fault = fault_of_xml(&svg);
        prop_assert!(fault.is_none(), "{fault:?} in {svg}");
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let with_bytes = plan.iter().filter(|slot| slot.size > 0).count();
        let drawn = svg.matches("<title>node ").count();
        prop_assert!(drawn == with_bytes, "{drawn} of {with_bytes}");
        prop_assert!(!plan.report(3).is_empty());
    }
}

#[test]
fn a_picture_shows_each_node_the_peak_and_the_capacity() {
    let slots = [Slot::new(1, 0, 1 << 20).live(0..9).named("k & v"), Slot::new(2, 1 << 20, 1 << 19)];
    let plan = MemoryPlan::builder().slots(slots).build().unwrap();
    let svg = Picture::new().title("one").capacity(2 << 20).draw(&plan);
    for part in [
        ">one</text>",
        "<title>node 1 `k &amp; v` (1048576 bytes at 0, live in 0..9)</title>",
        "<title>node 2 (524288 bytes at 1048576, live always)</title>",
        ">peak 1.50 MiB</text>",
        ">capacity 2 MiB</text>",
        ">k &amp; v</text>",
    ] {
        assert!(svg.contains(part), "{part} in {svg}");
    }
    assert_eq!(fault_of_xml(&MemoryPlan::builder().build().unwrap().to_svg()), None);
}

#[test]
fn extremes_are_drawn() {
    let far = Slot::new(1, u64::MAX - 8, 8).live(u64::MAX - 1..u64::MAX);
    let plan = MemoryPlan::builder().slots([far, Slot::new(2, 0, u64::MAX - 8).live(0..1)]).build().unwrap();
    for picture in [Picture::new(), Picture::new().true_to_time().capacity(u64::MAX)] {
        let svg = picture.draw(&plan);
        assert_eq!(fault_of_xml(&svg), None);
        assert!(svg.contains("16.00 EiB") || svg.contains("16 EiB"), "{svg}");
    }
}

#[test]
fn a_report_names_the_largest_of_the_busiest_steps() {
    let slots = [
        Slot::new(1, 0, 700).live(0..2),
        Slot::new(2, 0, 600).live(4..6).named("a\nb"),
        Slot::new(3, 600, 300).live(3..6),
        Slot::new(4, 600, 100).live(5..6).alias_of(3),
        Slot::new(5, 900, 10),
    ];
    let plan = MemoryPlan::builder().slots(slots).build().unwrap();
    let report = plan.report(2);
    let lines: Vec<_> = report.lines().collect();
    assert_eq!(lines[0], "peak 910 bytes, 5 nodes, alignment 1");
    assert_eq!(lines[1], "most live in steps 4..6: 910 bytes, 100.0% of the peak, in 3 nodes");
    assert!(lines[3].ends_with("600         65.9%             0  2 `a\\nb`, live in 4..6"), "{report}");
    assert!(lines[4].ends_with("3, live in 3..6") && lines[5].ends_with("1 smaller ones"), "{report}");
    assert_eq!(plan.report(0).lines().count(), 2);
    let always = MemoryPlan::builder().slot(Slot::new(1, 0, 8)).build().unwrap().report(9);
    assert!(always.contains("always live: 8 bytes, 100.0% of the peak, in 1 nodes"), "{always}");
}
