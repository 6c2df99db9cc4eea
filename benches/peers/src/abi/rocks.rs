//! RocksDB through its C API (rocksdb/c.h), as far as the benchmark needs it.

use crate::engine::{Config, Flush, Result};
use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

#[allow(
    dead_code,
    non_camel_case_types,
    non_upper_case_globals,
    reason = "made by bindgen"
)]
mod c {
    include!(concat!(env!("OUT_DIR"), "/rocksdb.rs"));
}

const BLOOM_BITS: f64 = 10.0;

/// An open database with the options of its reads and writes.
pub struct Database {
    db: *mut c::rocksdb_t,
    options: *mut c::rocksdb_options_t,
    table: *mut c::rocksdb_block_based_table_options_t,
    cache: *mut c::rocksdb_cache_t,
    write: *mut c::rocksdb_writeoptions_t,
}

// SAFETY: a rocksdb_t may be used by any number of threads, and options that nobody changes may be
// read by all of them (rocksdb/db.h, "thread-safe").
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

/// Calls a function that reports through a last `char **` argument.
fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
    let mut error: *mut c_char = ptr::null_mut();
    let value = call(&mut error);
    if error.is_null() {
        return Ok(value);
    }
    // SAFETY: RocksDB gave a NUL-terminated text from its own malloc, ours to free once.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        c::rocksdb_free(error.cast());
        text
    };
    Err(text.into())
}

impl Database {
    pub fn open(config: &Config) -> Result<Database> {
        let path = CString::new(config.dir.as_os_str().as_bytes())?;
        // SAFETY: each pointer comes from the matching `create` and lives until `drop`; the filter
        // policy belongs to the table options once it is set.
        unsafe {
            let options = c::rocksdb_options_create();
            let table = c::rocksdb_block_based_options_create();
            let cache = c::rocksdb_cache_create_lru(config.cache_bytes as usize);
            let filter = c::rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS);
            c::rocksdb_block_based_options_set_block_cache(table, cache);
            c::rocksdb_block_based_options_set_filter_policy(table, filter);
            c::rocksdb_options_set_block_based_table_factory(options, table);
            c::rocksdb_options_set_create_if_missing(options, 1);
            c::rocksdb_options_set_compression(options, 0);
            c::rocksdb_options_set_write_buffer_size(options, config.write_buffer_bytes as usize);
            c::rocksdb_options_set_max_background_jobs(options, 2);
            let write = c::rocksdb_writeoptions_create();
            c::rocksdb_writeoptions_set_sync(write, u8::from(config.flush == Flush::Synced));
            let db = checked(|error| c::rocksdb_open(options, path.as_ptr(), error))?;
            Ok(Database {
                db,
                options,
                table,
                cache,
                write,
            })
        }
    }

    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: both slices are read during the call only.
        checked(|error| unsafe {
            c::rocksdb_put(
                self.db,
                self.write,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                error,
            )
        })
    }

    pub fn delete(&self, key: &[u8]) -> Result<()> {
        // SAFETY: the slice is read during the call only.
        checked(|error| unsafe {
            c::rocksdb_delete(self.db, self.write, key.as_ptr().cast(), key.len(), error)
        })
    }

    pub fn write(&self, batch: &mut Batch) -> Result<()> {
        // SAFETY: the batch is this caller's alone.
        checked(|error| unsafe { c::rocksdb_write(self.db, self.write, batch.0, error) })?;
        // SAFETY: as above.
        unsafe { c::rocksdb_writebatch_clear(batch.0) };
        Ok(())
    }

    pub fn reader(&self, snapshot: bool) -> Reader<'_> {
        // SAFETY: the snapshot lives as long as the options that name it; see `drop`.
        unsafe {
            let options = c::rocksdb_readoptions_create();
            let snapshot = if snapshot {
                c::rocksdb_create_snapshot(self.db)
            } else {
                ptr::null()
            };
            c::rocksdb_readoptions_set_snapshot(options, snapshot);
            Reader {
                database: self,
                options,
                snapshot,
            }
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: made in `open`, ended once; nothing borrows the database any more.
        unsafe {
            c::rocksdb_close(self.db);
            c::rocksdb_writeoptions_destroy(self.write);
            c::rocksdb_options_destroy(self.options);
            c::rocksdb_block_based_options_destroy(self.table);
            c::rocksdb_cache_destroy(self.cache);
        }
    }
}

/// Puts that are written together.
pub struct Batch(*mut c::rocksdb_writebatch_t);

impl Batch {
    pub fn new() -> Batch {
        // SAFETY: no arguments.
        Batch(unsafe { c::rocksdb_writebatch_create() })
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        // SAFETY: both slices are copied by the call.
        unsafe {
            c::rocksdb_writebatch_put(
                self.0,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
            );
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: made in `new`, ended once.
        unsafe { c::rocksdb_writebatch_destroy(self.0) };
    }
}

/// Reads, from a snapshot or of the newest rows.
pub struct Reader<'d> {
    database: &'d Database,
    options: *mut c::rocksdb_readoptions_t,
    snapshot: *const c::rocksdb_snapshot_t,
}

impl Reader<'_> {
    /// Shows the value under the key, in RocksDB's own memory, to `visit`.
    pub fn get<T>(&self, key: &[u8], visit: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        // SAFETY: the value's bytes live until the slice is destroyed, which is after `visit`.
        unsafe {
            let slice = checked(|error| {
                let db = self.database.db;
                c::rocksdb_get_pinned(db, self.options, key.as_ptr().cast(), key.len(), error)
            })?;
            if slice.is_null() {
                return Ok(None);
            }
            let mut length = 0;
            let bytes = c::rocksdb_pinnableslice_value(slice, &mut length);
            let value = visit(std::slice::from_raw_parts(bytes.cast(), length));
            c::rocksdb_pinnableslice_destroy(slice);
            Ok(Some(value))
        }
    }

    /// Shows every row, in the keys' order, to `visit`.
    pub fn scan(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        // SAFETY: key and value live until the iterator moves, which is after `visit`; it ends
        // before the database and the read options do.
        unsafe {
            let rows = c::rocksdb_create_iterator(self.database.db, self.options);
            c::rocksdb_iter_seek_to_first(rows);
            while c::rocksdb_iter_valid(rows) != 0 {
                let (mut key_length, mut length) = (0, 0);
                let key = c::rocksdb_iter_key(rows, &mut key_length);
                let value = c::rocksdb_iter_value(rows, &mut length);
                visit(
                    std::slice::from_raw_parts(key.cast(), key_length),
                    std::slice::from_raw_parts(value.cast(), length),
                );
                c::rocksdb_iter_next(rows);
            }
            let result = checked(|error| c::rocksdb_iter_get_error(rows, error));
            c::rocksdb_iter_destroy(rows);
            result
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `reader`, ended once, before the database that it borrows.
        unsafe {
            c::rocksdb_readoptions_destroy(self.options);
            if !self.snapshot.is_null() {
                c::rocksdb_release_snapshot(self.database.db, self.snapshot);
            }
        }
    }
}
