//! index.h: reading by key.

use super::arguments::{array, out};
use super::c;
use super::edge::{Fault, Outcome};
use super::table::{Cursor, TableInner, key_exists, row_mut, with_bound};
use crate::engine::{Bound, Find};
use crate::host::image::{ColumnKind, TableImage, little_endian};

fn find_flag(number: u32) -> Outcome<Find> {
    Ok(match number {
        c::XT_FIND_EXACT => Find::Exact,
        c::XT_FIND_KEY_OR_NEXT => Find::KeyOrNext,
        c::XT_FIND_KEY_OR_PREV => Find::KeyOrPrev,
        c::XT_FIND_AFTER => Find::After,
        c::XT_FIND_BEFORE => Find::Before,
        c::XT_FIND_PREFIX => Find::Prefix,
        c::XT_FIND_PREFIX_LAST => Find::PrefixLast,
        c::XT_FIND_PREFIX_LAST_OR_PREV => Find::PrefixLastOrPrev,
        8..=12 => {
            return Err(Fault::new(
                c::XT_UNSUPPORTED,
                "spatial keys are not supported",
            ));
        }
        other => return Err(Fault::invalid(format!("{other} is not a find flag"))),
    })
}

/// Checks that a key image ends where it may, and that no length in it passes its part.
pub(super) fn check_key(image: &TableImage, key_no: u32, key: &[u8], find: Find) -> Outcome {
    let definition = &image.keys[key_no as usize];
    let inside = matches!(
        find,
        Find::Prefix | Find::PrefixLast | Find::PrefixLastOrPrev
    );
    let mut rest = key;
    for part in &definition.parts {
        if rest.is_empty() {
            return Ok(());
        }
        let column = &image.columns[part.column as usize];
        let bytes = image.key_part_bytes(part) as usize;
        let head = bytes - part.length as usize;
        if rest.len() < bytes {
            // Only a string may end early, and not within its null and length bytes.
            let is_text = column.kind.has_key_length() || column.kind == ColumnKind::String;
            if inside && is_text && rest.len() > head {
                return Ok(());
            }
            return Err(Fault::invalid(format!(
                "the key image of {} ends inside a part ({} bytes)",
                definition.name,
                key.len()
            )));
        }
        if column.kind.has_key_length() {
            let length = little_endian(&rest[head - 2..head]);
            if length > part.length as u64 {
                return Err(Fault::invalid(format!(
                    "a string in the key image of {} has {length} bytes, its part {}",
                    definition.name, part.length
                )));
            }
        }
        rest = &rest[bytes..];
    }
    if rest.is_empty() {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "the key image of {} is {} bytes too long",
        definition.name,
        rest.len()
    )))
}

fn open_key(inner: &TableInner) -> Outcome<u32> {
    match inner.cursor {
        Cursor::Index(key) => Ok(key),
        _ => Err(Fault::wrong_order("no index is open: index_begin first")),
    }
}

fn placed(inner: &TableInner) -> Outcome {
    open_key(inner)?;
    if inner.placed {
        Ok(())
    } else {
        Err(Fault::wrong_order("the index has no place yet"))
    }
}

pub(super) extern "C" fn begin(table: *mut c::xt_table, key: u32, _sorted: u8) -> c::xt_status {
    with_bound(table, |inner, session| {
        if inner.cursor != Cursor::None {
            return Err(Fault::wrong_order(
                "a scan or an index is open: end it first",
            ));
        }
        key_exists(inner, key)?;
        inner.handle.index_begin(session, key)?;
        inner.cursor = Cursor::Index(key);
        inner.placed = false;
        inner.row_read = false;
        Ok(())
    })
}

/// # Safety
/// index.h: `row` has row_length bytes, `key` has `key_length`.
pub(super) unsafe extern "C" fn read(
    table: *mut c::xt_table,
    row: *mut u8,
    key: *const u8,
    key_length: u32,
    find: u32,
) -> c::xt_status {
    with_bound(table, |inner, session| {
        let key_no = open_key(inner)?;
        let find = find_flag(find)?;
        // SAFETY: the caller's promises.
        let (row, key) = unsafe {
            (
                row_mut(inner.image(), row)?,
                array(key, key_length as usize, "key")?,
            )
        };
        check_key(inner.image(), key_no, key, find)?;
        let result = inner.handle.index_read(session, row, key, find);
        inner.placed = true;
        inner.read_ended(result)
    })
}

/// # Safety
/// index.h: `row` has row_length bytes.
pub(super) unsafe extern "C" fn next(table: *mut c::xt_table, row: *mut u8) -> c::xt_status {
    with_bound(table, |inner, session| {
        placed(inner)?;
        // SAFETY: the caller's promise.
        let row = unsafe { row_mut(inner.image(), row)? };
        let result = inner.handle.next(session, row);
        inner.read_ended(result)
    })
}

/// # Safety
/// index.h: `row` has row_length bytes.
pub(super) unsafe extern "C" fn prev(table: *mut c::xt_table, row: *mut u8) -> c::xt_status {
    with_bound(table, |inner, session| {
        placed(inner)?;
        // SAFETY: the caller's promise.
        let row = unsafe { row_mut(inner.image(), row)? };
        let result = inner.handle.prev(session, row);
        inner.read_ended(result)
    })
}

/// # Safety
/// `row` has row_length bytes.
unsafe fn edge_row(table: *mut c::xt_table, row: *mut u8, last: bool) -> c::xt_status {
    with_bound(table, |inner, session| {
        open_key(inner)?;
        // SAFETY: the caller's promise.
        let row = unsafe { row_mut(inner.image(), row)? };
        let result = inner.handle.index_edge(session, row, last);
        inner.placed = true;
        inner.read_ended(result)
    })
}

/// # Safety
/// index.h: `row` has row_length bytes.
pub(super) unsafe extern "C" fn first(table: *mut c::xt_table, row: *mut u8) -> c::xt_status {
    // SAFETY: the caller's promise.
    unsafe { edge_row(table, row, false) }
}

/// # Safety
/// index.h: `row` has row_length bytes.
pub(super) unsafe extern "C" fn last(table: *mut c::xt_table, row: *mut u8) -> c::xt_status {
    // SAFETY: the caller's promise.
    unsafe { edge_row(table, row, true) }
}

/// # Safety
/// index.h: `row` has row_length bytes, `key` has `key_length`.
pub(super) unsafe extern "C" fn next_same(
    table: *mut c::xt_table,
    row: *mut u8,
    key: *const u8,
    key_length: u32,
) -> c::xt_status {
    with_bound(table, |inner, session| {
        placed(inner)?;
        let key_no = open_key(inner)?;
        // SAFETY: the caller's promises.
        let (row, key) = unsafe {
            (
                row_mut(inner.image(), row)?,
                array(key, key_length as usize, "key")?,
            )
        };
        check_key(inner.image(), key_no, key, Find::Prefix)?;
        let result = inner.handle.next_same(session, row, key);
        inner.read_ended(result)
    })
}

/// # Safety
/// `bound` is NULL or valid, its key has `length` bytes.
unsafe fn bound<'k>(
    image: &TableImage,
    key_no: u32,
    bound: *const c::xt_bound,
) -> Outcome<Option<Bound<'k>>> {
    if bound.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promises.
    let key = unsafe {
        let given = &array(bound, 1, "bound")?[0];
        let find = match find_flag(given.find)? {
            find @ (Find::Exact | Find::After | Find::Before) => find,
            _ => return Err(Fault::invalid("a bound is XT_FIND_EXACT, AFTER or BEFORE")),
        };
        Bound {
            key: array(given.key, given.length as usize, "bound.key")?,
            find,
        }
    };
    // A bound of a LIKE range may end inside a string.
    check_key(image, key_no, key.key, Find::Prefix)?;
    Ok(Some(key))
}

/// # Safety
/// index.h: the bounds are NULL or valid, `rows` is NULL or writable.
pub(super) unsafe extern "C" fn records_in_range(
    table: *mut c::xt_table,
    key: u32,
    lower: *const c::xt_bound,
    upper: *const c::xt_bound,
    rows: *mut u64,
) -> c::xt_status {
    with_bound(table, |inner, _| {
        key_exists(inner, key)?;
        // SAFETY: the caller's promises.
        let (lower, upper, rows) = unsafe {
            let image = inner.image();
            (
                bound(image, key, lower)?,
                bound(image, key, upper)?,
                out(rows, "rows")?,
            )
        };
        *rows = inner.handle.records_in_range(key, lower, upper)?.max(1);
        Ok(())
    })
}
