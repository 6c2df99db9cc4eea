/* SHOW and SET. */
#include <string.h>
#include <strings.h>

#include "exec.h"
#include "parser.h"

static void p_like_or_where(struct parser *p, struct stmt *st)
{
    if (p_accept(p, "LIKE"))
        st->like = p_text(p);
    else if (p_accept(p, "WHERE"))
        st->where = p_expr(p);
}

static void p_show_in_db(struct parser *p, struct stmt *st)
{
    if (p_accept(p, "FROM") || p_accept(p, "IN"))
        st->name = p_name(p);
    p_like_or_where(p, st);
}

static void p_show_of_table(struct parser *p, struct stmt *st)
{
    if (!p_accept(p, "FROM"))
        p_expect(p, "IN");
    struct table_name t = p_table_name(p);
    if (p_accept(p, "FROM") || p_accept(p, "IN"))
        t.db = p_name(p);
    P_PUSH(p, st->tables, st->table_count) = t;
    p_like_or_where(p, st);
}

static void p_show_create(struct parser *p, struct stmt *st)
{
    if (p_accept(p, "DATABASE") || p_accept(p, "SCHEMA")) {
        st->show = SHOW_CREATE_DB;
        if (p_accept(p, "IF")) {
            p_expect(p, "NOT");
            p_expect(p, "EXISTS");
        }
        st->name = p_name(p);
        return;
    }
    st->show = SHOW_CREATE_TABLE;
    p_expect(p, "TABLE");
    P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
}

static void p_show_engine(struct parser *p, struct stmt *st)
{
    st->show = SHOW_ENGINE_STATUS;
    st->name = p_name_or_text(p);
    if (!p_accept(p, "STATUS")) {
        p_expect(p, "MUTEX");
        st->full = true;
    }
}

/* SHOW words that take FROM db, LIKE or WHERE, or nothing. */
static bool p_show_list(struct parser *p, struct stmt *st)
{
    static const struct { const char *word; enum show_kind kind; bool in_db; } words[] = {
        {"TABLES", SHOW_TABLES, true},       {"DATABASES", SHOW_DATABASES, true},
        {"SCHEMAS", SHOW_DATABASES, true},   {"VARIABLES", SHOW_VARIABLES, true},
        {"STATUS", SHOW_STATUS, true},       {"ENGINES", SHOW_ENGINES, false},
        {"PLUGINS", SHOW_PLUGINS, false},    {"WARNINGS", SHOW_WARNINGS, false},
        {"ERRORS", SHOW_ERRORS, false},      {"PROCESSLIST", SHOW_PROCESSLIST, false},
        {"COLLATION", SHOW_COLLATION, true}, {"CHARSET", SHOW_CHARSET, true}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!p_accept(p, words[i].word))
            continue;
        st->show = (uint8_t)words[i].kind;
        if (words[i].in_db)
            p_show_in_db(p, st);
        if (p_accept(p, "LIMIT"))
            p_number(p);
        return true;
    }
    return false;
}

void p_show(struct parser *p, struct stmt *st)
{
    st->kind = STMT_SHOW;
    st->full = p_accept(p, "FULL");
    st->global = p_accept(p, "GLOBAL");
    if (!st->global && !p_accept(p, "SESSION"))
        p_accept(p, "LOCAL");
    if (p_show_list(p, st))
        return;
    if (p_accept2(p, "CHARACTER", "SET")) {
        st->show = SHOW_CHARSET;
        p_like_or_where(p, st);
    } else if (p_accept(p, "CREATE")) {
        p_show_create(p, st);
    } else if (p_accept2(p, "TABLE", "STATUS")) {
        st->show = SHOW_TABLE_STATUS;
        p_show_in_db(p, st);
    } else if (p_accept2(p, "STORAGE", "ENGINES")) {
        st->show = SHOW_ENGINES;
    } else if (p_accept(p, "ENGINE")) {
        p_show_engine(p, st);
    } else if (p_accept(p, "COLUMNS") || p_accept(p, "FIELDS")) {
        st->show = SHOW_COLUMNS;
        p_show_of_table(p, st);
    } else if (p_accept(p, "INDEX") || p_accept(p, "INDEXES") || p_accept(p, "KEYS")) {
        st->show = SHOW_INDEX;
        p_show_of_table(p, st);
    } else {
        p_syntax_error(p);
    }
}

/* SET x = word: a bare word counts as text (SET sql_mode = ANSI, = ON, = default). */
static struct expr *p_set_value(struct parser *p)
{
    if (p_is(p, "DEFAULT")) {
        p_advance(p);
        return NULL;
    }
    bool word = p->token.kind == T_WORD && !word_is_reserved(p->token.text);
    if (word || p_is(p, "ON") || p_is(p, "BINARY")) {
        const struct token *next = p_peek(p);
        if (next->kind == T_END || (next->kind == T_OP && strchr(",;", next->text[0]))) {
            struct expr *e = p_new_expr(p, E_LITERAL);
            e->value = value_string(p->token.text, p->token.len, COLL_UTF8MB4);
            if (p_is(p, "TRUE") || p_is(p, "FALSE"))
                e->value = value_int(p_is(p, "TRUE"));
            else if (p_is(p, "NULL"))
                e->value = value_null();
            p_advance(p);
            return e;
        }
    }
    return p_expr(p);
}

static enum set_scope p_scope_word(struct parser *p)
{
    if (p_accept(p, "GLOBAL"))
        return SET_GLOBAL;
    if (p_accept(p, "SESSION") || p_accept(p, "LOCAL"))
        return SET_SESSION;
    return SET_DEFAULT_SCOPE;
}

/* @@x, @@session.x, @@global.x: splits the scope off. */
static enum set_scope variable_scope(const char **name)
{
    static const struct { const char *prefix; enum set_scope scope; } scopes[] = {
        {"global.", SET_GLOBAL}, {"session.", SET_SESSION}, {"local.", SET_SESSION}};
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(scopes[i].prefix);
        if (!strncasecmp(*name, scopes[i].prefix, n)) {
            *name += n;
            return scopes[i].scope;
        }
    }
    return SET_DEFAULT_SCOPE;
}

static void p_set_names(struct parser *p, struct set_item *item)
{
    item->scope = SET_NAMES;
    item->value = p_is(p, "DEFAULT") ? NULL : p_new_expr(p, E_LITERAL);
    const char *name = p_name_or_text(p);
    if (item->value)
        item->value->value = value_string(name, strlen(name), COLL_UTF8MB4);
    if (p_accept(p, "COLLATE"))
        item->name = p_name_or_text(p);
}

static void p_isolation(struct parser *p, struct stmt *st)
{
    st->kind = STMT_SET_TRANSACTION;
    do {
        if (p_accept(p, "ISOLATION")) {
            p_expect(p, "LEVEL");
            if (p_accept2(p, "READ", "UNCOMMITTED"))
                st->isolation = SE_READ_UNCOMMITTED;
            else if (p_accept2(p, "READ", "COMMITTED"))
                st->isolation = SE_READ_COMMITTED;
            else if (p_accept2(p, "REPEATABLE", "READ"))
                st->isolation = SE_REPEATABLE_READ;
            else if (p_accept(p, "SERIALIZABLE"))
                st->isolation = SE_SERIALIZABLE;
            else
                p_syntax_error(p);
        } else if (p_accept2(p, "READ", "ONLY")) {
            st->read_only = true;
        } else if (!p_accept2(p, "READ", "WRITE")) {
            p_syntax_error(p);
        }
    } while (p_accept_op(p, ",") && !p->failed);
}

static void p_set_item(struct parser *p, struct set_item *item)
{
    item->scope = (uint8_t)p_scope_word(p);
    if (item->scope == SET_DEFAULT_SCOPE && p_accept(p, "NAMES")) {
        p_set_names(p, item);
        return;
    }
    if (item->scope == SET_DEFAULT_SCOPE && (p_accept2(p, "CHARACTER", "SET") || p_accept(p, "CHARSET"))) {
        p_set_names(p, item);
        return;
    }
    item->name = p->token.text;
    if (p->token.kind == T_USER_VAR) {
        item->scope = SET_USER_VAR;
        p_advance(p);
    } else if (p->token.kind == T_SYS_VAR) {
        item->scope = (uint8_t)variable_scope(&item->name);
        p_advance(p);
    } else {
        item->name = p_name(p);
        if (p_accept_op(p, ".")) { /* session.x without @@ */
            const char *full = arena_printf(p->arena, "%s.%s", item->name, p_name(p));
            item->scope = (uint8_t)variable_scope(&full);
            item->name = full;
        }
    }
    if (!p_accept_op(p, ":="))
        p_expect_op(p, "=");
    item->value = item->scope == SET_USER_VAR ? p_expr(p) : p_set_value(p);
}

void p_set(struct parser *p, struct stmt *st)
{
    st->kind = STMT_SET;
    const struct token *next = p_peek(p);
    bool scoped = p_is(p, "SESSION") || p_is(p, "GLOBAL") || p_is(p, "LOCAL");
    if (p_is(p, "TRANSACTION") ||
        (scoped && next->kind == T_WORD && !strcasecmp(next->text, "TRANSACTION"))) {
        st->scope = (uint8_t)(scoped ? p_scope_word(p) : SET_NEXT_TRX);
        p_advance(p);
        p_isolation(p, st);
        return;
    }
    do {
        struct set_item item = {0};
        p_set_item(p, &item);
        P_PUSH(p, st->sets, st->set_count) = item;
    } while (p_accept_op(p, ",") && !p->failed);
}
