//! Buffers and plans as tables of comma-separated values, as MiniMalloc reads and writes them.

use std::collections::HashSet;
use std::ops::Range;

use super::{Buffer, MemoryPlan, Slot};
use crate::error::{Error, Result};

/// The columns that are read, by their place in this list.
const COLUMNS: [&str; 9] = ["id", "lower", "upper", "size", "alignment", "offset", "alias", "pinned", "name"];
const ID: usize = 0;
const LOWER: usize = 1;
const UPPER: usize = 2;
const SIZE: usize = 3;
const ALIGNMENT: usize = 4;
const OFFSET: usize = 5;
const ALIAS: usize = 6;
const PINNED: usize = 7;
const NAME: usize = 8;

/// Reads buffers from a table whose first line names its columns, in any order: `id`, `lower`, `upper` and `size`, and
/// where there are any `alignment`, `offset` (fixed), `alias` (the id of the buffer whose bytes it shares), `pinned` (0 or 1)
/// and `name`. Other columns are left out of account, MiniMalloc's `gaps` among them: the room that a buffer could lend
/// is not lent. The names that MiniMalloc had before are known: `buffer` and `buffer_id`, `begin` and `start`, and `end`,
/// which counts the last step in. An empty field is as good as none, but for `id`, `lower`, `upper` and `size`.
///
/// Ids are numbers. Where one of them is something else, all are taken for names, and the buffers are numbered from 0 on.
/// Values that hold commas, quotation marks or line breaks stand in quotation marks; lines may end with a carriage return;
/// empty lines are left out.
///
/// # Errors
///
/// [`Error::Table`], with line and column: a column that is missing or comes twice, a field too many or too few, what is
/// no number of 64 bits, an id that comes twice or that no buffer has.
///
/// ```
/// use device_arena::plan::buffers_from_csv;
///
/// let buffers = buffers_from_csv("id,lower,upper,size\nscores,0,3,4096\nhidden,2,9,1024\n")?;
/// assert_eq!((buffers[1].id, buffers[1].name.as_deref()), (1, Some("hidden")));
/// let refused = buffers_from_csv("id,lower,upper,size\n1,0,3,-4\n").unwrap_err();
/// assert_eq!(refused.to_string(), "line 2, column `size`: `-4` is not a whole number of 64 bits");
/// # Ok::<(), device_arena::Error>(())
/// ```
pub fn buffers_from_csv(text: &str) -> Result<Vec<Buffer>> {
    let table = Table::read(text)?;
    let mut buffers = Vec::with_capacity(table.rows.len());
    for (row, id) in table.rows.iter().zip(table.ids()?) {
        let number = |column| row.number(column);
        let required = |column: usize| {
            number(column)?.ok_or_else(|| row.fault(column, "nothing where a number is needed"))
        };
        let upper = match table.counts_last_in {
            true => required(UPPER)?
                .checked_add(1)
                .ok_or_else(|| row.fault(UPPER, "the step after it has no number"))?,
            false => required(UPPER)?,
        };
        let buffer = Buffer::new(id.number, required(LOWER)?..upper, required(SIZE)?);
        buffers.push(Buffer {
            alignment: number(ALIGNMENT)?.unwrap_or(1),
            offset: number(OFFSET)?,
            alias_of: table.alias(row)?,
            pinned: match row.text(PINNED) {
                "" | "0" | "false" => false,
                "1" | "true" => true,
                other => return Err(row.fault(PINNED, &format!("`{other}` is neither 0 nor 1"))),
            },
            name: id.name,
            ..buffer
        });
    }
    Ok(buffers)
}

/// Writes buffers as [`buffers_from_csv`] reads them. Columns in which nobody has anything to say are left out, so that
/// MiniMalloc reads what it knows.
#[must_use]
pub fn buffers_to_csv<'b>(buffers: impl IntoIterator<Item = &'b Buffer>) -> String {
    let line = |buffer: &Buffer| {
        let mut line = Line::default();
        line.set(ID, buffer.id);
        line.set(LOWER, buffer.lifetime.start);
        line.set(UPPER, buffer.lifetime.end);
        line.set(SIZE, buffer.size);
        line.set_unless(ALIGNMENT, buffer.alignment, buffer.alignment == 1);
        line.set_some(OFFSET, buffer.offset);
        line.set_some(ALIAS, buffer.alias_of);
        line.set_unless(PINNED, 1, !buffer.pinned);
        line.set_some(NAME, buffer.name.as_deref().map(quoted));
        line
    };
    write(&buffers.into_iter().map(line).collect::<Vec<_>>())
}

impl MemoryPlan {
    /// Reads a plan: a table as for [`buffers_from_csv`], whose `offset` says where each slot is. Fields of `lower` and
    /// `upper` that are both empty are those of a slot that is live always. The total is the end of the last slot.
    ///
    /// # Errors
    ///
    /// [`Error::Table`] as there, and for a field without an offset; [`Error::Plan`] for what breaks a plan's rules.
    ///
    /// ```
    /// use device_arena::plan::MemoryPlan;
    ///
    /// let plan = MemoryPlan::from_csv("id,lower,upper,size,offset\n1,0,3,4096,0\n2,3,9,1024,0\n")?;
    /// assert_eq!(plan.total(), 4096);
    /// assert_eq!(MemoryPlan::from_csv(&plan.to_csv())?, plan);
    /// # Ok::<(), device_arena::Error>(())
    /// ```
    pub fn from_csv(text: &str) -> Result<Self> {
        let table = Table::read(text)?;
        let mut builder = Self::builder();
        for (row, id) in table.rows.iter().zip(table.ids()?) {
            let required = |column: usize| {
                row.number(column)?.ok_or_else(|| row.fault(column, "nothing where a number is needed"))
            };
            let lifetime = match (row.text(LOWER), row.text(UPPER)) {
                ("", "") => None,
                _ => {
                    let upper = required(UPPER)?.checked_add(u64::from(table.counts_last_in));
                    let upper = upper.ok_or_else(|| row.fault(UPPER, "the step after it has no number"))?;
                    Some(required(LOWER)?..upper)
                }
            };
            let slot = Slot::new(id.number, required(OFFSET)?, required(SIZE)?);
            builder = builder.slot(Slot {
                alignment: row.number(ALIGNMENT)?.unwrap_or(1),
                lifetime,
                alias_of: table.alias(row)?,
                name: id.name,
                ..slot
            });
        }
        builder.build()
    }

    /// Writes the plan as [`from_csv`](Self::from_csv) reads it, and as MiniMalloc writes its answers where every slot has a
    /// lifetime. A total beyond the last slot and an alignment beyond the slots' own are not written.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let line = |slot: &Slot| {
            let mut line = Line::default();
            line.set(ID, slot.node);
            let steps: Option<&Range<u64>> = slot.lifetime.as_ref();
            line.set_some(LOWER, steps.map(|steps| steps.start));
            line.set_some(UPPER, steps.map(|steps| steps.end));
            line.set(SIZE, slot.size);
            line.set_unless(ALIGNMENT, slot.alignment, slot.alignment == 1);
            line.set(OFFSET, slot.offset);
            line.set_some(ALIAS, slot.alias_of);
            line.set_some(NAME, slot.name.as_deref().map(quoted));
            line
        };
        write(&self.iter().map(line).collect::<Vec<_>>())
    }
}

/// The fields of one line, by column.
#[derive(Default)]
struct Line([Option<String>; COLUMNS.len()]);

impl Line {
    fn set(&mut self, column: usize, value: impl ToString) {
        if let Some(field) = self.0.get_mut(column) {
            *field = Some(value.to_string());
        }
    }

    fn set_some(&mut self, column: usize, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.set(column, value);
        }
    }

    fn set_unless(&mut self, column: usize, value: u64, is_usual: bool) {
        self.set_some(column, (!is_usual).then_some(value));
    }

    fn field(&self, column: usize) -> Option<&str> {
        self.0.get(column)?.as_deref()
    }
}

fn write(lines: &[Line]) -> String {
    let is_written =
        |column: &usize| *column <= SIZE || lines.iter().any(|line| line.field(*column).is_some());
    let columns: Vec<usize> = (0..COLUMNS.len()).filter(is_written).collect();
    let header: Vec<_> = columns.iter().filter_map(|column| COLUMNS.get(*column).copied()).collect();
    let mut text = header.join(",") + "\n";
    for line in lines {
        let fields: Vec<_> = columns.iter().map(|column| line.field(*column).unwrap_or("")).collect();
        text += &fields.join(",");
        text.push('\n');
    }
    text
}

fn quoted(text: &str) -> String {
    let is_plain = !text.contains([',', '"', '\n', '\r']) && text.trim() == text && !text.is_empty();
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

/// A name in quotation marks is kept as it is; other fields are taken without the blanks around them.
struct Row {
    line: usize,
    fields: [Option<String>; COLUMNS.len()],
}

impl Row {
    fn text(&self, column: usize) -> &str {
        self.fields.get(column).and_then(|field| field.as_deref()).unwrap_or("")
    }

    fn fault(&self, column: usize, reason: &str) -> Error {
        fault(self.line, COLUMNS.get(column).copied().unwrap_or(""), reason)
    }

    /// A field's number; none where it is empty.
    fn number(&self, column: usize) -> Result<Option<u64>> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        match number(text) {
            Some(number) => Ok(Some(number)),
            None => {
                Err(self.fault(column, &format!("`{}` is not a whole number of 64 bits", shortened(text))))
            }
        }
    }
}

/// Digits alone: no sign, no blank.
fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// What an error shows of a value that somebody else wrote.
fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    let start: String = text.chars().take(MOST).collect();
    if text.chars().nth(MOST).is_some() { start + "..." } else { start }
}

fn fault(line: usize, column: &str, reason: &str) -> Error {
    Error::Table { line, column: shortened(column), reason: reason.to_owned() }
}

struct Id {
    number: u64,
    name: Option<String>,
}

struct Table {
    rows: Vec<Row>,
    /// Whether `upper` is the last step, not the one after it.
    counts_last_in: bool,
    /// Whether ids are names.
    is_named: bool,
    places: std::collections::HashMap<String, u64>,
}

impl Table {
    fn read(text: &str) -> Result<Self> {
        let mut records = Records { text: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
        let (line, header) = loop {
            match records.next_record()? {
                Some((_, fields)) if is_blank(&fields) => {}
                Some(record) => break record,
                None => return Err(fault(0, "id", "the table has no header")),
            }
        };
        let (columns, counts_last_in) = columns(line, &header)?;
        let mut rows = Vec::new();
        while let Some((line, fields)) = records.next_record()? {
            if is_blank(&fields) {
                continue;
            }
            if fields.len() != header.len() {
                let reason = format!("{} fields below a header of {}", fields.len(), header.len());
                return Err(fault(line, header.get(fields.len()).map_or("", String::as_str), &reason));
            }
            let mut row = Row { line, fields: Default::default() };
            for (field, column) in fields.into_iter().zip(&columns) {
                if let Some(place) = column.and_then(|column| row.fields.get_mut(column)) {
                    *place = Some(field);
                }
            }
            rows.push(row);
        }
        let is_named = rows.iter().any(|row| number(row.text(ID)).is_none());
        let mut table = Self { rows, counts_last_in, is_named, places: Default::default() };
        table.index()?;
        Ok(table)
    }

    /// Notes the number of each id.
    fn index(&mut self) -> Result<()> {
        for (place, row) in self.rows.iter().enumerate() {
            let text = row.text(ID);
            if text.is_empty() {
                return Err(row.fault(ID, "nothing where an id is needed"));
            }
            let id = if self.is_named { place as u64 } else { number(text).unwrap_or(place as u64) };
            let key = if self.is_named { text.to_owned() } else { id.to_string() };
            if self.places.insert(key, id).is_some() {
                return Err(row.fault(ID, &format!("`{}` comes twice", shortened(text))));
            }
        }
        Ok(())
    }

    fn ids(&self) -> Result<Vec<Id>> {
        let id = |(place, row): (usize, &Row)| {
            let name = row.fields.get(NAME).cloned().flatten().filter(|name| !name.is_empty());
            match number(row.text(ID)).filter(|_| !self.is_named) {
                Some(number) => Id { number, name },
                None => Id { number: place as u64, name: name.or_else(|| Some(row.text(ID).to_owned())) },
            }
        };
        Ok(self.rows.iter().enumerate().map(id).collect())
    }

    /// The buffer that a row names as the one whose bytes it shares.
    fn alias(&self, row: &Row) -> Result<Option<u64>> {
        let text = row.text(ALIAS);
        if text.is_empty() {
            return Ok(None);
        }
        let key = match number(text).filter(|_| !self.is_named) {
            Some(number) => number.to_string(),
            None => text.to_owned(),
        };
        let unknown = || row.fault(ALIAS, &format!("no buffer has the id `{}`", shortened(text)));
        self.places.get(&key).copied().map(Some).ok_or_else(unknown)
    }
}

fn is_blank(fields: &[String]) -> bool {
    matches!(fields, [only] if only.is_empty())
}

/// Which column each field of a line is, and whether the end of a lifetime is its last step.
fn columns(line: usize, header: &[String]) -> Result<(Vec<Option<usize>>, bool)> {
    let mut seen = HashSet::new();
    let mut counts_last_in = false;
    let mut columns = Vec::with_capacity(header.len());
    for name in header {
        let known = match name.as_str() {
            "buffer" | "buffer_id" => "id",
            "begin" | "start" => "lower",
            "end" => {
                counts_last_in = true;
                "upper"
            }
            other => other,
        };
        let column = COLUMNS.iter().position(|column| *column == known);
        if column.is_some() && !seen.insert(column) {
            return Err(fault(line, name, "the column comes twice"));
        }
        columns.push(column);
    }
    for needed in [ID, LOWER, UPPER, SIZE] {
        if !seen.contains(&Some(needed)) {
            return Err(fault(line, COLUMNS.get(needed).copied().unwrap_or(""), "the column is missing"));
        }
    }
    Ok((columns, counts_last_in))
}

/// Splits a text into lines of fields.
struct Records<'t> {
    text: &'t str,
    line: usize,
}

impl Records<'_> {
    /// The next line's number and fields. A quoted field may hold several lines.
    fn next_record(&mut self) -> Result<Option<(usize, Vec<String>)>> {
        if self.text.is_empty() {
            return Ok(None);
        }
        let line = self.line;
        let mut fields = Vec::new();
        loop {
            let (field, ending) = self.field(line, fields.len())?;
            fields.push(field);
            if ending != Some(',') {
                return Ok(Some((line, fields)));
            }
        }
    }

    /// The next field, and what ended it: a comma, a line break, or the text.
    fn field(&mut self, line: usize, place: usize) -> Result<(String, Option<char>)> {
        let at = |place: usize| format!("number {}", place + 1);
        let blanks = self.text.len() - self.text.trim_start_matches([' ', '\t']).len();
        let start = self.text.get(blanks..).unwrap_or("");
        let mut value = String::new();
        let mut is_quoted = false;
        if let Some(mut rest) = start.strip_prefix('"') {
            is_quoted = true;
            loop {
                let Some((inner, after)) = rest.split_once('"') else {
                    return Err(fault(line, &at(place), "a quotation mark is never closed"));
                };
                value += inner;
                match after.strip_prefix('"') {
                    Some(after) => {
                        value.push('"');
                        rest = after;
                    }
                    None => {
                        rest = after;
                        break;
                    }
                }
            }
            self.line += value.matches('\n').count();
            self.text = rest;
        }
        let end = self.text.find([',', '\n']).unwrap_or(self.text.len());
        let (plain, rest) = self.text.split_at(end);
        let plain = plain.trim_matches([' ', '\t', '\r']);
        if is_quoted && !plain.is_empty() {
            return Err(fault(line, &at(place), "text behind a closing quotation mark"));
        }
        if !is_quoted {
            value = plain.to_owned();
        }
        let ending = rest.chars().next();
        self.text = rest.get(1..).unwrap_or("");
        self.line += usize::from(ending == Some('\n'));
        Ok((value, ending))
    }
}
