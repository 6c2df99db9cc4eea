//! `Dict`: the open tables by name and by id, loaded on first use.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::ControlFlow;

use super::boot::{self, Counters};
use super::limit::Usage;
use super::open_table::OpenTable;
use super::system_tables::{self, IndexRow, TableRow};
use super::{instant, load};
use crate::extent::change_bitmap;
use crate::host::collation::CollationSource;
use crate::lock::LockTable;
use crate::mtr::{PageCtx, retry};
use crate::schema::{IndexType, RowFormat, Table, Tuple};
use crate::space::Space;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, Once, Padded, Rank, RwLock};
use crate::tree::Tree;
use crate::words::{Error, PageId, Result, SpaceId, TableId, TrxId};

const SHARDS: usize = 16;

/// Gives the doublewrite buffer's copy of a page, if it holds a valid one: page 0 of a file that is
/// opened late may be torn.
pub type Repair = Box<dyn Fn(PageId) -> Option<Vec<u8>> + Send + Sync>;

/// The trees of the dictionary's own tables.
pub struct SystemTrees {
    /// SYS_TABLES.
    pub tables: Arc<OpenTable>,
    /// SYS_COLUMNS.
    pub columns: Arc<OpenTable>,
    /// SYS_INDEXES.
    pub indexes: Arc<OpenTable>,
    /// SYS_FIELDS.
    pub fields: Arc<OpenTable>,
    /// SYS_VIRTUAL, described by rows itself.
    pub virtual_columns: Once<Arc<OpenTable>>,
}

type Shard<K> = Padded<RwLock<HashMap<K, Arc<OpenTable>>>>;

/// The dictionary.
pub struct Dict {
    sys: SystemTrees,
    counters: Counters,
    locks: Arc<LockTable>,
    collations: Arc<dyn CollationSource>,
    repair: Repair,
    /// The change buffer holds changes that could not be merged.
    unmerged: AtomicBool,
    operation: Mutex<()>,
    names: [Shard<Box<str>>; SHARDS],
    ids: [Shard<TableId>; SHARDS],
    /// A change is neither committed nor undone, and will not be before the next start.
    half_changed: AtomicBool,
    pub(super) usage: Usage,
}

/// Keeps loads and other DDL out.
pub struct DictGuard<'d> {
    dict: &'d Dict,
    _operation: MutexGuard<'d, ()>,
}

impl Dict {
    /// Opens the dictionary: reads the header, raises the space id counter, opens SYS_VIRTUAL. The
    /// system tablespace is open and recovered.
    ///
    /// # Errors
    /// Damage of the header or of SYS_TABLES' trees; what reading gives.
    pub fn open(
        ctx: &PageCtx,
        locks: Arc<LockTable>,
        collations: Arc<dyn CollationSource>,
        repair: Repair,
    ) -> Result<Dict> {
        let header = boot::read_header(ctx)?;
        let wired = boot::hard_wired(&header)?;
        let space = ctx.spaces.find(SpaceId::SYSTEM)?;
        // The dictionary's names are in order without the host.
        let open = |table: Table| {
            let known = vec![None; table.indexes.len()].into();
            let boot = vec![TrxId(0); table.indexes.len()].into();
            open_with(table, &space, boot, 0, false, known, &locks, &collations)
        };
        let sys = SystemTrees {
            tables: open(wired.tables),
            columns: open(wired.columns),
            indexes: open(wired.indexes),
            fields: open(wired.fields),
            virtual_columns: Once::new(),
        };
        boot::raise_space_id(ctx, &header, sys.tables.clustered())?;
        let dict = Dict {
            counters: Counters::new(&header),
            sys,
            locks,
            collations,
            repair,
            unmerged: AtomicBool::new(false),
            operation: Mutex::new(Rank::DictOperation, ()),
            names: std::array::from_fn(|_| Padded(RwLock::new(Rank::DictCache, HashMap::new()))),
            ids: std::array::from_fn(|_| Padded(RwLock::new(Rank::DictCache, HashMap::new()))),
            half_changed: AtomicBool::new(false),
            usage: Usage::new(),
        };
        for table in [
            &dict.sys.tables,
            &dict.sys.columns,
            &dict.sys.indexes,
            &dict.sys.fields,
        ] {
            dict.insert(table.clone());
        }
        match dict.open_table(ctx, "SYS_VIRTUAL") {
            Ok(table) => {
                let set = dict.sys.virtual_columns.set(table);
                debug_assert!(set.is_ok(), "opened once");
            }
            // Only tables with virtual columns need it.
            Err(Error::NoSuchTable(_)) => log::debug!("the dictionary has no SYS_VIRTUAL"),
            Err(error) => return Err(error),
        }
        Ok(dict)
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A statement cannot be undone, as the log's device failed: its rows are not for anybody's eyes.
    /// Tables that are open stay so.
    pub fn close_door(&self) {
        self.half_changed.store(true, Ordering::Release);
    }

    fn check_whole(&self) -> Result<()> {
        match self.half_changed.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(Error::Stopped(
                "the dictionary is half changed, since the redo log failed; restart".into(),
            )),
        }
    }

    /// The trees of SYS_*.
    pub fn system(&self) -> &SystemTrees {
        &self.sys
    }

    /// The lock table that the trees report to.
    pub fn locks(&self) -> &Arc<LockTable> {
        &self.locks
    }

    /// Orders text.
    pub fn collations(&self) -> &Arc<dyn CollationSource> {
        &self.collations
    }

    /// Excludes loads and other DDL. With no latch held.
    #[track_caller]
    pub fn exclusive(&self) -> DictGuard<'_> {
        DictGuard {
            dict: self,
            _operation: self.operation.lock(),
        }
    }

    /// The open table named "database/table", loaded if need be. Call it with no latch held.
    ///
    /// # Errors
    /// `NoSuchTable`; `TablespaceMissing`: no file, or discarded; `Unsupported`: COMPRESSED and other
    /// formats; `Corrupt` with the table's name; what reading gives.
    pub fn open_table(&self, ctx: &PageCtx, name: &str) -> Result<Arc<OpenTable>> {
        match self.cached(name) {
            Some(table) => Ok(table),
            None => self.exclusive().open_table(ctx, name),
        }
    }

    /// As `open_table`, by SYS_TABLES.ID: for undo records and purge.
    ///
    /// # Errors
    /// As `open_table`; `NoSuchTable` if no table has the id (any more).
    pub fn open_by_id(&self, ctx: &PageCtx, id: TableId) -> Result<Arc<OpenTable>> {
        match self.cached_by_id(id) {
            Some(table) => Ok(table),
            None => self.exclusive().open_by_id(ctx, id),
        }
    }

    /// The definition of a table; its file is not opened, so that damage or absence of it does not
    /// matter. The instant state is not in it.
    ///
    /// # Errors
    /// `NoSuchTable`, `Corrupt`, what reading gives.
    pub fn definition(&self, ctx: &PageCtx, name: &str) -> Result<Arc<Table>> {
        if let Some(table) = self.cached(name) {
            return Ok(table.def().clone());
        }
        let guard = self.exclusive();
        let row = guard.table_row(ctx, name)?;
        Ok(Arc::new(load::definition(ctx, &self.sys, &row)?))
    }

    /// The row of SYS_TABLES of a table.
    ///
    /// # Errors
    /// `NoSuchTable`, `Corrupt`, what reading gives.
    pub fn table_row(&self, ctx: &PageCtx, name: &str) -> Result<TableRow> {
        self.exclusive().table_row(ctx, name)
    }

    /// Every row of SYS_TABLES that is not delete-marked, by name. One that cannot be understood is
    /// logged and left out.
    ///
    /// # Errors
    /// Damaged pages, what reading gives.
    pub fn table_rows(&self, ctx: &PageCtx) -> Result<Vec<TableRow>> {
        self.check_whole()?;
        let mut rows = Vec::new();
        let all = Tuple::new();
        system_tables::scan(ctx, self.sys.tables.clustered(), &all, &mut |view| {
            match TableRow::parse(view) {
                Ok(row) if row.deleted => {}
                Ok(row) => rows.push(row),
                Err(error) => log::warn!("a table is left out: {error}"),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    }

    /// Names of user tables, sorted as SYS_TABLES has them; `database` limits them. The dictionary's
    /// own tables, auxiliary ones of full-text indexes and leftovers of DDL are no user tables.
    ///
    /// # Errors
    /// As `table_rows`.
    pub fn table_names(&self, ctx: &PageCtx, database: Option<&str>) -> Result<Vec<Box<str>>> {
        let is_wanted = |name: &str| match name.split_once('/') {
            None => false,
            Some((db, table)) => {
                database.is_none_or(|wanted| wanted == db)
                    && !table.starts_with("FTS_")
                    && !table.starts_with("#sql")
            }
        };
        let rows = self.table_rows(ctx)?;
        Ok(rows
            .into_iter()
            .map(|row| row.name)
            .filter(|name| is_wanted(name))
            .collect())
    }

    /// Name of the table with `id`; with `deleted`, also of one that is dropped but not purged.
    ///
    /// # Errors
    /// `Corrupt`, what reading gives.
    pub fn name_of(&self, ctx: &PageCtx, id: TableId, deleted: bool) -> Result<Option<Box<str>>> {
        load::name_of(ctx, &self.sys, id, deleted)
    }

    /// Rows of SYS_INDEXES of a table, those under construction too.
    ///
    /// # Errors
    /// `Corrupt`, what reading gives.
    pub fn index_rows(&self, ctx: &PageCtx, id: TableId) -> Result<Vec<IndexRow>> {
        load::index_rows(ctx, &self.sys, id)
    }

    /// The open table, if it is in the cache.
    pub fn cached(&self, name: &str) -> Option<Arc<OpenTable>> {
        let table = self.names[shard_of(name)].read().get(name).cloned();
        table.inspect(|table| table.note_recent())
    }

    /// The open table, if it is in the cache.
    pub fn cached_by_id(&self, id: TableId) -> Option<Arc<OpenTable>> {
        let table = self.ids[id.0 as usize % SHARDS].read().get(&id).cloned();
        table.inspect(|table| table.note_recent())
    }

    /// From now on a table whose changes are in the change buffer cannot be opened.
    pub fn keep_unmerged_closed(&self) {
        self.unmerged.store(true, Ordering::Release);
    }

    /// Every table in the cache.
    pub fn all_cached(&self) -> Vec<Arc<OpenTable>> {
        let mut all = Vec::new();
        for shard in &self.ids {
            all.extend(shard.read().values().cloned());
        }
        all
    }

    fn insert(&self, table: Arc<OpenTable>) {
        let id = table.id();
        self.usage.add(&table);
        let before = self.ids[id.0 as usize % SHARDS]
            .write()
            .insert(id, table.clone());
        if let Some(before) = before {
            self.usage.subtract(&before);
        }
        self.names[shard_of(table.name())]
            .write()
            .insert(table.name().into(), table);
    }

    /// Takes a table out of the cache. Whoever holds it may go on using it until told otherwise
    /// (`OpenTable::retire`).
    pub fn forget(&self, table: &OpenTable) {
        let removed = self.ids[table.id().0 as usize % SHARDS]
            .write()
            .remove(&table.id());
        if let Some(removed) = removed {
            self.usage.subtract(&removed);
        }
        self.names[shard_of(table.name())]
            .write()
            .remove(table.name());
    }

    /// Takes a table that only the cache and the caller hold out of it. The caller has the dictionary
    /// for himself: who does not find it by name waits for him.
    pub(super) fn forget_if_unused(&self, table: Arc<OpenTable>) {
        let name = &self.names[shard_of(table.name())];
        {
            let mut names = name.write();
            // The two maps and the caller.
            if Arc::strong_count(&table) > 3 {
                return;
            }
            names.remove(table.name());
        }
        {
            let mut ids = self.ids[table.id().0 as usize % SHARDS].write();
            if Arc::strong_count(&table) == 2 {
                ids.remove(&table.id());
                self.usage.subtract(&table);
                return;
            }
        }
        // Found by its id meanwhile.
        name.write().insert(table.name().into(), table);
    }

    /// Opens the table that `row` describes.
    fn load(&self, ctx: &PageCtx, row: &TableRow) -> Result<Arc<OpenTable>> {
        let table = load::definition(ctx, &self.sys, row)?;
        let named = |e: Error| e.in_index(&row.name, "");
        if table.is_discarded() {
            return Err(Error::TablespaceMissing(row.name.clone()));
        }
        if table.format == RowFormat::Compressed {
            return Err(Error::unsupported(format!(
                "table {} is ROW_FORMAT=COMPRESSED",
                row.name
            )));
        }
        let space = self.open_space(ctx, &table).map_err(named)?;
        let (table, last_autoinc) = instant::complete(ctx, table, &self.locks, &self.collations)
            .map_err(|e| e.in_file(&space.path()))
            .map_err(named)?;
        let read_only = ctx.spaces.places().read_only || cannot_write(&table);
        // Asks the host, which no latch of a page may be held for.
        let unknown = table.unknown_collations(&*self.collations);
        let indexes = load::index_rows(ctx, &self.sys, row.id)?;
        let made = |id| {
            indexes
                .iter()
                .find(|row| row.id == id)
                .map(|row| row.created)
        };
        let created = table.indexes.iter();
        let created = created
            .map(|index| made(index.id).unwrap_or_default())
            .collect();
        Ok(open_with(
            table,
            &space,
            created,
            last_autoinc,
            read_only,
            unknown,
            &self.locks,
            &self.collations,
        ))
    }

    fn open_space(&self, ctx: &PageCtx, table: &Table) -> Result<Arc<Space>> {
        let space = match table.space {
            SpaceId::SYSTEM => ctx.spaces.find(SpaceId::SYSTEM)?,
            id => {
                let space = ctx.spaces.open_table(id, &table.name, &*self.repair)?;
                check_flags(&space, table)?;
                space
            }
        };
        space.check_usable()?;
        if self.unmerged.load(Ordering::Acquire) {
            check_merged(ctx, &space, table)?;
        }
        Ok(space)
    }
}

fn check_merged(ctx: &PageCtx, space: &Space, table: &Table) -> Result<()> {
    let (buffered, _) = retry(ctx, None, |mtr| {
        change_bitmap::any_buffered(mtr, space.id())
    })?;
    match buffered {
        false => Ok(()),
        true => Err(Error::unsupported(format!(
            "the change buffer holds changes of table {} that were not merged: start once with \
             writing allowed and everything readable",
            table.name
        ))),
    }
}

impl DictGuard<'_> {
    /// The dictionary.
    pub fn dict(&self) -> &Dict {
        self.dict
    }

    /// As `Dict::open_table`.
    ///
    /// # Errors
    /// As there.
    pub fn open_table(&self, ctx: &PageCtx, name: &str) -> Result<Arc<OpenTable>> {
        if let Some(table) = self.dict.cached(name) {
            return Ok(table);
        }
        let row = self.table_row(ctx, name)?;
        let table = self.dict.load(ctx, &row)?;
        self.dict.insert(table.clone());
        self.dict.close_unused();
        Ok(table)
    }

    /// As `Dict::open_by_id`.
    ///
    /// # Errors
    /// As there.
    pub fn open_by_id(&self, ctx: &PageCtx, id: TableId) -> Result<Arc<OpenTable>> {
        if let Some(table) = self.dict.cached_by_id(id) {
            return Ok(table);
        }
        self.dict.check_whole()?;
        match load::name_of(ctx, &self.dict.sys, id, false)? {
            Some(name) => self.open_table(ctx, &name),
            None => Err(Error::NoSuchTable(format!("with id {id}").into())),
        }
    }

    /// The row of SYS_TABLES of a table.
    ///
    /// # Errors
    /// `NoSuchTable`, `Corrupt`, what reading gives.
    pub fn table_row(&self, ctx: &PageCtx, name: &str) -> Result<TableRow> {
        self.dict.check_whole()?;
        load::table_row(ctx, &self.dict.sys, name)?.ok_or_else(|| Error::NoSuchTable(name.into()))
    }

    /// The definition that rows make up, without the cache.
    ///
    /// # Errors
    /// `Corrupt`, what reading gives.
    pub fn definition_of(&self, ctx: &PageCtx, row: &TableRow) -> Result<Table> {
        load::definition(ctx, &self.dict.sys, row)
    }
}

#[expect(clippy::too_many_arguments, reason = "the parts of an open table")]
fn open_with(
    table: Table,
    space: &Arc<Space>,
    created: Box<[TrxId]>,
    last_autoinc: u64,
    read_only: bool,
    unknown_collations: Box<[Option<u16>]>,
    locks: &Arc<LockTable>,
    collations: &Arc<dyn CollationSource>,
) -> Arc<OpenTable> {
    let def = Arc::new(table);
    let trees = (0..def.indexes.len())
        .map(|i| Tree::new(def.clone(), i, locks.clone(), collations.clone()))
        .collect();
    Arc::new(OpenTable::new(
        def,
        trees,
        space.clone(),
        created,
        last_autoinc,
        read_only,
        unknown_collations,
    ))
}

/// True if the table has an index whose entries this version cannot make, so that no row may change:
/// full text, R-trees, keys on virtual columns.
fn cannot_write(table: &Table) -> bool {
    let beyond = IndexType::FULLTEXT | IndexType::SPATIAL | IndexType::HAS_VIRTUAL;
    table.indexes.iter().any(|index| index.ty.has(beyond))
}

/// The file's flags must be those that SYS_TABLES.TYPE asks for; page size and compression decide,
/// since the newer flavour tells no more (format-tablespace.md section 3).
fn check_flags(space: &Space, table: &Table) -> Result<()> {
    let (flags, geometry) = (space.flags(), space.geometry());
    let zip = match table.flags.zip_bytes() {
        0 => flags.page_size(),
        bytes => bytes,
    };
    if geometry.physical_bytes() != zip {
        return Err(Error::corrupt_bytes(format!(
            "tablespace flags {flags:?} do not go with table flags {:#x}",
            table.flags.0
        ))
        .in_file(&space.path()));
    }
    Ok(())
}

fn shard_of(name: &str) -> usize {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    hasher.hash_one(name) as usize % SHARDS
}
