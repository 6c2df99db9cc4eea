//! Hands undo records to the rows' side of purge.

use super::coordinator::{PurgeRecord, RecordPurger};
use crate::mtr::PageCtx;
use crate::row::{Purging, Tables};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, Rank};
use crate::trx::TrxSystem;
use crate::words::{Error, Result, TableId};

/// Purges rows of the tables that `tables` opens.
pub struct RowPurger<'e> {
    /// Pages.
    pub ctx: &'e PageCtx,
    /// The transactions.
    pub sys: &'e TrxSystem,
    /// The dictionary.
    pub tables: &'e dyn Tables,
    /// Records skipped because of damage.
    pub skipped: AtomicU64,
    /// The next record is of a table whose file may come back, or the log has no room for purge before.
    blocked: AtomicBool,
    /// The next record is of this table, in whose keys the host cannot find a place; 0: none is.
    unordered: AtomicU64,
    /// Between two records: the memory of purging.
    memory: Mutex<Option<Purging<'e>>>,
}

impl<'e> RowPurger<'e> {
    /// Purges rows of the tables that `tables` opens.
    pub fn new(ctx: &'e PageCtx, sys: &'e TrxSystem, tables: &'e dyn Tables) -> RowPurger<'e> {
        RowPurger {
            ctx,
            sys,
            tables,
            skipped: AtomicU64::new(0),
            blocked: AtomicBool::new(false),
            unordered: AtomicU64::new(0),
            memory: Mutex::new(Rank::Leaf, None),
        }
    }

    /// While changes of a missing file wait for it, the log is kept, so all that is written meanwhile is
    /// bounded by it. So is the history that waits here.
    fn block(&self, why: Error) -> Result<()> {
        if !self.blocked.swap(true, Ordering::AcqRel) {
            log::warn!("purge waits: {why}");
        }
        Err(why)
    }

    /// True until the table that has no order here is dropped.
    fn waits_for_host(&self) -> bool {
        match self.unordered.load(Ordering::Acquire) {
            0 => false,
            id => matches!(
                self.tables.open(TableId(id)),
                Err(Error::CollationUnknown(_))
            ),
        }
    }
}

impl RecordPurger for RowPurger<'_> {
    fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Acquire) && {
            let waits = self.ctx.spaces.is_waiting_for_files() || self.waits_for_host();
            self.blocked.store(waits, Ordering::Release);
            waits
        }
    }

    fn purge(&self, record: &PurgeRecord<'_>) -> Result<()> {
        let waits = self.ctx.spaces.is_waiting_for_files();
        if waits {
            self.ctx
                .log
                .check_statement_room()
                .or_else(|held| self.block(held))?;
        }
        let memory = self.memory.lock().take();
        let mut purging = memory.unwrap_or_else(|| Purging::new(self.ctx, self.sys, self.tables));
        let done = purging.record(record.roll_ptr, &record.record);
        *self.memory.lock() = Some(purging);
        match done {
            Err(missing @ Error::TablespaceMissing(_)) if waits => self.block(missing),
            // Another host may know it: its history stays.
            Err(unknown @ Error::CollationUnknown(_)) => {
                let id = record.record.table_id;
                self.unordered.store(id.0, Ordering::Release);
                self.block(unknown)
            }
            // Damage in one table stops nothing else; the table's own reads report it.
            Err(Error::Corrupt(_) | Error::Unsupported(_) | Error::TablespaceMissing(_)) => {
                self.skipped.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            other => other,
        }
    }
}
