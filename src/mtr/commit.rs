//! The end of a mini-transaction: records into the log, pages into the flush list, latches off.

use super::mtr::Mtr;
use crate::words::limits::MTR_BYTES_MAX;
use crate::words::{Lsn, Result, SpaceId};

impl Mtr<'_> {
    /// Appends the records, publishes the changed pages, releases the latches; all waits were over
    /// when the mtr started. Returns the end LSN; an mtr that logged nothing returns `Lsn(0)`.
    ///
    /// If the log has stopped, the engine freezes as for an mtr that is dropped modified; whoever
    /// waits for the returned LSN to become durable gets the error.
    pub fn commit(mut self) -> Lsn {
        if !self.modified {
            return Lsn(0);
        }
        assert!(
            self.scratch.records.len() < MTR_BYTES_MAX,
            "a mini-transaction of {} bytes",
            self.scratch.records.len()
        );
        if self.scratch.records.is_empty() {
            self.publish_unlogged();
            return Lsn(0);
        }
        debug_assert!(
            self.scratch.records.len() <= self.credit(),
            "a mini-transaction of {} bytes was admitted with {}",
            self.scratch.records.len(),
            self.credit()
        );
        match self.append() {
            Ok(end) => {
                // Only now: a panic above must find the mtr modified.
                self.modified = false;
                end
            }
            // The drop freezes and poisons.
            Err(_) => Lsn(u64::MAX),
        }
    }

    fn append(&mut self) -> Result<Lsn> {
        let ctx = self.ctx;
        let scratch = &mut self.scratch;
        let (memo, freed) = (&mut scratch.memo, &scratch.freed);
        let range = ctx
            .log
            .append(&mut scratch.records, &scratch.spaces, |start, end| {
                for slot in memo.iter_mut().filter(|slot| slot.modified) {
                    match slot.guard.id().space {
                        SpaceId::TEMPORARY => slot.guard.publish_unlogged(),
                        _ => slot.guard.publish(start, end),
                    }
                }
                for &id in freed {
                    ctx.pool.note_freed(id);
                }
            })?;
        Ok(range.1)
    }

    /// Changes of the temporary tablespace alone.
    fn publish_unlogged(&mut self) {
        for slot in self.scratch.memo.iter_mut().filter(|slot| slot.modified) {
            slot.guard.publish_unlogged();
        }
        for &id in &self.scratch.freed {
            self.ctx.pool.note_freed(id);
        }
        self.modified = false;
    }
}
