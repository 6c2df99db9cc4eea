/* CHECK and ANALYZE TABLE, INSTALL and UNINSTALL, KILL, FLUSH, ALTER … KEYS. */
#include <stdio.h>
#include <string.h>

#include "exec.h"

static const char *const check_columns[] = {"Table", "Op", "Msg_type", "Msg_text"};

/* One table: rows "error" with what was found, then "status". */
static void check_one(session *s, const struct stmt *st, const struct table_name *name, const char *op)
{
    char message[1024] = "OK", full[600];
    const char *db = name->db ? name->db : s->db;
    snprintf(full, sizeof full, "%s.%s", db && *db ? db : "", name->name);
    struct open_table *o = table_open(s, name, false);
    int rc = 0;
    const char *type = "status", *text = "OK";
    unsigned code = o ? statement_begin(s, o->eng) : s->diag.error;
    if (!code) {
        rc = o->eng->ops->table_start(o->handle, SE_LOCK_NONE, NULL);
        if (!rc && st->kind == STMT_ANALYZE && o->eng->ops->analyze_table) {
            rc = o->eng->ops->analyze_table(o->handle);
            if (rc)
                code = se_error(s, rc, o->def, o->handle);
        }
        if (!rc && st->kind == STMT_CHECK)
            rc = o->eng->ops->check_table
                     ? o->eng->ops->check_table(o->handle, st->extended, message, sizeof message)
                     : SE_OK;
        if (rc && !*message)
            code = se_error(s, rc, o->def, o->handle);
    }
    if (code) {
        const char *row[] = {full, op, "Error", arena_strndup(&s->arena, s->diag.error_text,
                                                               strlen(s->diag.error_text))};
        send_text_row(s, row, 4);
        type = code == 1146 || code == 1932 ? "status" : "error";
        text = code == 1146 || code == 1932 ? "Operation failed" : "Corrupt";
        s->diag.error = 0; /* told in the result */
    } else if (rc) {
        for (char *line = strtok(message, "\n"); line; line = strtok(NULL, "\n")) {
            const char *row[] = {full, op, "error", line};
            send_text_row(s, row, 4);
        }
        type = "error";
        text = "Corrupt";
    }
    const char *row[] = {full, op, type, text};
    send_text_row(s, row, 4);
    statement_finish(s, true);
    tables_release(s);
}

static unsigned exec_check(session *s, const struct stmt *st)
{
    send_columns(s, check_columns, 4);
    for (uint32_t i = 0; i < st->table_count; i++)
        check_one(s, st, &st->tables[i], st->kind == STMT_CHECK ? "check" : "analyze");
    send_end(s);
    return 0;
}

static unsigned exec_kill(session *s, const struct stmt *st)
{
    bool found = false;
    pthread_mutex_lock(&s->h->lock);
    for (session *o = s->h->sessions; o; o = o->next)
        if (o->id == st->number) {
            session_interrupt(o);
            found = true;
        }
    pthread_mutex_unlock(&s->h->lock);
    return found ? 0 : sql_error(s, 1094, (unsigned long)st->number);
}

unsigned exec_admin(session *s, struct stmt *st)
{
    unsigned code = 0;
    switch (st->kind) {
    case STMT_CHECK:
    case STMT_ANALYZE: return exec_check(s, st);
    case STMT_INSTALL: code = plugin_install(s, st->name, st->name2, st->if_not_exists); break;
    case STMT_UNINSTALL: code = plugin_uninstall(s, st->name, st->name2, st->if_exists); break;
    case STMT_KILL: code = exec_kill(s, st); break;
    case STMT_ALTER_KEYS: { /* the engine keeps all keys at all times */
        const char *db = resolve_db(s, &st->tables[0]);
        table_def *def = db ? catalog_get(s, db, st->tables[0].name) : NULL;
        code = s->diag.error;
        catalog_release(s->h, def);
        break;
    }
    default: tables_close(s, NULL); /* FLUSH */
    }
    if (!code)
        send_ok(s, 0, 0, NULL);
    return code;
}
