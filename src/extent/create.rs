//! The first pages of a new tablespace (format-tablespace.md section 5).

use super::plan::Plan;
use crate::format::fil::PageType;
use crate::format::fsp::{self, SpaceHeader};
use crate::mtr::Mtr;
use crate::words::{PageNo, Result, SpaceId};

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
