//! The examples beside the main job, run as processes: `doctor`, `compact` and `plan`.

#[macro_use]
mod vendors;

use std::path::PathBuf;
use std::process::{Command, Output};

#[cfg(any(feature = "cuda", feature = "rocm"))]
use device_arena::backend::{AnyBackend, Backend, Vendor};

/// The example's binary. `cargo test` builds it beside the tests; `cargo test --test examples` alone does not.
fn example(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let profile = test.parent()?.parent()?;
    let example = profile.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    example.exists().then_some(example)
}

/// Runs an example with changes of the environment, or says that it is skipped.
fn run(name: &str, args: &[&str], environment: &[(&str, &str)]) -> Option<Output> {
    let Some(example) = example(name) else {
        println!("skipped: the example `{name}` is not built, `cargo build --examples` does it");
        return None;
    };
    let mut command = Command::new(example);
    Some(command.args(args).envs(environment.iter().copied()).output().expect("the example starts"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("what is printed is UTF-8")
}

/// The values of a report by their names, each of which comes once.
fn facts(report: &str) -> Vec<(&str, &str)> {
    let facts: Vec<_> =
        report.lines().map(|line| line.split_once(": ").expect("each line is `name: value`")).collect();
    for (index, (name, _)) in facts.iter().enumerate() {
        assert!(!facts[..index].iter().any(|(earlier, _)| earlier == name), "{name} twice in\n{report}");
        assert!(!name.contains(char::is_whitespace), "{name}");
    }
    facts
}

fn fact<'r>(report: &'r str, name: &str) -> &'r str {
    let found = facts(report).into_iter().find(|(found, _)| *found == name);
    found.unwrap_or_else(|| panic!("no {name} in\n{report}")).1
}

fn doctor(environment: &[(&str, &str)]) -> Option<String> {
    let output = run("doctor", &[], environment)?;
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(text(&output.stderr), "");
    Some(text(&output.stdout).to_owned())
}

#[test]
fn the_doctor_reports_without_a_driver() {
    // Where the variable is set, no other name is tried.
    let nowhere = "/no/such/driver.so";
    let variables = [("DEVICE_ARENA_CUDA_LIBRARY", nowhere), ("DEVICE_ARENA_ROCM_LIBRARY", nowhere)];
    let Some(report) = doctor(&variables) else { return };
    assert_eq!(fact(&report, "crate.version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(fact(&report, "best"), "host 0");
    for (vendor, is_on) in [("cuda", cfg!(feature = "cuda")), ("rocm", cfg!(feature = "rocm"))] {
        let library = fact(&report, &format!("{vendor}.library"));
        assert!(library.contains(if is_on { nowhere } else { "not in this build" }), "{report}");
    }
    for kind in ["null", "stack", "heap", "static", "code", "host.arena"] {
        let answer = fact(&report, &format!("pointer.{kind}"));
        assert!(answer.starts_with("unregistered"), "{kind}: {answer}");
    }
    assert!(!report.contains("UNEXPECTED"), "{report}");
}

on_each_vendor!(the_doctor_finds_nothing_wrong_with_a_gpu);

#[cfg(any(feature = "cuda", feature = "rocm"))]
fn the_doctor_finds_nothing_wrong_with_a_gpu(backend: AnyBackend) {
    let vendor = backend.vendor();
    let Some(report) = doctor(&[]) else { return };
    let first = vendors::ALL.iter().find(|vendor| vendors::load(**vendor).is_ok());
    assert_eq!(fact(&report, "best"), format!("{} 0", first.unwrap()));
    for part in ["executor", "copies", "kernels"] {
        assert_eq!(fact(&report, &format!("{vendor}.0.{part}")), "works");
    }
    assert!(!fact(&report, &format!("{vendor}.0.image")).contains("none"), "{report}");
    let is_nvidia = vendor == Vendor::Cuda;
    if is_nvidia {
        assert_eq!(fact(&report, "cuda.0.image.arena.ptx"), "loads");
    }
    // AMD's runtime does not say how it came to memory, and knows nothing of addresses without any.
    let (nvidia, amd) = ("device 0, cuda's, ", "device 0, rocm's, ");
    let answers = [
        ("block.start", "direct, at 0 of 1048576 bytes", "at 0 of 1048576 bytes"),
        ("block.interior", "direct, at 524289 of 1048576 bytes", "at 524289 of 1048576 bytes"),
        ("mapped", "virtual", "at 0 of "),
        ("pool", "of a pool", "at 0 of 1048576 bytes"),
    ];
    for (kind, of_nvidia, of_amd) in answers {
        let answer = fact(&report, &format!("pointer.{vendor}.0.{kind}"));
        let expected = if is_nvidia { nvidia.to_owned() + of_nvidia } else { amd.to_owned() + of_amd };
        assert!(answer.starts_with(&expected), "{kind}: {answer}");
    }
    let answers = [
        ("block.coherent", "pinned host"),
        ("block.freed", "unregistered"),
        ("pinned", "pinned host"),
        ("registered", "pinned host"),
        ("managed", "managed 0"),
        ("reserved", if is_nvidia { "unmapped" } else { "unregistered" }),
    ];
    for (kind, expected) in answers {
        let answer = fact(&report, &format!("pointer.{vendor}.0.{kind}"));
        assert!(answer.starts_with(expected), "{kind}: {answer}");
    }
    assert!(!report.contains("UNEXPECTED") && !report.contains("WRONG"), "{report}");
}

/// Whether there is a GPU of any vendor's; skips are printed, and who is required has to be here.
fn has_gpu() -> bool {
    let present: Vec<_> = vendors::ALL.iter().filter_map(|vendor| vendors::present(*vendor)).collect();
    !present.is_empty()
}

#[test]
fn a_room_overflows_grows_and_suffices_from_then_on() {
    let Some(output) = run("compact", &[], &[]) else { return };
    let report = text(&output.stdout);
    assert!(output.status.success(), "{report}{}", text(&output.stderr));
    if !has_gpu() {
        assert!(report.starts_with("skipped: "), "{report}");
        return;
    }
    let calls: Vec<Vec<_>> = report
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.first().is_some_and(|word| word.parse::<u32>().is_ok()))
        .collect();
    let outcomes: Vec<_> = calls.iter().map(|words| (words[0], words[3])).collect();
    assert_eq!(outcomes, [("1", "overflow"), ("1", "collected"), ("2", "collected"), ("3", "collected")]);
    assert_eq!(calls[1][1], calls[0][2], "the room that the kernel asked for");
    assert_eq!(calls[3][4], "0", "a steady call allocates nothing: {report}");
    assert!(report.ends_with("the same as on the host\n"), "{report}");
}

#[test]
fn no_words_and_none_but_empty_ones_are_kept_as_well() {
    if !has_gpu() {
        return;
    }
    for (name, content) in [("nothing", ""), ("spaces", "   \n \n"), ("words", "  one two   three\n\nfour ")]
    {
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("compact-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("the file is written");
        let output = run("compact", &[path.to_str().expect("a path of UTF-8")], &[]);
        let _ = std::fs::remove_file(&path);
        let Some(output) = output else { return };
        assert!(output.status.success(), "{name}: {}", text(&output.stdout));
    }
    let Some(output) = run("compact", &["no-such-file"], &[]) else { return };
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no-such-file"));
}

#[test]
fn the_planner_says_what_it_found_a_line_a_file() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("plan-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (file, svg) = (folder.join("three.128.csv"), folder.join("three.svg"));
    std::fs::write(&file, "id,lower,upper,size\na,0,2,64\nb,1,3,32\nc,2,4,64\n")
        .expect("the file is written");
    let (file, svg) = (file.to_str().expect("UTF-8"), svg.to_str().expect("UTF-8"));
    let output = run("plan", &["--json", "--svg", svg, file], &[]);
    let picture = std::fs::read_to_string(svg);
    let missing = run("plan", &["--json", "no-such-file.csv"], &[]);
    let _ = std::fs::remove_dir_all(&folder);
    let (Some(output), Some(missing)) = (output, missing) else { return };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let line: serde_json::Value = serde_json::from_str(text(&output.stdout)).expect("one line of JSON");
    let number = |key: &str| line[key].as_u64();
    assert_eq!((line["file"].as_str(), number("buffers")), (Some(file), Some(3)));
    assert_eq!((number("lower_bound"), number("peak")), (Some(96), Some(96)));
    assert_eq!(line["ratio_to_capacity"].as_f64(), Some(0.75));
    assert!(line["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    assert!(picture.expect("a picture").contains("<title>node 1 `b` (32 bytes at 64, live in 1..3)</title>"));
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("no-such-file.csv"));
}
