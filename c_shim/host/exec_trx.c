/* BEGIN, COMMIT, ROLLBACK, savepoints, SET TRANSACTION, LOCK TABLES. */
#include <stdlib.h>
#include <string.h>

#include "exec.h"

static unsigned begin(session *s, const struct stmt *st)
{
    if (s->tables_locked) { /* BEGIN ends LOCK TABLES */
        locked_tables_forget(s);
        mdl_release_explicit(s);
    }
    s->explicit_trx = true;
    s->trx_read_only = st->read_only;
    s->trx_snapshot = st->snapshot;
    if (!st->snapshot)
        return 0;
    for (uint32_t slot = 0; slot < MAX_ENGINES; slot++) { /* the view is made now, in every engine */
        engine *e = registry_engine_at(s->h, slot);
        unsigned code = e ? statement_begin(s, e) : 0;
        if (code)
            return code;
    }
    return 0;
}

static unsigned finish(session *s, const struct stmt *st, bool commit)
{
    uint8_t isolation = s->next_isolation;
    unsigned code = commit ? transaction_commit(s) : transaction_rollback(s);
    if (!code && st->chain) {
        s->explicit_trx = true;
        s->next_isolation = isolation;
    }
    return code;
}

/* Savepoints are kept by the engines; each engine that joins later has none. */
static unsigned savepoint(session *s, const struct stmt *st)
{
    bool hit = false;
    for (uint32_t i = 0; i < MAX_ENGINES; i++) {
        struct part *p = &s->parts[i];
        engine *e = registry_engine_at(s->h, i);
        int rc;
        if (st->kind == STMT_SAVEPOINT && e && session_in_transaction(s) && e->savepoints) {
            unsigned code = statement_begin(s, e); /* starts the transaction there, if need be */
            if (code)
                return code;
        }
        if (!p->in_trx)
            continue;
        if (st->kind == STMT_SAVEPOINT) {
            if (p->in_statement) { /* the point lies between statements */
                p->eng->ops->statement_end(p->eng, p->es, false);
                p->in_statement = false;
            }
            rc = p->eng->ops->savepoint(p->eng, p->es, st->name);
        } else if (st->kind == STMT_ROLLBACK_TO) {
            rc = p->eng->ops->rollback_to(p->eng, p->es, st->name);
        } else {
            rc = p->eng->ops->release(p->eng, p->es, st->name);
        }
        hit |= rc == SE_OK;
        if (rc && rc != SE_NO_SAVEPOINT)
            return se_error(s, rc, NULL, NULL);
    }
    if (!hit && st->kind != STMT_SAVEPOINT)
        return sql_error(s, 1305, "SAVEPOINT", st->name);
    return 0;
}

static unsigned set_transaction(session *s, const struct stmt *st)
{
    static const char *const levels[] = {"READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ",
                                         "SERIALIZABLE"};
    if (st->scope == SET_NEXT_TRX) {
        if (s->explicit_trx)
            return sql_error(s, 1568);
        if (st->isolation != 255)
            s->next_isolation = st->isolation;
        s->next_read_only = st->read_only;
        return 0;
    }
    if (st->isolation == 255)
        return 0;
    struct value v = value_string(levels[st->isolation], strlen(levels[st->isolation]), COLL_UTF8MB4);
    return sysvar_set(s, st->scope, "transaction_isolation", &v);
}

static unsigned unlock_tables(session *s)
{
    unsigned code = s->tables_locked ? transaction_commit(s) : 0;
    locked_tables_forget(s);
    mdl_release_explicit(s);
    return code;
}

static unsigned lock_tables(session *s, const struct stmt *st)
{
    unlock_tables(s);
    for (uint32_t i = 0; i < st->table_count; i++) {
        const char *db = resolve_db(s, &st->tables[i]), *name = st->tables[i].name;
        bool write = st->lock_write[i];
        table_def *def = db && mdl_lock(s, db, name, write ? MDL_EXCLUSIVE : MDL_SHARED)
                             ? catalog_get(s, db, name) : NULL;
        if (!def) {
            locked_tables_forget(s);
            mdl_release_explicit(s);
            return s->diag.error;
        }
        catalog_release(s->h, def);
        s->locked = mem_realloc(s->locked, (s->locked_count + 1) * sizeof *s->locked);
        s->locked[s->locked_count].db = mem_strdup(db);
        s->locked[s->locked_count].name = mem_strdup(name);
        s->locked[s->locked_count++].write = write;
    }
    s->tables_locked = true;
    mdl_make_explicit(s);
    return 0;
}

unsigned exec_trx(session *s, struct stmt *st)
{
    unsigned code;
    switch (st->kind) {
    case STMT_BEGIN: code = begin(s, st); break;
    case STMT_COMMIT: code = finish(s, st, true); break;
    case STMT_ROLLBACK: code = finish(s, st, false); break;
    case STMT_SET_TRANSACTION: code = set_transaction(s, st); break;
    case STMT_LOCK_TABLES: code = lock_tables(s, st); break;
    case STMT_UNLOCK_TABLES: code = unlock_tables(s); break;
    default: code = savepoint(s, st);
    }
    if (!code) {
        s->row_count = 0;
        send_ok(s, 0, 0, NULL);
    }
    return code;
}
