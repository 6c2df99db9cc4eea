/* xtradb/table.h - tables: the row image, opening, reading by scan and position, writing.
 *
 * ROW IMAGE (MariaDB's record[0]). `row_length` bytes. First the null bytes, then the columns, each
 * at its own fixed offset. The host chooses the offsets and describes them in an xt_column; the
 * engine copies nothing else.
 *
 *  | type                      | bytes in the row         | content                              |
 *  |---------------------------|--------------------------|--------------------------------------|
 *  | TINY SHORT INT24 LONG     | 1 2 3 4                  | little-endian, two's complement      |
 *  | LONGLONG                  | 8                        |                                      |
 *  | YEAR                      | 1                        | year - 1900, 0 = 0000                |
 *  | FLOAT, DOUBLE             | 4, 8                     | IEEE, little-endian                  |
 *  | NEWDECIMAL                | by precision, decimals   | MySQL's binary decimal (memcmp order)|
 *  | NEWDATE                   | 3                        | little-endian y<<9 | m<<5 | d        |
 *  | TIME2 DATETIME2 TIMESTAMP2| 3, 5, 4 + (decimals+1)/2 | big-endian, "packed" (memcmp order)  |
 *  | DATE TIME DATETIME        | 4 3 8                    | the formats before 5.6, for tables   |
 *  | TIMESTAMP                 | 4                        | that have them; little-endian        |
 *  | STRING (CHAR, BINARY)     | octets                   | padded to full length: CHAR with the |
 *  |                           |                          | pad character, BINARY with zeros     |
 *  | VARCHAR                   | length_bytes + octets    | length (1 or 2 bytes little-endian), |
 *  |                           |                          | data; what follows is undefined      |
 *  | BLOB family, GEOMETRY     | length_bytes + 8         | length (1..4 bytes little-endian),   |
 *  |                           |                          | pointer (host byte order) to data    |
 *  | ENUM, SET                 | 1,2 / 1,2,3,4,8          | little-endian number / bit set       |
 *  | BIT                       | (bits + 7) / 8           | big-endian, whole bytes              |
 *
 * DECIMAL: the digits before the point, then those after it, each in groups of nine counted from the
 * point; a group is a big-endian number of 4 bytes, the rest (first before, last after the point) of
 * 1 2 3 4 5 6 7 8 digits has 1 1 2 2 3 3 4 4 bytes. Negative: all bytes inverted. Then the first
 * byte's highest bit is flipped. DECIMAL(5,2) 1.50 is 80 01 32, -1.50 is 7F FE CD.
 *
 * "Packed" times, f = (decimals + 1) / 2 bytes of fraction in units of 100^-f seconds:
 *   DATETIME2   ((year*13 + month) << 22 | day << 17 | hour << 12 | minute << 6 | second)
 *               + 0x8000000000 in 5 bytes, then the fraction in f bytes
 *   TIMESTAMP2  seconds since 1970 UTC in 4 bytes, then the fraction in f bytes
 *   TIME2       t = hour << 12 | minute << 6 | second, with the fraction below it: in 3 + f bytes
 *               (0x800000 << 8f) + (t << 8f | fraction), or minus that if the time is negative
 * Before 5.6, as decimal digits of one number: DATE yyyymmdd, TIME hhmmss, DATETIME yyyymmddhhmmss;
 * TIMESTAMP: seconds since 1970 UTC.
 *
 * A nullable column has a bit in a null byte: row[null_offset] & null_mask, 1 = NULL; the column's
 * own bytes are then undefined on input and zero-filled on output. Bits of the null bytes that
 * belong to no column are left alone.
 *
 * BLOBs read from the engine point into memory of the table handle: valid until the next call on
 * the handle (after read_n: for all rows of the batch). BLOBs given to it: until the call returns.
 *
 * KEY IMAGE (index_read, records_in_range). The key's parts in order, each
 *
 *    [1 byte: 1 = NULL, 0]   only if the column is nullable
 *    [2 bytes length LE]     only VARCHAR and BLOB family, whatever their length_bytes
 *    part.length bytes       fixed types: as in the row; strings: data, rest undefined
 *
 * A NULL part has its full length; what follows its first byte is not looked at.
 *
 * A key may end after any part. With XT_FIND_PREFIX and XT_FIND_PREFIX_LAST it may also end inside
 * a string part. Lengths and prefixes are bytes, not characters.
 *
 * POSITION (`ref`). table_position stores `ref_length` bytes: the key image of the clustered key,
 * or the 6 byte row id where the table has no key of its own. Compare with compare_positions only.
 */
#ifndef XTRADB_TABLE_H
#define XTRADB_TABLE_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct xt_table xt_table;

/** xt_column.type: MySQL's real_type() numbers. */
#define XT_TYPE_TINY 1
#define XT_TYPE_SHORT 2
#define XT_TYPE_LONG 3
#define XT_TYPE_FLOAT 4
#define XT_TYPE_DOUBLE 5
#define XT_TYPE_TIMESTAMP 7
#define XT_TYPE_LONGLONG 8
#define XT_TYPE_INT24 9
#define XT_TYPE_DATE 10
#define XT_TYPE_TIME 11
#define XT_TYPE_DATETIME 12
#define XT_TYPE_YEAR 13
#define XT_TYPE_NEWDATE 14
#define XT_TYPE_VARCHAR 15
#define XT_TYPE_BIT 16
#define XT_TYPE_TIMESTAMP2 17
#define XT_TYPE_DATETIME2 18
#define XT_TYPE_TIME2 19
#define XT_TYPE_NEWDECIMAL 246
#define XT_TYPE_ENUM 247
#define XT_TYPE_SET 248
#define XT_TYPE_TINY_BLOB 249
#define XT_TYPE_MEDIUM_BLOB 250
#define XT_TYPE_LONG_BLOB 251
#define XT_TYPE_BLOB 252
/* CHAR, BINARY; also UUID, INET6 and INET4: 16 or 4 bytes of collation 63, flagged UNSIGNED */
#define XT_TYPE_STRING 254
#define XT_TYPE_GEOMETRY 255

/** xt_column.flags */
#define XT_COLUMN_UNSIGNED 1u
#define XT_COLUMN_NOT_NULL 2u
#define XT_COLUMN_AUTO_INCREMENT 4u
#define XT_COLUMN_VIRTUAL 8u          /* generated, not stored */
#define XT_COLUMN_GENERATED_STORED 16u
#define XT_COLUMN_ROW_START 32u       /* system versioning */
#define XT_COLUMN_ROW_END 64u

/** One column and its place in the row image. */
typedef struct xt_column {
  const char *name;
  /** Byte offset of the value in the row. */
  uint32_t offset;
  /** Bytes of the value in the row, length bytes and pointer included (pack_length). */
  uint32_t length;
  /** Greatest number of data bytes: strings and BIT; others: as `length`. BLOB family: 0. */
  uint32_t octets;
  /** Collation number; 63 for everything that is not text. */
  uint32_t collation;
  /** XT_COLUMN_* */
  uint32_t flags;
  /** Byte of the row that has the null bit; meaningless if null_mask is 0. */
  uint32_t null_offset;
  /** The null bit; 0 = NOT NULL. */
  uint8_t null_mask;
  /** XT_TYPE_* */
  uint8_t type;
  /** VARCHAR: 1 or 2; BLOB family: 1 to 4; else 0. */
  uint8_t length_bytes;
  /** NEWDECIMAL: scale; *2 temporal types: digits of the fraction. */
  uint8_t decimals;
  /** NEWDECIMAL: digits in all; BIT: bits; else 0. */
  uint32_t precision;
} xt_column;

/** xt_key_part.flags: descending. */
#define XT_PART_DESC 1u

/** One part of a key. */
typedef struct xt_key_part {
  /** Position in xt_table_def.columns. */
  uint32_t column;
  /** Bytes of the column that are in the key; less than the column's octets: a prefix. BLOBs
   *  always give a prefix here. */
  uint32_t length;
  /** XT_PART_* */
  uint32_t flags;
} xt_key_part;

/** xt_key.flags */
#define XT_KEY_UNIQUE 1u
#define XT_KEY_PRIMARY 2u
#define XT_KEY_FULLTEXT 4u
#define XT_KEY_SPATIAL 8u

/** One key. Its position in xt_table_def.keys is its number in all calls on the handle. */
typedef struct xt_key {
  const char *name;
  const xt_key_part *parts;
  uint32_t parts_count;
  /** XT_KEY_* */
  uint32_t flags;
} xt_key;

/** Columns, keys and row image of a table: the template of a handle, and the body of
 *  table_create. Everything it points to is copied by the call. */
typedef struct xt_table_def {
  uint32_t struct_size;
  uint32_t reserved;
  const xt_column *columns;
  const xt_key *keys;
  uint32_t columns_count;
  uint32_t keys_count;
  /** Bytes of a row image, and how many of them are null bytes. */
  uint32_t row_length;
  uint32_t null_bytes;
} xt_table_def;

/** Facts about a table that do not change while the handle is open. */
typedef struct xt_table_info {
  uint32_t struct_size;
  /** XT_ROW_FORMAT_* (ddl.h) */
  uint32_t row_format;
  /** SYS_TABLES.ID and .SPACE */
  uint64_t table_id;
  uint32_t space_id;
  /** Bytes of a position. */
  uint32_t ref_length;
  /** The key by which rows are stored, or XT_NO_KEY if it is a hidden one. */
  uint32_t clustered_key;
  /** XT_TABLE_* */
  uint32_t flags;
  /** Id of the transaction that last changed the definition. */
  uint64_t version;
} xt_table_info;

/** xt_table_info.flags */
#define XT_TABLE_DISCARDED 1u    /* no tablespace: reads and writes fail */
#define XT_TABLE_CORRUPT 2u      /* damage is known */
#define XT_TABLE_READ_ONLY 4u
#define XT_TABLE_TEMPORARY 8u
#define XT_TABLE_NO_COLLATION 16u /* the host lacks a collation: readable in clustered order, and by keys that do
                                     without it; writing it gives XT_COLLATION_UNKNOWN */

/* ---- open, bind, close ----------------------------------------------------------------------- */

/** table_open flags: damage is reported by reads, not by the open (CHECK TABLE, DROP). */
#define XT_OPEN_EVEN_IF_DAMAGED 1u

/** Opens a table. `name` is "database/table" as the dictionary spells it (MariaDB's file-name
 *  encoding, "@0024"; a leading "./" or directory is ignored). `def` must agree with the dictionary:
 *  same columns in the same order, keys found by name. The session is only used for errors; the
 *  handle is not bound yet. The host is asked for the collations of all keys now, with nothing
 *  latched; without that of the clustered key there is no order to read in.
 *  Owner: caller; table_close. Thread: owner. Codes: common, XT_NO_SUCH_TABLE,
 *  XT_TABLE_NEEDS_UPGRADE, XT_TABLESPACE_MISSING, XT_CRASHED, XT_COLLATION_UNKNOWN,
 *  XT_UNSUPPORTED, XT_DECRYPTION_FAILED. */
typedef xt_status xt_table_open_fn(xt_session *session, const char *name, const xt_table_def *def,
                                   uint32_t flags, xt_table **table);

/** Closes the handle (released first if it is bound). NULL is allowed.
 *  Thread: owner. Codes: common. */
typedef xt_status xt_table_close_fn(xt_table *table);

/** Thread: owner. Codes: common. */
typedef xt_status xt_table_info_get_fn(const xt_table *table, xt_table_info *info);

/** xt_table_use.lock: what reads do. */
#define XT_LOCK_NONE 0 /* consistent read of the session's view */
#define XT_LOCK_S 1    /* shared locks: LOCK IN SHARE MODE, the source of INSERT ... SELECT */
#define XT_LOCK_X 2    /* exclusive: FOR UPDATE, UPDATE, DELETE, REPLACE; INSERT too */

/** xt_table_use.wait: when a row is locked by another. */
#define XT_WAIT_DEFAULT 0     /* innodb_lock_wait_timeout of the session */
#define XT_WAIT_NOWAIT 1      /* XT_LOCK_WAIT_TIMEOUT at once */
#define XT_WAIT_SKIP_LOCKED 2 /* leave the row out */
#define XT_WAIT_SECONDS 3     /* at most wait_seconds */

/** xt_table_use.flags: rows will be changed through this handle. */
#define XT_USE_WRITE 1u
/** Within LOCK TABLES: also lock the whole table in the engine. */
#define XT_USE_LOCK_TABLE 2u

typedef struct xt_table_use {
  uint32_t struct_size;
  uint32_t lock;
  uint32_t wait;
  uint32_t wait_seconds;
  /** XT_USE_* */
  uint32_t flags;
  uint32_t reserved;
} xt_table_use;

/** Binds the handle to the session for one statement (external_lock, start_stmt). Needed before any
 *  read or write. Resets the column set to "all" and every table_extra switch. Binding a handle
 *  that is bound already binds it anew. statement_begin comes first.
 *  Thread: owner of both. Codes: common, XT_WRONG_ORDER, XT_TABLE_DEF_CHANGED, XT_READ_ONLY,
 *  XT_TABLESPACE_MISSING, XT_TRX_ABORTED, XT_LOCK_WAIT_TIMEOUT, XT_COLLATION_UNKNOWN (to write). */
typedef xt_status xt_table_use_fn(xt_table *table, xt_session *session, const xt_table_use *use);

/** Ends the statement's use: scans end, BLOB memory is freed, the handle is unbound. A handle that
 *  is not bound: XT_OK. Thread: owner. Codes: common. */
typedef xt_status xt_table_release_fn(xt_table *table);

/** The columns that the statement reads and writes: bit i of the maps is byte i/8, mask 1 << i%8.
 *  NULL: all. Reads fill only columns of the read map (and, with XT_LOCK_X, may fill more); others
 *  are left as they are. Updates look only at columns of the write map.
 *  Copied. Thread: owner. Codes: common. */
typedef xt_status xt_table_columns_fn(xt_table *table, const uint8_t *read_map,
                                      const uint8_t *write_map, uint32_t map_bytes);

/** table_extra's switches; all off after table_use. */
#define XT_EXTRA_KEYREAD 1                  /* read only columns of the index */
#define XT_EXTRA_NO_KEYREAD 2
#define XT_EXTRA_KEYREAD_PRESERVE_FIELDS 3  /* leave other columns of the row alone */
#define XT_EXTRA_IGNORE_DUPLICATE 4         /* INSERT IGNORE: a duplicate is not logged as error */
#define XT_EXTRA_NO_IGNORE_DUPLICATE 5
#define XT_EXTRA_WRITE_CAN_REPLACE 6        /* REPLACE: lock the duplicate exclusively */
#define XT_EXTRA_WRITE_CANNOT_REPLACE 7
#define XT_EXTRA_INSERT_WITH_UPDATE 8       /* ON DUPLICATE KEY UPDATE */
#define XT_EXTRA_SEMI_CONSISTENT 9          /* UPDATE, DELETE at READ COMMITTED */
#define XT_EXTRA_NO_SEMI_CONSISTENT 10
#define XT_EXTRA_BEGIN_COPY 11              /* ALTER ... ALGORITHM=COPY fills this table */
#define XT_EXTRA_BEGIN_IGNORE_COPY 12
#define XT_EXTRA_END_COPY 13
#define XT_EXTRA_ABORT_COPY 14

/** Thread: owner. Codes: common, XT_TRX_ABORTED (END_COPY). */
typedef xt_status xt_table_extra_fn(xt_table *table, uint32_t what);

/* ---- reading without an index ---------------------------------------------------------------- */

/** Starts a scan of all rows in clustered order. `sequential` 0: only read_position will be used.
 *  Thread: owner. Codes: common, XT_WRONG_ORDER (an index or scan is open). */
typedef xt_status xt_scan_begin_fn(xt_table *table, uint8_t sequential);

/** The next row. Thread: owner. Codes: common, XT_END_OF_FILE, XT_CRASHED, XT_LOCK_WAIT_TIMEOUT,
 *  XT_DEADLOCK, XT_LOCK_TABLE_FULL, XT_INTERRUPTED, XT_RECORD_CHANGED ("read codes"). */
typedef xt_status xt_scan_next_fn(xt_table *table, uint8_t *row);

/** Ends the scan. No scan: XT_OK. Thread: owner. Codes: common. */
typedef xt_status xt_scan_end_fn(xt_table *table);

/** Stores the position of `row`, which must be the row read last (a copy is fine). `ref_size` must
 *  be at least ref_length. Thread: owner. Codes: common, XT_NO_ACTIVE_RECORD. */
typedef xt_status xt_table_position_fn(xt_table *table, const uint8_t *row, uint8_t *ref,
                                       uint32_t ref_size);

/** Reads the row at a position that table_position or read_n stored. A table_scan or index may be
 *  open: its place is kept. Thread: owner. Codes: read codes, XT_KEY_NOT_FOUND (gone). */
typedef xt_status xt_read_position_fn(xt_table *table, uint8_t *row, const uint8_t *ref,
                                      uint32_t ref_length);

/** `*order` gets -1, 0, 1: which position comes first in clustered order.
 *  Thread: owner. Codes: common. */
typedef xt_status xt_compare_positions_fn(const xt_table *table, const uint8_t *a, const uint8_t *b,
                                          int32_t *order);

/** xt_batch.direction */
#define XT_NEXT 0
#define XT_PREV 1

/** Rows in one call. */
typedef struct xt_batch {
  uint32_t struct_size;
  /** XT_NEXT or XT_PREV (index only). */
  uint32_t direction;
  /** `capacity` row images, each `row_stride` bytes after the other (>= row_length). */
  uint8_t *rows;
  /** Positions of the rows, `ref_stride` bytes apart; NULL if not wanted. */
  uint8_t *refs;
  uint32_t row_stride;
  uint32_t ref_stride;
  uint32_t capacity;
  /** Out: rows stored. Written with every code; valid rows stand before an error. */
  uint32_t count;
} xt_batch;

/** The next rows of the open scan or index, at most `capacity`. XT_OK with count < capacity is
 *  possible; the end is told by XT_END_OF_FILE, with the last rows or after them. The row last
 *  stored is the current row for update_row, delete_row, unlock_row.
 *  Thread: owner. Codes: read codes. */
typedef xt_status xt_read_n_fn(xt_table *table, xt_batch *batch);

/** Gives up the lock of the row read last, where the isolation level allows (READ COMMITTED).
 *  Thread: owner. Codes: common. */
typedef xt_status xt_unlock_row_fn(xt_table *table);

/** True (1) if the row read last is the last committed version of a row that another transaction
 *  holds locked (XT_EXTRA_SEMI_CONSISTENT): read it again to wait. Thread: owner. */
typedef uint8_t xt_was_semi_consistent_fn(const xt_table *table);

/* ---- writing --------------------------------------------------------------------------------- */

/** Inserts. A value in the AUTO_INCREMENT column pushes the counter; the host fills it beforehand
 *  (autoinc_reserve). On XT_DUPLICATE_KEY the row is not there, whatever indexes came first.
 *  Thread: owner. Codes: common, XT_DUPLICATE_KEY, XT_ROW_TOO_BIG, XT_FILE_FULL, XT_CRASHED,
 *  XT_LOCK_WAIT_TIMEOUT, XT_DEADLOCK, XT_LOCK_TABLE_FULL, XT_INTERRUPTED, XT_READ_ONLY,
 *  XT_UNDO_RECORD_TOO_BIG, XT_TOO_MANY_TRANSACTIONS, XT_NO_REFERENCED_ROW ("write codes"). */
typedef xt_status xt_insert_row_fn(xt_table *table, const uint8_t *row);

/** Changes the row read last to `new_row`. Only columns of the write map are looked at. The engine
 *  compares with the row itself: `old_row` may be NULL. Thread: owner. Codes: write codes,
 *  XT_RECORD_IS_THE_SAME, XT_NO_ACTIVE_RECORD, XT_RECORD_CHANGED, XT_ROW_IS_REFERENCED. */
typedef xt_status xt_update_row_fn(xt_table *table, const uint8_t *old_row, const uint8_t *new_row);

/** Deletes the row read last; `row` may be NULL. Thread: owner. Codes: write codes, XT_NO_ACTIVE_RECORD,
 *  XT_RECORD_CHANGED, XT_ROW_IS_REFERENCED. */
typedef xt_status xt_delete_row_fn(xt_table *table, const uint8_t *row);

/** A hint: about `rows` inserts follow (0: unknown); bulk_end ends it and reports what was held
 *  back. In a statement with XT_STATEMENT_NO_FOREIGN_KEYS and XT_STATEMENT_RELAXED_UNIQUE, rows for an
 *  empty table that nobody else uses are collected, and the indexes built at once: the table is locked
 *  to the end of the transaction; duplicates are found by bulk_end, of which nothing is left then, and
 *  bulk_refused tells the first one. A statement that failed may be rolled back without bulk_end. Rows
 *  of a table that is released before bulk_end are lost, and the transaction cannot be committed
 *  then. Reading through the handle ends it.
 *  Thread: owner. Codes: write codes. */
typedef xt_status xt_bulk_begin_fn(xt_table *table, uint64_t rows);
typedef xt_status xt_bulk_end_fn(xt_table *table);

/** After bulk_end gave XT_DUPLICATE_KEY: puts the columns of the key into `row`, a row image; others stay as
 *  they are. BLOB memory lives until the next call on the handle. Since 1.1.
 *  Thread: owner. Codes: common, XT_KEY_NOT_FOUND. */
typedef xt_status xt_bulk_refused_fn(xt_table *table, uint8_t *row);

/** Reserves AUTO_INCREMENT values `first`, `first` + increment ... for `wanted` rows (0: unknown).
 *  Values follow MySQL's rule for auto_increment_offset and auto_increment_increment. `*first` and
 *  `*count` are what was reserved; reserved values are not given back.
 *  Thread: owner. Codes: common, XT_AUTOINC_READ_FAILED, XT_AUTOINC_RANGE, XT_LOCK_WAIT_TIMEOUT,
 *  XT_WRONG_COMMAND (no such column). */
typedef xt_status xt_autoinc_reserve_fn(xt_table *table, uint64_t offset, uint64_t increment,
                                        uint64_t wanted, uint64_t *first, uint64_t *count);

/** Sets the next value (ALTER TABLE ... AUTO_INCREMENT = n). Never below the largest in the table.
 *  Thread: owner. Codes: write codes, XT_WRONG_COMMAND. */
typedef xt_status xt_autoinc_set_fn(xt_table *table, uint64_t next);

/* ---- statistics ------------------------------------------------------------------------------ */

typedef struct xt_table_stats {
  uint32_t struct_size;
  uint32_t reserved;
  /** Estimates. */
  uint64_t rows;
  /** Bytes of the clustered index, of the other indexes, and free within the tablespace. */
  uint64_t data_length;
  uint64_t index_length;
  uint64_t free_length;
  /** Next AUTO_INCREMENT value, 0 if the table has none. */
  uint64_t auto_increment;
  /** Seconds since 1970 UTC, 0 = unknown. */
  uint64_t update_time;
  /** Pages of the clustered index: cost of a scan. */
  uint64_t clustered_pages;
  /** Upper bound of rows, for sort buffers. */
  uint64_t rows_max;
} xt_table_stats;

/** Cheap; from memory. Needs no table_use. Thread: owner. Codes: common. */
typedef xt_status xt_table_stats_get_fn(xt_table *table, xt_table_stats *stats);

/** Average number of rows that share a value of the key's first 1, 2 ... `count` parts (parts of the
 *  clustered key follow the key's own). At least 1. Thread: owner. Codes: common. */
typedef xt_status xt_table_rec_per_key_fn(xt_table *table, uint32_t key, double *rec_per_key,
                                          uint32_t count);

#ifdef __cplusplus
}
#endif

#endif /* XTRADB_TABLE_H */
