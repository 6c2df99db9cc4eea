//! What is measured, seen alike for every engine.

use std::path::PathBuf;

pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Error>;

/// What a commit waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// Handed to the operating system, not synced (flush=2).
    Written,
    /// Synced to the device, every commit (flush=1).
    Synced,
}

/// The same for every engine.
#[derive(Clone, Debug)]
pub struct Config {
    pub dir: PathBuf,
    /// Pages, blocks or nodes that the engine may keep; LMDB has none of its own.
    pub cache_bytes: u64,
    /// What an LSM tree collects before it writes a file.
    pub write_buffer_bytes: u64,
    pub flush: Flush,
    /// libxtradb.so, for ours.
    pub library: PathBuf,
    /// Its log, and whatever else XTRADB_BENCH_SETTINGS says ("name=value name=value").
    pub log_bytes: u64,
    pub settings: Vec<String>,
}

/// An open database with the one table. Dropping it closes it.
pub trait Engine: Sync {
    /// Runs `work` with a session of its own; threads call this at the same time.
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<()>) -> Result<()>;
}

/// One thread's access. A digest is `rows::digest` of the value: every byte of it was read.
pub trait Session {
    /// Begins the read transaction of `get` and `scan`.
    fn read_begin(&mut self) -> Result<()>;
    fn read_end(&mut self) -> Result<()>;
    /// The value's digest.
    fn get(&mut self, key: u64) -> Result<Option<u64>>;
    /// Reads every row in the keys' order; returns how many and the sum of their digests.
    fn scan(&mut self) -> Result<(u64, u64)>;

    /// `get` as a transaction of its own.
    fn get_alone(&mut self, key: u64) -> Result<Option<u64>> {
        self.read_begin()?;
        let digest = self.get(key);
        self.read_end()?;
        digest
    }
    /// Inserts all keys in one transaction.
    fn load(&mut self, keys: &[u64]) -> Result<()>;
    /// One insert, one transaction; so `update` and `delete`.
    fn insert(&mut self, key: u64) -> Result<()>;
    fn update(&mut self, key: u64, version: u64) -> Result<()>;
    fn delete(&mut self, key: u64) -> Result<()>;
}
