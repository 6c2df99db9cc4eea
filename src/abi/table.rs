//! table.h: opening and binding tables, scans, positions.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::ptr;

use super::arguments::{array, array_mut, out, read_struct, table_name, text, write_struct};
use super::c;
use super::edge::{Fault, Outcome, edge, guarded};
use super::engine::EngineBox;
use super::handle::{self, Handled};
use super::session::{SessionBox, with_session};
use super::template;
use crate::engine::{Extra, LockMode, OpenFlags, Session, TableHandle, TableInfo, TableUse, Wait};
use crate::host::image::TableImage;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::words::Error;

/// Behind an `xt_table`.
pub(super) struct TableBox {
    owner: Arc<EngineBox>,
    /// A call is in the table.
    busy: AtomicBool,
    /// Touched only by the call that set `busy`.
    inner: UnsafeCell<TableInner>,
}

// SAFETY: `inner` is reached through `enter` only, which lets one thread in at a time; the rest is
// immutable or atomic, and all of it may move between threads.
unsafe impl Sync for TableBox {}
// SAFETY: the engine's handle may be used by any thread, one at a time.
unsafe impl Send for TableBox {}

impl Handled for TableBox {
    type Opaque = c::xt_table;
    const KIND: u64 = 3;
    const NAME: &'static str = "table";
}

/// What is being read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cursor {
    /// Nothing.
    None,
    /// All rows.
    Scan,
    /// Single rows by position.
    Positions,
    /// A key.
    Index(u32),
}

/// What a table's calls work on.
pub(super) struct TableInner {
    pub(super) handle: TableHandle,
    session: Option<Arc<SessionBox>>,
    /// The session's `uses` when it was bound.
    bound_in: u64,
    pub(super) cursor: Cursor,
    /// The cursor stands at a row, or behind the last one.
    pub(super) placed: bool,
    /// There is a row that update, delete, unlock and position mean.
    pub(super) row_read: bool,
    /// The columns that updates look at; `None`: all.
    pub(super) write_map: Option<Box<[u8]>>,
    /// The use allows changes.
    pub(super) writes: bool,
}

impl TableInner {
    pub(super) fn image(&self) -> &TableImage {
        self.handle.image()
    }

    /// Scan or index is over.
    pub(super) fn cursor_end(&mut self) {
        if self.cursor != Cursor::None {
            self.handle.cursor_end();
        }
        self.cursor = Cursor::None;
        self.placed = false;
    }

    fn end_use(&mut self) {
        self.cursor_end();
        self.handle.end_use();
        self.session = None;
        self.row_read = false;
        self.write_map = None;
        self.writes = false;
    }

    /// A read ended: remembers whether there is a row now.
    pub(super) fn read_ended(&mut self, result: crate::words::Result<()>) -> Outcome {
        self.row_read = result.is_ok();
        Ok(result?)
    }
}

struct Entered<'t>(&'t TableBox);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

impl Entered<'_> {
    fn inner(&mut self) -> &mut TableInner {
        // SAFETY: `busy` was false when `enter` set it, so this is the one call that is inside, and
        // `&mut self` makes this the one reference.
        unsafe { &mut *self.0.inner.get() }
    }
}

impl TableBox {
    fn enter(&self) -> Outcome<Entered<'_>> {
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(Fault::wrong_order("the table is in use by another call"));
        }
        Ok(Entered(self))
    }

    /// The session ends the use.
    pub(super) fn unbind(&self) {
        // A table that is busy now is used by two threads: the next call finds that the use is over.
        if let Ok(mut call) = self.enter() {
            call.inner().end_use();
        }
    }
}

/// Runs a body in a table that need not be bound. The error text goes to the session if it is.
pub(super) fn with_table(
    table: *const c::xt_table,
    body: impl FnOnce(&mut TableInner) -> Outcome,
) -> c::xt_status {
    edge(|| {
        let table = handle::look_up::<TableBox>(table)?;
        let mut call = table.enter()?;
        let outcome = guarded(|| body(call.inner()));
        if let (Err(fault), Some(session)) = (&outcome, &call.inner().session) {
            session
                .enter()?
                .inner()
                .ended(Err(fault.clone()), c::XT_NO_KEY);
        }
        outcome
    })
}

/// Runs a body in a bound table, with the session to which it is bound.
pub(super) fn with_bound(
    table: *const c::xt_table,
    body: impl FnOnce(&mut TableInner, &mut Session) -> Outcome,
) -> c::xt_status {
    let mut code = c::XT_OK as c::xt_status;
    let entered = edge(|| {
        let table = handle::look_up::<TableBox>(table)?;
        let mut call = table.enter()?;
        let inner = call.inner();
        let unbound = || Fault::wrong_order("the table is not bound to a session: table_use first");
        let session = inner.session.clone().ok_or_else(unbound)?;
        let mut session = session.enter()?;
        let session = session.inner();
        if inner.bound_in != session.uses {
            inner.end_use();
            return Err(unbound());
        }
        let outcome = guarded(|| body(inner, session.session()?));
        let error_key = match &outcome {
            Err(Fault::Engine(Error::DuplicateKey { index })) => inner.handle.host_key(*index),
            _ => None,
        };
        code = session.ended(outcome, error_key.unwrap_or(c::XT_NO_KEY));
        Ok(())
    });
    if entered == c::XT_OK as c::xt_status {
        code
    } else {
        entered
    }
}

/// # Safety
/// `row` is NULL or has `row_length` bytes that nobody else uses during the call.
pub(super) unsafe fn row_mut<'r>(image: &TableImage, row: *mut u8) -> Outcome<&'r mut [u8]> {
    // SAFETY: the caller's promise.
    unsafe { array_mut(row, image.row_length as usize, "row") }
}

/// # Safety
/// table.h: strings and structs are NULL or valid, `table` NULL or writable.
pub(super) unsafe extern "C" fn open(
    session: *mut c::xt_session,
    name: *const c_char,
    def: *const c::xt_table_def,
    flags: u32,
    table: *mut *mut c::xt_table,
) -> c::xt_status {
    let shared = handle::look_up::<SessionBox>(session).map(|session| session.owner().clone());
    with_session(session, |inner| {
        let owner = shared?;
        // SAFETY: the caller's promises.
        let (name, table) = unsafe { (text(name, "name")?, out(table, "table")?) };
        let name = table_name(name)?;
        // SAFETY: the same.
        let image = unsafe { template::read(def)? };
        let flags = OpenFlags {
            even_if_damaged: flags & c::XT_OPEN_EVEN_IF_DAMAGED != 0,
        };
        let opened = TableHandle::open(inner.session()?.engine(), name, image, flags)?;
        *table = handle::publish(Arc::new(TableBox {
            owner: owner.clone(),
            busy: AtomicBool::new(false),
            inner: UnsafeCell::new(TableInner {
                handle: opened,
                session: None,
                bound_in: 0,
                cursor: Cursor::None,
                placed: false,
                row_read: false,
                write_map: None,
                writes: false,
            }),
        }))?;
        owner.tables_changed(1);
        Ok(())
    })
}

/// Takes the table off its session's list and ends the use.
fn release_from_session(table: &TableBox, inner: &mut TableInner) -> Outcome {
    if let Some(session) = &inner.session {
        let mut session = session.enter()?;
        let tables = &mut session.inner().tables;
        tables.retain(|bound| !ptr::eq(&**bound, table));
    }
    inner.end_use();
    Ok(())
}

pub(super) extern "C" fn close(table: *mut c::xt_table) -> c::xt_status {
    if table.is_null() {
        return c::XT_OK as c::xt_status;
    }
    edge(|| {
        let open = handle::look_up::<TableBox>(table)?.share();
        let mut call = open.enter()?;
        release_from_session(&open, call.inner())?;
        handle::close::<TableBox>(table)?;
        drop(call);
        let owner = open.owner.clone();
        drop(open);
        owner.tables_changed(-1);
        Ok(())
    })
}

/// The engine's facts in the header's form.
pub(super) fn table_info(info: &TableInfo) -> c::xt_table_info {
    let bits = [
        (info.flags.discarded, c::XT_TABLE_DISCARDED),
        (info.flags.corrupt, c::XT_TABLE_CORRUPT),
        (info.flags.read_only, c::XT_TABLE_READ_ONLY),
        (info.flags.temporary, c::XT_TABLE_TEMPORARY),
        (info.flags.no_collation, c::XT_TABLE_NO_COLLATION),
    ];
    c::xt_table_info {
        struct_size: 0,
        row_format: info.row_format as u32,
        table_id: info.table_id.0,
        space_id: info.space_id.0,
        ref_length: info.ref_length,
        clustered_key: info.clustered_key.unwrap_or(c::XT_NO_KEY),
        flags: bits
            .iter()
            .filter(|(on, _)| *on)
            .fold(0, |flags, (_, bit)| flags | bit),
        version: info.version.0,
    }
}

/// # Safety
/// table.h: `info` is NULL or valid and writable.
pub(super) unsafe extern "C" fn info(
    table: *const c::xt_table,
    info: *mut c::xt_table_info,
) -> c::xt_status {
    // SAFETY: the caller's promise.
    with_table(table, |inner| unsafe {
        write_struct(info, &table_info(&inner.handle.info()?))
    })
}

fn table_use(given: &c::xt_table_use) -> Outcome<TableUse> {
    let lock = match given.lock {
        c::XT_LOCK_NONE => LockMode::None,
        c::XT_LOCK_S => LockMode::Shared,
        c::XT_LOCK_X => LockMode::Exclusive,
        other => return Err(Fault::invalid(format!("{other} is not a lock mode"))),
    };
    let wait = match given.wait {
        c::XT_WAIT_DEFAULT => Wait::Default,
        c::XT_WAIT_NOWAIT => Wait::NoWait,
        c::XT_WAIT_SKIP_LOCKED => Wait::SkipLocked,
        c::XT_WAIT_SECONDS => Wait::Seconds(given.wait_seconds),
        other => return Err(Fault::invalid(format!("{other} is not a way to wait"))),
    };
    let write = given.flags & c::XT_USE_WRITE != 0;
    if write && lock != LockMode::Exclusive {
        return Err(Fault::invalid("XT_USE_WRITE needs XT_LOCK_X"));
    }
    Ok(TableUse {
        lock,
        wait,
        write,
        lock_table: given.flags & c::XT_USE_LOCK_TABLE != 0,
    })
}

/// # Safety
/// table.h: `how` is NULL or valid.
pub(super) unsafe extern "C" fn use_by(
    table: *mut c::xt_table,
    session: *mut c::xt_session,
    how: *const c::xt_table_use,
) -> c::xt_status {
    let mut code = c::XT_OK as c::xt_status;
    let entered = edge(|| {
        let shared = handle::look_up::<TableBox>(table)?;
        let session = handle::look_up::<SessionBox>(session)?;
        if !Arc::ptr_eq(&shared.owner, session.owner()) {
            return Err(Fault::invalid(
                "table and session belong to different engines",
            ));
        }
        let mut call = shared.enter()?;
        release_from_session(&shared, call.inner())?;
        let mut entered = session.enter()?;
        let inner = entered.inner();
        let outcome = guarded(|| {
            // SAFETY: the caller's promise.
            let how = table_use(&unsafe { read_struct(how)? })?;
            if !inner.in_statement() {
                return Err(Fault::wrong_order(
                    "no statement is open: statement_begin first",
                ));
            }
            let table = call.inner();
            table.handle.begin_use(inner.session()?, &how)?;
            table.session = Some(session.share());
            table.bound_in = inner.uses;
            table.writes = how.write;
            inner.tables.push(shared.share());
            Ok(())
        });
        code = inner.ended(outcome, c::XT_NO_KEY);
        Ok(())
    });
    if entered == c::XT_OK as c::xt_status {
        code
    } else {
        entered
    }
}

pub(super) extern "C" fn release(table: *mut c::xt_table) -> c::xt_status {
    edge(|| {
        let open = handle::look_up::<TableBox>(table)?;
        let mut call = open.enter()?;
        release_from_session(&open, call.inner())
    })
}

/// # Safety
/// table.h: the maps are NULL or have `map_bytes` bytes.
pub(super) unsafe extern "C" fn columns(
    table: *mut c::xt_table,
    read_map: *const u8,
    write_map: *const u8,
    map_bytes: u32,
) -> c::xt_status {
    with_bound(table, |inner, _| {
        let bytes = map_bytes as usize;
        let need = inner.image().columns.len().div_ceil(8);
        if (!read_map.is_null() || !write_map.is_null()) && bytes < need {
            return Err(Fault::invalid(format!(
                "the maps have {bytes} bytes, {need} are needed"
            )));
        }
        let map = |map: *const u8| -> Outcome<Option<&[u8]>> {
            if map.is_null() {
                return Ok(None);
            }
            // SAFETY: the caller's promise, for maps that are given.
            Ok(Some(unsafe { array(map, need, "map")? }))
        };
        let (read, write) = (map(read_map)?, map(write_map)?);
        inner.handle.set_columns(read, write);
        inner.write_map = write.map(Box::from);
        Ok(())
    })
}

pub(super) extern "C" fn extra(table: *mut c::xt_table, what: u32) -> c::xt_status {
    with_bound(table, |inner, session| {
        let extra = match what {
            c::XT_EXTRA_KEYREAD => Extra::KeyRead(true),
            c::XT_EXTRA_NO_KEYREAD => Extra::KeyRead(false),
            c::XT_EXTRA_KEYREAD_PRESERVE_FIELDS => Extra::PreserveFields,
            c::XT_EXTRA_IGNORE_DUPLICATE => Extra::IgnoreDuplicate(true),
            c::XT_EXTRA_NO_IGNORE_DUPLICATE => Extra::IgnoreDuplicate(false),
            c::XT_EXTRA_WRITE_CAN_REPLACE => Extra::WriteCanReplace(true),
            c::XT_EXTRA_WRITE_CANNOT_REPLACE => Extra::WriteCanReplace(false),
            c::XT_EXTRA_INSERT_WITH_UPDATE => Extra::InsertWithUpdate,
            c::XT_EXTRA_SEMI_CONSISTENT => Extra::SemiConsistent(true),
            c::XT_EXTRA_NO_SEMI_CONSISTENT => Extra::SemiConsistent(false),
            c::XT_EXTRA_BEGIN_COPY => Extra::BeginCopy(false),
            c::XT_EXTRA_BEGIN_IGNORE_COPY => Extra::BeginCopy(true),
            c::XT_EXTRA_END_COPY => Extra::EndCopy,
            c::XT_EXTRA_ABORT_COPY => Extra::AbortCopy,
            other => return Err(Fault::invalid(format!("{other} is not a switch"))),
        };
        Ok(inner.handle.extra(session, extra)?)
    })
}

/// # Safety
/// table.h: `stats` is NULL or valid and writable.
pub(super) unsafe extern "C" fn stats(
    table: *mut c::xt_table,
    stats: *mut c::xt_table_stats,
) -> c::xt_status {
    with_table(table, |inner| {
        let is = inner.handle.stats()?;
        let value = c::xt_table_stats {
            struct_size: 0,
            reserved: 0,
            rows: is.rows,
            data_length: is.data_length,
            index_length: is.index_length,
            free_length: is.free_length,
            auto_increment: is.auto_increment,
            update_time: is.update_time,
            clustered_pages: is.clustered_pages,
            rows_max: is.rows_max,
        };
        // SAFETY: the caller's promise.
        unsafe { write_struct(stats, &value) }
    })
}

/// # Safety
/// table.h: `rec_per_key` has room for `count` numbers.
pub(super) unsafe extern "C" fn rec_per_key(
    table: *mut c::xt_table,
    key: u32,
    rec_per_key: *mut f64,
    count: u32,
) -> c::xt_status {
    with_table(table, |inner| {
        key_exists(inner, key)?;
        // SAFETY: the caller's promise.
        let room = unsafe { array_mut(rec_per_key, count as usize, "rec_per_key")? };
        Ok(inner.handle.rec_per_key(key, room)?)
    })
}

/// The template has a key of that number.
pub(super) fn key_exists(inner: &TableInner, key: u32) -> Outcome {
    let keys = inner.image().keys.len();
    if key as usize >= keys {
        return Err(Fault::invalid(format!(
            "there is no key {key}, the template has {keys}"
        )));
    }
    Ok(())
}
