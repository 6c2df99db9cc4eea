//! fjall.

use crate::engine::{Config, Engine, Flush, Result, Session};
use crate::rows::{self, VALUE_BYTES};
use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot,
};

pub const HOW: &str = "fjall: one keyspace, no compression, 2 worker threads. flush=2 is its default \
    (the journal is written, not synced), flush=1 PersistMode::SyncData after every write. Reads in a \
    transaction use a snapshot.";

pub struct Fjall {
    database: Database,
    table: Keyspace,
    synced: bool,
}

pub fn open(config: &Config) -> Result<Fjall> {
    let database = Database::builder(&config.dir)
        .cache_size(config.cache_bytes)
        .worker_threads(2)
        .journal_compression(CompressionType::None)
        .open()?;
    let table = database.keyspace("rows", || {
        KeyspaceCreateOptions::default()
            .data_block_compression_policy(CompressionPolicy::disabled())
            .index_block_compression_policy(CompressionPolicy::disabled())
            .max_memtable_size(config.write_buffer_bytes)
    })?;
    Ok(Fjall {
        database,
        table,
        synced: config.flush == Flush::Synced,
    })
}

impl Fjall {
    fn commit(&self) -> Result<()> {
        if self.synced {
            self.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }
}

impl Engine for Fjall {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<()>) -> Result<()> {
        work(&mut Access {
            fjall: self,
            view: None,
        })
    }
}

struct Access<'d> {
    fjall: &'d Fjall,
    view: Option<Snapshot>,
}

impl Session for Access<'_> {
    fn read_begin(&mut self) -> Result<()> {
        self.view = Some(self.fjall.database.snapshot());
        Ok(())
    }

    fn read_end(&mut self) -> Result<()> {
        self.view = None;
        Ok(())
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let view = self.view.as_ref().ok_or("no read transaction")?;
        let value = view.get(&self.fjall.table, rows::key_bytes(key))?;
        Ok(value.map(|value| rows::digest(&value)))
    }

    // One read sees one state of the table: no snapshot is needed.
    fn get_alone(&mut self, key: u64) -> Result<Option<u64>> {
        let value = self.fjall.table.get(rows::key_bytes(key))?;
        Ok(value.map(|value| rows::digest(&value)))
    }

    fn scan(&mut self) -> Result<(u64, u64)> {
        let view = self.view.as_ref().ok_or("no read transaction")?;
        let (mut rows, mut sum) = (0, 0);
        for row in view.iter(&self.fjall.table) {
            rows += 1;
            sum ^= rows::digest(&row.value()?);
        }
        Ok((rows, sum))
    }

    fn load(&mut self, keys: &[u64]) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        let mut batch = self.fjall.database.batch();
        for &key in keys {
            rows::fill(&mut value, key, 0);
            batch.insert(&self.fjall.table, rows::key_bytes(key), value);
        }
        batch.commit()?;
        self.fjall.commit()
    }

    fn insert(&mut self, key: u64) -> Result<()> {
        self.update(key, 0)
    }

    fn update(&mut self, key: u64, version: u64) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        rows::fill(&mut value, key, version);
        self.fjall.table.insert(rows::key_bytes(key), value)?;
        self.fjall.commit()
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        self.fjall.table.remove(rows::key_bytes(key))?;
        self.fjall.commit()
    }
}
