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

/* The next row of an IN list: rows of one point, then the next point's. */
static int next_of_points(struct scan *sc)
{
    const struct plan *p = sc->plan;
    const struct se_ops *ops = sc->t->eng->ops;
    for (;;) {
        int rc = SE_END_OF_FILE;
        if (sc->started) {
            const uint8_t *point = p->points[p->reverse ? p->point_count - sc->point : sc->point - 1];
            rc = p->reverse ? ops->index_prev(sc->t, sc->row) : ops->index_next(sc->t, sc->row);
            if (!rc && rec_compare_key(sc->t->def, p->key, sc->row, point, p->point_length)) {
                if (ops->unlock_row)
                    ops->unlock_row(sc->t);
                rc = SE_END_OF_FILE;
            }
        }
        if (rc != SE_END_OF_FILE)
            return rc;
        do {
            if (sc->point == p->point_count)
                return SE_END_OF_FILE;
            const uint8_t *point = p->points[p->reverse ? p->point_count - 1 - sc->point : sc->point];
            sc->point++;
            rc = ops->index_read(sc->t, p->key, sc->row, point, p->point_length,
                                 p->reverse ? FIND_PREFIX_LAST : FIND_EXACT);
        } while (rc == SE_KEY_NOT_FOUND || rc == SE_END_OF_FILE);
        sc->any = true;
        /* All parts of a unique key: the point has no second row, do not touch its neighbour. */
        sc->started = !p->single;
        return rc;
    }
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
    if (sc->plan->points)
        return next_of_points(sc);
    if (!sc->started) {
        sc->started = sc->any = true;
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
    else if (sc->any || sc->point)
        sc->t->eng->ops->index_end(sc->t);
}
