//! The columns of the INFORMATION_SCHEMA tables (MariaDB 10.11's).

/// Type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// INT or BIGINT; display width.
    Int(u32),
    /// The same, UNSIGNED.
    Uint(u32),
    /// VARCHAR; characters.
    Text(u32),
    /// ENUM; its names.
    Enum(&'static [&'static str]),
    /// DATETIME.
    DateTime,
}

/// One column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: ColumnType,
    /// It may be NULL.
    pub nullable: bool,
}

/// One table, which is a plugin of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The plugin's description.
    pub description: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
}

use ColumnType::{DateTime, Enum, Int, Text, Uint};

const fn col(name: &'static str, kind: ColumnType) -> Column {
    Column {
        name,
        kind,
        nullable: false,
    }
}

const fn nul(name: &'static str, kind: ColumnType) -> Column {
    Column {
        name,
        kind,
        nullable: true,
    }
}

/// A count, an id or a size.
const fn number(name: &'static str) -> Column {
    col(name, Uint(21))
}

const fn table(name: &'static str, description: &'static str, columns: &'static [Column]) -> Table {
    Table {
        name,
        description,
        columns,
    }
}

/// Names of the isolation levels, by number.
pub const ISOLATION_NAMES: &[&str] = &[
    "READ UNCOMMITTED",
    "READ COMMITTED",
    "REPEATABLE READ",
    "SERIALIZABLE",
];

/// Lock modes as INNODB_LOCKS names them.
pub const LOCK_MODES: &[&str] = &[
    "S", "S,GAP", "X", "X,GAP", "IS", "IS,GAP", "IX", "IX,GAP", "AUTO_INC",
];

/// Lock types as INNODB_LOCKS names them.
pub const LOCK_TYPES: &[&str] = &["RECORD", "TABLE"];

const TRX: &[Column] = &[
    number("trx_id"),
    col("trx_state", Text(13)),
    col("trx_started", DateTime),
    nul("trx_requested_lock_id", Text(81)),
    nul("trx_wait_started", DateTime),
    number("trx_weight"),
    number("trx_mysql_thread_id"),
    nul("trx_query", Text(1024)),
    nul("trx_operation_state", Text(64)),
    number("trx_tables_in_use"),
    number("trx_tables_locked"),
    number("trx_lock_structs"),
    number("trx_lock_memory_bytes"),
    number("trx_rows_locked"),
    number("trx_rows_modified"),
    number("trx_concurrency_tickets"),
    col("trx_isolation_level", Enum(ISOLATION_NAMES)),
    col("trx_unique_checks", Int(1)),
    col("trx_foreign_key_checks", Int(1)),
    nul("trx_last_foreign_key_error", Text(256)),
    col("trx_is_read_only", Int(1)),
    col("trx_autocommit_non_locking", Int(1)),
];

const LOCKS: &[Column] = &[
    col("lock_id", Text(81)),
    number("lock_trx_id"),
    col("lock_mode", Enum(LOCK_MODES)),
    col("lock_type", Enum(LOCK_TYPES)),
    col("lock_table", Text(1024)),
    nul("lock_index", Text(1024)),
    nul("lock_space", Uint(11)),
    nul("lock_page", Uint(11)),
    nul("lock_rec", Uint(11)),
    nul("lock_data", Text(8192)),
];

const LOCK_WAITS: &[Column] = &[
    number("requesting_trx_id"),
    col("requested_lock_id", Text(81)),
    number("blocking_trx_id"),
    col("blocking_lock_id", Text(81)),
];

const CMP: &[Column] = &[
    col("page_size", Int(5)),
    col("compress_ops", Int(11)),
    col("compress_ops_ok", Int(11)),
    col("compress_time", Int(11)),
    col("uncompress_ops", Int(11)),
    col("uncompress_time", Int(11)),
];

const CMPMEM: &[Column] = &[
    col("page_size", Int(5)),
    col("buffer_pool_instance", Int(11)),
    col("pages_used", Int(11)),
    col("pages_free", Int(11)),
    col("relocation_ops", Int(21)),
    col("relocation_time", Int(11)),
];

const MEMORY: &[Column] = &[
    col("memory_name", Text(64)),
    number("memory_in_use"),
    number("memory_limit"),
];

const RECOVERY: &[Column] = &[
    col("recovery_state", Text(16)),
    number("checkpoint_lsn"),
    number("end_lsn"),
    number("log_bytes"),
    number("log_scan_ms"),
    number("pages_total"),
    number("pages_pending"),
    number("pages_waiting_for_file"),
    number("bytes_total"),
    number("bytes_pending"),
    col("percent_done", Uint(3)),
    number("seconds_elapsed"),
    nul("seconds_left", Uint(21)),
];

/// The tables, in the order of the classic plugin-load string; those that InnoDB has not at the end.
pub static TABLES: [Table; 9] = [
    table("INNODB_TRX", "InnoDB transactions", TRX),
    table("INNODB_LOCKS", "InnoDB conflicting locks", LOCKS),
    table(
        "INNODB_LOCK_WAITS",
        "InnoDB which lock is blocking which",
        LOCK_WAITS,
    ),
    table("INNODB_CMP", "Statistics for the InnoDB compression", CMP),
    table(
        "INNODB_CMP_RESET",
        "Statistics for the InnoDB compression; reset cumulated counts",
        CMP,
    ),
    table(
        "INNODB_CMPMEM",
        "Statistics for the InnoDB compressed buffer pool",
        CMPMEM,
    ),
    table(
        "INNODB_CMPMEM_RESET",
        "Statistics for the InnoDB compressed buffer pool; reset cumulated counts",
        CMPMEM,
    ),
    table(
        "XTRADB_MEMORY",
        "What takes memory, in bytes, and the most it may take",
        MEMORY,
    ),
    table("XTRADB_RECOVERY", "How far crash recovery is", RECOVERY),
];

/// The table of that name, in any case.
pub fn find(name: &str) -> Option<&'static Table> {
    TABLES
        .iter()
        .find(|table| table.name.eq_ignore_ascii_case(name))
}
