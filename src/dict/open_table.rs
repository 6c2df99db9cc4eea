//! A table that can be read and written: definition, trees, tablespace, counters.

use crate::schema::{IndexType, Table};
use crate::space::Space;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::gate::{STRIPES, own_stripe};
use crate::sync::{Arc, Mutex, MutexGuard, Padded, Rank};
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
    /// By index, who made it.
    indexes_created: Box<[TrxId]>,
    read_only: bool,
    /// By index, a collation that the host lacks.
    unknown_collations: Box<[Option<u16>]>,
    corrupt: AtomicBool,
    /// The next AUTO_INCREMENT value; 1 at least.
    autoinc: Mutex<u64>,
    statistics: Mutex<Statistics>,
    changes: AtomicU64,
    /// By the stripe of the thread that came.
    users: [Padded<AtomicU32>; STRIPES],
    retired: AtomicBool,
    /// Looked up since the cache last asked.
    recent: AtomicBool,
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
        indexes_created: Box<[TrxId]>,
        last_autoinc: u64,
        read_only: bool,
        unknown_collations: Box<[Option<u16>]>,
    ) -> OpenTable {
        OpenTable {
            unknown_collations,
            def,
            trees: trees.into(),
            space,
            created: indexes_created.first().copied().unwrap_or_default(),
            indexes_created,
            read_only,
            corrupt: AtomicBool::new(false),
            autoinc: Mutex::new(Rank::TableLatch, last_autoinc.saturating_add(1)),
            statistics: Mutex::new(Rank::Leaf, Statistics::default()),
            changes: AtomicU64::new(0),
            users: Default::default(),
            retired: AtomicBool::new(false),
            recent: AtomicBool::new(true),
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

    /// It was looked up.
    pub(super) fn note_recent(&self) {
        // Relaxed: a hint. Stored only where it changes: the usual case writes nothing.
        if !self.recent.load(Ordering::Relaxed) {
            self.recent.store(true, Ordering::Relaxed);
        }
    }

    /// True if it was looked up since the last call.
    pub(super) fn take_recent(&self) -> bool {
        self.recent.swap(false, Ordering::Relaxed)
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
        self.check_collation(position)?;
        Ok(tree)
    }

    /// Errors: `CollationUnknown` if no place can be found in index `position`.
    pub fn check_collation(&self, position: usize) -> Result<()> {
        match self.unknown_collations[position] {
            None => Ok(()),
            Some(id) => Err(Error::CollationUnknown(
                format!(
                    "collation {id} of index {} of table {}: its rows can be read in the order of the \
                     clustered index only",
                    self.trees[position].index().name,
                    self.name()
                )
                .into(),
            )),
        }
    }

    /// Errors: `CollationUnknown` if an index could not be kept up.
    pub fn check_collations(&self) -> Result<()> {
        (0..self.unknown_collations.len()).try_for_each(|position| self.check_collation(position))
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

    /// The transaction that made index `position`: a view that does not see it must not read there, since
    /// entries of older versions are not in it.
    #[inline]
    pub fn index_created(&self, position: usize) -> TrxId {
        self.indexes_created[position]
    }

    /// True if rows may not be changed: an index is there that this version cannot keep up.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Errors: `ReadOnly`; `CollationUnknown` if an index could not be kept up.
    pub fn check_writable(&self) -> Result<()> {
        match self.read_only {
            true => Err(Error::ReadOnly),
            false => self.check_collations(),
        }
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
        let mut seat = InUse::none_of(self);
        seat.enter()?;
        Ok(seat)
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
            // Who comes from now on sees the mark and leaves; so a stripe that was empty stays so.
            if self.users.iter().all(|n| n.load(Ordering::SeqCst) == 0) {
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

/// A use of an open table, until it is dropped. A handle keeps one and enters with each statement,
/// which writes to no memory that other threads write to.
pub struct InUse {
    table: Arc<OpenTable>,
    /// Where it is counted, while it is.
    stripe: Option<usize>,
}

impl InUse {
    /// No use yet: `enter` makes it one.
    pub fn none_of(table: &Arc<OpenTable>) -> InUse {
        InUse {
            table: table.clone(),
            stripe: None,
        }
    }

    /// As `OpenTable::enter`.
    ///
    /// # Errors
    /// As there.
    pub fn enter(&mut self) -> Result<()> {
        if self.stripe.is_some() {
            return Ok(());
        }
        let stripe = own_stripe();
        self.table.users[stripe].fetch_add(1, Ordering::SeqCst);
        self.stripe = Some(stripe);
        if self.table.is_retired() {
            self.leave();
            return Err(Error::NoSuchTable(self.table.def.name.clone()));
        }
        Ok(())
    }

    /// Ends the use.
    pub fn leave(&mut self) {
        if let Some(stripe) = self.stripe.take() {
            self.table.users[stripe].fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<OpenTable> {
        &self.table
    }
}

impl std::ops::Deref for InUse {
    type Target = OpenTable;
    fn deref(&self) -> &OpenTable {
        &self.table
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.leave();
    }
}
