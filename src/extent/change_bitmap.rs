//! The change buffer bitmap (format-tablespace.md 4.6).
//!
//! Nothing is ever buffered here, and zero free space ("do not buffer") is always a legal claim; what
//! must not stand is a claim of more room than a page has, which InnoDB would believe later. So the
//! first change of a secondary leaf lowers its class to 0, once.

use crate::mtr::{Mode, Mtr};
use crate::sync::Rank;
use crate::words::{Error, PageId, Result};

const OFF_BITS: usize = crate::format::fil::HEADER_BYTES;
/// Bits of a nibble that tell the free-space class.
const CLASS: u8 = 0b0011;
/// Bit of a nibble that tells of buffered changes.
const BUFFERED: u8 = 0b0100;

fn place(mtr: &Mtr<'_>, page: PageId) -> Result<(PageId, usize, u32)> {
    let geometry = mtr.ctx().spaces.find(page.space)?.geometry();
    let bitmap = PageId::new(page.space, geometry.bitmap_page(page.page));
    let index = page.page.0 % geometry.descriptor_interval();
    Ok((bitmap, OFF_BITS + index as usize / 2, index % 2 * 4))
}

/// The free-space class of a secondary leaf becomes 0, if it is not. Call it in the mtr that changes
/// the leaf, before the change.
///
/// Errors: what reading the bitmap page gives; nothing is changed then.
pub fn lower_class(mtr: &mut Mtr<'_>, leaf: PageId) -> Result<()> {
    let (bitmap, at, shift) = place(mtr, leaf)?;
    let since = mtr.savepoint();
    // S first: the usual answer is "0 already".
    let held = match mtr.held(bitmap) {
        Some(held) => held,
        None => mtr.get_reading(bitmap, Mode::S, Rank::FspPage)?,
    };
    let byte = mtr.view(held)[at];
    if byte >> shift & CLASS == 0 {
        mtr.release_from(since);
        return Ok(());
    }
    mtr.release_from(since);
    let held = mtr.get_reading(bitmap, Mode::X, Rank::FspPage)?;
    let byte = mtr.view(held)[at] & !(CLASS << shift);
    mtr.write_u8(held, at, byte);
    Ok(())
}

/// True if changes of the page are buffered.
///
/// Errors: what reading the bitmap page gives.
pub fn has_buffered(mtr: &mut Mtr<'_>, page: PageId) -> Result<bool> {
    let (bitmap, at, shift) = place(mtr, page)?;
    let since = mtr.savepoint();
    let held = mtr.get_reading(bitmap, Mode::S, Rank::FspPage)?;
    let byte = mtr.view(held).get(at).copied();
    mtr.release_from(since);
    let byte = byte.ok_or_else(|| Error::corrupt(bitmap, "the bitmap leaves its page"))?;
    Ok(byte >> shift & BUFFERED != 0)
}

/// Clears the mark that changes of the page are buffered, and its free-space class: they are merged.
///
/// Errors: as `lower_class`.
pub fn clear(mtr: &mut Mtr<'_>, page: PageId) -> Result<()> {
    let (bitmap, at, shift) = place(mtr, page)?;
    let held = mtr.get_reading(bitmap, Mode::X, Rank::FspPage)?;
    let byte = mtr.view(held)[at] & !((CLASS | BUFFERED) << shift);
    mtr.write_u8(held, at, byte);
    Ok(())
}
