//! ddl.h: tables by name, the dictionary, CHECK TABLE.

use std::ffi::{c_char, c_void};

use super::arguments::{optional_text, out, read_struct, table_name, text, write_struct};
use super::c;
use super::edge::{Fault, Outcome, edge};
use super::info::Emitter;
use super::session::with_session;
use super::table::{row_mut, table_info, with_bound};
use super::template::{self, Described};
use crate::engine::{CheckFinding, CreateOptions, Engine, RowFormat, Session, Severity};
use crate::info::Value;
use crate::sync::{Arc, Mutex, Rank};

/// Runs a body with engine and session. Tables of the session are released first: DDL ends its
/// statement's reads.
fn with_tables(
    session: *mut c::xt_session,
    body: impl FnOnce(&Arc<Engine>, &mut Session) -> Outcome,
) -> c::xt_status {
    with_session(session, |inner| {
        if !inner.tables.is_empty() {
            return Err(Fault::wrong_order(
                "tables are bound to the session: table_release first",
            ));
        }
        let session = inner.session()?;
        let engine = session.engine().clone();
        body(&engine, session)
    })
}

fn three_way(number: u32, what: &str) -> Outcome<Option<bool>> {
    match number {
        c::XT_OPTION_DEFAULT => Ok(None),
        c::XT_OPTION_OFF => Ok(Some(false)),
        c::XT_OPTION_ON => Ok(Some(true)),
        other => Err(Fault::invalid(format!(
            "{what} is {other}, not an XT_OPTION_*"
        ))),
    }
}

/// # Safety
/// `given` is NULL or valid.
unsafe fn create_options(given: *const c::xt_create_options) -> Outcome<CreateOptions> {
    if given.is_null() {
        return Ok(CreateOptions::default());
    }
    // SAFETY: the caller's promise.
    let given = unsafe { read_struct(given)? };
    let row_format = match given.row_format {
        c::XT_ROW_FORMAT_DEFAULT => None,
        c::XT_ROW_FORMAT_REDUNDANT => Some(RowFormat::Redundant),
        c::XT_ROW_FORMAT_COMPACT => Some(RowFormat::Compact),
        c::XT_ROW_FORMAT_DYNAMIC => Some(RowFormat::Dynamic),
        c::XT_ROW_FORMAT_COMPRESSED => Some(RowFormat::Compressed),
        other => return Err(Fault::invalid(format!("{other} is not a row format"))),
    };
    // SAFETY: the caller's promise.
    let directory = unsafe { optional_text(given.data_directory, "data_directory")? };
    Ok(CreateOptions {
        temporary: given.flags & c::XT_CREATE_TEMPORARY != 0,
        row_format,
        key_block_size: given.key_block_size,
        auto_increment: given.auto_increment,
        data_directory: directory.map(Into::into),
        stats_persistent: three_way(given.stats_persistent, "stats_persistent")?,
        stats_auto_recalc: three_way(given.stats_auto_recalc, "stats_auto_recalc")?,
        stats_sample_pages: given.stats_sample_pages,
        page_compressed: three_way(given.page_compressed, "page_compressed")?,
        page_compression_level: given.page_compression_level,
        encrypted: three_way(given.encrypted, "encrypted")?,
        encryption_key_id: given.encryption_key_id,
    })
}

/// # Safety
/// ddl.h: everything is NULL or valid.
pub(super) unsafe extern "C" fn create(
    session: *mut c::xt_session,
    name: *const c_char,
    def: *const c::xt_table_def,
    options: *const c::xt_create_options,
) -> c::xt_status {
    with_tables(session, |engine, session| {
        // SAFETY: the caller's promises.
        let (name, image, options) = unsafe {
            (
                text(name, "name")?,
                template::read(def)?,
                create_options(options)?,
            )
        };
        Ok(engine.create_table(session, table_name(name)?, &image, &options)?)
    })
}

/// # Safety
/// ddl.h: `name` is NULL or a string.
pub(super) unsafe extern "C" fn drop(
    session: *mut c::xt_session,
    name: *const c_char,
) -> c::xt_status {
    with_tables(session, |engine, session| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name")? };
        Ok(engine.drop_table(session, table_name(name)?)?)
    })
}

/// # Safety
/// ddl.h: `from` and `to` are NULL or strings.
pub(super) unsafe extern "C" fn rename(
    session: *mut c::xt_session,
    from: *const c_char,
    to: *const c_char,
) -> c::xt_status {
    with_tables(session, |engine, session| {
        // SAFETY: the caller's promises.
        let (from, to) = unsafe { (text(from, "from")?, text(to, "to")?) };
        Ok(engine.rename_table(session, table_name(from)?, table_name(to)?)?)
    })
}

/// # Safety
/// ddl.h: `name` is NULL or a string.
pub(super) unsafe extern "C" fn truncate(
    session: *mut c::xt_session,
    name: *const c_char,
) -> c::xt_status {
    with_tables(session, |engine, session| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name")? };
        Ok(engine.truncate_table(session, table_name(name)?)?)
    })
}

/// # Safety
/// ddl.h: everything is NULL or valid; `row` is a writable row image.
pub(super) unsafe extern "C" fn index_add(
    session: *mut c::xt_session,
    name: *const c_char,
    def: *const c::xt_table_def,
    row: *mut u8,
) -> c::xt_status {
    with_tables(session, |engine, session| {
        // SAFETY: the caller's promises.
        let (name, image) = unsafe { (text(name, "name")?, template::read(def)?) };
        let row = match row.is_null() {
            true => None,
            // SAFETY: the same.
            false => Some(unsafe { row_mut(&image, row)? }),
        };
        Ok(engine.add_indexes(session, table_name(name)?, &image, row)?)
    })
}

/// # Safety
/// ddl.h: `name` and `index` are NULL or strings.
pub(super) unsafe extern "C" fn index_drop(
    session: *mut c::xt_session,
    name: *const c_char,
    index: *const c_char,
) -> c::xt_status {
    with_tables(session, |engine, session| {
        // SAFETY: the caller's promises.
        let (name, index) = unsafe { (text(name, "name")?, text(index, "index")?) };
        Ok(engine.drop_index(session, table_name(name)?, index)?)
    })
}

/// # Safety
/// ddl.h: `database` is NULL or a string.
pub(super) unsafe extern "C" fn database_drop(
    session: *mut c::xt_session,
    database: *const c_char,
) -> c::xt_status {
    with_tables(session, |engine, session| {
        // SAFETY: the caller's promise.
        let given = unsafe { text(database, "database")? }.trim_end_matches('/');
        let database = given.rsplit('/').next().unwrap_or(given);
        if database.is_empty() || database == "." || database == ".." {
            return Err(Fault::invalid(format!("'{given}' is not a database")));
        }
        Ok(engine.drop_database(session, database)?)
    })
}

/// # Safety
/// ddl.h: `name` is NULL or a string, `info` NULL or valid and writable.
pub(super) unsafe extern "C" fn find(
    session: *mut c::xt_session,
    name: *const c_char,
    info: *mut c::xt_table_info,
) -> c::xt_status {
    with_session(session, |inner| {
        // SAFETY: the caller's promises.
        let name = unsafe { text(name, "name")? };
        let found = inner.session()?.engine().find_table(table_name(name)?)?;
        // SAFETY: the same.
        unsafe { write_struct(info, &table_info(&found)) }
    })
}

/// # Safety
/// ddl.h: `database` is NULL or a string, `emit` keeps info.h's promises.
pub(super) unsafe extern "C" fn list(
    session: *mut c::xt_session,
    database: *const c_char,
    emit: c::xt_emit_fn,
    ctx: *mut c_void,
) -> c::xt_status {
    with_session(session, |inner| {
        let emitter = Emitter::new(emit, ctx)?;
        // SAFETY: the caller's promise.
        let database = unsafe { optional_text(database, "database")? };
        for name in inner.session()?.engine().table_names(database)? {
            let (database, table) = name.split_once('/').unwrap_or(("", &name));
            emitter.emit(&[Value::Text(database), Value::Text(table)])?;
        }
        Ok(())
    })
}

/// Addresses of descriptions that are out.
static DESCRIPTIONS: Mutex<Vec<usize>> = Mutex::new(Rank::None, Vec::new());

/// At unload: a description that was not given back is lost.
pub(super) fn free_memory() {
    *DESCRIPTIONS.lock() = Vec::new();
}

/// # Safety
/// ddl.h: `name` is NULL or a string, `description` NULL or writable.
pub(super) unsafe extern "C" fn describe(
    session: *mut c::xt_session,
    name: *const c_char,
    description: *mut *const c::xt_description,
) -> c::xt_status {
    with_session(session, |inner| {
        // SAFETY: the caller's promises.
        let (name, description) =
            unsafe { (text(name, "name")?, out(description, "description")?) };
        let table = inner
            .session()?
            .engine()
            .describe_table(table_name(name)?)?;
        let described = Box::into_raw(Described::new(&table));
        DESCRIPTIONS.lock().push(described.addr());
        *description = described.cast();
        Ok(())
    })
}

/// # Safety
/// ddl.h: `description` is NULL or came from table_describe.
pub(super) unsafe extern "C" fn description_free(
    description: *const c::xt_description,
) -> c::xt_status {
    if description.is_null() {
        return c::XT_OK as c::xt_status;
    }
    edge(|| {
        let mut all = DESCRIPTIONS.lock();
        let Some(at) = all
            .iter()
            .position(|&address| address == description.addr())
        else {
            return Err(Fault::new(
                c::XT_BAD_HANDLE,
                "not a description, or freed already",
            ));
        };
        all.swap_remove(at);
        // SAFETY: the address was in the list, so `describe` made it with `Box::into_raw`, and it is
        // off the list now: it is freed once. `Described` begins with the public part.
        std::mem::drop(unsafe { Box::from_raw(description.cast_mut().cast::<Described>()) });
        Ok(())
    })
}

/// # Safety
/// ddl.h: `emit` keeps info.h's promises.
pub(super) unsafe extern "C" fn check(
    table: *mut c::xt_table,
    flags: u32,
    emit: c::xt_emit_fn,
    ctx: *mut c_void,
) -> c::xt_status {
    with_bound(table, |inner, session| {
        let emitter = Emitter::new(emit, ctx)?;
        let mut stopped = None;
        let mut found = |finding: CheckFinding| {
            let severity = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            let emitted = emitter.emit(&[Value::Text(severity), Value::Text(&finding.text)]);
            stopped = emitted.err();
            stopped.is_none()
        };
        let extended = flags & c::XT_CHECK_EXTENDED != 0;
        let checked = inner.handle.check(session, extended, &mut found);
        if let Some(fault) = stopped {
            return Err(fault);
        }
        if checked? {
            return Ok(());
        }
        Err(Fault::new(c::XT_CRASHED, "CHECK TABLE found errors"))
    })
}

pub(super) extern "C" fn analyze(table: *mut c::xt_table) -> c::xt_status {
    with_bound(table, |inner, session| Ok(inner.handle.analyze(session)?))
}

pub(super) extern "C" fn optimize(table: *mut c::xt_table) -> c::xt_status {
    with_bound(table, |_, _| {
        Err(Fault::new(
            c::XT_TRY_ALTER,
            "rebuild the table: ALTER TABLE … FORCE",
        ))
    })
}
