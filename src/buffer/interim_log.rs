//! A log that gives out positions and keeps nothing; the stand-in until `redo` is built.

use crate::sync::{Mutex, Rank};
use crate::words::{Lsn, Result, SpaceId};

/// Which part of the log a mini-transaction may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Statements.
    Statement,
    /// Rollback, purge, checkpoints.
    Reserve,
}

/// Admitted log room.
#[derive(Debug)]
pub struct Admission;

/// Positions only.
#[derive(Debug)]
pub struct Log(Mutex<u64>);

impl Log {
    /// Starts at `lsn`.
    pub fn at(lsn: Lsn) -> Log {
        Log(Mutex::new(Rank::LogGate, lsn.0))
    }

    /// Admits everything.
    pub fn admit(&self, _bytes: usize, _class: Class) -> Result<Admission> {
        Ok(Admission)
    }

    /// Gives the records a place and lets the caller stamp its pages.
    pub fn append(
        &self,
        records: &mut [u8],
        _spaces: &[SpaceId],
        publish: impl FnOnce(Lsn, Lsn),
    ) -> Result<(Lsn, Lsn)> {
        let mut lsn = self.0.lock();
        let start = Lsn(*lsn);
        *lsn += records.len() as u64 + 5;
        publish(start, Lsn(*lsn));
        Ok((start, Lsn(*lsn)))
    }

    /// Nothing is durable here, and nothing is waited for.
    pub fn flush_up_to(&self, _lsn: Lsn) -> Result<()> {
        Ok(())
    }

    /// Nothing to stop.
    pub fn stop(&self, _why: &str) {}
}
