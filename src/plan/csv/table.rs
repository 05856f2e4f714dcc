//! Tables of comma-separated values: lines, fields, and which column each is.

use std::collections::{HashMap, HashSet};

use crate::error::{Error, Result};

/// The columns that are read, by their place in this list.
pub(super) const COLUMNS: [&str; 9] =
    ["id", "lower", "upper", "size", "alignment", "offset", "alias", "pinned", "name"];
pub(super) const ID: usize = 0;
pub(super) const LOWER: usize = 1;
pub(super) const UPPER: usize = 2;
pub(super) const SIZE: usize = 3;
pub(super) const ALIGNMENT: usize = 4;
pub(super) const OFFSET: usize = 5;
pub(super) const ALIAS: usize = 6;
pub(super) const PINNED: usize = 7;
pub(super) const NAME: usize = 8;

/// A line's fields by column. What stands in quotation marks is kept as it is, the rest without the blanks around it.
pub(super) struct Row {
    line: usize,
    fields: [Option<String>; COLUMNS.len()],
}

impl Row {
    pub(super) fn text(&self, column: usize) -> &str {
        self.fields.get(column).and_then(|field| field.as_deref()).unwrap_or("")
    }

    pub(super) fn fault(&self, column: usize, reason: &str) -> Error {
        fault(self.line, COLUMNS.get(column).copied().unwrap_or(""), reason)
    }

    /// Whether a field says yes: 0 and 1, or words for them. An empty one says no.
    pub(super) fn flag(&self, column: usize) -> Result<bool> {
        match self.text(column) {
            "" | "0" | "false" => Ok(false),
            "1" | "true" => Ok(true),
            other => Err(self.fault(column, &format!("`{}` is neither 0 nor 1", shortened(other)))),
        }
    }

    /// A field's number; none where it is empty.
    pub(super) fn number(&self, column: usize) -> Result<Option<u64>> {
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

/// What an error shows of a value that somebody else wrote: a part of one line.
fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    let start: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() { start + "..." } else { start }
}

fn fault(line: usize, column: &str, reason: &str) -> Error {
    Error::Table { line, column: shortened(column), reason: reason.to_owned() }
}

pub(super) struct Id {
    pub(super) number: u64,
    pub(super) name: Option<String>,
}

pub(super) struct Table {
    pub(super) rows: Vec<Row>,
    /// Whether `upper` is the last step, not the one after it.
    pub(super) counts_last_in: bool,
    /// Whether ids are names.
    is_named: bool,
    /// The number of each id.
    places: HashMap<String, u64>,
}

impl Table {
    pub(super) fn read(text: &str) -> Result<Self> {
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

    pub(super) fn ids(&self) -> Vec<Id> {
        let id = |(place, row): (usize, &Row)| {
            let name = row.fields.get(NAME).cloned().flatten().filter(|name| !name.is_empty());
            match number(row.text(ID)).filter(|_| !self.is_named) {
                Some(number) => Id { number, name },
                None => Id { number: place as u64, name: name.or_else(|| Some(row.text(ID).to_owned())) },
            }
        };
        self.rows.iter().enumerate().map(id).collect()
    }

    /// The buffer that a row names as the one whose bytes it shares.
    pub(super) fn alias(&self, row: &Row) -> Result<Option<u64>> {
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
