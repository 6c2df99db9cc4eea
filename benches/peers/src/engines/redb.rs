//! redb.

use crate::engine::{Config, Engine, Flush, Result, Session};
use crate::rows::{self, VALUE_BYTES};
use redb::{
    Database, Durability, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    TableDefinition, WriteTransaction,
};

pub const HOW: &str = "redb: one table u64 -> &[u8]; flush=1 is Durability::Immediate, flush=2 \
    Durability::None, the only other one (its commits are not even written until a durable one \
    follows: less than flush=2 promises).";

const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

pub struct Redb {
    database: Database,
    durability: Durability,
}

pub fn open(config: &Config) -> Result<Redb> {
    let database = Database::builder()
        .set_cache_size(config.cache_bytes as usize)
        .create(config.dir.join("rows.redb"))?;
    let txn = database.begin_write()?;
    txn.open_table(ROWS)?;
    txn.commit()?;
    let durability = match config.flush {
        Flush::Synced => Durability::Immediate,
        Flush::Written => Durability::None,
    };
    Ok(Redb {
        database,
        durability,
    })
}

impl Redb {
    fn begin(&self) -> Result<WriteTransaction> {
        let mut txn = self.database.begin_write()?;
        txn.set_durability(self.durability)?;
        Ok(txn)
    }
}

impl Drop for Redb {
    // What was not durable yet is written out by one durable commit.
    fn drop(&mut self) {
        if let Ok(txn) = self.database.begin_write() {
            let _ = txn.commit();
        }
    }
}

impl Engine for Redb {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<()>) -> Result<()> {
        work(&mut Access {
            redb: self,
            view: None,
        })
    }
}

struct Access<'d> {
    redb: &'d Redb,
    view: Option<(ReadTransaction, ReadOnlyTable<u64, &'static [u8]>)>,
}

impl Session for Access<'_> {
    fn read_begin(&mut self) -> Result<()> {
        let txn = self.redb.database.begin_read()?;
        let table = txn.open_table(ROWS)?;
        self.view = Some((txn, table));
        Ok(())
    }

    fn read_end(&mut self) -> Result<()> {
        self.view = None;
        Ok(())
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let (_, table) = self.view.as_ref().ok_or("no read transaction")?;
        Ok(table.get(key)?.map(|value| rows::digest(value.value())))
    }

    fn scan(&mut self) -> Result<(u64, u64)> {
        let (_, table) = self.view.as_ref().ok_or("no read transaction")?;
        let (mut rows, mut sum) = (0, 0);
        for row in table.iter()? {
            rows += 1;
            sum ^= rows::digest(row?.1.value());
        }
        Ok((rows, sum))
    }

    fn load(&mut self, keys: &[u64]) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        let txn = self.redb.begin()?;
        {
            let mut table = txn.open_table(ROWS)?;
            for &key in keys {
                rows::fill(&mut value, key, 0);
                table.insert(key, &value[..])?;
            }
        }
        Ok(txn.commit()?)
    }

    fn insert(&mut self, key: u64) -> Result<()> {
        self.update(key, 0)
    }

    fn update(&mut self, key: u64, version: u64) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        rows::fill(&mut value, key, version);
        let txn = self.redb.begin()?;
        txn.open_table(ROWS)?.insert(key, &value[..])?;
        Ok(txn.commit()?)
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        let txn = self.redb.begin()?;
        txn.open_table(ROWS)?.remove(key)?;
        Ok(txn.commit()?)
    }
}
