//! The engine's verbs. Each takes the arena that its outputs land in, and answers views of them.

use device_arena::{Arena, Executor, PublishedTape, Result, TapeView, View};

/// How many numbers a row has.
pub const DIM: usize = 256;

/// Texts as tokens: a list of strings for each, as Arrow lays it out.
pub struct Tokens {
    /// The tokens of all texts.
    pub strings: PublishedTape,
    /// Each text's first token, and at the end how many tokens there are.
    pub first: View<u64>,
}

/// Takes texts apart. How many tokens there are is known only afterwards.
pub fn tokenize(executor: &Executor, texts: &TapeView, arena: &Arena) -> Result<Tokens> {
    let call = executor.begin(arena)?;
    let mut first = call.writer_with_capacity(texts.len() + 1)?;
    // Tokens are never longer than their texts: only the offsets grow.
    let mut strings = call.tape_output_with_capacity(0, texts.byte_len())?;
    for text in texts.iter()? {
        first.push(strings.len() as u64)?;
        for token in split(text) {
            strings.push(token)?;
        }
    }
    first.push(strings.len() as u64)?;
    let tokens = Tokens { strings: strings.publish(), first: first.publish() };
    call.finish()?;
    Ok(tokens)
}

/// Makes one row of [`DIM`] numbers of each text: its hashed character n-grams, of length one, or zeros for none.
pub fn embed(executor: &Executor, tokens: &Tokens, arena: &Arena) -> Result<View<f32>> {
    // While the guards are held, nobody can rewind the tokens: the rows need an arena of their own.
    let (strings, first) = (tokens.strings.read()?, tokens.first.read()?);
    let call = executor.begin(arena)?;
    let mut rows = call.output::<f32>(first.len().saturating_sub(1) * DIM)?;
    // The host's way. On a GPU this loop is one launch that writes to the rows' device pointer: see `device.rs`.
    let mut strings = strings.tape().iter()?;
    for (row, ends) in rows.as_mut_slice()?.chunks_exact_mut(DIM).zip(first.windows(2)) {
        let count = ends[1] - ends[0];
        embed_text(strings.by_ref().take(count as usize), row);
    }
    let view = rows.publish();
    call.finish()?;
    Ok(view)
}

/// Words, and every other visible byte on its own. Any bytes are a text: what is not ASCII counts as letters.
fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let tokens = text.chunk_by(move |a, b| is_letter(a) && is_letter(b));
    tokens.filter(|token| !token.trim_ascii().is_empty())
}

fn embed_text<'t>(tokens: impl Iterator<Item = &'t [u8]>, row: &mut [f32]) {
    // The room shows what an earlier call left there.
    row.fill(0.0);
    for token in tokens {
        for start in 0..token.len() {
            add_grams(&token[start..], start == 0, row);
        }
    }
    let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|x| *x /= length);
    }
}

/// Adds the n-grams of three to five characters that `token` begins with; a whole token that is shorter is one.
/// Bytes stand for characters, so that any file is a text.
fn add_grams(token: &[u8], is_whole: bool, row: &mut [f32]) {
    // FNV-1a
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (length, byte) in (1..=5).zip(token) {
        hash = (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3);
        if length >= 3 || (is_whole && length == token.len()) {
            // The product's high bits depend on every byte. Signs let those that share a place cancel out.
            let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let sign = if mixed >> 63 == 0 { 1.0 } else { -1.0 };
            row[(mixed >> 32) as usize % DIM] += sign;
        }
    }
}
