//! The end of a mini-transaction: records into the log, pages into the flush list, latches off.

use super::mtr::Mtr;
use crate::os::planted;
use crate::redo::{Log, LogRange};
use crate::space::Space;
use crate::sync::Arc;
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
        self.ctx.reached("mtr.changed");
        match self.append() {
            Ok(end) => {
                // Only now: a panic above must find the mtr modified.
                self.modified = false;
                self.ctx.reached("mtr.committed");
                end
            }
            // The drop freezes and poisons.
            Err(_) => Lsn(u64::MAX),
        }
    }

    /// The steps 1 to 6 of docs/ARCHITECTURE.md section 3.
    fn append(&mut self) -> Result<Lsn> {
        let ctx = self.ctx;
        Log::finish(&mut self.scratch.records);
        let mut gate = ctx.log.enter();
        if self.unnamed_space().is_some() && !planted("log.file_not_named") {
            drop(gate);
            gate = ctx.log.enter_exclusive();
            while let Some(space) = self.unnamed_space() {
                ctx.log.append_modify(&gate, &ctx.spaces, &space)?;
            }
        }
        let range = ctx.log.append(&gate, &mut self.scratch.records)?;
        ctx.reached("mtr.appended");
        self.publish(range);
        // A panic above leaves the range unregistered; the drop of this mtr then freezes the log,
        // so that nobody waits for it.
        ctx.log.registered(range);
        drop(gate);
        Ok(range.end)
    }

    /// A changed tablespace that no FILE_MODIFY has named since the last checkpoint.
    fn unnamed_space(&self) -> Option<Arc<Space>> {
        let unnamed =
            |space: &Arc<Space>| space.is_named_in_log() && space.modified_lsn() == Lsn(0);
        let user = self
            .scratch
            .spaces
            .iter()
            .filter(|&&space| space != SpaceId::SYSTEM);
        user.filter_map(|&space| self.ctx.spaces.get(space))
            .find(unnamed)
    }

    /// Stamps the pages and enters them into the flush lists.
    fn publish(&mut self, range: LogRange) {
        for slot in self.scratch.memo.iter_mut().filter(|slot| slot.modified) {
            match slot.guard.id().space {
                SpaceId::TEMPORARY => slot.guard.publish_unlogged(),
                _ => slot.guard.publish(range.start, range.end),
            }
        }
        for &id in &self.scratch.freed {
            self.ctx.pool.note_freed(id);
        }
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
