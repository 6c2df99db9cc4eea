//! LMDB through heed.

use crate::abi;
use crate::engine::{Config, Engine, Result, Session};
use crate::rows::{self, VALUE_BYTES};
use heed::types::Bytes;
use heed::{Database, Env, RoTxn, WithTls};

pub const HOW: &str = "LMDB through heed: one database, big-endian keys, no read-ahead; has no cache \
    of its own, the page cache serves. flush=2 is MDB_NOSYNC (its pages are written at commit, not \
    synced), flush=1 the default. Values are read in the map, without a copy.";

pub struct Lmdb(Env);

pub fn open(config: &Config) -> Result<Lmdb> {
    let env = abi::lmdb::open(config)?;
    let mut txn = env.write_txn()?;
    let _: Database<Bytes, Bytes> = env.create_database(&mut txn, None)?;
    txn.commit()?;
    Ok(Lmdb(env))
}

impl Engine for Lmdb {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<()>) -> Result<()> {
        let txn = self.0.read_txn()?;
        let table = self.0.open_database(&txn, None)?.ok_or("no database")?;
        txn.commit()?;
        work(&mut Access {
            env: &self.0,
            table,
            view: None,
        })
    }
}

struct Access<'e> {
    env: &'e Env,
    table: Database<Bytes, Bytes>,
    view: Option<RoTxn<'e, WithTls>>,
}

impl Session for Access<'_> {
    fn read_begin(&mut self) -> Result<()> {
        self.view = Some(self.env.read_txn()?);
        Ok(())
    }

    fn read_end(&mut self) -> Result<()> {
        self.view = None;
        Ok(())
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let view = self.view.as_ref().ok_or("no read transaction")?;
        let value = self.table.get(view, &rows::key_bytes(key))?;
        Ok(value.map(rows::digest))
    }

    fn scan(&mut self) -> Result<(u64, u64)> {
        let view = self.view.as_ref().ok_or("no read transaction")?;
        let (mut rows, mut sum) = (0, 0);
        for row in self.table.iter(view)? {
            let (_, value) = row?;
            rows += 1;
            sum ^= rows::digest(value);
        }
        Ok((rows, sum))
    }

    fn load(&mut self, keys: &[u64]) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        let mut txn = self.env.write_txn()?;
        for &key in keys {
            rows::fill(&mut value, key, 0);
            self.table.put(&mut txn, &rows::key_bytes(key), &value)?;
        }
        Ok(txn.commit()?)
    }

    fn insert(&mut self, key: u64) -> Result<()> {
        self.update(key, 0)
    }

    fn update(&mut self, key: u64, version: u64) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        rows::fill(&mut value, key, version);
        let mut txn = self.env.write_txn()?;
        self.table.put(&mut txn, &rows::key_bytes(key), &value)?;
        Ok(txn.commit()?)
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        let mut txn = self.env.write_txn()?;
        self.table.delete(&mut txn, &rows::key_bytes(key))?;
        Ok(txn.commit()?)
    }
}
