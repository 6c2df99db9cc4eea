//! Hands undo records to the rows' side of purge.

use super::coordinator::{PurgeRecord, RecordPurger};
use crate::mtr::PageCtx;
use crate::row::{Tables, purge_record};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::trx::TrxSystem;
use crate::words::{Error, Result};

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
    pub blocked: AtomicBool,
    /// The next record is of a table that this host cannot change.
    blocked_for_good: AtomicBool,
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
            blocked_for_good: AtomicBool::new(false),
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
}

impl RecordPurger for RowPurger<'_> {
    fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Acquire) && {
            let waits = self.ctx.spaces.is_waiting_for_files()
                || self.blocked_for_good.load(Ordering::Acquire);
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
        let done = purge_record(
            self.ctx,
            self.sys,
            self.tables,
            record.roll_ptr,
            &record.record,
        );
        match done {
            Err(missing @ Error::TablespaceMissing(_)) if waits => self.block(missing),
            // Another host may know it: its history stays.
            Err(unknown @ Error::CollationUnknown(_)) => {
                self.blocked_for_good.store(true, Ordering::Release);
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
