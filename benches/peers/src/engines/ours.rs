//! xtradb through its C ABI.

use crate::abi::xt::{self, ROW_BYTES, Row, Use};
use crate::engine::{self, Config, Result, Session};
use crate::rows;
use std::sync::atomic::{AtomicU64, Ordering};

pub const HOW: &str = "libxtradb.so through its C ABI (dlopen): `id BIGINT UNSIGNED PRIMARY KEY, v \
    BINARY(200)`, REPEATABLE READ, full undo and redo, doublewrite and checksums on, O_DIRECT, log of \
    1 GiB; flush=1 and flush=2 are innodb_flush_log_at_trx_commit. Rows are copied into the caller's \
    buffer; a scan takes 128 rows per call. An update or delete first reads its row with a lock.";

const SCAN_ROWS: usize = 128;

pub struct Ours {
    engine: xt::Engine,
    sessions: AtomicU64,
}

pub fn open(config: &Config) -> Result<Ours> {
    Ok(Ours {
        engine: xt::Engine::open(config)?,
        sessions: AtomicU64::new(1),
    })
}

impl engine::Engine for Ours {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<()>) -> Result<()> {
        let id = self.sessions.fetch_add(1, Ordering::Relaxed);
        let mut session = self.engine.session(id)?;
        session.open_table()?;
        work(&mut Access {
            session,
            row: [0; ROW_BYTES],
            rows: vec![[0; ROW_BYTES]; SCAN_ROWS],
            in_index: false,
        })
    }
}

struct Access<'e> {
    session: xt::Session<'e>,
    row: Row,
    rows: Vec<Row>,
    in_index: bool,
}

impl Access<'_> {
    /// Finds a row to change.
    fn lock(&mut self, key: u64) -> Result<()> {
        self.session.begin(Use::Write, true)?;
        self.session.index_begin()?;
        match self.session.read(key, &mut self.row)? {
            true => Ok(()),
            false => Err("a row is missing".into()),
        }
    }
}

impl Session for Access<'_> {
    fn read_begin(&mut self) -> Result<()> {
        self.session.begin(Use::Read, false)
    }

    fn read_end(&mut self) -> Result<()> {
        if std::mem::take(&mut self.in_index) {
            self.session.index_end()?;
        }
        self.session.commit()
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        if !self.in_index {
            self.session.index_begin()?;
            self.in_index = true;
        }
        let found = self.session.read(key, &mut self.row)?;
        Ok(found.then(|| rows::digest(xt::value(&self.row))))
    }

    fn get_alone(&mut self, key: u64) -> Result<Option<u64>> {
        self.session.begin(Use::Read, true)?;
        let digest = self.get(key)?;
        self.read_end()?;
        Ok(digest)
    }

    fn scan(&mut self) -> Result<(u64, u64)> {
        let (mut count, mut sum) = (0, 0);
        self.session.scan(&mut self.rows, |rows| {
            count += rows.len() as u64;
            for row in rows {
                sum ^= rows::digest(xt::value(row));
            }
        })?;
        Ok((count, sum))
    }

    fn load(&mut self, keys: &[u64]) -> Result<()> {
        self.session.begin(Use::Write, false)?;
        for &key in keys {
            xt::set_key(&mut self.row, key);
            rows::fill(xt::value_mut(&mut self.row), key, 0);
            self.session.insert(&self.row)?;
        }
        self.session.commit()
    }

    fn insert(&mut self, key: u64) -> Result<()> {
        xt::set_key(&mut self.row, key);
        rows::fill(xt::value_mut(&mut self.row), key, 0);
        self.session.begin(Use::Write, true)?;
        self.session.insert(&self.row)?;
        self.session.commit()
    }

    fn update(&mut self, key: u64, version: u64) -> Result<()> {
        self.lock(key)?;
        let mut new = self.row;
        rows::fill(xt::value_mut(&mut new), key, version);
        self.session.update(&new)?;
        self.session.index_end()?;
        self.session.commit()
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        self.lock(key)?;
        self.session.delete()?;
        self.session.index_end()?;
        self.session.commit()
    }
}
