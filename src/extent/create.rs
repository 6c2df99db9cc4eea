//! The first pages of a new tablespace (format-tablespace.md section 5).

use super::plan::Plan;
use super::segment::{Direction, allocate_page, create_segment};
use crate::format::fil::PageType;
use crate::format::fsp::{self, SpaceHeader};
use crate::format::trx_sys::{DOUBLEWRITE_FROM_END, Doublewrite};
use crate::mtr::{Mtr, PageRef};
use crate::words::{Error, PageNo, Result, SpaceId};

/// Fills page 0 and the descriptors of a tablespace whose file was just made: `size` pages, blocks
/// allocated. The first records of the mtr but for FILE_CREATE. The segments follow.
///
/// Errors: `BufferPoolFull`.
pub fn create_space(mtr: &mut Mtr<'_>, space: SpaceId, size: u32) -> Result<()> {
    let mut plan = Plan::begin(mtr, space)?;
    let flags = plan.space.flags();
    let mut page = vec![0; fsp::XDES_ARRAY];
    SpaceHeader::new(space, flags, size).write(&mut page);
    plan.create(PageNo(0), PageType::FSP_HDR);
    plan.write(PageNo(0), fsp::HEADER, &page[fsp::HEADER..fsp::OFF_SIZE]);
    plan.write(
        PageNo(0),
        fsp::OFF_SIZE,
        &page[fsp::OFF_SIZE..fsp::OFF_FREE_LIMIT],
    );
    plan.write(
        PageNo(0),
        fsp::OFF_FREE_LIMIT,
        &page[fsp::OFF_FREE_LIMIT..fsp::OFF_FLAGS],
    );
    plan.write(
        PageNo(0),
        fsp::OFF_FLAGS,
        &page[fsp::OFF_FLAGS..fsp::OFF_FRAG_N_USED],
    );
    plan.write(
        PageNo(0),
        fsp::OFF_FRAG_N_USED,
        &page[fsp::OFF_FRAG_N_USED..],
    );
    plan.fill_free_list(true)?;
    plan.apply()
}

/// Log bytes that `create_doublewrite` may need.
pub const DOUBLEWRITE_LOG_BYTES: usize = 128 << 10;

/// Makes the doublewrite segment – half an extent of single pages, which are never used, so that
/// the two extents behind them are whole – and writes its header into the TRX_SYS page, which the
/// mtr holds X (format-tablespace.md section 20). The blocks' pages are not made: their bytes are
/// only ever batches.
///
/// Errors: `NoSpace` if the system tablespace has no three free extents; as this happens while an
/// instance is created, an error half-way leaves nothing worth keeping.
pub fn create_doublewrite(mtr: &mut Mtr<'_>, trx_sys: PageRef) -> Result<Doublewrite> {
    let geometry = mtr.ctx().spaces.find(SpaceId::SYSTEM)?.geometry();
    let extent_pages = geometry.extent_pages();
    let segment = create_segment(mtr, SpaceId::SYSTEM)?;
    let mut hint = PageNo(0);
    for _ in 0..geometry.fragment_slots() {
        hint = allocate_page(mtr, segment, hint, Direction::Up)?.page;
    }
    let mut blocks = [PageNo::NONE; 2];
    for block in &mut blocks {
        for index in 0..extent_pages {
            let page = allocate_page(mtr, segment, PageNo(hint.0 + 1), Direction::Up)?.page;
            if index == 0 {
                *block = page;
            }
            hint = page;
        }
        if geometry.extent_start(*block) != *block || hint.0 - block.0 != extent_pages - 1 {
            return Err(Error::internal(format!(
                "a doublewrite block from page {block} on"
            )));
        }
    }
    let place = Doublewrite { segment, blocks };
    let at = mtr.view(trx_sys).len() - DOUBLEWRITE_FROM_END;
    mtr.write(trx_sys, at, &place.to_bytes());
    Ok(place)
}
