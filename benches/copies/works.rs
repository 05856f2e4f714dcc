//! The lists of copies that are timed: where they begin and end, as offsets into two pieces of memory.

use std::ops::Range;

use crate::timing::Effort;

/// One range, by offsets.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub from: usize,
    pub to: usize,
    pub bytes: usize,
}

/// Where the ranges are rows that are alike.
#[derive(Debug, Clone)]
pub struct Regular {
    pub first: Place,
    pub source_stride: usize,
    pub destination_stride: usize,
    /// The rows in the order of the list.
    pub order: Vec<u32>,
}

/// A list of copies.
#[derive(Debug)]
pub struct Work {
    /// What aims and explanations call it.
    pub id: String,
    pub places: Vec<Place>,
    pub regular: Option<Regular>,
}

/// What is before the first range and behind the last, on either side.
pub const MARGIN: usize = 4096;

/// A small generator of numbers that are alike in every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// In 0..1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, (self.next() % (at as u64 + 1)) as usize);
        }
    }
}

impl Work {
    /// Bytes that are copied.
    pub fn bytes(&self) -> u64 {
        self.places.iter().map(|place| place.bytes as u64).sum()
    }

    /// The offsets of the destination that may change, and a margin around them.
    pub fn destination(&self) -> Range<usize> {
        let first = self.places.iter().map(|place| place.to).min().unwrap_or(MARGIN);
        let last = self.places.iter().map(|place| place.to + place.bytes).max().unwrap_or(MARGIN);
        first - MARGIN..last + MARGIN
    }

    /// What both pieces of memory have to hold.
    pub fn end(&self) -> usize {
        let end = self.places.iter().map(|place| place.from.max(place.to) + place.bytes).max();
        end.unwrap_or(0) + MARGIN
    }

    fn list(id: &str, places: Vec<Place>) -> Self {
        Self { id: id.to_owned(), places, regular: None }
    }

    /// Rows that are alike, as a list in no order. `offsets` are those of the first row.
    fn rows(id: &str, count: usize, bytes: usize, strides: [usize; 2], offsets: [usize; 2]) -> Self {
        let first = Place { from: MARGIN + offsets[0], to: MARGIN + offsets[1], bytes };
        let mut order: Vec<u32> = (0..count as u32).collect();
        Numbers(7).shuffle(&mut order);
        let place = |row: &u32| {
            let row = *row as usize;
            Place { from: first.from + row * strides[0], to: first.to + row * strides[1], bytes }
        };
        let places = order.iter().map(place).collect();
        let regular = Regular { first, source_stride: strides[0], destination_stride: strides[1], order };
        Self { id: id.to_owned(), places, regular: Some(regular) }
    }

    /// Rows of the same size at multiples of 256 bytes.
    fn aligned(id: &str, count: usize, bytes: usize) -> Self {
        let stride = bytes.next_multiple_of(256);
        Self::rows(id, count, bytes, [stride; 2], [0; 2])
    }

    /// Rows of the same size, at odd places that differ from source to destination.
    fn misaligned(id: &str, count: usize, bytes: usize, skew: usize) -> Self {
        let stride = bytes.next_multiple_of(256) + 256;
        Self::rows(id, count, bytes, [stride; 2], [skew, skew * 3 % 16])
    }

    /// Ranges of many sizes, from 16 bytes to 1 MiB, as many of each order of magnitude.
    fn mixed(id: &str, count: usize, alignment: usize, skew: usize) -> Self {
        let mut numbers = Numbers(7);
        let mut at = MARGIN;
        let mut places: Vec<Place> = (0..count)
            .map(|_| {
                let bytes = (4.0 + 16.0 * numbers.share()).exp2() as usize;
                let place = Place { from: at + skew, to: at + skew * 3 % 16, bytes };
                at += bytes.next_multiple_of(alignment) + if skew > 0 { alignment } else { 0 };
                place
            })
            .collect();
        numbers.shuffle(&mut places);
        Self::list(id, places)
    }
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

/// All of them. The ten that a batched copy is held to come first.
pub fn all(effort: Effort) -> Vec<Work> {
    let few = |count: usize| effort.scaled(count);
    // Each layer has a slot for keys and one for values, of `CONTEXT` rows; a step writes the row at its place.
    const ROW: usize = KIB;
    const CONTEXT: usize = 4096;
    const SLOTS: usize = 2 * 32;
    let slot = few(CONTEXT) * ROW;
    let prompt = few(512) * ROW;
    vec![
        Work::aligned("128 x 2 KiB", few(128), 2 * KIB),
        Work::aligned("1024 x 1 KiB", few(1024), KIB),
        Work::aligned("16384 x 256 B", few(16384), 256),
        Work::aligned("65536 x 1536 B", few(65536), 1536),
        Work::aligned("1024 x 64 KiB", few(1024), 64 * KIB),
        Work::aligned("4096 x 512 KiB", few(4096), 512 * KIB),
        Work::mixed("4096 mixed", few(4096), 256, 0),
        Work::mixed("4096 mixed, misaligned", few(4096), 16, 5),
        Work::misaligned("16384 x 255 B, misaligned", few(16384), 255, 3),
        Work::list("4 GiB", vec![Place { from: MARGIN, to: MARGIN, bytes: few(4 * GIB) }]),
        Work::list("1 GiB", vec![Place { from: MARGIN, to: MARGIN, bytes: few(GIB) }]),
        Work::aligned("16 x 64 MiB", 16, few(64 * MIB)),
        Work::aligned("16384 x 64 KiB", few(16384), 64 * KIB),
        Work::misaligned("16384 x 64 KiB, misaligned", few(16384), 64 * KIB, 5),
        Work::misaligned("1024 x 1 MiB, misaligned", few(1024), MIB, 5),
        Work::rows("decode step, 64 x 1 KiB", SLOTS, ROW, [ROW, slot], [0, slot / 2]),
        Work::rows("prefill, 64 x 512 KiB", SLOTS, prompt, [prompt, slot], [0, 0]),
    ]
}
