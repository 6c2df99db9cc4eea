//! The way of a mini-transaction into the log: reserve, copy, mark.

use super::log::Log;
use crate::format::redo_encode::{self, Encoder};
use crate::format::redo_file::LogGeometry;
use crate::format::redo_frame::MTR_TRAILER_BYTES;
use crate::format::redo_record::FileOp;
use crate::space::{Registry, Space};
use crate::sync::atomic::Ordering;
use crate::sync::watermark::Pause;
use crate::sync::{Arc, GateGuard};
use crate::words::limits::MTR_BYTES_MAX;
use crate::words::{Lsn, Result};

/// Where a mini-transaction stands in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogRange {
    /// LSN of its first byte: the oldest modification of pages it dirtied.
    pub start: Lsn,
    /// LSN behind its last byte: the page LSN, and what a commit waits for.
    pub end: Lsn,
}

impl Log {
    /// Ends the records in `mtr` with the bytes that frame a mini-transaction, ready for `append`.
    pub fn finish(mtr: &mut Vec<u8>) {
        redo_encode::finish(mtr, 0, 0);
    }

    /// Reserves log space for a finished mini-transaction (`finish`), sets its sequence bit, copies
    /// it and marks it *filled*. The caller then stamps its pages, enters them into the flush
    /// lists, and calls `registered` – whatever happens – before it leaves the gate.
    ///
    /// A log whose device failed takes what has begun into its buffer, from where it goes nowhere.
    ///
    /// Errors: `Error::Stopped` if the log is frozen; then nothing was appended, and the caller's
    /// pages are ahead of the log.
    pub fn append(&self, _gate: &GateGuard<'_>, mtr: &mut [u8]) -> Result<LogRange> {
        assert!(
            mtr.len() > MTR_TRAILER_BYTES,
            "an empty mini-transaction is never written"
        );
        assert!(
            mtr.len() < MTR_BYTES_MAX,
            "a mini-transaction of {} bytes",
            mtr.len()
        );
        self.check_broken()?;
        let reserved = self.ring.reserve(mtr.len() as u64);
        let range = LogRange {
            start: self.to_lsn(reserved.start()),
            end: self.to_lsn(reserved.end()),
        };
        let bit_at = mtr.len() - MTR_TRAILER_BYTES;
        mtr[bit_at] = self.seq_bit(Lsn(range.start.0 + bit_at as u64));
        let mut pause = Pause::new();
        while !self.ring.has_room(&reserved) {
            // Admission makes this rare. Nobody whom the writer needs waits for us: it writes what
            // is filled already.
            self.check_frozen()?;
            self.write_to(self.to_lsn(self.ring.filled()))?;
            pause.pause();
        }
        self.registered.expect(range.end.0);
        self.ring.fill(reserved, mtr, &|| self.is_frozen());
        Ok(range)
    }

    /// The sequence bit of a byte that is appended now: within the gate the file stays the same.
    fn seq_bit(&self, lsn: Lsn) -> u8 {
        let (first, size) = (&self.first_lsn, &self.size);
        let first = Lsn(first.load(Ordering::Relaxed));
        LogGeometry::new(first, size.load(Ordering::Relaxed))
            .expect("looked at when the file was opened")
            .seq_bit(lsn)
    }

    /// Marks a mini-transaction *registered*: its pages carry its LSN and stand in the flush lists.
    #[inline]
    pub fn registered(&self, range: LogRange) {
        self.registered
            .mark(range.start.0, range.end.0, &|| self.is_frozen());
    }

    /// Everything below is registered.
    pub fn registered_lsn(&self) -> Lsn {
        Lsn(self.registered.reached())
    }

    /// If the tablespace was not named since the last checkpoint, appends the FILE_MODIFY that must
    /// stand directly before the mini-transaction that changes it. `gate`: exclusive.
    pub fn append_modify(
        &self,
        gate: &GateGuard<'_>,
        spaces: &Registry,
        space: &Arc<Space>,
    ) -> Result<()> {
        assert!(
            gate.is_exclusive(),
            "FILE_MODIFY and its mini-transaction stand together"
        );
        if !space.is_named_in_log() || space.modified_lsn() != Lsn(0) {
            return Ok(());
        }
        let path = spaces.log_path(space);
        let range = self.append_file_ops(
            gate,
            &[FileOp::Modify {
                space: space.id(),
                name: path.as_bytes(),
            }],
        )?;
        spaces.set_modified(gate, space, range.end);
        Ok(())
    }

    /// Appends file records as one mini-transaction, registered at once: they change no page.
    pub(super) fn append_file_ops(
        &self,
        gate: &GateGuard<'_>,
        ops: &[FileOp<'_>],
    ) -> Result<LogRange> {
        let mut mtr = Vec::new();
        let mut encoder = Encoder::new();
        for op in ops {
            encoder.file_op(&mut mtr, op);
        }
        Log::finish(&mut mtr);
        let range = self.append(gate, &mut mtr)?;
        self.registered(range);
        Ok(range)
    }
}
