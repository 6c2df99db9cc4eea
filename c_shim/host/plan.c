/* Choosing an index: an equality prefix of key parts, then a range on the next part.
 *
 * WHERE is evaluated on every row that comes, so a range may be too wide but never too narrow. A
 * constant is used as a bound only if the column can hold it exactly: then comparing in the index
 * and comparing in the expression mean the same. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "charset.h"
#include "exec.h"

struct condition_list {
    const struct expr **items;
    uint32_t count;
};

/* A range of one column in value order. */
struct column_range {
    bool equal, is_null, has_low, has_high, low_inclusive, high_inclusive;
    struct value low, high;
    struct value *list;   /* IN: the values; low and high span them */
    uint32_t list_count;
};

struct planner {
    struct scope *sc;
    se_table *t;
    const table_def *def;
    struct condition_list conditions;
    uint8_t *scratch; /* a row for making key images */
};

static void flatten(struct arena *a, const struct expr *e, struct condition_list *list)
{
    if (e->kind == E_AND) {
        flatten(a, e->args[0], list);
        flatten(a, e->args[1], list);
        return;
    }
    const struct expr **grown = arena_alloc(a, (list->count + 1) * sizeof *grown);
    if (list->count)
        memcpy(grown, list->items, list->count * sizeof *grown);
    grown[list->count++] = e;
    list->items = grown;
}

static bool is_text(const struct column *c)
{
    return c->type == CT_CHAR || c->type == CT_VARCHAR || c->type == CT_TEXT || c->type == CT_JSON ||
           c->type == CT_ENUM || c->type == CT_SET;
}

/* True if comparing column and constant is comparing in the column's own order; the constant then
 * becomes a value of the column. */
static bool usable(struct planner *p, const struct column *c, struct value *v)
{
    struct arena *a = &p->sc->s->arena;
    if (v->kind == V_NULL || c->type == CT_ENUM || c->type == CT_SET || c->type == CT_GEOMETRY)
        return false;
    if (is_text(c)) {
        if (v->kind != V_STRING || v->from_hex)
            return false;
        if (v->collation != c->collation && !v->literal)
            return false;
        if (coll_is_binary(v->collation) && !coll_is_binary(c->collation))
            return false;
    }
    enum store_result r = value_store(a, c, p->scratch, v, p->sc->s->zone_seconds);
    if (r != ST_OK && r != ST_TRUNCATED_NOTE)
        return false;
    struct value back = value_load(a, c, p->scratch, p->sc->s->zone_seconds);
    if (value_compare(&back, v) != 0)
        return false;
    if (back.kind == V_STRING)
        back.s.ptr = arena_strndup(a, back.s.ptr, back.s.len);
    *v = back;
    return true;
}

static void narrow_low(struct column_range *r, const struct value *v, bool inclusive)
{
    int c = r->has_low ? value_compare(v, &r->low) : 1;
    if (c < 0 || (c == 0 && (inclusive || !r->low_inclusive)))
        return;
    r->has_low = true;
    r->low = *v;
    r->low_inclusive = inclusive;
}

static void narrow_high(struct column_range *r, const struct value *v, bool inclusive)
{
    int c = r->has_high ? value_compare(v, &r->high) : -1;
    if (c > 0 || (c == 0 && (inclusive || !r->high_inclusive)))
        return;
    r->has_high = true;
    r->high = *v;
    r->high_inclusive = inclusive;
}

static void narrow_equal(struct column_range *r, const struct value *v)
{
    narrow_low(r, v, true);
    narrow_high(r, v, true);
    r->equal = true;
}

static enum op mirrored(enum op op)
{
    switch (op) {
    case OP_LT: return OP_GT;
    case OP_LE: return OP_GE;
    case OP_GT: return OP_LT;
    case OP_GE: return OP_LE;
    default: return op;
    }
}

static void take_comparison(struct planner *p, const struct column *c, uint32_t col,
                            const struct expr *e, struct column_range *r)
{
    const struct expr *a = e->args[0], *b = e->args[1];
    enum op op = e->op;
    if (!(a->kind == E_COLUMN && a->column == col && expr_is_constant(b))) {
        if (!(b->kind == E_COLUMN && b->column == col && expr_is_constant(a)))
            return;
        const struct expr *swap = a;
        a = b;
        b = swap;
        op = mirrored(op);
    }
    struct value v = expr_eval(p->sc, b);
    if (v.kind == V_NULL && op == OP_NULL_EQ)
        r->is_null = true;
    if (!usable(p, c, &v))
        return;
    switch (op) {
    case OP_EQ:
    case OP_NULL_EQ: narrow_equal(r, &v); break;
    case OP_LT: narrow_high(r, &v, false); break;
    case OP_LE: narrow_high(r, &v, true); break;
    case OP_GT: narrow_low(r, &v, false); break;
    case OP_GE: narrow_low(r, &v, true); break;
    default: break;
    }
}

static void take_between(struct planner *p, const struct column *c, const struct expr *e,
                         struct column_range *r)
{
    if (e->negated || !expr_is_constant(e->args[1]) || !expr_is_constant(e->args[2]))
        return;
    struct value low = expr_eval(p->sc, e->args[1]), high = expr_eval(p->sc, e->args[2]);
    if (usable(p, c, &low))
        narrow_low(r, &low, true);
    if (usable(p, c, &high))
        narrow_high(r, &high, true);
}

/* The values of a list, and the range that spans them. */
static void take_in(struct planner *p, const struct column *c, const struct expr *e,
                    struct column_range *r)
{
    struct value low, high, *list;
    if (e->negated)
        return;
    list = arena_alloc(&p->sc->s->arena, e->arg_count * sizeof *list);
    for (uint32_t i = 1; i < e->arg_count; i++) {
        if (!expr_is_constant(e->args[i]))
            return;
        struct value v = expr_eval(p->sc, e->args[i]);
        if (!usable(p, c, &v))
            return;
        list[i - 1] = v;
        if (i == 1 || value_compare(&v, &low) < 0)
            low = v;
        if (i == 1 || value_compare(&v, &high) > 0)
            high = v;
    }
    if (e->arg_count == 2) {
        narrow_equal(r, &low);
        return;
    }
    narrow_low(r, &low, true);
    narrow_high(r, &high, true);
    if (!r->list) {
        r->list = list;
        r->list_count = e->arg_count - 1;
    }
}

/* The least text that begins with `v`: with PAD SPACE that is the one filled up with NULs. */
static void lowest_text(struct planner *p, const struct column *c, struct value *v)
{
    enum { FILL_MAX = 768 };
    size_t chars = coll_char_count(c->collation, (const uint8_t *)v->s.ptr, v->s.len);
    size_t room = c->char_length ? c->char_length : FILL_MAX;
    size_t fill = coll_pads(c->collation) && room > chars ? room - chars : 0;
    char *text = arena_alloc(&p->sc->s->arena, v->s.len + fill + 1);
    memcpy(text, v->s.ptr, v->s.len);
    v->s.ptr = text;
    v->s.len += fill;
}

/* LIKE 'abc%': from 'abc' on. The upper end is left to the filter when it has no simple text. */
static void take_like(struct planner *p, const struct column *c, const struct expr *e,
                      struct column_range *r)
{
    if (e->negated || !expr_is_constant(e->args[1]) || !is_text(c))
        return;
    struct value v = expr_eval(p->sc, e->args[1]);
    bool lossy = false;
    struct value pattern = value_convert(&p->sc->s->arena, &v, c->collation, &lossy);
    if (v.kind != V_STRING || lossy || !usable(p, c, &v))
        return;
    v = pattern; /* blanks at its end count */
    size_t n = 0;
    while (n < v.s.len && v.s.ptr[n] != '%' && v.s.ptr[n] != '_' &&
           (unsigned char)v.s.ptr[n] != e->column)
        n++;
    if (!n || coll_mbminlen(v.collation) > 1)
        return;
    char *high = arena_strndup(&p->sc->s->arena, v.s.ptr, n);
    v.s.len = n;
    lowest_text(p, c, &v);
    v.literal = false;
    v.collation = c->collation;
    narrow_low(r, &v, true);
    v.s.len = n;
    /* The next text after all that begin with it: the last letter or digit plus one, where that is
     * again a letter or digit of the same kind. */
    unsigned char last = (unsigned char)high[n - 1];
    bool simple = (last >= '0' && last < '9') || (last >= 'a' && last < 'y') || (last >= 'A' && last < 'Y');
    if (!simple)
        return;
    high[n - 1] = (char)(last + 1);
    v.s.ptr = high;
    bool plain = c->collation == 8 || c->collation == 45 || c->collation == 33 || c->collation == 46 ||
                 c->collation == 83 || c->collation == 47 || c->collation == 11 || c->collation == 65;
    if (plain)
        narrow_high(r, &v, true);
}

static void range_of(struct planner *p, uint32_t col, struct column_range *r)
{
    const struct column *c = &p->def->columns[col];
    memset(r, 0, sizeof *r);
    for (uint32_t i = 0; i < p->conditions.count; i++) {
        const struct expr *e = p->conditions.items[i];
        bool on_column = e->arg_count && e->args[0]->kind == E_COLUMN && e->args[0]->column == col;
        if (e->kind == E_BINARY && e->op >= OP_EQ)
            take_comparison(p, c, col, e, r);
        else if (!on_column)
            continue;
        else if (e->kind == E_BETWEEN)
            take_between(p, c, e, r);
        else if (e->kind == E_IN)
            take_in(p, c, e, r);
        else if (e->kind == E_LIKE)
            take_like(p, c, e, r);
        else if (e->kind == E_IS && e->op == IS_NULL && !e->negated)
            r->is_null = true;
    }
}

static void put_value(struct planner *p, const struct column *c, const struct value *v)
{
    if (v)
        value_store(&p->sc->s->arena, c, p->scratch, v, p->sc->s->zone_seconds);
    else
        rec_set_null(c, p->scratch, true);
}

/* The first `parts` parts of the scratch row as a key image. */
static uint8_t *make_image(struct planner *p, uint32_t key, uint32_t parts, uint32_t *length)
{
    uint8_t *image = arena_alloc(&p->sc->s->arena, p->def->keys[key].length + 1);
    *length = rec_make_key(p->def, key, parts, p->scratch, image);
    return image;
}

/* Sets the bounds of a plan from the range on part number `part`, after equal parts before it. */
static void bound_range(struct planner *p, struct plan *plan, uint32_t part, struct column_range *r)
{
    const struct key_part *kp = &p->def->keys[plan->key].parts[part];
    const struct column *c = &p->def->columns[kp->col];
    struct { bool has, inclusive; uint8_t *image; uint32_t length; } low = {0}, high = {0};
    if (r->has_low || kp->nullable) { /* without a lower end: after the NULLs */
        put_value(p, c, r->has_low ? &r->low : NULL);
        low.image = make_image(p, plan->key, part + 1, &low.length);
        low.inclusive = r->has_low && (r->low_inclusive || kp->prefix);
        low.has = true;
    }
    if (r->has_high) {
        put_value(p, c, &r->high);
        high.image = make_image(p, plan->key, part + 1, &high.length);
        high.inclusive = r->high_inclusive || kp->prefix;
        high.has = true;
    }
    if (kp->descending) {
        __typeof__(low) swap = low;
        low = (__typeof__(low)){high.has, high.inclusive, high.image, high.length};
        high = (__typeof__(high)){swap.has, swap.inclusive, swap.image, swap.length};
    }
    if (low.has) {
        plan->low = low.image;
        plan->low_length = low.length;
        plan->low_inclusive = low.inclusive;
    }
    if (high.has) {
        plan->high = high.image;
        plan->high_length = high.length;
        plan->high_inclusive = high.inclusive;
    }
}

struct point_order {
    const struct planner *p;
    uint32_t key, length;
};

static int compare_points(const void *a, const void *b, void *ctx)
{
    const struct point_order *o = ctx;
    return image_compare(o->p->def, o->key, *(uint8_t *const *)a, *(uint8_t *const *)b, o->length);
}

/* Equal parts and then a list: one key image for each value, in index order, without doubles. */
static void bound_points(struct planner *p, struct plan *plan, uint32_t part, struct column_range *r)
{
    const struct key *k = &p->def->keys[plan->key];
    const struct column *c = &p->def->columns[k->parts[part].col];
    struct point_order order = {p, plan->key, 0};
    uint8_t **points = arena_alloc(&p->sc->s->arena, r->list_count * sizeof *points);
    for (uint32_t i = 0; i < r->list_count; i++) {
        put_value(p, c, &r->list[i]);
        points[i] = make_image(p, plan->key, part + 1, &order.length);
    }
    qsort_r(points, r->list_count, sizeof *points, compare_points, &order);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->list_count; i++)
        if (!kept || compare_points(&points[kept - 1], &points[i], &order))
            points[kept++] = points[i];
    plan->points = points;
    plan->single = part + 1 == k->part_count && k->flags & KEY_UNIQUE && !k->parts[part].prefix;
    for (uint32_t i = 0; i < part; i++)
        plan->single &= !k->parts[i].prefix && !rec_is_null(&p->def->columns[k->parts[i].col], p->scratch);
    plan->point_count = kept;
    plan->point_length = order.length;
}

/* The best range that a key gives; false: none. */
static bool plan_key(struct planner *p, uint32_t key, struct plan *plan)
{
    const struct key *k = &p->def->keys[key];
    uint32_t equal = 0;
    bool whole = true, null_seen = false;
    struct column_range r = {0};
    *plan = (struct plan){.access = ACCESS_INDEX, .key = key};
    memcpy(p->scratch, p->def->defaults, p->def->row_length);
    for (; equal < k->part_count; equal++) {
        const struct column *c = &p->def->columns[k->parts[equal].col];
        const struct collation_info *info = coll_info(c->collation);
        r = (struct column_range){0};
        if (k->parts[equal].prefix && is_text(c) && info && info->order == ORDER_UNICODE)
            break; /* one letter may weigh as two: prefixes of equal texts differ */
        range_of(p, k->parts[equal].col, &r);
        if (!r.equal && !r.is_null)
            break;
        null_seen |= r.is_null;
        put_value(p, c, r.is_null ? NULL : &r.low);
        whole &= !k->parts[equal].prefix;
    }
    if (equal) {
        plan->low = make_image(p, key, equal, &plan->low_length);
        plan->high = plan->low;
        plan->high_length = plan->low_length;
        plan->low_inclusive = plan->high_inclusive = true;
    }
    plan->parts = equal;
    if (equal < k->part_count && (r.has_low || r.has_high)) {
        bound_range(p, plan, equal, &r);
        plan->parts = equal + 1;
        if (r.list)
            bound_points(p, plan, equal, &r);
    } else {
        plan->equal = equal > 0;
        plan->unique = plan->equal && equal == k->part_count && k->flags & KEY_UNIQUE && whole && !null_seen;
    }
    return plan->parts > 0;
}

/* Number of leading key parts that a plan holds equal. */
static uint32_t equal_parts(const struct plan *plan)
{
    return plan->access != ACCESS_INDEX ? 0 : plan->equal ? plan->parts : plan->parts ? plan->parts - 1 : 0;
}

/* Does walking the key give ORDER BY? Sets reverse. */
static bool gives_order(struct planner *p, struct plan *plan, const struct order_item *order,
                        uint32_t count)
{
    const struct key *k = &p->def->keys[plan->key];
    uint32_t part = 0, fixed = equal_parts(plan);
    int direction = -1;
    for (uint32_t i = 0; i < count; i++) {
        const struct expr *e = order[i].expr;
        if (e->kind != E_COLUMN)
            return false;
        while (part < fixed && k->parts[part].col != e->column)
            part++;
        if (part >= k->part_count || k->parts[part].col != e->column || k->parts[part].prefix)
            return false;
        if (part >= fixed) {
            int d = order[i].descending != k->parts[part].descending;
            if (direction >= 0 && d != direction)
                return false;
            direction = d;
        }
        part++;
    }
    plan->reverse = direction == 1;
    return true;
}

static uint64_t estimate(struct planner *p, const struct plan *plan)
{
    struct se_bound low = {plan->low, plan->low_length, plan->low_inclusive};
    struct se_bound high = {plan->high, plan->high_length, plan->high_inclusive};
    if (plan->unique)
        return 1;
    if (!p->t->eng->ops->records_in_range)
        return 10;
    if (plan->points) {
        uint64_t rows = 0;
        for (uint32_t i = 0; i < plan->point_count && i < 100; i++) {
            struct se_bound at = {plan->points[i], plan->point_length, true};
            rows += p->t->eng->ops->records_in_range(p->t, plan->key, at, at);
        }
        return rows;
    }
    return p->t->eng->ops->records_in_range(p->t, plan->key, low, high);
}

/* A key that gives the order without any range. */
static bool plan_order(struct planner *p, struct plan *best, const struct order_item *order,
                       uint32_t count, const char *ignore)
{
    for (uint32_t key = 0; count && key < p->def->key_count; key++) {
        struct plan plan = {.access = ACCESS_INDEX, .key = key};
        if (ignore && !strcasecmp(ignore, p->def->keys[key].name))
            continue;
        if (!gives_order(p, &plan, order, count))
            continue;
        plan.ordered = true;
        *best = plan;
        return true;
    }
    return false;
}

struct plan plan_make(struct scope *sc, se_table *t, struct expr *where, struct order_item *order,
                      uint32_t order_count, const char *force_index, const char *ignore_index)
{
    struct planner p = {.sc = sc, .t = t, .def = t->def};
    struct plan best = {.access = ACCESS_SCAN}, plan;
    uint64_t best_rows = UINT64_MAX;
    p.scratch = arena_alloc(&sc->s->arena, t->def->row_length);
    if (where)
        flatten(&sc->s->arena, where, &p.conditions);
    for (uint32_t i = 0; i < p.conditions.count; i++)
        if (expr_is_constant(p.conditions.items[i])) {
            struct value v = expr_eval(sc, p.conditions.items[i]);
            if (!value_is_true(&v))
                return (struct plan){.access = ACCESS_NOTHING};
        }
    for (uint32_t key = 0; key < t->def->key_count; key++) {
        const char *name = t->def->keys[key].name;
        if ((ignore_index && !strcasecmp(ignore_index, name)) ||
            (force_index && strcasecmp(force_index, name)))
            continue;
        bool found = plan_key(&p, key, &plan);
        if (!found && !force_index)
            continue;
        uint64_t rows = found ? estimate(&p, &plan) : UINT64_MAX - 1;
        if (rows < best_rows) {
            best = plan;
            best_rows = rows;
        }
    }
    if (best.access == ACCESS_INDEX && order_count)
        best.ordered = gives_order(&p, &best, order, order_count);
    if (best.access == ACCESS_SCAN)
        plan_order(&p, &best, order, order_count, ignore_index);
    return best;
}
