//! Plans, planners and schedules held against what they mean, byte by byte and pair by pair.

use arbitrary::{Arbitrary, Unstructured};
use device_arena::Error;
use device_arena::plan::{
    Buffer, Hazard, MemoryPlan, Planned, Planner, Slot, Step, buffers_from_csv, buffers_to_csv, lower_bound,
};

/// The end of a chain of aliases, by going along it. None where it does not end, or leads nowhere.
fn root(id: u64, alias_of: &impl Fn(u64) -> Option<Option<u64>>, most: usize) -> Option<u64> {
    let mut at = id;
    for _ in 0..=most {
        match alias_of(at)? {
            Some(target) => at = target,
            None => return Some(at),
        }
    }
    None
}

/// Two slots that share a byte and a step without being aliases, by looking at every pair.
#[must_use]
pub fn clashing(slots: &[Slot]) -> Vec<(u64, u64)> {
    let alias_of = |node| slots.iter().find(|slot| slot.node == node).map(|slot| slot.alias_of);
    let root = |slot: &Slot| root(slot.node, &alias_of, slots.len());
    let mut found = Vec::new();
    for (index, one) in slots.iter().enumerate() {
        for other in &slots[..index] {
            let bytes =
                |slot: &Slot| i128::from(slot.offset)..i128::from(slot.offset) + i128::from(slot.size);
            let (a, b) = (bytes(one), bytes(other));
            let share_bytes = a.start.max(b.start) < a.end.min(b.end);
            let share_steps = match (&one.lifetime, &other.lifetime) {
                (Some(a), Some(b)) => a.start.max(b.start) < a.end.min(b.end),
                _ => true,
            };
            if share_bytes && share_steps && root(one) != root(other) {
                found.push((one.node.min(other.node), one.node.max(other.node)));
            }
        }
    }
    found
}

/// Says what is wrong with a plan of these buffers, by looking at every pair.
#[must_use]
pub fn fault_of(plan: &MemoryPlan, buffers: &[Buffer]) -> Option<String> {
    if plan.len() != buffers.len() {
        return Some(format!("{} slots for {} buffers", plan.len(), buffers.len()));
    }
    let mut slots = Vec::new();
    for buffer in buffers {
        let Some(slot) = plan.get(buffer.id) else { return Some(format!("{} has no slot", buffer.id)) };
        let target = buffer.alias_of.and_then(|target| plan.get(target));
        let is_live = match &slot.lifetime {
            None => true,
            Some(steps) => {
                !buffer.pinned && steps.start <= buffer.lifetime.start && buffer.lifetime.end <= steps.end
            }
        };
        let rules = [
            ("size", slot.size >= buffer.size),
            ("alignment", slot.offset % buffer.alignment == 0),
            ("offset", buffer.offset.is_none_or(|offset| offset == slot.offset)),
            ("alias", slot.alias_of == buffer.alias_of),
            ("alias's offset", target.is_none_or(|target| target.offset == slot.offset)),
            ("total", slot.offset + slot.size <= plan.total()),
            ("lifetime", is_live),
        ];
        if let Some((rule, _)) = rules.iter().find(|(_, is_kept)| !is_kept) {
            return Some(format!("{slot}: {rule}"));
        }
        let alias_of = |id: u64| buffers.iter().find(|other| other.id == id).map(|other| other.alias_of);
        let mut needed = slot.clone();
        needed.size = buffer.size;
        needed.lifetime = (!buffer.pinned).then(|| buffer.lifetime.clone());
        // What shares bytes is live together, from the first step to the last.
        let family = root(buffer.id, &alias_of, buffers.len());
        for other in buffers.iter().filter(|other| root(other.id, &alias_of, buffers.len()) == family) {
            let steps = (!other.pinned).then(|| other.lifetime.clone());
            needed.lifetime = match (needed.lifetime, steps) {
                (Some(all), Some(own)) => Some(all.start.min(own.start)..all.end.max(own.end)),
                _ => None,
            };
        }
        slots.push(needed);
    }
    clashing(&slots).first().map(|pair| format!("{pair:?} clash"))
}

/// Plans buffers, and holds the answer against everything that was promised. None where they can't be planned, and the
/// naive look at them says why.
///
/// # Errors
///
/// Where the crate and the naive check disagree.
pub fn check_planner(buffers: &[Buffer], planner: &Planner) -> Result<Option<Planned>, String> {
    let planned = match planner.plan(buffers) {
        Ok(planned) => planned,
        Err(Error::Plan(fault)) => {
            return if is_plannable(buffers) {
                Err(format!("refused without a reason: {fault}"))
            } else {
                Ok(None)
            };
        }
        Err(other) => return Err(format!("an error of another kind: {other}")),
    };
    if !is_plannable(buffers) {
        return Err("it was planned".to_owned());
    }
    let plan = planned.plan();
    if let Some(fault) = fault_of(plan, buffers) {
        return Err(format!("{fault} in {plan:#?}"));
    }
    plan.verify(buffers).map_err(|error| error.to_string())?;
    let own_bound = lower_bound(buffers).map_err(|error| error.to_string())?;
    let most_live = most_live(buffers);
    let end = plan.iter().map(|slot| slot.offset + slot.size).max().unwrap_or(0);
    let rules = [
        ("the peak is the end", planned.peak() == end),
        ("the peak is no less than the bound", planned.peak() >= planned.lower_bound()),
        ("alignment raises the bound", planned.lower_bound() >= own_bound),
        ("no less than what is live", own_bound >= most_live),
        ("no more than greedy", planned.peak() <= planned.greedy_peak()),
        ("waste", planned.waste() == planned.peak() - planned.lower_bound()),
        ("at the bound it is the least", planned.waste() > 0 || planned.is_least()),
    ];
    match rules.iter().find(|(_, is_kept)| !is_kept) {
        Some((rule, _)) => Err(format!("{rule}: {planned}")),
        None => Ok(Some(planned)),
    }
}

/// The most bytes that are live at once, by looking at every step at which one starts.
fn most_live(buffers: &[Buffer]) -> u64 {
    let at = |step: u64| {
        let roots = buffers.iter().filter(|buffer| buffer.alias_of.is_none());
        let live = roots.filter(|buffer| buffer.pinned || buffer.lifetime.contains(&step));
        live.map(|buffer| buffer.size).sum()
    };
    buffers.iter().map(|buffer| at(buffer.lifetime.start)).max().unwrap_or(0)
}

/// Whether buffers keep the rules, said once more.
fn is_plannable(buffers: &[Buffer]) -> bool {
    let of = |id: u64| buffers.iter().find(|buffer| buffer.id == id);
    let alias_of = |id: u64| of(id).map(|buffer| buffer.alias_of);
    let rules = buffers.iter().enumerate().all(|(index, buffer)| {
        let target = buffer.alias_of.map(of);
        buffer.alignment.is_power_of_two()
            && buffer.lifetime.start < buffer.lifetime.end
            && !buffers[..index].iter().any(|other| other.id == buffer.id)
            && target.is_none_or(|target| target.is_some_and(|target| target.size >= buffer.size))
            && root(buffer.id, &alias_of, buffers.len()).is_some()
    });
    if !rules {
        return false;
    }
    // What shares bytes is placed as one.
    let (start, end) = buffers.iter().fold((u64::MAX, 0), |(start, end), buffer| {
        (start.min(buffer.lifetime.start), end.max(buffer.lifetime.end))
    });
    let mut fixed: Vec<Slot> = Vec::new();
    let (mut room, mut highest) = (0u128, 0u128);
    for one in buffers.iter().filter(|buffer| buffer.alias_of.is_none()) {
        let group: Vec<&Buffer> = buffers
            .iter()
            .filter(|buffer| root(buffer.id, &alias_of, buffers.len()) == Some(one.id))
            .collect();
        let alignment = group.iter().map(|buffer| buffer.alignment).max().unwrap_or(1);
        let offsets: Vec<u64> = group.iter().filter_map(|buffer| buffer.offset).collect();
        room += u128::from(one.size) + u128::from(alignment);
        if offsets.iter().any(|offset| *offset != offsets[0] || offset % alignment != 0) {
            return false;
        }
        if let Some(offset) = offsets.first() {
            let is_pinned = group.iter().any(|buffer| buffer.pinned);
            let from = group.iter().map(|buffer| buffer.lifetime.start).min().unwrap_or(0);
            let upto = group.iter().map(|buffer| buffer.lifetime.end).max().unwrap_or(0);
            let steps = if is_pinned { start..end } else { from..upto };
            highest = highest.max(u128::from(*offset) + u128::from(one.size));
            fixed.push(Slot::new(one.id, *offset, one.size).live(steps));
        }
    }
    room + highest <= i64::MAX as u128 && clashing(&fixed).is_empty()
}

/// The least peak of any plan of a few buffers, by placing them in every order: one of them is the order of their offsets in
/// a least plan. Pinned buffers and aliases are not for this.
#[must_use]
pub fn least_peak(buffers: &[Buffer]) -> u64 {
    fn place(left: &mut Vec<&Buffer>, placed: &mut Vec<(u64, Buffer)>, least: &mut u64) {
        let peak = placed.iter().map(|(offset, buffer)| offset + buffer.size).max().unwrap_or(0);
        if peak >= *least {
            return;
        }
        if left.is_empty() {
            *least = peak;
            return;
        }
        for index in 0..left.len() {
            let buffer = left.remove(index);
            placed.push((lowest(buffer, placed), buffer.clone()));
            place(left, placed, least);
            placed.pop();
            left.insert(index, buffer);
        }
    }

    fn lowest(buffer: &Buffer, placed: &[(u64, Buffer)]) -> u64 {
        let mut offset = 0;
        loop {
            let blocks = |(at, other): &&(u64, Buffer)| {
                let meets =
                    buffer.lifetime.start < other.lifetime.end && other.lifetime.start < buffer.lifetime.end;
                meets
                    && other.size > 0
                    && buffer.size > 0
                    && offset < at + other.size
                    && *at < offset + buffer.size
            };
            match placed.iter().find(blocks) {
                Some((at, other)) => offset = (at + other.size).next_multiple_of(buffer.alignment),
                None => return offset,
            }
        }
    }

    let (fixed, mut left): (Vec<&Buffer>, Vec<&Buffer>) =
        buffers.iter().partition(|buffer| buffer.offset.is_some());
    let mut placed = fixed.into_iter().map(|buffer| (buffer.offset.unwrap_or(0), buffer.clone())).collect();
    let mut least = u64::MAX;
    place(&mut left, &mut placed, &mut least);
    least
}

/// The first hazard of a schedule: the step, what kind, and the node that is read or, for bytes that are written twice, zero.
/// It runs the schedule on bytes that know whose they are.
#[must_use]
pub fn first_hazard(plan: &MemoryPlan, steps: &[Step]) -> Option<(usize, &'static str, u64)> {
    let alias_of = |node| plan.get(node).map(|slot| slot.alias_of);
    let storage = |node| root(node, &alias_of, plan.len());
    let mut bytes: Vec<Option<u64>> = vec![None; usize::try_from(plan.total()).unwrap_or(0)];
    let range =
        |node| plan.get(node).map_or(0..0, |slot| slot.offset as usize..(slot.offset + slot.size) as usize);
    for (step, does) in steps.iter().enumerate() {
        let (reads, writes) = (sorted(&does.reads), sorted(&does.writes));
        if let Some(node) = does.reads.iter().chain(&does.writes).find(|node| !plan.has(**node)) {
            return Some((step, "unknown", *node));
        }
        for node in &reads {
            let is_own = |byte: &Option<u64>| byte.is_none_or(|writer| storage(writer) == storage(*node));
            if !bytes[range(*node)].iter().all(is_own) {
                return Some((step, "clobbered", *node));
            }
        }
        for read in &reads {
            for write in &writes {
                let (a, b) = (range(*read), range(*write));
                let share = a.clone().any(|byte| b.contains(&byte));
                if share && storage(*read) != storage(*write) {
                    return Some((step, "in place", *read));
                }
            }
        }
        let mut is_written = vec![false; bytes.len()];
        for node in &writes {
            for byte in range(*node) {
                if std::mem::replace(&mut is_written[byte], true) {
                    return Some((step, "written twice", 0));
                }
                bytes[byte] = Some(*node);
            }
        }
    }
    None
}

fn sorted(nodes: &[u64]) -> Vec<u64> {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Holds the crate's word on a schedule against bytes that know whose they are.
///
/// # Errors
///
/// Where the two disagree.
pub fn check_schedule(plan: &MemoryPlan, steps: &[Step]) -> Result<(), String> {
    let found = match plan.verify_schedule(steps) {
        Ok(()) => None,
        Err(Error::Schedule(hazard)) => Some(match *hazard {
            Hazard::Unknown { step, node } => (step, "unknown", node),
            Hazard::Clobbered { step, slot, by, overwritten, .. } => {
                if overwritten >= step || !slot.overlaps(&by) || !steps[overwritten].writes.contains(&by.node)
                {
                    return Err(format!("{by} did not overwrite {slot} in step {overwritten}"));
                }
                (step, "clobbered", slot.node)
            }
            Hazard::InPlace { step, read, written } if read.overlaps(&written) => {
                (step, "in place", read.node)
            }
            Hazard::WrittenTwice { step, first, second } if first.overlaps(&second) => {
                (step, "written twice", 0)
            }
            other => return Err(format!("{other}")),
        }),
        Err(other) => return Err(format!("an error of another kind: {other}")),
    };
    let expected = first_hazard(plan, steps);
    if found == expected { Ok(()) } else { Err(format!("{found:?}, but the bytes say {expected:?}")) }
}

/// Reads any text as a table of buffers and as a plan, and what was read once more after it was written.
///
/// # Errors
///
/// Where a table does not come back as it was.
pub fn check_table(text: &str) -> Result<(), String> {
    match buffers_from_csv(text) {
        Ok(buffers) => {
            let written = buffers_to_csv(&buffers);
            let again = buffers_from_csv(&written).map_err(|error| format!("{error} in {written}"))?;
            if again != buffers {
                return Err(format!("{again:?} is not {buffers:?}"));
            }
        }
        Err(Error::Table { .. }) => {}
        Err(other) => return Err(format!("an error of another kind: {other}")),
    }
    match MemoryPlan::from_csv(text) {
        Ok(plan) => {
            let clashes = clashing(plan.slots());
            if !clashes.is_empty() {
                return Err(format!("{clashes:?} in {plan:?}"));
            }
            let again = MemoryPlan::from_csv(&plan.to_csv()).map_err(|error| error.to_string())?;
            if again != plan || again.fingerprint() != plan.fingerprint() {
                return Err(format!("{again:?} is not {plan:?}"));
            }
            let (svg, report) = (plan.to_svg(), plan.report(3));
            if !svg.ends_with("</svg>\n") || report.is_empty() {
                return Err("a picture without an end".to_owned());
            }
        }
        Err(Error::Table { .. } | Error::Plan(_)) => {}
        Err(other) => return Err(format!("an error of another kind: {other}")),
    }
    Ok(())
}

/// A buffer as a fuzzer writes it: small numbers, so that buffers meet.
#[derive(Debug, Arbitrary)]
struct RawBuffer {
    id: u8,
    start: u8,
    steps: u8,
    size: u8,
    alignment: u8,
    offset: Option<u8>,
    alias: Option<u8>,
    is_pinned: bool,
    is_huge: bool,
}

impl RawBuffer {
    fn buffer(&self) -> Buffer {
        let start = u64::from(self.start % 16);
        let size = u64::from(self.size) << if self.is_huge { 56 } else { 0 };
        let mut buffer = Buffer::new(self.id.into(), start..start + u64::from(self.steps % 8), size);
        buffer.alignment =
            if self.alignment < 200 { 1 << (self.alignment % 5) } else { self.alignment.into() };
        buffer.offset = self.offset.map(u64::from);
        buffer.alias_of = self.alias.map(u64::from);
        buffer.pinned = self.is_pinned;
        buffer
    }
}

/// Reads `data` as a table, as buffers to plan, and as a schedule on their plan.
///
/// # Panics
///
/// Where the crate and the naive checks disagree.
pub fn fuzz_plan(data: &[u8]) {
    let outcome = match data.split_first() {
        Some((kind, rest)) if kind % 2 == 0 => check_table(&String::from_utf8_lossy(rest)),
        Some((_, rest)) => check_raw(&mut Unstructured::new(rest)),
        None => Ok(()),
    };
    if let Err(mismatch) = outcome {
        panic!("{mismatch}");
    }
}

fn check_raw(raw: &mut Unstructured<'_>) -> Result<(), String> {
    let Ok(seed) = u16::arbitrary(raw) else { return Ok(()) };
    let buffers: Vec<Buffer> = match raw.arbitrary_iter::<RawBuffer>() {
        Ok(list) => list.take(24).flatten().map(|raw| raw.buffer()).collect(),
        Err(_) => return Ok(()),
    };
    let planner = Planner::new().seed(seed.into()).steps(u64::from(seed) % 2000);
    let Some(planned) = check_planner(&buffers, &planner)? else { return Ok(()) };
    if planned.peak() > 1 << 16 {
        return Ok(());
    }
    let node = |raw: u8| buffers.get(usize::from(raw) % buffers.len().max(1)).map_or(0, |buffer| buffer.id);
    let steps = raw.arbitrary::<Vec<(Vec<u8>, Vec<u8>)>>().unwrap_or_default();
    let nodes = |raw: &Vec<u8>| raw.iter().take(4).map(|raw| node(*raw)).collect::<Vec<_>>();
    let steps: Vec<Step> =
        steps.iter().take(16).map(|(reads, writes)| Step::new(nodes(reads), nodes(writes))).collect();
    check_schedule(planned.plan(), &steps)
}
