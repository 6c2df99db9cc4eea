//! A wait for a lock: created under the shard latch, waited for under none.

use crate::sync::Arc;
use std::time::Duration;

use super::modes::{RecordMode, TableMode};
use super::owner::Owner;
use crate::sync::{Mutex, Notice, Rank};
use crate::words::{Error, HeapNo, PageId, Result, TableId};

/// What came of a lock request.
#[derive(Debug)]
pub enum Outcome {
    /// The lock is held now, or was before.
    Granted,
    /// Somebody is in the way; see `LockTable::wait`.
    Wait(Arc<Wait>),
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A record of a page.
    Record(PageId, HeapNo, RecordMode),
    /// A table.
    Table(TableId, TableMode),
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum WaitEnd {
    /// The lock is held; or the record it was asked for is gone and the caller looks again.
    Granted = 1,
    /// Chosen to break a deadlock.
    Deadlock = 2,
    /// The session was interrupted.
    Interrupted = 3,
    /// The engine stops.
    Stopped = 4,
    /// There is no room for more locks.
    Full = 5,
}

/// A request that stands in a queue.
#[derive(Debug)]
pub struct Wait {
    /// Who waits.
    pub owner: Arc<Owner>,
    /// Its place among all waits in order of arrival. Who waits again because the record went away
    /// keeps its place.
    pub(super) arrival: u64,
    /// Follows the record when it moves to another page or heap number.
    target: Mutex<Target>,
    end: Notice,
}

/// Waits that were ended under a shard's latch. Made before the latch is taken, it is dropped after
/// that: who wakes does not run into the latch, and nobody else waits for the system call.
#[derive(Default)]
pub(super) struct Ended(Vec<Arc<Wait>>);

impl Ended {
    /// Ends a wait; whoever sleeps in it wakes later.
    pub(super) fn end(&mut self, wait: Arc<Wait>, how: WaitEnd) {
        if wait.end.tell(how as u32) {
            self.0.push(wait);
        }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        for wait in &self.0 {
            wait.end.wake();
        }
    }
}

impl Wait {
    pub(super) fn new(owner: Arc<Owner>, target: Target, arrival: u64) -> Arc<Wait> {
        Arc::new(Wait {
            owner,
            arrival,
            target: Mutex::new(Rank::Leaf, target),
            end: Notice::new(),
        })
    }

    /// What is waited for now.
    pub fn target(&self) -> Target {
        *self.target.lock()
    }

    pub(super) fn retarget(&self, target: Target) {
        *self.target.lock() = target;
    }

    /// Ends the wait, unless it has ended; true if this call ended it.
    pub fn end(&self, how: WaitEnd) -> bool {
        let first = self.end.tell(how as u32);
        if first {
            self.end.wake();
        }
        first
    }

    /// Errors: `LockTableFull` if the request was refused, so that there is nothing to wait for.
    pub fn check_refused(&self) -> Result<()> {
        match self.ended() {
            Some(WaitEnd::Full) => WaitEnd::Full.into_result(),
            _ => Ok(()),
        }
    }

    pub(super) fn ended(&self) -> Option<WaitEnd> {
        WaitEnd::from_told(self.end.told())
    }

    /// Looks for the end up to `looks` times, without sleeping.
    pub(super) fn watch(&self, looks: u32) -> Option<WaitEnd> {
        WaitEnd::from_told(self.end.watch(looks))
    }

    /// Sleeps until the wait ends, at most `slice`; `None` = still waiting.
    pub(super) fn sleep(&self, slice: Duration) -> Option<WaitEnd> {
        WaitEnd::from_told(self.end.wait(slice))
    }
}

impl WaitEnd {
    fn from_told(told: u32) -> Option<WaitEnd> {
        match told {
            0 => None,
            1 => Some(WaitEnd::Granted),
            2 => Some(WaitEnd::Deadlock),
            3 => Some(WaitEnd::Interrupted),
            5 => Some(WaitEnd::Full),
            _ => Some(WaitEnd::Stopped),
        }
    }

    pub(super) fn into_result(self) -> Result<()> {
        match self {
            WaitEnd::Granted => Ok(()),
            WaitEnd::Deadlock => Err(Error::Deadlock),
            WaitEnd::Interrupted => Err(Error::Interrupted),
            WaitEnd::Full => Err(Error::LockTableFull),
            WaitEnd::Stopped => Err(Error::Stopped("the engine is shutting down".into())),
        }
    }
}
