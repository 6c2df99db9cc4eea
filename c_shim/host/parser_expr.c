/* Expressions, by precedence from low to high:
 *   :=   OR ||   XOR   AND &&   NOT   comparisons, LIKE IN BETWEEN IS   |   &   << >>   + -
 *   * / DIV % MOD   ^   - ~ !   COLLATE   primary */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exec.h"
#include "parser.h"

/* How deep parsing goes, and whoever walks chains like 1+1+1…: a function takes more stack. */
enum { EXPR_DEPTH_MAX = 400, EXPR_HEIGHT_MAX = 10000, FUNCTION_HEIGHT = 16 };

struct expr *p_new_expr(struct parser *p, enum expr_kind kind)
{
    struct expr *e = arena_alloc(p->arena, sizeof *e);
    e->kind = (uint8_t)kind;
    e->from = p->token.offset;
    e->to = p->token.end;
    e->column = UINT32_MAX;
    return e;
}

static void add_arg(struct parser *p, struct expr *e, struct expr *arg)
{
    uint32_t height = (arg ? arg->height : 0) + (e->kind == E_FUNCTION ? FUNCTION_HEIGHT : 1);
    P_PUSH(p, e->args, e->arg_count) = arg;
    e->height = height > e->height ? height : e->height;
    if (height > EXPR_HEIGHT_MAX)
        p_error(p, 1436, 0, 0, 0);
    if (arg && arg->from < e->from)
        e->from = arg->from;
    e->to = p->last_end;
}

static struct expr *binary(struct parser *p, enum expr_kind kind, enum op op, struct expr *a,
                           struct expr *b)
{
    struct expr *e = p_new_expr(p, kind);
    e->op = (uint8_t)op;
    add_arg(p, e, a);
    add_arg(p, e, b);
    return e;
}

static struct value integer_value(struct parser *p, const struct token *t)
{
    struct decimal d;
    dec_parse(&d, t->text, t->len, NULL);
    int64_t i;
    uint64_t u;
    if (dec_to_int(&d, &i))
        return value_int(i);
    return dec_to_uint(&d, &u) ? value_uint(u) : value_decimal(p->arena, &d);
}

static struct value token_value(struct parser *p)
{
    const struct token *t = &p->token;
    struct value v;
    struct decimal d;
    switch (t->kind) {
    case T_INTEGER:
        return integer_value(p, t);
    case T_DECIMAL:
        dec_parse(&d, t->text, t->len, NULL);
        return value_decimal(p->arena, &d);
    case T_FLOAT:
        return value_double(strtod(t->text, NULL));
    case T_STRING:
        v = value_string(t->text, t->len, session_collation(p->session));
        v.literal = true;
        return v;
    default:
        v = value_string(t->text, t->len, COLL_BINARY);
        v.from_hex = true;
        v.literal = true;
        return v;
    }
}

static bool is_literal_token(const struct token *t)
{
    return t->kind == T_STRING || t->kind == T_HEX || t->kind == T_BITS;
}

/* _charset'text': the bytes as they are, in that character set. */
static bool introducer(struct parser *p, struct value *v)
{
    if (p->token.kind != T_WORD || p->token.text[0] != '_' || !is_literal_token(p_peek(p)))
        return false;
    uint32_t collation = coll_default_of(p->token.text + 1);
    if (!collation)
        return false;
    p_advance(p);
    *v = token_value(p);
    v->collation = collation;
    v->from_hex = false;
    return true;
}

static bool temporal_literal(struct parser *p, struct value *v)
{
    static const struct { const char *word; enum temporal_kind kind; } words[] = {
        {"DATE", TK_DATE}, {"TIME", TK_TIME}, {"TIMESTAMP", TK_DATETIME}};
    if (p->token.kind != T_WORD || p_peek(p)->kind != T_STRING)
        return false;
    for (size_t i = 0; i < 3; i++) {
        if (!p_is(p, words[i].word))
            continue;
        bool truncated;
        p_advance(p);
        v->kind = V_TEMPORAL;
        if (!temporal_parse(&v->t, words[i].kind, p->token.text, p->token.len, &truncated))
            p_error(p, 1525, words[i].word, p->token.text);
        return true;
    }
    return false;
}

struct expr *p_literal(struct parser *p)
{
    struct value v = value_null();
    size_t from = p->token.offset;
    switch (p->token.kind) {
    case T_INTEGER: case T_DECIMAL: case T_FLOAT: case T_STRING: case T_HEX: case T_BITS:
        v = token_value(p);
        break;
    case T_WORD:
        if (p_is(p, "NULL"))
            break;
        if (p_is(p, "TRUE") || p_is(p, "FALSE")) {
            if (p_peek(p)->kind == T_OP && !strcmp(p_peek(p)->text, "("))
                return NULL;
            v = value_int(p_is(p, "TRUE"));
            break;
        }
        if (introducer(p, &v) || temporal_literal(p, &v))
            break;
        return NULL;
    default:
        return NULL;
    }
    struct expr *e = p_new_expr(p, E_LITERAL);
    e->value = v;
    e->from = from;
    p_advance(p);
    return e;
}

struct expr_list p_expr_list(struct parser *p)
{
    struct expr_list list = {0};
    do
        P_PUSH(p, list.items, list.count) = p_expr(p);
    while (p_accept_op(p, ",") && !p->failed);
    return list;
}

static struct expr *string_literal(struct parser *p, const char *text)
{
    struct expr *e = p_new_expr(p, E_LITERAL);
    e->value = value_string(text, strlen(text), COLL_UTF8MB4);
    return e;
}

/* CAST(x AS type), CONVERT(x, type), CONVERT(x USING charset). */
static struct expr *p_cast(struct parser *p, bool convert)
{
    struct expr *e = p_new_expr(p, E_CAST);
    struct column_spec type = {0};
    p_advance(p);
    p_expect_op(p, "(");
    add_arg(p, e, p_expr(p));
    if (convert && p_accept(p, "USING")) {
        e->op = CT_CHAR;
        e->collation = coll_default_of(p_name_or_text(p));
    } else {
        convert ? p_expect_op(p, ",") : p_expect(p, "AS");
        bool is_unsigned = p_accept(p, "UNSIGNED");
        if (is_unsigned || p_accept(p, "SIGNED")) {
            if (!p_accept(p, "INTEGER"))
                p_accept(p, "INT");
            e->op = CT_BIGINT;
            e->length = is_unsigned;
        } else if (p_column_type(p, &type)) {
            e->op = type.type;
            e->length = type.has_length ? (uint32_t)type.length : UINT32_MAX;
            e->decimals = type.decimals;
            e->collation = type.charset ? coll_default_of(type.charset) : 0;
            if (type.type == CT_DECIMAL && !type.has_length)
                e->length = 10;
        } else {
            p_syntax_error(p);
        }
    }
    p_expect_op(p, ")");
    e->to = p->last_end;
    return e;
}

static struct expr *p_case(struct parser *p)
{
    struct expr *e = p_new_expr(p, E_CASE);
    p_advance(p);
    if (!p_is(p, "WHEN")) {
        e->negated = true; /* has an operand */
        add_arg(p, e, p_expr(p));
    }
    while (p_accept(p, "WHEN")) {
        add_arg(p, e, p_expr(p));
        p_expect(p, "THEN");
        add_arg(p, e, p_expr(p));
    }
    if (p_accept(p, "ELSE")) {
        e->has_else = true;
        add_arg(p, e, p_expr(p));
    }
    p_expect(p, "END");
    e->to = p->last_end;
    return e;
}

static const char *const aggregate_names[] = {"COUNT", "SUM", "MIN", "MAX", "AVG"};

static struct expr *p_aggregate(struct parser *p, int which)
{
    struct expr *e = p_new_expr(p, E_AGGREGATE);
    e->op = (uint8_t)which;
    p_advance(p);
    p_expect_op(p, "(");
    if (which == AGG_COUNT && p_accept_op(p, "*")) {
        p_expect_op(p, ")");
        e->to = p->last_end;
        return e;
    }
    e->negated = p_accept(p, "DISTINCT");
    add_arg(p, e, p_expr(p));
    p_expect_op(p, ")");
    e->to = p->last_end;
    return e;
}

/* name(args): also SUBSTRING(x FROM a FOR b), CHAR(n USING cs), TIMESTAMPADD(unit, n, x). */
static struct expr *p_function(struct parser *p)
{
    struct expr *e = p_new_expr(p, E_FUNCTION);
    e->name = p->token.text;
    p_advance(p);
    p_expect_op(p, "(");
    bool unit_first = !strcasecmp(e->name, "TIMESTAMPADD") || !strcasecmp(e->name, "TIMESTAMPDIFF");
    if (unit_first && p->token.kind == T_WORD) {
        add_arg(p, e, string_literal(p, p->token.text));
        p_advance(p);
        p_expect_op(p, ",");
    }
    while (!p_is_op(p, ")") && !p->failed) {
        if (p_is(p, "INTERVAL")) {
            p_advance(p);
            add_arg(p, e, p_expr(p));
            add_arg(p, e, string_literal(p, p_name(p)));
        } else {
            add_arg(p, e, p_expr(p));
        }
        if (p_accept(p, "USING"))
            e->collation = coll_default_of(p_name(p));
        else if (!p_accept_op(p, ",") && !p_accept(p, "FROM") && !p_accept(p, "FOR"))
            break;
    }
    p_expect_op(p, ")");
    e->to = p->last_end;
    e->function = func_find(e->name);
    if (e->function < 0)
        p_error(p, 1305, "FUNCTION", e->name);
    return e;
}

static bool next_is_op(struct parser *p, const char *op)
{
    return p_peek(p)->kind == T_OP && !strcmp(p_peek(p)->text, op);
}

static struct expr *p_column_ref(struct parser *p)
{
    struct expr *e = p_new_expr(p, E_COLUMN);
    e->name = p_name(p);
    while (p_accept_op(p, ".")) {
        e->db = e->table;
        e->table = e->name;
        if (p_accept_op(p, "*")) {
            e->kind = E_STAR;
            break;
        }
        e->name = p_name(p);
    }
    e->to = p->last_end;
    return e;
}

/* VALUES(col), DEFAULT, DEFAULT(col). */
static struct expr *p_column_function(struct parser *p, enum expr_kind kind)
{
    struct expr *e = p_new_expr(p, kind);
    p_advance(p);
    if (p_accept_op(p, "(")) {
        e->name = p_name(p);
        while (p_accept_op(p, "."))
            e->name = p_name(p);
        p_expect_op(p, ")");
    }
    return e;
}

/* Functions that need no parentheses. */
static struct expr *p_bare_function(struct parser *p)
{
    static const char *const names[] = {"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME",
                                        "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_USER"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (p_is(p, names[i])) {
            struct expr *e = p_new_expr(p, E_FUNCTION);
            e->name = p->token.text;
            e->function = func_find(e->name);
            p_advance(p);
            return e;
        }
    return NULL;
}

static struct expr *p_word(struct parser *p)
{
    struct expr *e;
    bool call = next_is_op(p, "(");
    if (p->token.kind == T_WORD) {
        if (p_is(p, "CASE"))
            return p_case(p);
        if (p_is(p, "DEFAULT"))
            return p_column_function(p, E_DEFAULT);
        if (call && (p_is(p, "VALUES") || p_is(p, "VALUE")))
            return p_column_function(p, E_VALUES);
        if (call && (p_is(p, "CAST") || p_is(p, "CONVERT"))) {
            return p_cast(p, p_is(p, "CONVERT"));
        }
        for (int i = 0; call && i < 5; i++)
            if (p_is(p, aggregate_names[i]))
                return p_aggregate(p, i);
        if (call)
            return p_function(p);
        if ((e = p_bare_function(p)))
            return e;
        if (word_is_reserved(p->token.text))
            p_syntax_error(p);
    }
    return p_column_ref(p);
}

static struct expr *p_primary(struct parser *p)
{
    struct expr *e = p_literal(p);
    if (e)
        return e;
    switch (p->token.kind) {
    case T_USER_VAR:
    case T_SYS_VAR:
        e = p_new_expr(p, p->token.kind == T_USER_VAR ? E_USER_VAR : E_SYS_VAR);
        e->name = p->token.text;
        p_advance(p);
        if (e->kind == E_USER_VAR && p_accept_op(p, ":=")) {
            struct expr *assign = p_new_expr(p, E_ASSIGN);
            assign->name = e->name;
            add_arg(p, assign, p_expr(p));
            assign->from = e->from;
            return assign;
        }
        return e;
    case T_WORD:
    case T_QUOTED:
        return p_word(p);
    default:
        break;
    }
    if (p_is_op(p, "(")) {
        size_t from = p->token.offset;
        p_advance(p);
        if (p_is(p, "SELECT"))
            p_error(p, 1235, "subqueries");
        e = p_expr(p);
        p_expect_op(p, ")");
        e->from = from;
        e->to = p->last_end;
        return e;
    }
    p_syntax_error(p);
    return p_new_expr(p, E_LITERAL);
}

static struct expr *p_unary(struct parser *p)
{
    if (++p->depth > EXPR_DEPTH_MAX)
        p_error(p, 1436, 0, 0, 0);
    struct expr *e;
    enum expr_kind kind = p_is_op(p, "-") ? E_NEGATE : p_is_op(p, "~") ? E_BIT_NOT : E_NOT;
    if (kind != E_NOT || p_is_op(p, "!")) {
        e = p_new_expr(p, kind);
        p_advance(p);
        add_arg(p, e, p_unary(p));
    } else if (p_accept_op(p, "+")) {
        e = p_unary(p);
    } else if (p_is(p, "BINARY") && !next_is_op(p, ",") && !next_is_op(p, ")")) {
        e = p_new_expr(p, E_CAST);
        e->op = CT_BINARY;
        e->length = UINT32_MAX;
        p_advance(p);
        add_arg(p, e, p_unary(p));
    } else {
        e = p_primary(p);
    }
    while (p_accept(p, "COLLATE")) {
        struct expr *c = p_new_expr(p, E_COLLATE);
        const char *name = p_name_or_text(p);
        c->collation = coll_by_name(name);
        if (!c->collation)
            p_error(p, 1273, name);
        add_arg(p, c, e);
        e = c;
    }
    p->depth--;
    return e;
}

/* Left-associative levels above the comparisons. */
static const struct operator_level {
    const char *word;
    enum op op;
    unsigned rank;
} levels[] = {{"|", OP_BIT_OR, 0}, {"&", OP_BIT_AND, 1}, {"<<", OP_SHL, 2},  {">>", OP_SHR, 2},
              {"+", OP_ADD, 3},    {"-", OP_SUB, 3},     {"*", OP_MUL, 4},   {"/", OP_DIV, 4},
              {"DIV", OP_INT_DIV, 4}, {"%", OP_MOD, 4},  {"MOD", OP_MOD, 4}, {"^", OP_BIT_XOR, 5}};
enum { RANK_MAX = 5 };

static const struct operator_level *level_at(const struct parser *p, unsigned rank)
{
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (levels[i].rank == rank && (p_is_op(p, levels[i].word) || p_is(p, levels[i].word)))
            return &levels[i];
    return NULL;
}

static struct expr *p_date_interval(struct parser *p, struct expr *e, bool minus)
{
    struct expr *call = p_new_expr(p, E_FUNCTION);
    call->name = minus ? "DATE_SUB" : "DATE_ADD";
    call->function = func_find(call->name);
    add_arg(p, call, e);
    add_arg(p, call, p_unary(p));
    add_arg(p, call, string_literal(p, p_name(p)));
    return call;
}

static struct expr *p_arith(struct parser *p, unsigned rank)
{
    struct expr *e = rank == RANK_MAX ? p_unary(p) : p_arith(p, rank + 1);
    const struct operator_level *l;
    while (p->token.kind != T_END && (l = level_at(p, rank))) {
        p_advance(p);
        if (rank == 3 && p_accept(p, "INTERVAL"))
            e = p_date_interval(p, e, l->op == OP_SUB);
        else
            e = binary(p, E_BINARY, l->op, e, rank == RANK_MAX ? p_unary(p) : p_arith(p, rank + 1));
    }
    return e;
}

static struct expr *p_in(struct parser *p, struct expr *e)
{
    struct expr *in = p_new_expr(p, E_IN);
    add_arg(p, in, e);
    p_expect_op(p, "(");
    if (p_is(p, "SELECT"))
        p_error(p, 1235, "subqueries");
    struct expr_list list = p_expr_list(p);
    for (uint32_t i = 0; i < list.count; i++)
        add_arg(p, in, list.items[i]);
    p_expect_op(p, ")");
    in->to = p->last_end;
    return in;
}

static struct expr *p_like(struct parser *p, struct expr *e)
{
    struct expr *like = p_new_expr(p, E_LIKE);
    add_arg(p, like, e);
    add_arg(p, like, p_arith(p, 0));
    like->column = '\\';
    if (p_accept(p, "ESCAPE")) {
        const char *escape = p_text(p);
        like->column = (unsigned char)escape[0];
    }
    like->to = p->last_end;
    return like;
}

static struct expr *p_is_test(struct parser *p, struct expr *e)
{
    struct expr *is = p_new_expr(p, E_IS);
    is->negated = p_accept(p, "NOT");
    add_arg(p, is, e);
    if (p_accept(p, "NULL") || p_accept(p, "UNKNOWN"))
        is->op = IS_NULL;
    else if (p_accept(p, "TRUE"))
        is->op = IS_TRUE;
    else if (p_accept(p, "FALSE"))
        is->op = IS_FALSE;
    else
        p_syntax_error(p);
    is->to = p->last_end;
    return is;
}

static struct expr *p_predicate(struct parser *p, struct expr *e)
{
    bool negated = p_accept(p, "NOT");
    struct expr *r;
    if (p_accept(p, "IN")) {
        r = p_in(p, e);
    } else if (p_accept(p, "LIKE")) {
        r = p_like(p, e);
    } else if (p_accept(p, "BETWEEN")) {
        r = p_new_expr(p, E_BETWEEN);
        add_arg(p, r, e);
        add_arg(p, r, p_arith(p, 0));
        p_expect(p, "AND");
        add_arg(p, r, p_arith(p, 0));
    } else {
        if (negated)
            p_syntax_error(p);
        return NULL;
    }
    r->negated = negated;
    return r;
}

static struct expr *p_comparison(struct parser *p)
{
    static const struct { const char *word; enum op op; } ops[] = {
        {"=", OP_EQ}, {"<=>", OP_NULL_EQ}, {"<=", OP_LE}, {">=", OP_GE}, {"<>", OP_NE},
        {"!=", OP_NE}, {"<", OP_LT}, {">", OP_GT}};
    struct expr *e = p_arith(p, 0);
    while (!p->failed) {
        if (p_accept(p, "IS")) {
            e = p_is_test(p, e);
            continue;
        }
        if (p->token.kind == T_WORD) {
            struct expr *r = p_predicate(p, e);
            if (!r)
                return e;
            e = r;
            continue;
        }
        size_t i = 0;
        while (i < 8 && !p_is_op(p, ops[i].word))
            i++;
        if (i == 8)
            return e;
        p_advance(p);
        e = binary(p, E_BINARY, ops[i].op, e, p_arith(p, 0));
    }
    return e;
}

static struct expr *p_not(struct parser *p)
{
    if (!p_is(p, "NOT"))
        return p_comparison(p);
    struct expr *e = p_new_expr(p, E_NOT);
    p_advance(p);
    if (++p->depth > EXPR_DEPTH_MAX)
        p_error(p, 1436, 0, 0, 0);
    add_arg(p, e, p_not(p));
    p->depth--;
    return e;
}

static struct expr *p_and(struct parser *p)
{
    struct expr *e = p_not(p);
    while (p_accept(p, "AND") || p_accept_op(p, "&&"))
        e = binary(p, E_AND, 0, e, p_not(p));
    return e;
}

struct expr *p_expr(struct parser *p)
{
    struct expr *e = p_and(p);
    for (;;) {
        if (p_accept(p, "OR") || p_accept_op(p, "||"))
            e = binary(p, E_OR, 0, e, p_and(p));
        else if (p_accept(p, "XOR"))
            e = binary(p, E_XOR, 0, e, p_and(p));
        else
            return e;
    }
}
