//! A frame: the descriptor of one page image in the pool, and its small state machines.
//!
//! Pin word: count in the low bits, `SHARED` on top. A frame that is free, being evicted or being
//! set up is OWNED: its pin word is 0, so a stale look-up cannot pin it (P3, P5).
//!
//! All zero bytes are a frame that was never used: OWNED, without a page, on no list. Descriptors of
//! frames that nobody needed yet are not even memory (region.rs).
//!
//! ```text
//! OWNED (free list) ──table::insert──▶ pinned, LOADING ──finish_load──▶ READY
//!   ▲                                     └── fail_load ──▶ FAILED ──last unpin──┐
//!   └───────────── try_own (pins 0 → OWNED), out of table ◀────── READY, clean ◀─┘
//! ```
//!
//! Write state (`WriteState`), drawn in docs/ARCHITECTURE.md section 5: `flush_list` performs every
//! arrow. CLEAN → DIRTY and DIRTY → IN_FLIGHT happen under the page's X or U latch, all others under
//! the mutex of the frame's flush shard.

use crate::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::sync::Latch;
use crate::words::PageId;

/// No page; also "no frame" in links is `NO_FRAME`.
pub(super) const NO_PAGE: u64 = u64::MAX;
/// "No frame" in links and list ends.
pub(super) const NO_FRAME: u32 = u32::MAX;

/// The frame may be pinned.
const SHARED: u32 = 1 << 31;
const OWNED: u32 = 0;

/// Where the content of a frame stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Load {
    /// In the free list, or between lists.
    Free = 0,
    /// A thread reads the page; others wait or go away.
    Loading = 1,
    /// Verified content.
    Ready = 2,
    /// The read failed; the frame is out of the table and is freed by the last unpin.
    Failed = 3,
}

/// How far the changes of a frame are on their way to the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum WriteState {
    /// The file has, durably, what the frame has.
    Clean = 0,
    /// Changed since the last copy was taken.
    Dirty = 1,
    /// A copy is being written.
    InFlight = 2,
    /// The copy is in the file; its fsync is not yet done.
    Unsynced = 3,
}

/// Which LRU list a frame is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Place {
    None = 0,
    Free = 1,
    Young = 2,
    Old = 3,
    /// Out of use: the pool shrinks.
    Withdrawn = 4,
}

/// Set by a panic between a page change and its log record: content must not be read again.
pub(super) const FLAG_POISONED: u8 = 1;
/// The page was freed by a committed mini-transaction: writing it is not needed.
pub(super) const FLAG_FREED: u8 = 2;
/// Initialised since it was last copied for writing: the log alone rebuilds it (no doublewrite).
pub(super) const FLAG_FRESH: u8 = 4;

/// The record list of the index page was walked since it was read: it ends.
pub(super) const FLAG_CHECKED: u8 = 8;

/// Descriptor of a frame; type-stable for the life of the pool. Every field is 0 by default. What a
/// look-up needs comes first, on one cache line.
#[derive(Default)]
#[repr(C, align(64))]
pub(super) struct Frame {
    pins: AtomicU32,
    /// Next frame of the hash chain, changed under the table shard's mutex.
    pub(super) chain: AtomicU32,
    /// All bits turned over: 0 is `NO_PAGE`.
    id: AtomicU64,
    load: AtomicU8,
    pub(super) flags: AtomicU8,
    /// 0 never used since loaded, 1 used, 2 hot.
    pub(super) heat: AtomicU8,
    write_state: AtomicU8,
    /// Coarse time of the first use, in pool ticks.
    pub(super) first_use: AtomicU32,
    /// Guards the bytes.
    pub(super) latch: Latch,
    /// Where the page's guide is written, if it has one: `guide.rs`.
    pub(super) guide: AtomicU32,
    /// Size of the page in its file, in units of 512 bytes (ROW_FORMAT=COMPRESSED files differ from
    /// the frame's size); the compressed image itself would hang on the frame beside it.
    pub(super) physical_sectors: AtomicU16,
    /// Visits since the last guide, as an inner page.
    pub(super) visits: AtomicU8,
    pub(super) place: AtomicU8,
    /// Start LSN of the oldest change that the file lacks; 0 = none. Guarded by the flush shard.
    pub(super) oldest: AtomicU64,
    /// Start LSN of the first change since the copy in flight was taken; 0 = none. Guarded likewise.
    pub(super) redirtied: AtomicU64,
    /// Flush list links, guarded by the flush shard.
    pub(super) flush_prev: AtomicU32,
    pub(super) flush_next: AtomicU32,
    /// LRU or free list links, guarded by the LRU mutex, as `place` is.
    pub(super) lru_prev: AtomicU32,
    pub(super) lru_next: AtomicU32,
}

impl Frame {
    /// Adds a pin unless the frame is OWNED. Acquire: what the loader wrote before it let others
    /// pin is seen.
    pub(super) fn try_pin(&self) -> bool {
        let mut pins = self.pins.load(Ordering::Relaxed);
        while pins & SHARED != 0 {
            match self.pins.compare_exchange_weak(
                pins,
                pins + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => pins = now,
            }
        }
        false
    }

    /// Removes a pin; true if it was the last one.
    pub(super) fn unpin(&self) -> bool {
        let before = self.pins.fetch_sub(1, Ordering::Release);
        debug_assert!(before > SHARED, "unpin of an unpinned frame");
        before == SHARED + 1
    }

    /// Pins 0 → OWNED; nobody can pin the frame from here on.
    pub(super) fn try_own(&self) -> bool {
        self.pins
            .compare_exchange(SHARED, OWNED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// OWNED → `pins` pins: the owner publishes the frame.
    pub(super) fn disown(&self, pins: u32) {
        debug_assert_eq!(self.pins.load(Ordering::Relaxed), OWNED);
        self.pins.store(SHARED | pins, Ordering::Release);
    }

    /// Pins right now (a hint), or `None` for an OWNED frame.
    pub(super) fn pins(&self) -> Option<u32> {
        let pins = self.pins.load(Ordering::Relaxed);
        (pins & SHARED != 0).then_some(pins & !SHARED)
    }

    pub(super) fn id_word(&self) -> u64 {
        !self.id.load(Ordering::Acquire)
    }

    /// The page; meaningful while the frame is pinned or owned.
    pub(super) fn id(&self) -> PageId {
        PageId::from_u64(self.id_word())
    }

    pub(super) fn set_id(&self, word: u64) {
        self.id.store(!word, Ordering::Release);
    }

    pub(super) fn load(&self) -> Load {
        match self.load.load(Ordering::Acquire) {
            0 => Load::Free,
            1 => Load::Loading,
            2 => Load::Ready,
            _ => Load::Failed,
        }
    }

    pub(super) fn set_load(&self, load: Load) {
        self.load.store(load as u8, Ordering::Release);
    }

    pub(super) fn write_state(&self) -> WriteState {
        match self.write_state.load(Ordering::Acquire) {
            0 => WriteState::Clean,
            1 => WriteState::Dirty,
            2 => WriteState::InFlight,
            _ => WriteState::Unsynced,
        }
    }

    pub(super) fn set_write_state(&self, state: WriteState) {
        self.write_state.store(state as u8, Ordering::Release);
    }

    pub(super) fn has_flag(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Acquire) & flag != 0
    }

    pub(super) fn set_flag(&self, flag: u8) {
        self.flags.fetch_or(flag, Ordering::AcqRel);
    }

    pub(super) fn clear_flag(&self, flag: u8) {
        self.flags.fetch_and(!flag, Ordering::AcqRel);
    }

    pub(super) fn place(&self) -> Place {
        match self.place.load(Ordering::Relaxed) {
            0 => Place::None,
            1 => Place::Free,
            2 => Place::Young,
            3 => Place::Old,
            _ => Place::Withdrawn,
        }
    }

    pub(super) fn set_place(&self, place: Place) {
        self.place.store(place as u8, Ordering::Relaxed);
    }

    /// Takes over what is known of another frame's page, but for its id and its changes; both frames
    /// are OWNED.
    pub(super) fn take_over(&self, from: &Frame) {
        self.set_load(from.load());
        let flags = from.flags.load(Ordering::Acquire);
        self.flags.store(flags, Ordering::Release);
        let heat = from.heat.load(Ordering::Relaxed);
        self.heat.store(heat, Ordering::Relaxed);
        let first_use = from.first_use.load(Ordering::Relaxed);
        self.first_use.store(first_use, Ordering::Relaxed);
        let sectors = from.physical_sectors.load(Ordering::Relaxed);
        self.physical_sectors.store(sectors, Ordering::Relaxed);
    }

    /// Forgets everything about the page that was here; the frame is OWNED.
    pub(super) fn reset(&self) {
        self.set_load(Load::Free);
        self.set_id(NO_PAGE);
        self.flags.store(0, Ordering::Relaxed);
        self.heat.store(0, Ordering::Relaxed);
        self.set_write_state(WriteState::Clean);
        self.oldest.store(0, Ordering::Relaxed);
        self.redirtied.store(0, Ordering::Relaxed);
        self.physical_sectors.store(0, Ordering::Relaxed);
    }
}
