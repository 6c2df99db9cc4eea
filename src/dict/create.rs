//! The system tablespace of a new instance (format-tablespace.md section 6), page for page as the stock
//! server's bootstrap leaves it.

use super::cache::Dict;
use super::rows;
use super::write::{BOOT_TRX, Writer};
use crate::extent::{self, Direction};
use crate::format::dict_header::{self, DictHeader};
use crate::format::fil::{self, PageType};
use crate::format::list::ListBase;
use crate::format::{rseg as rseg_page, trx_sys};
use crate::host::collation::CollationSource;
use crate::lock::LockTable;
use crate::mtr::{Budget, Mode, Mtr, PageCtx};
use crate::page::{list, logged::on};
use crate::schema::{TableDef, system};
use crate::sync::{Arc, Rank};
use crate::undo::rseg;
use crate::words::{Error, IndexId, PageId, PageNo, Result, RsegId, SpaceId};

/// Redo of one step.
const STEP_LOG_BYTES: usize = 256 << 10;
/// Offset of the change buffer's segment header in page 3.
const IBUF_SEGMENT: usize = 94;
/// Offset of the list of free pages in page 4, the change buffer's root.
const IBUF_FREE_LIST: usize = 74;
/// INDEX_ID of the change buffer's tree.
const IBUF_INDEX: IndexId = IndexId(0xFFFF_FFFF_0000_0000);

fn step(ctx: &PageCtx) -> Result<Mtr<'_>> {
    Mtr::start(ctx, Budget::system(STEP_LOG_BYTES).with_frames(32))
}

/// Fills the system tablespace, whose zeroed file is in the registry, but for the rollback segments
/// 1 to 127 (`undo::rseg::create_all`, after the undo tablespaces are there). Not repeatable: an
/// instance whose creation was interrupted is made anew.
///
/// # Errors
/// What allocation and the log give.
pub fn create_system(ctx: &PageCtx) -> Result<()> {
    let size = ctx.spaces.find(SpaceId::SYSTEM)?.size_pages();
    let mut mtr = step(ctx)?;
    extent::create_space(&mut mtr, SpaceId::SYSTEM, size)?;
    create_change_buffer(&mut mtr)?;
    rseg::create_trx_sys(&mut mtr)?;
    let first = rseg::create(&mut mtr, SpaceId::SYSTEM, RsegId(0))?;
    expect_page(first, 6)?;
    // The rows of the bootstrap name a transaction; ids in use are greater.
    let header = mtr.get(first, Mode::X, Rank::UndoPage)?;
    let at = rseg_page::off_max_trx_id(ctx.page_size());
    mtr.write_u64(header, at, BOOT_TRX.0);
    mtr.commit();
    create_dictionary(ctx)?;
    let mut mtr = step(ctx)?;
    let sys = PageId::new(SpaceId::SYSTEM, trx_sys::PAGE);
    let page = mtr.get(sys, Mode::X, Rank::FspPage)?;
    extent::create_doublewrite(&mut mtr, page)?;
    mtr.commit();
    Ok(())
}

fn expect_page(id: PageId, wanted: u32) -> Result<()> {
    match id.page == PageNo(wanted) {
        true => Ok(()),
        false => Err(Error::internal(format!(
            "page {wanted} is made out of turn"
        ))),
    }
}

/// Pages 3 and 4: header and root of the change buffer, empty for ever.
fn create_change_buffer(mtr: &mut Mtr<'_>) -> Result<()> {
    let segment = extent::create_segment(mtr, SpaceId::SYSTEM)?;
    let make = |mtr: &mut Mtr<'_>, number: u32| {
        let hint = PageNo(number);
        let rank = Rank::FspPage;
        let page = extent::allocate_and_create(mtr, segment, hint, Direction::None, rank)?;
        expect_page(mtr.page_id(page), number).map(|()| page)
    };
    let header = make(mtr, 3)?;
    mtr.write_u16(header, fil::OFF_TYPE, PageType::SYS.0);
    mtr.write(header, IBUF_SEGMENT, &segment.to_bytes());
    let root = make(mtr, 4)?;
    list::create(&mut on(mtr, root), IBUF_INDEX, 0, false)?;
    mtr.write(root, IBUF_FREE_LIST, &ListBase::EMPTY.to_bytes());
    Ok(())
}

/// Page 7 and the roots 8 to 12 of the hard-wired tables.
fn create_dictionary(ctx: &PageCtx) -> Result<()> {
    let mut mtr = step(ctx)?;
    let segment = extent::create_segment(&mut mtr, SpaceId::SYSTEM)?;
    let hint = dict_header::PAGE;
    let page =
        extent::allocate_and_create(&mut mtr, segment, hint, Direction::None, Rank::FspPage)?;
    expect_page(mtr.page_id(page), dict_header::PAGE.0)?;
    mtr.write_u16(page, fil::OFF_TYPE, PageType::SYS.0);
    mtr.commit();
    let ids = [
        system::SYS_TABLES_ID,
        system::SYS_TABLES_ID_IND_ID,
        system::SYS_COLUMNS_ID,
        system::SYS_INDEXES_ID,
        system::SYS_FIELDS_ID,
    ];
    let mut roots = [PageNo::NONE; 5];
    for (root, id) in roots.iter_mut().zip(ids) {
        *root = create_root(ctx, IndexId(id))?;
    }
    let mut mtr = step(ctx)?;
    let id = PageId::new(SpaceId::SYSTEM, dict_header::PAGE);
    let page = mtr.get(id, Mode::X, Rank::FspPage)?;
    let mut bytes = mtr.view(page).to_vec();
    DictHeader::new(roots, segment).write(&mut bytes);
    mtr.write(page, dict_header::HEADER, &bytes[dict_header::HEADER..128]);
    mtr.commit();
    Ok(())
}

/// The root of an empty tree in the system tablespace.
fn create_root(ctx: &PageCtx, id: IndexId) -> Result<PageNo> {
    let mut mtr = step(ctx)?;
    let root = crate::tree::create(&mut mtr, SpaceId::SYSTEM, id, false)?;
    mtr.commit();
    Ok(root)
}

/// Makes SYS_FOREIGN, SYS_FOREIGN_COLS and SYS_VIRTUAL, which are described by rows, in a new
/// instance.
///
/// # Errors
/// What allocation and the log give.
pub fn create_described_tables(
    ctx: &PageCtx,
    locks: Arc<LockTable>,
    collations: Arc<dyn CollationSource>,
) -> Result<()> {
    let dict = Dict::open(ctx, locks, collations, Box::new(|_| None))?;
    let (foreign, columns, bases) = {
        let [foreign, columns, bases] =
            [3u32, 1, 1].map(|n| dict.counters().new_system_ids(ctx, n));
        (foreign?, columns?, bases?)
    };
    let root = |id: u64| create_root(ctx, IndexId(id));
    let ids: [u64; 3] = std::array::from_fn(|i| foreign.first_index.0 + i as u64);
    let roots = [root(ids[0])?, root(ids[1])?, root(ids[2])?];
    let describe = |def: TableDef| rows::insert(ctx, &dict, &def, &mut Writer::Bootstrap);
    describe(system::sys_foreign(foreign.table.0, ids, roots))?;
    let id = columns.first_index.0;
    describe(system::sys_foreign_cols(columns.table.0, id, root(id)?))?;
    let id = bases.first_index.0;
    describe(system::sys_virtual(bases.table.0, id, root(id)?))
}
