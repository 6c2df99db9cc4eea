/* SELECT, INSERT, REPLACE, UPDATE, DELETE. */
#include <string.h>
#include <strings.h>

#include "exec.h"
#include "parser.h"

static void p_limit(struct parser *p, uint64_t *limit, uint64_t *offset)
{
    *limit = UINT64_MAX;
    if (!p_accept(p, "LIMIT"))
        return;
    *limit = p_number(p);
    if (offset && p_accept_op(p, ",")) {
        *offset = *limit;
        *limit = p_number(p);
    } else if (offset && p_accept(p, "OFFSET")) {
        *offset = p_number(p);
    }
}

static uint32_t p_order(struct parser *p, const char *word, struct order_item **items)
{
    uint32_t count = 0;
    if (!p_accept2(p, word, "BY"))
        return 0;
    do {
        struct order_item item = {p_expr(p), false};
        item.descending = p_accept(p, "DESC");
        if (!item.descending)
            p_accept(p, "ASC");
        P_PUSH(p, *items, count) = item;
    } while (p_accept_op(p, ",") && !p->failed);
    return count;
}

/* [AS] alias, where a keyword that goes on with the statement is no alias. */
static const char *p_alias(struct parser *p)
{
    if (p_accept(p, "AS"))
        return p_name_or_text(p);
    if (p->token.kind == T_QUOTED || p->token.kind == T_STRING)
        return p_name_or_text(p);
    if (p->token.kind != T_WORD || word_is_reserved(p->token.text))
        return NULL;
    return p_name(p);
}

static void p_index_hint(struct parser *p, const char **force, const char **ignore)
{
    bool is_ignore = p_is(p, "IGNORE");
    if (!is_ignore && !p_is(p, "FORCE") && !p_is(p, "USE"))
        return;
    p_advance(p);
    if (!p_accept(p, "INDEX"))
        p_expect(p, "KEY");
    p_expect_op(p, "(");
    *(is_ignore ? ignore : force) = p_name(p);
    while (p_accept_op(p, ","))
        p_name(p);
    p_expect_op(p, ")");
}

static void p_lock_clause(struct parser *p, struct select *s)
{
    if (p_accept2(p, "LOCK", "IN")) {
        p_expect(p, "SHARE");
        p_expect(p, "MODE");
        s->lock = LOCK_SHARE;
    } else if (p_accept2(p, "FOR", "UPDATE")) {
        s->lock = LOCK_UPDATE;
    } else {
        return;
    }
    if (p_accept(p, "NOWAIT"))
        s->nowait = true;
    else if (p_accept2(p, "SKIP", "LOCKED"))
        s->skip_locked = true;
    else if (p_accept(p, "WAIT"))
        s->wait_seconds = (uint32_t)p_number(p) + 1;
}

static void p_select_items(struct parser *p, struct select *s)
{
    do {
        struct select_item item = {0};
        if (p_is_op(p, "*")) {
            item.expr = p_new_expr(p, E_STAR);
            p_advance(p);
        } else {
            item.expr = p_expr(p);
            if (item.expr && item.expr->kind != E_STAR)
                item.alias = p_alias(p);
        }
        P_PUSH(p, s->items, s->item_count) = item;
    } while (p_accept_op(p, ",") && !p->failed);
}

static void p_from(struct parser *p, struct select *s)
{
    if (p_accept(p, "DUAL"))
        return;
    s->from_table = true;
    if (p_is_op(p, "("))
        p_error(p, 1235, "subqueries");
    s->table = p_table_name(p);
    s->table_alias = p_alias(p);
    p_index_hint(p, &s->force_index, &s->ignore_index);
    if (p_is_op(p, ",") || p_is(p, "JOIN") || p_is(p, "INNER") || p_is(p, "LEFT") || p_is(p, "CROSS") ||
        p_is(p, "RIGHT") || p_is(p, "NATURAL") || p_is(p, "STRAIGHT_JOIN"))
        p_error(p, 1235, "joins");
}

struct select *p_select(struct parser *p)
{
    struct select *s = arena_alloc(p->arena, sizeof *s);
    s->limit = UINT64_MAX;
    if (p_accept_op(p, "(")) {
        s = p_select(p);
        p_expect_op(p, ")");
        return s;
    }
    p_expect(p, "SELECT");
    for (;;) {
        if (p_accept(p, "DISTINCT"))
            s->distinct = true;
        else if (!p_accept(p, "ALL") && !p_accept(p, "SQL_NO_CACHE") && !p_accept(p, "SQL_CACHE") &&
                 !p_accept(p, "HIGH_PRIORITY") && !p_accept(p, "STRAIGHT_JOIN"))
            break;
    }
    p_select_items(p, s);
    if (p_accept(p, "FROM"))
        p_from(p, s);
    if (p_accept(p, "WHERE"))
        s->where = p_expr(p);
    s->group_count = p_order(p, "GROUP", &s->group);
    if (p_accept(p, "HAVING"))
        s->having = p_expr(p);
    s->order_count = p_order(p, "ORDER", &s->order);
    p_limit(p, &s->limit, &s->offset);
    p_lock_clause(p, s);
    if (p_is(p, "UNION") || p_is(p, "INTO"))
        p_error(p, 1235, p_is(p, "UNION") ? "UNION" : "SELECT … INTO");
    return s;
}

static uint32_t p_assignments(struct parser *p, struct assignment **list)
{
    uint32_t count = 0;
    do {
        struct assignment a = {0};
        a.column = p_name(p);
        while (p_accept_op(p, "."))
            a.column = p_name(p);
        if (!p_accept_op(p, ":="))
            p_expect_op(p, "=");
        a.value = p_expr(p);
        P_PUSH(p, *list, count) = a;
    } while (p_accept_op(p, ",") && !p->failed);
    return count;
}

/* A value of VALUES: mostly a literal followed by , or ). */
static struct expr *p_insert_value(struct parser *p)
{
    const struct token *next = p_peek(p);
    bool alone = next->kind == T_OP && (next->text[0] == ',' || next->text[0] == ')');
    struct expr *e = alone ? p_literal(p) : NULL;
    return e ? e : p_expr(p);
}

static void p_insert_rows(struct parser *p, struct insert *ins)
{
    do {
        struct expr_list row = {0};
        p_expect_op(p, "(");
        while (!p_is_op(p, ")") && !p->failed) {
            P_PUSH(p, row.items, row.count) = p_insert_value(p);
            if (!p_accept_op(p, ","))
                break;
        }
        p_expect_op(p, ")");
        P_PUSH(p, ins->rows, ins->row_count) = row;
    } while (p_accept_op(p, ",") && !p->failed);
}

static void p_insert_set(struct parser *p, struct insert *ins)
{
    struct assignment *list = NULL;
    uint32_t count = p_assignments(p, &list);
    struct expr_list row = {0};
    for (uint32_t i = 0; i < count; i++) {
        P_PUSH(p, ins->columns, ins->column_count) = list[i].column;
        P_PUSH(p, row.items, row.count) = list[i].value;
    }
    P_PUSH(p, ins->rows, ins->row_count) = row;
}

static void p_insert(struct parser *p, struct insert *ins)
{
    while (p_accept(p, "LOW_PRIORITY") || p_accept(p, "DELAYED") || p_accept(p, "HIGH_PRIORITY"))
        continue;
    ins->ignore = p_accept(p, "IGNORE");
    p_accept(p, "INTO");
    ins->table = p_table_name(p);
    bool select_ahead = p_is_op(p, "(") && p_peek(p)->kind == T_WORD &&
                        !strcasecmp(p_peek(p)->text, "SELECT");
    if (!select_ahead && p_accept_op(p, "(")) {
        ins->columns = arena_alloc(p->arena, sizeof *ins->columns);
        while (!p_is_op(p, ")") && !p->failed) {
            const char *name = p_name(p);
            while (p_accept_op(p, "."))
                name = p_name(p);
            P_PUSH(p, ins->columns, ins->column_count) = name;
            if (!p_accept_op(p, ","))
                break;
        }
        p_expect_op(p, ")");
    }
    if (p_accept(p, "VALUES") || p_accept(p, "VALUE"))
        p_insert_rows(p, ins);
    else if (p_accept(p, "SET"))
        p_insert_set(p, ins);
    else
        ins->query = p_select(p);
    if (p_accept(p, "ON")) {
        p_expect(p, "DUPLICATE");
        p_expect(p, "KEY");
        p_expect(p, "UPDATE");
        ins->on_duplicate_count = p_assignments(p, &ins->on_duplicate);
    }
    if (p_is(p, "RETURNING"))
        p_error(p, 1235, "RETURNING");
}

static void p_modify_tail(struct parser *p, struct modify *m)
{
    if (p_accept(p, "WHERE"))
        m->where = p_expr(p);
    m->order_count = p_order(p, "ORDER", &m->order);
    p_limit(p, &m->limit, NULL);
}

static void p_update(struct parser *p, struct modify *m)
{
    p_accept(p, "LOW_PRIORITY");
    m->ignore = p_accept(p, "IGNORE");
    m->table = p_table_name(p);
    if (!p_is(p, "SET"))
        m->table_alias = p_alias(p);
    p_index_hint(p, &m->force_index, &m->ignore_index);
    if (p_is_op(p, ",") || p_is(p, "JOIN"))
        p_error(p, 1235, "multi-table UPDATE");
    p_expect(p, "SET");
    m->set_count = p_assignments(p, &m->set);
    p_modify_tail(p, m);
}

static void p_delete(struct parser *p, struct modify *m)
{
    while (p_accept(p, "LOW_PRIORITY") || p_accept(p, "QUICK"))
        continue;
    m->ignore = p_accept(p, "IGNORE");
    if (!p_accept(p, "FROM"))
        p_error(p, 1235, "multi-table DELETE");
    m->table = p_table_name(p);
    if (!p_is(p, "WHERE"))
        m->table_alias = p_alias(p);
    p_modify_tail(p, m);
}

void p_dml(struct parser *p, struct stmt *st)
{
    if (p_is(p, "UPDATE") || p_is(p, "DELETE")) {
        bool update = p_is(p, "UPDATE");
        st->kind = update ? STMT_UPDATE : STMT_DELETE;
        st->modify = arena_alloc(p->arena, sizeof *st->modify);
        st->modify->limit = UINT64_MAX;
        p_advance(p);
        update ? p_update(p, st->modify) : p_delete(p, st->modify);
        return;
    }
    st->kind = STMT_INSERT;
    st->insert = arena_alloc(p->arena, sizeof *st->insert);
    st->insert->replace = p_is(p, "REPLACE");
    p_advance(p);
    p_insert(p, st->insert);
}
