//! A wait for a lock: created under the shard latch, waited for under none.

use crate::sync::Arc;
use std::time::Duration;

use super::modes::{RecordMode, TableMode};
use super::owner::Owner;
use crate::sync::{Condvar, Mutex, Rank};
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
pub enum WaitEnd {
    /// The lock is held; or the record it was asked for is gone and the caller looks again.
    Granted,
    /// Chosen to break a deadlock.
    Deadlock,
    /// The session was interrupted.
    Interrupted,
    /// The engine stops.
    Stopped,
}

/// A request that stands in a queue.
#[derive(Debug)]
pub struct Wait {
    /// Who waits.
    pub owner: Arc<Owner>,
    /// Its place among all waits in order of arrival. Who waits again because the record went away
    /// keeps its place.
    pub(super) arrival: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Follows the record when it moves to another page or heap number.
    target: Target,
    end: Option<WaitEnd>,
}

impl Wait {
    pub(super) fn new(owner: Arc<Owner>, target: Target, arrival: u64) -> Arc<Wait> {
        Arc::new(Wait {
            owner,
            arrival,
            state: Mutex::new(Rank::Leaf, State { target, end: None }),
            changed: Condvar::new(),
        })
    }

    /// What is waited for now.
    pub fn target(&self) -> Target {
        self.state.lock().target
    }

    pub(super) fn retarget(&self, target: Target) {
        self.state.lock().target = target;
    }

    /// Ends the wait, unless it has ended; true if this call ended it.
    pub fn end(&self, how: WaitEnd) -> bool {
        let mut state = self.state.lock();
        let first = state.end.is_none();
        if first {
            state.end = Some(how);
            self.changed.notify_all();
        }
        first
    }

    pub(super) fn ended(&self) -> Option<WaitEnd> {
        self.state.lock().end
    }

    /// Sleeps until the wait ends, at most `slice`; `None` = still waiting.
    pub(super) fn sleep(&self, slice: Duration) -> Option<WaitEnd> {
        let state = self.state.lock();
        if state.end.is_some() {
            return state.end;
        }
        self.changed.wait_for(state, slice).0.end
    }
}

impl WaitEnd {
    pub(super) fn into_result(self) -> Result<()> {
        match self {
            WaitEnd::Granted => Ok(()),
            WaitEnd::Deadlock => Err(Error::Deadlock),
            WaitEnd::Interrupted => Err(Error::Interrupted),
            WaitEnd::Stopped => Err(Error::Stopped("the engine is shutting down".into())),
        }
    }
}
