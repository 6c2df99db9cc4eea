//! The change buffer bitmap (format-tablespace.md 4.6).
//!
//! Nothing is ever buffered here, and zero free space ("do not buffer") is always a legal claim; what
//! must not stand is a claim of more room than a page has, which InnoDB would believe later. So
//! before a record comes to a secondary leaf, the leaf's class is 0: usually since all classes of its
//! bitmap page were set to 0 once, which a tree remembers (`Lowered`).

use crate::format::fsp::Geometry;
use crate::format::ibuf::{self, OFF_BITMAP, PageBits};
use crate::mtr::{Mode, Mtr};
use crate::sync::Rank;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::words::{PageId, PageNo, Result, SpaceId};

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
        let (bitmap, geometry) = place(mtr, leaf)?;
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
                change_bits(&mut mtr, leaf, |bits| PageBits { free: 0, ..bits })?;
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

/// The bitmap page of `page`, and how its bits are found.
fn place(mtr: &Mtr<'_>, page: PageId) -> Result<(PageId, Geometry)> {
    let geometry = mtr.ctx().spaces.find(page.space)?.geometry();
    let bitmap = PageId::new(page.space, geometry.bitmap_page(page.page));
    Ok((bitmap, geometry))
}

/// True if changes of the page are buffered.
///
/// Errors: what reading the bitmap page gives.
pub fn has_buffered(mtr: &mut Mtr<'_>, page: PageId) -> Result<bool> {
    let (bitmap, geometry) = place(mtr, page)?;
    let since = mtr.savepoint();
    let held = mtr.get_reading(bitmap, Mode::S, Rank::FspPage)?;
    let bits = ibuf::bits(mtr.view(held), geometry, page.page);
    mtr.release_from(since);
    Ok(bits.buffered)
}

/// True if changes of any page of the tablespace are buffered. Latches are released again.
///
/// Errors: as `has_buffered`.
pub fn any_buffered(mtr: &mut Mtr<'_>, space: SpaceId) -> Result<bool> {
    let size = mtr.ctx().spaces.find(space)?.size_pages();
    for page in 0..size {
        if has_buffered(mtr, PageId::new(space, PageNo(page)))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Clears the mark that changes of the page are buffered, and its free-space class: they are merged.
///
/// Errors: as `has_buffered`; nothing is changed then.
pub fn clear(mtr: &mut Mtr<'_>, page: PageId) -> Result<()> {
    change_bits(mtr, page, |bits| PageBits {
        free: 0,
        buffered: false,
        ..bits
    })
}

/// Clears the mark that the page belongs to the change buffer's tree.
///
/// Errors: as `has_buffered`; nothing is changed then.
pub fn leave_tree(mtr: &mut Mtr<'_>, page: PageId) -> Result<()> {
    change_bits(mtr, page, |bits| PageBits {
        of_tree: false,
        ..bits
    })
}

fn change_bits(
    mtr: &mut Mtr<'_>,
    page: PageId,
    change: impl FnOnce(PageBits) -> PageBits,
) -> Result<()> {
    let (bitmap, geometry) = place(mtr, page)?;
    let held = mtr.get_reading(bitmap, Mode::X, Rank::FspPage)?;
    let view = mtr.view(held);
    let bits = change(ibuf::bits(view, geometry, page.page));
    let (at, byte) = ibuf::bits_byte(view, geometry, page.page, bits);
    mtr.write_u8(held, at, byte);
    Ok(())
}
