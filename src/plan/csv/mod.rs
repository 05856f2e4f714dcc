//! Buffers and plans as tables of comma-separated values, as MiniMalloc reads and writes them.

mod table;

use std::ops::Range;

use self::table::{ALIAS, ALIGNMENT, COLUMNS, ID, LOWER, NAME, OFFSET, PINNED, SIZE, Table, UPPER};
use super::{Buffer, MemoryPlan, Slot};
use crate::error::Result;

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
/// [`Error::Table`](crate::Error::Table), with line and column: a column that is missing or comes twice, a field too many or too few, what is
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
    for (row, id) in table.rows.iter().zip(table.ids()) {
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
            pinned: row.flag(PINNED)?,
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
    /// `upper` that are both empty are those of a slot that is live always, as is what is pinned. The total is the end of the last slot.
    ///
    /// # Errors
    ///
    /// [`Error::Table`](crate::Error::Table) as there, and for a field without an offset; [`Error::Plan`](crate::Error::Plan) for what breaks a plan's rules.
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
        for (row, id) in table.rows.iter().zip(table.ids()) {
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
            // What is pinned is live always, whatever its steps are.
            let lifetime = if row.flag(PINNED)? { None } else { lifetime };
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
