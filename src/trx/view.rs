//! Read views: one number each, in slots that purge can scan.

use super::registry::{Registry, TrxState};
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::{Mutex, Rank};
use crate::words::{TrxId, TrxNo};
use std::sync::Arc;

/// A slot without a view.
const CLOSED: u64 = u64::MAX;

/// Where a session's view stands while it is open. One for each session, so that opening a view
/// writes to memory that nobody else writes to.
#[derive(Debug)]
#[repr(align(64))]
pub struct ViewSlot(AtomicU64);

/// All slots.
#[derive(Debug)]
pub struct Views {
    slots: Mutex<Vec<Arc<ViewSlot>>>,
}

/// What a consistent read may see (C2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadView {
    limit: TrxNo,
    low: TrxId,
    own: TrxId,
}

impl Default for Views {
    fn default() -> Self {
        Views::new()
    }
}

impl Views {
    /// No slots.
    pub fn new() -> Views {
        Views {
            slots: Mutex::new(Rank::Leaf, Vec::new()),
        }
    }

    /// A slot for a new session.
    pub fn add_slot(&self) -> Arc<ViewSlot> {
        let slot = Arc::new(ViewSlot(AtomicU64::new(CLOSED)));
        self.slots.lock().push(slot.clone());
        slot
    }

    /// Takes a session's slot away; its view is closed.
    pub fn remove_slot(&self, slot: &Arc<ViewSlot>) {
        slot.close();
        self.slots.lock().retain(|s| !Arc::ptr_eq(s, slot));
    }

    /// The smallest limit of all open views, at most that of a view opened now. Versions that a
    /// view with this limit does not need, nobody needs.
    pub fn oldest(&self, registry: &Registry) -> TrxNo {
        // The limit first, then the slots; `open` writes its slot, then looks at the limit again.
        // Whichever comes first, either the slot is seen here or the view's limit is not smaller.
        let mut oldest = registry.visible_limit().0;
        fence(Ordering::SeqCst);
        for slot in self.slots.lock().iter() {
            oldest = oldest.min(slot.0.load(Ordering::SeqCst));
        }
        TrxNo(oldest)
    }

    /// Number of open views.
    pub fn open_count(&self) -> usize {
        self.slots.lock().iter().filter(|s| s.is_open()).count()
    }
}

impl ViewSlot {
    /// Opens a view for a transaction that writes under `own` (0 while it has no id).
    pub fn open(&self, registry: &Registry, own: TrxId) -> ReadView {
        let mut limit = registry.visible_limit();
        loop {
            self.0.store(limit.0, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let now = registry.visible_limit();
            if now == limit {
                // `low` is read after the slot is known to everybody: it is never above `limit`.
                return ReadView {
                    limit,
                    low: registry.low_water(),
                    own,
                };
            }
            limit = now;
        }
    }

    /// Closes the view.
    pub fn close(&self) {
        self.0.store(CLOSED, Ordering::SeqCst);
    }

    /// True while a view is open.
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst) != CLOSED
    }
}

impl ReadView {
    /// The commit number below which everything is visible.
    pub fn limit(self) -> TrxNo {
        self.limit
    }

    /// Sees the changes of `own` as well, from now on: the transaction got its id after the view.
    pub fn set_own(&mut self, own: TrxId) {
        self.own = own;
    }

    /// True if a row version written by `id` is visible.
    pub fn sees(&self, registry: &Registry, id: TrxId) -> bool {
        if id == self.own || id < self.low {
            return true;
        }
        if id.0 >= self.limit.0 {
            // Its commit number, if it has one, is larger still.
            return false;
        }
        match registry.state(id) {
            None => true,
            Some(TrxState::Committed(no)) => no < self.limit,
            Some(TrxState::Active(_)) => false,
        }
    }

    /// True if every transaction with an id below `id` is visible: the shortcut for secondary
    /// leaves by PAGE_MAX_TRX_ID.
    pub fn sees_all_up_to(&self, id: TrxId) -> bool {
        id < self.low
    }
}
