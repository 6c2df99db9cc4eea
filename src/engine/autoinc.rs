//! AUTO_INCREMENT through a handle: drawing values, pushing the counter, setting it.
//!
//! The next value lives in the open table; the last one drawn is on the clustered root page and is
//! written before a row that has it, so that no crash hands a value out twice.

use super::handle::TableHandle;
use super::session::Session;
use crate::host::image::{ColumnKind, ImageColumn, RowIn, little_endian};
use crate::row::{self, Cursor, Locking, Patience, Reader, Rows, Start};
use crate::words::{Error, Result};

impl TableHandle {
    /// Reserves AUTO_INCREMENT values: first value and how many. `wanted` 0 = unknown.
    pub fn autoinc_reserve(
        &mut self,
        session: &mut Session,
        offset: u64,
        increment: u64,
        wanted: u64,
    ) -> Result<(u64, u64)> {
        session.check_not_aborted()?;
        let column = self.autoinc_column()?;
        let max = largest_value(&self.image().columns[column]);
        let increment = increment.max(1);
        let (first, last, count) = {
            let mut next = self.table().autoinc();
            let first = align(*next, offset, increment).filter(|&first| first <= max);
            let first = first.ok_or(Error::AutoincOutOfRange)?;
            let room = (max - first) / increment;
            let count = wanted.clamp(1, room.saturating_add(1));
            let last = first + (count - 1) * increment;
            *next = last.saturating_add(1);
            (first, last, count)
        };
        row::push_counter(self.engine().ctx(), self.table().clustered(), last)?;
        Ok((first, count))
    }

    /// A row is about to be inserted: its value, given by the host's user, pushes the counter.
    pub(super) fn push_autoinc(&mut self, row: RowIn<'_>) -> Result<()> {
        match self.note_autoinc(row) {
            None => Ok(()),
            Some(value) => row::push_counter(self.engine().ctx(), self.table().clustered(), value),
        }
    }

    /// The same in memory only; the value that is to be pushed before anybody may find the row.
    pub(super) fn note_autoinc(&self, row: RowIn<'_>) -> Option<u64> {
        let column = self.image().auto_increment()?;
        let value = value_of(&self.image().columns[column], row.image)?;
        let mut next = self.table().autoinc();
        if value < *next {
            return None;
        }
        *next = value.saturating_add(1);
        Some(value)
    }

    /// Sets the next value, but not below the largest in the table.
    pub fn autoinc_set(&mut self, session: &mut Session, next: u64) -> Result<()> {
        self.bulk_end(session)?;
        session.check_not_aborted()?;
        let column = self.autoinc_column()?;
        let largest = self.largest_in_table(session, column)?;
        let next = next.max(largest.saturating_add(1)).max(1);
        *self.table().autoinc() = next;
        row::set_counter(self.engine().ctx(), self.table().clustered(), next - 1)
    }

    fn autoinc_column(&self) -> Result<usize> {
        let column = self.image().auto_increment();
        column.ok_or_else(|| Error::invalid("no column has AUTO_INCREMENT"))
    }

    /// Largest committed or own value of the column, by the key that begins with it.
    fn largest_in_table(&mut self, session: &mut Session, column: usize) -> Result<u64> {
        let image = self.image().clone();
        let begins = |key: &crate::host::image::ImageKey| key.parts[0].column as usize == column;
        let Some(key) = image.keys.iter().position(begins) else {
            return Ok(0);
        };
        let mut row = vec![0; image.row_length as usize];
        let mut cursor = Cursor::new(self.template().index_of_key(key));
        let mut heap = crate::host::image::BlobHeap::default();
        let mut work = row::Workspace::default();
        let columns = [column as u16];
        let mut reader = Reader {
            trees: self.table().trees(),
            template: self.template(),
            columns: &columns,
            locking: Locking::None,
            heap: &mut heap,
            work: &mut work,
        };
        let mut rows = Rows::one(&mut row);
        let found = session.run(Patience::NoWait, |op| {
            cursor.fetch(op, &mut reader, Start::Last, &mut rows)
        });
        match found {
            Ok(()) => Ok(value_of(&image.columns[column], &row).unwrap_or(0)),
            Err(Error::EndOfFile | Error::KeyNotFound) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// The smallest value of the series `offset`, `offset + increment`, … that is not below `next`. An
/// offset above the increment is ignored, as MySQL documents.
fn align(next: u64, offset: u64, increment: u64) -> Option<u64> {
    let offset = match offset {
        0 => 1,
        offset if offset > increment => 1,
        offset => offset,
    };
    if next <= offset {
        return Some(offset);
    }
    let steps = (next - offset).div_ceil(increment);
    steps.checked_mul(increment)?.checked_add(offset)
}

/// The largest value that the column can hold.
fn largest_value(column: &ImageColumn) -> u64 {
    let bits = match column.kind {
        ColumnKind::Tiny => 8,
        ColumnKind::Short => 16,
        ColumnKind::Int24 => 24,
        ColumnKind::Long => 32,
        // Whole numbers that floating point holds exactly.
        ColumnKind::Float => return 1 << 24,
        ColumnKind::Double => return 1 << 53,
        _ => 64,
    };
    let all = u64::MAX >> (64 - bits);
    if column.unsigned { all } else { all >> 1 }
}

/// The column's value in a row; `None` for NULL and for values below 0.
fn value_of(column: &ImageColumn, row: &[u8]) -> Option<u64> {
    if column.is_null(row) {
        return None;
    }
    let bytes = column.bytes(row);
    let rounded = |value: f64| (value >= 0.0).then_some(value.round() as u64);
    match column.kind {
        ColumnKind::Float => {
            let bytes = bytes.try_into().ok()?;
            rounded(f64::from(f32::from_le_bytes(bytes)))
        }
        ColumnKind::Double => rounded(f64::from_le_bytes(bytes.try_into().ok()?)),
        kind if kind.is_integer() => {
            let value = little_endian(bytes);
            let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
            (column.unsigned || !negative).then_some(value)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_offset_and_increment() {
        assert_eq!(align(1, 1, 1), Some(1));
        assert_eq!(align(7, 1, 1), Some(7));
        assert_eq!(align(1, 5, 10), Some(5));
        assert_eq!(align(6, 5, 10), Some(15));
        assert_eq!(align(15, 5, 10), Some(15));
        assert_eq!(align(3, 20, 10), Some(11), "an offset above the increment");
        assert_eq!(align(u64::MAX, 2, 10), None);
    }
}
