#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heap.h"

/* ------------------------------------------------------------------------------------- undo */

void heap_note(heap_trx *trx, enum heap_change change, heap_table *t, heap_row *row,
               heap_image *old)
{
    trx->undo = heap_grow(trx->undo, &trx->undo_room, trx->undo_count + 1, sizeof *trx->undo);
    trx->undo[trx->undo_count++] = (heap_undo){ change, t, row, old };
    t->trxs++;
}

static void undo_one(heap_trx *trx, heap_undo *u)
{
    heap_image *changed;

    switch (u->change) {
    case HEAP_INSERTED:
        heap_row_unlink(u->table, u->row);
        free(u->row->image);
        free(u->row);
        break;
    case HEAP_UPDATED:
        changed = u->row->image;
        heap_row_replace(u->table, u->row, u->old);
        free(changed);
        break;
    case HEAP_DELETED:
        heap_row_link(u->table, u->row);
        break;
    }
    u->table->trxs--;
    heap_table_release(trx->heap, u->table);
}

static void forget_one(heap_trx *trx, heap_undo *u)
{
    if (u->change == HEAP_DELETED) {
        free(u->row->image);
        free(u->row);
    }
    free(u->old);
    u->table->trxs--;
    heap_table_release(trx->heap, u->table);
}

void heap_rollback_to(heap_trx *trx, size_t undo_count)
{
    while (trx->undo_count > undo_count)
        undo_one(trx, &trx->undo[--trx->undo_count]);
}

/* ------------------------------------------------------------------------------------- locks */

static heap_lock *lock_of(const heap_trx *trx, const heap_table *t)
{
    for (size_t i = 0; i < trx->lock_count; i++)
        if (trx->locks[i].table == t)
            return &trx->locks[i];
    return NULL;
}

/* Does what others hold allow it? `mine`: what this transaction holds already. */
static bool compatible(const heap_trx *trx, const heap_table *t, const heap_lock *mine,
                       bool exclusive)
{
    unsigned others = t->sharers - (mine != NULL && mine->shared ? 1 : 0);

    if (t->owner != NULL && t->owner != trx)
        return false;
    return !exclusive || others == 0;
}

/* Does `trx` hold a lock on `t` that forbids the wanted one? */
static bool holds_against(const heap_trx *trx, const heap_table *t, bool exclusive)
{
    for (size_t i = 0; i < trx->lock_count; i++)
        if (trx->locks[i].table == t)
            return trx->locks[i].exclusive || exclusive;
    return false;
}

/* Is `before` in the queue of `t`, and before `waiter` where that is queued too? */
static bool queued_before(const heap_table *t, const heap_trx *before, const heap_trx *waiter)
{
    for (const heap_waiter *w = t->queue; w != NULL && w->trx != waiter; w = w->next)
        if (w->trx == before)
            return true;
    return false;
}

/* Would `waiter`, waiting for `t`, wait for `goal` in the end? Follows holders and earlier waiters. */
static bool waits_on(const heap *h, const heap_trx *waiter, const heap_table *t, bool exclusive,
                     const heap_trx *goal, unsigned depth)
{
    if (depth > 64)
        return false;
    for (const heap_table *u = h->tables; u != NULL; u = u->next) {
        for (const heap_waiter *w = u->queue; w != NULL; w = w->next) {
            if (w->trx == waiter || (!holds_against(w->trx, t, exclusive) &&
                                     !queued_before(t, w->trx, waiter)))
                continue;
            if (holds_against(goal, u, w->exclusive) ||
                waits_on(h, w->trx, u, w->exclusive, goal, depth + 1))
                return true;
        }
    }
    return false;
}

bool heap_is_waiting(const heap_trx *trx)
{
    const heap_table *t = trx->waits_for;

    if (t == NULL || t->dropped || trx->interrupted)
        return false;
    /* who stands first and is compatible is as good as let in; then so is who comes next, if shared */
    for (const heap_waiter *w = t->queue; w != NULL; w = w->next) {
        bool first = w == t->queue;

        if (!compatible(w->trx, t, lock_of(w->trx, t), w->exclusive) || (w->exclusive && !first))
            return true;
        if (w->trx == trx)
            return false;
        if (w->exclusive)
            return true;
    }
    return true;
}

static void enqueue(heap_table *t, heap_waiter *waiter, bool first)
{
    heap_waiter **link = &t->queue;

    while (!first && *link != NULL)
        link = &(*link)->next;
    waiter->next = *link;
    *link = waiter;
}

static void dequeue(heap_table *t, heap_waiter *waiter)
{
    heap_waiter **link = &t->queue;

    while (*link != waiter)
        link = &(*link)->next;
    *link = waiter->next;
}

/* Waits at the end of the queue (an upgrade: at its head) until the lock can be granted. */
static int wait_for(heap_trx *trx, heap_table *t, bool exclusive)
{
    heap *h = trx->heap;
    heap_lock *mine = lock_of(trx, t);
    heap_waiter waiter = { .trx = trx, .exclusive = exclusive };
    struct timespec until;
    int result = SE_OK;

    if (waits_on(h, trx, t, exclusive, trx, 0)) {
        heap_trx_end(trx, false);
        return SE_LOCK_DEADLOCK;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)trx->lock_wait_timeout;
    enqueue(t, &waiter, mine != NULL);
    trx->waits_for = t;
    t->trxs++;
    while (result == SE_OK && !t->dropped &&
           (t->queue != &waiter || !compatible(trx, t, mine, exclusive))) {
        if (trx->interrupted)
            result = SE_ABORTED_BY_USER;
        else if (pthread_cond_timedwait(&h->released, &h->mutex, &until) == ETIMEDOUT)
            result = SE_LOCK_WAIT_TIMEOUT;
    }
    trx->waits_for = NULL;
    dequeue(t, &waiter);
    t->trxs--;
    /* who comes next may be compatible with us */
    pthread_cond_broadcast(&h->released);
    if (t->dropped) {
        heap_table_release(h, t);
        return SE_NO_SUCH_TABLE;
    }
    return result;
}

int heap_lock_table(heap_trx *trx, heap_table *t, bool exclusive, bool statement)
{
    heap_lock *mine = lock_of(trx, t);
    int result;

    if (t->dropped)
        return SE_NO_SUCH_TABLE;
    if (mine != NULL && (mine->exclusive || (!exclusive && mine->shared))) {
        mine->statement = mine->statement && statement;
        return SE_OK;
    }
    if (!compatible(trx, t, mine, exclusive) || (t->queue != NULL && mine == NULL)) {
        result = wait_for(trx, t, exclusive);
        if (result != SE_OK)
            return result;
    }
    if (mine == NULL) {
        trx->locks = heap_grow(trx->locks, &trx->lock_room, trx->lock_count + 1,
                               sizeof *trx->locks);
        mine = &trx->locks[trx->lock_count++];
        *mine = (heap_lock){ .table = t, .statement = statement };
        t->trxs++;
    }
    if (exclusive) {
        mine->exclusive = true;
        mine->statement = false;
        t->owner = trx;
    } else {
        mine->shared = true;
        t->sharers++;
    }
    return SE_OK;
}

static void unlock(heap_trx *trx, heap_lock *lock)
{
    heap_table *t = lock->table;

    if (lock->exclusive)
        t->owner = NULL;
    if (lock->shared)
        t->sharers--;
    t->trxs--;
    heap_table_release(trx->heap, t);
}

void heap_statement_end(heap_trx *trx)
{
    size_t kept = 0;

    for (size_t i = 0; i < trx->lock_count; i++) {
        if (trx->locks[i].statement)
            unlock(trx, &trx->locks[i]);
        else
            trx->locks[kept++] = trx->locks[i];
    }
    if (kept != trx->lock_count)
        pthread_cond_broadcast(&trx->heap->released);
    trx->lock_count = kept;
}

/* ------------------------------------------------------------------------------ transactions */

void heap_trx_end(heap_trx *trx, bool commit)
{
    if (commit) {
        for (size_t i = 0; i < trx->undo_count; i++)
            forget_one(trx, &trx->undo[i]);
        trx->undo_count = 0;
    } else {
        heap_rollback_to(trx, 0);
    }
    for (size_t i = 0; i < trx->lock_count; i++)
        unlock(trx, &trx->locks[i]);
    trx->lock_count = 0;
    trx->statement_mark = 0;
    heap_savepoints_cut(trx, 0);
    trx->started = false;
    pthread_cond_broadcast(&trx->heap->released);
}

heap_savepoint *heap_savepoint_find(heap_trx *trx, const char *name)
{
    for (size_t i = trx->savepoint_count; i > 0; i--)
        if (strcasecmp(trx->savepoints[i - 1].name, name) == 0)
            return &trx->savepoints[i - 1];
    return NULL;
}

void heap_savepoint_set(heap_trx *trx, const char *name)
{
    heap_savepoint *old = heap_savepoint_find(trx, name);
    heap_savepoint made = { .name = strdup(name), .undo_count = trx->undo_count };

    if (made.name == NULL)
        abort();
    if (old != NULL) {
        free(old->name);
        trx->savepoint_count--;
        memmove(old, old + 1,
                (trx->savepoint_count - (size_t)(old - trx->savepoints)) * sizeof *old);
    }
    trx->savepoints = heap_grow(trx->savepoints, &trx->savepoint_room, trx->savepoint_count + 1,
                                sizeof *trx->savepoints);
    trx->savepoints[trx->savepoint_count++] = made;
}

void heap_savepoints_cut(heap_trx *trx, size_t count)
{
    while (trx->savepoint_count > count)
        free(trx->savepoints[--trx->savepoint_count].name);
}
