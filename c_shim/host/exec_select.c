/* SELECT: opening, binding, choosing the way, and driving the rows into the output stages
 * (select_rows.c). */
#include "select.h"

#include <string.h>
#include <strings.h>

static unsigned expand_star(struct select_run *r, const struct expr *star)
{
    if (!r->scope.def)
        return sql_error_text(r->s, 1096, "No tables used");
    for (uint32_t i = 0; i < r->scope.def->column_count; i++) {
        struct expr *e = arena_alloc(&r->s->arena, sizeof *e);
        e->kind = E_COLUMN;
        e->name = r->scope.def->columns[i].name;
        e->table = star->table;
        e->column = i;
        r->items[r->item_count].expr = e;
        r->items[r->item_count++].alias = e->name;
    }
    return 0;
}

static unsigned expand_items(struct select_run *r)
{
    uint32_t columns = r->scope.def ? r->scope.def->column_count : 0, stars = 0;
    for (uint32_t i = 0; i < r->sel->item_count; i++)
        stars += r->sel->items[i].expr->kind == E_STAR;
    r->items = arena_alloc(&r->s->arena, (r->sel->item_count + stars * columns + 1) * sizeof *r->items);
    for (uint32_t i = 0; i < r->sel->item_count; i++) {
        const struct expr *e = r->sel->items[i].expr;
        unsigned code = 0;
        if (e->kind == E_STAR)
            code = expand_star(r, e);
        else
            r->items[r->item_count++] = r->sel->items[i];
        if (code)
            return code;
    }
    return 0;
}

static const char *heading(struct select_run *r, const struct select_item *item)
{
    const struct expr *e = item->expr;
    if (item->alias)
        return item->alias;
    if (e->kind == E_COLUMN)
        return e->name;
    if (e->kind == E_LITERAL && e->value.kind == V_STRING && !e->value.from_hex)
        return arena_strndup(&r->s->arena, e->value.s.ptr, e->value.s.len);
    if (e->to <= e->from || e->to > r->s->sql_len)
        return e->name ? e->name : "?";
    return arena_strndup(&r->s->arena, r->s->sql + e->from, e->to - e->from);
}

/* ORDER BY 2, GROUP BY 1: the select list's own expression. */
static unsigned resolve_position(struct select_run *r, struct order_item *item, const char *clause)
{
    const struct expr *e = item->expr;
    if (e->kind != E_LITERAL || e->value.kind != V_INT)
        return 0;
    if (e->value.i < 1 || e->value.i > (int64_t)r->item_count)
        return sql_error(r->s, 1054, arena_printf(&r->s->arena, "%lld", (long long)e->value.i), clause);
    item->expr = r->items[e->value.i - 1].expr;
    return 0;
}

static unsigned bind_list(struct select_run *r, struct order_item *list, uint32_t count,
                          const char *clause)
{
    unsigned code = 0;
    r->scope.clause = clause;
    for (uint32_t i = 0; i < count && !code; i++) {
        code = resolve_position(r, &list[i], clause);
        if (!code)
            code = expr_bind(&r->scope, list[i].expr);
    }
    return code;
}

static unsigned bind_all(struct select_run *r)
{
    struct select *sel = r->sel;
    unsigned code = 0;
    for (uint32_t i = 0; i < r->item_count; i++) /* headings first: binding may replace aliases */
        r->headings[i] = heading(r, &r->items[i]);
    r->scope.clause = "SELECT";
    r->scope.allow_aggregates = true;
    for (uint32_t i = 0; i < r->item_count && !code; i++)
        code = expr_bind(&r->scope, r->items[i].expr);
    r->scope.clause = "WHERE";
    r->scope.allow_aggregates = false;
    if (sel->where && !code)
        code = expr_bind(&r->scope, sel->where);
    r->scope.select = sel;
    if (!code)
        code = bind_list(r, sel->group, sel->group_count, "GROUP BY");
    r->scope.allow_aggregates = true;
    r->scope.clause = "HAVING";
    if (sel->having && !code)
        code = expr_bind(&r->scope, sel->having);
    if (!code)
        code = bind_list(r, sel->order, sel->order_count, "ORDER BY");
    r->scope.select = NULL;
    r->grouped = sel->group_count || r->scope.aggregate_count;
    return code;
}

static enum se_lock lock_mode(const struct select_run *r)
{
    if (r->sel->lock == LOCK_UPDATE)
        return SE_LOCK_EXCLUSIVE;
    if (r->sel->lock == LOCK_SHARE || (r->isolation == SE_SERIALIZABLE && session_in_transaction(r->s)))
        return SE_LOCK_SHARED;
    return SE_LOCK_NONE;
}

/* Columns that WHERE needs beyond what is selected are in the read set by binding; so are keys. */
static void read_key_columns(struct select_run *r)
{
    if (r->plan.access != ACCESS_INDEX)
        return;
    const struct key *k = &r->scope.def->keys[r->plan.key];
    for (uint32_t i = 0; i < k->part_count; i++)
        r->read_set[k->parts[i].col / 8] |= (uint8_t)(1u << k->parts[i].col % 8);
}

static unsigned check_hint(struct select_run *r, const char *name)
{
    if (!name || !r->table)
        return 0;
    for (uint32_t i = 0; i < r->scope.def->key_count; i++)
        if (!strcasecmp(r->scope.def->keys[i].name, name))
            return 0;
    return sql_error(r->s, 1176, name, r->scope.def->name);
}

static unsigned prepare_table(struct select_run *r)
{
    struct select *sel = r->sel;
    if (!r->table)
        return 0;
    r->s->skip_locked = sel->skip_locked;
    r->s->lock_wait_seconds = sel->nowait ? 1 : sel->wait_seconds;
    se_table *t = r->table->handle;
    unsigned code = check_hint(r, sel->force_index);
    if (!code)
        code = statement_begin(r->s, r->table->eng);
    if (code)
        return code;
    int rc = t->eng->ops->table_start(t, lock_mode(r), r->read_set);
    if (rc)
        return se_error(r->s, rc, t->def, t);
    bool use_order = !r->grouped && !sel->distinct;
    r->plan = plan_make(&r->scope, t, sel->where, sel->order, use_order ? sel->order_count : 0,
                        sel->force_index, sel->ignore_index);
    if (r->s->diag.error)
        return r->s->diag.error;
    read_key_columns(r);
    rc = t->eng->ops->table_start(t, lock_mode(r), r->read_set);
    return rc ? se_error(r->s, rc, t->def, t) : 0;
}

static unsigned open_source(struct select_run *r)
{
    struct select *sel = r->sel;
    if (!sel->from_table)
        return 0;
    r->virtual_table = virtual_open(r->s, &sel->table);
    if (r->virtual_table) {
        r->scope.def = r->virtual_table->def;
    } else if (!r->s->diag.error) {
        r->table = table_open(r->s, &sel->table, sel->lock == LOCK_UPDATE);
        if (r->table)
            r->scope.def = r->table->handle->def;
    }
    r->scope.alias = sel->table_alias;
    return r->scope.def ? 0 : r->s->diag.error;
}

/* One row that the source gave: filter, then on. SE_END_OF_FILE when LIMIT is reached. */
static unsigned take_row(struct select_run *r, bool *done)
{
    struct arena_mark mark = arena_mark(&r->s->arena);
    bool keep = true;
    if (r->sel->where) {
        struct value v = expr_eval(&r->scope, r->sel->where);
        keep = value_is_true(&v);
    }
    unsigned code = r->s->diag.error;
    if (!code && !keep && r->table && r->table->eng->ops->unlock_row)
        r->table->eng->ops->unlock_row(r->table->handle);
    if (!code && keep)
        code = select_row(r, done);
    arena_release(&r->s->arena, mark);
    return code;
}

static unsigned run_table(struct select_run *r)
{
    se_table *t = r->table->handle;
    struct scan scan;
    bool done = false;
    unsigned code = 0;
    uint8_t *row = arena_alloc(&r->s->arena, t->def->row_length);
    memcpy(row, t->def->defaults, t->def->row_length);
    r->scope.row = row;
    int rc = scan_start(&scan, t, &r->plan, row);
    while (!rc && !code && !done) {
        rc = scan_next(&scan);
        if (!rc)
            code = take_row(r, &done);
        if (!rc && !code && atomic_load(&r->s->interrupted))
            code = sql_error(r->s, 1317);
    }
    if (rc && rc != SE_END_OF_FILE)
        code = se_error(r->s, rc, t->def, t);
    scan_end(&scan);
    return code;
}

static unsigned run_virtual(struct select_run *r)
{
    bool done = false;
    unsigned code = 0;
    for (size_t i = 0; i < r->virtual_table->count && !code && !done; i++) {
        r->scope.row = r->virtual_table->rows[i];
        code = take_row(r, &done);
    }
    return code;
}

static unsigned run_source(struct select_run *r)
{
    bool done = false;
    if (r->sel->limit == 0 && !r->grouped)
        return 0;
    if (r->table)
        return r->plan.access == ACCESS_NOTHING ? 0 : run_table(r);
    if (r->virtual_table)
        return run_virtual(r);
    return take_row(r, &done);
}

unsigned select_prepare(struct select_run *r, session *s, struct select *sel)
{
    *r = (struct select_run){.s = s, .sel = sel};
    r->scope.s = s;
    r->isolation = s->next_isolation != 255 ? s->next_isolation : s->isolation;
    unsigned code = open_source(r);
    if (code)
        return code;
    uint32_t columns = r->scope.def ? r->scope.def->column_count : 0;
    r->read_set = arena_alloc(&s->arena, columns / 8 + 1);
    r->scope.read_set = r->read_set;
    code = expand_items(r);
    if (code)
        return code;
    r->headings = arena_alloc(&s->arena, (r->item_count + 1) * sizeof *r->headings);
    code = bind_all(r);
    r->plan.access = ACCESS_SCAN;
    return code ? code : prepare_table(r);
}

unsigned select_run(session *s, struct select *sel, select_row_fn fn, void *ctx, bool to_sink)
{
    struct select_run r;
    unsigned code = select_prepare(&r, s, sel);
    if (code)
        return code;
    r.fn = fn;
    r.ctx = ctx;
    r.to_sink = to_sink;
    r.sorted = sel->order_count && !r.plan.ordered;
    if (to_sink)
        select_columns(&r);
    select_start(&r);
    code = run_source(&r);
    if (!code)
        code = select_finish(&r);
    select_free(&r);
    if (!code && to_sink) {
        s->found_rows = r.sent;
        s->row_count = -1;
    }
    return code;
}

unsigned exec_select(session *s, struct select *sel)
{
    unsigned code = select_run(s, sel, NULL, NULL, true);
    unsigned end = statement_finish(s, !code);
    code = code ? code : end;
    if (!code)
        send_end(s);
    return code;
}

/* EXPLAIN: the access as the server words it. */
unsigned exec_explain(session *s, struct select *sel)
{
    static const char *const names[] = {"#id", "select_type", "table", "type", "possible_keys", "key",
                                        "#key_len", "ref", "#rows", "Extra"};
    struct select_run r;
    unsigned code = select_prepare(&r, s, sel);
    if (code)
        return code;
    const struct plan *p = &r.plan;
    bool index = r.table && p->access == ACCESS_INDEX;
    const char *type = !r.table           ? NULL
                       : !index           ? "ALL"
                       : p->unique        ? "const"
                       : p->equal         ? "ref"
                       : p->parts         ? "range"
                                          : "index";
    const struct key *k = index ? &r.scope.def->keys[p->key] : NULL;
    uint32_t len = index ? (p->low_length > p->high_length ? p->low_length : p->high_length) : 0;
    const char *extra = sel->order_count && !p->ordered ? "Using filesort" : sel->where ? "Using where" : "";
    const char *row[] = {"1", "SIMPLE", sel->from_table ? sel->table.name : NULL, type,
                         k ? k->name : NULL, k ? k->name : NULL,
                         k ? arena_printf(&s->arena, "%u", len ? len : k->length) : NULL,
                         p->equal ? "const" : NULL, NULL, extra};
    send_columns(s, names, 10);
    send_text_row(s, row, 10);
    statement_finish(s, true);
    send_end(s);
    return 0;
}
