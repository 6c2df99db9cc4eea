//! The latch order: docs/latch-order.md as an enum and a check.
//!
//! Debug builds count, per thread and rank, the latches held; asking for one below the highest rank
//! held is a bug and panics before it can become a deadlock. Release builds do nothing.

#[cfg(debug_assertions)]
use std::cell::Cell;

/// What a latch protects; a thread that holds one may wait only for a higher one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Rank {
    /// Outside the order: never checked. For tests.
    None = 0,
    /// DDL against DDL; shared by row operations that look into the dictionary cache.
    DictOperation = 10,
    /// A shard of the dictionary cache.
    DictCache = 15,
    /// Counters of one table.
    TableLatch = 20,
    /// Structure changes of one index.
    Tree = 30,
    /// An index or BLOB page.
    IndexPage = 40,
    /// One rollback segment.
    Rseg = 50,
    /// An undo page or a rollback segment header page.
    UndoPage = 55,
    /// Allocation in one tablespace.
    Space = 60,
    /// FSP_HDR, XDES, INODE, IBUF_BITMAP, TRX_SYS, dictionary header.
    FspPage = 65,
    /// The search for deadlocks.
    Detector = 68,
    /// A shard of the lock table.
    LockShard = 70,
    /// One transaction's list of locks.
    TrxLocks = 72,
    /// The commit clock.
    TrxRegistry = 74,
    /// A shard of the transaction registry.
    TrxRegistryShard = 75,
    /// A checkpoint, or a file operation that no checkpoint may interrupt.
    Checkpoint = 78,
    /// The log gate.
    LogGate = 80,
    /// A shard of the flush list.
    FlushShard = 84,
    /// The LRU and free lists.
    Lru = 86,
    /// A shard of the page table.
    PageTableShard = 88,
    /// Syncing the log.
    LogFlush = 89,
    /// Writing the log.
    LogWrite = 90,
    /// Opening, growing, failing a file.
    FileState = 95,
    /// Waits for nothing: counters, scratch pools, event queues.
    Leaf = 99,
}

impl Rank {
    /// True if one function may hold two latches of this rank, in the order of docs/latch-order.md.
    pub const fn may_repeat(self) -> bool {
        matches!(
            self,
            Rank::None | Rank::IndexPage | Rank::UndoPage | Rank::FspPage | Rank::LockShard
        )
    }
}

#[cfg(debug_assertions)]
const RANKS: usize = 100;

#[cfg(debug_assertions)]
thread_local! {
    /// Latches held by this thread, counted by rank. Const-initialised, no destructor.
    static HELD: [Cell<u16>; RANKS] = const { [const { Cell::new(0) }; RANKS] };
}

/// Asserts that waiting for a latch of `rank` keeps the order. Call before a blocking acquire.
#[inline]
#[track_caller]
pub fn about_to_wait(rank: Rank) {
    #[cfg(debug_assertions)]
    if rank != Rank::None {
        let highest = highest_held();
        let fine = highest < rank as usize || (highest == rank as usize && rank.may_repeat());
        assert!(
            fine,
            "latch order: {rank:?} requested while a latch of rank {highest} is held"
        );
    }
    #[cfg(not(debug_assertions))]
    let _ = rank;
}

/// Notes that a latch of `rank` is held now, by waiting or by a successful try.
#[inline]
pub fn acquired(rank: Rank) {
    #[cfg(debug_assertions)]
    if rank != Rank::None {
        HELD.with(|held| held[rank as usize].set(held[rank as usize].get() + 1));
    }
    #[cfg(not(debug_assertions))]
    let _ = rank;
}

/// Notes that a latch of `rank` was released by this thread.
#[inline]
#[track_caller]
pub fn released(rank: Rank) {
    #[cfg(debug_assertions)]
    if rank != Rank::None {
        HELD.with(|held| {
            let count = held[rank as usize].get();
            // While unwinding a second panic would abort the host: the first one tells enough.
            if count == 0 && !std::thread::panicking() {
                panic!("latch order: {rank:?} released but not held by this thread");
            }
            held[rank as usize].set(count.saturating_sub(1));
        });
    }
    #[cfg(not(debug_assertions))]
    let _ = rank;
}

/// Asserts that this thread holds no latch at all: the rule for waits that are not latches
/// (record locks, log room, free frames, syncs). Debug builds only.
#[inline]
#[track_caller]
pub fn assert_nothing_held() {
    #[cfg(debug_assertions)]
    {
        let highest = highest_held();
        assert!(
            highest == 0,
            "a wait that is no latch, while a latch of rank {highest} is held"
        );
    }
}

/// True if a latch of `rank` or above is held by this thread; always false in release builds.
pub fn holds_at_or_above(rank: Rank) -> bool {
    #[cfg(debug_assertions)]
    return highest_held() >= rank as usize;
    #[cfg(not(debug_assertions))]
    {
        let _ = rank;
        false
    }
}

#[cfg(debug_assertions)]
fn highest_held() -> usize {
    HELD.with(|held| (0..RANKS).rev().find(|&r| held[r].get() > 0).unwrap_or(0))
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn ranks_may_be_released_in_any_order() {
        for rank in [Rank::Tree, Rank::IndexPage, Rank::IndexPage, Rank::LogGate] {
            about_to_wait(rank);
            acquired(rank);
        }
        assert!(holds_at_or_above(Rank::LogGate));
        for rank in [Rank::IndexPage, Rank::Tree, Rank::LogGate, Rank::IndexPage] {
            released(rank);
        }
        assert_nothing_held();
    }

    #[test]
    #[should_panic(expected = "latch order")]
    fn a_lower_rank_is_refused() {
        acquired(Rank::LogGate);
        about_to_wait(Rank::IndexPage);
    }

    #[test]
    #[should_panic(expected = "latch order")]
    fn a_rank_that_stands_alone_is_not_taken_twice() {
        acquired(Rank::FlushShard);
        about_to_wait(Rank::FlushShard);
    }
}
