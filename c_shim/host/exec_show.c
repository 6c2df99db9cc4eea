/* SHOW and DESCRIBE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "charset.h"
#include "showrows.h"
#include "virtual.h"

static const char *key_word(const table_def *def, uint32_t column)
{
    const char *word = "";
    for (uint32_t i = 0; i < def->key_count; i++) {
        const struct key *k = &def->keys[i];
        for (uint32_t j = 0; j < k->part_count; j++)
            if (k->parts[j].col == column && k->flags & KEY_PRIMARY)
                return "PRI";
        if (k->parts[0].col != column)
            continue;
        if (k->flags & KEY_UNIQUE && k->part_count == 1 && !*word)
            word = "UNI";
        else if (!*word)
            word = "MUL";
    }
    return word;
}

/* A default as DESCRIBE shows it: without the quotes. */
static const char *plain_default(session *s, const table_def *def, const struct column *c)
{
    if (c->flags & COL_DEFAULT_NOW)
        return c->decimals ? arena_printf(&s->arena, "current_timestamp(%u)", c->decimals)
                           : "current_timestamp()";
    if (!(c->flags & COL_HAS_DEFAULT) || rec_is_null(c, def->defaults))
        return NULL;
    if (c->type == CT_BIT)
        return arena_strndup(&s->arena, c->default_text, strlen(c->default_text));
    struct value v = value_load(&s->arena, c, def->defaults, s->zone_seconds);
    bool lossy = false;
    v = value_to_text(&s->arena, &v);
    v = value_convert(&s->arena, &v, COLL_UTF8MB4, &lossy);
    return arena_strndup(&s->arena, v.s.ptr, v.s.len);
}

void column_row_make(session *s, const table_def *def, uint32_t column, struct column_row *out)
{
    const struct column *c = &def->columns[column];
    struct strbuf type = {0};
    column_type_print(c, &type);
    out->type = arena_strndup(&s->arena, type.data, type.len);
    buf_free(&type);
    out->null = c->null_mask ? "YES" : "NO";
    out->key = key_word(def, column);
    out->default_text = plain_default(s, def, c);
    out->extra = c->flags & COL_AUTO_INC        ? "auto_increment"
                 : !(c->flags & COL_ON_UPDATE_NOW) ? ""
                 : c->decimals ? arena_printf(&s->arena, "on update current_timestamp(%u)", c->decimals)
                               : "on update current_timestamp()";
    out->collation = coll_is_binary(c->collation) ? NULL : coll_name(c->collation);
    out->comment = c->comment ? arena_strndup(&s->arena, c->comment, strlen(c->comment)) : "";
}

bool table_info(session *s, const table_def *def, struct se_info *out)
{
    engine *e = registry_engine(s->h, def->engine_name);
    struct part *p;
    se_table *t = NULL;
    memset(out, 0, sizeof *out);
    bool ok = e && e->ops->info && !part_open(s, e, &p) && !e->ops->open(e, p->es, def, &t) &&
              !e->ops->info(t, out);
    if (t)
        e->ops->close(t);
    s->diag.error = 0;
    return ok;
}

int status_list(session *s, row_fn fn, void *ctx)
{
    int rc = 0;
    for (uint32_t slot = 0; slot < MAX_ENGINES && !rc; slot++) {
        engine *e = registry_engine_at(s->h, slot);
        struct part *p;
        if (e && e->ops->show_status && !part_open(s, e, &p))
            rc = e->ops->show_status(e, p->es, fn, ctx);
    }
    return rc;
}

static unsigned show_columns(session *s, const struct stmt *st)
{
    static const char *const short_names[] = {"Field", "Type", "Null", "Key", "Default", "Extra"};
    static const char *const full_names[] = {"Field", "Type", "Collation", "Null", "Key", "Default",
                                             "Extra", "Privileges", "Comment"};
    const struct table_name *name = &st->tables[0];
    struct virtual_table *of = virtual_open(s, name);
    const char *db = of || s->diag.error ? NULL : resolve_db(s, name);
    table_def *def = of ? of->def : db ? catalog_get(s, db, name->name) : NULL;
    if (!def)
        return s->diag.error;
    struct virtual_table *v = st->full ? virtual_new(s, "COLUMNS", full_names, 9)
                                       : virtual_new(s, "COLUMNS", short_names, 6);
    for (uint32_t i = 0; i < def->column_count; i++) {
        struct column_row r;
        column_row_make(s, def, i, &r);
        const char *field = def->columns[i].name;
        const char *row[] = {field, r.type, r.null, r.key, r.default_text, r.extra};
        const char *full[] = {field, r.type, r.collation, r.null, r.key, r.default_text, r.extra,
                              "select,insert,update,references", r.comment};
        virtual_add_text(s, v, st->full ? full : row);
    }
    if (!of)
        catalog_release(s->h, def);
    return virtual_send(s, v, st, 0);
}

static unsigned show_index(session *s, const struct stmt *st)
{
    static const char *const names[] = {"Table", "#Non_unique", "Key_name", "#Seq_in_index", "Column_name",
        "Collation", "#Cardinality", "#Sub_part", "Packed", "Null", "Index_type", "Comment",
        "Index_comment", "Ignored"};
    const char *db = resolve_db(s, &st->tables[0]);
    table_def *def = db ? catalog_get(s, db, st->tables[0].name) : NULL;
    if (!def)
        return s->diag.error;
    struct virtual_table *v = virtual_new(s, "STATISTICS", names, 14);
    for (uint32_t i = 0; i < def->key_count; i++) {
        const struct key *k = &def->keys[i];
        for (uint32_t j = 0; j < k->part_count; j++) {
            const struct column *c = &def->columns[k->parts[j].col];
            const char *row[] = {def->name, k->flags & KEY_UNIQUE ? "0" : "1", k->name,
                arena_printf(&s->arena, "%u", j + 1), c->name, k->parts[j].descending ? "D" : "A", NULL,
                k->parts[j].prefix ? arena_printf(&s->arena, "%u", k->parts[j].length /
                                                  coll_mbmaxlen(c->collation)) : NULL,
                NULL, c->null_mask ? "YES" : "", "BTREE", "", k->comment ? k->comment : "", "NO"};
            virtual_add_text(s, v, row);
        }
    }
    catalog_release(s->h, def);
    return virtual_send(s, v, st, 2);
}

static unsigned show_tables(session *s, const struct stmt *st)
{
    const char *db = st->name ? st->name : s->db;
    if (!db || !*db)
        return sql_error(s, 1046);
    if (!catalog_db_exists(s->h, db))
        return sql_error(s, 1049, db);
    const char *heading = st->like ? arena_printf(&s->arena, "Tables_in_%s (%s)", db, st->like)
                                   : arena_printf(&s->arena, "Tables_in_%s", db);
    const char *names[] = {heading, "Table_type"};
    struct virtual_table *v = virtual_new(s, "TABLES", names, st->full ? 2 : 1), *all;
    const char *all_names[] = {heading};
    all = virtual_new(s, "TABLES", all_names, 1);
    struct virtual_fill fill = {s, all};
    catalog_list_tables(s, db, virtual_take, &fill);
    for (size_t i = 0; i < all->count; i++) {
        struct value t = value_load(&s->arena, &all->def->columns[0], all->rows[i], 0);
        const char *row[] = {arena_strndup(&s->arena, t.s.ptr, t.s.len), "BASE TABLE"};
        virtual_add_text(s, v, row);
    }
    return virtual_send(s, v, st, 0);
}

static unsigned show_databases(session *s, const struct stmt *st)
{
    const char *names[] = {st->like ? arena_printf(&s->arena, "Database (%s)", st->like) : "Database"};
    struct virtual_table *v = virtual_new(s, "SCHEMATA", names, 1);
    struct virtual_fill fill = {s, v};
    catalog_list_dbs(s->h, virtual_take, &fill);
    return virtual_send(s, v, st, 0);
}

static unsigned show_create_table(session *s, const struct stmt *st)
{
    static const char *const names[] = {"Table", "Create Table"};
    const char *db = resolve_db(s, &st->tables[0]);
    table_def *def = db ? catalog_get(s, db, st->tables[0].name) : NULL;
    struct strbuf text = {0};
    struct se_info info = {0};
    if (!def)
        return s->diag.error;
    bool known = def->autoinc_col != UINT32_MAX && table_info(s, def, &info);
    tabledef_print(def, def->name, true, known ? info.autoinc : def->autoinc_start, &text);
    const char *row[] = {def->name, text.data};
    send_columns(s, names, 2);
    send_text_row(s, row, 2);
    buf_free(&text);
    catalog_release(s->h, def);
    send_end(s);
    return 0;
}

static unsigned show_create_db(session *s, const struct stmt *st)
{
    static const char *const names[] = {"Database", "Create Database"};
    if (!catalog_db_exists(s->h, st->name))
        return sql_error(s, 1049, st->name);
    uint32_t collation = catalog_db_collation(s->h, st->name);
    struct strbuf text = {0};
    buf_str(&text, "CREATE DATABASE ");
    buf_quoted(&text, st->name, strlen(st->name), '`');
    buf_printf(&text, " /*!40100 DEFAULT CHARACTER SET %s COLLATE %s */", coll_charset(collation),
               coll_name(collation));
    const char *row[] = {st->name, text.data};
    send_columns(s, names, 2);
    send_text_row(s, row, 2);
    buf_free(&text);
    send_end(s);
    return 0;
}

static unsigned show_named_values(session *s, const struct stmt *st)
{
    static const char *const names[] = {"Variable_name", "Value"};
    struct virtual_table *v = virtual_new(s, "VARIABLES", names, 2);
    struct virtual_fill fill = {s, v};
    if (st->show == SHOW_VARIABLES)
        sysvar_list(s, st->global, virtual_take, &fill);
    else
        status_list(s, virtual_take, &fill);
    virtual_sort(v);
    return virtual_send(s, v, st, 0);
}

static unsigned show_plugins(session *s, const struct stmt *st)
{
    static const char *const plugins[] = {"Name", "Status", "Type", "Library", "License"};
    static const char *const engines[] = {"Engine", "Support", "Comment", "Transactions", "XA",
                                          "Savepoints"};
    bool of_engines = st->show == SHOW_ENGINES;
    struct virtual_table *v = of_engines ? virtual_new(s, "ENGINES", engines, 6)
                                         : virtual_new(s, "PLUGINS", plugins, 5);
    struct virtual_fill fill = {s, v};
    if (of_engines)
        registry_engines(s->h, virtual_take, &fill);
    else
        registry_plugins(s->h, virtual_take, &fill);
    return virtual_send(s, v, st, 0);
}

static unsigned show_engine_status(session *s, const struct stmt *st)
{
    static const char *const names[] = {"Type", "Name", "Status"};
    engine *e = registry_engine(s->h, st->name);
    struct part *p;
    char *text = NULL;
    if (!e)
        return sql_error(s, 1286, st->name);
    if (part_open(s, e, &p))
        return s->diag.error;
    int rc = e->ops->monitor_text && !st->full ? e->ops->monitor_text(e, p->es, &text) : SE_OK;
    if (rc)
        return se_error(s, rc, NULL, NULL);
    const char *row[] = {e->name, "", text ? text : ""};
    send_columns(s, names, 3);
    if (!st->full)
        send_text_row(s, row, 3);
    free(text);
    send_end(s);
    return 0;
}

static unsigned show_warnings(session *s, const struct stmt *st)
{
    static const char *const names[] = {"Level", "#Code", "Message"};
    static const char *const levels[] = {"Note", "Warning", "Error"};
    send_columns(s, names, 3);
    for (uint32_t i = 0; i < s->diag.kept; i++) {
        const struct condition *c = &s->diag.list[i];
        char code[16];
        if (st->show == SHOW_ERRORS && c->level != LEVEL_ERROR)
            continue;
        snprintf(code, sizeof code, "%u", c->code);
        const char *row[] = {levels[c->level], code, c->text};
        send_text_row(s, row, 3);
    }
    s->sink->end(s->sink, 0);
    return 0;
}

struct status_walk {
    session *s;
    struct virtual_table *v;
    const char *db;
};

static int table_status_row(void *ctx, const struct is_value *values, size_t count)
{
    static const char *const formats[] = {"Dynamic", "Redundant", "Compact", "Dynamic", "Compressed"};
    struct status_walk *w = ctx;
    struct arena *a = &w->s->arena;
    (void)count;
    const char *name = arena_strndup(a, values[0].ptr, values[0].len);
    table_def *def = catalog_find(w->s, w->db, name);
    w->s->diag.error = 0;
    if (!def)
        return 0;
    struct se_info i;
    bool known = table_info(w->s, def, &i);
#define NUMBER(n) (known ? arena_printf(a, "%llu", (unsigned long long)(n)) : NULL)
    const char *row[] = {name, def->engine_name, "10", formats[def->row_format], NUMBER(i.rows),
                         NUMBER(i.rows ? i.data_bytes / i.rows : 0), NUMBER(i.data_bytes), "0",
                         NUMBER(i.index_bytes), NUMBER(i.free_bytes), i.autoinc ? NUMBER(i.autoinc) : NULL,
                         coll_name(def->collation), def->comment ? def->comment : ""};
#undef NUMBER
    virtual_add_text(w->s, w->v, row);
    catalog_release(w->s->h, def);
    return 0;
}

static unsigned show_table_status(session *s, const struct stmt *st)
{
    static const char *const names[] = {"Name", "Engine", "#Version", "Row_format", "#Rows",
        "#Avg_row_length", "#Data_length", "#Max_data_length", "#Index_length", "#Data_free",
        "#Auto_increment", "Collation", "Comment"};
    const char *db = st->name ? st->name : s->db;
    if (!db || !*db)
        return sql_error(s, 1046);
    if (!catalog_db_exists(s->h, db))
        return sql_error(s, 1049, db);
    struct status_walk w = {s, virtual_new(s, "TABLES", names, 13), db};
    catalog_list_tables(s, db, table_status_row, &w);
    return virtual_send(s, w.v, st, 0);
}

static unsigned show_processlist(session *s, const struct stmt *st)
{
    static const char *const names[] = {"#Id", "User", "Host", "db", "Command", "#Time", "State", "Info"};
    struct virtual_table *v = virtual_new(s, "PROCESSLIST", names, 8);
    pthread_mutex_lock(&s->h->lock);
    for (session *o = s->h->sessions; o; o = o->next) {
        bool busy = atomic_load(&o->busy);
        const char *info = o == s ? arena_strndup(&s->arena, s->sql, s->sql_len) : NULL;
        const char *row[] = {arena_printf(&s->arena, "%u", o->id), "root", "localhost",
                             o == s && *s->db ? s->db : NULL, busy ? "Query" : "Sleep", "0", "", info};
        virtual_add_text(s, v, row);
    }
    pthread_mutex_unlock(&s->h->lock);
    virtual_sort(v);
    return virtual_send(s, v, st, 0);
}

static unsigned show_collation(session *s, const struct stmt *st)
{
    static const char *const names[] = {"Collation", "Charset", "#Id", "Default"};
    struct virtual_table *v = virtual_new(s, "COLLATIONS", names, 4);
    for (unsigned i = 0; coll_info_at(i); i++) {
        const struct collation_info *c = coll_info_at(i);
        const char *row[] = {c->name, coll_charset(c->id), arena_printf(&s->arena, "%u", c->id),
                             coll_default_of(coll_charset(c->id)) == c->id ? "Yes" : ""};
        virtual_add_text(s, v, row);
    }
    virtual_sort(v);
    return virtual_send(s, v, st, 0);
}

unsigned exec_show(session *s, struct stmt *st)
{
    if (st->kind == STMT_DESCRIBE)
        return show_columns(s, st);
    switch (st->show) {
    case SHOW_TABLES: return show_tables(s, st);
    case SHOW_DATABASES: return show_databases(s, st);
    case SHOW_CREATE_TABLE: return show_create_table(s, st);
    case SHOW_CREATE_DB: return show_create_db(s, st);
    case SHOW_VARIABLES:
    case SHOW_STATUS: return show_named_values(s, st);
    case SHOW_ENGINES:
    case SHOW_PLUGINS: return show_plugins(s, st);
    case SHOW_ENGINE_STATUS: return show_engine_status(s, st);
    case SHOW_COLUMNS: return show_columns(s, st);
    case SHOW_INDEX: return show_index(s, st);
    case SHOW_WARNINGS:
    case SHOW_ERRORS: return show_warnings(s, st);
    case SHOW_TABLE_STATUS: return show_table_status(s, st);
    case SHOW_PROCESSLIST: return show_processlist(s, st);
    default: return show_collation(s, st);
    }
}
