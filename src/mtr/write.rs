//! The only ways to change a page: each changes the bytes and logs the change in one call (M1).

use super::memo::PageRef;
use super::mtr::{Kind, Mtr};
use crate::buffer::Mode;
use crate::format::fil;
use crate::format::redo_record::{FileOp, PageOp};
use crate::sync::Rank;
use crate::words::difference::next_run;
use crate::words::{PageId, Result, SpaceId};

/// Unchanged bytes between two changed ones that make two WRITE records cheaper than one.
const GAP_MIN: usize = 8;

impl Mtr<'_> {
    /// Writes `bytes` at `at`. Only what differs is logged, and nothing if nothing does.
    ///
    /// Panics if the range leaves the page or covers its first 8 bytes, or if the page is held in S;
    /// under U only PAGE_MAX_TRX_ID / PAGE_ROOT_AUTO_INC may be written (P2).
    pub fn write(&mut self, page: PageRef, at: usize, bytes: &[u8]) {
        let mut done = 0;
        while let Some((from, to)) =
            next_run(&self.view(page)[at..at + bytes.len()], bytes, done, GAP_MIN)
        {
            self.write_all(page, at + from, &bytes[from..to]);
            done = to;
        }
    }

    /// Writes `bytes` at `at` as ONE record, unchanged bytes included: for FSP_SIZE and the flags,
    /// which recovery looks for in the log (format-redo.md section 6).
    pub fn write_whole(&mut self, page: PageRef, at: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.write_all(page, at, bytes);
        }
    }

    fn write_all(&mut self, page: PageRef, at: usize, bytes: &[u8]) {
        let id = self.changes(page);
        if self.logs(id.space) {
            let scratch = &mut self.scratch;
            scratch.encoder.write(&mut scratch.records, id, at, bytes);
        }
        let guard = &mut self.scratch.memo.slot_mut(page).guard;
        match guard.mode() {
            Mode::X => guard.bytes_mut()[at..at + bytes.len()].copy_from_slice(bytes),
            _ => guard.write_under_update(at, bytes),
        }
    }

    /// Writes a byte.
    pub fn write_u8(&mut self, page: PageRef, at: usize, value: u8) {
        self.write(page, at, &[value]);
    }

    /// Writes 2 bytes, big-endian.
    pub fn write_u16(&mut self, page: PageRef, at: usize, value: u16) {
        self.write(page, at, &value.to_be_bytes());
    }

    /// Writes 4 bytes, big-endian.
    pub fn write_u32(&mut self, page: PageRef, at: usize, value: u32) {
        self.write(page, at, &value.to_be_bytes());
    }

    /// Writes 8 bytes, big-endian.
    pub fn write_u64(&mut self, page: PageRef, at: usize, value: u64) {
        self.write(page, at, &value.to_be_bytes());
    }

    /// Fills `len` bytes from `at` with `fill`. Nothing is logged if they are that already.
    pub fn memset(&mut self, page: PageRef, at: usize, len: usize, fill: u8) {
        self.memset_pattern(page, at, len, &[fill]);
    }

    /// Repeats `fill` over `len` bytes, a multiple of its length, from `at`.
    pub fn memset_pattern(&mut self, page: PageRef, at: usize, len: usize, fill: &[u8]) {
        let old = &self.view(page)[at..at + len];
        if old.chunks_exact(fill.len()).all(|chunk| chunk == fill) {
            return;
        }
        let id = self.changes(page);
        if self.logs(id.space) {
            let scratch = &mut self.scratch;
            scratch
                .encoder
                .memset(&mut scratch.records, id, at, len, fill);
        }
        let bytes = &mut self.scratch.memo.slot_mut(page).guard.bytes_mut()[at..at + len];
        bytes
            .chunks_exact_mut(fill.len())
            .for_each(|chunk| chunk.copy_from_slice(fill));
    }

    /// Moves `len` bytes from `from` to `to` within the page; they may overlap.
    pub fn memmove(&mut self, page: PageRef, to: usize, from: usize, len: usize) {
        if len == 0 || to == from {
            return;
        }
        let id = self.changes(page);
        if self.logs(id.space) {
            let scratch = &mut self.scratch;
            scratch
                .encoder
                .memmove(&mut scratch.records, id, to, len, from);
        }
        self.scratch
            .memo
            .slot_mut(page)
            .guard
            .bytes_mut()
            .copy_within(from..from + len, to);
    }

    /// Logs `op` – an operation that recovery knows – and applies it by `apply`, the very function
    /// that recovery uses.
    ///
    /// `apply` must check before it changes: an error means that the page is as it was, and nothing
    /// is logged. It gets the page's bytes and must leave bytes 0..8 and the LSN alone.
    pub fn extended<T>(
        &mut self,
        page: PageRef,
        op: &PageOp<'_>,
        apply: impl FnOnce(&mut [u8]) -> Result<T>,
    ) -> Result<T> {
        let was = (self.modified, self.scratch.memo.slot(page).modified);
        let id = self.changes(page);
        let value = match apply(self.scratch.memo.slot_mut(page).guard.bytes_mut()) {
            Ok(value) => value,
            Err(error) => {
                self.modified = was.0;
                self.scratch.memo.slot_mut(page).modified = was.1;
                return Err(error);
            }
        };
        if self.logs(id.space) {
            let scratch = &mut self.scratch;
            scratch.encoder.page_op(&mut scratch.records, id, op);
        }
        Ok(value)
    }

    /// Makes `id` a new page: latched X, zeros with the FIL header, logged as INIT_PAGE. The page
    /// must have been allocated by this mtr; what the pool or the file had there is void.
    ///
    /// Errors: `BufferPoolFull` if the budget had no frame for it and none is to be had at once.
    pub fn create(&mut self, id: PageId, rank: Rank) -> Result<PageRef> {
        let page = match self.scratch.memo.find(id) {
            Some(page) => page,
            None => {
                let guard = self.ctx.pool.create(id, rank, self.frames())?;
                let page = self.scratch.memo.push(guard, false);
                self.keep_copy(page, true);
                page
            }
        };
        self.changes(page);
        self.ctx.pool.forget_pending(id);
        self.scratch.freed.retain(|&freed| freed != id);
        let slot = self.scratch.memo.slot_mut(page);
        slot.guard.note_created();
        fil::init(slot.guard.bytes_mut(), id);
        if self.logs(id.space) {
            let scratch = &mut self.scratch;
            scratch.encoder.init_page(&mut scratch.records, id);
        }
        Ok(page)
    }

    /// Logs that `id` is free from now on: its content need not reach the file any more, and nothing
    /// but `create` may follow for it. The allocation bits are the business of `extent`.
    pub fn free_page(&mut self, id: PageId) {
        self.assert_writes(id.space);
        self.modified = true;
        self.scratch.freed.push(id);
        if self.logs(id.space) {
            let scratch = &mut self.scratch;
            scratch.encoder.free_page(&mut scratch.records, id);
        }
    }

    /// Logs a file-level record. Comes before all page records of the mtr.
    pub fn file_op(&mut self, op: &FileOp<'_>) {
        assert!(self.kind == Kind::Logged);
        self.modified = true;
        let scratch = &mut self.scratch;
        scratch.encoder.file_op(&mut scratch.records, op);
    }

    /// From here on the page counts as changed: a panic poisons it.
    fn changes(&mut self, page: PageRef) -> PageId {
        if self.scratch.kept.is_active() {
            self.keep_copy(page, false);
        }
        let slot = self.scratch.memo.slot_mut(page);
        assert!(slot.guard.mode() >= Mode::U, "a page is changed under S");
        slot.modified = true;
        let id = slot.guard.id();
        self.modified = true;
        self.assert_writes(id.space);
        id
    }

    fn assert_writes(&self, space: SpaceId) {
        let allowed = match self.kind {
            Kind::Logged => true,
            Kind::Unlogged => space == SpaceId::TEMPORARY,
            Kind::Reader => false,
        };
        assert!(
            allowed,
            "a {:?} mini-transaction changes tablespace {space}",
            self.kind
        );
    }

    /// Notes that a record of `space` follows, if the tablespace is logged.
    fn logs(&mut self, space: SpaceId) -> bool {
        let logged = self.kind == Kind::Logged && space != SpaceId::TEMPORARY;
        if logged && !self.scratch.spaces.contains(&space) {
            self.scratch.spaces.push(space);
        }
        logged
    }
}
