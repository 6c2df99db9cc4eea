/* xtradb/index.h - reading by key.
 *
 *   index_begin(table, key)
 *   index_read / index_first / index_last    set the place
 *   index_next / index_prev / index_next_same / read_n
 *   index_end(table)
 */
#ifndef XTRADB_INDEX_H
#define XTRADB_INDEX_H

#include "table.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How index_read and records_in_range compare: MySQL's ha_rkey_function. */
#define XT_FIND_EXACT 0          /* first row with this key, else XT_KEY_NOT_FOUND */
#define XT_FIND_KEY_OR_NEXT 1    /* first row >= key */
#define XT_FIND_KEY_OR_PREV 2    /* last row <= key */
#define XT_FIND_AFTER 3          /* first row > key */
#define XT_FIND_BEFORE 4         /* last row < key */
#define XT_FIND_PREFIX 5         /* first row that begins with the key */
#define XT_FIND_PREFIX_LAST 6    /* last row that begins with the key */
#define XT_FIND_PREFIX_LAST_OR_PREV 7 /* last row <= prefix */
/* 8..12: MBR_CONTAIN, INTERSECT, WITHIN, DISJOINT, EQUAL of spatial keys: XT_UNSUPPORTED */

/** Chooses the key for the calls below. `sorted` 0: order does not matter.
 *  Thread: owner. Codes: common, XT_WRONG_ORDER (a scan or index is open), XT_INDEX_CORRUPT,
 *  XT_COLLATION_UNKNOWN. */
typedef xt_status xt_index_begin_fn(xt_table *table, uint32_t key, uint8_t sorted);

/** No index open: XT_OK. Thread: owner. Codes: common. */
typedef xt_status xt_index_end_fn(xt_table *table);

/** Finds a row by a key image of `key_length` bytes. "Less" and "greater" are in index order:
 *  descending parts turn them round. `key` NULL with length 0: the first row in direction of `find`.
 *  Thread: owner. Codes: read codes, XT_KEY_NOT_FOUND. */
typedef xt_status xt_index_read_fn(xt_table *table, uint8_t *row, const uint8_t *key,
                                   uint32_t key_length, uint32_t find);

/** Neighbours in index order. Thread: owner. Codes: read codes, XT_WRONG_ORDER (no place yet). */
typedef xt_status xt_index_next_fn(xt_table *table, uint8_t *row);
typedef xt_status xt_index_prev_fn(xt_table *table, uint8_t *row);
typedef xt_status xt_index_first_fn(xt_table *table, uint8_t *row);
typedef xt_status xt_index_last_fn(xt_table *table, uint8_t *row);

/** The next row if it still has the key (or key prefix), else XT_END_OF_FILE.
 *  Thread: owner. Codes: read codes, XT_WRONG_ORDER. */
typedef xt_status xt_index_next_same_fn(xt_table *table, uint8_t *row, const uint8_t *key,
                                        uint32_t key_length);

/** An end of a range. */
typedef struct xt_bound {
  const uint8_t *key;
  uint32_t length;
  /** XT_FIND_EXACT (lower: inclusive), XT_FIND_AFTER (lower: exclusive; upper: inclusive),
   *  XT_FIND_BEFORE (upper: exclusive): MySQL's convention. */
  uint32_t find;
} xt_bound;

/** Estimates the rows between two ends; NULL = open end. `*rows` is at least 1. Needs no index
 *  open. Thread: owner. Codes: common, XT_CRASHED. */
typedef xt_status xt_records_in_range_fn(xt_table *table, uint32_t key, const xt_bound *lower,
                                         const xt_bound *upper, uint64_t *rows);

#ifdef __cplusplus
}
#endif

#endif /* XTRADB_INDEX_H */
