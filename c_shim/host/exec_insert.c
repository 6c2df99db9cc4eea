/* INSERT, REPLACE, INSERT … SELECT, ON DUPLICATE KEY UPDATE, AUTO_INCREMENT. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exec.h"

struct inserter {
    session *s;
    struct insert *ins;
    struct open_table *table;
    se_table *t;
    const table_def *def;
    uint32_t *columns;      /* target of each value */
    uint32_t column_count;
    uint8_t *given;         /* bit per column: has a value in the statement */
    uint8_t *row, *old;
    struct scope scope;     /* values may refer to columns set before, as defaults else */
    uint64_t inserted, deleted, updated, touched, first_id, rows;
    uint64_t reserved_next, reserved_left;
    bool generated;         /* the row has an AUTO_INCREMENT value of ours */
    bool bulk;              /* the engine was told that several rows come */
};

static uint32_t column_by_name(const table_def *def, const char *name)
{
    for (uint32_t i = 0; i < def->column_count; i++)
        if (!strcasecmp(def->columns[i].name, name))
            return i;
    return UINT32_MAX;
}

static unsigned bind_columns(struct inserter *in)
{
    const table_def *def = in->def;
    struct insert *ins = in->ins;
    bool all = !ins->columns || (!ins->column_count && ins->row_count && ins->rows[0].count);
    in->column_count = all ? def->column_count : ins->column_count;
    in->columns = arena_alloc(&in->s->arena, (in->column_count + 1) * sizeof *in->columns);
    for (uint32_t i = 0; i < in->column_count; i++) {
        uint32_t col = all ? i : column_by_name(def, ins->columns[i]);
        if (col == UINT32_MAX)
            return sql_error(in->s, 1054, ins->columns[i], "INSERT INTO");
        if (in->given[col / 8] >> col % 8 & 1)
            return sql_error(in->s, 1110, ins->columns[i]);
        in->columns[i] = col;
        in->given[col / 8] |= (uint8_t)(1u << col % 8);
    }
    return 0;
}

static unsigned bind_rows(struct inserter *in)
{
    unsigned code = 0;
    struct insert *ins = in->ins;
    in->scope.clause = "VALUES";
    for (uint32_t r = 0; r < ins->row_count && !code; r++) {
        if (ins->rows[r].count != in->column_count && !(ins->rows[r].count == 0 && !ins->column_count))
            return sql_error(in->s, 1136, (unsigned long)r + 1);
        for (uint32_t i = 0; i < ins->rows[r].count && !code; i++)
            if (ins->rows[r].items[i]->kind != E_LITERAL)
                code = expr_bind(&in->scope, ins->rows[r].items[i]);
    }
    for (uint32_t i = 0; i < ins->on_duplicate_count && !code; i++) {
        struct assignment *a = &ins->on_duplicate[i];
        a->bound = column_by_name(in->def, a->column);
        if (a->bound == UINT32_MAX)
            return sql_error(in->s, 1054, a->column, "UPDATE");
        in->scope.clause = "SELECT";
        code = expr_bind(&in->scope, a->value);
    }
    return code;
}

/* Columns without a value: current time, or an error when there is no default. */
static unsigned fill_defaults(struct inserter *in)
{
    for (uint32_t i = 0; i < in->def->column_count; i++) {
        const struct column *c = &in->def->columns[i];
        if (in->given[i / 8] >> i % 8 & 1)
            continue;
        if (c->flags & COL_DEFAULT_NOW) {
            struct value now = {.kind = V_TEMPORAL};
            temporal_from_unix(&now.t, in->s->now_seconds, in->s->now_micros, in->s->zone_seconds);
            value_store(&in->s->arena, c, in->row, &now, in->s->zone_seconds);
        } else if (!(c->flags & (COL_HAS_DEFAULT | COL_AUTO_INC)) && !c->null_mask) {
            if (c->type == CT_ENUM) /* the first member is its default */
                continue;
            if (in->s->strict && !in->ins->ignore)
                return sql_error(in->s, 1364, c->name);
            sql_warning(in->s, 1364, c->name);
        }
    }
    return 0;
}

static uint64_t read_uint(const struct column *c, const uint8_t *row)
{
    struct arena a = {0};
    bool ok;
    struct value v = value_load(&a, c, row, 0);
    int64_t i = v.kind == V_UINT ? (int64_t)v.u : value_to_int(&v, &ok);
    arena_free(&a);
    return (uint64_t)i;
}

/* Fills the AUTO_INCREMENT column where the statement gives NULL, 0 or nothing. */
static unsigned fill_autoinc(struct inserter *in, bool null_given)
{
    uint32_t col = in->def->autoinc_col;
    if (col == UINT32_MAX)
        return 0;
    const struct column *c = &in->def->columns[col];
    in->generated = false;
    bool given = in->given[col / 8] >> col % 8 & 1;
    bool zero = given && !null_given && read_uint(c, in->row) == 0;
    if (given && !null_given && !(zero && !in->s->zero_is_value))
        return 0;
    if (!in->reserved_left) {
        uint64_t want = in->ins->row_count > in->rows ? in->ins->row_count - in->rows : 1;
        int rc = in->t->eng->ops->autoinc_reserve(in->t, want, &in->reserved_next);
        if (rc == SE_AUTOINC_ERANGE)
            return c->type == CT_BIGINT ? sql_error(in->s, 1467) : sql_error(in->s, 167, c->name);
        if (rc)
            return se_error(in->s, rc, in->def, in->t);
        in->reserved_left = want;
    }
    if (in->reserved_next == UINT64_MAX) /* the server's mark of failure: never given out */
        return sql_error(in->s, 1467);
    struct value v = value_uint(in->reserved_next++);
    in->reserved_left--;
    in->generated = true;
    if (value_store(&in->s->arena, c, in->row, &v, 0) != ST_OK)
        return sql_error(in->s, 167, c->name);
    return 0;
}

/* The row that is in the way on key `key`, locked, into in->old. */
static unsigned read_duplicate(struct inserter *in, uint32_t key)
{
    const struct key *k = &in->def->keys[key];
    uint8_t *image = arena_alloc(&in->s->arena, k->length + 1);
    uint32_t length = rec_make_key(in->def, key, k->part_count, in->row, image);
    memcpy(in->old, in->def->defaults, in->def->row_length);
    int rc = in->t->eng->ops->index_read(in->t, key, in->old, image, length, FIND_EXACT);
    if (rc)
        return se_error(in->s, rc, in->def, in->t);
    rec_copy_blobs(&in->s->arena, in->def, in->old);
    return 0;
}

unsigned update_time_columns(session *s, const table_def *def, uint8_t *row, const uint8_t *assigned)
{
    for (uint32_t i = 0; i < def->column_count; i++) {
        const struct column *c = &def->columns[i];
        if (!(c->flags & COL_ON_UPDATE_NOW) || assigned[i / 8] >> i % 8 & 1)
            continue;
        struct value now = {.kind = V_TEMPORAL};
        temporal_from_unix(&now.t, s->now_seconds, s->now_micros, s->zone_seconds);
        value_store(&s->arena, c, row, &now, s->zone_seconds);
    }
    return 0;
}

static unsigned duplicate_error(struct inserter *in, uint32_t key, const uint8_t *row)
{
    const char *entry = key_text(&in->s->arena, in->def, key, row);
    if (in->ins->ignore) {
        sql_warning(in->s, 1062, entry, in->def->keys[key].name);
        return 0;
    }
    return sql_error(in->s, 1062, entry, in->def->keys[key].name);
}

/* ON DUPLICATE KEY UPDATE: in->old becomes a changed row. */
static unsigned update_duplicate(struct inserter *in)
{
    session *s = in->s;
    uint8_t *next = arena_alloc(&s->arena, in->def->row_length);
    uint8_t *assigned = arena_alloc(&s->arena, in->def->column_count / 8 + 1);
    memcpy(next, in->old, in->def->row_length);
    in->scope.row = next;
    in->scope.new_row = in->row;
    for (uint32_t i = 0; i < in->ins->on_duplicate_count; i++) {
        const struct assignment *a = &in->ins->on_duplicate[i];
        struct expr bound = *a->value;
        if (bound.kind == E_DEFAULT && bound.column == UINT32_MAX)
            bound.column = a->bound;
        struct value v = expr_eval(&in->scope, &bound);
        unsigned code = s->diag.error;
        if (!code)
            code = store_checked(s, in->def, a->bound, next, &v, in->ins->ignore);
        if (code)
            return code;
        assigned[a->bound / 8] |= (uint8_t)(1u << a->bound % 8);
    }
    in->touched++;
    if (rec_equal(in->def, in->old, next))
        return 0;
    update_time_columns(s, in->def, next, assigned);
    int rc = in->t->eng->ops->update_row(in->t, in->old, next);
    if (rc == SE_RECORD_IS_THE_SAME)
        return 0;
    if (rc == SE_FOUND_DUPP_KEY) {
        uint32_t key = in->t->eng->ops->error_key(in->t);
        return key < in->def->key_count ? duplicate_error(in, key, next) : se_error(s, rc, in->def, in->t);
    }
    in->updated += !rc;
    return rc ? se_error(s, rc, in->def, in->t) : 0;
}

/* The row in the way goes. When no unique key is left that could clash, it becomes the new row:
 * *done then. */
static unsigned replace_duplicate(struct inserter *in, uint32_t key, bool *done)
{
    const struct se_ops *ops = in->t->eng->ops;
    bool last = true;
    for (uint32_t k = key + 1; k < in->def->key_count; k++)
        last &= !(in->def->keys[k].flags & KEY_UNIQUE);
    bool same = last && rec_equal(in->def, in->old, in->row);
    int rc = same ? SE_OK : last ? ops->update_row(in->t, in->old, in->row) : ops->delete_row(in->t, in->old);
    if (rc == SE_RECORD_IS_THE_SAME)
        rc = SE_OK;
    else if (!rc && !same)
        in->deleted++;
    *done = last;
    in->inserted += last && !rc;
    return rc ? se_error(in->s, rc, in->def, in->t) : 0;
}

static unsigned write_row(struct inserter *in)
{
    for (;;) {
        int rc = in->t->eng->ops->write_row(in->t, in->row);
        if (rc == SE_OK) {
            in->inserted++;
            if (in->generated && !in->first_id)
                in->first_id = in->reserved_next - 1;
            return 0;
        }
        uint32_t key = rc == SE_FOUND_DUPP_KEY ? in->t->eng->ops->error_key(in->t) : NO_KEY;
        if (key >= in->def->key_count)
            return se_error(in->s, rc, in->def, in->t);
        if (!in->ins->replace && !in->ins->on_duplicate_count)
            return duplicate_error(in, key, in->row);
        bool done = !in->ins->replace;
        unsigned code = read_duplicate(in, key);
        if (!code)
            code = done ? update_duplicate(in) : replace_duplicate(in, key, &done);
        in->t->eng->ops->index_end(in->t);
        if (code || done)
            return code;
    }
}

/* One row of values, already evaluated by `next`. */
static unsigned insert_values(struct inserter *in, struct expr *const *items, const struct value *values,
                              uint32_t count)
{
    unsigned code = 0;
    bool null_autoinc = false;
    memcpy(in->row, in->def->defaults, in->def->row_length);
    in->scope.row = in->row;
    in->scope.new_row = NULL;
    for (uint32_t i = 0; i < count && !code; i++) {
        uint32_t col = in->columns[i];
        const struct column *c = &in->def->columns[col];
        struct value v;
        if (items && items[i]->kind == E_DEFAULT && items[i]->column == UINT32_MAX) {
            if (col == in->def->autoinc_col)
                null_autoinc = true;
            else if (!(c->flags & (COL_HAS_DEFAULT | COL_DEFAULT_NOW)) && !c->null_mask)
                code = sql_error(in->s, 1364, c->name);
            continue;
        }
        v = items ? expr_eval(&in->scope, items[i]) : values[i];
        code = in->s->diag.error;
        if (code)
            break;
        if (v.kind == V_NULL && col == in->def->autoinc_col) {
            null_autoinc = true;
            continue;
        }
        bool soft_null = v.kind == V_NULL && in->ins->row_count > 1 && !in->s->strict;
        code = store_checked(in->s, in->def, col, in->row, &v, in->ins->ignore || soft_null);
    }
    if (!code)
        code = fill_defaults(in);
    if (!code)
        code = fill_autoinc(in, null_autoinc);
    uint64_t before = in->inserted;
    if (!code)
        code = write_row(in);
    if (in->generated && in->inserted == before && !code) { /* not used: the next row takes it */
        in->reserved_next--;
        in->reserved_left++;
    }
    in->rows++;
    in->s->row_number = in->rows + 1;
    return code;
}

static unsigned insert_all(struct inserter *in)
{
    unsigned code = 0;
    for (uint32_t r = 0; r < in->ins->row_count && !code; r++) {
        struct arena_mark mark = arena_mark(&in->s->arena);
        code = insert_values(in, in->ins->rows[r].items, NULL, in->ins->rows[r].count);
        if (!code && atomic_load(&in->s->interrupted))
            code = sql_error(in->s, 1317);
        arena_release(&in->s->arena, mark);
    }
    return code;
}

/* Rows of INSERT … SELECT are collected first: the source may be the target. */
struct collected {
    struct arena arena;
    struct value **rows;
    size_t count;
    uint32_t width;
};

static unsigned collect_row(void *ctx, const struct value *values, uint32_t count)
{
    struct collected *c = ctx;
    if ((c->count & (c->count - 1)) == 0)
        c->rows = mem_realloc(c->rows, (c->count ? 2 * c->count : 1) * sizeof *c->rows);
    struct value *row = arena_alloc(&c->arena, (count + 1) * sizeof *row);
    for (uint32_t i = 0; i < count; i++) {
        row[i] = values[i];
        if (row[i].kind == V_STRING)
            row[i].s.ptr = arena_strndup(&c->arena, row[i].s.ptr, row[i].s.len);
        if (row[i].kind == V_DECIMAL)
            row[i] = value_decimal(&c->arena, row[i].dec);
    }
    c->width = count;
    c->rows[c->count++] = row;
    return 0;
}

static unsigned insert_query(struct inserter *in)
{
    struct collected c = {0};
    struct select *query = in->ins->query;
    bool locked = query->lock == LOCK_PLAIN && in->s->isolation >= SE_REPEATABLE_READ;
    if (locked && query->from_table)
        query->lock = LOCK_SHARE;
    unsigned code = select_run(in->s, query, collect_row, &c, false);
    if (!code && c.count && c.width != in->column_count)
        code = sql_error(in->s, 1136, 1UL);
    in->ins->row_count = (uint32_t)c.count; /* how many AUTO_INCREMENT values to ask for */
    for (size_t i = 0; i < c.count && !code; i++) {
        struct arena_mark mark = arena_mark(&in->s->arena);
        code = insert_values(in, NULL, c.rows[i], c.width);
        arena_release(&in->s->arena, mark);
    }
    free(c.rows);
    arena_free(&c.arena);
    return code;
}

static unsigned prepare(struct inserter *in, session *s, struct insert *ins)
{
    *in = (struct inserter){.s = s, .ins = ins};
    s->writing = !ins->ignore;
    in->table = table_open(s, &ins->table, true);
    if (!in->table)
        return s->diag.error;
    in->t = in->table->handle;
    in->def = in->t->def;
    in->given = arena_alloc(&s->arena, in->def->column_count / 8 + 1);
    in->row = arena_alloc(&s->arena, in->def->row_length);
    in->old = arena_alloc(&s->arena, in->def->row_length);
    in->scope = (struct scope){.s = s, .def = in->def};
    unsigned code = bind_columns(in);
    if (!code)
        code = bind_rows(in);
    if (!code)
        code = statement_begin(s, in->table->eng);
    if (code)
        return code;
    int rc = in->t->eng->ops->table_start(in->t, SE_LOCK_EXCLUSIVE, NULL);
    return rc ? se_error(s, rc, in->def, in->t) : 0;
}

/* Several plain rows: the engine may collect them. */
static unsigned bulk_begin(struct inserter *in)
{
    const struct se_ops *ops = in->t->eng->ops;
    bool many = in->ins->query || in->ins->row_count > 1;
    in->bulk = many && !in->ins->ignore && !in->ins->replace && !in->ins->on_duplicate_count && ops->bulk_begin;
    int rc = in->bulk ? ops->bulk_begin(in->t, in->ins->query ? 0 : in->ins->row_count) : SE_OK;
    return rc ? se_error(in->s, rc, in->def, in->t) : 0;
}

static unsigned bulk_end(struct inserter *in)
{
    const struct se_ops *ops = in->t->eng->ops;
    int rc = in->bulk ? ops->bulk_end(in->t) : SE_OK;
    uint32_t key = rc == SE_FOUND_DUPP_KEY ? ops->error_key(in->t) : NO_KEY;
    if (key < in->def->key_count && ops->bulk_refused && ops->bulk_refused(in->t, in->row) == SE_OK)
        return duplicate_error(in, key, in->row);
    return rc ? se_error(in->s, rc, in->def, in->t) : 0;
}

static void report(struct inserter *in)
{
    session *s = in->s;
    char info[120], *text = NULL;
    uint64_t affected = in->inserted + in->deleted + 2 * in->updated;
    bool many = in->ins->query || in->rows > 1;
    if (many) {
        uint64_t doubles = in->ins->replace ? in->deleted
                           : in->ins->on_duplicate_count ? in->touched
                                                         : in->rows - in->inserted;
        snprintf(info, sizeof info, "Records: %llu  Duplicates: %llu  Warnings: %u",
                 (unsigned long long)in->rows, (unsigned long long)doubles, s->diag.count);
        text = info;
    }
    s->row_count = (int64_t)affected;
    if (in->first_id && in->inserted)
        s->insert_id_now = in->first_id;
    send_ok(s, affected, s->insert_id_now, text);
}

unsigned exec_insert(session *s, struct insert *ins)
{
    struct inserter in;
    unsigned code = prepare(&in, s, ins);
    if (!code)
        code = bulk_begin(&in);
    if (!code)
        code = ins->query ? insert_query(&in) : insert_all(&in);
    if (!code)
        code = bulk_end(&in);
    unsigned end = statement_finish(s, !code);
    code = code ? code : end;
    if (!code)
        report(&in);
    return code;
}
