/* The rows of a table, or of one warehouse's part of it, in key order, many for each call. */
#ifndef XTRADB_TPCC_STREAM_H
#define XTRADB_TPCC_STREAM_H

#include "connect.h"

#define STREAM_BYTES 65536

typedef struct stream {
    client *client;
    handle *handle;
    int warehouse; /* 0: all rows */
    uint32_t count, at;
    bool ended; /* the engine has no more */
    uint8_t rows[STREAM_BYTES];
} stream;

/* Binds the table; the statement must have begun. Ready with the first row. `warehouse` 0: a table
 * without a key is read whole. The key's first column is the warehouse's number. */
xt_status stream_open(stream *s, client *c, enum table table, int warehouse);
/* To the next row. */
xt_status stream_next(stream *s);
/* Is there a row? */
static inline bool stream_has(const stream *s)
{
    return s->at < s->count;
}

static inline const uint8_t *stream_row(const stream *s)
{
    return s->rows + (size_t)s->at * s->handle->def->row_length;
}

static inline int64_t stream_number(const stream *s, unsigned column)
{
    return get_number(stream_row(s), &s->handle->def->columns[column]);
}

static inline bool stream_is_null(const stream *s, unsigned column)
{
    return is_null(stream_row(s), &s->handle->def->columns[column]);
}

#endif
