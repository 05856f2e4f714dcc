//! MiniMalloc's eleven problems, where their files are.

use std::path::PathBuf;

use device_arena::plan::{Buffer, Planner, buffers_from_csv};
use device_arena_model::fault_of;

const CAPACITY: u64 = 1_048_576;

/// The problem of that letter. `DEVICE_ARENA_MINIMALLOC` names the folder; a skip is printed.
fn problem(letter: char) -> Option<Vec<Buffer>> {
    let folder = std::env::var_os("DEVICE_ARENA_MINIMALLOC").map(PathBuf::from);
    let folder =
        folder.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/minimalloc").into());
    let path = folder.join(format!("{letter}.{CAPACITY}.csv"));
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(buffers_from_csv(&text).unwrap()),
        Err(error) => {
            println!("skipped: MiniMalloc's problem {letter}: {}: {error}", path.display());
            None
        }
    }
}

/// The most bytes that are live at once, as a published table has it.
const BOUNDS: [(char, usize, u64); 11] = [
    ('A', 154, 1_048_576),
    ('B', 170, 1_048_576),
    ('C', 203, 1_039_360),
    ('D', 213, 986_112),
    ('E', 215, 1_048_576),
    ('F', 296, 1_048_576),
    ('G', 308, 1_048_576),
    ('H', 316, 1_048_576),
    ('I', 374, 1_048_576),
    ('J', 409, 989_184),
    ('K', 454, 1_048_576),
];

/// The steps end the search, so that this does not depend on the machine.
#[test]
fn the_eleven_problems_are_planned_within_the_aim() {
    let mut ratios = Vec::new();
    for (letter, count, bound) in BOUNDS {
        let Some(buffers) = problem(letter) else { continue };
        let planned = Planner::new().steps(60_000).plan(&buffers).unwrap();
        assert_eq!((buffers.len(), planned.lower_bound()), (count, bound), "{letter}");
        assert_eq!(fault_of(planned.plan(), &buffers), None, "{letter}");
        planned.plan().verify(&buffers).unwrap();
        let ratio = planned.peak() as f64 / CAPACITY as f64;
        println!("{letter}: {ratio:.3}, {planned}");
        assert!(ratio <= 1.2, "{letter}: {planned}");
        ratios.push(ratio);
    }
    if ratios.len() == BOUNDS.len() {
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        println!("geometric mean {mean:.4}");
        assert!(mean <= 1.12, "{mean}");
    }
}
