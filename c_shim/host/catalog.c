/* Table definitions: DIR/db/table.xtd holds the canonical CREATE TABLE; a cache in memory; where no
 * such file exists, the engines' own dictionaries are asked. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalog_file.h"
#include "exec.h"

struct cached {
    struct cached *next;
    table_def *def;
};
enum { BUCKETS = 256 };
struct catalog {
    pthread_mutex_t lock; /* buckets, refs of all definitions */
    struct cached *buckets[BUCKETS];
};

int catalog_open(host *h)
{
    struct catalog *c = mem_alloc(sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    h->catalog = c;
    return 0;
}

static void unref(table_def *def)
{
    if (--def->refs == 0)
        tabledef_free(def);
}

void catalog_close(host *h)
{
    struct catalog *c = h->catalog;
    if (!c)
        return;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct cached *e = c->buckets[i], *next; e; e = next) {
            next = e->next;
            unref(e->def);
            free(e);
        }
    pthread_mutex_destroy(&c->lock);
    free(c);
    h->catalog = NULL;
}

static struct cached **bucket(struct catalog *c, const char *db, const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *p = db; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    for (const char *p = name; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    return &c->buckets[hash % BUCKETS];
}

static table_def *cache_find(host *h, const char *db, const char *name)
{
    struct catalog *c = h->catalog;
    table_def *found = NULL;
    pthread_mutex_lock(&c->lock);
    for (struct cached *e = *bucket(c, db, name); e && !found; e = e->next)
        if (!strcmp(e->def->db, db) && !strcmp(e->def->name, name)) {
            found = e->def;
            found->refs++;
        }
    pthread_mutex_unlock(&c->lock);
    return found;
}

void catalog_forget(host *h, const char *db, const char *name)
{
    struct catalog *c = h->catalog;
    pthread_mutex_lock(&c->lock);
    for (struct cached **p = bucket(c, db, name); *p; p = &(*p)->next) {
        struct cached *e = *p;
        if (strcmp(e->def->db, db) || strcmp(e->def->name, name))
            continue;
        *p = e->next;
        unref(e->def);
        free(e);
        break;
    }
    pthread_mutex_unlock(&c->lock);
}

/* The cache takes a reference of its own. */
static void cache_add(host *h, table_def *def)
{
    struct catalog *c = h->catalog;
    struct cached *e = mem_alloc(sizeof *e);
    e->def = def;
    pthread_mutex_lock(&c->lock);
    struct cached **b = bucket(c, def->db, def->name);
    def->refs++;
    e->next = *b;
    *b = e;
    pthread_mutex_unlock(&c->lock);
}

void catalog_ref(host *h, table_def *def)
{
    struct catalog *c = h->catalog;
    pthread_mutex_lock(&c->lock);
    def->refs++;
    pthread_mutex_unlock(&c->lock);
}

void catalog_release(host *h, table_def *def)
{
    struct catalog *c = h->catalog;
    if (!def)
        return;
    pthread_mutex_lock(&c->lock);
    unref(def);
    pthread_mutex_unlock(&c->lock);
}

/* Parses the text of a .xtd file. Errors of its own stay hidden: the file is at fault. */
static table_def *parse_definition(session *s, const char *db, const char *name, const char *text,
                                   size_t len)
{
    struct arena a = {0};
    struct diagnostics saved = s->diag;
    uint32_t collation = s->collation;
    int zone = s->zone_seconds;
    memset(&s->diag, 0, sizeof s->diag);
    s->collation = COLL_UTF8MB4;
    s->zone_seconds = 0;
    table_def *def = NULL;
    struct stmt *st = sql_parse(s, &a, text, len);
    if (st && st->kind == STMT_CREATE_TABLE) {
        st->create->table.name = name;
        def = tabledef_build(s, st->create, db, COLL_UTF8MB4);
    }
    diag_free(s);
    s->diag = saved;
    s->collation = collation;
    s->zone_seconds = zone;
    arena_free(&a);
    return def;
}

static table_def *from_file(session *s, const char *db, const char *name, bool *bad)
{
    char path[4200];
    struct strbuf text = {0};
    table_def *def = NULL;
    *bad = false;
    if (!catalog_path(s->h, path, sizeof path, db, name, ".xtd") || !file_read(path, &text))
        return NULL;
    def = parse_definition(s, db, name, text.data ? text.data : "", text.len);
    *bad = !def;
    buf_free(&text);
    return def;
}

static table_def *from_engines(session *s, const char *db, const char *name)
{
    for (uint32_t slot = 0; slot < MAX_ENGINES; slot++) {
        engine *e = registry_engine_at(s->h, slot);
        struct part *part;
        table_def *def = NULL;
        if (!e || !e->ops->describe_table || part_open(s, e, &part))
            continue;
        if (e->ops->describe_table(e, part->es, db, name, &def) == SE_OK && def) {
            def->from_engine = true;
            return def;
        }
    }
    return NULL;
}

table_def *catalog_find(session *s, const char *db, const char *name)
{
    table_def *def = cache_find(s->h, db, name);
    bool bad = false;
    if (def)
        return def;
    def = from_file(s, db, name, &bad);
    if (bad) {
        sql_error(s, 1033, arena_printf(&s->arena, "./%s/%s.xtd", db, name));
        return NULL;
    }
    if (!def)
        def = from_engines(s, db, name);
    if (def)
        cache_add(s->h, def); /* two sessions may both add: the newer entry is found first */
    return def;
}

table_def *catalog_get(session *s, const char *db, const char *name)
{
    table_def *def = catalog_find(s, db, name);
    if (!def && !s->diag.error) {
        if (!catalog_db_exists(s->h, db))
            sql_error(s, 1049, db);
        else
            sql_error(s, 1146, db, name);
    }
    return def;
}

bool catalog_store(session *s, table_def *def)
{
    char path[4200];
    struct strbuf text = {0};
    tabledef_print(def, def->name, true, def->autoinc_start, &text);
    buf_char(&text, '\n');
    bool ok = catalog_path(s->h, path, sizeof path, def->db, def->name, ".xtd") &&
              file_replace(path, text.data, text.len);
    if (!ok)
        sql_error(s, 1005, def->db, def->name, errno, strerror(errno));
    buf_free(&text);
    catalog_forget(s->h, def->db, def->name);
    if (ok)
        cache_add(s->h, def);
    catalog_release(s->h, def);
    return ok;
}

bool catalog_remove(session *s, const char *db, const char *name)
{
    char path[4200];
    catalog_forget(s->h, db, name);
    return catalog_path(s->h, path, sizeof path, db, name, ".xtd") && unlink(path) == 0;
}

/* Sorted names without doubles. */
struct names {
    char **list;
    size_t count;
};

static void names_add(struct names *n, const char *name)
{
    n->list = mem_realloc(n->list, (n->count + 1) * sizeof *n->list);
    n->list[n->count++] = mem_strdup(name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_emit(struct names *n, row_fn fn, void *ctx)
{
    int rc = 0;
    if (n->count)
        qsort(n->list, n->count, sizeof *n->list, compare_names);
    for (size_t i = 0; i < n->count; i++) {
        struct is_value v = {n->list[i], strlen(n->list[i]), false};
        if (!rc && (i + 1 == n->count || strcmp(n->list[i], n->list[i + 1])))
            rc = fn(ctx, &v, 1);
    }
    for (size_t i = 0; i < n->count; i++)
        free(n->list[i]);
    free(n->list);
    return rc;
}

static int collect_name(void *ctx, const struct is_value *values, size_t count)
{
    (void)count;
    char *name = mem_strndup(values[0].ptr, values[0].len);
    names_add(ctx, name);
    free(name);
    return 0;
}

int catalog_list_dbs(host *h, row_fn fn, void *ctx)
{
    struct names n = {0};
    char name[512], path[4200];
    names_add(&n, "information_schema");
    DIR *d = opendir(h->datadir);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || e->d_name[0] == '#' || !filename_decode(e->d_name, name, sizeof name))
            continue;
        if (catalog_path(h, path, sizeof path, name, NULL, "") && is_directory(path))
            names_add(&n, name);
    }
    if (d)
        closedir(d);
    return names_emit(&n, fn, ctx);
}

int catalog_list_tables(session *s, const char *db, row_fn fn, void *ctx)
{
    struct names n = {0};
    char name[512], path[4200];
    DIR *d = catalog_path(s->h, path, sizeof path, db, NULL, "") ? opendir(path) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (len < 5 || strcmp(e->d_name + len - 4, ".xtd"))
            continue;
        e->d_name[len - 4] = 0;
        if (filename_decode(e->d_name, name, sizeof name))
            names_add(&n, name);
    }
    if (d)
        closedir(d);
    for (uint32_t slot = 0; slot < MAX_ENGINES; slot++) {
        engine *e = registry_engine_at(s->h, slot);
        struct part *part;
        if (e && e->ops->list_tables && !part_open(s, e, &part))
            e->ops->list_tables(e, part->es, db, collect_name, &n);
    }
    return names_emit(&n, fn, ctx);
}
