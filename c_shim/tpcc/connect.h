/*
 * The engine behind a plugin-load string, and clients of it.
 *
 * A client is a session with a handle for each table. Between statement_next and the next one it
 * binds the handles that it touches, as a server does for each SQL statement. Functions return the
 * engine's code; anything but XT_OK ends the transaction (client_undo).
 */
#ifndef XTRADB_TPCC_CONNECT_H
#define XTRADB_TPCC_CONNECT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "clock.h"
#include "describe.h"
#include "draw.h"
#include "encode.h"
#include "loader.h"
#include "parse.h"

/* One open engine. */
typedef struct bench {
    const options *options;
    shape size;
    loader loader;
    library *library;
    const xt_api *xt;
    xt_engine *engine;
    xt_host host;
} bench;

/* Loads the library, opens the directory. False: said why. */
bool bench_open(bench *b, const options *o);
/* False: the engine did not close well (said why). */
bool bench_close(bench *b);
/* What the engine tells of itself now (SHOW ENGINE STATUS), to standard error. */
void bench_print_monitor(bench *b);

/* What reads of a binding do. */
enum mode { READ, CHANGE };

typedef struct handle {
    xt_table *table;
    const xt_table_def *def;
    bool bound;
    uint8_t lock;
    bool has_key; /* an index is open */
    bool in_load; /* rows are held back until load_end */
    uint32_t key;
    uint64_t reads, writes; /* column sets that the engine knows */
    uint8_t row[ROW_BYTES_MAX];  /* the row read last */
    uint8_t next[ROW_BYTES_MAX]; /* the row to write */
} handle;

typedef struct client {
    bench *bench;
    const xt_api *xt;
    xt_session *session;
    handle handles[TABLE_COUNT];
    uint32_t flags;
    bool in_statement;
    bool loads; /* rows go into empty tables, which are built at once */
    enum table touched; /* last, for messages */
    dice dice;
    int rows_open;          /* loading: inserted since the last commit */
    atomic_long *rows_told; /* loading: committed by all threads */
} client;

/* Column sets: bit i is column i. */
#define COLUMN(c) (UINT64_C(1) << (c))
#define ALL_COLUMNS UINT64_MAX

/* Opens a session, and all tables unless there are none yet. False: said why. */
bool client_open(client *c, bench *b, uint64_t id, bool with_tables);
void client_close(client *c);

/* Ends the running statement, if there is one, and begins the next (nothing, where a whole
 * transaction is one statement and it runs already). */
xt_status statement_next(client *c);
/* The same, and the statement asks for no checks: into empty tables rows are loaded. */
xt_status statement_next_load(client *c);
/* Says that rows of a bound table are loaded until load_end; no more than a hint. */
xt_status load_begin(client *c, enum table table);
/* The rows held back go into their tables. */
xt_status load_end(client *c);
/* Ends the statement and commits. */
xt_status client_commit(client *c);
/* Ends whatever is open and rolls back. */
xt_status client_undo(client *c);

/* Binds the table for reading or changing these columns. */
xt_status bind_table(client *c, enum table table, enum mode mode, uint64_t reads, uint64_t writes);

/* Reads by a key of a bound table into `row`. */
xt_status read_key(client *c, enum table table, uint32_t key, const key_image *image,
                   uint32_t find);
xt_status read_next_same(client *c, enum table table, const key_image *image);

/* Copies the row read last to `next`, to be changed there. */
void copy_row(client *c, enum table table);
xt_status insert_next(client *c, enum table table);
xt_status update_to_next(client *c, enum table table);
xt_status delete_row(client *c, enum table table);

static inline const xt_column *column_at(const client *c, enum table t, unsigned column)
{
    return &c->handles[t].def->columns[column];
}

static inline int64_t number(const client *c, enum table t, unsigned column)
{
    return get_number(c->handles[t].row, column_at(c, t, column));
}

static inline void set_number(client *c, enum table t, unsigned column, int64_t value)
{
    put_number(c->handles[t].next, column_at(c, t, column), value);
}

static inline void set_text(client *c, enum table t, unsigned column, const char *text,
                            uint32_t length)
{
    put_text(c->handles[t].next, column_at(c, t, column), text, length);
}

/* A key of `count` numbers, the first parts of the table's key. */
key_image number_key(const client *c, enum table table, uint32_t key, unsigned count,
                     const int *numbers);
#define KEY(c, table, key, ...)                                                             \
    number_key(c, table, key, sizeof(int[]){ __VA_ARGS__ } / sizeof(int), (int[]){ __VA_ARGS__ })

/* Leaves the function when a call fails. */
#define TRY(call)                         \
    do {                                  \
        xt_status status_ = (call);       \
        if (status_ != XT_OK)             \
            return status_;               \
    } while (0)

/* Does the code mean: the same transaction may succeed when it is tried again? */
bool is_retriable(xt_status status);
/* Why the last call of the client failed, to standard error. */
void client_complain(const client *c, const char *what, xt_status status);

#endif
