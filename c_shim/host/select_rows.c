/* Output stages of SELECT: groups and aggregates, DISTINCT, ORDER BY, LIMIT, text. */
#include <stdlib.h>
#include <string.h>

#include "select.h"

struct aggregate_state {
    uint64_t count;
    bool real, any;
    struct decimal sum;
    double sum_real;
    struct value extreme;
    struct value *seen; /* COUNT(DISTINCT …) and the like */
    uint32_t seen_count;
};
struct group {
    struct value *key;
    uint8_t *row;       /* the first row, for columns outside aggregates */
    struct aggregate_state *states;
};
struct kept_row {
    struct value *values, *order;
    size_t number;      /* keeps the sort stable */
};

/* A value that outlives the row. */
static struct value keep(struct arena *a, const struct value *v)
{
    struct value r = *v;
    if (v->kind == V_STRING)
        r.s.ptr = arena_strndup(a, v->s.ptr, v->s.len);
    if (v->kind == V_DECIMAL)
        r.dec = value_decimal(a, v->dec).dec;
    return r;
}

static int compare_nullable(const struct value *a, const struct value *b)
{
    if (a->kind == V_NULL || b->kind == V_NULL)
        return (b->kind == V_NULL) - (a->kind == V_NULL);
    if (a->has_index && b->has_index) /* ENUM and SET sort by number */
        return a->index < b->index ? -1 : a->index > b->index;
    return value_compare(a, b);
}

static void collect_aggregates(struct select_run *r, struct expr *e)
{
    if (e->kind == E_AGGREGATE)
        r->aggregates[e->column] = e;
    for (uint32_t i = 0; i < e->arg_count; i++)
        collect_aggregates(r, e->args[i]);
}

void select_start(struct select_run *r)
{
    uint32_t n = r->scope.aggregate_count;
    r->aggregates = arena_alloc(&r->s->arena, (n + 1) * sizeof *r->aggregates);
    for (uint32_t i = 0; i < r->item_count; i++)
        collect_aggregates(r, r->items[i].expr);
    if (r->sel->having)
        collect_aggregates(r, r->sel->having);
    for (uint32_t i = 0; i < r->sel->order_count; i++)
        collect_aggregates(r, r->sel->order[i].expr);
}

static bool numeric_type(uint8_t type)
{
    return type <= CT_DECIMAL || type == CT_YEAR || type == CT_BIT;
}

/* What the client aligns to the right. */
static bool numeric_expr(const struct select_run *r, const struct expr *e)
{
    switch (e->kind) {
    case E_LITERAL: return e->value.kind != V_STRING && e->value.kind != V_TEMPORAL && e->value.kind != V_NULL;
    case E_COLUMN: return numeric_type(r->scope.def->columns[e->column].type);
    case E_AGGREGATE:
        return (e->op != AGG_MIN && e->op != AGG_MAX) || numeric_expr(r, e->args[0]);
    case E_FUNCTION: {
        static const char *const text[] = {"CONCAT", "CONCAT_WS", "REPEAT", "SPACE", "HEX", "UNHEX", "MD5",
            "LPAD", "RPAD", "LEFT", "RIGHT", "SUBSTRING", "SUBSTR", "MID", "UPPER", "UCASE", "LOWER",
            "LCASE", "TRIM", "LTRIM", "RTRIM", "REPLACE", "REVERSE", "CHAR", "CHR", "ELT", "DATABASE",
            "SCHEMA", "USER", "CURRENT_USER", "VERSION", "UUID", "NOW", "CURRENT_TIMESTAMP", "SYSDATE",
            "CURDATE", "CURRENT_DATE", "CURTIME", "CURRENT_TIME", "DATE", "DATE_ADD", "DATE_SUB",
            "TIMESTAMPADD", "FROM_UNIXTIME", "LOCALTIME", "LOCALTIMESTAMP", "WEIGHT_STRING",
            "SESSION_USER", "ADDDATE", "SUBDATE"};
        for (size_t i = 0; i < sizeof text / sizeof *text; i++)
            if (e->function == func_find(text[i]))
                return false;
        uint32_t last = e->arg_count ? e->arg_count - 1 : 0;
        bool of_arg = e->function == func_find("IF") || e->function == func_find("IFNULL") ||
                      e->function == func_find("COALESCE") || e->function == func_find("NULLIF") ||
                      e->function == func_find("GREATEST") || e->function == func_find("LEAST");
        return !of_arg || numeric_expr(r, e->args[last]);
    }
    case E_CAST: return numeric_type(e->op);
    case E_CASE: return numeric_expr(r, e->args[e->arg_count - 1]);
    case E_COLLATE: case E_USER_VAR: case E_SYS_VAR: return false;
    case E_ASSIGN: return numeric_expr(r, e->args[0]);
    case E_VALUES: case E_DEFAULT: return false;
    default: return true;
    }
}

void select_columns(struct select_run *r)
{
    struct sink_column *columns = arena_alloc(&r->s->arena, (r->item_count + 1) * sizeof *columns);
    for (uint32_t i = 0; i < r->item_count; i++) {
        const struct expr *e = r->items[i].expr;
        columns[i].name = r->headings[i];
        columns[i].numeric = numeric_expr(r, e);
        columns[i].not_null = (e->kind == E_LITERAL && e->value.kind != V_NULL) ||
                              (e->kind == E_AGGREGATE && e->op == AGG_COUNT);
        if (e->kind == E_COLUMN) {
            const struct column *c = &r->scope.def->columns[e->column];
            columns[i].binary = c->type == CT_BLOB || c->type == CT_BINARY || c->type == CT_VARBINARY ||
                                c->type == CT_BIT || c->type == CT_GEOMETRY;
            columns[i].not_null = !c->null_mask;
        }
    }
    r->s->sink->columns(r->s->sink, columns, r->item_count);
}

static unsigned emit(struct select_run *r, const struct value *values)
{
    struct arena *a = &r->s->arena;
    if (r->skipped < r->sel->offset) {
        r->skipped++;
        return 0;
    }
    if (r->sent >= r->sel->limit)
        return 0;
    r->sent++;
    if (r->fn)
        return r->fn(r->ctx, values, r->item_count);
    struct sink_value *out = arena_alloc(a, (r->item_count + 1) * sizeof *out);
    for (uint32_t i = 0; i < r->item_count; i++) {
        bool lossy = false;
        if (values[i].kind == V_NULL) {
            out[i].null = true;
            continue;
        }
        struct value t = value_to_text(a, &values[i]);
        t = value_convert(a, &t, COLL_UTF8MB4, &lossy);
        out[i].ptr = t.s.ptr;
        out[i].len = t.s.len;
    }
    r->s->sink->row(r->s->sink, out, r->item_count);
    return 0;
}

static bool is_double_row(struct select_run *r, const struct value *values)
{
    for (size_t k = 0; k < r->row_count; k++) {
        uint32_t i = 0;
        while (i < r->item_count && compare_nullable(&r->rows[k].values[i], &values[i]) == 0)
            i++;
        if (i == r->item_count)
            return true;
    }
    return false;
}

static void keep_row(struct select_run *r, const struct value *values, const struct value *order)
{
    if ((r->row_count & (r->row_count - 1)) == 0)
        r->rows = mem_realloc(r->rows, (r->row_count ? 2 * r->row_count : 1) * sizeof *r->rows);
    struct kept_row *k = &r->rows[r->row_count];
    k->number = r->row_count++;
    k->values = arena_alloc(&r->kept, (r->item_count + 1) * sizeof *k->values);
    k->order = arena_alloc(&r->kept, (r->sel->order_count + 1) * sizeof *k->order);
    for (uint32_t i = 0; i < r->item_count; i++)
        k->values[i] = keep(&r->kept, &values[i]);
    for (uint32_t i = 0; i < r->sel->order_count; i++)
        k->order[i] = keep(&r->kept, &order[i]);
}

/* A finished output row (scope.row and scope.aggregates are set). */
static unsigned output(struct select_run *r, bool *done)
{
    struct value *values = arena_alloc(&r->s->arena, (r->item_count + 1) * sizeof *values);
    for (uint32_t i = 0; i < r->item_count; i++)
        values[i] = expr_eval(&r->scope, r->items[i].expr);
    if (r->sel->having) {
        struct value v = expr_eval(&r->scope, r->sel->having);
        if (!value_is_true(&v))
            return r->s->diag.error;
    }
    if (r->s->diag.error)
        return r->s->diag.error;
    if (r->sel->distinct && is_double_row(r, values))
        return 0;
    if (r->sorted || r->sel->distinct) {
        struct value *order = arena_alloc(&r->s->arena, (r->sel->order_count + 1) * sizeof *order);
        for (uint32_t i = 0; i < r->sel->order_count; i++)
            order[i] = expr_eval(&r->scope, r->sel->order[i].expr);
        keep_row(r, values, order);
    }
    if (r->sorted)
        return r->s->diag.error;
    unsigned code = emit(r, values);
    *done = r->sent >= r->sel->limit;
    return code;
}

static struct group *find_group(struct select_run *r, const struct value *key)
{
    uint32_t n = r->sel->group_count;
    for (uint32_t g = r->group_count; g-- > 0;) { /* rows of a group often follow each other */
        uint32_t i = 0;
        while (i < n && compare_nullable(&r->groups[g].key[i], &key[i]) == 0)
            i++;
        if (i == n)
            return &r->groups[g];
    }
    return NULL;
}

static struct group *new_group(struct select_run *r, const struct value *key)
{
    if ((r->group_count & (r->group_count - 1)) == 0)
        r->groups = mem_realloc(r->groups, (r->group_count ? 2 * r->group_count : 1) * sizeof *r->groups);
    struct group *g = &r->groups[r->group_count++];
    const table_def *def = r->scope.def;
    g->key = arena_alloc(&r->kept, (r->sel->group_count + 1) * sizeof *g->key);
    for (uint32_t i = 0; i < r->sel->group_count; i++)
        g->key[i] = keep(&r->kept, &key[i]);
    g->states = arena_alloc(&r->kept, (r->scope.aggregate_count + 1) * sizeof *g->states);
    g->row = NULL;
    if (def && r->scope.row) {
        g->row = arena_alloc(&r->kept, def->row_length);
        memcpy(g->row, r->scope.row, def->row_length);
        rec_copy_blobs(&r->kept, def, g->row);
    }
    return g;
}

static bool seen_before(struct select_run *r, struct aggregate_state *st, const struct value *v)
{
    for (uint32_t i = 0; i < st->seen_count; i++)
        if (value_compare(&st->seen[i], v) == 0)
            return true;
    if ((st->seen_count & (st->seen_count - 1)) == 0) {
        struct value *grown = arena_alloc(&r->kept, (st->seen_count ? 2 * st->seen_count : 1) * sizeof *grown);
        if (st->seen_count)
            memcpy(grown, st->seen, st->seen_count * sizeof *grown);
        st->seen = grown;
    }
    st->seen[st->seen_count++] = keep(&r->kept, v);
    return false;
}

static void add_to(struct select_run *r, const struct expr *e, struct aggregate_state *st)
{
    if (!e->arg_count) { /* COUNT(*) */
        st->count++;
        return;
    }
    struct value v = expr_eval(&r->scope, e->args[0]);
    if (v.kind == V_NULL || (e->negated && seen_before(r, st, &v)))
        return;
    st->count++;
    if (e->op == AGG_MIN || e->op == AGG_MAX) {
        int c = st->any ? value_compare(&v, &st->extreme) : 0;
        if (!st->any || (e->op == AGG_MIN ? c < 0 : c > 0))
            st->extreme = keep(&r->kept, &v);
    } else if (e->op == AGG_SUM || e->op == AGG_AVG) {
        struct decimal d;
        st->real |= v.kind == V_DOUBLE || (v.kind == V_STRING && !v.from_hex && !v.has_index);
        st->sum_real += value_to_double(&v);
        if (!st->real) {
            value_to_decimal(&v, &d);
            if (st->any)
                dec_add(&st->sum, &st->sum, &d);
            else
                st->sum = d;
        }
    }
    st->any = true;
}

static struct value result_of(struct select_run *r, const struct expr *e, struct aggregate_state *st)
{
    struct decimal d, n;
    if (e->op == AGG_COUNT)
        return value_int((int64_t)st->count);
    if (!st->any)
        return value_null();
    if (e->op == AGG_MIN || e->op == AGG_MAX)
        return st->extreme;
    if (st->real)
        return value_double(e->op == AGG_SUM ? st->sum_real : st->sum_real / (double)st->count);
    if (e->op == AGG_SUM)
        return value_decimal(&r->s->arena, &st->sum);
    dec_from_uint(&n, st->count);
    dec_divide(&d, &st->sum, &n);
    return value_decimal(&r->s->arena, &d);
}

static unsigned add_to_group(struct select_run *r)
{
    struct value *key = arena_alloc(&r->s->arena, (r->sel->group_count + 1) * sizeof *key);
    for (uint32_t i = 0; i < r->sel->group_count; i++)
        key[i] = expr_eval(&r->scope, r->sel->group[i].expr);
    struct group *g = find_group(r, key);
    if (!g)
        g = new_group(r, key);
    for (uint32_t i = 0; i < r->scope.aggregate_count; i++)
        if (r->aggregates[i])
            add_to(r, r->aggregates[i], &g->states[i]);
    return r->s->diag.error;
}

unsigned select_row(struct select_run *r, bool *done)
{
    return r->grouped ? add_to_group(r) : output(r, done);
}

static unsigned finish_groups(struct select_run *r)
{
    bool done = false;
    unsigned code = 0;
    if (!r->group_count && !r->sel->group_count) {
        r->scope.row = NULL;
        new_group(r, NULL); /* aggregates of nothing are one row */
    }
    for (uint32_t g = 0; g < r->group_count && !code && !done; g++) {
        struct value *results = arena_alloc(&r->s->arena, (r->scope.aggregate_count + 1) * sizeof *results);
        for (uint32_t i = 0; i < r->scope.aggregate_count; i++)
            if (r->aggregates[i])
                results[i] = result_of(r, r->aggregates[i], &r->groups[g].states[i]);
        r->scope.aggregates = results;
        r->scope.row = r->groups[g].row;
        code = output(r, &done);
    }
    return code;
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct select_run *r = ctx;
    const struct kept_row *x = a, *y = b;
    for (uint32_t i = 0; i < r->sel->order_count; i++) {
        int c = compare_nullable(&x->order[i], &y->order[i]);
        if (c)
            return r->sel->order[i].descending ? -c : c;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

unsigned select_finish(struct select_run *r)
{
    unsigned code = r->grouped ? finish_groups(r) : 0;
    if (code || !r->sorted)
        return code;
    if (r->row_count)
        qsort_r(r->rows, r->row_count, sizeof *r->rows, compare_rows, r);
    for (size_t i = 0; i < r->row_count && !code; i++) {
        struct arena_mark mark = arena_mark(&r->s->arena);
        code = emit(r, r->rows[i].values);
        arena_release(&r->s->arena, mark);
    }
    return code;
}

void select_free(struct select_run *r)
{
    free(r->rows);
    free(r->groups);
    arena_free(&r->kept);
}
