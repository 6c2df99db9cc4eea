//! What mini-transactions work on, and the memory they re-use.

use super::attempt::Kept;
use super::memo::Memo;
use crate::buffer::Pool;
use crate::format::redo_encode::Encoder;
use crate::redo::Log;
use crate::space::Registry;
use crate::sync::atomic::AtomicU64;
use crate::sync::gate::{STRIPES, own_stripe};
use crate::sync::{Arc, Mutex, Rank};
use crate::words::{PageId, Result, SpaceId};

/// Pool, log and tablespaces of one engine, shared by all that read or change pages.
pub struct PageCtx {
    /// The buffer pool.
    pub pool: Arc<Pool>,
    /// The redo log.
    pub log: Arc<Log>,
    /// The tablespace files.
    pub spaces: Arc<Registry>,
    /// Bytes of sort buffers in use.
    pub sort_bytes: Arc<AtomicU64>,
    spares: [Mutex<Vec<Spare>>; STRIPES],
}

/// Spares kept per stripe; more mtrs at once than this allocate.
const SPARES_MAX: usize = 8;
/// Larger record buffers are given back to the allocator.
const RECORD_BYTES_KEPT: usize = 64 << 10;

/// Buffers of a finished mtr.
#[derive(Default)]
struct Spare {
    memo: Memo<'static>,
    records: Vec<u8>,
    freed: Vec<PageId>,
    spaces: Vec<SpaceId>,
    kept: Kept,
}

/// The buffers of a running mtr.
pub(super) struct Scratch<'a> {
    pub(super) memo: Memo<'a>,
    /// Encoded records.
    pub(super) records: Vec<u8>,
    pub(super) encoder: Encoder,
    /// Pages freed by this mtr.
    pub(super) freed: Vec<PageId>,
    /// Tablespaces that the records name, each once.
    pub(super) spaces: Vec<SpaceId>,
    /// Pages as they were before the attempt under way.
    pub(super) kept: Kept,
}

impl Scratch<'_> {
    pub(super) fn empty() -> Self {
        Scratch {
            memo: Memo::default(),
            records: Vec::new(),
            encoder: Encoder::new(),
            freed: Vec::new(),
            spaces: Vec::new(),
            kept: Kept::default(),
        }
    }
}

impl PageCtx {
    /// Brings the three together.
    pub fn new(pool: Arc<Pool>, log: Arc<Log>, spaces: Arc<Registry>) -> PageCtx {
        PageCtx {
            pool,
            log,
            spaces,
            sort_bytes: Arc::default(),
            spares: std::array::from_fn(|_| Mutex::new(Rank::Leaf, Vec::with_capacity(SPARES_MAX))),
        }
    }

    /// Bytes of a page in the pool.
    pub fn page_size(&self) -> usize {
        self.pool.page_size()
    }

    /// Errors: `Stopped` after `freeze`.
    pub fn check_running(&self) -> Result<()> {
        self.pool.check_running()
    }

    /// The thread passes the crash point `name` (`os::crash_point::POINTS`).
    #[inline]
    pub fn reached(&self, name: &str) {
        self.log.crash_points().reached(name);
    }

    /// Stops the engine for good: no page or log write starts any more, waits wake with errors (C4).
    #[cold]
    pub fn freeze(&self, why: &str) {
        self.pool.freeze(why);
        self.log.freeze(why);
    }

    pub(super) fn scratch<'a>(&self) -> Scratch<'a> {
        let spare = self.spares[own_stripe()]
            .try_lock()
            .and_then(|mut spares| spares.pop())
            .unwrap_or_default();
        Scratch {
            memo: Memo::reusing(spare.memo),
            records: spare.records,
            encoder: Encoder::new(),
            freed: spare.freed,
            spaces: spare.spaces,
            kept: spare.kept,
        }
    }

    /// Takes the buffers back; pages still latched are released.
    pub(super) fn give_back(&self, scratch: Scratch<'_>) {
        let mut spare = Spare {
            memo: scratch.memo.into_spare(),
            records: scratch.records,
            freed: scratch.freed,
            spaces: scratch.spaces,
            kept: scratch.kept.cleared(),
        };
        spare.records.clear();
        spare.freed.clear();
        spare.spaces.clear();
        if spare.records.capacity() > RECORD_BYTES_KEPT {
            spare.records = Vec::new();
        }
        if let Some(mut spares) = self.spares[own_stripe()].try_lock() {
            if spares.len() < SPARES_MAX {
                spares.push(spare);
            }
        }
    }
}
