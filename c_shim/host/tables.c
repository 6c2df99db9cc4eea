/* Opening tables for a statement. Handles are kept between statements; DDL closes the idle ones of
 * all sessions before it changes a table. */
#include <stdlib.h>
#include <string.h>

#include "exec.h"

const char *resolve_db(session *s, const struct table_name *name)
{
    const char *db = name->db ? name->db : s->db;
    if (!db || !*db) {
        sql_error(s, 1046);
        return NULL;
    }
    return db;
}

/* Under LOCK TABLES only the locked tables may be used. */
static bool allowed(session *s, const char *db, const char *name, bool write)
{
    if (!s->tables_locked)
        return true;
    for (uint32_t i = 0; i < s->locked_count; i++) {
        if (strcmp(s->locked[i].db, db) || strcmp(s->locked[i].name, name))
            continue;
        if (write && !s->locked[i].write)
            sql_error(s, 1099, name);
        return !write || s->locked[i].write;
    }
    sql_error(s, 1100, name);
    return false;
}

static struct open_table *cached_handle(session *s, const table_def *def)
{
    struct open_table *found = NULL;
    pthread_mutex_lock(&s->tables_lock);
    for (struct open_table *o = s->tables; o && !found; o = o->next)
        if (o->def == def && !o->in_use)
            found = o;
    if (found)
        found->in_use = true;
    pthread_mutex_unlock(&s->tables_lock);
    return found;
}

static struct open_table *new_handle(session *s, engine *e, struct part *part, table_def *def)
{
    se_table *handle = NULL;
    int rc = e->ops->open(e, part->es, def, &handle);
    if (rc) {
        se_error(s, rc, def, NULL);
        return NULL;
    }
    struct open_table *o = mem_alloc(sizeof *o);
    o->def = def;
    o->eng = e;
    o->handle = handle;
    o->in_use = true;
    handle->owner = s;
    pthread_mutex_lock(&s->tables_lock);
    o->next = s->tables;
    s->tables = o;
    pthread_mutex_unlock(&s->tables_lock);
    return o;
}

struct open_table *table_open(session *s, const struct table_name *name, bool write)
{
    const char *db = resolve_db(s, name);
    if (!db || !allowed(s, db, name->name, write) || !mdl_lock(s, db, name->name, MDL_SHARED))
        return NULL;
    if (write && (s->trx_read_only || s->next_read_only)) {
        sql_error(s, 1792);
        return NULL;
    }
    table_def *def = catalog_get(s, db, name->name);
    if (!def)
        return NULL;
    engine *e = registry_engine(s->h, def->engine_name);
    struct part *part;
    if (!e)
        sql_error(s, 1286, def->engine_name);
    if (!e || part_open(s, e, &part)) {
        catalog_release(s->h, def);
        return NULL;
    }
    struct open_table *o = cached_handle(s, def);
    if (o) {
        catalog_release(s->h, def); /* the handle has its own reference */
        return o;
    }
    o = new_handle(s, e, part, def);
    if (!o)
        catalog_release(s->h, def);
    return o;
}

enum { HANDLES_KEPT = 256 };

void tables_release(session *s)
{
    unsigned count = 0;
    pthread_mutex_lock(&s->tables_lock);
    for (struct open_table *o = s->tables; o; o = o->next, count++)
        o->in_use = false;
    pthread_mutex_unlock(&s->tables_lock);
    if (count > HANDLES_KEPT)
        tables_close(s, NULL);
}

static void close_one(session *s, struct open_table **p)
{
    struct open_table *o = *p;
    *p = o->next;
    o->eng->ops->close(o->handle);
    catalog_release(s->h, o->def);
    free(o);
}

void tables_close(session *s, engine *e)
{
    pthread_mutex_lock(&s->tables_lock);
    for (struct open_table **p = &s->tables; *p;) {
        if (e && (*p)->eng != e)
            p = &(*p)->next;
        else
            close_one(s, p);
    }
    pthread_mutex_unlock(&s->tables_lock);
}

void tables_close_everywhere(host *h, const char *db, const char *name)
{
    pthread_mutex_lock(&h->lock);
    for (session *s = h->sessions; s; s = s->next) {
        pthread_mutex_lock(&s->tables_lock);
        for (struct open_table **p = &s->tables; *p;) {
            struct open_table *o = *p;
            if (strcmp(o->def->db, db) || (name && strcmp(o->def->name, name)) || o->in_use)
                p = &o->next;
            else
                close_one(s, p);
        }
        pthread_mutex_unlock(&s->tables_lock);
    }
    pthread_mutex_unlock(&h->lock);
}
