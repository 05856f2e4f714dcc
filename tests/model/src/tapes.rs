//! A naive check of tapes, and everything that can be asked of one held against it.

use std::fmt::Debug;

use device_arena::{Error, Offset, Status, Tape, TapeRule, TapeView};

/// The first offset that breaks a rule, its value, and what it broke.
type Broken = (usize, i128, i128, TapeRule);

/// Says what is wrong with offsets, one rule after the other, in numbers that nothing overflows.
fn broken(offsets: &[i128], bytes: usize) -> Option<Broken> {
    for (index, offset) in offsets.iter().enumerate() {
        if *offset < 0 {
            return Some((index, *offset, 0, TapeRule::Negative));
        }
        if index > 0 && *offset < offsets[index - 1] {
            return Some((index, *offset, offsets[index - 1], TapeRule::Decreasing));
        }
    }
    let (last, bytes) = (*offsets.last()?, bytes as i128);
    (last > bytes).then_some((offsets.len() - 1, last, bytes, TapeRule::BeyondBytes))
}

/// Reads `data` as a tape of every offset width.
///
/// # Errors
///
/// Where the crate and the naive check disagree.
pub fn check_tape(data: &[u8]) -> Result<(), String> {
    let (head, rest) = data.split_at_checked(2).unwrap_or((data, &[]));
    let count = head.first().map_or(0, |count| usize::from(*count % 24));
    // Small offsets are near the bytes' length, where tapes are right or nearly so.
    let small = head.get(1).is_some_and(|flags| flags % 4 != 0);
    let (offsets, bytes) = rest.split_at(rest.len().min(count * if small { 1 } else { 8 }));
    let raw: Vec<u64> = if small {
        offsets.iter().map(|offset| u64::from(*offset)).collect()
    } else {
        offsets
            .chunks_exact(8)
            .map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap_or_default()))
            .collect()
    };
    check_tape_of(bytes, &raw.iter().map(|raw| *raw as u32).collect::<Vec<_>>())?;
    check_tape_of(bytes, &raw.iter().map(|raw| *raw as i32).collect::<Vec<_>>())?;
    check_tape_of(bytes, &raw.iter().map(|raw| *raw as i64).collect::<Vec<_>>())?;
    check_tape_of(bytes, &raw)?;
    check_owned(bytes, &raw)
}

/// Holds everything that a tape answers against the naive check.
///
/// # Errors
///
/// Where the two disagree.
pub fn check_tape_of<O: Offset + Debug>(bytes: &[u8], offsets: &[O]) -> Result<(), String> {
    let plain: Vec<i128> = offsets.iter().map(|offset| (*offset).into()).collect();
    let wrong = broken(&plain, bytes.len());
    // SAFETY: both slices are live and not written meanwhile.
    let raw = unsafe { TapeView::from_raw(bytes.as_ptr(), bytes.len(), offsets.as_ptr(), offsets.len()) };
    for got in [TapeView::of(bytes, offsets), raw] {
        let tape = match (got, wrong) {
            (Ok(tape), None) => tape,
            (Err(error), Some(wrong)) => {
                check_refusal(&error, wrong)?;
                continue;
            }
            (got, wrong) => {
                return Err(format!("{offsets:?} over {} bytes: {got:?}, {wrong:?}", bytes.len()));
            }
        };
        check_items(&tape, &plain, bytes)?;
    }
    Ok(())
}

fn check_refusal(error: &Error, expected: Broken) -> Result<(), String> {
    match error {
        Error::Tape { index, value, bound, rule }
            if (*index, *value, *bound, *rule) == expected && error.status() == Status::InvalidArgument =>
        {
            Ok(())
        }
        _ => Err(format!("{error:?}, expected {expected:?}")),
    }
}

fn check_items(tape: &TapeView<'_>, offsets: &[i128], bytes: &[u8]) -> Result<(), String> {
    let expected: Vec<&[u8]> =
        offsets.windows(2).map(|pair| &bytes[pair[0] as usize..pair[1] as usize]).collect();
    let all = tape.bytes().map_err(|error| error.to_string())?;
    if tape.len() != expected.len() || tape.is_empty() != expected.is_empty() || all != bytes {
        return Err(format!("{} items over {} bytes, expected {}", tape.len(), all.len(), expected.len()));
    }
    let items: Vec<_> = tape.iter().map_err(|error| error.to_string())?.collect();
    let one_by_one: Result<Vec<_>, _> = (0..tape.len()).map(|index| tape.get(index)).collect();
    if items != expected || one_by_one.as_ref() != Ok(&expected) {
        return Err(format!("{items:?} and {one_by_one:?}, expected {expected:?}"));
    }
    for index in [tape.len(), tape.len() + 1, usize::MAX - 1, usize::MAX] {
        let refused = |result: Result<(), Error>| matches!(result, Err(Error::OutOfRange { .. }));
        if !refused(tape.get(index).map(drop)) || !refused(tape.range(index).map(drop)) {
            return Err(format!("item {index} of {} is not refused", tape.len()));
        }
    }
    Ok(())
}

fn check_owned(bytes: &[u8], offsets: &[u64]) -> Result<(), String> {
    let plain: Vec<i128> = offsets.iter().map(|offset| i128::from(*offset)).collect();
    match (Tape::from_parts(bytes.to_vec(), offsets.to_vec()), broken(&plain, bytes.len())) {
        (Ok(tape), None) => {
            check_items(&tape.view(), &plain, bytes)?;
            let copied = Tape::from_items(tape.view().iter().map_err(|error| error.to_string())?);
            let copied = copied.map_err(|error| error.to_string())?;
            let (a, b) = (copied.clone(), tape);
            let same = (0..b.len()).all(|index| a.view().get(index).ok() == b.view().get(index).ok());
            if same && a.len() == b.len() { Ok(()) } else { Err("a copied tape differs".into()) }
        }
        (Err(refused), Some(wrong)) => {
            check_refusal(&refused.error, wrong)?;
            if refused.value == (bytes.to_vec(), offsets.to_vec()) {
                Ok(())
            } else {
                Err("parts are lost".into())
            }
        }
        (got, wrong) => Err(format!("{offsets:?}: {got:?}, expected {wrong:?}")),
    }
}
