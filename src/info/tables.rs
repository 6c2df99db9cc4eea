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
    col("trx_id", Uint(21)),
    col("trx_state", Text(13)),
    col("trx_started", DateTime),
    nul("trx_requested_lock_id", Text(81)),
    nul("trx_wait_started", DateTime),
    col("trx_weight", Uint(21)),
    col("trx_mysql_thread_id", Uint(21)),
    nul("trx_query", Text(1024)),
    nul("trx_operation_state", Text(64)),
    col("trx_tables_in_use", Uint(21)),
    col("trx_tables_locked", Uint(21)),
    col("trx_lock_structs", Uint(21)),
    col("trx_lock_memory_bytes", Uint(21)),
    col("trx_rows_locked", Uint(21)),
    col("trx_rows_modified", Uint(21)),
    col("trx_concurrency_tickets", Uint(21)),
    col("trx_isolation_level", Enum(ISOLATION_NAMES)),
    col("trx_unique_checks", Int(1)),
    col("trx_foreign_key_checks", Int(1)),
    nul("trx_last_foreign_key_error", Text(256)),
    col("trx_is_read_only", Int(1)),
    col("trx_autocommit_non_locking", Int(1)),
];

const LOCKS: &[Column] = &[
    col("lock_id", Text(81)),
    col("lock_trx_id", Uint(21)),
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
    col("requesting_trx_id", Uint(21)),
    col("requested_lock_id", Text(81)),
    col("blocking_trx_id", Uint(21)),
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
    col("memory_in_use", Uint(21)),
    col("memory_limit", Uint(21)),
];

const RECOVERY: &[Column] = &[
    col("recovery_state", Text(16)),
    col("checkpoint_lsn", Uint(21)),
    col("end_lsn", Uint(21)),
    col("log_bytes", Uint(21)),
    col("log_scan_ms", Uint(21)),
    col("pages_total", Uint(21)),
    col("pages_pending", Uint(21)),
    col("pages_waiting_for_file", Uint(21)),
    col("bytes_total", Uint(21)),
    col("bytes_pending", Uint(21)),
    col("percent_done", Uint(3)),
    col("seconds_elapsed", Uint(21)),
    nul("seconds_left", Uint(21)),
];

/// The tables, in the order of the classic plugin-load string; those that InnoDB has not at the end.
pub static TABLES: [Table; 9] = [
    Table {
        name: "INNODB_TRX",
        description: "InnoDB transactions",
        columns: TRX,
    },
    Table {
        name: "INNODB_LOCKS",
        description: "InnoDB conflicting locks",
        columns: LOCKS,
    },
    Table {
        name: "INNODB_LOCK_WAITS",
        description: "InnoDB which lock is blocking which",
        columns: LOCK_WAITS,
    },
    Table {
        name: "INNODB_CMP",
        description: "Statistics for the InnoDB compression",
        columns: CMP,
    },
    Table {
        name: "INNODB_CMP_RESET",
        description: "Statistics for the InnoDB compression; reset cumulated counts",
        columns: CMP,
    },
    Table {
        name: "INNODB_CMPMEM",
        description: "Statistics for the InnoDB compressed buffer pool",
        columns: CMPMEM,
    },
    Table {
        name: "INNODB_CMPMEM_RESET",
        description: "Statistics for the InnoDB compressed buffer pool; reset cumulated counts",
        columns: CMPMEM,
    },
    Table {
        name: "XTRADB_MEMORY",
        description: "What takes memory, in bytes, and the most it may take",
        columns: MEMORY,
    },
    Table {
        name: "XTRADB_RECOVERY",
        description: "How far crash recovery is",
        columns: RECOVERY,
    },
];

/// The table of that name, in any case.
pub fn find(name: &str) -> Option<&'static Table> {
    TABLES
        .iter()
        .find(|table| table.name.eq_ignore_ascii_case(name))
}
