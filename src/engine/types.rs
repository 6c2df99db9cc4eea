//! The vocabulary of the engine's callers: what goes in and out of sessions and handles.

use std::path::PathBuf;
use std::sync::Arc;

use crate::format::undo_page;
use crate::host::callbacks::{Callbacks, SessionCtx};
use crate::host::collation::CollationSource;
use crate::host::image::TableImage;
use crate::os::{CrashPoints, RealVfs, Vfs};
use crate::row;
pub use crate::trx::Isolation;
use crate::words::{SpaceId, TableId, TrxId};

/// What the host provides.
#[derive(Clone)]
pub struct HostServices {
    /// Comparison of text.
    pub collations: Arc<dyn CollationSource>,
    /// Everything else.
    pub callbacks: Arc<dyn Callbacks>,
}

/// Where and how to open; values of settings are in `Settings`.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The data directory; relative paths of settings start here.
    pub datadir: PathBuf,
    /// Make a new instance if the directory has none.
    pub may_create: bool,
}

/// What lies under the engine: the system's files and no crash points, unless a test brings others.
#[derive(Clone, Debug)]
pub struct Under {
    /// Files.
    pub vfs: Arc<dyn Vfs>,
    /// Where to stop.
    pub points: Arc<CrashPoints>,
}

impl Default for Under {
    fn default() -> Under {
        Under {
            vfs: Arc::new(RealVfs),
            points: Arc::default(),
        }
    }
}

/// What tables of the instance may have; bytes or counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a page.
    pub page_size: u32,
    /// Columns of a table.
    pub columns_max: u32,
    /// Keys of a table.
    pub keys_max: u32,
    /// Parts of a key.
    pub key_parts_max: u32,
    /// Bytes of a key image without null and length bytes.
    pub key_length_max: u32,
    /// Bytes of a key part.
    pub key_part_length_max: u32,
}

impl Limits {
    /// The limits that go with a page size (InnoDB's).
    pub fn for_page_size(page_size: u32) -> Limits {
        let key_length_max = match page_size {
            4096 => 1173,
            8192 => 1536,
            _ => crate::words::limits::KEY_BYTES_MAX as u32,
        };
        Limits {
            page_size,
            columns_max: crate::words::limits::COLUMNS_MAX as u32,
            keys_max: crate::words::limits::SECONDARY_INDEXES_MAX as u32,
            key_parts_max: crate::words::limits::INDEX_COLUMNS_MAX as u32,
            key_length_max,
            key_part_length_max: crate::words::limits::KEY_PART_BYTES_MAX as u32,
        }
    }
}

/// A new session.
#[derive(Clone, Copy, Debug)]
pub struct SessionConfig {
    /// Level of its first transaction.
    pub isolation: Isolation,
    /// The host's connection number.
    pub connection_id: u64,
    /// For callbacks.
    pub ctx: SessionCtx,
}

/// What a statement is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StatementFlags {
    /// It is a transaction of its own.
    pub autocommit: bool,
    /// It changes nothing.
    pub read_only: bool,
    /// Foreign keys are not checked.
    pub no_foreign_keys: bool,
    /// Unique keys may be checked late (`unique_checks=0`).
    pub relaxed_unique: bool,
}

/// How a transaction begins.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TrxFlags {
    /// START TRANSACTION READ ONLY.
    pub read_only: bool,
    /// The read view is opened at once.
    pub consistent_snapshot: bool,
}

/// What a session is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SessionState {
    /// A transaction is open.
    pub in_trx: bool,
    /// It has changed rows.
    pub changed: bool,
    /// It is prepared.
    pub prepared: bool,
    /// Only a rollback is accepted.
    pub aborted: bool,
    /// It holds row or table locks.
    pub has_locks: bool,
    /// It has a read view.
    pub has_view: bool,
    /// Its id, if it has one.
    pub trx_id: Option<TrxId>,
}

/// X/Open transaction id. `data` = gtrid, then bqual, then zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Xid {
    /// -1 is the null XID and not allowed here.
    pub format_id: i32,
    /// Bytes of the global part, 1..=64.
    pub gtrid_length: u32,
    /// Bytes of the branch part, 0..=64.
    pub bqual_length: u32,
    /// Both parts.
    pub data: [u8; 128],
}

impl Xid {
    /// As the undo log has it.
    pub(super) fn from_log(xid: &undo_page::Xid) -> Xid {
        let (gtrid, bqual) = (xid.gtrid(), xid.bqual());
        let mut data = [0; 128];
        data[..gtrid.len()].copy_from_slice(gtrid);
        data[gtrid.len()..gtrid.len() + bqual.len()].copy_from_slice(bqual);
        Xid {
            format_id: xid.format_id() as i32,
            gtrid_length: gtrid.len() as u32,
            bqual_length: bqual.len() as u32,
            data,
        }
    }
}

/// What reads lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Consistent read.
    None,
    /// Shared.
    Shared,
    /// Exclusive.
    Exclusive,
}

/// What to do about a row that another transaction has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// As long as the session's `innodb_lock_wait_timeout`.
    Default,
    /// Not at all.
    NoWait,
    /// Leave the row out.
    SkipLocked,
    /// At most so many seconds.
    Seconds(u32),
}

/// What a statement does with a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableUse {
    /// Locks that reads take.
    pub lock: LockMode,
    /// Patience.
    pub wait: Wait,
    /// Rows will be changed.
    pub write: bool,
    /// Lock the whole table as well.
    pub lock_table: bool,
}

/// Switches of a handle, off after each `begin_use`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extra {
    /// Only columns of the index are read.
    KeyRead(bool),
    /// Columns that are not read keep what the row image holds.
    PreserveFields,
    /// A duplicate is expected.
    IgnoreDuplicate(bool),
    /// A duplicate will be replaced: lock it exclusively.
    WriteCanReplace(bool),
    /// ON DUPLICATE KEY UPDATE.
    InsertWithUpdate,
    /// Semi-consistent reads (READ COMMITTED).
    SemiConsistent(bool),
    /// ALTER TABLE by copy begins; true: duplicates are dropped.
    BeginCopy(bool),
    /// The copy is complete.
    EndCopy,
    /// The copy is given up.
    AbortCopy,
}

/// How a key is looked up: MySQL's `ha_rkey_function`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Find {
    /// First row equal to the key.
    Exact = 0,
    /// First row at or after it.
    KeyOrNext = 1,
    /// Last row at or before it.
    KeyOrPrev = 2,
    /// First row after it.
    After = 3,
    /// Last row before it.
    Before = 4,
    /// First row that begins with it.
    Prefix = 5,
    /// Last row that begins with it.
    PrefixLast = 6,
    /// Last row that begins with it or is before it.
    PrefixLastOrPrev = 7,
}

impl From<Find> for row::Find {
    fn from(find: Find) -> row::Find {
        match find {
            Find::Exact => row::Find::Exact,
            Find::KeyOrNext => row::Find::KeyOrNext,
            Find::KeyOrPrev => row::Find::KeyOrPrev,
            Find::After => row::Find::After,
            Find::Before => row::Find::Before,
            Find::Prefix => row::Find::Prefix,
            Find::PrefixLast => row::Find::PrefixLast,
            Find::PrefixLastOrPrev => row::Find::PrefixLastOrPrev,
        }
    }
}

/// One end of a range; `find` in MySQL's convention (index.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound<'k> {
    /// Key image.
    pub key: &'k [u8],
    /// Exact, After or Before.
    pub find: Find,
}

/// Where to go from the current row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Forward in index order.
    Next,
    /// Backward.
    Prev,
}

/// Room for rows of one call.
pub struct Batch<'b> {
    /// Where to go.
    pub direction: Direction,
    /// Row images, `row_stride` bytes apart, `capacity` of them.
    pub rows: &'b mut [u8],
    /// At least `row_length`.
    pub row_stride: usize,
    /// Positions of the rows, if wanted: memory and stride.
    pub refs: Option<(&'b mut [u8], usize)>,
    /// How many rows fit.
    pub capacity: usize,
}

/// Facts about an open table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableInfo {
    /// Row format.
    pub row_format: RowFormat,
    /// SYS_TABLES.ID
    pub table_id: TableId,
    /// SYS_TABLES.SPACE
    pub space_id: SpaceId,
    /// Bytes of a position.
    pub ref_length: u32,
    /// Key by which rows are stored, as the host counts; `None`: a hidden one.
    pub clustered_key: Option<u32>,
    /// What is the matter with it.
    pub flags: TableFlags,
    /// Transaction that last changed its definition.
    pub version: TrxId,
}

/// Conditions of a table.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TableFlags {
    /// It has no tablespace.
    pub discarded: bool,
    /// Damage is known.
    pub corrupt: bool,
    /// It cannot be written.
    pub read_only: bool,
    /// It goes with its session.
    pub temporary: bool,
    /// The host lacks a collation: readable in clustered order only.
    pub no_collation: bool,
}

/// How rows are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "MySQL's names")]
pub enum RowFormat {
    Redundant = 1,
    Compact = 2,
    Dynamic = 3,
    Compressed = 4,
}

/// How a table is opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpenFlags {
    /// Damage is reported by reads, not by the open.
    pub even_if_damaged: bool,
}

/// Estimates about a table; sizes in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TableStats {
    /// Rows.
    pub rows: u64,
    /// Clustered index.
    pub data_length: u64,
    /// Other indexes.
    pub index_length: u64,
    /// Free within the tablespace.
    pub free_length: u64,
    /// Next AUTO_INCREMENT value; 0 = none.
    pub auto_increment: u64,
    /// Seconds since the epoch; 0 = unknown.
    pub update_time: u64,
    /// Pages of the clustered index.
    pub clustered_pages: u64,
    /// No more rows than this.
    pub rows_max: u64,
}

/// Options of CREATE TABLE; `None` = the instance's default.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CreateOptions {
    /// Goes with the session.
    pub temporary: bool,
    /// ROW_FORMAT.
    pub row_format: Option<RowFormat>,
    /// KEY_BLOCK_SIZE in KiB; 0 = none.
    pub key_block_size: u32,
    /// First AUTO_INCREMENT value; 0 = 1.
    pub auto_increment: u64,
    /// DATA DIRECTORY.
    pub data_directory: Option<PathBuf>,
    /// STATS_PERSISTENT.
    pub stats_persistent: Option<bool>,
    /// STATS_AUTO_RECALC.
    pub stats_auto_recalc: Option<bool>,
    /// STATS_SAMPLE_PAGES; 0 = default.
    pub stats_sample_pages: u32,
    /// PAGE_COMPRESSED.
    pub page_compressed: Option<bool>,
    /// PAGE_COMPRESSION_LEVEL; 0 = default.
    pub page_compression_level: u32,
    /// ENCRYPTED.
    pub encrypted: Option<bool>,
    /// ENCRYPTION_KEY_ID; 0 = default.
    pub encryption_key_id: u32,
}

/// A table as the dictionary knows it, with a row image that the engine laid out as a server would.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableDescription {
    /// Columns, keys, layout.
    pub image: TableImage,
    /// Row format.
    pub row_format: RowFormat,
    /// SYS_TABLES.ID
    pub table_id: TableId,
}

/// How bad a finding of CHECK TABLE is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// One finding of CHECK TABLE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckFinding {
    /// How bad.
    pub severity: Severity,
    /// What, naming index and page.
    pub text: String,
}
