/* UPDATE and DELETE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exec.h"

struct modifier {
    session *s;
    struct modify *m;
    bool update;
    struct open_table *table;
    se_table *t;
    const table_def *def;
    struct scope scope;
    struct plan plan;
    uint8_t *read_set, *assigned;
    uint8_t *row, *next;
    uint64_t matched, changed;
    uint32_t ref_length;
};

static unsigned bind(struct modifier *mo)
{
    unsigned code = 0;
    for (uint32_t i = 0; i < mo->m->set_count && !code; i++) {
        struct assignment *a = &mo->m->set[i];
        a->bound = UINT32_MAX;
        for (uint32_t c = 0; c < mo->def->column_count; c++)
            if (!strcasecmp(mo->def->columns[c].name, a->column))
                a->bound = c;
        if (a->bound == UINT32_MAX)
            return sql_error(mo->s, 1054, a->column, "SET");
        mo->assigned[a->bound / 8] |= (uint8_t)(1u << a->bound % 8);
        if (a->value->kind == E_DEFAULT && !a->value->name)
            a->value->column = a->bound;
        code = expr_bind(&mo->scope, a->value);
    }
    mo->scope.clause = "WHERE";
    if (mo->m->where && !code)
        code = expr_bind(&mo->scope, mo->m->where);
    mo->scope.clause = "ORDER BY";
    for (uint32_t i = 0; i < mo->m->order_count && !code; i++)
        code = expr_bind(&mo->scope, mo->m->order[i].expr);
    return code;
}

static bool key_is_assigned(const struct modifier *mo, uint32_t key)
{
    if (key == NO_KEY)
        return false;
    const struct key *k = &mo->def->keys[key];
    for (uint32_t i = 0; i < k->part_count; i++)
        if (mo->assigned[k->parts[i].col / 8] >> k->parts[i].col % 8 & 1)
            return true;
    return false;
}

/* Must the rows be found before the first is changed? */
static bool collect_first(const struct modifier *mo)
{
    if (mo->m->order_count && !mo->plan.ordered)
        return true;
    if (!mo->update || mo->plan.unique)
        return false;
    if (mo->plan.access == ACCESS_INDEX && key_is_assigned(mo, mo->plan.key))
        return true;
    return key_is_assigned(mo, mo->def->primary_key);
}

static unsigned new_row(struct modifier *mo)
{
    session *s = mo->s;
    memcpy(mo->next, mo->row, mo->def->row_length);
    mo->scope.row = mo->next; /* SET a = a + 1, b = a: b sees the new a */
    for (uint32_t i = 0; i < mo->m->set_count; i++) {
        const struct assignment *a = &mo->m->set[i];
        struct value v = expr_eval(&mo->scope, a->value);
        unsigned code = s->diag.error;
        if (!code)
            code = store_checked(s, mo->def, a->bound, mo->next, &v, mo->m->ignore);
        if (code)
            return code;
    }
    return 0;
}

static unsigned duplicate(struct modifier *mo)
{
    uint32_t key = mo->t->eng->ops->error_key(mo->t);
    if (key >= mo->def->key_count)
        return se_error(mo->s, SE_FOUND_DUPP_KEY, mo->def, mo->t);
    const char *entry = key_text(&mo->s->arena, mo->def, key, mo->next);
    return mo->m->ignore ? 0 : sql_error(mo->s, 1062, entry, mo->def->keys[key].name);
}

/* Changes the row that was read last. */
static unsigned change(struct modifier *mo)
{
    const struct se_ops *ops = mo->t->eng->ops;
    int rc;
    mo->matched++;
    rec_copy_blobs(&mo->s->arena, mo->def, mo->row);
    if (!mo->update) {
        rc = ops->delete_row(mo->t, mo->row);
        mo->changed += !rc;
        return rc ? se_error(mo->s, rc, mo->def, mo->t) : 0;
    }
    unsigned code = new_row(mo);
    if (code || rec_equal(mo->def, mo->row, mo->next))
        return code;
    update_time_columns(mo->s, mo->def, mo->next, mo->assigned);
    rc = ops->update_row(mo->t, mo->row, mo->next);
    if (rc == SE_RECORD_IS_THE_SAME)
        return 0;
    if (rc == SE_FOUND_DUPP_KEY)
        return duplicate(mo);
    mo->changed += !rc;
    return rc ? se_error(mo->s, rc, mo->def, mo->t) : 0;
}

static bool passes(struct modifier *mo)
{
    mo->scope.row = mo->row;
    if (!mo->m->where)
        return true;
    struct value v = expr_eval(&mo->scope, mo->m->where);
    return value_is_true(&v);
}

struct found {
    struct value *order;
    uint8_t *ref;
    size_t number;
};

static int compare_found(const void *a, const void *b, void *ctx)
{
    const struct modify *m = ctx;
    const struct found *x = a, *y = b;
    for (uint32_t i = 0; i < m->order_count; i++) {
        bool x_null = x->order[i].kind == V_NULL, y_null = y->order[i].kind == V_NULL;
        int c = x_null || y_null ? y_null - x_null : value_compare(&x->order[i], &y->order[i]);
        if (c)
            return m->order[i].descending ? -c : c;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

struct collection {
    struct arena arena;
    struct found *list;
    size_t count;
};

static unsigned collect(struct modifier *mo, struct collection *c)
{
    if ((c->count & (c->count - 1)) == 0)
        c->list = mem_realloc(c->list, (c->count ? 2 * c->count : 1) * sizeof *c->list);
    struct found *f = &c->list[c->count];
    f->number = c->count++;
    f->ref = arena_alloc(&c->arena, mo->ref_length);
    mo->t->eng->ops->position(mo->t, mo->row, f->ref);
    f->order = arena_alloc(&c->arena, (mo->m->order_count + 1) * sizeof *f->order);
    for (uint32_t i = 0; i < mo->m->order_count; i++) {
        f->order[i] = expr_eval(&mo->scope, mo->m->order[i].expr);
        if (f->order[i].kind == V_STRING)
            f->order[i].s.ptr = arena_strndup(&c->arena, f->order[i].s.ptr, f->order[i].s.len);
        if (f->order[i].kind == V_DECIMAL)
            f->order[i] = value_decimal(&c->arena, f->order[i].dec);
    }
    return mo->s->diag.error;
}

/* One row of the scan. */
static unsigned take(struct modifier *mo, struct collection *c, bool *done)
{
    struct arena_mark mark = arena_mark(&mo->s->arena);
    bool keep = passes(mo);
    unsigned code = mo->s->diag.error;
    if (!code && !keep && mo->t->eng->ops->unlock_row)
        mo->t->eng->ops->unlock_row(mo->t);
    bool again = keep && mo->t->eng->ops->was_semi_consistent && mo->t->eng->ops->was_semi_consistent(mo->t);
    if (!code && keep && !again) /* again: the next read gives this row once more, locked */
        code = c ? collect(mo, c) : change(mo);
    mo->s->row_number += !c;
    bool sorting = mo->m->order_count && !mo->plan.ordered;
    *done = !sorting && (c ? c->count : mo->matched) >= mo->m->limit;
    arena_release(&mo->s->arena, mark);
    if (!code && atomic_load(&mo->s->interrupted))
        code = sql_error(mo->s, 1317);
    return code;
}

static unsigned scan_rows(struct modifier *mo, struct collection *c)
{
    struct scan scan;
    unsigned code = 0;
    bool done = mo->m->limit == 0;
    memcpy(mo->row, mo->def->defaults, mo->def->row_length);
    int rc = scan_start(&scan, mo->t, &mo->plan, mo->row);
    while (!rc && !code && !done) {
        rc = scan_next(&scan);
        if (!rc)
            code = take(mo, c, &done);
    }
    if (rc && rc != SE_END_OF_FILE)
        code = se_error(mo->s, rc, mo->def, mo->t);
    scan_end(&scan);
    return code;
}

static unsigned change_collected(struct modifier *mo, struct collection *c)
{
    const struct se_ops *ops = mo->t->eng->ops;
    unsigned code = 0;
    for (size_t i = 0; i < c->count && !code && mo->matched < mo->m->limit; i++) {
        struct arena_mark mark = arena_mark(&mo->s->arena);
        int rc = ops->rnd_pos(mo->t, mo->row, c->list[i].ref);
        if (rc != SE_KEY_NOT_FOUND)
            code = rc ? se_error(mo->s, rc, mo->def, mo->t) : change(mo);
        mo->s->row_number++;
        arena_release(&mo->s->arena, mark);
    }
    return code;
}

static unsigned run(struct modifier *mo)
{
    struct collection c = {0};
    if (mo->plan.access == ACCESS_NOTHING)
        return 0;
    if (!collect_first(mo))
        return scan_rows(mo, NULL);
    mo->ref_length = mo->t->eng->ops->ref_length(mo->t);
    unsigned code = scan_rows(mo, &c);
    if (!code && mo->m->order_count && c.count)
        qsort_r(c.list, c.count, sizeof *c.list, compare_found, mo->m);
    if (!code)
        code = change_collected(mo, &c);
    free(c.list);
    arena_free(&c.arena);
    return code;
}

static unsigned prepare(struct modifier *mo, session *s, struct modify *m, bool update)
{
    *mo = (struct modifier){.s = s, .m = m, .update = update};
    s->writing = update && !m->ignore;
    mo->table = table_open(s, &m->table, true);
    if (!mo->table)
        return s->diag.error;
    mo->t = mo->table->handle;
    mo->def = mo->t->def;
    uint32_t map_bytes = mo->def->column_count / 8 + 1;
    mo->read_set = arena_alloc(&s->arena, map_bytes);
    mo->assigned = arena_alloc(&s->arena, map_bytes);
    mo->row = arena_alloc(&s->arena, mo->def->row_length);
    mo->next = arena_alloc(&s->arena, mo->def->row_length);
    mo->scope = (struct scope){.s = s, .def = mo->def, .alias = m->table_alias, .read_set = mo->read_set,
                               .clause = "SET"};
    unsigned code = bind(mo);
    if (!code)
        code = statement_begin(s, mo->table->eng);
    if (code)
        return code;
    int rc = mo->t->eng->ops->table_start(mo->t, SE_LOCK_EXCLUSIVE, NULL); /* whole rows: they are written */
    if (rc)
        return se_error(s, rc, mo->def, mo->t);
    mo->plan = plan_make(&mo->scope, mo->t, m->where, m->order, m->order_count, m->force_index,
                         m->ignore_index);
    if (update && mo->t->eng->ops->semi_consistent) /* the server waits in DELETE */
        mo->t->eng->ops->semi_consistent(mo->t);
    return s->diag.error;
}

static unsigned exec_modify(session *s, struct modify *m, bool update)
{
    struct modifier mo;
    char info[120];
    unsigned code = prepare(&mo, s, m, update);
    if (!code)
        code = run(&mo);
    unsigned end = statement_finish(s, !code);
    code = code ? code : end;
    if (code)
        return code;
    s->row_count = (int64_t)mo.changed;
    snprintf(info, sizeof info, "Rows matched: %llu  Changed: %llu  Warnings: %u",
             (unsigned long long)mo.matched, (unsigned long long)mo.changed, s->diag.count);
    send_ok(s, mo.changed, 0, update ? info : NULL);
    return 0;
}

unsigned exec_update(session *s, struct modify *m)
{
    return exec_modify(s, m, true);
}

unsigned exec_delete(session *s, struct modify *m)
{
    return exec_modify(s, m, false);
}
