#include "stream.h"

#include <string.h>

/* Rows of another warehouse end the stream. */
static void look_at_row(stream *s)
{
    if (stream_has(s) && s->warehouse != 0 && stream_number(s, 0) != s->warehouse) {
        s->count = s->at;
        s->ended = true;
    }
}

static xt_status fill(stream *s)
{
    uint32_t length = s->handle->def->row_length;
    xt_batch batch = { .struct_size = sizeof batch, .direction = XT_NEXT, .rows = s->rows,
                       .row_stride = length, .capacity = STREAM_BYTES / length };
    xt_status status = XT_OK;

    s->at = s->count = 0;
    while (s->count == 0 && !s->ended) {
        status = s->client->xt->read_n(s->handle->table, &batch);
        s->count = batch.count;
        s->ended = status == XT_END_OF_FILE;
        if (status != XT_OK && !s->ended)
            return status;
    }
    look_at_row(s);
    return XT_OK;
}

xt_status stream_open(stream *s, client *c, enum table table, int warehouse)
{
    key_image key;
    xt_status status;

    s->client = c;
    s->handle = &c->handles[table];
    s->warehouse = warehouse;
    s->count = s->at = 0;
    s->ended = false;
    TRY(bind_table(c, table, READ, ALL_COLUMNS, 0));
    if (warehouse == 0) {
        TRY(c->xt->scan_begin(s->handle->table, 1));
        return fill(s);
    }
    key = KEY(c, table, PRIMARY, warehouse);
    status = read_key(c, table, PRIMARY, &key, XT_FIND_KEY_OR_NEXT);
    if (status == XT_KEY_NOT_FOUND || status == XT_END_OF_FILE) {
        s->ended = true;
        return XT_OK;
    }
    TRY(status);
    memcpy(s->rows, s->handle->row, s->handle->def->row_length);
    s->count = 1;
    look_at_row(s);
    return XT_OK;
}

xt_status stream_next(stream *s)
{
    s->at++;
    if (s->at < s->count) {
        look_at_row(s);
        return XT_OK;
    }
    return fill(s);
}
