/* INFORMATION_SCHEMA tables of the host itself. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "charset.h"
#include "showrows.h"
#include "virtual.h"

struct walk {
    session *s;
    struct virtual_table *v;
    const char *db;
    void (*each)(struct walk *w, const table_def *def);
};

static int walk_table(void *ctx, const struct is_value *values, size_t count)
{
    struct walk *w = ctx;
    (void)count;
    const char *name = arena_strndup(&w->s->arena, values[0].ptr, values[0].len);
    table_def *def = catalog_find(w->s, w->db, name);
    if (def) {
        w->each(w, def);
        /* Rows keep no pointers into the definition: texts were copied into the arena. */
        catalog_release(w->s->h, def);
    }
    w->s->diag.error = 0; /* a damaged definition is left out */
    return 0;
}

static int walk_db(void *ctx, const struct is_value *values, size_t count)
{
    struct walk *w = ctx;
    (void)count;
    w->db = arena_strndup(&w->s->arena, values[0].ptr, values[0].len);
    return strcasecmp(w->db, "information_schema") ? catalog_list_tables(w->s, w->db, walk_table, w) : 0;
}

static void table_row(struct walk *w, const table_def *def)
{
    char rows[24] = "";
    const char *row[] = {"def", def->db, def->name, "BASE TABLE", def->engine_name, rows, coll_name(def->collation),
                         def->comment ? def->comment : ""};
    struct se_info info;
    row[5] = table_info(w->s, def, &info) ? rows : NULL;
    if (row[5])
        snprintf(rows, sizeof rows, "%llu", (unsigned long long)info.rows);
    virtual_add_text(w->s, w->v, row);
}

static void column_rows(struct walk *w, const table_def *def)
{
    for (uint32_t i = 0; i < def->column_count; i++) {
        struct column_row r;
        char position[16];
        column_row_make(w->s, def, i, &r);
        snprintf(position, sizeof position, "%u", i + 1);
        const char *row[] = {"def", def->db, def->name, def->columns[i].name, position, r.default_text,
                             r.null, r.type, r.collation, r.key, r.extra, r.comment};
        virtual_add_text(w->s, w->v, row);
    }
}

static int schema_row(void *ctx, const struct is_value *values, size_t count)
{
    struct walk *w = ctx;
    (void)count;
    const char *db = arena_strndup(&w->s->arena, values[0].ptr, values[0].len);
    uint32_t collation = catalog_db_collation(w->s->h, db);
    const char *row[] = {"def", db, coll_charset(collation), coll_name(collation)};
    virtual_add_text(w->s, w->v, row);
    return 0;
}

static int status_rows(session *s, row_fn fn, void *ctx)
{
    return status_list(s, fn, ctx);
}

struct virtual_table *info_schema_open(session *s, const char *name)
{
    static const char *const tables[] = {"TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME", "TABLE_TYPE",
                                         "ENGINE", "#TABLE_ROWS", "TABLE_COLLATION", "TABLE_COMMENT"};
    static const char *const columns[] = {
        "TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME", "#ORDINAL_POSITION", "COLUMN_DEFAULT",
        "IS_NULLABLE", "COLUMN_TYPE", "COLLATION_NAME", "COLUMN_KEY", "EXTRA", "COLUMN_COMMENT"};
    static const char *const schemata[] = {"CATALOG_NAME", "SCHEMA_NAME", "DEFAULT_CHARACTER_SET_NAME",
                                           "DEFAULT_COLLATION_NAME"};
    static const char *const variables[] = {"VARIABLE_NAME", "VARIABLE_VALUE"};
    static const char *const engines[] = {"ENGINE", "SUPPORT", "COMMENT", "TRANSACTIONS", "XA", "SAVEPOINTS"};
    static const char *const plugins[] = {"PLUGIN_NAME", "PLUGIN_STATUS", "PLUGIN_TYPE", "PLUGIN_LIBRARY",
                                          "PLUGIN_LICENSE", "PLUGIN_VERSION", "PLUGIN_MATURITY",
                                          "PLUGIN_DESCRIPTION"};
    struct walk w = {.s = s};
    if (!strcasecmp(name, "TABLES") || !strcasecmp(name, "COLUMNS")) {
        bool of_columns = !strcasecmp(name, "COLUMNS");
        w.v = of_columns ? virtual_new(s, name, columns, 12) : virtual_new(s, name, tables, 8);
        w.each = of_columns ? column_rows : table_row;
        catalog_list_dbs(s->h, walk_db, &w);
        return w.v;
    }
    if (!strcasecmp(name, "SCHEMATA")) {
        w.v = virtual_new(s, name, schemata, 4);
        catalog_list_dbs(s->h, schema_row, &w);
        return w.v;
    }
    struct virtual_fill fill = {s, NULL};
    if (!strcasecmp(name, "SESSION_VARIABLES") || !strcasecmp(name, "GLOBAL_VARIABLES")) {
        fill.v = virtual_new(s, name, variables, 2);
        sysvar_list(s, !strcasecmp(name, "GLOBAL_VARIABLES"), virtual_take, &fill);
    } else if (!strcasecmp(name, "SESSION_STATUS") || !strcasecmp(name, "GLOBAL_STATUS")) {
        fill.v = virtual_new(s, name, variables, 2);
        status_rows(s, virtual_take, &fill);
    } else if (!strcasecmp(name, "ENGINES")) {
        fill.v = virtual_new(s, name, engines, 6);
        registry_engines(s->h, virtual_take, &fill);
    } else if (!strcasecmp(name, "PLUGINS")) {
        fill.v = virtual_new(s, name, plugins, 8);
        registry_plugins(s->h, virtual_take, &fill);
    }
    return fill.v;
}
