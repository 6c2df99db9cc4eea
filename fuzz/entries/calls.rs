//! Calls over the C ABI in any order, on any handles: each ends with a code, none with XT_INTERNAL, and
//! the engine goes on.

use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::ptr::null_mut;
use xtradb::abi::{c, xtradb_api};

const ROW: usize = 36;
const TABLE_NAMES: [&std::ffi::CStr; 3] = [c"fuzz/a", c"fuzz/b", c"fuzz/none"];

/// A running engine for call sequences.
pub struct Stage {
    api: &'static c::xt_api,
    engine: *mut c::xt_engine,
}

/// A member of the table of functions.
macro_rules! call {
    ($api:expr, $name:ident ( $($argument:expr),* )) => {
        // SAFETY: pointers that are given are null, of this frame, or handles – of which the library
        // promises to recognise those that are closed.
        unsafe { ($api.$name.expect("the table is whole"))($($argument),*) }
    };
}

fn ok(status: c::xt_status, what: &str) {
    assert_eq!(status, c::XT_OK as c::xt_status, "{what}");
}

unsafe extern "C" fn compare(
    _: *const c::xt_collation,
    a: *const u8,
    a_length: u32,
    b: *const u8,
    b_length: u32,
) -> i32 {
    // SAFETY: the library gives two texts and their lengths.
    let (a, b) = unsafe {
        (
            std::slice::from_raw_parts(a, a_length as usize),
            std::slice::from_raw_parts(b, b_length as usize),
        )
    };
    let len = a.len().max(b.len());
    let padded = |text: &[u8], at: usize| text.get(at).copied().unwrap_or(b' ');
    let differing = (0..len).find(|&at| padded(a, at) != padded(b, at));
    differing.map_or(0, |at| i32::from(padded(a, at)) - i32::from(padded(b, at)))
}

unsafe extern "C" fn sort_key(
    _: *const c::xt_collation,
    key: *mut u8,
    size: u32,
    text: *const u8,
    length: u32,
) -> u32 {
    let copied = size.min(length);
    // SAFETY: the library gives room for a key, a text, and the lengths of both.
    unsafe { std::ptr::copy_nonoverlapping(text, key, copied as usize) };
    copied
}

struct Shared(c::xt_collation);
// SAFETY: constant, and its pointers lead to constants.
unsafe impl Sync for Shared {}

static LATIN1_BIN: Shared = Shared(c::xt_collation {
    struct_size: size_of::<c::xt_collation>() as u32,
    id: 47,
    name: c"latin1_bin".as_ptr(),
    data: std::ptr::null(),
    mbminlen: 1,
    mbmaxlen: 1,
    flags: c::XT_COLLATION_PAD_SPACE,
    pad_char: b' ' as u32,
    compare: Some(compare),
    sort_key: Some(sort_key),
    prefix: None,
});

unsafe extern "C" fn collation(_: *mut c_void, id: u32) -> *const c::xt_collation {
    match id {
        47 => &LATIN1_BIN.0,
        _ => std::ptr::null(),
    }
}

unsafe extern "C" fn no_log(_: *mut c_void, _: u32, _: *const c_char, _: u32) {}

unsafe extern "C" fn take(_: *mut c_void, _: *const c::xt_value, _: u32) -> u32 {
    0
}

/// The definition of the tables: id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NULL,
/// KEY (name), note BLOB NULL.
struct Definition {
    _columns: Box<[c::xt_column; 3]>,
    _parts: Box<[c::xt_key_part; 2]>,
    _keys: Box<[c::xt_key; 2]>,
    def: c::xt_table_def,
}

fn column(name: &'static std::ffi::CStr, at: (u32, u32), octets: u32) -> c::xt_column {
    c::xt_column {
        name: name.as_ptr(),
        offset: at.0,
        length: at.1,
        octets,
        collation: 63,
        flags: 0,
        null_offset: 0,
        null_mask: 0,
        type_: c::XT_TYPE_LONG as u8,
        length_bytes: 0,
        decimals: 0,
        precision: 0,
    }
}

fn definition() -> Definition {
    let mut columns = Box::new([
        column(c"id", (1, 4), 4),
        column(c"name", (5, 21), 20),
        column(c"note", (26, 10), 0),
    ]);
    columns[0].flags = c::XT_COLUMN_NOT_NULL | c::XT_COLUMN_UNSIGNED | c::XT_COLUMN_AUTO_INCREMENT;
    (columns[1].null_mask, columns[2].null_mask) = (1, 2);
    (columns[1].type_, columns[2].type_) = (c::XT_TYPE_VARCHAR as u8, c::XT_TYPE_BLOB as u8);
    (columns[1].length_bytes, columns[2].length_bytes) = (1, 2);
    columns[1].collation = 47;
    let part = |column, length| c::xt_key_part {
        column,
        length,
        flags: 0,
    };
    let parts = Box::new([part(0, 4), part(1, 20)]);
    let key = |name: &'static std::ffi::CStr, at: usize, flags| c::xt_key {
        name: name.as_ptr(),
        parts: &parts[at],
        parts_count: 1,
        flags,
    };
    let keys = Box::new([
        key(c"PRIMARY", 0, c::XT_KEY_PRIMARY | c::XT_KEY_UNIQUE),
        key(c"name", 1, 0),
    ]);
    let def = c::xt_table_def {
        struct_size: size_of::<c::xt_table_def>() as u32,
        reserved: 0,
        columns: columns.as_ptr(),
        keys: keys.as_ptr(),
        columns_count: 3,
        keys_count: 2,
        row_length: ROW as u32,
        null_bytes: 1,
    };
    Definition {
        _columns: columns,
        _parts: parts,
        _keys: keys,
        def,
    }
}

/// A row image whose BLOB points into `note`.
fn row(a: u8, b: u8, note: &[u8]) -> [u8; ROW] {
    let mut row = [0; ROW];
    row[0] = b >> 6;
    row[1] = a;
    row[2] = b & 3;
    row[5] = b % 21;
    row[6..6 + b as usize % 21].fill(b'a' + a % 26);
    let len = (usize::from(a) * usize::from(b)).min(note.len());
    row[26..28].copy_from_slice(&(len as u16).to_le_bytes());
    row[28..36].copy_from_slice(&(note.as_ptr() as usize).to_le_bytes());
    row
}

impl Stage {
    /// Starts an engine in an empty directory.
    pub fn open(dir: &Path) -> Stage {
        // SAFETY: the table of functions is constant.
        let api = unsafe { &*xtradb_api(c::XT_ABI_MAJOR) };
        let host = c::xt_host {
            struct_size: size_of::<c::xt_host>() as u32,
            abi_version: c::XT_ABI_MAJOR << 16,
            ctx: null_mut(),
            log: Some(no_log),
            collation: Some(collation),
            kill_check: None,
            warning: None,
            query_text: None,
            wait_report: None,
            clock: None,
            thread_attach: None,
            thread_detach: None,
        };
        let mut engine = null_mut();
        ok(call!(api, engine_create(&host, &mut engine)), "create");
        std::fs::create_dir_all(dir.join("fuzz")).expect("a directory");
        let datadir = CString::new(dir.as_os_str().as_encoded_bytes()).expect("a path");
        let settings = [
            c"innodb_buffer_pool_size=8M".as_ptr(),
            c"innodb_log_file_size=8M".as_ptr(),
            c"innodb_flush_log_at_trx_commit=0".as_ptr(),
        ];
        let config = c::xt_engine_config {
            struct_size: size_of::<c::xt_engine_config>() as u32,
            flags: 0,
            datadir: datadir.as_ptr(),
            settings: settings.as_ptr(),
            settings_count: settings.len() as u32,
            reserved: 0,
        };
        ok(call!(api, engine_init(engine, &config)), "init");
        ok(call!(api, engine_recovery_done(engine)), "recovery_done");
        Stage { api, engine }
    }

    /// Runs the calls that the bytes spell, three bytes each, and closes what they left open; yields how
    /// many of them did something.
    pub fn run(&self, data: &[u8]) -> usize {
        let mut done = 0;
        let mut play = Play {
            stage: self,
            sessions: [null_mut(); 3],
            tables: [null_mut(); 3],
            def: definition(),
            note: vec![b'n'; 9000],
            row: [0; ROW],
            position: [0; 64],
        };
        for step in data.chunks_exact(3).take(400) {
            let status = play.step(step[0], step[1], step[2]);
            done += usize::from(status == Some(c::XT_OK as c::xt_status));
            let broken = [c::XT_INTERNAL, c::XT_STOPPED].map(|code| code as c::xt_status);
            if let Some(status) = status.filter(|status| broken.contains(status)) {
                panic!("call {step:?} ended with code {status}");
            }
        }
        for table in play.tables {
            call!(self.api, table_close(table));
        }
        for session in play.sessions {
            call!(self.api, session_close(session));
        }
        done
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        ok(
            call!(self.api, engine_deinit(self.engine, 10_000)),
            "deinit",
        );
        ok(call!(self.api, engine_destroy(self.engine)), "destroy");
    }
}

/// One sequence of calls.
struct Play<'s> {
    stage: &'s Stage,
    /// Closed ones stay here: they are called, too.
    sessions: [*mut c::xt_session; 3],
    tables: [*mut c::xt_table; 3],
    def: Definition,
    note: Vec<u8>,
    row: [u8; ROW],
    position: [u8; 64],
}

impl Play<'_> {
    /// One call; `None` for those without a code.
    fn step(&mut self, op: u8, a: u8, b: u8) -> Option<c::xt_status> {
        let api = self.stage.api;
        let (s, t) = (a as usize % 3, b as usize % 3);
        let (session, table) = (self.sessions[s], self.tables[t]);
        let name = TABLE_NAMES[b as usize / 3 % 3].as_ptr();
        Some(match op % 40 {
            0 | 1 => self.open_session(s, b),
            2 => {
                // A session that goes takes the binding of its tables with it.
                call!(api, session_close(session))
            }
            3 => call!(
                api,
                table_create(session, name, &self.def.def, std::ptr::null())
            ),
            4 => call!(api, table_drop(session, name)),
            5 => call!(api, table_truncate(session, name)),
            6 => call!(api, table_rename(session, name, TABLE_NAMES[t].as_ptr())),
            7 | 8 => {
                let mut opened = null_mut();
                let status = call!(
                    api,
                    table_open(session, name, &self.def.def, 0, &mut opened)
                );
                if status == c::XT_OK as c::xt_status {
                    call!(api, table_close(self.tables[t]));
                    self.tables[t] = opened;
                }
                status
            }
            9 => call!(api, table_close(table)),
            10..=12 => self.use_table(session, table, b),
            13 => call!(api, table_release(table)),
            14 => call!(api, statement_begin(session, u32::from(b) & 3)),
            15 => call!(api, statement_end(session)),
            16 => call!(api, statement_rollback(session)),
            17 => call!(api, trx_begin(session, u32::from(b) & 3)),
            18 => call!(api, trx_commit(session)),
            19 => call!(api, trx_rollback(session)),
            20 => call!(api, savepoint_set(session, [b & 3].as_ptr().cast(), 1)),
            21 => call!(api, savepoint_rollback(session, [b & 3].as_ptr().cast(), 1)),
            22 => call!(api, savepoint_release(session, [b & 3].as_ptr().cast(), 1)),
            23 => call!(api, session_set_isolation(session, u32::from(b) % 5)),
            24 => call!(api, session_interrupt(session)),
            25..=27 => {
                let row = row(a, b, &self.note);
                call!(api, insert_row(table, row.as_ptr()))
            }
            _ => return self.read_or_change(op, a, b),
        })
    }

    fn read_or_change(&mut self, op: u8, a: u8, b: u8) -> Option<c::xt_status> {
        let api = self.stage.api;
        let table = self.tables[b as usize % 3];
        let into = self.row.as_mut_ptr();
        Some(match op % 40 {
            28 => {
                let new = row(a, b, &self.note);
                call!(api, update_row(table, self.row.as_ptr(), new.as_ptr()))
            }
            29 => call!(api, delete_row(table, std::ptr::null())),
            30 => call!(api, scan_begin(table, a & 1)),
            31 => call!(api, scan_next(table, into)),
            32 => call!(api, scan_end(table)),
            33 => call!(api, index_begin(table, u32::from(a) % 3, 1)),
            34 => {
                let key = [
                    a & 1,
                    b,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                ];
                let (len, find) = (u32::from(b) % 24, u32::from(a) % 9);
                call!(api, index_read(table, into, key.as_ptr(), len, find))
            }
            35 => match a % 4 {
                0 => call!(api, index_next(table, into)),
                1 => call!(api, index_prev(table, into)),
                2 => call!(api, index_first(table, into)),
                _ => call!(api, index_last(table, into)),
            },
            36 => {
                let ref_size = u32::from(a) % 64;
                let place = self.position.as_mut_ptr();
                call!(
                    api,
                    table_position(table, self.row.as_ptr(), place, ref_size)
                )
            }
            37 => {
                let ref_size = u32::from(a) % 64;
                call!(
                    api,
                    read_position(table, into, self.position.as_ptr(), ref_size)
                )
            }
            38 => match a % 3 {
                0 => call!(api, unlock_row(table)),
                1 => call!(api, table_extra(table, u32::from(b) % 16)),
                _ => {
                    let (mut first, mut count) = (0, 0);
                    let (offset, step) = (u64::from(b), u64::from(a));
                    call!(
                        api,
                        autoinc_reserve(table, offset, step, 3, &mut first, &mut count)
                    )
                }
            },
            _ => call!(
                api,
                table_check(table, u32::from(a) % 3, Some(take), null_mut())
            ),
        })
    }

    fn open_session(&mut self, at: usize, b: u8) -> c::xt_status {
        let config = c::xt_session_config {
            struct_size: size_of::<c::xt_session_config>() as u32,
            isolation: u32::from(b) % 5,
            connection_id: u64::from(b),
            session_ctx: null_mut(),
        };
        let api = self.stage.api;
        let mut opened = null_mut();
        let status = call!(api, session_open(self.stage.engine, &config, &mut opened));
        if status == c::XT_OK as c::xt_status {
            call!(api, session_close(self.sessions[at]));
            self.sessions[at] = opened;
        }
        status
    }

    fn use_table(
        &self,
        session: *mut c::xt_session,
        table: *mut c::xt_table,
        b: u8,
    ) -> c::xt_status {
        let how = c::xt_table_use {
            struct_size: size_of::<c::xt_table_use>() as u32,
            lock: u32::from(b) % 4,
            // Nobody else would end a wait.
            wait: match b & 8 {
                0 => c::XT_WAIT_NOWAIT,
                _ => c::XT_WAIT_SKIP_LOCKED,
            },
            wait_seconds: 0,
            flags: u32::from(b) >> 4 & 3,
            reserved: 0,
        };
        call!(self.stage.api, table_use(table, session, &how))
    }
}
