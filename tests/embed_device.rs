//! The verbs of `examples/embed` on a GPU against those on the host: the same tokens, and rows within 1e-5.
#![cfg(any(feature = "cuda", feature = "rocm"))]

#[allow(dead_code, reason = "the example uses all of it")]
#[path = "../examples/embed/device.rs"]
mod device;
#[macro_use]
mod vendors;
#[path = "../examples/embed/verbs.rs"]
mod verbs;

use device_arena::backend::AnyBackend;
use device_arena::{Arena, Error, Executor, Tape, TapeView};

use self::device::Device;

on_each_vendor!(
    a_file_has_the_tokens_and_rows_that_it_has_on_the_host,
    any_bytes_are_taken_apart_as_on_the_host,
    texts_without_bytes_or_tokens_have_rows_of_zeros,
    texts_begin_and_end_anywhere,
    a_call_after_larger_and_smaller_ones_is_right,
);

/// A device and its arenas, for several calls in a row.
struct Subject {
    device: Device,
    tokens: Arena,
    rows: Arena,
}

impl Subject {
    fn new(backend: AnyBackend) -> Self {
        let executor = Executor::on(backend, 0).unwrap();
        let (tokens, rows) = (Arena::new(&executor), Arena::new(&executor));
        Self { device: Device::new(&executor).unwrap(), tokens, rows }
    }

    /// Tokenizes and embeds on both, and compares.
    fn check(&self, texts: &TapeView) {
        let (tokens_arena, rows_arena) = (Arena::host(), Arena::host());
        let host = Executor::host().unwrap();
        let expected = verbs::tokenize(&host, texts, &tokens_arena).unwrap();
        let tokens = self.device.tokenize(texts, &self.tokens).unwrap();

        assert_eq!(tokens.first.to_vec().unwrap(), *expected.first.read().unwrap());
        assert_eq!(tokens.offsets.to_vec().unwrap(), *expected.strings.offsets().read().unwrap());
        let bytes = expected.strings.bytes();
        let found = tokens.bytes.slice(..bytes.len()).unwrap().to_vec().unwrap();
        assert!(found == *bytes.read().unwrap());

        let expected = verbs::embed(&host, &expected, &rows_arena).unwrap();
        let rows = self.device.embed(&tokens, &self.rows).unwrap();
        assert!(matches!(rows.read(), Err(Error::Device { .. })));
        let (rows, expected) = (rows.to_vec().unwrap(), expected.read().unwrap());
        assert_eq!(rows.len(), expected.len());
        for (index, (value, expected)) in rows.iter().zip(&*expected).enumerate() {
            let place = (index / verbs::DIM, index % verbs::DIM);
            assert!((value - expected).abs() <= 1e-5, "{value} where the host has {expected}, at {place:?}");
        }
    }

    fn check_items(&self, items: &[&[u8]]) {
        self.check(&Tape::from_items(items).unwrap().view());
    }
}

fn a_file_has_the_tokens_and_rows_that_it_has_on_the_host(backend: AnyBackend) {
    let subject = Subject::new(backend);
    // Within the binary, which may run where the sources are not.
    let readme = include_bytes!("../README.md").to_vec();
    let lines: Vec<_> = readme.split(|byte| *byte == b'\n').collect();
    subject.check_items(&lines);
    let used = subject.tokens.stats().bytes_used;
    // The first call had no room for its tokens at first, and the second has as much as it needs.
    subject.check_items(&lines);
    assert!(subject.tokens.stats().bytes_used < used);
}

fn any_bytes_are_taken_apart_as_on_the_host(backend: AnyBackend) {
    let subject = Subject::new(backend);
    let every_byte: Vec<u8> = (0..=255).collect();
    let pairs: Vec<u8> = (0..1u32 << 13).map(|i| (i * (i >> 5 | 1)) as u8).collect();
    subject.check_items(&[&every_byte, &pairs, b"\0\x0b\x0c \t\r\n", &[0xff; 300]]);
}

fn texts_without_bytes_or_tokens_have_rows_of_zeros(backend: AnyBackend) {
    let subject = Subject::new(backend);
    subject.check_items(&[]);
    subject.check_items(&[b""]);
    subject.check_items(&[b"", b"", b"between", b"", b" \t ", b"", b"many", b"", b""]);
    subject.check_items(&[&b" "[..]; 200]);
    subject.check(&TapeView::of::<u64>(b"", &[]).unwrap());
}

fn texts_begin_and_end_anywhere(backend: AnyBackend) {
    let subject = Subject::new(backend);
    // Around the 128 bytes that a thread takes: within a token, at its begin, at its end.
    for length in [1, 2, 63, 126, 127, 128, 129, 130, 255, 256, 257, 1000] {
        let word = vec![b'x'; length];
        subject.check_items(&[&word, b"and", &word]);
        subject.check_items(&[&[&word[..], b" y"].concat(), b"z"]);
    }
    // A tape need not begin at its first byte, nor end at its last; and its offsets may be narrower.
    let bytes = b"before, one two three, after".repeat(20);
    let offsets: [u32; 4] = [8, 11, 200, 300];
    subject.check(&TapeView::of(&bytes, &offsets).unwrap());
}

fn a_call_after_larger_and_smaller_ones_is_right(backend: AnyBackend) {
    let subject = Subject::new(backend);
    let words = b"words of one text ".repeat(400);
    for count in [1, 400, 3, 399, 0, 400] {
        subject.check_items(&[&words[..count * 18], b"and one more"]);
    }
    let allocations = subject.tokens.stats().allocations;
    subject.check_items(&[&words, b"and one more"]);
    assert_eq!(subject.tokens.stats().allocations, allocations);
}
