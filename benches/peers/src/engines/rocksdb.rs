//! RocksDB through its C API.

use crate::abi::rocks::{Batch, Database, Reader};
use crate::engine::{Config, Engine, Result, Session};
use crate::rows::{self, VALUE_BYTES};

pub const HOW: &str = "RocksDB (Debian's library) through its C API: LRU block cache, Bloom filters \
    of 10 bits, no compression (the values do not compress), 2 background jobs. flush=1 is \
    WriteOptions.sync, flush=2 without it. Reads in a transaction use a snapshot; values are pinned, \
    not copied. Writes are plain write batches, without locks or conflict checks.";

pub fn open(config: &Config) -> Result<Database> {
    Database::open(config)
}

impl Engine for Database {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<()>) -> Result<()> {
        work(&mut Access {
            database: self,
            newest: self.reader(false),
            view: None,
            batch: Batch::new(),
        })
    }
}

struct Access<'d> {
    database: &'d Database,
    newest: Reader<'d>,
    view: Option<Reader<'d>>,
    batch: Batch,
}

impl Session for Access<'_> {
    fn read_begin(&mut self) -> Result<()> {
        self.view = Some(self.database.reader(true));
        Ok(())
    }

    fn read_end(&mut self) -> Result<()> {
        self.view = None;
        Ok(())
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let view = self.view.as_ref().ok_or("no read transaction")?;
        view.get(&rows::key_bytes(key), rows::digest)
    }

    // One read sees one state of the database: no snapshot is needed.
    fn get_alone(&mut self, key: u64) -> Result<Option<u64>> {
        self.newest.get(&rows::key_bytes(key), rows::digest)
    }

    fn scan(&mut self) -> Result<(u64, u64)> {
        let view = self.view.as_ref().ok_or("no read transaction")?;
        let (mut rows, mut sum) = (0, 0);
        view.scan(|_, value| {
            rows += 1;
            sum ^= rows::digest(value);
        })?;
        Ok((rows, sum))
    }

    fn load(&mut self, keys: &[u64]) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        for &key in keys {
            rows::fill(&mut value, key, 0);
            self.batch.put(&rows::key_bytes(key), &value);
        }
        self.database.write(&mut self.batch)
    }

    fn insert(&mut self, key: u64) -> Result<()> {
        self.update(key, 0)
    }

    fn update(&mut self, key: u64, version: u64) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        rows::fill(&mut value, key, version);
        self.database.put(&rows::key_bytes(key), &value)
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        self.database.delete(&rows::key_bytes(key))
    }
}
