//! Changes that may fail half-way: a structure change that meets damage leaves its pages as they were.
//!
//! Pages are copied before their first change, so this is for what is rare beside the changes of
//! single records. Latches taken meanwhile stay until the mtr ends.

use super::memo::PageRef;
use super::mtr::Mtr;
use crate::buffer::Mode;
use crate::format::fil;
use crate::format::redo_encode::Encoder;
use crate::words::{PageId, Result};

/// Copies of pages, in the order in which they were first changed. Memory goes from mtr to mtr.
#[derive(Default)]
pub(super) struct Kept {
    /// Number of the first copy of the attempt under way.
    attempt: Option<usize>,
    copies: Vec<Copied>,
    bytes: Vec<u8>,
}

struct Copied {
    page: PageRef,
    from: usize,
    modified: bool,
    /// Made a page by this mtr: before, its bytes meant nothing to anybody.
    is_new: bool,
    flags: u8,
}

/// Larger buffers are given back to the allocator.
const BYTES_KEPT: usize = 256 << 10;

impl Kept {
    /// True while an attempt is under way.
    pub(super) fn is_active(&self) -> bool {
        self.attempt.is_some()
    }

    /// Ready for another mtr.
    pub(super) fn cleared(mut self) -> Kept {
        self.attempt = None;
        self.copies.clear();
        self.bytes.clear();
        if self.bytes.capacity() > BYTES_KEPT {
            self.bytes = Vec::new();
        }
        self
    }
}

/// Where an mtr stood when an attempt began.
struct Before {
    outer: Option<usize>,
    records: usize,
    encoder: Encoder,
    freed: Vec<PageId>,
    spaces: usize,
    modified: bool,
}

impl<'a> Mtr<'a> {
    /// Runs `change`. If it fails, pages and records are again as they were before, and the mtr goes on
    /// as if nothing had been tried; what nested mtrs have committed stays. Attempts may be nested.
    ///
    /// Errors: those of `change`.
    pub fn attempt<T>(&mut self, change: impl FnOnce(&mut Mtr<'a>) -> Result<T>) -> Result<T> {
        let before = self.begin_attempt();
        let result = change(self);
        match result {
            // The copies stay for an attempt around this one.
            Ok(_) if before.outer.is_some() => self.scratch.kept.attempt = before.outer,
            Ok(_) => {
                self.scratch.kept.attempt = None;
                self.scratch.kept.copies.clear();
                self.scratch.kept.bytes.clear();
            }
            Err(_) => self.take_back(before),
        }
        result
    }

    fn begin_attempt(&mut self) -> Before {
        let scratch = &mut self.scratch;
        let first = scratch.kept.copies.len();
        Before {
            outer: scratch.kept.attempt.replace(first),
            records: scratch.records.len(),
            encoder: scratch.encoder.clone(),
            freed: scratch.freed.clone(),
            spaces: scratch.spaces.len(),
            modified: self.modified,
        }
    }

    /// Before a page's first change in an attempt.
    pub(super) fn keep_copy(&mut self, page: PageRef, is_new: bool) {
        let scratch = &mut self.scratch;
        let kept = &mut scratch.kept;
        let Some(first) = kept.attempt else { return };
        if kept.copies[first..].iter().any(|copy| copy.page == page) {
            return;
        }
        let slot = scratch.memo.slot(page);
        kept.copies.push(Copied {
            page,
            from: kept.bytes.len(),
            modified: slot.modified,
            is_new,
            flags: slot.guard.allocation_flags(),
        });
        kept.bytes.extend_from_slice(slot.guard.bytes());
    }

    /// Back to where the attempt began, the newest copy first: of a page with several, the oldest
    /// stays.
    fn take_back(&mut self, before: Before) {
        let scratch = &mut self.scratch;
        let kept = &mut scratch.kept;
        let first = kept.attempt.unwrap_or(0);
        while kept.copies.len() > first {
            let Some(copy) = kept.copies.pop() else { break };
            if let Some(slot) = scratch.memo.get_mut(copy.page) {
                let id = slot.guard.id();
                let bytes = &kept.bytes[copy.from..];
                match slot.guard.mode() {
                    Mode::X if copy.is_new && !slot.guard.is_dirty() => {
                        fil::init(slot.guard.bytes_mut(), id);
                    }
                    Mode::X => slot.guard.bytes_mut().copy_from_slice(bytes),
                    _ => slot.guard.restore_under_update(bytes),
                }
                slot.guard.set_allocation_flags(copy.flags);
                slot.modified = copy.modified;
            }
            kept.bytes.truncate(copy.from);
        }
        kept.attempt = before.outer;
        scratch.records.truncate(before.records);
        scratch.encoder = before.encoder;
        scratch.freed = before.freed;
        scratch.spaces.truncate(before.spaces);
        self.modified = before.modified;
    }
}
