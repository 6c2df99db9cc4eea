//! A table that can be read and written: definition, trees, tablespace, counters.

use crate::schema::{IndexType, Table};
use crate::space::Space;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, Rank};
use crate::tree::Tree;
use crate::words::{Error, Result, SpaceId, TableId, TrxId};
use std::time::Duration;

/// How long DDL waits for the users of a table: about 300 ms.
const RETIRE_TRIES: u32 = 300;
const RETIRE_STEP: Duration = Duration::from_millis(1);

/// An open table, shared by all that use it.
pub struct OpenTable {
    def: Arc<Table>,
    trees: Box<[Tree]>,
    space: Arc<Space>,
    created: TrxId,
    read_only: bool,
    corrupt: AtomicBool,
    /// The next AUTO_INCREMENT value; 1 at least.
    autoinc: Mutex<u64>,
    statistics: Mutex<Statistics>,
    changes: AtomicU64,
    users: AtomicU32,
    retired: AtomicBool,
}

/// Estimates about a table; `stats` fills them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// They were computed.
    pub known: bool,
    /// Rows.
    pub rows: u64,
    /// Pages of the clustered index.
    pub clustered_pages: u64,
    /// Pages of the other indexes.
    pub secondary_pages: u64,
    /// For each index, the number of different values of its first 1, 2, … fields.
    pub distinct: Vec<Vec<u64>>,
}

impl OpenTable {
    pub(super) fn new(
        def: Arc<Table>,
        trees: Vec<Tree>,
        space: Arc<Space>,
        created: TrxId,
        last_autoinc: u64,
        read_only: bool,
    ) -> OpenTable {
        OpenTable {
            def,
            trees: trees.into(),
            space,
            created,
            read_only,
            corrupt: AtomicBool::new(false),
            autoinc: Mutex::new(Rank::TableLatch, last_autoinc.saturating_add(1)),
            statistics: Mutex::new(Rank::Leaf, Statistics::default()),
            changes: AtomicU64::new(0),
            users: AtomicU32::new(0),
            retired: AtomicBool::new(false),
        }
    }

    /// The definition.
    #[inline]
    pub fn def(&self) -> &Arc<Table> {
        &self.def
    }

    /// SYS_TABLES.ID.
    #[inline]
    pub fn id(&self) -> TableId {
        self.def.id
    }

    /// "db/table".
    pub fn name(&self) -> &str {
        &self.def.name
    }

    /// The trees, as `def().indexes`: the clustered one first. One without a root (FULLTEXT) must not
    /// be searched.
    #[inline]
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// The tree of the rows.
    #[inline]
    pub fn clustered(&self) -> &Tree {
        &self.trees[0]
    }

    /// The tree of index `position` of `def().indexes`.
    ///
    /// # Errors
    /// `Unsupported` for FULLTEXT, SPATIAL and virtual columns; `Corrupt` if the index is flagged as damaged.
    pub fn tree(&self, position: usize) -> Result<&Tree> {
        let tree = &self.trees[position];
        let index = tree.index();
        if index
            .ty
            .has(IndexType::FULLTEXT | IndexType::SPATIAL | IndexType::HAS_VIRTUAL)
        {
            return Err(Error::unsupported(format!(
                "index {} of table {} is FULLTEXT, SPATIAL or on virtual columns",
                index.name,
                self.name()
            )));
        }
        if index.ty.has(IndexType::CORRUPTED) {
            let why = "the index is flagged as damaged";
            return Err(Error::corrupt_bytes(why).in_index(self.name(), &index.name));
        }
        Ok(tree)
    }

    /// The tablespace.
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// Its id.
    #[inline]
    pub fn space_id(&self) -> SpaceId {
        self.space.id()
    }

    /// The transaction that made the table, or emptied it: a view that does not see it must not read
    /// here, since the rows that it should see are not there.
    #[inline]
    pub fn created(&self) -> TrxId {
        self.created
    }

    /// True if rows may not be changed: an index is there that this version cannot keep up.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// True if damage was met.
    pub fn is_corrupt(&self) -> bool {
        self.corrupt.load(Ordering::Relaxed)
    }

    /// Notes that damage was met. Only for what `find_table` tells: reads go on, each with its own
    /// checks.
    pub fn set_corrupt(&self) {
        self.corrupt.store(true, Ordering::Relaxed);
    }

    /// The next AUTO_INCREMENT value, to be drawn under the latch. PAGE_ROOT_AUTO_INC of the clustered
    /// root, the last value drawn, is the caller's to write.
    pub fn autoinc(&self) -> MutexGuard<'_, u64> {
        self.autoinc.lock()
    }

    /// The estimates.
    pub fn statistics(&self) -> MutexGuard<'_, Statistics> {
        self.statistics.lock()
    }

    /// Counts changed rows since the estimates were made.
    pub fn changes(&self) -> &AtomicU64 {
        &self.changes
    }

    /// Announces a use that DDL must wait for: a statement of a handle, a purge batch, a rollback.
    ///
    /// # Errors
    /// `NoSuchTable` if the table is being, or was, dropped or renamed: look it up again.
    pub fn enter(self: &Arc<OpenTable>) -> Result<InUse> {
        self.users.fetch_add(1, Ordering::SeqCst);
        let entered = InUse(self.clone());
        if self.retired.load(Ordering::SeqCst) {
            return Err(Error::NoSuchTable(self.def.name.clone()));
        }
        Ok(entered)
    }

    /// True if the definition is out of date: DDL replaced or dropped the table.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::SeqCst)
    }

    /// Refuses new users from now on, and waits a moment for those that are there: purge, a statement
    /// about to end. False, with users let in again, if one stays.
    pub fn retire(&self) -> bool {
        self.retired.store(true, Ordering::SeqCst);
        for _ in 0..RETIRE_TRIES {
            if self.users.load(Ordering::SeqCst) == 0 {
                return true;
            }
            std::thread::sleep(RETIRE_STEP);
        }
        self.revive();
        false
    }

    /// Lets users in again: the DDL was given up.
    pub fn revive(&self) {
        self.retired.store(false, Ordering::SeqCst);
    }
}

/// A use of an open table, until it is dropped.
pub struct InUse(Arc<OpenTable>);

impl InUse {
    /// The table.
    pub fn table(&self) -> &Arc<OpenTable> {
        &self.0
    }
}

impl std::ops::Deref for InUse {
    type Target = OpenTable;
    fn deref(&self) -> &OpenTable {
        &self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::SeqCst);
    }
}
