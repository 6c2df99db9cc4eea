//! What transactions and locks look like from outside: one snapshot for three tables.

use super::open::Engine;
use super::types::Isolation;
use crate::settings::Counter;

/// One transaction of INNODB_TRX. Times are seconds since the epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionRow {
    /// Its id.
    pub id: u64,
    /// RUNNING, LOCK WAIT, ROLLING BACK, COMMITTING.
    pub state: &'static str,
    /// When it began.
    pub started_s: u64,
    /// The lock it waits for, as `LockRow::id`.
    pub requested_lock_id: Option<Box<str>>,
    /// Since when.
    pub wait_started_s: Option<u64>,
    /// The host's connection, 0 for the engine's own.
    pub connection_id: u64,
    /// Statement text from the host.
    pub query: Option<Box<str>>,
    /// What the engine does for it.
    pub operation: Option<&'static str>,
    /// Tables of the statement.
    pub tables_in_use: u64,
    /// Tables with locks.
    pub tables_locked: u64,
    /// Lock objects.
    pub lock_structs: u64,
    /// Their memory.
    pub lock_bytes: u64,
    /// Rows locked, about.
    pub rows_locked: u64,
    /// Undo records.
    pub rows_modified: u64,
    /// Its level.
    pub isolation: Isolation,
    /// unique_checks
    pub unique_checks: bool,
    /// foreign_key_checks
    pub foreign_key_checks: bool,
    /// START TRANSACTION READ ONLY.
    pub read_only: bool,
    /// A plain SELECT in autocommit.
    pub autocommit_non_locking: bool,
}

/// One lock of INNODB_LOCKS: waited for, or in the way of a waiter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockRow {
    /// `trx:space:page:heap_no` or `trx:table_id`.
    pub id: Box<str>,
    /// Its transaction.
    pub trx_id: u64,
    /// One of `info`'s LOCK_MODES.
    pub mode: &'static str,
    /// "`db`.`table`".
    pub table: Box<str>,
    /// Name of the index.
    pub index: Option<Box<str>>,
    /// Space, page, heap number of a record lock.
    pub record: Option<(u32, u32, u32)>,
    /// Key of the record, or which pseudo-record it is.
    pub data: Option<Box<str>>,
}

/// One pair of INNODB_LOCK_WAITS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWaitRow {
    /// Who waits.
    pub requesting_trx_id: u64,
    /// For which lock.
    pub requested_lock_id: Box<str>,
    /// Who is in the way.
    pub blocking_trx_id: u64,
    /// With which lock.
    pub blocking_lock_id: Box<str>,
}

/// Transactions and locks at one moment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LockReport {
    /// All transactions.
    pub transactions: Vec<TransactionRow>,
    /// Locks that are waited for or that block.
    pub locks: Vec<LockRow>,
    /// Who waits for whom.
    pub waits: Vec<LockWaitRow>,
}

impl Engine {
    /// Brings gauges (pool, log, history) up to date before counters are read.
    pub fn refresh_counters(&self) {
        let counters = self.counters();
        let set = |counter, value| counters.set(counter, value);
        let pool = self.ctx().pool.counts();
        let page = self.ctx().page_size() as u64;
        let data = (pool.young + pool.old) as u64;
        set(Counter::PageSize, page);
        set(Counter::BufferPoolPagesTotal, pool.frames as u64);
        set(Counter::BufferPoolPagesFree, pool.free as u64);
        set(Counter::BufferPoolPagesData, data);
        set(Counter::BufferPoolPagesOld, pool.old as u64);
        set(Counter::BufferPoolPagesDirty, pool.dirty as u64);
        set(Counter::BufferPoolBytesData, data * page);
        set(Counter::BufferPoolBytesDirty, pool.dirty as u64 * page);
        let ahead = pool.read_ahead + pool.read_ahead_random + pool.loaded;
        set(Counter::BufferPoolReads, pool.reads.saturating_sub(ahead));
        set(Counter::BufferPoolReadAhead, pool.read_ahead);
        set(Counter::BufferPoolReadAheadRnd, pool.read_ahead_random);
        set(Counter::BufferPoolReadAheadEvicted, pool.read_ahead_evicted);
        set(Counter::BufferPoolPagesFlushed, pool.written);
        set(Counter::BufferPoolPagesLruFlushed, pool.written_cold);
        set(Counter::BufferPoolPagesLruFreed, pool.evicted);
        set(Counter::BufferPoolWaitFree, pool.waits_for_frame);
        set(Counter::PagesRead, pool.reads);
        set(Counter::PagesCreated, pool.created);
        set(Counter::PagesWritten, pool.written);
        set(Counter::DataReads, pool.reads);
        set(Counter::DataRead, pool.reads * page);
        set(Counter::DataWritten, pool.written * page);
        let log = &self.ctx().log;
        let (writes, bytes) = log.write_counts();
        set(Counter::LogWrites, writes);
        set(Counter::OsLogWritten, bytes);
        set(Counter::DataWrites, pool.written + writes);
        set(Counter::LogWaits, log.log_waits());
        set(Counter::LsnCurrent, log.lsn().0);
        set(Counter::LsnFlushed, log.flushed_lsn().0);
        set(Counter::LsnLastCheckpoint, log.checkpoint_lsn().0);
        set(Counter::CheckpointAge, log.age());
        set(Counter::CheckpointMaxAge, log.capacity().max_checkpoint_age);
        let recovery = self.recovery_report();
        set(Counter::RecoveryPagesTotal, recovery.pages);
        set(Counter::RecoveryPagesPending, recovery.pages_pending);
        set(Counter::RecoveryBytesPending, recovery.bytes_pending);
        set(Counter::RecoveryPercent, recovery.percent());
        let left = recovery
            .left
            .map_or(0, |left| left.as_secs_f64().ceil() as u64);
        set(Counter::RecoverySecondsLeft, left);
        let trx = self.trx();
        set(Counter::HistoryListLength, trx.rsegs.history_len());
        set(Counter::MaxTrxId, trx.registry.next_id().0);
        let (waits, deadlocks) = trx.locks.counts();
        set(Counter::RowLockWaits, waits);
        set(Counter::Deadlocks, deadlocks);
        set(Counter::MemDictionary, self.dict().memory().0);
        set(Counter::NumOpenFiles, self.ctx().spaces.open_files() as u64);
    }
}
