/* The rows of a plan. */
#include "exec.h"

static int start_index(struct scan *sc)
{
    const struct plan *p = sc->plan;
    const struct se_ops *ops = sc->t->eng->ops;
    if (p->reverse) {
        if (!p->high)
            return ops->index_last(sc->t, p->key, sc->row);
        return ops->index_read(sc->t, p->key, sc->row, p->high, p->high_length,
                               p->equal           ? FIND_PREFIX_LAST
                               : p->high_inclusive ? FIND_PREFIX_LAST_OR_PREV
                                                   : FIND_BEFORE);
    }
    if (!p->low)
        return ops->index_first(sc->t, p->key, sc->row);
    return ops->index_read(sc->t, p->key, sc->row, p->low, p->low_length,
                           p->equal           ? FIND_EXACT
                           : p->low_inclusive ? FIND_OR_NEXT
                                              : FIND_AFTER);
}

/* Past the far end of the range? */
static bool beyond(const struct scan *sc)
{
    const struct plan *p = sc->plan;
    const table_def *def = sc->t->def;
    if (p->reverse && p->low) {
        int c = rec_compare_key(def, p->key, sc->row, p->low, p->low_length);
        return c < 0 || (c == 0 && !p->low_inclusive);
    }
    if (!p->reverse && p->high) {
        int c = rec_compare_key(def, p->key, sc->row, p->high, p->high_length);
        return c > 0 || (c == 0 && !p->high_inclusive);
    }
    return false;
}

int scan_start(struct scan *sc, se_table *t, const struct plan *plan, uint8_t *row)
{
    *sc = (struct scan){.t = t, .plan = plan, .row = row};
    return plan->access == ACCESS_SCAN ? t->eng->ops->rnd_init(t) : SE_OK;
}

int scan_next(struct scan *sc)
{
    const struct se_ops *ops = sc->t->eng->ops;
    int rc;
    if (sc->plan->access == ACCESS_NOTHING)
        return SE_END_OF_FILE;
    if (sc->plan->access == ACCESS_SCAN)
        return ops->rnd_next(sc->t, sc->row);
    if (!sc->started) {
        sc->started = true;
        rc = start_index(sc);
    } else if (sc->plan->unique) {
        return SE_END_OF_FILE;
    } else {
        rc = sc->plan->reverse ? ops->index_prev(sc->t, sc->row) : ops->index_next(sc->t, sc->row);
    }
    if (rc == SE_KEY_NOT_FOUND)
        return SE_END_OF_FILE;
    if (rc == SE_OK && !sc->plan->unique && beyond(sc)) {
        if (ops->unlock_row)
            ops->unlock_row(sc->t);
        return SE_END_OF_FILE;
    }
    return rc;
}

void scan_end(struct scan *sc)
{
    if (sc->plan->access == ACCESS_SCAN)
        sc->t->eng->ops->rnd_end(sc->t);
    else if (sc->started)
        sc->t->eng->ops->index_end(sc->t);
}
