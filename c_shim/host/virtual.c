/* Tables that are made when they are read. */
#include "virtual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct virtual_table *make(session *s, const char *name, uint32_t count)
{
    struct virtual_table *v = arena_alloc(&s->arena, sizeof *v);
    v->def = arena_alloc(&s->arena, sizeof *v->def);
    v->def->db = "information_schema";
    v->def->name = arena_strndup(&s->arena, name, strlen(name));
    v->def->engine_name = "MEMORY";
    v->def->columns = arena_alloc(&s->arena, (count + 1) * sizeof *v->def->columns);
    v->def->column_count = count;
    v->def->primary_key = NO_KEY;
    v->def->autoinc_col = UINT32_MAX;
    return v;
}

static void text_column(struct column *c, const char *name)
{
    c->name = (char *)(uintptr_t)name;
    c->type = CT_TEXT;
    c->length = 4;
    c->collation = COLL_UTF8MB3;
}

/* Row images of a virtual table live in the arena; only the defaults are malloc'd by the layout. */
static void lay_out(session *s, struct virtual_table *v)
{
    v->def->defaults = NULL;
    tabledef_layout(v->def);
    uint8_t *defaults = arena_alloc(&s->arena, v->def->row_length);
    memcpy(defaults, v->def->defaults, v->def->row_length);
    free(v->def->defaults);
    v->def->defaults = defaults;
}

struct virtual_table *virtual_new(session *s, const char *name, const char *const *columns,
                                  uint32_t count)
{
    struct virtual_table *v = make(s, name, count);
    for (uint32_t i = 0; i < count; i++) {
        struct column *c = &v->def->columns[i];
        text_column(c, columns[i]);
        if (columns[i][0] == '#') {
            c->name++;
            c->type = CT_BIGINT;
            c->length = 21;
            c->collation = COLL_BINARY;
        }
    }
    lay_out(s, v);
    return v;
}

void virtual_add(session *s, struct virtual_table *v, const struct is_value *values, size_t count)
{
    uint8_t *row = arena_alloc(&s->arena, v->def->row_length);
    memcpy(row, v->def->defaults, v->def->row_length);
    for (uint32_t i = 0; i < v->def->column_count; i++) {
        struct value t = value_null();
        if (i < count && !values[i].null)
            t = value_string(values[i].ptr, values[i].len, COLL_UTF8MB4);
        value_store(&s->arena, &v->def->columns[i], row, &t, 0);
    }
    if ((v->count & (v->count - 1)) == 0) {
        uint8_t **grown = arena_alloc(&s->arena, (v->count ? 2 * v->count : 1) * sizeof *grown);
        if (v->count)
            memcpy(grown, v->rows, v->count * sizeof *grown);
        v->rows = grown;
    }
    v->rows[v->count++] = row;
}

void virtual_add_text(session *s, struct virtual_table *v, const char *const *values)
{
    struct is_value row[32];
    uint32_t n = v->def->column_count;
    for (uint32_t i = 0; i < n && i < 32; i++)
        row[i] = (struct is_value){values[i], values[i] ? strlen(values[i]) : 0, !values[i]};
    virtual_add(s, v, row, n);
}

int virtual_take(void *ctx, const struct is_value *values, size_t count)
{
    struct virtual_fill *f = ctx;
    virtual_add(f->s, f->v, values, count);
    return 0;
}

static int compare_first(const void *a, const void *b, void *ctx)
{
    const struct virtual_table *v = ctx;
    const struct column *c = &v->def->columns[0];
    struct arena none = {0};
    struct value x = value_load(&none, c, *(uint8_t *const *)a, 0);
    struct value y = value_load(&none, c, *(uint8_t *const *)b, 0);
    if (x.kind == V_NULL || y.kind == V_NULL)
        return 0;
    return value_compare(&x, &y);
}

void virtual_sort(struct virtual_table *v)
{
    if (v->count)
        qsort_r(v->rows, v->count, sizeof *v->rows, compare_first, v);
}

static void send_row(session *s, struct virtual_table *v, const uint8_t *row)
{
    struct sink_value *out = arena_alloc(&s->arena, v->def->column_count * sizeof *out);
    for (uint32_t i = 0; i < v->def->column_count; i++) {
        struct value t = value_load(&s->arena, &v->def->columns[i], row, s->zone_seconds);
        out[i].null = t.kind == V_NULL;
        if (out[i].null)
            continue;
        t = value_to_text(&s->arena, &t);
        out[i].ptr = t.s.ptr;
        out[i].len = t.s.len;
    }
    s->sink->row(s->sink, out, v->def->column_count);
}

unsigned virtual_send(session *s, struct virtual_table *v, const struct stmt *st, uint32_t like_column)
{
    struct scope sc = {.s = s, .def = v->def, .clause = "WHERE"};
    if (st->where && expr_bind(&sc, st->where))
        return s->diag.error;
    struct sink_column *columns = arena_alloc(&s->arena, v->def->column_count * sizeof *columns);
    for (uint32_t i = 0; i < v->def->column_count; i++)
        columns[i] = (struct sink_column){.name = v->def->columns[i].name,
                                          .numeric = v->def->columns[i].type == CT_BIGINT};
    s->sink->columns(s->sink, columns, v->def->column_count);
    for (size_t i = 0; i < v->count; i++) {
        struct value name = value_load(&s->arena, &v->def->columns[like_column], v->rows[i], 0);
        sc.row = v->rows[i];
        bool keep = name.kind != V_STRING || show_matches(st, arena_strndup(&s->arena, name.s.ptr, name.s.len));
        if (keep && st->where) {
            struct value w = expr_eval(&sc, st->where);
            keep = value_is_true(&w);
        }
        if (keep)
            send_row(s, v, v->rows[i]);
    }
    send_end(s);
    return 0;
}

static struct virtual_table *plugin_table(session *s, const char *name)
{
    is_table *t = registry_is_table(s->h, name);
    if (!t)
        return NULL;
    struct virtual_table *v = make(s, t->name, t->column_count);
    for (uint32_t i = 0; i < t->column_count; i++) {
        const struct is_column *from = &t->columns[i];
        struct column *c = &v->def->columns[i];
        text_column(c, arena_strndup(&s->arena, from->name, strlen(from->name)));
        if (!from->nullable)
            c->flags |= COL_NOT_NULL;
        if (from->type == CT_VARCHAR && from->length && from->length <= 16383) {
            c->type = CT_VARCHAR;
            c->char_length = from->length;
        } else if (from->type <= CT_DOUBLE || from->type == CT_DATETIME) {
            c->type = from->type;
            c->collation = COLL_BINARY;
            c->decimals = from->type == CT_DATETIME ? 0 : 31;
            c->length = from->length;
            c->flags |= from->is_unsigned ? COL_UNSIGNED : 0;
        }
    }
    lay_out(s, v);
    struct virtual_fill fill = {s, v};
    int rc = t->fill(t, s, virtual_take, &fill);
    registry_is_table_done(s->h, t);
    if (rc)
        se_error(s, rc, v->def, NULL);
    return v;
}

/* seq_1_to_100, seq_1_to_100_step_5: the numbers, as the server's sequence engine has them. */
static struct virtual_table *sequence_table(session *s, const char *name)
{
    static const char *const columns[] = {"#seq"};
    unsigned long long from, to, step = 1;
    int used = 0;
    if (sscanf(name, "seq_%llu_to_%llu%n", &from, &to, &used) != 2)
        return NULL;
    if (name[used] && sscanf(name + used, "_step_%llu", &step) != 1)
        return NULL;
    struct virtual_table *v = virtual_new(s, name, columns, 1);
    char text[24];
    v->def->columns[0].flags = COL_UNSIGNED | COL_NOT_NULL;
    lay_out(s, v);
    for (unsigned long long n = from; step && n <= to; n += step) {
        struct is_value value = {text, (size_t)snprintf(text, sizeof text, "%llu", n), false};
        virtual_add(s, v, &value, 1);
    }
    return v;
}

struct virtual_table *virtual_open(session *s, const struct table_name *name)
{
    const char *db = name->db ? name->db : s->db;
    if (!db || strcasecmp(db, "information_schema"))
        return !strncmp(name->name, "seq_", 4) ? sequence_table(s, name->name) : NULL;
    struct virtual_table *v = plugin_table(s, name->name);
    if (!v && !s->diag.error)
        v = info_schema_open(s, name->name);
    if (!v && !s->diag.error)
        sql_error(s, 1109, name->name, "information_schema");
    return v;
}
