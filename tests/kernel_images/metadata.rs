//! What a code object says about its kernels: a note with one value in MessagePack.

use std::str;

use super::elf::number;

/// The kinds of values that occur there.
#[derive(Debug)]
pub enum Value {
    Number(u64),
    Bool(bool),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

impl Value {
    pub fn get(&self, key: &str) -> &Value {
        self.find(key).unwrap_or_else(|| panic!("no {key} in {self:?}"))
    }

    pub fn find(&self, key: &str) -> Option<&Value> {
        let Value::Map(entries) = self else { panic!("{self:?} is no map") };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub fn number(&self) -> u64 {
        let Value::Number(number) = self else { panic!("{self:?} is no number") };
        *number
    }

    pub fn text(&self) -> &str {
        let Value::Text(text) = self else { panic!("{self:?} is no text") };
        text
    }

    pub fn list(&self) -> &[Value] {
        let Value::List(values) = self else { panic!("{self:?} is no list") };
        values
    }
}

/// Reads one value, and leaves what is behind it.
fn value(bytes: &mut &[u8]) -> Value {
    let kind = take(bytes, 1)[0];
    match kind {
        0x00..=0x7f => Value::Number(kind.into()),
        0x80..=0x8f => map(bytes, kind & 15),
        0x90..=0x9f => list(bytes, kind & 15),
        0xa0..=0xbf => text(bytes, kind & 31),
        0xc2 | 0xc3 => Value::Bool(kind == 0xc3),
        0xcc => Value::Number(big_endian(bytes, 1)),
        0xcd => Value::Number(big_endian(bytes, 2)),
        0xce => Value::Number(big_endian(bytes, 4)),
        0xcf => Value::Number(big_endian(bytes, 8)),
        0xd9 => with_length(bytes, 1, text),
        0xda => with_length(bytes, 2, text),
        0xdc => with_length(bytes, 2, list),
        0xde => with_length(bytes, 2, map),
        other => panic!("no value begins with {other:#x}"),
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn big_endian(bytes: &mut &[u8], length: usize) -> u64 {
    take(bytes, length).iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn with_length(bytes: &mut &[u8], length: usize, read: fn(&mut &[u8], u64) -> Value) -> Value {
    let count = big_endian(bytes, length);
    read(bytes, count)
}

fn text(bytes: &mut &[u8], length: impl Into<u64>) -> Value {
    Value::Text(str::from_utf8(take(bytes, length.into() as usize)).unwrap().to_owned())
}

fn list(bytes: &mut &[u8], length: impl Into<u64>) -> Value {
    Value::List((0..length.into()).map(|_| value(bytes)).collect())
}

fn map(bytes: &mut &[u8], length: impl Into<u64>) -> Value {
    let entry = |_| {
        let key = value(bytes);
        (key.text().to_owned(), value(bytes))
    };
    Value::Map((0..length.into()).map(entry).collect())
}

/// The metadata of a code object. Its note is found by the segments, as a loader does it.
pub fn metadata(elf: &[u8]) -> Value {
    const NOTE: u64 = 4;
    const METADATA: u64 = 32;
    let (table, count) = (number::<8>(elf, 0x20) as usize, number::<2>(elf, 0x38) as usize);
    let mut found = Vec::new();
    for header in elf[table..table + 56 * count].chunks_exact(56) {
        if number::<4>(header, 0) != NOTE {
            continue;
        }
        let (offset, size) = (number::<8>(header, 8) as usize, number::<8>(header, 0x20) as usize);
        let mut notes = &elf[offset..offset + size];
        while !notes.is_empty() {
            let head = take(&mut notes, 12);
            let name = take(&mut notes, number::<4>(head, 0).next_multiple_of(4) as usize);
            let length = number::<4>(head, 4) as usize;
            let content = take(&mut notes, length.next_multiple_of(4));
            if (number::<4>(head, 8), name) == (METADATA, b"AMDGPU\0\0") {
                found.push(&content[..length]);
            }
        }
    }
    let [mut content] = found[..] else { panic!("{} notes with metadata", found.len()) };
    let metadata = value(&mut content);
    assert!(content.is_empty(), "{} bytes behind the metadata", content.len());
    metadata
}

#[test]
fn values_of_every_length_are_read() {
    let read = |mut bytes: &[u8]| {
        let value = value(&mut bytes);
        assert!(bytes.is_empty());
        value
    };
    for (bytes, expected) in [
        (&b"\x7f"[..], 127),
        (b"\xcc\xff", 255),
        (b"\xcd\x12\x34", 0x1234),
        (b"\xce\x12\x34\x56\x78", 0x1234_5678),
        (b"\xcf\x12\x34\x56\x78\x9a\xbc\xde\xf0", 0x1234_5678_9abc_def0),
    ] {
        assert_eq!(read(bytes).number(), expected);
    }
    for bytes in [&b"\xa2ab"[..], b"\xd9\x02ab", b"\xda\x00\x02ab"] {
        assert_eq!(read(bytes).text(), "ab");
    }
    for bytes in [&b"\x92\x01\x02"[..], b"\xdc\x00\x02\x01\x02"] {
        let list = read(bytes);
        assert_eq!(list.list().iter().map(Value::number).collect::<Vec<_>>(), [1, 2]);
    }
    for bytes in [&b"\x82\xa1a\x01\xa1b\xc3"[..], b"\xde\x00\x02\xa1a\x01\xa1b\xc3"] {
        let map = read(bytes);
        assert_eq!(map.get("a").number(), 1);
        assert!(matches!(map.get("b"), Value::Bool(true)));
        assert!(map.find("c").is_none());
    }
}
