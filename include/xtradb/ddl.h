/* xtradb/ddl.h - creating and dropping tables; the dictionary.
 *
 * Every DDL call commits the session's transaction, if one is open, and is atomic: after a crash
 * it has happened or not. No handle of another session may be using the table: XT_BUSY.
 */
#ifndef XTRADB_DDL_H
#define XTRADB_DDL_H

#include "info.h"
#include "table.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XT_ROW_FORMAT_DEFAULT 0 /* innodb_default_row_format */
#define XT_ROW_FORMAT_REDUNDANT 1
#define XT_ROW_FORMAT_COMPACT 2
#define XT_ROW_FORMAT_DYNAMIC 3
#define XT_ROW_FORMAT_COMPRESSED 4

/** Three-way options. */
#define XT_OPTION_DEFAULT 0
#define XT_OPTION_OFF 1
#define XT_OPTION_ON 2

/** xt_create_options.flags: nothing survives the session. */
#define XT_CREATE_TEMPORARY 1u

typedef struct xt_create_options {
  uint32_t struct_size;
  /** XT_CREATE_* */
  uint32_t flags;
  /** XT_ROW_FORMAT_* */
  uint32_t row_format;
  /** KiB, for COMPRESSED; 0 = default. */
  uint32_t key_block_size;
  /** First AUTO_INCREMENT value; 0 = 1. */
  uint64_t auto_increment;
  /** DATA DIRECTORY, or NULL. */
  const char *data_directory;
  /** STATS_PERSISTENT, STATS_AUTO_RECALC: XT_OPTION_* */
  uint32_t stats_persistent;
  uint32_t stats_auto_recalc;
  /** STATS_SAMPLE_PAGES; 0 = default. */
  uint32_t stats_sample_pages;
  /** PAGE_COMPRESSED, ENCRYPTED: XT_OPTION_*; level 1..9, 0 = default; key id 0 = default. */
  uint32_t page_compressed;
  uint32_t page_compression_level;
  uint32_t encrypted;
  uint32_t encryption_key_id;
  uint32_t reserved;
} xt_create_options;

/** Creates table and tablespace. Names as in table_open; the database directory must exist.
 *  `options` NULL: defaults. Thread: owner. Codes: common, XT_TABLE_EXISTS, XT_TABLESPACE_EXISTS,
 *  XT_KEY_TOO_LONG, XT_ROW_TOO_BIG, XT_UNSUPPORTED, XT_READ_ONLY, XT_FILE_FULL, XT_IO,
 *  XT_COLLATION_UNKNOWN. */
typedef xt_status xt_table_create_fn(xt_session *session, const char *name, const xt_table_def *def,
                                     const xt_create_options *options);

/** Thread: owner. Codes: common, XT_NO_SUCH_TABLE, XT_BUSY, XT_READ_ONLY, XT_ROW_IS_REFERENCED. */
typedef xt_status xt_table_drop_fn(xt_session *session, const char *name);

/** Thread: owner. Codes: common, XT_NO_SUCH_TABLE, XT_TABLE_EXISTS, XT_BUSY, XT_READ_ONLY. */
typedef xt_status xt_table_rename_fn(xt_session *session, const char *from, const char *to);

/** Empties the table: a new tablespace and table id, AUTO_INCREMENT from 1. Handles of this session
 *  may be open but not bound; they must be opened again (XT_TABLE_DEF_CHANGED until then).
 *  Thread: owner. Codes: common, XT_NO_SUCH_TABLE, XT_BUSY, XT_READ_ONLY, XT_ROW_IS_REFERENCED. */
typedef xt_status xt_table_truncate_fn(xt_session *session, const char *name);

/** Adds those keys of `def` whose names the dictionary does not have; columns and other keys as in
 *  table_open. On XT_DUPLICATE_KEY (session_error_key counts the keys of `def`) the columns of the key go
 *  into `row`, a row image, unless it is NULL or one of them is a BLOB. Interruptible. Since 1.1.
 *  Thread: owner. Codes: common, XT_NO_SUCH_TABLE, XT_BUSY, XT_READ_ONLY, XT_DUPLICATE_KEY,
 *  XT_KEY_TOO_LONG, XT_ROW_TOO_BIG, XT_UNSUPPORTED, XT_FILE_FULL, XT_IO, XT_INTERRUPTED, XT_CRASHED,
 *  XT_COLLATION_UNKNOWN. */
typedef xt_status xt_index_add_fn(xt_session *session, const char *name, const xt_table_def *def,
                                  uint8_t *row);

/** Drops a secondary index. Since 1.1. Thread: owner. Codes: common, XT_NO_SUCH_TABLE, XT_BUSY,
 *  XT_READ_ONLY, XT_INVALID (no such index), XT_UNSUPPORTED (the rows are in its order). */
typedef xt_status xt_index_drop_fn(xt_session *session, const char *name, const char *index);

/** Drops what the dictionary still has of a database. `database` is "db" or a path that ends in it.
 *  Thread: owner. Codes: as table_drop. */
typedef xt_status xt_database_drop_fn(xt_session *session, const char *database);

/** Facts of a table without opening it. Thread: owner. Codes: common, XT_NO_SUCH_TABLE. */
typedef xt_status xt_table_find_fn(xt_session *session, const char *name, xt_table_info *info);

/** Emits one row (database, table) of two strings for each user table in the dictionary; `database`
 *  NULL: of all. Thread: owner. Codes: common, XT_CANCELLED, XT_CRASHED. */
typedef xt_status xt_tables_list_fn(xt_session *session, const char *database, xt_emit_fn *emit,
                                    void *ctx);

/** A table as the dictionary knows it. Freed by description_free. */
typedef struct xt_description {
  uint32_t struct_size;
  /** XT_ROW_FORMAT_* */
  uint32_t row_format;
  /** Columns with a row image laid out by the engine as a server would (null bytes first, then the
   *  columns in order): it can be given to table_open and table_create as it is. What the
   *  dictionary does not store is approximate: ENUM and SET appear as unsigned integers, DECIMAL,
   *  BINARY and old temporal types as binary strings of their stored length, generated columns
   *  without their expression. */
  xt_table_def def;
  uint64_t table_id;
} xt_description;

/** Describes a table from SYS_TABLES, SYS_COLUMNS, SYS_INDEXES, SYS_FIELDS.
 *  Owner: caller; description_free. Thread: owner. Codes: common, XT_NO_SUCH_TABLE, XT_CRASHED. */
typedef xt_status xt_table_describe_fn(xt_session *session, const char *name,
                                       const xt_description **description);
/** NULL is allowed. Thread: any. Codes: common. */
typedef xt_status xt_description_free_fn(const xt_description *description);

/** table_check flags */
#define XT_CHECK_QUICK 1u
#define XT_CHECK_EXTENDED 2u

/** Walks every index: order, links, counts, agreement of the indexes with each other. Emits one row
 *  (severity "error" | "warning" | "note", text) for each finding, none if all is well. The table is
 *  bound. Thread: owner. Codes: common, XT_CRASHED (errors were found), XT_INTERRUPTED,
 *  XT_CANCELLED. */
typedef xt_status xt_table_check_fn(xt_table *table, uint32_t flags, xt_emit_fn *emit, void *ctx);

/** Recalculates statistics. Thread: owner. Codes: common, XT_CRASHED, XT_INTERRUPTED. */
typedef xt_status xt_table_analyze_fn(xt_table *table);

/** Thread: owner. Codes: common, XT_TRY_ALTER. */
typedef xt_status xt_table_optimize_fn(xt_table *table);

#ifdef __cplusplus
}
#endif

#endif /* XTRADB_DDL_H */
