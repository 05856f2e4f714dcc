//! The main job, run as a process: `examples/embed`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The example's binary. `cargo test` builds it beside the tests; `cargo test --test embed` alone does not.
fn example() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let profile = test.parent()?.parent()?;
    let example = profile.join("examples").join(format!("embed{}", std::env::consts::EXE_SUFFIX));
    example.exists().then_some(example)
}

/// Runs the example, or says that `test` is skipped.
fn embed(test: &str, args: &[&str]) -> Option<Output> {
    let Some(example) = example() else {
        println!("skipped: {test}: the example `embed` is not built, `cargo build --examples` does it");
        return None;
    };
    Some(Command::new(example).args(args).output().expect("the example starts"))
}

/// Runs the example, which has to succeed with one line of JSON on standard output and nothing on standard error.
fn embed_json(test: &str, args: &[&str]) -> Option<Value> {
    let output = embed(test, &[args, &["--json"]].concat())?;
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{:?}: {stderr}", output.status);
    assert_eq!(stderr, "");
    assert_eq!(stdout.matches('\n').count(), 1, "one line: {stdout}");
    Some(serde_json::from_str(stdout).expect("JSON"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("what is printed is UTF-8")
}

/// A file that is removed again.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &[u8]) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("embed-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("the file is written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path of UTF-8")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn assert_steady(report: &Value) {
    assert_eq!(report["allocations_steady"], 0, "{report}");
    assert_eq!(report["stale_refused"], true, "{report}");
    assert_eq!(report["contended_refused"], true, "{report}");
}

#[test]
fn the_readme_is_embedded_with_no_allocation_after_the_warm_up() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    // A GPU over host memory takes long for each call of so many texts.
    let Some(named) = embed_json("readme", &[readme, "--calls", "6"]) else { return };
    assert_steady(&named);
    assert_eq!(named["calls"], 6);
    let number = |key: &str| named[key].as_u64().expect(key);
    assert!(number("texts") > 0 && number("tokens") > 0 && number("allocations_warmup") > 0, "{named}");
    assert!(number("high_water_bytes") >= number("texts") * 256 * 4, "{named}");
    let keys: Vec<_> = named.as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = [
        "executor",
        "texts",
        "tokens",
        "calls",
        "allocations_warmup",
        "allocations_steady",
        "high_water_bytes",
        "stale_refused",
        "contended_refused",
        "wrong_executor_refused",
    ];
    assert_eq!(keys, expected);
    let has_device = named["executor"] != "host";
    assert_eq!(named["wrong_executor_refused"], if has_device { Value::Bool(true) } else { Value::Null });
    let unnamed = embed_json("readme", &["--calls", "6"]);
    assert_eq!(unnamed, Some(named), "the README is what is read where nothing is named");
}

#[test]
fn the_table_says_what_happened() {
    let Some(output) = embed("table", &["--calls", "5"]) else { return };
    assert!(output.status.success());
    let table = text(&output.stdout);
    for row in ["executor", "texts", "tokens", "driver allocations", "high water", "time a call"] {
        assert!(table.lines().any(|line| line.starts_with(row)), "no {row} in\n{table}");
    }
    assert!(table.contains(", 0 after\n"), "{table}");
    assert!(table.contains("readable still"), "{table}");
    assert!(table.contains("refused: stale view of generation 5"), "{table}");
    assert!(table.contains("the arena is contended, held by 1 reader"), "{table}");
    assert!(!table.contains("NOT REFUSED"), "{table}");
}

#[test]
fn few_calls_are_all_warm_up() {
    for calls in 1..=4 {
        let Some(report) = embed_json("calls", &["--calls", &calls.to_string()]) else { return };
        assert_steady(&report);
        assert_eq!(report["calls"], calls);
    }
}

#[test]
fn an_empty_file_has_no_texts() {
    let file = File::new("empty", b"");
    let Some(report) = embed_json("empty", &[file.path(), "--query", "anything"]) else { return };
    assert_steady(&report);
    assert_eq!((&report["texts"], &report["tokens"]), (&0.into(), &0.into()));
    assert_eq!(report["calls"], 50, "where no number is given");
    assert_eq!(report["nearest"], Value::Array(Vec::new()));
}

#[test]
fn any_bytes_are_texts() {
    // Every byte, in an order that repeats only after 64 KiB.
    let bytes: Vec<u8> = (0..1u32 << 16).map(|i| (i * (i >> 8 | 1)) as u8).collect();
    let file = File::new("binary", &bytes);
    let args = [file.path(), "--calls", "4", "--query", "any bytes"];
    let Some(output) = embed("binary", &args) else { return };
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!text(&output.stdout).chars().any(|c| c.is_control() && c != '\n'), "a terminal would obey");
    let report = embed_json("binary", &[file.path(), "--calls", "4"]).expect("it was there just now");
    assert_steady(&report);
    let newlines = bytes.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(report["texts"], newlines + usize::from(bytes.last() != Some(&b'\n')));
}

#[test]
fn one_line_may_be_enormous() {
    let word = File::new("word", &vec![b'x'; 4 << 20]);
    let Some(report) = embed_json("enormous", &[word.path(), "--calls", "4"]) else { return };
    assert_steady(&report);
    assert_eq!((&report["texts"], &report["tokens"]), (&1.into(), &1.into()));

    let words = File::new("words", &b"of many words, ".repeat(1 << 16));
    let report = embed_json("enormous", &[words.path(), "--calls", "4"]).expect("it was there just now");
    assert_steady(&report);
    assert_eq!((&report["texts"], &report["tokens"]), (&1.into(), &(4 << 16).into()));
}

#[test]
fn line_ends_are_no_part_of_a_text() {
    for (content, texts) in [("one\ntwo", 2), ("one\r\ntwo\r\n", 2), ("\n", 1), ("one\n\n\ntwo", 4)] {
        let file = File::new(&format!("ends-{}", content.len()), content.as_bytes());
        let Some(report) = embed_json("line ends", &[file.path(), "--calls", "2"]) else { return };
        assert_eq!(report["texts"], texts, "{content:?}");
        let tokens = content.split_whitespace().count();
        assert_eq!(report["tokens"], tokens, "{content:?}");
    }
}

#[test]
fn a_query_finds_its_own_line_first() {
    let first = File::new("first", b"the cat sat on the mat\r\n\nan arena is rewound by every call\n");
    let second = File::new("second", b"a tape is bytes and offsets\nstale views are refused, always");
    let files = [first.path(), second.path()];
    let lines = [
        ("the cat sat on the mat", first.path(), 1),
        ("an arena is rewound by every call", first.path(), 3),
        ("A tape is bytes and offsets", second.path(), 1),
        ("stale views are refused, always", second.path(), 2),
    ];
    for (query, file, line) in lines {
        let Some(report) = embed_json("query", &[&files[..], &["--query", query]].concat()) else { return };
        let nearest = &report["nearest"][0];
        assert_eq!((&nearest["file"], &nearest["line"]), (&file.into(), &line.into()), "{query}: {report}");
        assert!(nearest["score"].as_f64() > Some(0.999), "{query}: {report}");
        assert_steady(&report);
    }
    let query = ["--query", "stale views are refused, always"];
    let output = embed("query", &[&files[..], &query].concat()).expect("it was there just now");
    let expected = format!("score  line\n1.000  {}:2: stale views are refused, always\n", second.path());
    assert!(text(&output.stdout).contains(&expected), "{}", text(&output.stdout));
}

#[test]
fn a_gpu_answers_as_the_host_does() {
    let args = ["--calls", "4", "--query", "a view of an earlier call"];
    let Some(best) = embed_json("host and best", &args) else { return };
    let host =
        embed_json("host and best", &[&args[..], &["--host"]].concat()).expect("it was there just now");
    assert_eq!((&host["executor"], &host["wrong_executor_refused"]), (&"host".into(), &Value::Null));
    if cfg!(feature = "cuda") && best["executor"] == "host" {
        let required = std::env::var("DEVICE_ARENA_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|name| name == "cuda"), "cuda is required, and the host was best");
        println!("backend skipped: cuda (the host was best)");
    }
    assert_eq!((&best["texts"], &best["tokens"]), (&host["texts"], &host["tokens"]));
    let nearest = |report: &Value| report["nearest"].as_array().expect("an array").clone();
    assert_eq!(nearest(&best).len(), 5, "{best}");
    for (best, host) in nearest(&best).iter().zip(nearest(&host)) {
        let score = |found: &Value| found["score"].as_f64().expect("a number");
        assert!((score(best) - score(&host)).abs() <= 1e-5, "{best} where the host has {host}");
        assert_eq!((&best["file"], &best["line"]), (&host["file"], &host["line"]));
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    for missing in ["no-such-file.txt", env!("CARGO_MANIFEST_DIR")] {
        let Some(output) = embed("missing", &["--json", missing]) else { return };
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "");
        let message = text(&output.stderr);
        assert!(message.contains(missing) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn bad_arguments_are_refused() {
    let cases: [&[&str]; 5] =
        [&["--no-such"], &["--calls", "0"], &["--calls", "many"], &["--calls"], &["--query"]];
    for args in cases {
        let Some(output) = embed("arguments", args) else { return };
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        assert!(text(&output.stderr).contains("see --help"), "{args:?}");
    }
    let help = embed("arguments", &["--help"]).expect("it was there just now");
    assert!(help.status.success() && text(&help.stdout).contains("--query TEXT"));
}
