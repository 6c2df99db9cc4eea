/* CREATE, DROP, RENAME, TRUNCATE of tables; databases. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exec.h"
#include "tabledef.h"

static bool valid_name(session *s, const char *name, unsigned code)
{
    char file[1100];
    size_t len = strlen(name);
    bool ok = len && name[len - 1] != ' ' && strncmp(name, "#mysql50#", 9) != 0 &&
              filename_encode(name, file, sizeof file) && strlen(file) < 250;
    if (!ok)
        sql_error(s, code, name);
    else if (coll_char_count(COLL_UTF8MB4, (const uint8_t *)name, len) > 64)
        sql_error(s, 1059, name), ok = false;
    return ok;
}

static bool db_usable(session *s, const char *db)
{
    if (!strcasecmp(db, "information_schema")) {
        sql_error(s, 1044, "root", "localhost", "information_schema");
        return false;
    }
    if (!catalog_db_exists(s->h, db)) {
        sql_error(s, 1049, db);
        return false;
    }
    return true;
}

/* The engine and the session's part in it; 0 or an error. */
static unsigned engine_part(session *s, const char *name, engine **e, struct part **p)
{
    *e = registry_engine(s->h, name);
    if (!*e)
        return sql_error(s, 1286, name);
    return part_open(s, *e, p);
}

/* CREATE TABLE … LIKE: the definition's own text, parsed again under the new name. */
static table_def *like_definition(session *s, struct create_table *ct, const char *db)
{
    const char *from_db = resolve_db(s, &ct->like);
    table_def *from = from_db && mdl_lock(s, from_db, ct->like.name, MDL_SHARED)
                          ? catalog_get(s, from_db, ct->like.name) : NULL;
    struct strbuf text = {0};
    if (!from)
        return NULL;
    tabledef_print(from, ct->table.name, false, 0, &text);
    catalog_release(s->h, from);
    uint32_t collation = s->collation;
    s->collation = COLL_UTF8MB4;
    struct stmt *st = sql_parse(s, &s->arena, arena_strndup(&s->arena, text.data, text.len), text.len);
    buf_free(&text);
    table_def *def = st ? tabledef_build(s, st->create, db, COLL_UTF8MB4) : NULL;
    s->collation = collation;
    return def;
}

static table_def *new_definition(session *s, struct create_table *ct, const char *db)
{
    if (ct->like.name)
        return like_definition(s, ct, db);
    return tabledef_build(s, ct, db, catalog_db_collation(s->h, db));
}

static unsigned table_exists(session *s, struct create_table *ct, table_def *def)
{
    if (ct->if_not_exists)
        sql_note(s, 1050, def->name);
    else
        sql_error(s, 1050, def->name);
    catalog_release(s->h, def);
    return s->diag.error;
}

/* The engine makes the table, then the definition is written: between the two a crash leaves a
 * table that the engine's dictionary describes. */
static unsigned create_table(session *s, struct create_table *ct, table_def *def)
{
    engine *e;
    struct part *p;
    unsigned code = engine_part(s, def->engine_name, &e, &p);
    if (code) {
        catalog_release(s->h, def);
        return code;
    }
    int rc = e->ops->create_table(e, p->es, def);
    if (rc == SE_TABLE_EXIST)
        return table_exists(s, ct, def);
    if (rc) {
        if (rc == SE_UNSUPPORTED || rc == SE_GENERIC || rc == SE_INTERNAL)
            code = sql_error(s, 1005, def->db, def->name, rc,
                             s->diag.engine_text[0] ? s->diag.engine_text
                                                    : "Unsupported extension used for table");
        else
            code = se_error(s, rc, def, NULL);
        catalog_release(s->h, def);
        return code;
    }
    catalog_ref(s->h, def);
    if (!catalog_store(s, def)) {
        e->ops->drop_table(e, p->es, def->db, def->name);
        code = s->diag.error;
    }
    catalog_release(s->h, def);
    return code;
}

/* Does the engine's dictionary have the table? A definition without one (a crash in DROP) is in
 * nobody's way; an engine without a dictionary tells in create_table. */
static bool engine_has(session *s, const table_def *def)
{
    struct part *p;
    engine *e;
    table_def *found = NULL;
    if (engine_part(s, def->engine_name, &e, &p))
        return true;
    int rc = e->ops->describe_table ? e->ops->describe_table(e, p->es, def->db, def->name, &found)
                                    : SE_NO_SUCH_TABLE;
    tabledef_free(found);
    return rc != SE_NO_SUCH_TABLE;
}

static unsigned drop_one(session *s, const char *db, const char *name, bool *missing);

unsigned exec_create_table(session *s, struct create_table *ct)
{
    const char *db = resolve_db(s, &ct->table);
    if (!db || !db_usable(s, db) || !valid_name(s, ct->table.name, 1103))
        return s->diag.error;
    if (ct->temporary)
        return sql_error(s, 1235, "CREATE TEMPORARY TABLE");
    if (!mdl_lock(s, db, ct->table.name, MDL_EXCLUSIVE))
        return s->diag.error;
    table_def *there = catalog_find(s, db, ct->table.name);
    if (there && !ct->or_replace && engine_has(s, there))
        return table_exists(s, ct, there);
    if (there && ct->or_replace) {
        bool missing;
        tables_close_everywhere(s->h, db, ct->table.name);
        drop_one(s, db, ct->table.name, &missing);
    }
    catalog_release(s->h, there);
    if (s->diag.error)
        return s->diag.error;
    table_def *def = new_definition(s, ct, db);
    return def ? create_table(s, ct, def) : s->diag.error;
}

static unsigned drop_one(session *s, const char *db, const char *name, bool *missing)
{
    engine *e;
    struct part *p;
    *missing = false;
    if (!mdl_lock(s, db, name, MDL_EXCLUSIVE))
        return s->diag.error;
    tables_close_everywhere(s->h, db, name);
    table_def *def = catalog_find(s, db, name);
    if (!def) {
        *missing = !s->diag.error;
        return s->diag.error;
    }
    unsigned code = engine_part(s, def->engine_name, &e, &p);
    int rc = code ? 0 : e->ops->drop_table(e, p->es, db, name);
    if (rc && rc != SE_NO_SUCH_TABLE)
        code = se_error(s, rc, def, NULL);
    if (!code && !catalog_remove(s, db, name) && rc == SE_NO_SUCH_TABLE)
        *missing = true;
    catalog_release(s->h, def);
    return code;
}

static unsigned drop_tables(session *s, const struct stmt *st)
{
    struct strbuf unknown = {0};
    unsigned code = 0;
    for (uint32_t i = 0; i < st->table_count && !code; i++) {
        bool missing = false;
        const char *db = resolve_db(s, &st->tables[i]);
        code = db ? drop_one(s, db, st->tables[i].name, &missing) : s->diag.error;
        if (!missing || code)
            continue;
        buf_printf(&unknown, "%s%s.%s", unknown.len ? "," : "", db, st->tables[i].name);
    }
    if (unknown.len && !code && st->if_exists)
        sql_note(s, 1051, unknown.data);
    else if (unknown.len && !code)
        code = sql_error(s, 1051, unknown.data);
    buf_free(&unknown);
    return code;
}

static unsigned rename_one(session *s, const struct table_name *from, const struct table_name *to)
{
    engine *e;
    struct part *p;
    const char *db = resolve_db(s, from), *new_db = to->db ? to->db : db;
    if (!db || !db_usable(s, new_db) || !valid_name(s, to->name, 1103))
        return s->diag.error;
    if (!to->db && s->db && *s->db)
        new_db = s->db;
    if (!mdl_lock(s, db, from->name, MDL_EXCLUSIVE) || !mdl_lock(s, new_db, to->name, MDL_EXCLUSIVE))
        return s->diag.error;
    tables_close_everywhere(s->h, db, from->name);
    table_def *def = catalog_get(s, db, from->name);
    table_def *there = def ? catalog_find(s, new_db, to->name) : NULL;
    if (!def || there) {
        catalog_release(s->h, there);
        catalog_release(s->h, def);
        return def ? sql_error(s, 1050, to->name) : s->diag.error;
    }
    unsigned code = engine_part(s, def->engine_name, &e, &p);
    int rc = code ? 0 : e->ops->rename_table(e, p->es, db, from->name, new_db, to->name);
    if (rc)
        code = se_error(s, rc, def, NULL);
    if (!code && !def->from_engine) {
        struct strbuf text = {0};
        tabledef_print(def, to->name, false, 0, &text);
        char *copy = arena_strndup(&s->arena, text.data, text.len);
        buf_free(&text);
        uint32_t collation = s->collation;
        s->collation = COLL_UTF8MB4;
        struct stmt *st = sql_parse(s, &s->arena, copy, strlen(copy));
        table_def *renamed = st ? tabledef_build(s, st->create, new_db, COLL_UTF8MB4) : NULL;
        s->collation = collation;
        if (!renamed || !catalog_store(s, renamed))
            code = s->diag.error;
    }
    if (!code)
        catalog_remove(s, db, from->name);
    catalog_release(s->h, def);
    return code;
}

static unsigned rename_tables(session *s, const struct stmt *st)
{
    unsigned code = 0;
    for (uint32_t i = 0; i + 1 < st->table_count && !code; i += 2)
        code = rename_one(s, &st->tables[i], &st->tables[i + 1]);
    return code;
}

/* The definition of a table that nobody else uses until the statement ends, and its database; NULL with an
 * error. */
static table_def *take_table(session *s, const struct table_name *name, const char **db)
{
    *db = resolve_db(s, name);
    if (!*db || !mdl_lock(s, *db, name->name, MDL_EXCLUSIVE))
        return NULL;
    tables_close_everywhere(s->h, *db, name->name);
    return catalog_get(s, *db, name->name);
}

static unsigned truncate_table(session *s, const struct table_name *name)
{
    engine *e;
    struct part *p;
    const char *db;
    table_def *def = take_table(s, name, &db);
    if (!def)
        return s->diag.error;
    unsigned code = engine_part(s, def->engine_name, &e, &p);
    int rc = code ? 0 : e->ops->truncate_table(e, p->es, def);
    if (rc)
        code = se_error(s, rc, def, NULL);
    if (def->from_engine) /* the table has a new id there */
        catalog_forget(s->h, db, name->name);
    catalog_release(s->h, def);
    return code;
}

struct drop_list {
    char **names;
    size_t count;
};

static int collect_table(void *ctx, const struct is_value *values, size_t count)
{
    struct drop_list *l = ctx;
    (void)count;
    l->names = mem_realloc(l->names, (l->count + 1) * sizeof *l->names);
    l->names[l->count++] = mem_strndup(values[0].ptr, values[0].len);
    return 0;
}

static unsigned drop_database(session *s, const struct stmt *st, uint64_t *dropped)
{
    struct drop_list list = {0};
    unsigned code = 0;
    if (!catalog_db_exists(s->h, st->name)) {
        if (!st->if_exists)
            return sql_error(s, 1008, st->name);
        sql_note(s, 1008, st->name);
        return 0;
    }
    if (!db_usable(s, st->name))
        return s->diag.error;
    catalog_list_tables(s, st->name, collect_table, &list);
    for (size_t i = 0; i < list.count; i++) {
        bool missing;
        if (!code)
            code = drop_one(s, st->name, list.names[i], &missing);
        free(list.names[i]);
        ++*dropped;
    }
    free(list.names);
    if (!code && !catalog_remove_db(s, st->name))
        code = s->diag.error;
    if (!code && !strcmp(s->db, st->name)) {
        free(s->db);
        s->db = mem_strdup("");
    }
    return code;
}

static unsigned create_database(session *s, const struct stmt *st)
{
    uint32_t collation = tabledef_collation(s, st->charset, st->collate, COLL_UTF8MB4);
    if (!collation || !valid_name(s, st->name, 1102))
        return s->diag.error;
    return catalog_create_db(s, st->name, collation, st->if_not_exists) ? 0 : s->diag.error;
}

/* ALTER TABLE … AUTO_INCREMENT = n: kept in the definition; the engine takes it when it creates. */
static unsigned alter_autoinc(session *s, const struct stmt *st)
{
    struct open_table *o = table_open(s, &st->tables[0], true);
    if (!o)
        return s->diag.error;
    if (!o->eng->ops->autoinc_set)
        return sql_error(s, 1235, "ALTER TABLE … AUTO_INCREMENT");
    unsigned code = statement_begin(s, o->eng);
    int rc = code ? 0 : o->eng->ops->table_start(o->handle, SE_LOCK_EXCLUSIVE, NULL);
    if (!code && !rc)
        rc = o->eng->ops->autoinc_set(o->handle, st->number);
    return rc ? se_error(s, rc, o->def, o->handle) : code;
}

/* The statement that would create the table now. */
static struct create_table *create_of(session *s, const table_def *def)
{
    struct strbuf text = {0};
    tabledef_print(def, def->name, false, 0, &text);
    char *copy = arena_strndup(&s->arena, text.data, text.len);
    buf_free(&text);
    struct stmt *st = sql_parse(s, &s->arena, copy, strlen(copy));
    return st ? st->create : NULL;
}

static bool add_specs(session *s, struct create_table *ct, const struct create_table *added)
{
    uint32_t count = ct->key_count + added->key_count;
    struct key_spec *keys = arena_alloc(&s->arena, (count + 1) * sizeof *keys);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = i < ct->key_count ? ct->keys[i] : added->keys[i - ct->key_count];
    ct->keys = keys;
    ct->key_count = count;
    for (uint32_t i = 0; i < added->key_count; i++)
        if (added->keys[i].flags & KEY_PRIMARY) {
            sql_error(s, 1235, "ADD PRIMARY KEY");
            return false;
        }
    return true;
}

static bool drop_spec(session *s, struct create_table *ct, const char *name)
{
    for (uint32_t i = 0; i < ct->key_count; i++)
        if (ct->keys[i].name && !strcasecmp(ct->keys[i].name, name) && !(ct->keys[i].flags & KEY_PRIMARY)) {
            for (ct->key_count--; i < ct->key_count; i++)
                ct->keys[i] = ct->keys[i + 1];
            return true;
        }
    if (strcasecmp(name, "PRIMARY"))
        sql_error(s, 1091, name);
    else
        sql_error(s, 1235, "DROP PRIMARY KEY");
    return false;
}

static unsigned add_keys(session *s, engine *e, struct part *p, const table_def *next)
{
    uint8_t *row = arena_alloc(&s->arena, next->row_length);
    uint32_t key = NO_KEY;
    memcpy(row, next->defaults, next->row_length);
    int rc = e->ops->add_keys ? e->ops->add_keys(e, p->es, next, row, &key) : SE_UNSUPPORTED;
    if (rc == SE_FOUND_DUPP_KEY && key < next->key_count)
        return sql_error(s, 1062, key_text(&s->arena, next, key, row), next->keys[key].name);
    return rc ? se_error(s, rc, next, NULL) : 0;
}

/* The definition may lack a key that the engine has, so it changes first when one is dropped, and last when
 * one is added. */
static unsigned store_and_drop(session *s, engine *e, struct part *p, table_def *def, table_def *next,
                               const char *name)
{
    bool kept = e->ops->drop_key && !def->from_engine;
    if (!kept)
        catalog_release(s->h, next);
    else if (!catalog_store(s, next))
        return s->diag.error;
    if (!e->ops->drop_key)
        return se_error(s, SE_UNSUPPORTED, def, NULL);
    int rc = e->ops->drop_key(e, p->es, def->db, def->name, name);
    if (rc && !def->from_engine) {
        catalog_ref(s->h, def);
        catalog_store(s, def);
    }
    return rc ? se_error(s, rc, def, NULL) : 0;
}

static unsigned change_keys(session *s, const struct stmt *st)
{
    engine *e = NULL;
    struct part *p = NULL;
    bool adds = st->kind == STMT_ADD_KEYS;
    const struct table_name *name = &st->tables[0];
    const char *db;
    table_def *def = take_table(s, name, &db);
    if (!def)
        return s->diag.error;
    uint32_t collation = s->collation;
    s->collation = COLL_UTF8MB4;
    struct create_table *ct = create_of(s, def);
    bool changed = ct && (adds ? add_specs(s, ct, st->create) : drop_spec(s, ct, st->name));
    table_def *next = changed ? tabledef_build(s, ct, db, COLL_UTF8MB4) : NULL;
    s->collation = collation;
    unsigned code = next ? engine_part(s, def->engine_name, &e, &p) : s->diag.error;
    if (!code && adds) {
        code = add_keys(s, e, p, next);
        if (code || def->from_engine)
            catalog_release(s->h, next);
        else if (!catalog_store(s, next))
            code = s->diag.error;
    } else if (!code) {
        code = store_and_drop(s, e, p, def, next, st->name);
    } else if (next) {
        catalog_release(s->h, next);
    }
    if (def->from_engine)
        catalog_forget(s->h, db, name->name);
    catalog_release(s->h, def);
    return code;
}

unsigned exec_ddl(session *s, struct stmt *st)
{
    uint64_t affected = 0;
    unsigned code;
    switch (st->kind) {
    case STMT_CREATE_TABLE: code = exec_create_table(s, st->create); break;
    case STMT_DROP_TABLE: code = drop_tables(s, st); break;
    case STMT_RENAME_TABLE: code = rename_tables(s, st); break;
    case STMT_TRUNCATE: code = truncate_table(s, &st->tables[0]); break;
    case STMT_CREATE_DB:
        code = create_database(s, st);
        affected = !code && !s->diag.count;
        break;
    case STMT_DROP_DB: code = drop_database(s, st, &affected); break;
    case STMT_ADD_KEYS:
    case STMT_DROP_KEY: code = change_keys(s, st); break;
    default: code = alter_autoinc(s, st);
    }
    unsigned end = statement_finish(s, !code);
    code = code ? code : end;
    end = transaction_commit(s); /* with autocommit = 0, too, DDL stands alone */
    code = code ? code : end;
    if (!code) {
        s->row_count = (int64_t)affected;
        send_ok(s, affected, 0, NULL);
    }
    return code;
}
