//! The command line.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt};

pub const HELP: &str = "\
Embeds the lines of text files, and shows what that asked of the driver.

Usage: embed [OPTIONS] [FILE]...

  FILE...        the files, of any content; README.md of the package where none is named
  --query TEXT   print the five lines that are nearest to TEXT
  --host         compute on the host, even where there is a GPU
  --calls N      how many times to tokenize and embed all lines [default: 50]
  --json         print one line of JSON, and nothing else
  -h, --help     print this
";

pub struct Options {
    pub files: Vec<PathBuf>,
    pub query: Option<Vec<u8>>,
    pub calls: NonZeroU64,
    pub host: bool,
    pub json: bool,
    pub help: bool,
}

impl Options {
    pub fn from_args() -> Result<Self, lexopt::Error> {
        const CALLS: NonZeroU64 = NonZeroU64::new(50).unwrap();
        let mut options =
            Self { files: Vec::new(), query: None, calls: CALLS, host: false, json: false, help: false };
        let mut parser = Parser::from_env();
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Long("query") => options.query = Some(parser.value()?.into_encoded_bytes()),
                Arg::Long("calls") => options.calls = calls(parser.value()?)?,
                Arg::Long("host") => options.host = true,
                Arg::Long("json") => options.json = true,
                Arg::Long("help") | Arg::Short('h') => options.help = true,
                Arg::Value(file) => options.files.push(file.into()),
                _ => return Err(arg.unexpected()),
            }
        }
        Ok(options)
    }
}

fn calls(value: OsString) -> Result<NonZeroU64, lexopt::Error> {
    value.parse().map_err(|_| format!("--calls takes a number of 1 or more, not {value:?}").into())
}
