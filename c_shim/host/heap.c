#include "heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOCK_WAIT_TIMEOUT_MAX 1073741824u

/* A handle and its cursor: the row read last, by copy, so that no change can pull it away. */
typedef struct heap_handle {
    se_table base; /* first */
    heap_table *table;
    heap_trx *trx;
    heap_image *image; /* of the row read last; owns the BLOBs that `row` points to */
    uint64_t id;
    size_t order;      /* the order being read */
    bool on_row;
    uint32_t error_key;
} heap_handle;

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

/* The table of a definition; made empty when the definition outlived the process that made it. */
static heap_table *table_for(heap *h, const table_def *def)
{
    heap_table *t = heap_find(h, def->db, def->name);

    return t != NULL ? t : heap_table_new(h, def);
}

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

/* --------------------------------------------------------------------------------- handles */

static heap_handle *handle_of(se_table *t)
{
    return (heap_handle *)t;
}

static int heap_open(engine *e, void *es, const table_def *def, se_table **out)
{
    heap *h = heap_of(e);
    heap_handle *handle = calloc(1, sizeof *handle);
    heap_trx *trx = es;

    if (handle == NULL)
        return SE_OUT_OF_MEM;
    handle->base = (se_table){ .eng = e, .def = def, .owner = trx->owner };
    handle->trx = trx;
    handle->error_key = NO_KEY;
    lock(h);
    handle->table = table_for(h, def);
    handle->table->handles++;
    unlock(h);
    *out = &handle->base;
    return SE_OK;
}

static void heap_close(se_table *t)
{
    heap_handle *handle = handle_of(t);
    heap *h = heap_of(t->eng);

    lock(h);
    handle->table->handles--;
    heap_table_release(h, handle->table);
    unlock(h);
    free(handle->image);
    free(handle);
}

static int heap_check_table(se_table *t, bool extended, char *message, size_t size)
{
    heap *h = heap_of(t->eng);
    bool ok;

    (void)extended;
    lock(h);
    ok = heap_check(handle_of(t)->table, message, size);
    unlock(h);
    return ok ? SE_OK : SE_TABLE_CORRUPT;
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

static int heap_table_start(se_table *t, enum se_lock wanted, const uint8_t *read_set)
{
    heap_handle *handle = handle_of(t);
    heap_trx *trx = handle->trx;
    bool plain = wanted == SE_LOCK_NONE;
    int result = SE_OK;

    (void)read_set;
    handle->on_row = false;
    lock(trx->heap);
    if (!plain || trx->level != SE_READ_UNCOMMITTED)
        result = heap_lock_table(trx, handle->table, wanted == SE_LOCK_EXCLUSIVE,
                                 plain && trx->level <= SE_READ_COMMITTED);
    else if (handle->table->dropped)
        result = SE_NO_SUCH_TABLE;
    unlock(trx->heap);
    return result;
}

/* --------------------------------------------------------------------------------- reading */

/* Puts the cursor on the row at an index of an order and gives its image to the caller. */
static int stand_on(heap_handle *handle, size_t order, size_t at, uint8_t *row, int missing)
{
    heap_table *t = handle->table;
    heap_image *image;

    if (at >= t->orders[order].count)
        return missing;
    image = heap_image_new(t, t->orders[order].rows[at]->image);
    if (image == NULL)
        return SE_OUT_OF_MEM;
    free(handle->image);
    handle->image = image;
    handle->id = t->orders[order].rows[at]->id;
    handle->order = order;
    handle->on_row = true;
    memcpy(row, image, t->def.row_length);
    return SE_OK;
}

/* True when the row at `at` has the key. */
static bool has_key(const heap_table *t, uint32_t key, size_t at, const uint8_t *image,
                    uint32_t length)
{
    return at < t->orders[key].count &&
           rec_compare_key(&t->def, key, t->orders[key].rows[at]->image, image, length) == 0;
}

static int read_by_key(heap_handle *handle, uint32_t key, uint8_t *row, const uint8_t *image,
                       uint32_t length, enum se_find find)
{
    heap_table *t = handle->table;
    bool backwards = find == FIND_OR_PREV || find == FIND_BEFORE || find == FIND_PREFIX_LAST ||
                     find == FIND_PREFIX_LAST_OR_PREV;
    bool after = find == FIND_AFTER || find == FIND_OR_PREV || find == FIND_PREFIX_LAST ||
                 find == FIND_PREFIX_LAST_OR_PREV;
    size_t at = heap_key_bound(t, key, image, length, after);

    if (backwards) {
        if (at == 0)
            return SE_KEY_NOT_FOUND;
        at--;
    }
    if ((find == FIND_EXACT || find == FIND_PREFIX || find == FIND_PREFIX_LAST) &&
        !has_key(t, key, at, image, length))
        return SE_KEY_NOT_FOUND;
    return stand_on(handle, key, at, row, SE_KEY_NOT_FOUND);
}

static int heap_index_read(se_table *t, uint32_t key, uint8_t *row, const uint8_t *image,
                           uint32_t key_length, enum se_find find)
{
    heap_handle *handle = handle_of(t);
    int result;

    lock(heap_of(t->eng));
    result = read_by_key(handle, key, row, image, key_length, find);
    unlock(heap_of(t->eng));
    return result;
}

static int heap_index_first(se_table *t, uint32_t key, uint8_t *row)
{
    int result;

    lock(heap_of(t->eng));
    result = stand_on(handle_of(t), key, 0, row, SE_END_OF_FILE);
    unlock(heap_of(t->eng));
    return result;
}

static int heap_index_last(se_table *t, uint32_t key, uint8_t *row)
{
    heap_handle *handle = handle_of(t);
    int result;

    lock(heap_of(t->eng));
    result = stand_on(handle, key, handle->table->orders[key].count - 1, row, SE_END_OF_FILE);
    unlock(heap_of(t->eng));
    return result;
}

/* The row after the cursor, which may have been changed or deleted meanwhile. */
static int step_forward(heap_handle *handle, uint8_t *row)
{
    heap_table *t = handle->table;
    size_t at;

    if (!handle->on_row)
        return SE_END_OF_FILE;
    at = heap_lower_bound(t, handle->order, handle->image, handle->id);
    if (at < t->orders[handle->order].count && t->orders[handle->order].rows[at]->id == handle->id)
        at++;
    return stand_on(handle, handle->order, at, row, SE_END_OF_FILE);
}

static int heap_index_next(se_table *t, uint8_t *row)
{
    int result;

    lock(heap_of(t->eng));
    result = step_forward(handle_of(t), row);
    unlock(heap_of(t->eng));
    return result;
}

static int heap_index_prev(se_table *t, uint8_t *row)
{
    heap_handle *handle = handle_of(t);
    int result = SE_END_OF_FILE;
    size_t at;

    lock(heap_of(t->eng));
    if (handle->on_row) {
        at = heap_lower_bound(handle->table, handle->order, handle->image, handle->id);
        if (at > 0)
            result = stand_on(handle, handle->order, at - 1, row, SE_END_OF_FILE);
    }
    unlock(heap_of(t->eng));
    return result;
}

static int heap_index_end(se_table *t)
{
    handle_of(t)->on_row = false;
    return SE_OK;
}

/* A scan goes in the order of the primary key, as a clustered index would, else as inserted. */
static size_t scan_order(const heap_handle *handle)
{
    const table_def *def = &handle->table->def;

    return def->primary_key != NO_KEY ? def->primary_key : def->key_count;
}

static int heap_rnd_init(se_table *t)
{
    heap_handle *handle = handle_of(t);

    handle->on_row = false;
    handle->order = scan_order(handle);
    return SE_OK;
}

static int heap_rnd_next(se_table *t, uint8_t *row)
{
    heap_handle *handle = handle_of(t);
    int result;

    lock(heap_of(t->eng));
    if (handle->on_row)
        result = step_forward(handle, row);
    else
        result = stand_on(handle, scan_order(handle), 0, row, SE_END_OF_FILE);
    unlock(heap_of(t->eng));
    return result;
}

static uint32_t heap_ref_length(se_table *t)
{
    (void)t;
    return sizeof(uint64_t);
}

static void heap_position(se_table *t, const uint8_t *row, uint8_t *ref)
{
    (void)row;
    memcpy(ref, &handle_of(t)->id, sizeof(uint64_t));
}

static int heap_rnd_pos(se_table *t, uint8_t *row, const uint8_t *ref)
{
    heap_handle *handle = handle_of(t);
    heap_table *table = handle->table;
    uint64_t id;
    int result = SE_KEY_NOT_FOUND;

    memcpy(&id, ref, sizeof id);
    lock(heap_of(t->eng));
    if (heap_row_by_id(table, id) != NULL) {
        size_t order = table->def.key_count;

        result = stand_on(handle, order, heap_lower_bound(table, order, NULL, id), row,
                          SE_KEY_NOT_FOUND);
    }
    unlock(heap_of(t->eng));
    return result;
}

/* --------------------------------------------------------------------------------- writing */

/* The value of the AUTO_INCREMENT column, 0 when it is negative or not an integer. */
static uint64_t autoinc_value(const table_def *def, const uint8_t *row)
{
    const struct column *c;
    uint64_t value = 0;

    if (def->autoinc_col == UINT32_MAX)
        return 0;
    c = &def->columns[def->autoinc_col];
    if (c->type > CT_BIGINT || rec_is_null(c, row))
        return 0;
    for (uint32_t i = c->pack_length; i > 0; i--)
        value = value << 8 | row[c->offset + i - 1];
    if (!(c->flags & COL_UNSIGNED) && (row[c->offset + c->pack_length - 1] & 0x80))
        return 0;
    return value;
}

static void raise_autoinc(heap_table *t, const uint8_t *row)
{
    uint64_t value = autoinc_value(&t->def, row);

    if (value >= t->autoinc && value != UINT64_MAX)
        t->autoinc = value + 1;
}

static int heap_write_row(se_table *t, uint8_t *row)
{
    heap_handle *handle = handle_of(t);
    heap_table *table = handle->table;
    heap_row *made = malloc(sizeof *made);
    int result = SE_OUT_OF_MEM;

    lock(heap_of(t->eng));
    if (made != NULL)
        made->image = heap_image_new(table, row);
    if (made != NULL && made->image != NULL) {
        raise_autoinc(table, row);
        handle->error_key = heap_duplicate(table, made->image, NULL);
        result = handle->error_key == NO_KEY ? SE_OK : SE_FOUND_DUPP_KEY;
        if (result != SE_OK)
            free(made->image);
    }
    if (result == SE_OK) {
        made->id = table->next_id++;
        heap_row_link(table, made);
        heap_note(handle->trx, HEAP_INSERTED, table, made, NULL);
    } else {
        free(made);
    }
    unlock(heap_of(t->eng));
    return result;
}

static int heap_update_row(se_table *t, const uint8_t *old, uint8_t *row)
{
    heap_handle *handle = handle_of(t);
    heap_table *table = handle->table;
    heap_image *image = NULL;
    heap_row *stored;
    int result = SE_NO_ACTIVE_RECORD;

    (void)old;
    lock(heap_of(t->eng));
    stored = handle->on_row ? heap_row_by_id(table, handle->id) : NULL;
    if (stored != NULL) {
        image = heap_image_new(table, row);
        result = image == NULL ? SE_OUT_OF_MEM : SE_OK;
    }
    if (result == SE_OK) {
        handle->error_key = heap_duplicate(table, image, stored);
        result = handle->error_key == NO_KEY ? SE_OK : SE_FOUND_DUPP_KEY;
    }
    if (result == SE_OK) {
        heap_note(handle->trx, HEAP_UPDATED, table, stored, stored->image);
        heap_row_replace(table, stored, image);
        raise_autoinc(table, row);
    } else {
        free(image);
    }
    unlock(heap_of(t->eng));
    return result;
}

static int heap_delete_row(se_table *t, const uint8_t *old)
{
    heap_handle *handle = handle_of(t);
    heap_row *stored;

    (void)old;
    lock(heap_of(t->eng));
    stored = handle->on_row ? heap_row_by_id(handle->table, handle->id) : NULL;
    if (stored != NULL) {
        heap_row_unlink(handle->table, stored);
        heap_note(handle->trx, HEAP_DELETED, handle->table, stored, NULL);
    }
    unlock(heap_of(t->eng));
    return stored != NULL ? SE_OK : SE_NO_ACTIVE_RECORD;
}

static uint32_t heap_error_key(se_table *t)
{
    return handle_of(t)->error_key;
}

static int heap_autoinc_reserve(se_table *t, uint64_t count, uint64_t *first)
{
    heap_table *table = handle_of(t)->table;
    int result = SE_OK;

    lock(heap_of(t->eng));
    if (table->autoinc > UINT64_MAX - count) {
        result = SE_AUTOINC_ERANGE;
    } else {
        *first = table->autoinc;
        table->autoinc += count;
    }
    unlock(heap_of(t->eng));
    return result;
}

/* ------------------------------------------------------------------------------- estimates */

static uint64_t heap_records_in_range(se_table *t, uint32_t key, struct se_bound low,
                                      struct se_bound high)
{
    heap_table *table = handle_of(t)->table;
    size_t from = 0, to;

    lock(heap_of(t->eng));
    to = table->orders[key].count;
    if (low.image != NULL)
        from = heap_key_bound(table, key, low.image, low.length, !low.inclusive);
    if (high.image != NULL)
        to = heap_key_bound(table, key, high.image, high.length, high.inclusive);
    unlock(heap_of(t->eng));
    return to > from ? to - from : 0;
}

static int heap_info(se_table *t, struct se_info *out)
{
    heap_table *table = handle_of(t)->table;

    lock(heap_of(t->eng));
    *out = (struct se_info){
        .rows = table->orders[table->def.key_count].count,
        .data_bytes = table->bytes,
        .index_bytes = table->def.key_count * sizeof(heap_row *) *
                       table->orders[table->def.key_count].count,
        .mean_row = table->def.row_length,
        .autoinc = table->def.autoinc_col == UINT32_MAX ? 0 : table->autoinc,
        .row_format = "Fixed",
    };
    unlock(heap_of(t->eng));
    return SE_OK;
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

static int heap_set_variable(engine *e, void *es, bool global, const char *name, const char *value)
{
    heap *h = heap_of(e);
    char *end;
    unsigned long long seconds;

    if (strcasecmp(name, wait_timeout_name) != 0)
        return 1193;
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

static const struct se_ops ops = {
    .session_open = heap_session_open, .session_close = heap_session_close,
    .in_transaction = heap_in_transaction, .interrupt = heap_interrupt,
    .create_table = heap_create_table, .drop_table = heap_drop_table,
    .rename_table = heap_rename_table, .truncate_table = heap_truncate_table,
    .check_table = heap_check_table, .describe_table = heap_describe_table,
    .list_tables = heap_list_tables, .open = heap_open, .close = heap_close,
    .statement_start = heap_statement_start, .statement_end = heap_statement_finish,
    .begin = heap_begin, .commit = heap_commit, .rollback = heap_rollback,
    .savepoint = heap_savepoint_make, .rollback_to = heap_rollback_to_savepoint,
    .release = heap_release_savepoint, .table_start = heap_table_start,
    .index_read = heap_index_read, .index_first = heap_index_first,
    .index_last = heap_index_last, .index_next = heap_index_next, .index_prev = heap_index_prev,
    .index_end = heap_index_end, .rnd_init = heap_rnd_init, .rnd_next = heap_rnd_next,
    .rnd_end = heap_index_end, .ref_length = heap_ref_length, .position = heap_position,
    .rnd_pos = heap_rnd_pos, .write_row = heap_write_row, .update_row = heap_update_row,
    .delete_row = heap_delete_row, .error_key = heap_error_key,
    .autoinc_reserve = heap_autoinc_reserve, .records_in_range = heap_records_in_range,
    .info = heap_info, .show_variables = heap_show_variables,
    .set_variable = heap_set_variable, .waits_for_lock = heap_waits_for_lock,
};

engine *heap_engine_new(host *host)
{
    heap *h = calloc(1, sizeof *h);
    pthread_condattr_t monotonic;

    (void)host;
    if (h == NULL)
        return NULL;
    h->engine = (engine){ .ops = &ops, .name = "InnoDB", .transactional = true,
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
