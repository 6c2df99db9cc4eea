/* The seams inside xtradb-host: what the SQL half and the host half know of each other.
 *
 * Four parts, each with one owner:
 *   1. table_def: a table as SQL sees it and its row and key images (catalog.c, value.c)
 *   2. se_ops: what a storage engine offers to exec (heap.c, xt_engine.c implement it)
 *   3. sink: where results go (output.c implements it, exec calls it)
 *   4. session, host, registry: who is connected, what is loaded (session.c / registry.c)
 *
 * Row and key images are MariaDB's; the layout is written down at `struct column` and `struct key`.
 * Threads: a session belongs to one thread at a time. What is shared says which lock guards it.
 */
#ifndef XTRADB_HOST_HOST_H
#define XTRADB_HOST_HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct host host;
typedef struct session session;
typedef struct engine engine;
typedef struct sink sink;

/* ---------------------------------------------------------------- 1. tables and rows */

enum col_type {
    CT_TINYINT, CT_SMALLINT, CT_MEDIUMINT, CT_INT, CT_BIGINT, /* little-endian 1 2 3 4 8 bytes */
    CT_FLOAT, CT_DOUBLE,                                      /* IEEE little-endian */
    CT_DECIMAL,                                               /* binary decimal */
    CT_DATE, CT_TIME, CT_DATETIME, CT_TIMESTAMP, CT_YEAR,     /* the "2" formats; YEAR 1 byte */
    CT_CHAR, CT_BINARY,                                       /* padded to pack_length */
    CT_VARCHAR, CT_VARBINARY,                                 /* length_bytes + data */
    CT_TEXT, CT_BLOB, CT_JSON,                                /* length_bytes + 8-byte pointer */
    CT_ENUM, CT_SET,                                          /* ordinal / bit mask, little-endian */
    CT_BIT,                                                   /* big-endian, whole bytes */
    CT_UUID, CT_INET4, CT_INET6,                              /* fixed binary 16, 4, 16 */
    CT_GEOMETRY,                                              /* read only, as a BLOB */
    CT_TYPE_COUNT
};

enum {
    COL_NOT_NULL = 1u << 0,
    COL_UNSIGNED = 1u << 1,
    COL_ZEROFILL = 1u << 2,
    COL_AUTO_INC = 1u << 3,
    COL_DEFAULT_NOW = 1u << 4,    /* DEFAULT current_timestamp() */
    COL_ON_UPDATE_NOW = 1u << 5,
    COL_HAS_DEFAULT = 1u << 6,    /* a constant default (may be NULL); its image is in def->defaults */
    COL_EXPLICIT_CHARSET = 1u << 7, /* CHARACTER SET or COLLATE was written with the column */
    COL_NO_CHARSET_SHOWN = 1u << 8
};

/* A column and its place in the row image.
 *
 * The row image (def->row_length bytes): null_bytes bytes first; bit 0 of byte 0 is a filler that is
 * always 1; every nullable column owns one bit (1 = NULL).
 * Then each column at `offset` with `pack_length` bytes. */
struct column {
    char *name;
    uint8_t type;         /* enum col_type */
    uint8_t length_bytes; /* VARCHAR 1 or 2; BLOB 1..4; else 0 */
    uint8_t decimals;     /* DECIMAL scale, FLOAT(m,d) (31 = none), fraction digits of times */
    uint8_t null_mask;    /* bit in row[null_byte]; 0 = NOT NULL */
    uint32_t null_byte;
    uint32_t flags;       /* COL_* */
    uint32_t collation;   /* MariaDB's number: 63 binary, 8 latin1_swedish_ci, 45 utf8mb4_general_ci … */
    uint32_t length;      /* chars/bytes: data octets at most; DECIMAL precision; BIT bits; ints display width */
    uint32_t char_length; /* CHAR/VARCHAR/TEXT: characters */
    uint32_t offset;      /* first byte in the row image */
    uint32_t pack_length; /* bytes at offset */
    uint32_t value_count; /* ENUM, SET */
    char **values;        /* ENUM, SET: members in the column's character set, NUL-terminated */
    uint32_t *value_lens;
    char *comment;        /* or NULL */
    char *default_text;   /* how SHOW CREATE TABLE prints the default, or NULL */
};

/* A key part's place in the key image: [1 null byte if nullable] then, for VARCHAR and BLOB, 2 length
 * bytes and `length` bytes of room; for the others `length` bytes in row format. */
struct key_part {
    uint32_t col;          /* index in def->columns */
    uint32_t length;       /* octets that take part (prefix keys: less than the column) */
    uint32_t store_length; /* bytes in the key image */
    bool nullable;
    bool descending;
    bool prefix;           /* only the first `length` octets are in the key */
};

enum { KEY_UNIQUE = 1u << 0, KEY_PRIMARY = 1u << 1 };

struct key {
    char *name;            /* "PRIMARY" for the primary key */
    uint32_t flags;        /* KEY_* */
    uint32_t part_count;
    struct key_part *parts;
    uint32_t length;       /* sum of store_length */
    char *comment;
};

#define MAX_KEYS 64
#define MAX_KEY_PARTS 16
#define NO_KEY UINT32_MAX

/* A table. Immutable once published by the catalog; held by reference count. */
struct table_def {
    char *db, *name;
    uint32_t column_count;
    struct column *columns;
    uint32_t key_count;
    struct key *keys;         /* the primary key first, then unique NOT NULL keys, unique keys, others */
    uint32_t primary_key;     /* index in keys or NO_KEY */
    uint32_t null_bytes, row_length;
    uint8_t *defaults;        /* a row image holding every column's default */
    uint32_t collation;       /* table default */
    uint32_t autoinc_col;     /* index or UINT32_MAX */
    uint64_t autoinc_start;   /* AUTO_INCREMENT= option, 0 = none */
    uint8_t row_format;       /* enum row_format */
    uint32_t key_block_size;  /* KiB, 0 = none */
    char *engine_name;        /* "InnoDB" */
    char *comment;
    char *options;            /* other table options, printed as they came, or NULL */
    bool from_engine;         /* came from the engine's dictionary, no .xtd file */
    int refs;                 /* guarded by the catalog lock */
};
typedef struct table_def table_def;

enum row_format { RF_DEFAULT, RF_REDUNDANT, RF_COMPACT, RF_DYNAMIC, RF_COMPRESSED };

/* rec.c: rows and keys without an engine. All allocation-free. */
static inline bool rec_is_null(const struct column *c, const uint8_t *row)
{
    return c->null_mask && (row[c->null_byte] & c->null_mask);
}
/* Compares two rows by the parts of a key (NULLs first, DESC parts reversed). */
int rec_compare(const table_def *def, uint32_t key, const uint8_t *a, const uint8_t *b);
/* Compares a row with a key image of `key_length` bytes (may end after any part). <0: row before key. */
int rec_compare_key(const table_def *def, uint32_t key, const uint8_t *row, const uint8_t *image,
                    uint32_t key_length);
/* Builds the key image of the first `parts` parts from a row; returns the bytes written. */
uint32_t rec_make_key(const table_def *def, uint32_t key, uint32_t parts, const uint8_t *row,
                      uint8_t *image);
/* True when a part of the key is NULL in the row (such rows never are duplicates). */
bool rec_key_has_null(const table_def *def, uint32_t key, const uint8_t *row);
/* BLOB columns: bytes and length of a value in a row. */
const uint8_t *rec_blob(const struct column *c, const uint8_t *row, uint32_t *length);
void rec_set_blob(const struct column *c, uint8_t *row, const uint8_t *data, uint32_t length);
static inline bool col_is_blob(const struct column *c)
{
    return c->type == CT_TEXT || c->type == CT_BLOB || c->type == CT_JSON || c->type == CT_GEOMETRY;
}

/* collation.c: leaf functions, callable from any thread under any latch. */
int coll_compare(uint32_t collation, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
                 bool pad_space);
size_t coll_sort_key(uint32_t collation, const uint8_t *s, size_t len, uint8_t *out, size_t out_size);
uint32_t coll_mbminlen(uint32_t collation);
uint32_t coll_mbmaxlen(uint32_t collation);
/* Octets of the first `chars` characters (all octets when there are fewer). */
size_t coll_prefix(uint32_t collation, const uint8_t *s, size_t len, size_t chars);

/* ---------------------------------------------------------------- 2. storage engines */

/* Results of engine calls: 0 or MariaDB's HA_ERR_* number. */
enum {
    SE_OK = 0,
    SE_KEY_NOT_FOUND = 120, SE_FOUND_DUPP_KEY = 121, SE_INTERNAL = 122, SE_RECORD_CHANGED = 123,
    SE_CRASHED = 126, SE_TABLE_CORRUPT = 127, SE_OUT_OF_MEM = 128, SE_WRONG_COMMAND = 131,
    SE_NO_ACTIVE_RECORD = 133, SE_RECORD_FILE_FULL = 135, SE_END_OF_FILE = 137,
    SE_UNSUPPORTED = 138, SE_TO_BIG_ROW = 139, SE_LOCK_WAIT_TIMEOUT = 146, SE_LOCK_TABLE_FULL = 147,
    SE_LOCK_DEADLOCK = 149, SE_CANNOT_ADD_FOREIGN = 150, SE_NO_SAVEPOINT = 153,
    SE_NO_SUCH_TABLE = 155, SE_TABLE_EXIST = 156, SE_TABLE_DEF_CHANGED = 159,
    SE_TABLE_NEEDS_UPGRADE = 164, SE_TABLE_READONLY = 165, SE_AUTOINC_READ_FAILED = 166,
    SE_AUTOINC_ERANGE = 167, SE_GENERIC = 168, SE_RECORD_IS_THE_SAME = 169,
    SE_TOO_MANY_TRXS = 177, SE_INDEX_COL_TOO_LONG = 179, SE_INDEX_CORRUPT = 180,
    SE_UNDO_REC_TOO_BIG = 181, SE_TABLESPACE_EXISTS = 184, SE_ABORTED_BY_USER = 188,
    SE_DECRYPTION_FAILED = 192, SE_TABLESPACE_MISSING = 194, SE_ROLLBACK = 200
};

enum se_find { /* numbers of HA_READ_* */
    FIND_EXACT = 0, FIND_OR_NEXT = 1, FIND_OR_PREV = 2, FIND_AFTER = 3, FIND_BEFORE = 4,
    FIND_PREFIX = 5, FIND_PREFIX_LAST = 6, FIND_PREFIX_LAST_OR_PREV = 7
};
enum se_lock { SE_LOCK_NONE, SE_LOCK_SHARED, SE_LOCK_EXCLUSIVE };
enum se_isolation { SE_READ_UNCOMMITTED, SE_READ_COMMITTED, SE_REPEATABLE_READ, SE_SERIALIZABLE };

/* One end of a range; image NULL = open end. */
struct se_bound {
    const uint8_t *image;
    uint32_t length;
    bool inclusive;
};

struct se_info {
    uint64_t rows;       /* estimate */
    uint64_t data_bytes, index_bytes, free_bytes, mean_row;
    uint64_t autoinc;    /* next value or 0 */
    const char *row_format;
};

struct is_value { const char *ptr; size_t len; bool null; };
/* Row callback of I_S tables, variables and status: a return value other than 0 ends the fill. */
typedef int (*row_fn)(void *ctx, const struct is_value *values, size_t count);

/* An engine's table handle. Engines embed it as their first member. One session, one thread. */
typedef struct se_table {
    engine *eng;
    const table_def *def;
    session *owner;
} se_table;

/* What kind of value a SET gives. */
enum set_type { SET_ANY_TYPE, SET_INTEGER, SET_FRACTION, SET_TEXT };

/* Every function that fails returns an SE_ number and may leave a text with sql_engine_message().
 * `es` is the engine's part of a session, made by session_open. */
struct se_ops {
    int (*session_open)(engine *e, session *s, void **es);
    void (*session_close)(engine *e, void *es);       /* rolls back what is open */
    bool (*in_transaction)(engine *e, void *es);      /* holds a transaction that was started */
    void (*interrupt)(engine *e, void *es);           /* from any thread; wakes a wait */

    /* Tables. Names are SQL identifiers in utf8; engines encode them for files themselves. */
    int (*create_table)(engine *e, void *es, const table_def *def);
    int (*drop_table)(engine *e, void *es, const char *db, const char *name);
    int (*rename_table)(engine *e, void *es, const char *db, const char *name, const char *new_db,
                        const char *new_name);
    int (*truncate_table)(engine *e, void *es, const table_def *def);
    int (*check_table)(se_table *t, bool extended, char *message, size_t size); /* 0: message = OK */
    int (*analyze_table)(se_table *t); /* recalculates statistics; may be NULL */
    /* Definition from the engine's own dictionary; names of tables of a database (NULL: skip). */
    int (*describe_table)(engine *e, void *es, const char *db, const char *name, table_def **out);
    int (*list_tables)(engine *e, void *es, const char *db, row_fn fn, void *ctx);

    /* Handles. */
    int (*open)(engine *e, void *es, const table_def *def, se_table **out);
    void (*close)(se_table *t);

    /* Statements and transactions. A statement that fails calls statement_end(rollback = true). */
    int (*statement_start)(engine *e, void *es);
    int (*statement_end)(engine *e, void *es, bool rollback);
    int (*begin)(engine *e, void *es, enum se_isolation level, bool read_only, bool snapshot);
    int (*commit)(engine *e, void *es);
    int (*rollback)(engine *e, void *es);
    int (*savepoint)(engine *e, void *es, const char *name);
    int (*rollback_to)(engine *e, void *es, const char *name);
    int (*release)(engine *e, void *es, const char *name);

    /* For the statement that begins: lock mode and the columns it reads (bit i = column i). */
    int (*table_start)(se_table *t, enum se_lock lock, const uint8_t *read_set);

    /* Reading. Each fills `row`; BLOB memory lives until the next call on the handle. */
    int (*index_read)(se_table *t, uint32_t key, uint8_t *row, const uint8_t *image,
                      uint32_t key_length, enum se_find find);
    int (*index_first)(se_table *t, uint32_t key, uint8_t *row);
    int (*index_last)(se_table *t, uint32_t key, uint8_t *row);
    int (*index_next)(se_table *t, uint8_t *row);
    int (*index_prev)(se_table *t, uint8_t *row);
    int (*index_end)(se_table *t);
    int (*rnd_init)(se_table *t);
    int (*rnd_next)(se_table *t, uint8_t *row);
    int (*rnd_end)(se_table *t);
    uint32_t (*ref_length)(se_table *t);
    void (*position)(se_table *t, const uint8_t *row, uint8_t *ref);
    int (*rnd_pos)(se_table *t, uint8_t *row, const uint8_t *ref);
    /* UPDATE: rows that others hold locked may be shown as last committed. One that matches is
     * read again by reading on, then locked. Both may be NULL. */
    void (*semi_consistent)(se_table *t);
    bool (*was_semi_consistent)(se_table *t);
    void (*unlock_row)(se_table *t); /* the row just read does not match WHERE; may be NULL */

    /* Writing. update and delete act on the row read last; `old` is its image. */
    int (*write_row)(se_table *t, uint8_t *row);
    int (*update_row)(se_table *t, const uint8_t *old, uint8_t *row);
    int (*delete_row)(se_table *t, const uint8_t *old);
    uint32_t (*error_key)(se_table *t); /* key of the last SE_FOUND_DUPP_KEY */
    /* Reserves `count` values; *first is the first. write_row moves the counter past larger values. */
    int (*autoinc_reserve)(se_table *t, uint64_t count, uint64_t *first);
    int (*autoinc_set)(se_table *t, uint64_t next); /* ALTER TABLE … AUTO_INCREMENT; may be NULL */

    uint64_t (*records_in_range)(se_table *t, uint32_t key, struct se_bound low,
                                 struct se_bound high);
    int (*info)(se_table *t, struct se_info *out);

    /* What SHOW shows. Rows of variables: name, value; status the same. Any may be NULL. */
    int (*show_variables)(engine *e, void *es, bool global, row_fn fn, void *ctx);
    int (*show_status)(engine *e, void *es, row_fn fn, void *ctx);
    /* `value` NULL: DEFAULT. 0, or an SQL error number: 1193 unknown, 1231 bad value,
     * 1232 bad type, 1238 read only, 1229 global only. */
    int (*set_variable)(engine *e, void *es, bool global, const char *name, const char *value,
                        enum set_type type);
    int (*monitor_text)(engine *e, void *es, char **text); /* malloc'd */

    /* From any thread, while the session is open: does its statement wait for a lock now? False as
     * soon as the lock is granted, even if the waiter has not woken yet. For the script runner. */
    bool (*waits_for_lock)(engine *e, void *es);

    /* About `rows` write_row calls follow (0: unknown), and they are over. bulk_end may find the duplicate:
     * bulk_refused puts its key columns into a row. All may be NULL. */
    int (*bulk_begin)(se_table *t, uint64_t rows);
    int (*bulk_end)(se_table *t);
    int (*bulk_refused)(se_table *t, uint8_t *row);
    /* Adds the keys of `def` that the engine does not have; drops one. On SE_FOUND_DUPP_KEY *key and the key's
     * columns in `row` say which entry. May be NULL. */
    int (*add_keys)(engine *e, void *es, const table_def *def, uint8_t *row, uint32_t *key);
    int (*drop_key)(engine *e, void *es, const char *db, const char *name, const char *key);
};

/* A loaded engine: made by heap_engine_new() or xt_engine_new(), owned by the registry. */
struct engine {
    const struct se_ops *ops;
    char name[64];          /* as the library spells it */
    void *ctx;              /* the engine's own */
    uint32_t slot;          /* index in session->parts, given by the registry */
    const char *comment;
    bool transactional, savepoints, xa;
};

#define MAX_ENGINES 8

engine *heap_engine_new(host *h);
void heap_engine_free(engine *e);

/* xt_engine.c: one loaded library. The loader passes the table of functions it got from xtradb_api.
 * new: initialises the engine with the host's settings; NULL and a text in err when that fails.
 * free: deinit; SE number when calls are in flight ("busy"), the engine then lives on. */
struct xt_api;
engine *xt_engine_new(host *h, const struct xt_api *api, uint32_t plugin_index, char *err,
                      size_t err_size);
int xt_engine_free(engine *e, char *err, size_t err_size);

/* An INFORMATION_SCHEMA table of a plugin. */
struct is_column {
    const char *name;
    uint8_t type;      /* CT_BIGINT, CT_INT, CT_VARCHAR, CT_DATETIME … */
    uint32_t length;
    bool nullable, is_unsigned;
};
typedef struct is_table {
    char name[64];
    uint32_t column_count;
    const struct is_column *columns;
    int (*fill)(struct is_table *t, session *s, row_fn fn, void *fn_ctx);
    void *ctx;
} is_table;
/* xt_engine.c: wraps plugin number `plugin_index` of a library; the engine must be initialised when
 * fill runs (else no rows). eng may be NULL. */
is_table *xt_is_table_new(host *h, const struct xt_api *api, uint32_t plugin_index, engine *eng);
void xt_is_table_free(is_table *t);

/* ---------------------------------------------------------------- 3. results */

struct sink_column {
    const char *name;
    bool numeric;  /* right-aligned by the client */
    bool binary;   /* bytes rather than text */
    bool not_null; /* never NULL: a boxed table leaves no room for that word */
};
struct sink_value { const char *ptr; size_t len; bool null; };
struct sink_ok {
    uint64_t affected, insert_id;
    uint32_t warnings;
    const char *info;   /* "Rows matched: 1  Changed: 1  Warnings: 0" or NULL */
};

/* A statement calls either columns, row*, end – or ok – or error (also after columns). */
struct sink {
    void (*columns)(sink *k, const struct sink_column *columns, size_t count);
    void (*row)(sink *k, const struct sink_value *values, size_t count);
    void (*end)(sink *k, uint32_t warnings);
    void (*ok)(sink *k, const struct sink_ok *ok);
    void (*error)(sink *k, unsigned code, const char *sqlstate, const char *message);
};

/* ---------------------------------------------------------------- 4. host, sessions, registry */

struct host_setting { char *name, *value; }; /* innodb_… as options gave them, '_' form, no prefix -- */

/* The process. Filled by main.c before the first session; lists guarded by `lock`. */
struct host {
    char *datadir;               /* no trailing slash */
    char *plugin_dir;
    struct host_setting *settings; /* options that no part of the host itself takes */
    size_t setting_count;
    pthread_mutex_t lock;        /* sessions, registry */
    session *sessions;           /* linked by session->next */
    const engine *leaving;       /* set by UNINSTALL: who holds nothing of it begins no statement meanwhile */
    uint32_t next_session_id;
    void *registry;              /* registry.c */
    void *catalog;               /* catalog.c */
    void (*log)(host *h, int level, const char *text); /* 0 note 1 warning 2 error; from any thread */
};

/* catalog.c: after datadir is set, before sessions. */
int catalog_open(host *h);
void catalog_close(host *h);

/* session.c */
session *session_open(host *h);
void session_close(session *s);
uint32_t session_id(const session *s);
host *session_host(const session *s);
const char *session_db(const session *s);  /* "" when none */
/* Runs one statement (no delimiter at the end) and reports to the sink. 0 or the SQL error number. */
unsigned session_run(session *s, const char *sql, size_t len, sink *k);
/* Another thread: ends the running statement with error 1317. */
void session_interrupt(session *s);
/* Another thread, while the session is open: does its statement wait for a lock, of an engine
 * (se_ops.waits_for_lock) or of the host's own? */
bool session_waits_for_lock(session *s);
/* For UNINSTALL, with host->lock held by the caller: another session than `but` that runs a statement
 * or has a transaction open in `e`; its id, or 0 when there is none. Lets the ones that are at work
 * come to their end first, up to a second (the lock is given back meanwhile), but does not wait for a
 * transaction in which nothing happens. While host->leaving is `e` nobody begins anew. */
uint32_t session_engine_user(host *h, const engine *e, const session *but);
/* For UNINSTALL, with host->lock held and no users: closes every session's handles and part in `e`. */
void session_forget_engine(host *h, engine *e);

/* errors.c: the diagnostics area of a session. The text of a known number comes from the table and
 * takes the arguments of MySQL's format. Returns code. */
unsigned sql_error(session *s, unsigned code, ...);
unsigned sql_error_text(session *s, unsigned code, const char *text);
void sql_warning(session *s, unsigned code, ...);
void sql_note(session *s, unsigned code, ...);
/* A text that explains the next SE_ number an engine returns in this session. */
void sql_engine_message(session *s, const char *text);

/* registry.c (hostmain). */
engine *registry_engine(host *h, const char *name);          /* active engine or NULL */
engine *registry_engine_at(host *h, uint32_t slot);          /* or NULL */
/* An INFORMATION_SCHEMA table, or NULL. It stays while it is held: give it back after the fill. */
is_table *registry_is_table(host *h, const char *name);
void registry_is_table_done(host *h, is_table *t);
/* Rows of SHOW PLUGINS: Name, Status, Type, Library, License, + Version, Maturity, Description. */
int registry_plugins(host *h, row_fn fn, void *ctx);
/* Rows of SHOW ENGINES: Engine, Support, Comment, Transactions, XA, Savepoints. */
int registry_engines(host *h, row_fn fn, void *ctx);
/* INSTALL PLUGIN name SONAME 'lib' (name NULL: INSTALL SONAME). 0 or the number given to sql_error. */
unsigned plugin_install(session *s, const char *name, const char *soname, bool if_not_exists);
unsigned plugin_uninstall(session *s, const char *name, const char *soname, bool if_exists);

#endif
