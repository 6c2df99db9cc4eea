/* Dispatch of statements; sending results; statements of a few lines. */
#include "exec.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void send_ok(session *s, uint64_t affected, uint64_t insert_id, const char *info)
{
    struct sink_ok ok = {affected, insert_id, s->diag.count, info};
    s->sink->ok(s->sink, &ok);
}

void send_columns(session *s, const char *const *names, size_t count)
{
    struct sink_column columns[24] = {0};
    for (size_t i = 0; i < count && i < 24; i++) {
        columns[i].numeric = names[i][0] == '#';
        columns[i].name = names[i] + columns[i].numeric;
    }
    s->sink->columns(s->sink, columns, count);
}

void send_text_row(session *s, const char *const *values, size_t count)
{
    struct sink_value row[24] = {0};
    for (size_t i = 0; i < count && i < 24; i++) {
        row[i].null = !values[i];
        row[i].ptr = values[i];
        row[i].len = values[i] ? strlen(values[i]) : 0;
    }
    s->sink->row(s->sink, row, count);
}

void send_end(session *s)
{
    s->sink->end(s->sink, s->diag.count);
}

bool show_matches(const struct stmt *st, const char *text)
{
    if (!st->like)
        return true;
    return coll_like(COLL_UTF8MB4, (const uint8_t *)text, strlen(text), (const uint8_t *)st->like,
                     strlen(st->like), '\\');
}

static unsigned exec_use(session *s, const struct stmt *st)
{
    if (!catalog_db_exists(s->h, st->name))
        return sql_error(s, 1049, st->name);
    free(s->db);
    s->db = mem_strdup(st->name);
    send_ok(s, 0, 0, NULL);
    return 0;
}

static unsigned exec_do(session *s, struct stmt *st)
{
    struct scope sc = {.s = s, .clause = "DO"};
    for (uint32_t i = 0; i < st->select->item_count; i++) {
        unsigned code = expr_bind(&sc, st->select->items[i].expr);
        if (!code)
            expr_eval(&sc, st->select->items[i].expr);
    }
    if (!s->diag.error)
        send_ok(s, 0, 0, NULL);
    return s->diag.error;
}

static bool commits_first(const struct stmt *st)
{
    switch (st->kind) {
    case STMT_CREATE_TABLE: case STMT_DROP_TABLE: case STMT_RENAME_TABLE: case STMT_TRUNCATE:
    case STMT_CREATE_DB: case STMT_DROP_DB: case STMT_BEGIN: case STMT_LOCK_TABLES: case STMT_INSTALL:
    case STMT_UNINSTALL: case STMT_ALTER_KEYS: case STMT_ALTER_AUTOINC: case STMT_ADD_KEYS:
    case STMT_DROP_KEY: case STMT_ANALYZE:
    case STMT_FLUSH:
        return true;
    default:
        return false;
    }
}

static unsigned dispatch(session *s, struct stmt *st)
{
    switch (st->kind) {
    case STMT_EMPTY:
        send_ok(s, 0, 0, NULL);
        return 0;
    case STMT_SELECT: return exec_select(s, st->select);
    case STMT_EXPLAIN: return exec_explain(s, st->select);
    case STMT_INSERT: return exec_insert(s, st->insert);
    case STMT_UPDATE: return exec_update(s, st->modify);
    case STMT_DELETE: return exec_delete(s, st->modify);
    case STMT_CREATE_TABLE: case STMT_DROP_TABLE: case STMT_RENAME_TABLE: case STMT_TRUNCATE:
    case STMT_CREATE_DB: case STMT_DROP_DB: case STMT_ALTER_AUTOINC: case STMT_ADD_KEYS: case STMT_DROP_KEY:
        return exec_ddl(s, st);
    case STMT_USE: return exec_use(s, st);
    case STMT_DO: return exec_do(s, st);
    case STMT_BEGIN: case STMT_COMMIT: case STMT_ROLLBACK: case STMT_SAVEPOINT: case STMT_ROLLBACK_TO:
    case STMT_RELEASE: case STMT_SET_TRANSACTION: case STMT_LOCK_TABLES: case STMT_UNLOCK_TABLES:
        return exec_trx(s, st);
    case STMT_SET: return exec_set(s, st);
    case STMT_SHOW:
    case STMT_DESCRIBE: return exec_show(s, st);
    default: return exec_admin(s, st);
    }
}

unsigned exec_statement(session *s, struct stmt *st)
{
    unsigned code = commits_first(st) ? transaction_commit(s) : 0;
    if (!code)
        code = dispatch(s, st);
    unsigned end = statement_finish(s, !code); /* for statements that opened something on the way */
    tables_release(s);
    return code ? code : end;
}
