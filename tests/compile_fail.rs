//! What safe Rust must refuse to compile. The expected messages are those of the newest stable compiler; after a
//! compiler update, `TRYBUILD=overwrite cargo test --test compile_fail` writes them anew, to be read in the diff.

#[test]
fn unsound_uses_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile_fail/*.rs");
    #[cfg(feature = "allocator-api2")]
    cases.compile_fail("tests/compile_fail/allocator/*.rs");
}
