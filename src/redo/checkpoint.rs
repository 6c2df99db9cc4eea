//! Checkpoints (protocols L2, L3, L6) and the clean state of a shut-down log.

use super::log::Log;
use crate::format::redo_file::Checkpoint;
use crate::format::redo_record::FileOp;
use crate::os::planted;
use crate::space::Registry;
use crate::sync::atomic::Ordering;
use crate::sync::{GateGuard, MutexGuard};
use crate::words::limits::MTR_BYTES_MAX;
use crate::words::{Error, Lsn, Result, SpaceId};

/// Bytes of a mini-transaction with a FILE_CHECKPOINT only.
pub const FILE_CHECKPOINT_BYTES: u64 = 16;

/// What `Log::checkpoint` did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    /// A checkpoint at this LSN.
    At(Lsn),
    /// None: nothing was logged, or nothing flushed, since the last one.
    Unneeded,
}

/// The last checkpoint and where the next one goes.
#[derive(Debug)]
pub(super) struct Checkpoints {
    pub(super) last: Checkpoint,
    pub(super) next_slot: usize,
    pub(super) count: u64,
}

/// No checkpoint starts while this is held (protocol L6).
#[derive(Debug)]
pub struct CheckpointHold<'a>(
    #[expect(dead_code, reason = "held for its drop")] MutexGuard<'a, Checkpoints>,
);

impl Log {
    /// Makes a checkpoint. `oldest` is called while nothing can be appended and everything is
    /// registered: it gives the smallest oldest-modification LSN of all pages that are dirty, not
    /// yet synced, or waiting for recovery; `None` if there is none. The data files with unsynced
    /// writes were synced before, by the caller.
    ///
    /// Errors: `Error::Stopped`; `Error::LogRoom` if not even the checkpoint's records fit.
    pub fn checkpoint(
        &self,
        spaces: &Registry,
        oldest: impl FnOnce() -> Option<Lsn>,
    ) -> Result<Made> {
        let mut checkpoints = self.checkpoints.lock();
        self.check_frozen()?;
        let gate = self.enter_exclusive();
        let end = self.lsn();
        if self.registered_lsn() != end {
            // Only a panic between reserving and registering leaves a gap.
            self.check_frozen()?;
            return Err(Error::internal(
                "a mini-transaction left the gate unregistered",
            ));
        }
        let lsn = oldest()
            .filter(|_| !planted("checkpoint.oldest_ignored"))
            .unwrap_or(end);
        let last = checkpoints.last;
        assert!(
            lsn <= end && lsn >= last.lsn,
            "checkpoint {lsn} after {} up to {end}",
            last.lsn
        );
        let only_checkpoint = lsn == end && end.0 == last.end_lsn.0 + FILE_CHECKPOINT_BYTES;
        if lsn == last.lsn || (only_checkpoint && last.lsn == last.end_lsn) {
            return Ok(Made::Unneeded);
        }
        let appended = self.append_checkpoint(&gate, spaces, lsn)?;
        drop(gate);
        self.write_up_to(appended, true)?;
        let next = Checkpoint { lsn, end_lsn: end };
        self.write_checkpoint(next, checkpoints.next_slot)?;
        checkpoints.last = next;
        checkpoints.next_slot ^= 1;
        checkpoints.count += 1;
        self.checkpoint_lsn.store(lsn.0, Ordering::Release);
        drop(checkpoints);
        self.room.wake();
        Ok(Made::At(lsn))
    }

    /// Brings the log into the state of a clean shutdown (format-redo.md section 14): a checkpoint
    /// at the end, and nothing but its FILE_CHECKPOINT after it. Nothing is dirty, all data files are
    /// synced, and nobody appends.
    pub fn make_clean(&self, spaces: &Registry) -> Result<Lsn> {
        // The first one may name tablespaces, the second names none.
        for _ in 0..3 {
            if self.checkpoint(spaces, || None)? == Made::Unneeded {
                return Ok(self.lsn());
            }
        }
        Err(Error::internal("the log does not come to rest"))
    }

    /// Keeps checkpoints from starting, and waits for a running one, until the result is dropped.
    #[track_caller]
    pub fn hold_checkpoints(&self) -> CheckpointHold<'_> {
        CheckpointHold(self.checkpoints.lock())
    }

    /// FILE_MODIFY for each tablespace in the list and FILE_CHECKPOINT at the end, in one or more
    /// mini-transactions; yields their end.
    fn append_checkpoint(&self, gate: &GateGuard<'_>, spaces: &Registry, lsn: Lsn) -> Result<Lsn> {
        // Room first: once the list is taken, the records must be appended.
        let bytes: usize = spaces.modified_names_bytes() + FILE_CHECKPOINT_BYTES as usize;
        if self.age() + bytes as u64 > self.hard_limit() {
            return Err(Error::LogRoom);
        }
        let names = spaces.take_modified(gate, lsn);
        let skipped = planted("checkpoint.names_skipped");
        for chunk in chunks(if skipped { &[] } else { &names }) {
            let ops: Vec<_> = chunk.iter().map(modify).collect();
            self.append_file_ops(gate, &ops)?;
        }
        Ok(self.append_file_ops(gate, &[FileOp::Checkpoint(lsn)])?.end)
    }

    fn write_checkpoint(&self, checkpoint: Checkpoint, slot: usize) -> Result<()> {
        self.crash_points.reached("redo.before_checkpoint_block");
        self.check_frozen()?;
        let file = self.file();
        let written = file.write_checkpoint(checkpoint, slot);
        let synced = written.and_then(|()| {
            if self.options.sync {
                file.sync()
            } else {
                Ok(())
            }
        });
        if let Err(error) = synced {
            self.fail(&error.to_string());
            return Err(self.stopped());
        }
        self.crash_points.reached("redo.after_checkpoint_block");
        Ok(())
    }
}

fn modify((space, name): &(SpaceId, String)) -> FileOp<'_> {
    FileOp::Modify {
        space: *space,
        name: name.as_bytes(),
    }
}

/// Pieces whose records stay well below the size of a mini-transaction.
fn chunks(names: &[(SpaceId, String)]) -> Vec<&[(SpaceId, String)]> {
    let mut pieces = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, (_, name)) in names.iter().enumerate() {
        if bytes + name.len() + 16 > MTR_BYTES_MAX / 4 {
            pieces.push(&names[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += name.len() + 16;
    }
    if start < names.len() {
        pieces.push(&names[start..]);
    }
    pieces
}
