//! table.h, second half: changing rows, and AUTO_INCREMENT.

use super::arguments::{array, array_mut, out};
use super::c;
use super::edge::{Fault, Outcome};
use super::table::{TableInner, with_bound};
use crate::engine::Session;
use crate::host::image::{ImageColumn, RowIn};

/// BLOB slices that fit on the stack; more go to the heap.
const BLOBS_ON_STACK: usize = 8;

fn may_write(inner: &TableInner) -> Outcome {
    if inner.writes {
        return Ok(());
    }
    Err(Fault::wrong_order(
        "the table is bound for reading: table_use with XT_USE_WRITE",
    ))
}

fn has_row(inner: &TableInner) -> Outcome {
    may_write(inner)?;
    if inner.row_read {
        return Ok(());
    }
    Err(Fault::new(c::XT_NO_ACTIVE_RECORD, "no row has been read"))
}

/// The data of a BLOB column in a row of the host.
///
/// # Safety
/// The column's length and pointer in `row` are the host's own, and the data lives as long as the call.
unsafe fn blob<'r>(column: &ImageColumn, row: &[u8]) -> Outcome<&'r [u8]> {
    if column.is_null(row) {
        return Ok(&[]);
    }
    let length = column.blob_length(row);
    let mut address = [0; 8];
    address.copy_from_slice(&column.bytes(row)[column.length_bytes as usize..]);
    let data = std::ptr::with_exposed_provenance(usize::from_ne_bytes(address));
    // SAFETY: the caller's promise; a NULL pointer with a length is refused.
    unsafe { array(data, length, &column.name) }
}

/// Finds the BLOBs of a row and runs the body with both. Columns that `map` leaves out are not
/// looked at: their pointers may be anything.
///
/// # Safety
/// `row` is NULL or a row image of the table whose BLOB pointers (of columns in the map) are valid.
unsafe fn with_row(
    inner: &mut TableInner,
    row: *const u8,
    map: Option<&[u8]>,
    body: impl FnOnce(&mut TableInner, RowIn<'_>) -> Outcome,
) -> Outcome {
    let shared = inner.handle.image().clone();
    // SAFETY: the caller's promise.
    let image = unsafe { array(row, shared.row_length as usize, "row")? };
    let count = shared.blob_count as usize;
    let mut on_stack: [&[u8]; BLOBS_ON_STACK] = [&[]; BLOBS_ON_STACK];
    let mut on_heap = Vec::new();
    let blobs: &mut [&[u8]] = if count <= BLOBS_ON_STACK {
        &mut on_stack[..count]
    } else {
        on_heap.resize(count, &[] as &[u8]);
        &mut on_heap
    };
    if count > 0 {
        let wanted = |at: usize| map.is_none_or(|map| map[at / 8] >> (at % 8) & 1 == 1);
        for (at, column) in shared.columns.iter().enumerate() {
            if column.kind.is_blob() && !column.is_virtual && wanted(at) {
                // SAFETY: the caller's promise.
                blobs[column.blob_no as usize] = unsafe { blob(column, image)? };
            }
        }
    }
    body(inner, RowIn { image, blobs })
}

/// # Safety
/// table.h: `row` is NULL or a row image.
pub(super) unsafe extern "C" fn insert_row(
    table: *mut c::xt_table,
    row: *const u8,
) -> c::xt_status {
    with_bound(table, |inner, session| {
        may_write(inner)?;
        // SAFETY: the caller's promise.
        unsafe {
            with_row(inner, row, None, |inner, row| {
                Ok(inner.handle.insert(session, row)?)
            })
        }
    })
}

/// # Safety
/// table.h: `new_row` is NULL or a row image; `old_row` is not looked at.
pub(super) unsafe extern "C" fn update_row(
    table: *mut c::xt_table,
    _old_row: *const u8,
    new_row: *const u8,
) -> c::xt_status {
    with_bound(table, |inner, session| {
        has_row(inner)?;
        let map = inner.write_map.take();
        let update =
            |inner: &mut TableInner, row: RowIn<'_>| Ok(inner.handle.update(session, row)?);
        // SAFETY: the caller's promise.
        let outcome = unsafe { with_row(inner, new_row, map.as_deref(), update) };
        inner.write_map = map;
        outcome
    })
}

/// # Safety
/// None: `row` is not looked at.
pub(super) unsafe extern "C" fn delete_row(
    table: *mut c::xt_table,
    _row: *const u8,
) -> c::xt_status {
    with_bound(table, |inner, session| {
        has_row(inner)?;
        inner.handle.delete(session)?;
        inner.row_read = false;
        Ok(())
    })
}

pub(super) extern "C" fn bulk_begin(table: *mut c::xt_table, rows: u64) -> c::xt_status {
    with_bound(table, |inner, session| {
        may_write(inner)?;
        Ok(inner.handle.bulk_begin(session, rows)?)
    })
}

pub(super) extern "C" fn bulk_end(table: *mut c::xt_table) -> c::xt_status {
    with_bound(table, |inner, session| {
        may_write(inner)?;
        Ok(inner.handle.bulk_end(session)?)
    })
}

/// # Safety
/// table.h: `row` is NULL or a writable row image.
pub(super) unsafe extern "C" fn bulk_refused(
    table: *mut c::xt_table,
    row: *mut u8,
) -> c::xt_status {
    with_bound(table, |inner, _| {
        let length = inner.image().row_length as usize;
        // SAFETY: the caller's promise.
        let row = unsafe { array_mut(row, length, "row")? };
        Ok(inner.handle.refused_key(row)?)
    })
}

/// Runs a body if the table has an AUTO_INCREMENT column.
fn with_counter(
    table: *mut c::xt_table,
    body: impl FnOnce(&mut TableInner, &mut Session) -> Outcome,
) -> c::xt_status {
    with_bound(table, |inner, session| {
        if inner.image().auto_increment().is_none() {
            return Err(Fault::new(
                c::XT_WRONG_COMMAND,
                "no column has AUTO_INCREMENT",
            ));
        }
        body(inner, session)
    })
}

/// # Safety
/// table.h: `first` and `count` are NULL or writable.
pub(super) unsafe extern "C" fn autoinc_reserve(
    table: *mut c::xt_table,
    offset: u64,
    increment: u64,
    wanted: u64,
    first: *mut u64,
    count: *mut u64,
) -> c::xt_status {
    with_counter(table, |inner, session| {
        if increment == 0 {
            return Err(Fault::invalid("the increment is 0"));
        }
        // SAFETY: the caller's promises.
        let (first, count) = unsafe { (out(first, "first")?, out(count, "count")?) };
        let reserved = inner
            .handle
            .autoinc_reserve(session, offset, increment, wanted)?;
        (*first, *count) = reserved;
        Ok(())
    })
}

pub(super) extern "C" fn autoinc_set(table: *mut c::xt_table, next: u64) -> c::xt_status {
    with_counter(table, |inner, session| {
        Ok(inner.handle.autoinc_set(session, next)?)
    })
}
