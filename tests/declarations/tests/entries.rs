//! Entries that differ from the declaration don't compile, and the message says where.

#[test]
fn entries_that_differ_from_their_declarations_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/entries/right.rs");
    cases.compile_fail("tests/entries/wrong/*.rs");
}
