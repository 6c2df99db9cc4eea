//! The memory budget: what may grow with use, how large it is, and how large it may become.

use super::open::Engine;
use crate::settings::{Settings, ids};

/// Least limit of locks, and of open tables.
const LIMIT_MIN: u64 = 16 << 20;
/// Both limits are this part of the buffer pool.
const POOL_PART: u64 = 8;

/// One line of the budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRow {
    /// What takes it.
    pub name: &'static str,
    /// Bytes now, about.
    pub in_use: u64,
    /// Bytes at most.
    pub limit: u64,
}

impl Engine {
    /// The lines of the budget.
    pub fn memory(&self) -> Vec<MemoryRow> {
        let pool = &self.ctx().pool;
        let log = 2 * self.ctx().log.options().buffer_size as u64;
        let row = |name, (in_use, limit)| MemoryRow {
            name,
            in_use,
            limit,
        };
        let counts = pool.counts();
        let cached = ((counts.young + counts.old) * pool.page_size()) as u64;
        let recovery = &self.floor.storage.pending;
        vec![
            row("buffer_pool", (cached, pool.bytes() as u64)),
            row("guides", pool.guide_memory()),
            row("log_buffer", (log, log)),
            // As many buffers as there are indexes and threads that sort.
            row("sort_buffers", (self.sort_memory(), self.sort_memory())),
            row("dictionary", self.dict().memory()),
            row("locks", self.trx().locks.memory()),
            row(
                "recovery",
                (
                    recovery.bytes() as u64,
                    self.setup.recovery_bytes_max() as u64,
                ),
            ),
        ]
    }

    /// Locks and open tables may take as much as goes with the size of the pool.
    pub(super) fn set_memory_limits(&self) {
        let bytes = limit_beside_pool(self.settings());
        self.trx().locks.set_memory_limit(bytes);
        self.dict().set_memory_limit(bytes);
    }
}

fn limit_beside_pool(settings: &Settings) -> u64 {
    (settings.uint(ids::BUFFER_POOL_SIZE) / POOL_PART).max(LIMIT_MIN)
}
