//! Hands undo records to the rows' side of purge.

use super::coordinator::{PurgeRecord, RecordPurger};
use crate::mtr::PageCtx;
use crate::row::{Tables, purge_record};
use crate::sync::atomic::{AtomicU64, Ordering};
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
}

impl RecordPurger for RowPurger<'_> {
    fn purge(&self, record: &PurgeRecord<'_>) -> Result<()> {
        let done = purge_record(
            self.ctx,
            self.sys,
            self.tables,
            record.roll_ptr,
            &record.record,
        );
        match done {
            // Damage in one table stops nothing else; the table's own reads report it.
            Err(Error::Corrupt(_) | Error::Unsupported(_) | Error::TablespaceMissing(_)) => {
                self.skipped.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            other => other,
        }
    }
}
