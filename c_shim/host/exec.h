/* Inside of the executor: the session, statement execution, expressions, plans. */
#ifndef XTRADB_HOST_EXEC_H
#define XTRADB_HOST_EXEC_H

#include <stdarg.h>
#include <stdatomic.h>

#include "ast.h"
#include "catalog.h"
#include "host.h"
#include "value.h"

/* ---- diagnostics ---- */
enum level { LEVEL_NOTE, LEVEL_WARNING, LEVEL_ERROR };
struct condition {
    uint8_t level;
    unsigned code;
    char *text;
};
struct diagnostics {
    struct condition *list;
    uint32_t count, kept;    /* count goes on when the list is full (64) */
    unsigned error;          /* number of the statement's error, 0 = none */
    char error_text[512];
    char engine_text[512];   /* sql_engine_message */
};

/* ---- session ---- */
struct part {                /* the session in one engine */
    engine *eng;
    void *es;
    bool in_trx, in_statement;
};
struct open_table {          /* a handle of this session; kept between statements */
    struct open_table *next;
    table_def *def;
    engine *eng;
    se_table *handle;
    bool in_use;
};
struct variable {            /* @name, or a system variable that is only remembered */
    struct variable *next;
    char *name;
    struct value value;      /* V_STRING points to malloc'd memory; decimals are kept as strings */
};
struct mdl_held;

struct session {
    host *h;
    session *next;
    uint32_t id;
    char *db;
    struct arena arena;      /* the statement's */
    struct diagnostics diag;
    sink *sink;
    /* statement */
    const char *sql;
    size_t sql_len;
    uint64_t row_number;     /* of the row that is written, for "at row n" */
    int64_t now_seconds;
    uint32_t now_micros;
    atomic_bool busy, interrupted, mdl_waiting;
    uint32_t metadata_wait_seconds; /* lock_wait_timeout */
    /* transaction */
    bool autocommit, explicit_trx, trx_read_only, trx_snapshot;
    uint8_t isolation, next_isolation; /* 255 = none given */
    bool next_read_only;
    struct part parts[MAX_ENGINES]; /* eng and es change under tables_lock */
    pthread_mutex_t tables_lock; /* DDL of others closes idle handles */
    struct open_table *tables;
    struct mdl_held *mdl;
    bool tables_locked;
    struct { char *db, *name; bool write; } *locked;
    uint32_t locked_count;
    /* variables */
    struct variable *user_vars, *system_vars;
    uint32_t collation;      /* of literals */
    bool division_checked;   /* sql_mode: ERROR_FOR_DIVISION_BY_ZERO */
    bool writing;            /* the statement stores rows and is not IGNORE */
    bool strict, zero_is_value; /* sql_mode: STRICT_…, NO_AUTO_VALUE_ON_ZERO */
    int zone_seconds;
    uint64_t last_insert_id, insert_id_now, found_rows;
    int64_t row_count;
    bool foreign_key_checks, unique_checks;
    uint32_t lock_wait_seconds; /* of the statement: 0 = default, n + 1 = WAIT n */
    bool skip_locked;
};

uint32_t session_collation(const session *s);
/* True between statements of one transaction (BEGIN or autocommit = 0). */
bool session_in_transaction(const session *s);

/* errors.c */
unsigned sql_verror(session *s, unsigned code, va_list args);
const char *sql_state(unsigned code);
void sql_condition_text(session *s, enum level level, unsigned code, const char *text);
void diag_reset(session *s);
void diag_free(session *s);
/* The error for an SE_ number from an operation on a table; whole-transaction rollbacks are done. */
unsigned se_error(session *s, int rc, const table_def *def, se_table *t);

/* ---- trx.c: statements and transactions in the engines ---- */
unsigned part_open(session *s, engine *e, struct part **out);
unsigned statement_begin(session *s, engine *e);     /* starts a transaction when none is open */
unsigned statement_finish(session *s, bool ok);      /* ends in all parts; commits in autocommit */
unsigned transaction_commit(session *s);
unsigned transaction_rollback(session *s);
void transaction_aborted(session *s);                /* the engine rolled everything back */

/* ---- tables.c: opening ---- */
struct open_table *table_open(session *s, const struct table_name *name, bool write);
void tables_release(session *s);                     /* at the end of a statement */
void tables_close(session *s, engine *e);            /* all idle ones; e NULL: of every engine */
void tables_close_everywhere(host *h, const char *db, const char *name);
/* db of a name or the current one; NULL with error 1046. */
const char *resolve_db(session *s, const struct table_name *name);

/* ---- expressions ---- */
/* Where column references get their values. */
struct scope {
    session *s;
    const table_def *def;    /* NULL: no table */
    const char *alias;
    const uint8_t *row;
    const uint8_t *new_row;  /* VALUES(col) in ON DUPLICATE KEY UPDATE */
    struct value *aggregates;
    uint32_t aggregate_count;
    uint8_t *read_set;       /* bit per column, set by binding; may be NULL */
    bool allow_aggregates;
    const struct select *select; /* aliases in HAVING and ORDER BY */
    const char *clause;      /* for messages: "field list", "where clause" … */
};
unsigned expr_bind(struct scope *sc, struct expr *e);  /* 0 or an error number */
struct value expr_eval(struct scope *sc, const struct expr *e);
bool expr_is_constant(const struct expr *e);
bool expr_has_aggregate(const struct expr *e);
int func_find(const char *name);                     /* -1: unknown */
struct value func_call(struct scope *sc, const struct expr *e);
bool func_is_constant(int function);
bool word_is_reserved(const char *word);
struct value sysvar_value(session *s, const char *name); /* sets error 1193 */

/* ---- plan.c ---- */
enum access { ACCESS_SCAN, ACCESS_INDEX, ACCESS_NOTHING };
struct plan {
    uint8_t access;
    uint32_t key;
    uint8_t *low, *high;     /* key images */
    uint32_t low_length, high_length;
    bool low_inclusive, high_inclusive;
    bool equal;              /* low == high: one key prefix */
    bool unique;             /* … of all parts of a unique key: at most one row */
    bool ordered, reverse;   /* gives ORDER BY; backwards */
    uint32_t parts;          /* key parts used for the range */
    uint8_t **points;        /* IN: key images in index order, read one after the other */
    uint32_t point_count, point_length;
    bool single;             /* at most one row for each point */
};
struct plan plan_make(struct scope *sc, se_table *t, struct expr *where, struct order_item *order,
                      uint32_t order_count, const char *force_index, const char *ignore_index);

/* scan.c: the rows of a plan, one after the other. */
struct scan {
    se_table *t;
    const struct plan *plan;
    uint8_t *row;
    bool started, any;       /* any: an index is open */
    uint32_t point;          /* points read so far, the one at work included */
};
int scan_start(struct scan *sc, se_table *t, const struct plan *plan, uint8_t *row);
int scan_next(struct scan *sc);                      /* SE_END_OF_FILE at the end */
void scan_end(struct scan *sc);

/* virtual tables: I_S and sequences */
struct virtual_table {
    table_def *def;
    uint8_t **rows;
    size_t count;
};
/* NULL: no such table (no error set). */
struct virtual_table *virtual_open(session *s, const struct table_name *name);

/* ---- statements ---- */
unsigned exec_select(session *s, struct select *sel);
/* Runs a SELECT and hands over each row instead of sending it. */
typedef unsigned (*select_row_fn)(void *ctx, const struct value *values, uint32_t count);
unsigned select_run(session *s, struct select *sel, select_row_fn fn, void *ctx, bool to_sink);
unsigned exec_explain(session *s, struct select *sel);
unsigned exec_insert(session *s, struct insert *ins);
unsigned exec_update(session *s, struct modify *m);
unsigned exec_delete(session *s, struct modify *m);
unsigned exec_create_table(session *s, struct create_table *ct);
unsigned exec_ddl(session *s, struct stmt *st);
unsigned exec_trx(session *s, struct stmt *st);
unsigned exec_set(session *s, struct stmt *st);
unsigned exec_show(session *s, struct stmt *st);
unsigned exec_admin(session *s, struct stmt *st);    /* CHECK, ANALYZE, INSTALL, KILL … */
unsigned exec_statement(session *s, struct stmt *st);

/* Sends OK. */
void send_ok(session *s, uint64_t affected, uint64_t insert_id, const char *info);
/* Text rows: columns first. A name that begins with # is numeric. */
void send_columns(session *s, const char *const *names, size_t count);
void send_text_row(session *s, const char *const *values, size_t count);
void send_end(session *s);
/* LIKE of SHOW: true if `text` matches st->like (case-insensitive) or there is none. */
bool show_matches(const struct stmt *st, const char *text);

/* write.c: what INSERT and UPDATE share. */
/* Stores into a column, turns what was lost into warnings or (strict) an error. 0 = go on. */
unsigned store_checked(session *s, const table_def *def, uint32_t column, uint8_t *row,
                       const struct value *v, bool ignore);
void rec_copy_blobs(struct arena *a, const table_def *def, uint8_t *row);
bool rec_equal(const table_def *def, const uint8_t *a, const uint8_t *b);
/* ON UPDATE current_timestamp() columns that were not assigned. */
unsigned update_time_columns(session *s, const table_def *def, uint8_t *row, const uint8_t *assigned);
char *key_text(struct arena *a, const table_def *def, uint32_t key, const uint8_t *row);

/* sysvar.c */
int sysvar_list(session *s, bool global, row_fn fn, void *ctx);
/* v NULL: DEFAULT. */
unsigned sysvar_set(session *s, enum set_scope scope, const char *name, const struct value *v);
void sysvar_init(session *s); /* a new session's values */
struct value user_var_get(session *s, const char *name);
void user_var_set(session *s, const char *name, const struct value *v);
void locked_tables_forget(session *s);

#endif
