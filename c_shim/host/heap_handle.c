#include <stdlib.h>
#include <string.h>

#include "heap.h"

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

/* The table of a definition; made empty when the definition outlived the process that made it. */
static heap_table *table_for(heap *h, const table_def *def)
{
    heap_table *t = heap_find(h, def->db, def->name);

    return t != NULL ? t : heap_table_new(h, def);
}

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

void heap_handle_ops(struct se_ops *ops)
{
    ops->open = heap_open;
    ops->close = heap_close;
    ops->check_table = heap_check_table;
    ops->table_start = heap_table_start;
    ops->index_read = heap_index_read;
    ops->index_first = heap_index_first;
    ops->index_last = heap_index_last;
    ops->index_next = heap_index_next;
    ops->index_prev = heap_index_prev;
    ops->index_end = heap_index_end;
    ops->rnd_init = heap_rnd_init;
    ops->rnd_next = heap_rnd_next;
    ops->rnd_end = heap_index_end;
    ops->ref_length = heap_ref_length;
    ops->position = heap_position;
    ops->rnd_pos = heap_rnd_pos;
    ops->write_row = heap_write_row;
    ops->update_row = heap_update_row;
    ops->delete_row = heap_delete_row;
    ops->error_key = heap_error_key;
    ops->autoinc_reserve = heap_autoinc_reserve;
    ops->records_in_range = heap_records_in_range;
    ops->info = heap_info;
}
