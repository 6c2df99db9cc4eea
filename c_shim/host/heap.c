#include "heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOCK_WAIT_TIMEOUT_MAX 1073741824u

static heap *heap_of(engine *e)
{
    return (heap *)e;
}

static void lock(heap *h)
{
    pthread_mutex_lock(&h->mutex);
}

static void unlock(heap *h)
{
    pthread_mutex_unlock(&h->mutex);
}

/* -------------------------------------------------------------------------------- sessions */

static int heap_session_open(engine *e, session *s, void **es)
{
    heap_trx *trx = calloc(1, sizeof *trx);

    if (trx == NULL)
        return SE_OUT_OF_MEM;
    trx->heap = heap_of(e);
    trx->owner = s;
    trx->level = SE_REPEATABLE_READ;
    lock(trx->heap);
    trx->lock_wait_timeout = trx->heap->lock_wait_timeout;
    unlock(trx->heap);
    *es = trx;
    return SE_OK;
}

static void heap_session_close(engine *e, void *es)
{
    heap_trx *trx = es;

    if (trx == NULL)
        return;
    lock(heap_of(e));
    heap_trx_end(trx, false);
    unlock(heap_of(e));
    free(trx->undo);
    free(trx->locks);
    free(trx->savepoints);
    free(trx);
}

static bool heap_in_transaction(engine *e, void *es)
{
    heap_trx *trx = es;
    bool open;

    lock(heap_of(e));
    open = trx->started || trx->undo_count > 0 || trx->lock_count > 0;
    unlock(heap_of(e));
    return open;
}

static void heap_interrupt(engine *e, void *es)
{
    heap *h = heap_of(e);

    lock(h);
    ((heap_trx *)es)->interrupted = true;
    pthread_cond_broadcast(&h->released);
    unlock(h);
}

static bool heap_waits_for_lock(engine *e, void *es)
{
    bool waits;

    lock(heap_of(e));
    waits = heap_is_waiting(es);
    unlock(heap_of(e));
    return waits;
}

/* ---------------------------------------------------------------------------------- tables */

static int heap_create_table(engine *e, void *es, const table_def *def)
{
    heap *h = heap_of(e);
    int result = SE_OK;

    (void)es;
    lock(h);
    if (heap_find(h, def->db, def->name) != NULL)
        result = SE_TABLE_EXIST;
    else
        heap_table_new(h, def);
    unlock(h);
    return result;
}

/* Takes the table alone, so that nobody is in the middle of something. */
static int take_alone(heap *h, heap_trx *trx, const char *db, const char *name, heap_table **t)
{
    *t = heap_find(h, db, name);
    return *t == NULL ? SE_OK : heap_lock_table(trx, *t, true, false);
}

static int heap_drop_table(engine *e, void *es, const char *db, const char *name)
{
    heap *h = heap_of(e);
    heap_table *t;
    int result;

    lock(h);
    result = take_alone(h, es, db, name, &t);
    if (result == SE_OK) {
        if (t != NULL)
            heap_table_unlink(h, t);
        heap_trx_end(es, true); /* DDL commits; the table goes with its last user */
    }
    unlock(h);
    return result;
}

static int heap_rename_table(engine *e, void *es, const char *db, const char *name,
                             const char *new_db, const char *new_name)
{
    heap *h = heap_of(e);
    heap_table *t;
    int result;

    lock(h);
    if (heap_find(h, new_db, new_name) != NULL) {
        unlock(h);
        return SE_TABLE_EXIST;
    }
    result = take_alone(h, es, db, name, &t);
    if (result == SE_OK && t != NULL) {
        free(t->db);
        free(t->name);
        t->db = strdup(new_db);
        t->name = strdup(new_name);
        if (t->db == NULL || t->name == NULL)
            abort();
    }
    if (result == SE_OK)
        heap_trx_end(es, true);
    unlock(h);
    return result;
}

static int heap_truncate_table(engine *e, void *es, const table_def *def)
{
    heap *h = heap_of(e);
    heap_table *t;
    int result;

    lock(h);
    result = take_alone(h, es, def->db, def->name, &t);
    if (result == SE_OK) {
        heap_trx_end(es, true);
        if (t != NULL)
            heap_table_clear(t);
    }
    unlock(h);
    return result;
}

static int heap_describe_table(engine *e, void *es, const char *db, const char *name,
                               table_def **out)
{
    (void)e, (void)es, (void)db, (void)name, (void)out;
    return SE_NO_SUCH_TABLE; /* no dictionary: definitions are the host's */
}

static int heap_list_tables(engine *e, void *es, const char *db, row_fn fn, void *ctx)
{
    (void)e, (void)es, (void)db, (void)fn, (void)ctx;
    return SE_OK;
}

/* -------------------------------------------------------------- statements and transactions */

static int heap_statement_start(engine *e, void *es)
{
    heap_trx *trx = es;

    lock(heap_of(e));
    trx->interrupted = false;
    trx->statement_mark = trx->undo_count;
    unlock(heap_of(e));
    return SE_OK;
}

static int heap_statement_finish(engine *e, void *es, bool rollback)
{
    heap_trx *trx = es;

    lock(heap_of(e));
    if (rollback && trx->undo_count > trx->statement_mark)
        heap_rollback_to(trx, trx->statement_mark);
    heap_statement_end(trx);
    unlock(heap_of(e));
    return SE_OK;
}

static int heap_begin(engine *e, void *es, enum se_isolation level, bool read_only, bool snapshot)
{
    heap_trx *trx = es;

    (void)read_only, (void)snapshot;
    lock(heap_of(e));
    trx->level = level;
    trx->started = true;
    unlock(heap_of(e));
    return SE_OK;
}

static int heap_commit(engine *e, void *es)
{
    lock(heap_of(e));
    heap_trx_end(es, true);
    unlock(heap_of(e));
    return SE_OK;
}

static int heap_rollback(engine *e, void *es)
{
    lock(heap_of(e));
    heap_trx_end(es, false);
    unlock(heap_of(e));
    return SE_OK;
}

static int heap_savepoint_make(engine *e, void *es, const char *name)
{
    lock(heap_of(e));
    heap_savepoint_set(es, name);
    unlock(heap_of(e));
    return SE_OK;
}

static int heap_rollback_to_savepoint(engine *e, void *es, const char *name)
{
    heap_trx *trx = es;
    heap_savepoint *found;

    lock(heap_of(e));
    found = heap_savepoint_find(trx, name);
    if (found != NULL) {
        heap_rollback_to(trx, found->undo_count);
        heap_savepoints_cut(trx, (size_t)(found - trx->savepoints) + 1);
    }
    unlock(heap_of(e));
    return found != NULL ? SE_OK : SE_NO_SAVEPOINT;
}

static int heap_release_savepoint(engine *e, void *es, const char *name)
{
    heap_trx *trx = es;
    heap_savepoint *found;

    lock(heap_of(e));
    found = heap_savepoint_find(trx, name);
    if (found != NULL)
        heap_savepoints_cut(trx, (size_t)(found - trx->savepoints));
    unlock(heap_of(e));
    return found != NULL ? SE_OK : SE_NO_SAVEPOINT;
}

/* ------------------------------------------------------------------------------- variables */

static const char wait_timeout_name[] = "innodb_lock_wait_timeout";

static int heap_show_variables(engine *e, void *es, bool global, row_fn fn, void *ctx)
{
    heap *h = heap_of(e);
    char text[24];
    uint64_t seconds;

    lock(h);
    seconds = global || es == NULL ? h->lock_wait_timeout : ((heap_trx *)es)->lock_wait_timeout;
    unlock(h);
    int length = snprintf(text, sizeof text, "%llu", (unsigned long long)seconds);
    struct is_value values[] = {
        { .ptr = wait_timeout_name, .len = sizeof wait_timeout_name - 1 },
        { .ptr = text, .len = (size_t)length },
    };
    return fn(ctx, values, 2);
}

static int heap_set_variable(engine *e, void *es, bool global, const char *name, const char *value,
                             enum set_type type)
{
    heap *h = heap_of(e);
    char *end;
    unsigned long long seconds;

    if (strcasecmp(name, wait_timeout_name) != 0)
        return 1193;
    if (type != SET_ANY_TYPE && type != SET_INTEGER)
        return 1232;
    if (value == NULL)
        value = "50";
    seconds = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || *end != '\0' || seconds > LOCK_WAIT_TIMEOUT_MAX)
        return 1231;
    lock(h);
    if (global || es == NULL)
        h->lock_wait_timeout = seconds;
    else
        ((heap_trx *)es)->lock_wait_timeout = seconds;
    unlock(h);
    return 0;
}

static const struct se_ops *operations(void)
{
    static struct se_ops ops;
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&once);
    if (ops.session_open == NULL) {
        heap_handle_ops(&ops);
        ops.session_close = heap_session_close;
        ops.in_transaction = heap_in_transaction;
        ops.interrupt = heap_interrupt;
        ops.create_table = heap_create_table;
        ops.drop_table = heap_drop_table;
        ops.rename_table = heap_rename_table;
        ops.truncate_table = heap_truncate_table;
        ops.describe_table = heap_describe_table;
        ops.list_tables = heap_list_tables;
        ops.statement_start = heap_statement_start;
        ops.statement_end = heap_statement_finish;
        ops.begin = heap_begin;
        ops.commit = heap_commit;
        ops.rollback = heap_rollback;
        ops.savepoint = heap_savepoint_make;
        ops.rollback_to = heap_rollback_to_savepoint;
        ops.release = heap_release_savepoint;
        ops.show_variables = heap_show_variables;
        ops.set_variable = heap_set_variable;
        ops.waits_for_lock = heap_waits_for_lock;
        ops.session_open = heap_session_open;
    }
    pthread_mutex_unlock(&once);
    return &ops;
}

engine *heap_engine_new(host *host)
{
    heap *h = calloc(1, sizeof *h);
    pthread_condattr_t monotonic;

    (void)host;
    if (h == NULL)
        return NULL;
    h->engine = (engine){ .ops = operations(), .name = "InnoDB", .transactional = true,
                          .savepoints = true,
                          .comment = "Builtin heap: rows in memory, table locks, gone at exit" };
    h->lock_wait_timeout = 50;
    pthread_mutex_init(&h->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&h->released, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return &h->engine;
}

void heap_engine_free(engine *e)
{
    heap *h = heap_of(e);

    while (h->tables != NULL) {
        heap_table *t = h->tables;

        heap_table_unlink(h, t);
        heap_table_release(h, t);
    }
    pthread_cond_destroy(&h->released);
    pthread_mutex_destroy(&h->mutex);
    free(h);
}
