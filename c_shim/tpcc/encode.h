/*
 * Values into and out of row images and keys.
 *
 * Numbers are int64_t: integers as they are, DECIMAL(p,s) times 10^s (money in cents), DATETIME
 * packed as MariaDB packs it, so that greater is later.
 */
#ifndef XTRADB_TPCC_ENCODE_H
#define XTRADB_TPCC_ENCODE_H

#include <stdbool.h>
#include <xtradb.h>

#define KEY_BYTES_MAX 64

typedef struct key_image {
    uint8_t bytes[KEY_BYTES_MAX];
    uint32_t length;
} key_image;

void put_number(uint8_t *row, const xt_column *column, int64_t value);
int64_t get_number(const uint8_t *row, const xt_column *column);

/* CHAR is padded; what is too long is cut. */
void put_text(uint8_t *row, const xt_column *column, const char *text, uint32_t length);
/* The bytes in the row and their number; padding of CHAR included. */
const char *get_text(const uint8_t *row, const xt_column *column, uint32_t *length);

static inline void put_null(uint8_t *row, const xt_column *column)
{
    row[column->null_offset] |= column->null_mask;
}

static inline bool is_null(const uint8_t *row, const xt_column *column)
{
    return (row[column->null_offset] & column->null_mask) != 0;
}

/* Appends the next part of a key. No key column is nullable. */
void key_number(key_image *key, const xt_column *column, int64_t value);
void key_text(key_image *key, const xt_column *column, const char *text);

/* This second as a DATETIME, UTC. */
int64_t datetime_now(void);

#endif
