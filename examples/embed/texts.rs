//! Text files as a tape, a line a text.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use device_arena::Tape;

/// The lines of all files. Any bytes are a text.
pub struct Texts {
    pub tape: Tape,
    /// Each file with the index of its first text.
    files: Vec<(PathBuf, usize)>,
}

impl Texts {
    /// Reads `paths`, or the README where there is none.
    pub fn read(paths: &[PathBuf]) -> Result<Self, String> {
        let readme = [readme()];
        let paths = if paths.is_empty() { &readme } else { paths };
        let (mut contents, mut files, mut first) = (Vec::new(), Vec::new(), 0);
        for path in paths {
            let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            files.push((path.clone(), first));
            first += lines(&bytes).count();
            contents.push(bytes);
        }
        let tape = Tape::from_items(contents.iter().flat_map(|bytes| lines(bytes)));
        Ok(Self { tape: tape.map_err(|error| error.to_string())?, files })
    }

    /// The file that a text is from, and its line, counted from one.
    pub fn place(&self, text: usize) -> (&Path, usize) {
        let after = self.files.partition_point(|(_, first)| *first <= text);
        let (path, first) = &self.files[after - 1];
        (path, text - first + 1)
    }

    /// As much of a text as fits a line, with nothing in it that a terminal would obey.
    pub fn excerpt(&self, text: usize) -> String {
        const WIDTH: usize = 72;
        let bytes = self.tape.view().get(text).unwrap_or_default();
        let bytes = bytes.get(..WIDTH * 4).unwrap_or(bytes);
        let mut excerpt = String::new();
        for character in String::from_utf8_lossy(bytes).trim().chars().take(WIDTH) {
            excerpt.push(if character.is_control() { char::REPLACEMENT_CHARACTER } else { character });
        }
        excerpt
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    })
}

fn readme() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    // The package may have moved since the example was built.
    if own.exists() { own } else { "README.md".into() }
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        let comma = if index > 0 && (digits.len() - index).is_multiple_of(3) { "," } else { "" };
        let _ = write!(grouped, "{comma}{digit}");
    }
    grouped
}
