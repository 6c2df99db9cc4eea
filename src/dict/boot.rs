//! The dictionary header (page 7 of the system tablespace), its counters, and the four tables that no
//! row describes.

use super::system_tables::{self, TableRow};
use crate::format::dict_header::{self, DictHeader, ROW_ID_MARGIN};
use crate::format::fil::{self, PageType};
use crate::mtr::{Budget, Mode, PageCtx, retry};
use crate::schema::Tuple;
use crate::schema::system::{BootRoots, BootTables, boot_tables};
use crate::sync::Rank;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::tree::Tree;
use crate::words::{Error, IndexId, PageId, Result, SpaceId, TableId};
use std::ops::ControlFlow;

/// The dictionary header page.
pub const HEADER_PAGE: PageId = PageId::new(SpaceId::SYSTEM, dict_header::PAGE);

/// What a change of the header logs at most.
const LOG_BYTES: usize = 512;

/// The counters of the dictionary header.
#[derive(Debug)]
pub struct Counters {
    /// The next DB_ROW_ID.
    row_id: AtomicU64,
}

/// Ids for a new table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewIds {
    /// For the table.
    pub table: TableId,
    /// For its first index; the others follow.
    pub first_index: IndexId,
    /// For its tablespace.
    pub space: SpaceId,
}

impl Counters {
    pub(super) fn new(header: &DictHeader) -> Counters {
        Counters {
            row_id: AtomicU64::new(header.next_row_id()),
        }
    }

    /// Draws a DB_ROW_ID. Every 256th is written into the header, before it is returned; call it with
    /// no latch held.
    ///
    /// # Errors
    /// What an mtr's start and reading the header give; `Internal` after 2^48 rows.
    pub fn next_row_id(&self, ctx: &PageCtx) -> Result<u64> {
        // Relaxed: the number alone matters.
        let id = self.row_id.fetch_add(1, Ordering::Relaxed);
        if id >> 48 != 0 {
            return Err(Error::internal("the row id counter is exhausted"));
        }
        if id % ROW_ID_MARGIN == 0 {
            retry(ctx, Some(Budget::statement(LOG_BYTES)), |mtr| {
                let page = mtr.get(HEADER_PAGE, Mode::X, Rank::FspPage)?;
                let written = DictHeader::parse(mtr.view(page))?.row_id.get();
                if written < id {
                    mtr.write_u64(page, dict_header::OFF_ROW_ID, id);
                }
                Ok(())
            })?;
        }
        Ok(id)
    }

    /// Draws ids for a table of the dictionary itself, in the system tablespace.
    ///
    /// # Errors
    /// As `new_ids`.
    pub(super) fn new_system_ids(&self, ctx: &PageCtx, indexes: u32) -> Result<NewIds> {
        self.draw(ctx, indexes, true)
    }

    /// Draws ids for a table with `indexes` indexes, and for its tablespace, which gets an id that no
    /// open tablespace has.
    ///
    /// # Errors
    /// What an mtr's start and reading the header give; `Unsupported` if the space ids are used up.
    pub fn new_ids(&self, ctx: &PageCtx, indexes: u32) -> Result<NewIds> {
        self.draw(ctx, indexes, false)
    }

    /// Draws ids for `count` indexes of a table that is there; the first of them.
    ///
    /// # Errors
    /// What an mtr's start and reading the header give.
    pub fn new_index_ids(&self, ctx: &PageCtx, count: u32) -> Result<IndexId> {
        let (first, _) = retry(ctx, Some(Budget::statement(LOG_BYTES)), |mtr| {
            let page = mtr.get(HEADER_PAGE, Mode::X, Rank::FspPage)?;
            let header = DictHeader::parse(mtr.view(page)).map_err(|e| e.at_page(HEADER_PAGE))?;
            let last = header.index_id().0;
            mtr.write_u64(page, dict_header::OFF_INDEX_ID, last + u64::from(count));
            Ok(IndexId(last + 1))
        })?;
        Ok(first)
    }

    fn draw(&self, ctx: &PageCtx, indexes: u32, in_system: bool) -> Result<NewIds> {
        let (ids, _) = retry(ctx, Some(Budget::statement(LOG_BYTES)), |mtr| {
            let page = mtr.get(HEADER_PAGE, Mode::X, Rank::FspPage)?;
            let header = DictHeader::parse(mtr.view(page)).map_err(|e| e.at_page(HEADER_PAGE))?;
            let mut space = SpaceId(header.max_space_id().0 + 1);
            while ctx.spaces.get(space).is_some() {
                space.0 += 1;
            }
            if space >= SpaceId::UPPER_BOUND {
                return Err(Error::unsupported("more than 2^32 tablespaces ever"));
            }
            let ids = NewIds {
                table: TableId(header.table_id().0 + 1),
                first_index: IndexId(header.index_id().0 + 1),
                space,
            };
            let last_index = header.index_id().0 + u64::from(indexes);
            mtr.write_u64(page, dict_header::OFF_TABLE_ID, ids.table.0);
            mtr.write_u64(page, dict_header::OFF_INDEX_ID, last_index);
            if !in_system {
                mtr.write_u32(page, dict_header::OFF_MAX_SPACE_ID, space.0);
            }
            Ok(ids)
        })?;
        Ok(ids)
    }
}

/// Reads the header; the page is damaged if it is no dictionary header.
pub(super) fn read_header(ctx: &PageCtx) -> Result<DictHeader> {
    let (header, _) = retry(ctx, None, |mtr| {
        let page = mtr.get(HEADER_PAGE, Mode::S, Rank::FspPage)?;
        let view = mtr.view(page);
        if fil::page_type(view) != PageType::SYS {
            return Err(Error::corrupt(HEADER_PAGE, "not a dictionary header"));
        }
        DictHeader::parse(view).map_err(|e| e.at_page(HEADER_PAGE))
    })?;
    Ok(header)
}

/// The hard-wired tables as the header places them.
pub(super) fn hard_wired(header: &DictHeader) -> Result<BootTables> {
    let [tables, table_ids, columns, indexes, fields] = header.roots();
    boot_tables(&BootRoots {
        tables,
        table_ids,
        columns,
        indexes,
        fields,
    })
}

/// Raises the header's space id counter to the largest SPACE in SYS_TABLES, if it is behind, as the
/// stock server does at its start.
pub(super) fn raise_space_id(ctx: &PageCtx, header: &DictHeader, tables: &Tree) -> Result<()> {
    let mut largest = SpaceId(0);
    system_tables::scan(ctx, tables, &Tuple::new(), &mut |view| {
        // A damaged row is an error of its table, not of the start.
        if let Ok(row) = TableRow::parse(view) {
            if row.space < SpaceId::UPPER_BOUND {
                largest = largest.max(row.space);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if largest <= header.max_space_id() || ctx.spaces.places().read_only {
        return Ok(());
    }
    retry(ctx, Some(Budget::system(LOG_BYTES)), |mtr| {
        let page = mtr.get(HEADER_PAGE, Mode::X, Rank::FspPage)?;
        mtr.write_u32(page, dict_header::OFF_MAX_SPACE_ID, largest.0);
        Ok(())
    })?;
    Ok(())
}
