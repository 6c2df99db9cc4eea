//! Status counters: relaxed, sharded by thread, under InnoDB's status names.

use crate::sync::Padded;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::gate::{STRIPES, own_stripe};

macro_rules! counters {
    ($($id:ident = $name:literal),* $(,)?) => {
        /// One counter or gauge of SHOW STATUS.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Counter {
            $(#[doc = concat!("`", $name, "`")] $id,)*
        }

        impl Counter {
            /// All of them, sorted by name.
            pub const ALL: &'static [Counter] = &[$(Counter::$id),*];

            /// Its status name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Counter::$id => $name,)*
                }
            }
        }
    };
}

counters! {
    AdaptiveHashHashSearches = "Innodb_adaptive_hash_hash_searches",
    AdaptiveHashNonHashSearches = "Innodb_adaptive_hash_non_hash_searches",
    AvailableUndoLogs = "Innodb_available_undo_logs",
    BackgroundLogSync = "Innodb_background_log_sync",
    BufferPoolBytesData = "Innodb_buffer_pool_bytes_data",
    BufferPoolBytesDirty = "Innodb_buffer_pool_bytes_dirty",
    BufferPoolLoadIncomplete = "Innodb_buffer_pool_load_incomplete",
    BufferPoolPagesData = "Innodb_buffer_pool_pages_data",
    BufferPoolPagesDirty = "Innodb_buffer_pool_pages_dirty",
    BufferPoolPagesFlushed = "Innodb_buffer_pool_pages_flushed",
    BufferPoolPagesFree = "Innodb_buffer_pool_pages_free",
    BufferPoolPagesLruFlushed = "Innodb_buffer_pool_pages_lru_flushed",
    BufferPoolPagesLruFreed = "Innodb_buffer_pool_pages_lru_freed",
    BufferPoolPagesMadeNotYoung = "Innodb_buffer_pool_pages_made_not_young",
    BufferPoolPagesMadeYoung = "Innodb_buffer_pool_pages_made_young",
    BufferPoolPagesMisc = "Innodb_buffer_pool_pages_misc",
    BufferPoolPagesOld = "Innodb_buffer_pool_pages_old",
    BufferPoolPagesSplit = "Innodb_buffer_pool_pages_split",
    BufferPoolPagesTotal = "Innodb_buffer_pool_pages_total",
    BufferPoolReadAhead = "Innodb_buffer_pool_read_ahead",
    BufferPoolReadAheadEvicted = "Innodb_buffer_pool_read_ahead_evicted",
    BufferPoolReadAheadRnd = "Innodb_buffer_pool_read_ahead_rnd",
    BufferPoolReadRequests = "Innodb_buffer_pool_read_requests",
    BufferPoolReads = "Innodb_buffer_pool_reads",
    BufferPoolWaitFree = "Innodb_buffer_pool_wait_free",
    BufferPoolWriteRequests = "Innodb_buffer_pool_write_requests",
    BulkOperations = "Innodb_bulk_operations",
    CheckpointAge = "Innodb_checkpoint_age",
    CheckpointMaxAge = "Innodb_checkpoint_max_age",
    DataFsyncs = "Innodb_data_fsyncs",
    DataPendingFsyncs = "Innodb_data_pending_fsyncs",
    DataPendingReads = "Innodb_data_pending_reads",
    DataPendingWrites = "Innodb_data_pending_writes",
    DataRead = "Innodb_data_read",
    DataReads = "Innodb_data_reads",
    DataWrites = "Innodb_data_writes",
    DataWritten = "Innodb_data_written",
    DblwrPagesWritten = "Innodb_dblwr_pages_written",
    DblwrWrites = "Innodb_dblwr_writes",
    Deadlocks = "Innodb_deadlocks",
    DefragmentCompressionFailures = "Innodb_defragment_compression_failures",
    DefragmentCount = "Innodb_defragment_count",
    DefragmentFailures = "Innodb_defragment_failures",
    EncryptionNMergeBlocksDecrypted = "Innodb_encryption_n_merge_blocks_decrypted",
    EncryptionNMergeBlocksEncrypted = "Innodb_encryption_n_merge_blocks_encrypted",
    EncryptionNRowlogBlocksDecrypted = "Innodb_encryption_n_rowlog_blocks_decrypted",
    EncryptionNRowlogBlocksEncrypted = "Innodb_encryption_n_rowlog_blocks_encrypted",
    EncryptionNTempBlocksDecrypted = "Innodb_encryption_n_temp_blocks_decrypted",
    EncryptionNTempBlocksEncrypted = "Innodb_encryption_n_temp_blocks_encrypted",
    EncryptionNumKeyRequests = "Innodb_encryption_num_key_requests",
    EncryptionRotationEstimatedIops = "Innodb_encryption_rotation_estimated_iops",
    EncryptionRotationPagesFlushed = "Innodb_encryption_rotation_pages_flushed",
    EncryptionRotationPagesModified = "Innodb_encryption_rotation_pages_modified",
    EncryptionRotationPagesReadFromCache = "Innodb_encryption_rotation_pages_read_from_cache",
    EncryptionRotationPagesReadFromDisk = "Innodb_encryption_rotation_pages_read_from_disk",
    HaveBzip2 = "Innodb_have_bzip2",
    HaveLz4 = "Innodb_have_lz4",
    HaveLzma = "Innodb_have_lzma",
    HaveLzo = "Innodb_have_lzo",
    HavePunchHole = "Innodb_have_punch_hole",
    HaveSnappy = "Innodb_have_snappy",
    HistoryListLength = "Innodb_history_list_length",
    IbufDiscardedDeleteMarks = "Innodb_ibuf_discarded_delete_marks",
    IbufDiscardedDeletes = "Innodb_ibuf_discarded_deletes",
    IbufDiscardedInserts = "Innodb_ibuf_discarded_inserts",
    IbufFreeList = "Innodb_ibuf_free_list",
    IbufMergedDeleteMarks = "Innodb_ibuf_merged_delete_marks",
    IbufMergedDeletes = "Innodb_ibuf_merged_deletes",
    IbufMergedInserts = "Innodb_ibuf_merged_inserts",
    IbufMerges = "Innodb_ibuf_merges",
    IbufSegmentSize = "Innodb_ibuf_segment_size",
    IbufSize = "Innodb_ibuf_size",
    InstantAlterColumn = "Innodb_instant_alter_column",
    LogWaits = "Innodb_log_waits",
    LogWriteRequests = "Innodb_log_write_requests",
    LogWrites = "Innodb_log_writes",
    LsnCurrent = "Innodb_lsn_current",
    LsnFlushed = "Innodb_lsn_flushed",
    LsnLastCheckpoint = "Innodb_lsn_last_checkpoint",
    MasterThreadActiveLoops = "Innodb_master_thread_active_loops",
    MasterThreadIdleLoops = "Innodb_master_thread_idle_loops",
    MaxTrxId = "Innodb_max_trx_id",
    MemAdaptiveHash = "Innodb_mem_adaptive_hash",
    MemDictionary = "Innodb_mem_dictionary",
    NumOpenFiles = "Innodb_num_open_files",
    NumPageCompressedTrimOp = "Innodb_num_page_compressed_trim_op",
    NumPagesDecrypted = "Innodb_num_pages_decrypted",
    NumPagesEncrypted = "Innodb_num_pages_encrypted",
    NumPagesPageCompressed = "Innodb_num_pages_page_compressed",
    NumPagesPageCompressionError = "Innodb_num_pages_page_compression_error",
    NumPagesPageDecompressed = "Innodb_num_pages_page_decompressed",
    OnlineddlPctProgress = "Innodb_onlineddl_pct_progress",
    OnlineddlRowlogPctUsed = "Innodb_onlineddl_rowlog_pct_used",
    OnlineddlRowlogRows = "Innodb_onlineddl_rowlog_rows",
    OsLogWritten = "Innodb_os_log_written",
    PageCompressionSaved = "Innodb_page_compression_saved",
    PageSize = "Innodb_page_size",
    PagesCreated = "Innodb_pages_created",
    PagesRead = "Innodb_pages_read",
    PagesWritten = "Innodb_pages_written",
    RecoveryBytesPending = "Innodb_recovery_bytes_pending",
    RecoveryPagesPending = "Innodb_recovery_pages_pending",
    RecoveryPagesTotal = "Innodb_recovery_pages_total",
    RecoveryPercent = "Innodb_recovery_percent",
    RecoverySecondsLeft = "Innodb_recovery_seconds_left",
    RowLockCurrentWaits = "Innodb_row_lock_current_waits",
    RowLockTime = "Innodb_row_lock_time",
    RowLockTimeAvg = "Innodb_row_lock_time_avg",
    RowLockTimeMax = "Innodb_row_lock_time_max",
    RowLockWaits = "Innodb_row_lock_waits",
    TruncatedStatusWrites = "Innodb_truncated_status_writes",
    UndoTruncations = "Innodb_undo_truncations",
}

const COUNT: usize = Counter::ALL.len();

/// The counters of one engine. A counter is used either with `add` and `subtract`, or with `set`.
#[derive(Debug)]
pub struct Counters {
    shards: Box<[Padded<[AtomicU64; COUNT]>]>,
}

impl Default for Counters {
    fn default() -> Counters {
        let shard = || Padded([const { AtomicU64::new(0) }; COUNT]);
        Counters {
            shards: (0..STRIPES).map(|_| shard()).collect(),
        }
    }
}

impl Counters {
    /// Adds to a counter.
    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        // Relaxed: a count orders nothing, and a sum that is a moment old is a true answer.
        self.shards[own_stripe()][counter as usize].fetch_add(amount, Ordering::Relaxed);
    }

    /// Stores a gauge that one thread at a time keeps.
    pub fn set(&self, counter: Counter, value: u64) {
        self.shards[0][counter as usize].store(value, Ordering::Relaxed);
    }

    /// Raises a gauge to `value` if it is lower.
    pub fn raise(&self, counter: Counter, value: u64) {
        self.shards[0][counter as usize].fetch_max(value, Ordering::Relaxed);
    }

    /// The value now.
    pub fn get(&self, counter: Counter) -> u64 {
        let shard_value =
            |shard: &Padded<[AtomicU64; COUNT]>| shard[counter as usize].load(Ordering::Relaxed);
        self.shards
            .iter()
            .map(shard_value)
            .fold(0, u64::wrapping_add)
    }
}
