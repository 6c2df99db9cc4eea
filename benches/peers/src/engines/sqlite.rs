//! SQLite through rusqlite.

use crate::engine::{Config, Engine, Flush, Result, Session};
use crate::rows::{self, VALUE_BYTES};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Statement};
use std::path::PathBuf;
use std::time::Duration;

pub const HOW: &str = "SQLite through rusqlite (its own copy of SQLite): `id INTEGER PRIMARY KEY, v \
    BLOB`, WAL, prepared statements, one connection per thread with the whole cache size, mmap off, \
    automatic checkpoint at 16 MiB. flush=1 is synchronous=FULL, flush=2 NORMAL (syncs at \
    checkpoints only).";

pub struct Sqlite {
    path: PathBuf,
    cache_kib: u64,
    synchronous: &'static str,
}

pub fn open(config: &Config) -> Result<Sqlite> {
    let sqlite = Sqlite {
        path: config.dir.join("rows.sqlite"),
        cache_kib: config.cache_bytes / 1024,
        synchronous: match config.flush {
            Flush::Synced => "FULL",
            Flush::Written => "NORMAL",
        },
    };
    let first = sqlite.connect()?;
    first.execute_batch(
        "CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, v BLOB NOT NULL)",
    )?;
    Ok(sqlite)
}

impl Sqlite {
    fn connect(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(Duration::from_secs(60))?;
        connection.execute_batch(&format!(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous={}; PRAGMA cache_size=-{}; \
             PRAGMA wal_autocheckpoint=4096",
            self.synchronous, self.cache_kib
        ))?;
        Ok(connection)
    }
}

impl Engine for Sqlite {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<()>) -> Result<()> {
        let connection = self.connect()?;
        work(&mut Access {
            begin_read: connection.prepare("BEGIN")?,
            begin_write: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            get: connection.prepare("SELECT v FROM rows WHERE id = ?1")?,
            scan: connection.prepare("SELECT id, v FROM rows ORDER BY id")?,
            insert: connection.prepare("INSERT INTO rows VALUES (?1, ?2)")?,
            update: connection.prepare("UPDATE rows SET v = ?2 WHERE id = ?1")?,
            delete: connection.prepare("DELETE FROM rows WHERE id = ?1")?,
        })
    }
}

struct Access<'c> {
    begin_read: Statement<'c>,
    begin_write: Statement<'c>,
    commit: Statement<'c>,
    get: Statement<'c>,
    scan: Statement<'c>,
    insert: Statement<'c>,
    update: Statement<'c>,
    delete: Statement<'c>,
}

/// Numbers in SQLite have a sign; the order of the rows does not matter here.
fn number(key: u64) -> i64 {
    key as i64
}

impl Session for Access<'_> {
    fn read_begin(&mut self) -> Result<()> {
        self.begin_read.execute([])?;
        Ok(())
    }

    fn read_end(&mut self) -> Result<()> {
        self.commit.execute([])?;
        Ok(())
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let row = self.get.query_row([number(key)], |row| {
            Ok(rows::digest(row.get_ref(0)?.as_blob().unwrap_or_default()))
        });
        Ok(row.optional()?)
    }

    // A statement outside a transaction is one.
    fn get_alone(&mut self, key: u64) -> Result<Option<u64>> {
        self.get(key)
    }

    fn scan(&mut self) -> Result<(u64, u64)> {
        let (mut rows, mut sum) = (0, 0);
        let mut all = self.scan.query([])?;
        while let Some(row) = all.next()? {
            rows += 1;
            sum ^= rows::digest(row.get_ref(1)?.as_blob()?);
        }
        Ok((rows, sum))
    }

    fn load(&mut self, keys: &[u64]) -> Result<()> {
        self.begin_write.execute([])?;
        for &key in keys {
            self.insert(key)?;
        }
        self.commit.execute([])?;
        Ok(())
    }

    fn insert(&mut self, key: u64) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        rows::fill(&mut value, key, 0);
        self.insert.execute((number(key), &value[..]))?;
        Ok(())
    }

    fn update(&mut self, key: u64, version: u64) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        rows::fill(&mut value, key, version);
        self.update.execute((number(key), &value[..]))?;
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        self.delete.execute([number(key)])?;
        Ok(())
    }
}
