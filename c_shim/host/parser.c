/* Statements: dispatch on the first word, and the small statements. */
#include "parser.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exec.h"

void p_advance(struct parser *p)
{
    p->last_end = p->token.end;
    if (p->has_ahead) {
        p->token = p->ahead;
        p->has_ahead = false;
    } else if (!p->failed) {
        lexer_next(&p->lexer, &p->token);
    }
}

const struct token *p_peek(struct parser *p)
{
    if (!p->has_ahead && !p->failed) {
        lexer_next(&p->lexer, &p->ahead);
        p->has_ahead = true;
    }
    return &p->ahead;
}

bool p_is(const struct parser *p, const char *word)
{
    return p->token.kind == T_WORD && !strcasecmp(p->token.text, word);
}

bool p_accept(struct parser *p, const char *word)
{
    if (!p_is(p, word))
        return false;
    p_advance(p);
    return true;
}

bool p_accept2(struct parser *p, const char *word, const char *word2)
{
    if (!p_is(p, word))
        return false;
    const struct token *next = p_peek(p);
    if (next->kind != T_WORD || strcasecmp(next->text, word2))
        return false;
    p_advance(p);
    p_advance(p);
    return true;
}

void p_expect(struct parser *p, const char *word)
{
    if (!p_accept(p, word))
        p_syntax_error(p);
}

bool p_is_op(const struct parser *p, const char *op)
{
    return p->token.kind == T_OP && !strcmp(p->token.text, op);
}

bool p_accept_op(struct parser *p, const char *op)
{
    if (!p_is_op(p, op))
        return false;
    p_advance(p);
    return true;
}

void p_expect_op(struct parser *p, const char *op)
{
    if (!p_accept_op(p, op))
        p_syntax_error(p);
}

/* After the first error everything reads as the end of the statement. */
static void stop(struct parser *p)
{
    p->failed = true;
    p->has_ahead = false;
    p->token = (struct token){.kind = T_END, .text = "", .offset = p->lexer.len, .end = p->lexer.len};
    p->ahead = p->token;
}

void p_syntax_error(struct parser *p)
{
    if (p->failed)
        return;
    size_t from = p->token.offset;
    size_t len = p->lexer.len - from > 80 ? 80 : p->lexer.len - from;
    unsigned line = 1;
    for (size_t i = 0; i < from; i++)
        line += p->lexer.sql[i] == '\n';
    char *near = arena_strndup(p->arena, p->lexer.sql + from, len);
    sql_error(p->session, 1064, near, line);
    stop(p);
}

void p_error(struct parser *p, unsigned code, ...)
{
    if (p->failed)
        return;
    va_list args;
    va_start(args, code);
    sql_verror(p->session, code, args);
    va_end(args);
    stop(p);
}

const char *p_name(struct parser *p)
{
    const char *name = p->token.text;
    if (p->token.kind != T_WORD && p->token.kind != T_QUOTED)
        p_syntax_error(p);
    else if (p->token.len > 64 * 4)
        p_error(p, 1059, name);
    p_advance(p);
    return name;
}

const char *p_text(struct parser *p)
{
    const char *text = p->token.text;
    if (p->token.kind != T_STRING)
        p_syntax_error(p);
    p_advance(p);
    return text;
}

const char *p_name_or_text(struct parser *p)
{
    return p->token.kind == T_STRING ? p_text(p) : p_name(p);
}

uint64_t p_number(struct parser *p)
{
    if (p->token.kind != T_INTEGER) {
        p_syntax_error(p);
        return 0;
    }
    uint64_t n = strtoull(p->token.text, NULL, 10);
    p_advance(p);
    return n;
}

struct table_name p_table_name(struct parser *p)
{
    struct table_name t = {NULL, p_name(p)};
    if (p_accept_op(p, ".")) {
        t.db = t.name;
        t.name = p_name(p);
    }
    return t;
}

bool p_at_end(const struct parser *p)
{
    return p->token.kind == T_END || p_is_op(p, ";");
}

void *p_grow(struct parser *p, void *array, uint32_t count, size_t size)
{
    if (count && (count & (count - 1)))
        return array; /* room up to the next power of two */
    uint32_t cap = count ? count * 2 : 1;
    void *grown = arena_alloc(p->arena, cap * size);
    if (count)
        memcpy(grown, array, count * size);
    return grown;
}

static void table_list(struct parser *p, struct stmt *st)
{
    do
        P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
    while (p_accept_op(p, ","));
}

static void p_drop(struct parser *p, struct stmt *st)
{
    p_accept(p, "TEMPORARY");
    if (p_accept(p, "TABLE") || p_accept(p, "TABLES")) {
        st->kind = STMT_DROP_TABLE;
        st->if_exists = p_accept2(p, "IF", "EXISTS");
        table_list(p, st);
        if (!p_accept(p, "RESTRICT"))
            p_accept(p, "CASCADE");
    } else if (p_accept(p, "DATABASE") || p_accept(p, "SCHEMA")) {
        st->kind = STMT_DROP_DB;
        st->if_exists = p_accept2(p, "IF", "EXISTS");
        st->name = p_name(p);
    } else if (p_accept(p, "INDEX")) {
        st->kind = STMT_DROP_KEY;
        st->name = p_name(p);
        p_expect(p, "ON");
        P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
    } else if (p_is(p, "VIEW") || p_is(p, "TRIGGER") || p_is(p, "PROCEDURE") || p_is(p, "FUNCTION") ||
               p_is(p, "EVENT") || p_is(p, "USER")) {
        p_error(p, 1235, arena_printf(p->arena, "DROP %s", p->token.text));
    } else {
        p_syntax_error(p);
    }
}

static void p_create(struct parser *p, struct stmt *st)
{
    bool or_replace = p_accept2(p, "OR", "REPLACE");
    bool temporary = p_accept(p, "TEMPORARY");
    if (p_accept(p, "TABLE")) {
        st->kind = STMT_CREATE_TABLE;
        st->create = arena_alloc(p->arena, sizeof *st->create);
        st->create->or_replace = or_replace;
        st->create->temporary = temporary;
        p_create_table(p, st);
    } else if (p_accept(p, "DATABASE") || p_accept(p, "SCHEMA")) {
        st->kind = STMT_CREATE_DB;
        if (p_accept(p, "IF")) {
            p_expect(p, "NOT");
            p_expect(p, "EXISTS");
            st->if_not_exists = true;
        }
        st->name = p_name(p);
        while (!p_at_end(p) && !p->failed) {
            p_accept(p, "DEFAULT");
            bool collate = p_accept(p, "COLLATE");
            if (!collate && !p_accept2(p, "CHARACTER", "SET"))
                p_expect(p, "CHARSET");
            p_accept_op(p, "=");
            *(collate ? &st->collate : &st->charset) = p_name_or_text(p);
        }
    } else if (!or_replace && !temporary && (p_accept2(p, "UNIQUE", "INDEX") || p_accept2(p, "UNIQUE", "KEY"))) {
        p_create_index(p, st, true);
    } else if (!or_replace && !temporary && p_accept(p, "INDEX")) {
        p_create_index(p, st, false);
    } else if (p->token.kind == T_WORD && !or_replace) {
        p_error(p, 1235, arena_printf(p->arena, "CREATE %s", p->token.text));
    } else {
        p_syntax_error(p);
    }
}

static void p_rename(struct parser *p, struct stmt *st)
{
    st->kind = STMT_RENAME_TABLE;
    if (!p_accept(p, "TABLE"))
        p_expect(p, "TABLES");
    do {
        P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
        p_expect(p, "TO");
        P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
    } while (p_accept_op(p, ","));
}

static void p_alter(struct parser *p, struct stmt *st)
{
    p_expect(p, "TABLE");
    P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
    if (p_accept2(p, "DISABLE", "KEYS") || p_accept2(p, "ENABLE", "KEYS")) {
        st->kind = STMT_ALTER_KEYS;
    } else if (p_accept(p, "RENAME")) {
        st->kind = STMT_RENAME_TABLE;
        if (!p_accept(p, "TO"))
            p_accept(p, "AS");
        P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
    } else if (p_accept(p, "AUTO_INCREMENT")) {
        st->kind = STMT_ALTER_AUTOINC;
        p_accept_op(p, "=");
        st->number = p_number(p);
    } else if (p_accept(p, "ADD")) {
        p_add_keys(p, st);
    } else if (p_accept2(p, "DROP", "INDEX") || p_accept2(p, "DROP", "KEY")) {
        st->kind = STMT_DROP_KEY;
        st->name = p_name(p);
    } else {
        p_error(p, 1235, "ALTER TABLE with this clause");
    }
}

static void p_lock(struct parser *p, struct stmt *st)
{
    st->kind = STMT_LOCK_TABLES;
    if (!p_accept(p, "TABLES"))
        p_expect(p, "TABLE");
    uint32_t n = 0;
    do {
        P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
        if (p_accept(p, "AS") || (!p_is(p, "READ") && !p_is(p, "WRITE") && !p_is(p, "LOW_PRIORITY")))
            p_name(p);
        p_accept(p, "LOW_PRIORITY");
        bool write = p_accept(p, "WRITE");
        if (!write) {
            p_expect(p, "READ");
            p_accept(p, "LOCAL");
        }
        P_PUSH(p, st->lock_write, n) = write;
    } while (p_accept_op(p, ","));
}

static void p_start_transaction(struct parser *p, struct stmt *st)
{
    st->kind = STMT_BEGIN;
    while (!p_at_end(p) && !p->failed) {
        if (p_accept2(p, "READ", "ONLY")) {
            st->read_only = true;
        } else if (p_accept(p, "WITH")) {
            p_expect(p, "CONSISTENT");
            p_expect(p, "SNAPSHOT");
            st->snapshot = true;
        } else if (!p_accept2(p, "READ", "WRITE")) {
            p_syntax_error(p);
        }
        p_accept_op(p, ",");
    }
}

static void p_end_transaction(struct parser *p, struct stmt *st, bool commit)
{
    st->kind = commit ? STMT_COMMIT : STMT_ROLLBACK;
    p_accept(p, "WORK");
    if (!commit && p_accept(p, "TO")) {
        st->kind = STMT_ROLLBACK_TO;
        p_accept(p, "SAVEPOINT");
        st->name = p_name(p);
        return;
    }
    if (p_accept(p, "AND")) {
        bool no = p_accept(p, "NO");
        p_expect(p, "CHAIN");
        st->chain = !no;
    }
    if (p_accept(p, "NO"))
        p_expect(p, "RELEASE");
}

static void p_plugin(struct parser *p, struct stmt *st, bool install)
{
    st->kind = install ? STMT_INSTALL : STMT_UNINSTALL;
    if (p_accept(p, "SONAME")) {
        if (p_accept(p, "IF"))
            p_expect(p, "EXISTS");
        st->name2 = p_text(p);
        return;
    }
    p_expect(p, "PLUGIN");
    if (p_accept(p, "IF")) {
        st->if_not_exists = install;
        st->if_exists = !install;
        if (install)
            p_expect(p, "NOT");
        p_expect(p, "EXISTS");
    }
    st->name = p_name(p);
    if (install) {
        p_expect(p, "SONAME");
        st->name2 = p_text(p);
    }
}

static void p_check(struct parser *p, struct stmt *st, enum stmt_kind kind)
{
    st->kind = kind;
    p_accept(p, "LOCAL");
    p_accept(p, "NO_WRITE_TO_BINLOG");
    if (!p_accept(p, "TABLE"))
        p_expect(p, "TABLES");
    table_list(p, st);
    while (!p_at_end(p) && !p->failed) {
        if (p_accept(p, "EXTENDED"))
            st->extended = true;
        else if (!p_accept(p, "QUICK") && !p_accept(p, "FAST") && !p_accept(p, "MEDIUM") &&
                 !p_accept(p, "CHANGED") && !p_accept2(p, "FOR", "UPGRADE"))
            p_syntax_error(p);
    }
}

static void p_kill(struct parser *p, struct stmt *st)
{
    st->kind = STMT_KILL;
    if (!p_accept(p, "HARD"))
        p_accept(p, "SOFT");
    st->query_only = p_accept(p, "QUERY");
    if (!st->query_only)
        p_accept(p, "CONNECTION");
    st->number = p_number(p);
}

static void p_flush(struct parser *p, struct stmt *st)
{
    st->kind = STMT_FLUSH;
    while (!p_at_end(p))
        p_advance(p);
}

static void p_do(struct parser *p, struct stmt *st)
{
    st->kind = STMT_DO;
    st->select = arena_alloc(p->arena, sizeof *st->select);
    struct expr_list list = p_expr_list(p);
    for (uint32_t i = 0; i < list.count; i++)
        P_PUSH(p, st->select->items, st->select->item_count).expr = list.items[i];
}

static void p_describe(struct parser *p, struct stmt *st)
{
    if (p_is(p, "SELECT")) {
        st->kind = STMT_EXPLAIN;
        st->select = p_select(p);
        return;
    }
    st->kind = STMT_DESCRIBE;
    P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
    if (!p_at_end(p))
        st->like = p_name_or_text(p);
}

static bool p_transaction_word(struct parser *p, struct stmt *st)
{
    if (p_accept(p, "BEGIN")) {
        p_accept(p, "WORK");
        st->kind = STMT_BEGIN;
    } else if (p_accept2(p, "START", "TRANSACTION")) {
        p_start_transaction(p, st);
    } else if (p_accept(p, "COMMIT")) {
        p_end_transaction(p, st, true);
    } else if (p_accept(p, "ROLLBACK")) {
        p_end_transaction(p, st, false);
    } else if (p_accept(p, "SAVEPOINT")) {
        st->kind = STMT_SAVEPOINT;
        st->name = p_name(p);
    } else if (p_accept2(p, "RELEASE", "SAVEPOINT")) {
        st->kind = STMT_RELEASE;
        st->name = p_name(p);
    } else if (p_is(p, "XA")) {
        p_error(p, 1235, "XA");
    } else {
        return false;
    }
    return true;
}

static bool p_definition_word(struct parser *p, struct stmt *st)
{
    if (p_accept(p, "CREATE")) {
        p_create(p, st);
    } else if (p_accept(p, "DROP")) {
        p_drop(p, st);
    } else if (p_accept(p, "RENAME")) {
        p_rename(p, st);
    } else if (p_accept(p, "TRUNCATE")) {
        st->kind = STMT_TRUNCATE;
        p_accept(p, "TABLE");
        P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
    } else if (p_accept(p, "ALTER")) {
        p_alter(p, st);
    } else if (p_accept(p, "USE")) {
        st->kind = STMT_USE;
        st->name = p_name(p);
    } else {
        return false;
    }
    return true;
}

static bool p_admin_word(struct parser *p, struct stmt *st)
{
    if (p_accept(p, "SHOW")) {
        p_show(p, st);
    } else if (p_accept(p, "SET")) {
        p_set(p, st);
    } else if (p_accept(p, "LOCK")) {
        p_lock(p, st);
    } else if (p_accept(p, "UNLOCK")) {
        st->kind = STMT_UNLOCK_TABLES;
        if (!p_accept(p, "TABLES"))
            p_expect(p, "TABLE");
    } else if (p_accept(p, "DESCRIBE") || p_accept(p, "DESC") || p_accept(p, "EXPLAIN")) {
        p_describe(p, st);
    } else if (p_accept(p, "INSTALL")) {
        p_plugin(p, st, true);
    } else if (p_accept(p, "UNINSTALL")) {
        p_plugin(p, st, false);
    } else if (p_accept(p, "CHECK")) {
        p_check(p, st, STMT_CHECK);
    } else if (p_accept(p, "ANALYZE")) {
        p_check(p, st, STMT_ANALYZE);
    } else if (p_accept(p, "KILL")) {
        p_kill(p, st);
    } else if (p_accept(p, "FLUSH")) {
        p_flush(p, st);
    } else if (p_accept(p, "DO")) {
        p_do(p, st);
    } else {
        return false;
    }
    return true;
}

static void p_statement(struct parser *p, struct stmt *st)
{
    if (p_at_end(p)) {
        st->kind = STMT_EMPTY;
    } else if (p_is(p, "SELECT") || p_is_op(p, "(")) {
        st->kind = STMT_SELECT;
        st->select = p_select(p);
    } else if (p_is(p, "INSERT") || p_is(p, "REPLACE") || p_is(p, "UPDATE") || p_is(p, "DELETE")) {
        p_dml(p, st);
    } else if (!p_transaction_word(p, st) && !p_definition_word(p, st) && !p_admin_word(p, st)) {
        p_syntax_error(p);
    }
}

struct stmt *sql_parse(session *s, struct arena *a, const char *sql, size_t len)
{
    struct parser p = {.arena = a, .session = s};
    struct stmt *st = arena_alloc(a, sizeof *st);
    st->isolation = 255;
    lexer_open(&p.lexer, sql, len, a);
    p_advance(&p);
    p_statement(&p, st);
    p_accept_op(&p, ";");
    if (p.token.kind != T_END)
        p_syntax_error(&p);
    return p.failed ? NULL : st;
}
