/* What the parser makes of a statement. Everything lives in the statement's arena. */
#ifndef XTRADB_HOST_AST_H
#define XTRADB_HOST_AST_H

#include "value.h"

enum op {
    OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_INT_DIV, OP_MOD, OP_BIT_AND, OP_BIT_OR, OP_BIT_XOR, OP_SHL,
    OP_SHR, OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_NULL_EQ
};

enum expr_kind {
    E_LITERAL, E_COLUMN, E_USER_VAR, E_SYS_VAR, E_DEFAULT, E_VALUES, E_STAR,
    E_NOT, E_NEGATE, E_BIT_NOT, E_BINARY, E_AND, E_OR, E_XOR,
    E_IN, E_BETWEEN, E_LIKE, E_IS, E_FUNCTION, E_AGGREGATE, E_CASE, E_CAST, E_COLLATE, E_ASSIGN
};
enum is_what { IS_NULL, IS_TRUE, IS_FALSE };
enum aggregate { AGG_COUNT, AGG_SUM, AGG_MIN, AGG_MAX, AGG_AVG };

struct expr {
    uint8_t kind;          /* enum expr_kind */
    uint8_t op;            /* enum op, is_what, aggregate; E_CAST: enum col_type */
    bool negated;          /* NOT IN, NOT BETWEEN, NOT LIKE, IS NOT; COUNT(DISTINCT) */
    bool has_else;         /* E_CASE: first arg is the operand if `negated`, last one ELSE if this */
    uint32_t arg_count;
    uint32_t collation;    /* E_COLLATE, E_CAST to CHAR */
    uint32_t length, decimals; /* E_CAST */
    uint32_t column;       /* E_COLUMN, E_VALUES, E_DEFAULT: bound position; E_AGGREGATE: its number */
    int32_t function;      /* E_FUNCTION: position in the table of functions */
    uint32_t height;       /* levels below it, in units of the smallest stack frame */
    struct expr **args;
    const char *db, *table, *name; /* E_COLUMN, E_USER_VAR, E_SYS_VAR, E_FUNCTION */
    struct value value;    /* E_LITERAL */
    size_t from, to;       /* bytes of the statement: heading of a SELECT column */
};

struct expr_list {
    struct expr **items;
    uint32_t count;
};

struct table_name {
    const char *db; /* NULL: the current database */
    const char *name;
};

struct select_item {
    struct expr *expr;
    const char *alias;    /* or NULL */
};
struct order_item {
    struct expr *expr;
    bool descending;
};

enum row_lock { LOCK_PLAIN, LOCK_SHARE, LOCK_UPDATE };

struct select {
    struct select_item *items;
    uint32_t item_count;
    bool from_table, distinct;
    struct table_name table;
    const char *table_alias;
    struct expr *where, *having;
    struct order_item *order, *group;
    uint32_t order_count, group_count;
    uint64_t limit, offset;       /* limit UINT64_MAX = none */
    uint8_t lock;                 /* enum row_lock */
    bool nowait, skip_locked;
    uint32_t wait_seconds;
    const char *force_index;      /* FORCE/USE INDEX, or NULL */
    const char *ignore_index;
};

struct assignment {
    const char *column;
    struct expr *value;
    uint32_t bound;
};

struct insert {
    struct table_name table;
    bool replace, ignore;
    const char **columns;         /* NULL: all */
    uint32_t column_count;
    struct expr_list *rows;
    uint32_t row_count;
    struct select *query;         /* INSERT … SELECT */
    struct assignment *on_duplicate;
    uint32_t on_duplicate_count;
};

struct modify {                   /* UPDATE and DELETE */
    struct table_name table;
    const char *table_alias;
    bool ignore;
    struct assignment *set;
    uint32_t set_count;
    struct expr *where;
    struct order_item *order;
    uint32_t order_count;
    uint64_t limit;
    const char *force_index, *ignore_index;
};

struct column_spec {
    const char *name;
    uint8_t type;                 /* enum col_type */
    uint32_t flags;               /* COL_* */
    bool null_given, has_length, has_decimals, primary, unique, binary_attribute;
    uint64_t length;
    uint32_t decimals;
    const char *charset, *collate;
    const char **values;
    uint32_t *value_lens;
    uint32_t value_count;
    struct expr *default_value;   /* NULL: none */
    const char *comment;
};
struct key_part_spec {
    const char *column;
    uint64_t length;
    bool descending;
};
struct key_spec {
    const char *name;             /* NULL: made from the first column */
    uint32_t flags;
    struct key_part_spec *parts;
    uint32_t part_count;
    const char *comment;
};
struct create_table {
    struct table_name table, like;
    bool if_not_exists, temporary, or_replace;
    struct column_spec *columns;
    uint32_t column_count;
    struct key_spec *keys;
    uint32_t key_count;
    const char *engine, *charset, *collate, *comment, *row_format;
    uint64_t auto_increment, key_block_size;
    const char *options;          /* others, as SHOW CREATE TABLE prints them */
};

enum set_scope { SET_DEFAULT_SCOPE, SET_SESSION, SET_GLOBAL, SET_USER_VAR, SET_NAMES, SET_CHARSET,
                 SET_NEXT_TRX };
struct set_item {
    uint8_t scope;
    const char *name;
    struct expr *value;           /* NULL: DEFAULT */
};

enum stmt_kind {
    STMT_EMPTY, STMT_SELECT, STMT_INSERT, STMT_UPDATE, STMT_DELETE, STMT_CREATE_TABLE, STMT_DROP_TABLE,
    STMT_RENAME_TABLE, STMT_TRUNCATE, STMT_CREATE_DB, STMT_DROP_DB, STMT_USE, STMT_BEGIN, STMT_COMMIT,
    STMT_ROLLBACK, STMT_SAVEPOINT, STMT_ROLLBACK_TO, STMT_RELEASE, STMT_SET, STMT_SET_TRANSACTION,
    STMT_LOCK_TABLES, STMT_UNLOCK_TABLES, STMT_ALTER_KEYS, STMT_ALTER_AUTOINC, STMT_ADD_KEYS,
    STMT_DROP_KEY, STMT_SHOW, STMT_DESCRIBE,
    STMT_INSTALL, STMT_UNINSTALL, STMT_CHECK, STMT_ANALYZE, STMT_KILL, STMT_DO, STMT_FLUSH, STMT_EXPLAIN
};
enum show_kind {
    SHOW_TABLES, SHOW_DATABASES, SHOW_CREATE_TABLE, SHOW_CREATE_DB, SHOW_VARIABLES, SHOW_STATUS,
    SHOW_ENGINES, SHOW_PLUGINS, SHOW_ENGINE_STATUS, SHOW_COLUMNS, SHOW_INDEX, SHOW_WARNINGS,
    SHOW_ERRORS, SHOW_TABLE_STATUS, SHOW_PROCESSLIST, SHOW_COLLATION, SHOW_CHARSET
};

struct stmt {
    uint8_t kind;                 /* enum stmt_kind */
    uint8_t show;                 /* enum show_kind */
    bool if_exists, if_not_exists, full, global, read_only, snapshot, extended, chain, query_only;
    uint8_t isolation;            /* enum se_isolation, 255 = not given */
    uint8_t scope;                /* enum set_scope */
    const char *name, *name2, *like;
    struct expr *where;
    uint64_t number;
    struct table_name *tables;    /* DROP, RENAME (pairs), CHECK, LOCK … */
    uint32_t table_count;
    uint8_t *lock_write;          /* LOCK TABLES: 1 = WRITE, per table */
    struct set_item *sets;
    uint32_t set_count;
    struct select *select;
    struct insert *insert;
    struct modify *modify;
    struct create_table *create;
    const char *charset, *collate;
};

/* parser.c. NULL after an error, which is in the session's diagnostics. */
struct stmt *sql_parse(session *s, struct arena *a, const char *sql, size_t len);

#endif
