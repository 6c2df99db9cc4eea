//! table.h, the reading half: scans, positions, batches.

use super::arguments::{array, array_mut, out, read_struct, write_struct};
use super::c;
use super::edge::{Fault, Outcome};
use super::table::{Cursor, row_mut, with_bound, with_table};
use crate::engine::{Batch, Direction};

pub(super) extern "C" fn scan_begin(table: *mut c::xt_table, sequential: u8) -> c::xt_status {
    with_bound(table, |inner, session| {
        if inner.cursor != Cursor::None {
            return Err(Fault::wrong_order(
                "a scan or an index is open: end it first",
            ));
        }
        inner.handle.scan_begin(session, sequential != 0)?;
        inner.cursor = if sequential != 0 {
            Cursor::Scan
        } else {
            Cursor::Positions
        };
        inner.placed = false;
        inner.row_read = false;
        Ok(())
    })
}

/// # Safety
/// table.h: `row` is NULL or has row_length bytes.
pub(super) unsafe extern "C" fn scan_next(table: *mut c::xt_table, row: *mut u8) -> c::xt_status {
    with_bound(table, |inner, session| {
        if inner.cursor != Cursor::Scan {
            return Err(Fault::wrong_order(
                "no sequential scan is open: scan_begin first",
            ));
        }
        // SAFETY: the caller's promise.
        let row = unsafe { row_mut(inner.image(), row)? };
        let result = inner.handle.next(session, row);
        inner.placed = true;
        inner.read_ended(result)
    })
}

/// Ends scan or index alike.
pub(super) extern "C" fn cursor_end(table: *mut c::xt_table) -> c::xt_status {
    with_table(table, |inner| {
        inner.cursor_end();
        Ok(())
    })
}

/// # Safety
/// table.h: `row` has row_length bytes, `position` has `size`.
pub(super) unsafe extern "C" fn position(
    table: *mut c::xt_table,
    row: *const u8,
    position: *mut u8,
    size: u32,
) -> c::xt_status {
    with_bound(table, |inner, _| {
        if !inner.row_read {
            return Err(Fault::new(c::XT_NO_ACTIVE_RECORD, "no row has been read"));
        }
        let need = inner.handle.info()?.ref_length;
        if size < need {
            return Err(Fault::invalid(format!(
                "a position has {need} bytes, there is room for {size}"
            )));
        }
        let row_length = inner.image().row_length as usize;
        // SAFETY: the caller's promises.
        let (row, position) = unsafe {
            (
                array(row, row_length, "row")?,
                array_mut(position, need as usize, "ref")?,
            )
        };
        Ok(inner.handle.position(row, position)?)
    })
}

/// # Safety
/// table.h: `row` has row_length bytes, `position` has `length`.
pub(super) unsafe extern "C" fn read_position(
    table: *mut c::xt_table,
    row: *mut u8,
    position: *const u8,
    length: u32,
) -> c::xt_status {
    with_bound(table, |inner, session| {
        let need = inner.handle.info()?.ref_length;
        if length != need {
            return Err(Fault::invalid(format!(
                "a position has {need} bytes, not {length}"
            )));
        }
        // SAFETY: the caller's promises.
        let (row, position) = unsafe {
            (
                row_mut(inner.image(), row)?,
                array(position, length as usize, "ref")?,
            )
        };
        let result = inner.handle.read_position(session, row, position);
        inner.read_ended(result)
    })
}

/// # Safety
/// table.h: `a` and `b` have ref_length bytes, `order` is NULL or writable.
pub(super) unsafe extern "C" fn compare_positions(
    table: *const c::xt_table,
    a: *const u8,
    b: *const u8,
    order: *mut i32,
) -> c::xt_status {
    with_table(table, |inner| {
        let length = inner.handle.info()?.ref_length as usize;
        // SAFETY: the caller's promises.
        let (a, b, order) = unsafe {
            (
                array(a, length, "a")?,
                array(b, length, "b")?,
                out(order, "order")?,
            )
        };
        *order = inner.handle.compare_positions(a, b)? as i32;
        Ok(())
    })
}

/// Bytes of `count` elements that stand `stride` apart.
fn strided(count: u32, stride: u32, length: u32, what: &str) -> Outcome<usize> {
    if stride < length {
        return Err(Fault::invalid(format!(
            "{what} is {stride}, at least {length} are needed"
        )));
    }
    (count as usize - 1)
        .checked_mul(stride as usize)
        .and_then(|bytes| bytes.checked_add(length as usize))
        .ok_or_else(|| Fault::invalid("the batch is too large"))
}

/// # Safety
/// table.h: `batch` is NULL or valid, its arrays are as large as it says.
pub(super) unsafe extern "C" fn read_n(
    table: *mut c::xt_table,
    batch: *mut c::xt_batch,
) -> c::xt_status {
    with_bound(table, |inner, session| {
        // SAFETY: the caller's promise.
        let mut given = unsafe { read_struct(batch)? };
        given.count = 0;
        // SAFETY: the same; the count is told with every code.
        unsafe { write_struct(batch, &given)? };
        let direction = match given.direction {
            c::XT_NEXT => Direction::Next,
            c::XT_PREV => Direction::Prev,
            other => return Err(Fault::invalid(format!("{other} is not a direction"))),
        };
        match (inner.cursor, direction) {
            (Cursor::Scan, Direction::Next) => {}
            (Cursor::Index(_), _) if inner.placed => {}
            (Cursor::Index(_), _) => return Err(Fault::wrong_order("the index has no place yet")),
            _ => {
                return Err(Fault::wrong_order(
                    "no scan or index is open that goes this way",
                ));
            }
        }
        if given.capacity == 0 {
            return Ok(());
        }
        let row_length = inner.image().row_length;
        let row_bytes = strided(given.capacity, given.row_stride, row_length, "row_stride")?;
        // SAFETY: the caller's promise.
        let rows = unsafe { array_mut(given.rows, row_bytes, "rows")? };
        let refs = if given.refs.is_null() {
            None
        } else {
            let length = inner.handle.info()?.ref_length;
            let bytes = strided(given.capacity, given.ref_stride, length, "ref_stride")?;
            // SAFETY: the caller's promise.
            Some((
                unsafe { array_mut(given.refs, bytes, "refs")? },
                given.ref_stride as usize,
            ))
        };
        let room = Batch {
            direction,
            rows,
            row_stride: given.row_stride as usize,
            refs,
            capacity: given.capacity as usize,
        };
        let (count, result) = inner.handle.read_n(session, room);
        inner.placed = true;
        inner.row_read = count > 0;
        given.count = count as u32;
        // SAFETY: the same.
        unsafe { write_struct(batch, &given)? };
        Ok(result?)
    })
}

pub(super) extern "C" fn unlock_row(table: *mut c::xt_table) -> c::xt_status {
    with_bound(table, |inner, session| {
        if inner.row_read {
            inner.handle.unlock_row(session);
        }
        Ok(())
    })
}

pub(super) extern "C" fn was_semi_consistent(table: *const c::xt_table) -> u8 {
    let mut was = 0;
    with_table(table, |inner| {
        was = inner.handle.was_semi_consistent() as u8;
        Ok(())
    });
    was
}
