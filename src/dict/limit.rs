//! The memory that open tables take, and closing those that nobody uses when it is too much.
//!
//! Which goes is decided by a clock over the tables by id: one that was looked up since the hand passed
//! it is spared once. A table that somebody holds, that has locks, or that is damaged stays; so the
//! limit is soft, as InnoDB's is.

use super::cache::Dict;
use super::open_table::OpenTable;
use crate::schema::{Column, Field, Index, Table};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::tree::Tree;
use crate::words::TableId;

/// What allocator and maps add for a table.
const OVERHEAD_BYTES: usize = 512;

/// What the open tables take.
pub(super) struct Usage {
    bytes: AtomicU64,
    limit: AtomicU64,
    /// The clock's hand: the last table that it passed.
    hand: AtomicU64,
}

impl Usage {
    pub(super) fn new() -> Usage {
        Usage {
            bytes: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            hand: AtomicU64::new(0),
        }
    }

    // Relaxed: sums that order nothing.
    pub(super) fn add(&self, table: &OpenTable) {
        let bytes = memory_bytes(table) as u64;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self, table: &OpenTable) {
        let bytes = memory_bytes(table) as u64;
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes of an open table, about: what its definition fixes.
fn memory_bytes(table: &OpenTable) -> usize {
    let def = table.def();
    let of_index = |index: &Index| {
        let parts = size_of::<Index>() + size_of::<Tree>() + index.name.len();
        // A number for each prefix of the key in the statistics.
        parts + index.fields.len() * (size_of::<Field>() + 8)
    };
    let columns = def.columns.len() + def.virtual_columns.len();
    let names = |columns: &[Column]| -> usize { columns.iter().map(|c| c.name.len()).sum() };
    size_of::<OpenTable>()
        + size_of::<Table>()
        + OVERHEAD_BYTES
        + 3 * def.name.len()
        + columns * size_of::<Column>()
        + names(&def.columns)
        + def.indexes.iter().map(of_index).sum::<usize>()
}

impl Dict {
    /// Bytes that the open tables take, about, and how many they should take.
    pub fn memory(&self) -> (u64, u64) {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (read(&self.usage.bytes), read(&self.usage.limit))
    }

    /// Tables that nobody uses are closed while the open ones take more.
    pub fn set_memory_limit(&self, bytes: u64) {
        self.usage.limit.store(bytes, Ordering::Relaxed);
    }

    /// Closes tables until the limit is kept, or nobody can do without the others. The caller has the
    /// dictionary for himself, so that a table that is looked up meanwhile is not opened a second time.
    pub(super) fn close_unused(&self) {
        let (bytes, limit) = self.memory();
        if bytes <= limit {
            return;
        }
        let mut tables = self.all_cached();
        tables.sort_unstable_by_key(|table| table.id());
        let hand = TableId(self.usage.hand.load(Ordering::Relaxed));
        let from = tables.partition_point(|table| table.id() <= hand);
        tables.rotate_left(from);
        // Twice round: what was used lately is spared once.
        let mut left: Vec<Option<Arc<OpenTable>>> = tables.into_iter().map(Some).collect();
        for _ in 0..2 {
            for slot in &mut left {
                if self.memory().0 <= limit {
                    return;
                }
                let Some(table) = slot.take() else { continue };
                self.usage.hand.store(table.id().0, Ordering::Relaxed);
                if table.take_recent() {
                    *slot = Some(table);
                } else {
                    self.close_if_unused(table);
                }
            }
        }
    }

    fn close_if_unused(&self, table: Arc<OpenTable>) {
        let stays = !table.name().contains('/')
            || table.is_corrupt()
            || table.is_retired()
            || self.locks().table_is_locked_by_others(None, table.id());
        if !stays {
            self.forget_if_unused(table);
        }
    }
}
