//! New tables: rows, file, trees.

use super::{Ddl, check_name};
use crate::dict::rows;
use crate::dict::write::Writer;
use crate::extent;
use crate::format::fsp;
use crate::format::index_page::MAX_TRX_ID;
use crate::format::redo_record::FileOp;
use crate::mtr::{Budget, Class, Mode, Mtr};
use crate::schema::{IndexDef, TableDef};
use crate::sync::Rank;
use crate::trx::Trx;
use crate::words::{Error, IndexId, PageId, PageNo, Result, SpaceId, TableId};

/// Pages of a new file (format-tablespace.md section 5).
pub const NEW_FILE_PAGES: u32 = 4;
/// The root of the clustered index in a file of its own.
const FIRST_ROOT: PageNo = PageNo(3);
/// Redo of making page 0, a segment, a root.
const LOG_BYTES: usize = 64 << 10;

impl Ddl<'_> {
    /// Creates a table from a definition without ids and places. `auto_increment` is the first value,
    /// 0 or 1 = none given.
    ///
    /// # Errors
    /// `TableExists`, `TablespaceExists`, `NoSpace`, `LogHeld`, `ReadOnly`; what the log and files give. Nothing
    /// is left of the table then.
    pub fn create(&self, trx: &mut Trx, def: TableDef, auto_increment: u64) -> Result<TableId> {
        check_name(&def.name)?;
        self.ctx.log.check_statement_room()?;
        let guard = self.dict.exclusive();
        match guard.table_row(self.ctx, &def.name) {
            Err(Error::NoSuchTable(_)) => {}
            Ok(_) => return Err(Error::TableExists(def.name)),
            Err(error) => return Err(error),
        }
        self.refuse_file(&def.name)?;
        self.transact(trx, |trx| self.create_in(trx, def, auto_increment))
    }

    fn refuse_file(&self, name: &str) -> Result<()> {
        let path = self.ctx.spaces.table_path(name);
        match self.ctx.spaces.vfs().exists(&path)? {
            true => Err(Error::TablespaceExists(path.into())),
            false => Ok(()),
        }
    }

    /// Creates within a dictionary transaction.
    pub(super) fn create_in(
        &self,
        trx: &mut Trx,
        mut def: TableDef,
        auto_increment: u64,
    ) -> Result<TableId> {
        let (ctx, dict) = (self.ctx, self.dict);
        let ids = dict.counters().new_ids(ctx, def.indexes.len() as u32)?;
        (def.id, def.space) = (ids.table, ids.space);
        for (i, index) in (0..).zip(&mut def.indexes) {
            index.id = IndexId(ids.first_index.0 + i);
        }
        let mut indexes = std::mem::take(&mut def.indexes);
        let (clustered, others) = indexes
            .split_first_mut()
            .ok_or_else(|| Error::internal("a table without a clustered index"))?;
        clustered.root = FIRST_ROOT;
        // The clustered index's row comes before the file: its undo removes the file.
        let writer = &mut Writer::Trx(trx);
        rows::insert_table(ctx, dict, &def, writer)?;
        rows::insert_columns(ctx, dict, &def, writer)?;
        rows::insert_index(ctx, dict, &def, clustered, writer)?;
        rows::insert_fields(ctx, dict, &def, clustered, writer)?;
        ctx.reached("ddl.create_rows");
        self.create_file(&def, clustered, auto_increment)?;
        ctx.reached("ddl.create_file");
        for index in others {
            index.root = self.create_tree(def.space, index.id, def.compact)?;
            rows::insert_index(ctx, dict, &def, index, writer)?;
            rows::insert_fields(ctx, dict, &def, index, writer)?;
        }
        Ok(def.id)
    }

    /// The file with page 0 and the clustered index.
    fn create_file(&self, def: &TableDef, clustered: &IndexDef, auto_increment: u64) -> Result<()> {
        let ctx = self.ctx;
        let table_flags = fsp::TableFlags::parse(def.flags.0)?;
        let flags = fsp::SpaceFlags::of_table(table_flags, ctx.page_size(), self.full_crc32);
        // Before there is a file there must be the row whose undo removes it.
        ctx.log.write_up_to(ctx.log.lsn(), true)?;
        let space = ctx
            .spaces
            .create_table(def.space, &def.name, flags, NEW_FILE_PAGES)?;
        let budget = Budget::statement(LOG_BYTES).with_frames(8);
        let mut mtr = Mtr::start(ctx, budget)?;
        let name = ctx.spaces.log_path(&space);
        mtr.file_op(&FileOp::Create {
            space: def.space,
            name: name.as_bytes(),
        });
        extent::create_space(&mut mtr, def.space, NEW_FILE_PAGES)?;
        let root = crate::tree::create(&mut mtr, def.space, clustered.id, def.compact)?;
        if root != FIRST_ROOT {
            return Err(Error::internal(format!("the first root is page {root}")));
        }
        if auto_increment > 1 {
            let page = mtr.get(PageId::new(def.space, root), Mode::X, Rank::IndexPage)?;
            mtr.write_u64(page, MAX_TRX_ID, auto_increment - 1);
        }
        mtr.commit();
        Ok(())
    }

    /// An empty tree in the table's file.
    fn create_tree(&self, space: SpaceId, id: IndexId, compact: bool) -> Result<PageNo> {
        let _room = extent::reserve(self.ctx, space, 2, 2, Class::Statement)?;
        let budget = Budget::statement(LOG_BYTES).with_frames(8);
        let mut mtr = Mtr::start(self.ctx, budget)?;
        let root = crate::tree::create(&mut mtr, space, id, compact)?;
        mtr.commit();
        Ok(root)
    }
}
