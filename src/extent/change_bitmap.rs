//! The change buffer bitmap (format-tablespace.md 4.6).
//!
//! Nothing is ever buffered here, and zero free space ("do not buffer") is always a legal claim; what
//! must not stand is a claim of more room than a page has, which InnoDB would believe later. So
//! before a record comes to a secondary leaf, the leaf's class is 0: usually since all classes of its
//! bitmap page were set to 0 once, which a tree remembers (`Lowered`).

use crate::format::ibuf::{self, OFF_BITMAP, PageBits};
use crate::mtr::{Mode, Mtr};
use crate::sync::Rank;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::words::{PageId, PageNo, Result};

/// Redo of one change of a bitmap page.
const LOG_BYTES: usize = 64;
/// Bits of a byte that tell the free-space classes of its two pages.
const CLASSES: u8 = 0b0011_0011;

/// What a tree knows of its leaves' free-space classes: a run of pages of which all are 0, `first`
/// in the upper half and how many in the lower. Nobody here raises a class, so it stays true.
#[derive(Debug, Default)]
pub struct Lowered(AtomicU64);

impl Lowered {
    /// Makes the free-space class of a secondary leaf 0. Call it before records come to the leaf, in
    /// their mtr: the change is an mtr of its own that stands before it in the log.
    ///
    /// Errors: what reading the bitmap page gives; nothing is changed then.
    pub fn lower(&self, mtr: &mut Mtr<'_>, leaf: PageId) -> Result<()> {
        if self.contains(leaf.page) {
            return Ok(());
        }
        let geometry = mtr.ctx().spaces.find(leaf.space)?.geometry();
        let bitmap = PageId::new(leaf.space, geometry.bitmap_page(leaf.page));
        if mtr.held(bitmap).is_some() {
            // The mtr has made the bitmap page itself: it is zero, and not in the log yet.
            return Ok(());
        }
        let pages = geometry.descriptor_interval();
        let area = OFF_BITMAP..OFF_BITMAP + pages as usize / 2;

        let since = mtr.savepoint();
        let held = mtr.get_reading(bitmap, Mode::S, Rank::FspPage)?;
        let view = mtr.view(held);
        let has = |bits: u8| view[area.clone()].iter().any(|byte| byte & bits != 0);
        let (has_class, has_mark) = (has(CLASSES), has(!CLASSES));
        let is_low = ibuf::bits(view, geometry, leaf.page).free == 0;
        mtr.release_from(since);

        if has_class && has_mark {
            // The system tablespace, where the change buffer has marks of its own: page by page.
            if !is_low {
                let mut mtr = mtr.nested(LOG_BYTES, 1)?;
                let held = mtr.get_reading(bitmap, Mode::X, Rank::FspPage)?;
                let bits = ibuf::bits(mtr.view(held), geometry, leaf.page);
                let low = PageBits { free: 0, ..bits };
                let (at, byte) = ibuf::bits_byte(mtr.view(held), geometry, leaf.page, low);
                mtr.write_u8(held, at, byte);
                mtr.commit();
            }
            return Ok(());
        }
        if has_class {
            let mut mtr = mtr.nested(LOG_BYTES, 1)?;
            let held = mtr.get_reading(bitmap, Mode::X, Rank::FspPage)?;
            mtr.memset(held, area.start, area.len(), 0);
            mtr.commit();
        }
        // Only now: the changes of those who rely on it come later in the log.
        let first = u64::from(leaf.page.0 - leaf.page.0 % pages);
        self.0
            .store(first << 32 | u64::from(pages), Ordering::Release);
        Ok(())
    }

    fn contains(&self, page: PageNo) -> bool {
        let known = self.0.load(Ordering::Acquire);
        let (first, pages) = ((known >> 32) as u32, known as u32);
        page.0.wrapping_sub(first) < pages
    }
}
