//! Tests that need a process of their own: the test runs this same program once more, for itself alone.

use std::process::Command;

use crate::vendor;

const VARIABLE: &str = "DEVICE_ARENA_TEST_CHILD";

/// Whether this is the process that a test has started for itself.
pub(crate) fn is_child(test: &str) -> bool {
    std::env::var(VARIABLE).is_ok_and(|name| name == test)
}

/// Runs `test`, by its path, in a process of its own with these variables set, or removed where there is no value. Fails
/// where it fails, or did not run.
#[track_caller]
pub(crate) fn run_child(test: &str, variables: &[(&str, Option<&str>)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(VARIABLE, test);
    command.env(vendor::VARIABLE, vendor::vendor().to_string());
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}");
    assert!(output.status.success(), "the child failed:\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "the child ran no test {test}");
    text
}

/// In the child, whether to go on; in the parent, runs the child.
#[track_caller]
pub(crate) fn alone(test: &str, variables: &[(&str, Option<&str>)]) -> bool {
    if !is_child(test) {
        run_child(test, variables);
        return false;
    }
    true
}
