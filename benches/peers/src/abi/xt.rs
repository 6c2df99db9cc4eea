//! xtradb through its C ABI (include/xtradb.h), as a C host would use it: dlopen, one table of
//! functions, statements around every use of a table.

use crate::engine::{Config, Flush, Result};
use crate::rows::VALUE_BYTES;
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

#[allow(
    dead_code,
    non_camel_case_types,
    non_upper_case_globals,
    reason = "made by bindgen"
)]
mod c {
    include!(concat!(env!("OUT_DIR"), "/xtradb.rs"));
}

const TABLE: &CStr = c"bench/rows";
const CLOSE_TIMEOUT_MS: u32 = 60_000;

/// The row image: a null byte, the key, the value.
const KEY_AT: usize = 1;
const VALUE_AT: usize = KEY_AT + 8;
pub const ROW_BYTES: usize = VALUE_AT + VALUE_BYTES;

pub type Row = [u8; ROW_BYTES];

pub fn set_key(row: &mut Row, key: u64) {
    row[KEY_AT..VALUE_AT].copy_from_slice(&key.to_le_bytes());
}

pub fn value(row: &[u8]) -> &[u8] {
    &row[VALUE_AT..ROW_BYTES]
}

pub fn value_mut(row: &mut Row) -> &mut [u8; VALUE_BYTES] {
    (&mut row[VALUE_AT..]).try_into().expect("the row's rest")
}

/// Calls a slot of the function table; every slot of the version that we ask for is filled.
macro_rules! call {
    ($api:expr, $slot:ident $(, $argument:expr)*) => {
        ($api.$slot.expect("a slot of 1.0"))($($argument),*)
    };
}

unsafe extern "C" fn print_log(_: *mut c_void, level: u32, text: *const c_char, _: u32) {
    if level <= c::XT_LOG_WARNING {
        // SAFETY: the engine gives a NUL-terminated line (host.h).
        eprintln!(
            "xtradb: {}",
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        );
    }
}

unsafe extern "C" fn no_collation(_: *mut c_void, _: u32) -> *const c::xt_collation {
    ptr::null()
}

struct Host(c::xt_host);

// SAFETY: `ctx` is NULL and never looked at; the callbacks use nothing shared.
unsafe impl Sync for Host {}

static HOST: Host = Host(c::xt_host {
    struct_size: size_of::<c::xt_host>() as u32,
    abi_version: c::XT_ABI_MAJOR << 16 | c::XT_ABI_MINOR,
    ctx: ptr::null_mut(),
    log: Some(print_log),
    collation: Some(no_collation),
    kill_check: None,
    warning: None,
    query_text: None,
    wait_report: None,
    clock: None,
    thread_attach: None,
    thread_detach: None,
});

/// The table's definition: `id BIGINT UNSIGNED PRIMARY KEY, v BINARY(200)`.
struct Definition {
    columns: [c::xt_column; 2],
    part: c::xt_key_part,
    key: c::xt_key,
}

impl Definition {
    fn new() -> Box<Definition> {
        let column = |name: &'static CStr, offset: usize, length: usize, type_: u32, flags: u32| {
            c::xt_column {
                name: name.as_ptr(),
                offset: offset as u32,
                length: length as u32,
                octets: length as u32,
                collation: 63,
                flags: flags | c::XT_COLUMN_NOT_NULL,
                null_offset: 0,
                null_mask: 0,
                type_: type_ as u8,
                length_bytes: 0,
                decimals: 0,
                precision: 0,
            }
        };
        Box::new(Definition {
            columns: [
                column(c"id", KEY_AT, 8, c::XT_TYPE_LONGLONG, c::XT_COLUMN_UNSIGNED),
                column(c"v", VALUE_AT, VALUE_BYTES, c::XT_TYPE_STRING, 0),
            ],
            part: c::xt_key_part {
                column: 0,
                length: 8,
                flags: 0,
            },
            key: c::xt_key {
                name: c"PRIMARY".as_ptr(),
                parts: ptr::null(),
                parts_count: 1,
                flags: c::XT_KEY_PRIMARY | c::XT_KEY_UNIQUE,
            },
        })
    }

    /// Runs `work` with the C view, which points into `self`.
    fn with<T>(&mut self, work: impl FnOnce(&c::xt_table_def) -> T) -> T {
        self.key.parts = &self.part;
        work(&c::xt_table_def {
            struct_size: size_of::<c::xt_table_def>() as u32,
            reserved: 0,
            columns: self.columns.as_ptr(),
            keys: &self.key,
            columns_count: 2,
            keys_count: 1,
            row_length: ROW_BYTES as u32,
            null_bytes: 1,
        })
    }
}

fn load(library: &Path) -> Result<&'static c::xt_api> {
    let path = CString::new(library.as_os_str().as_bytes())?;
    // SAFETY: the library is ours and keeps the contract of xtradb.h: the symbol has that type, the
    // table is static while the library is loaded, and it is never unloaded here.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            let why = CStr::from_ptr(libc::dlerror())
                .to_string_lossy()
                .into_owned();
            return Err(why.into());
        }
        let symbol = libc::dlsym(library, c"xtradb_api".as_ptr());
        if symbol.is_null() {
            return Err("the library exports no xtradb_api".into());
        }
        let get: unsafe extern "C" fn(u32) -> *const c::xt_api = std::mem::transmute(symbol);
        get(c::XT_ABI_MAJOR)
            .as_ref()
            .ok_or_else(|| "the library speaks another version of the interface".into())
    }
}

/// A running engine.
pub struct Engine {
    api: &'static c::xt_api,
    handle: *mut c::xt_engine,
}

// SAFETY: what threads do with an engine here (session_open, engine_error) is "Thread: any"; init
// and deinit are called by the one owner.
unsafe impl Send for Engine {}
// SAFETY: as above.
unsafe impl Sync for Engine {}

impl Engine {
    /// Opens the directory, makes the table if it is not there.
    pub fn open(config: &Config) -> Result<Engine> {
        let api = load(&config.library)?;
        std::fs::create_dir_all(config.dir.join("bench"))?;
        let mut handle = ptr::null_mut();
        // SAFETY: the host struct is static.
        let status = unsafe { call!(api, engine_create, &HOST.0, &mut handle) };
        let engine = Engine { api, handle };
        engine.check(status, "engine_create")?;
        engine.init(config)?;
        let mut session = engine.session(0)?;
        match session.open_table() {
            Ok(()) => {}
            Err(_) => session.create_table()?,
        }
        drop(session);
        Ok(engine)
    }

    fn init(&self, config: &Config) -> Result<()> {
        let flush = if config.flush == Flush::Synced { 1 } else { 2 };
        let settings = [
            format!("buffer_pool_size={}", config.cache_bytes >> 20 << 20),
            format!("log_file_size={}", config.log_bytes),
            format!("flush_log_at_trx_commit={flush}"),
        ];
        let settings: Vec<CString> = settings
            .into_iter()
            .chain(config.settings.iter().cloned())
            .map(CString::new)
            .collect::<std::result::Result<_, _>>()?;
        let pointers: Vec<_> = settings.iter().map(|text| text.as_ptr()).collect();
        let datadir = CString::new(config.dir.as_os_str().as_bytes())?;
        let config = c::xt_engine_config {
            struct_size: size_of::<c::xt_engine_config>() as u32,
            flags: 0,
            datadir: datadir.as_ptr(),
            settings: pointers.as_ptr(),
            settings_count: pointers.len() as u32,
            reserved: 0,
        };
        // SAFETY: all that the config points to lives through the call.
        let status = unsafe { call!(self.api, engine_init, self.handle, &config) };
        self.check(status, "engine_init")?;
        // SAFETY: the engine runs.
        let status = unsafe { call!(self.api, engine_recovery_done, self.handle) };
        self.check(status, "engine_recovery_done")
    }

    /// A session; it and its table are used by one thread at a time.
    pub fn session(&self, id: u64) -> Result<Session<'_>> {
        let config = c::xt_session_config {
            struct_size: size_of::<c::xt_session_config>() as u32,
            isolation: c::XT_ISOLATION_REPEATABLE_READ,
            connection_id: id,
            session_ctx: ptr::null_mut(),
        };
        let mut handle = ptr::null_mut();
        // SAFETY: the engine runs as long as it is borrowed.
        let status = unsafe { call!(self.api, session_open, self.handle, &config, &mut handle) };
        self.check(status, "session_open")?;
        Ok(Session {
            engine: self,
            api: self.api,
            handle,
            table: ptr::null_mut(),
        })
    }

    fn check(&self, status: c::xt_status, what: &str) -> Result<()> {
        if status == c::XT_OK as i32 {
            return Ok(());
        }
        let mut text = [0; 1000];
        let bytes = text.as_mut_ptr().cast();
        // SAFETY: the buffer's size is given; the text in it is NUL-terminated.
        let text = unsafe {
            call!(self.api, engine_error, self.handle, bytes, 1000);
            CStr::from_ptr(bytes).to_string_lossy()
        };
        Err(format!("{what}: code {status}: {text}").into())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: no session is left (they borrow the engine); deinit of an engine that does not
        // run and destroy of one that does are answered with a code.
        unsafe {
            let status = call!(self.api, engine_deinit, self.handle, CLOSE_TIMEOUT_MS);
            if status == c::XT_OK as i32 || status == c::XT_NOT_RUNNING as i32 {
                call!(self.api, engine_destroy, self.handle);
            } else {
                eprintln!("xtradb: the engine does not close: code {status}");
            }
        }
    }
}

/// What reads through a bound table do.
#[derive(Clone, Copy)]
pub enum Use {
    Read,
    Write,
}

/// A session with its table.
pub struct Session<'e> {
    engine: &'e Engine,
    api: &'static c::xt_api,
    handle: *mut c::xt_session,
    table: *mut c::xt_table,
}

impl Session<'_> {
    fn check(&self, status: c::xt_status, what: &str) -> Result<()> {
        if status == c::XT_OK as i32 {
            return Ok(());
        }
        // SAFETY: the session is open; the text lives until its next call.
        let text = unsafe { CStr::from_ptr(call!(self.api, session_error, self.handle)) };
        let text = text.to_string_lossy();
        Err(format!("{what}: code {status}: {text}").into())
    }

    pub fn open_table(&mut self) -> Result<()> {
        let (api, session) = (self.api, self.handle);
        let table = &mut self.table;
        // SAFETY: the definition is copied by the call.
        let status = Definition::new()
            .with(|def| unsafe { call!(api, table_open, session, TABLE.as_ptr(), def, 0, table) });
        self.check(status, "table_open")
    }

    fn create_table(&mut self) -> Result<()> {
        let (api, session) = (self.api, self.handle);
        // SAFETY: as in `open_table`; no options are given.
        let status = Definition::new().with(|def| unsafe {
            call!(api, table_create, session, TABLE.as_ptr(), def, ptr::null())
        });
        self.check(status, "table_create")
    }

    /// Begins a statement on the table.
    pub fn begin(&mut self, how: Use, autocommit: bool) -> Result<()> {
        let (lock, flags) = match how {
            Use::Read => (c::XT_LOCK_NONE, 0),
            Use::Write => (c::XT_LOCK_X, c::XT_USE_WRITE),
        };
        let how = c::xt_table_use {
            struct_size: size_of::<c::xt_table_use>() as u32,
            lock,
            wait: c::XT_WAIT_DEFAULT,
            wait_seconds: 0,
            flags,
            reserved: 0,
        };
        let statement = if autocommit {
            c::XT_STATEMENT_AUTOCOMMIT
        } else {
            0
        };
        // SAFETY: session and table are open and this thread's.
        unsafe {
            self.check(
                call!(self.api, statement_begin, self.handle, statement),
                "statement_begin",
            )?;
            self.check(
                call!(self.api, table_use, self.table, self.handle, &how),
                "table_use",
            )
        }
    }

    /// Ends the statement and commits.
    pub fn commit(&mut self) -> Result<()> {
        // SAFETY: as in `begin`.
        unsafe {
            self.check(call!(self.api, table_release, self.table), "table_release")?;
            self.check(call!(self.api, statement_end, self.handle), "statement_end")?;
            self.check(call!(self.api, trx_commit, self.handle), "trx_commit")
        }
    }

    pub fn index_begin(&mut self) -> Result<()> {
        // SAFETY: the table is bound.
        let status = unsafe { call!(self.api, index_begin, self.table, 0, 1) };
        self.check(status, "index_begin")
    }

    pub fn index_end(&mut self) -> Result<()> {
        // SAFETY: the table is bound.
        let status = unsafe { call!(self.api, index_end, self.table) };
        self.check(status, "index_end")
    }

    /// Reads the row with this key; whether there is one.
    pub fn read(&mut self, key: u64, row: &mut Row) -> Result<bool> {
        let key = key.to_le_bytes();
        let (row, find) = (row.as_mut_ptr(), c::XT_FIND_EXACT);
        // SAFETY: the row has row_length bytes, the key 8.
        let status = unsafe { call!(self.api, index_read, self.table, row, key.as_ptr(), 8, find) };
        if status == c::XT_KEY_NOT_FOUND as i32 {
            return Ok(false);
        }
        self.check(status, "index_read").map(|()| true)
    }

    /// Shows all rows in the key's order, `rows.len()` at most per call of the engine, to `visit`.
    pub fn scan(&mut self, rows: &mut [Row], mut visit: impl FnMut(&[Row])) -> Result<()> {
        let mut batch = c::xt_batch {
            struct_size: size_of::<c::xt_batch>() as u32,
            direction: c::XT_NEXT,
            rows: rows.as_mut_ptr().cast(),
            refs: ptr::null_mut(),
            row_stride: ROW_BYTES as u32,
            ref_stride: 0,
            capacity: rows.len() as u32,
            count: 0,
        };
        // SAFETY: the table is bound.
        let status = unsafe { call!(self.api, scan_begin, self.table, 1) };
        self.check(status, "scan_begin")?;
        loop {
            // SAFETY: `rows` has room for `capacity` rows of `row_stride` bytes.
            let status = unsafe { call!(self.api, read_n, self.table, &mut batch) };
            visit(&rows[..batch.count as usize]);
            if status == c::XT_END_OF_FILE as i32 {
                break;
            }
            self.check(status, "read_n")?;
        }
        // SAFETY: the table is bound.
        let status = unsafe { call!(self.api, scan_end, self.table) };
        self.check(status, "scan_end")
    }

    pub fn insert(&mut self, row: &Row) -> Result<()> {
        // SAFETY: the row has row_length bytes.
        let status = unsafe { call!(self.api, insert_row, self.table, row.as_ptr()) };
        self.check(status, "insert_row")
    }

    /// Changes the row read last.
    pub fn update(&mut self, new: &Row) -> Result<()> {
        // SAFETY: the row has row_length bytes; the old one may be NULL.
        let status = unsafe { call!(self.api, update_row, self.table, ptr::null(), new.as_ptr()) };
        self.check(status, "update_row")
    }

    /// Deletes the row read last.
    pub fn delete(&mut self) -> Result<()> {
        // SAFETY: the row may be NULL.
        let status = unsafe { call!(self.api, delete_row, self.table, ptr::null()) };
        self.check(status, "delete_row")
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let _ = self.engine;
        // SAFETY: both are open (the table may be NULL) and are not used after this.
        unsafe {
            call!(self.api, table_close, self.table);
            call!(self.api, session_close, self.handle);
        }
    }
}
