/*
 * The builtin engine: rows in memory, gone when the process ends.
 *
 * Made so that the host works without a plugin, and honest about what it is: whole-table locks,
 * held to the end of the transaction (readers share, writers are alone), hence SERIALIZABLE but for
 * plain reads at the two lower levels, which let go at the end of the statement, or at READ
 * UNCOMMITTED lock nothing. Deadlocks are found when a wait begins. Statement, savepoint and
 * transaction rollback work from an undo list. No versions, no files, no recovery.
 *
 *   heap.c        sessions, transactions, DDL and variables of se_ops
 *   heap_handle.c handles: reading and writing
 *   heap_store.c  tables, rows, and the sorted arrays that are its indexes
 *   heap_trx.c    transactions: undo list, table locks, waits
 *
 * One mutex (heap->mutex) guards everything below; waits use one condition variable.
 */
#ifndef XTRADB_HOST_HEAP_H
#define XTRADB_HOST_HEAP_H

#include <pthread.h>

#include "host.h"

/* One stored row image: row_length bytes, then the bytes of its BLOBs, which it points to. */
typedef uint8_t heap_image;

typedef struct heap_row {
    uint64_t id; /* order of insertion; the row's position */
    heap_image *image;
} heap_row;

/* Rows in the order of a key, ties by id. */
typedef struct heap_order {
    heap_row **rows;
    size_t count, room;
} heap_order;

typedef struct heap_trx heap_trx;

typedef struct heap_waiter {
    struct heap_waiter *next;
    heap_trx *trx;
    bool exclusive;
} heap_waiter;

typedef struct heap_table {
    struct heap_table *next;
    char *db, *name;
    table_def def;       /* our own copy of columns and keys, without names */
    heap_order *orders;  /* one for each key, then one by id */
    uint64_t next_id, autoinc;
    uint64_t bytes;
    unsigned handles, trxs; /* open handles; locks held or waited for, and undo entries */
    bool dropped;           /* freed when both are 0 */
    heap_trx *owner;        /* of the exclusive lock */
    unsigned sharers;
    heap_waiter *queue;     /* first come, first served */
} heap_table;

enum heap_change { HEAP_INSERTED, HEAP_UPDATED, HEAP_DELETED };

typedef struct heap_undo {
    enum heap_change change;
    heap_table *table;
    heap_row *row;
    heap_image *old; /* HEAP_UPDATED: what the row was */
} heap_undo;

typedef struct heap_lock {
    heap_table *table;
    bool shared, exclusive;
    bool statement; /* the shared lock ends with the statement */
} heap_lock;

typedef struct heap_savepoint {
    char *name;
    size_t undo_count;
} heap_savepoint;

/* The engine's part of a session. */
struct heap_trx {
    struct heap *heap;
    session *owner;
    enum se_isolation level;
    bool started;
    bool interrupted;
    heap_table *waits_for;
    uint64_t lock_wait_timeout; /* seconds */
    heap_undo *undo;
    size_t undo_count, undo_room, statement_mark;
    heap_lock *locks;
    size_t lock_count, lock_room;
    heap_savepoint *savepoints;
    size_t savepoint_count, savepoint_room;
};

typedef struct heap {
    engine engine; /* first */
    pthread_mutex_t mutex;
    pthread_cond_t released;
    heap_table *tables;
    uint64_t lock_wait_timeout;
} heap;

/* heap_handle.c */
void heap_handle_ops(struct se_ops *ops);

void *heap_grow(void *memory, size_t *room, size_t wanted, size_t size);

/* heap_store.c; all with the mutex held */
heap_table *heap_find(heap *h, const char *db, const char *name);
heap_table *heap_table_new(heap *h, const table_def *def);
void heap_table_unlink(heap *h, heap_table *t);
void heap_table_release(heap *h, heap_table *t); /* frees a dropped table that nobody uses */
void heap_table_clear(heap_table *t);
heap_image *heap_image_new(const heap_table *t, const uint8_t *row);
/* The key that `image` would violate, other than by `self`; NO_KEY: none. */
uint32_t heap_duplicate(const heap_table *t, const heap_image *image, const heap_row *self);
void heap_row_link(heap_table *t, heap_row *row);
void heap_row_unlink(heap_table *t, heap_row *row);
void heap_row_replace(heap_table *t, heap_row *row, heap_image *image); /* keeps the old image */
heap_row *heap_row_by_id(const heap_table *t, uint64_t id);
/* Index in orders[o] of the first row that is not before (image, id). */
size_t heap_lower_bound(const heap_table *t, size_t o, const heap_image *image, uint64_t id);
/* Index of the first row that is not before (after = false), or is after, all rows with the key. */
size_t heap_key_bound(const heap_table *t, uint32_t key, const uint8_t *key_image, uint32_t length,
                      bool after);
/* True when every order holds the same rows, sorted; else `message` says what is wrong. */
bool heap_check(const heap_table *t, char *message, size_t size);

/* heap_trx.c; all with the mutex held */
int heap_lock_table(heap_trx *trx, heap_table *t, bool exclusive, bool statement);
/* Waits, and will go on waiting: a waiter that has been let in but did not wake yet does not count. */
bool heap_is_waiting(const heap_trx *trx);
void heap_note(heap_trx *trx, enum heap_change change, heap_table *t, heap_row *row,
               heap_image *old);
void heap_rollback_to(heap_trx *trx, size_t undo_count);
void heap_statement_end(heap_trx *trx);
void heap_trx_end(heap_trx *trx, bool commit);
heap_savepoint *heap_savepoint_find(heap_trx *trx, const char *name);
void heap_savepoint_set(heap_trx *trx, const char *name);
void heap_savepoints_cut(heap_trx *trx, size_t count);

#endif
