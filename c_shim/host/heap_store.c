#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"

void *heap_grow(void *memory, size_t *room, size_t wanted, size_t size)
{
    if (wanted <= *room)
        return memory;
    *room = wanted > 2 * *room ? wanted : 2 * *room;
    memory = realloc(memory, *room * size);
    if (memory == NULL)
        abort();
    return memory;
}

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    if (memory == NULL)
        abort();
    return memory;
}

heap_table *heap_find(heap *h, const char *db, const char *name)
{
    for (heap_table *t = h->tables; t != NULL; t = t->next)
        if (strcmp(t->db, db) == 0 && strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

/* Copies what comparing and storing rows needs; the original may go before we do. */
static void copy_def(table_def *to, const table_def *from)
{
    *to = (table_def){ .column_count = from->column_count, .key_count = from->key_count,
                       .primary_key = from->primary_key, .null_bytes = from->null_bytes,
                       .row_length = from->row_length, .collation = from->collation,
                       .autoinc_col = from->autoinc_col };
    to->columns = zeroed(from->column_count, sizeof *to->columns);
    memcpy(to->columns, from->columns, from->column_count * sizeof *to->columns);
    for (uint32_t c = 0; c < from->column_count; c++) {
        to->columns[c].name = to->columns[c].comment = to->columns[c].default_text = NULL;
        to->columns[c].values = NULL;
        to->columns[c].value_lens = NULL;
    }
    to->keys = zeroed(from->key_count, sizeof *to->keys);
    for (uint32_t k = 0; k < from->key_count; k++) {
        struct key *key = &to->keys[k];

        *key = from->keys[k];
        key->name = key->comment = NULL;
        key->parts = zeroed(key->part_count, sizeof *key->parts);
        memcpy(key->parts, from->keys[k].parts, key->part_count * sizeof *key->parts);
    }
}

static void free_def(table_def *def)
{
    for (uint32_t k = 0; k < def->key_count; k++)
        free(def->keys[k].parts);
    free(def->keys);
    free(def->columns);
}

heap_table *heap_table_new(heap *h, const table_def *def)
{
    heap_table *t = zeroed(1, sizeof *t);

    t->db = strdup(def->db);
    t->name = strdup(def->name);
    if (t->db == NULL || t->name == NULL)
        abort();
    copy_def(&t->def, def);
    t->orders = zeroed(def->key_count + 1, sizeof *t->orders);
    t->next_id = 1;
    t->autoinc = def->autoinc_start > 0 ? def->autoinc_start : 1;
    t->next = h->tables;
    h->tables = t;
    return t;
}

void heap_table_unlink(heap *h, heap_table *t)
{
    heap_table **link = &h->tables;

    while (*link != NULL && *link != t)
        link = &(*link)->next;
    if (*link == t)
        *link = t->next;
    t->dropped = true;
}

void heap_table_clear(heap_table *t)
{
    heap_order *by_id = &t->orders[t->def.key_count];

    for (size_t i = 0; i < by_id->count; i++) {
        free(by_id->rows[i]->image);
        free(by_id->rows[i]);
    }
    for (uint32_t o = 0; o <= t->def.key_count; o++)
        t->orders[o].count = 0;
    t->bytes = 0;
    t->autoinc = 1;
}

void heap_table_release(heap *h, heap_table *t)
{
    (void)h;
    if (!t->dropped || t->handles > 0 || t->trxs > 0)
        return;
    heap_table_clear(t);
    for (uint32_t o = 0; o <= t->def.key_count; o++)
        free(t->orders[o].rows);
    free(t->orders);
    free_def(&t->def);
    free(t->db);
    free(t->name);
    free(t);
}

heap_image *heap_image_new(const heap_table *t, const uint8_t *row)
{
    size_t size = t->def.row_length;
    uint8_t *blob;
    heap_image *image;

    for (uint32_t c = 0; c < t->def.column_count; c++) {
        const struct column *column = &t->def.columns[c];
        uint32_t length;

        if (col_is_blob(column) && !rec_is_null(column, row)) {
            rec_blob(column, row, &length);
            size += length;
        }
    }
    image = malloc(size);
    if (image == NULL)
        return NULL;
    memcpy(image, row, t->def.row_length);
    blob = image + t->def.row_length;
    for (uint32_t c = 0; c < t->def.column_count; c++) {
        const struct column *column = &t->def.columns[c];

        if (col_is_blob(column) && !rec_is_null(column, row)) {
            uint32_t length;
            const uint8_t *data = rec_blob(column, row, &length);

            if (length > 0)
                memcpy(blob, data, length);
            rec_set_blob(column, image, blob, length);
            blob += length;
        }
    }
    return image;
}

/* ----------------------------------------------------------------------------------- orders */

/* Order of (image a, id a_id) against a row. */
static int compare(const heap_table *t, size_t o, const heap_image *a, uint64_t a_id,
                   const heap_row *b)
{
    int order = o < t->def.key_count ? rec_compare(&t->def, (uint32_t)o, a, b->image) : 0;

    if (order != 0)
        return order;
    return a_id < b->id ? -1 : a_id > b->id;
}

size_t heap_lower_bound(const heap_table *t, size_t o, const heap_image *image, uint64_t id)
{
    const heap_order *order = &t->orders[o];
    size_t low = 0, high = order->count;

    /* ascending inserts come last: one comparison finds that out */
    if (high > 0 && compare(t, o, image, id, order->rows[high - 1]) > 0)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(t, o, image, id, order->rows[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t heap_key_bound(const heap_table *t, uint32_t key, const uint8_t *key_image, uint32_t length,
                      bool after)
{
    const heap_order *order = &t->orders[key];
    size_t low = 0, high = order->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int side = rec_compare_key(&t->def, key, order->rows[middle]->image, key_image, length);

        if (side < 0 || (after && side == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void order_insert(heap_table *t, size_t o, heap_row *row)
{
    heap_order *order = &t->orders[o];
    size_t at = heap_lower_bound(t, o, row->image, row->id);

    order->rows = heap_grow(order->rows, &order->room, order->count + 1, sizeof *order->rows);
    memmove(order->rows + at + 1, order->rows + at, (order->count - at) * sizeof *order->rows);
    order->rows[at] = row;
    order->count++;
}

static void order_remove(heap_table *t, size_t o, heap_row *row)
{
    heap_order *order = &t->orders[o];
    size_t at = heap_lower_bound(t, o, row->image, row->id);

    if (at >= order->count || order->rows[at] != row)
        abort(); /* an order that lost a row is a bug */
    order->count--;
    memmove(order->rows + at, order->rows + at + 1, (order->count - at) * sizeof *order->rows);
}

void heap_row_link(heap_table *t, heap_row *row)
{
    for (size_t o = 0; o <= t->def.key_count; o++)
        order_insert(t, o, row);
    t->bytes += t->def.row_length;
}

void heap_row_unlink(heap_table *t, heap_row *row)
{
    for (size_t o = 0; o <= t->def.key_count; o++)
        order_remove(t, o, row);
    t->bytes -= t->def.row_length;
}

void heap_row_replace(heap_table *t, heap_row *row, heap_image *image)
{
    heap_image *old = row->image;

    for (uint32_t key = 0; key < t->def.key_count; key++) {
        if (rec_compare(&t->def, key, old, image) != 0) {
            row->image = old;
            order_remove(t, key, row);
            row->image = image;
            order_insert(t, key, row);
        } else {
            row->image = image; /* equal under the collation: the place is the same */
        }
    }
    row->image = image;
}

heap_row *heap_row_by_id(const heap_table *t, uint64_t id)
{
    const heap_order *by_id = &t->orders[t->def.key_count];
    size_t low = 0, high = by_id->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (by_id->rows[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < by_id->count && by_id->rows[low]->id == id ? by_id->rows[low] : NULL;
}

uint32_t heap_duplicate(const heap_table *t, const heap_image *image, const heap_row *self)
{
    for (uint32_t key = 0; key < t->def.key_count; key++) {
        const heap_order *order = &t->orders[key];
        size_t at;

        if (!(t->def.keys[key].flags & KEY_UNIQUE) || rec_key_has_null(&t->def, key, image))
            continue;
        at = heap_lower_bound(t, key, image, 0);
        while (at < order->count && rec_compare(&t->def, key, image, order->rows[at]->image) == 0)
            if (order->rows[at++] != self)
                return key;
    }
    return NO_KEY;
}

bool heap_check(const heap_table *t, char *message, size_t size)
{
    const heap_order *by_id = &t->orders[t->def.key_count];

    for (size_t o = 0; o <= t->def.key_count; o++) {
        const heap_order *order = &t->orders[o];

        if (order->count != by_id->count) {
            snprintf(message, size, "index %zu has %zu rows, the table %zu", o, order->count,
                     by_id->count);
            return false;
        }
        for (size_t i = 1; i < order->count; i++) {
            const heap_row *before = order->rows[i - 1];

            if (compare(t, o, before->image, before->id, order->rows[i]) >= 0) {
                snprintf(message, size, "index %zu is not sorted at row %zu", o, i);
                return false;
            }
        }
    }
    snprintf(message, size, "OK");
    return true;
}
