//! Limits that the file format or InnoDB's behaviour fixes.

/// Smallest page size in bytes.
pub const PAGE_SIZE_MIN: usize = 4096;
/// Largest page size in bytes.
pub const PAGE_SIZE_MAX: usize = 65536;
/// A mini-transaction's records stay below this many bytes; recovery takes more for the end.
pub const MTR_BYTES_MAX: usize = 1 << 20;
/// Columns of a table, hidden ones left out.
pub const COLUMNS_MAX: usize = 1017;
/// Indexes of a table, the clustered one left out.
pub const SECONDARY_INDEXES_MAX: usize = 64;
/// Columns of an index as the user names them.
pub const INDEX_COLUMNS_MAX: usize = 32;
/// Bytes of a key part in REDUNDANT and COMPACT tables.
pub const KEY_PART_BYTES_MAX_ANTELOPE: usize = 767;
/// Bytes of a key part in DYNAMIC and COMPRESSED tables.
pub const KEY_PART_BYTES_MAX: usize = 3072;
/// Bytes of a whole key on 16 KiB pages.
pub const KEY_BYTES_MAX: usize = 3072;
/// Fixed-length fields above this are stored like variable ones.
pub const FIXED_FIELD_BYTES_MAX: usize = 768;
/// Levels of a tree that a reader accepts.
pub const TREE_HEIGHT_MAX: usize = 50;
/// Rollback segments of an instance.
pub const RSEGS_MAX: usize = 128;
/// Bytes of a BLOB reference.
pub const BLOB_REF_BYTES: usize = 20;
/// Bytes of the local prefix of an off-page column in REDUNDANT and COMPACT tables.
pub const BLOB_PREFIX_BYTES_ANTELOPE: usize = 768;
