/* Binding and evaluating expressions. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "expr_arith.h"

bool word_is_reserved(const char *word)
{
    static const char *const words[] = {
        "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK", "UNION",
        "INTO", "ON", "SET", "VALUES", "AND", "OR", "NOT", "XOR", "IN", "LIKE", "BETWEEN", "IS",
        "AS", "BY", "FORCE", "USE", "IGNORE", "INNER", "LEFT", "RIGHT", "CROSS", "JOIN", "NATURAL",
        "STRAIGHT_JOIN", "THEN", "WHEN", "ELSE", "END", "COLLATE", "DIV", "MOD", "INTERVAL", "ASC",
        "DESC", "PROCEDURE", "INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER",
        "TABLE", "PRIMARY", "UNIQUE", "KEY", "INDEX", "DEFAULT", "DISTINCT", "ALL", "EXISTS",
        "RETURNING", "PARTITION", "USING", "OFFSET"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(words[i], word))
            return true;
    return false;
}

static uint32_t column_by_name(const table_def *def, const char *name)
{
    for (uint32_t i = 0; def && i < def->column_count; i++)
        if (!strcasecmp(def->columns[i].name, name))
            return i;
    return UINT32_MAX;
}

static bool table_matches(const struct scope *sc, const struct expr *e)
{
    if (!e->table)
        return true;
    return !strcmp(e->table, sc->alias ? sc->alias : sc->def->name);
}

/* An alias of the select list (HAVING, ORDER BY, GROUP BY). */
static struct expr *alias_of(const struct scope *sc, const struct expr *e)
{
    for (uint32_t i = 0; sc->select && !e->table && i < sc->select->item_count; i++)
        if (sc->select->items[i].alias && !strcasecmp(sc->select->items[i].alias, e->name))
            return sc->select->items[i].expr;
    return NULL;
}

static unsigned bind_column(struct scope *sc, struct expr *e)
{
    struct expr *other = alias_of(sc, e);
    if (other && other != e) {
        *e = *other;
        return 0;
    }
    e->column = sc->def && table_matches(sc, e) ? column_by_name(sc->def, e->name) : UINT32_MAX;
    if (e->column == UINT32_MAX) {
        const char *name = e->table ? arena_printf(&sc->s->arena, "%s.%s", e->table, e->name) : e->name;
        return sql_error(sc->s, 1054, name, sc->clause ? sc->clause : "SELECT");
    }
    if (sc->read_set)
        sc->read_set[e->column / 8] |= (uint8_t)(1u << e->column % 8);
    return 0;
}

unsigned expr_bind(struct scope *sc, struct expr *e)
{
    unsigned code = 0;
    switch (e->kind) {
    case E_COLUMN:
        return bind_column(sc, e);
    case E_VALUES:
    case E_DEFAULT:
        if (e->name) {
            e->column = column_by_name(sc->def, e->name);
            if (e->column == UINT32_MAX)
                return sql_error(sc->s, 1054, e->name, "SELECT");
        }
        return 0;
    case E_AGGREGATE:
        if (!sc->allow_aggregates)
            return sql_error(sc->s, 1111);
        if (e->column == UINT32_MAX)
            e->column = sc->aggregate_count++;
        sc->allow_aggregates = false; /* none inside another */
        for (uint32_t i = 0; i < e->arg_count && !code; i++)
            code = expr_bind(sc, e->args[i]);
        sc->allow_aggregates = true;
        return code;
    case E_STAR:
        return sql_error(sc->s, 1064, "*", 1);
    default:
        for (uint32_t i = 0; i < e->arg_count && !code; i++)
            code = expr_bind(sc, e->args[i]);
        return code;
    }
}

bool expr_is_constant(const struct expr *e)
{
    switch (e->kind) {
    case E_COLUMN: case E_AGGREGATE: case E_VALUES: case E_DEFAULT: case E_ASSIGN: case E_STAR:
        return false;
    case E_FUNCTION:
        if (!func_is_constant(e->function))
            return false;
        break;
    default: break;
    }
    for (uint32_t i = 0; i < e->arg_count; i++)
        if (!expr_is_constant(e->args[i]))
            return false;
    return true;
}

bool expr_has_aggregate(const struct expr *e)
{
    if (e->kind == E_AGGREGATE)
        return true;
    for (uint32_t i = 0; i < e->arg_count; i++)
        if (expr_has_aggregate(e->args[i]))
            return true;
    return false;
}

static struct value eval_column(struct scope *sc, const struct expr *e)
{
    if (!sc->row)
        return value_null();
    return value_load(&sc->s->arena, &sc->def->columns[e->column], sc->row, sc->s->zone_seconds);
}

static struct value eval_values(struct scope *sc, const struct expr *e)
{
    const uint8_t *row = e->kind == E_DEFAULT ? sc->def->defaults : sc->new_row;
    if (!row || e->column == UINT32_MAX)
        return value_null();
    return value_load(&sc->s->arena, &sc->def->columns[e->column], row, sc->s->zone_seconds);
}

/* AND, OR with three values: -1 = unknown. */
static int truth(const struct value *v)
{
    return v->kind == V_NULL ? -1 : value_is_true(v);
}

static struct value from_truth(int t)
{
    return t < 0 ? value_null() : value_int(t);
}

static struct value eval_logic(struct scope *sc, const struct expr *e)
{
    struct value a = expr_eval(sc, e->args[0]);
    int x = truth(&a);
    if (e->kind == E_AND && x == 0)
        return value_int(0);
    if (e->kind == E_OR && x == 1)
        return value_int(1);
    struct value b = expr_eval(sc, e->args[1]);
    int y = truth(&b);
    if (e->kind == E_XOR)
        return from_truth(x < 0 || y < 0 ? -1 : x != y);
    if (e->kind == E_AND)
        return from_truth(y == 0 ? 0 : x < 0 || y < 0 ? -1 : 1);
    return from_truth(y == 1 ? 1 : x < 0 || y < 0 ? -1 : 0);
}

static struct value eval_compare(const struct expr *e, const struct value *a, const struct value *b)
{
    if (e->op == OP_NULL_EQ && (a->kind == V_NULL || b->kind == V_NULL))
        return value_int(a->kind == b->kind);
    if (a->kind == V_NULL || b->kind == V_NULL)
        return value_null();
    int c = value_compare(a, b);
    switch (e->op) {
    case OP_EQ:
    case OP_NULL_EQ: return value_int(c == 0);
    case OP_NE: return value_int(c != 0);
    case OP_LT: return value_int(c < 0);
    case OP_LE: return value_int(c <= 0);
    case OP_GT: return value_int(c > 0);
    default: return value_int(c >= 0);
    }
}

static struct value eval_binary(struct scope *sc, const struct expr *e)
{
    struct value a = expr_eval(sc, e->args[0]), b = expr_eval(sc, e->args[1]);
    if (e->op >= OP_EQ)
        return eval_compare(e, &a, &b);
    if (a.kind == V_NULL || b.kind == V_NULL)
        return value_null();
    return arith_eval(sc, e, &a, &b);
}

static struct value eval_in(struct scope *sc, const struct expr *e)
{
    struct value a = expr_eval(sc, e->args[0]);
    bool unknown = false;
    if (a.kind == V_NULL)
        return a;
    for (uint32_t i = 1; i < e->arg_count; i++) {
        struct value b = expr_eval(sc, e->args[i]);
        if (b.kind == V_NULL)
            unknown = true;
        else if (value_compare(&a, &b) == 0)
            return value_int(!e->negated);
    }
    return unknown ? value_null() : value_int(e->negated);
}

static struct value eval_between(struct scope *sc, const struct expr *e)
{
    struct value v = expr_eval(sc, e->args[0]);
    struct value low = expr_eval(sc, e->args[1]), high = expr_eval(sc, e->args[2]);
    if (v.kind == V_NULL)
        return v;
    int above = low.kind == V_NULL ? -1 : value_compare(&v, &low) >= 0;
    int below = high.kind == V_NULL ? -1 : value_compare(&v, &high) <= 0;
    int both = above == 0 || below == 0 ? 0 : above < 0 || below < 0 ? -1 : 1;
    return from_truth(both < 0 ? -1 : both != e->negated);
}

static struct value eval_like(struct scope *sc, const struct expr *e)
{
    struct value a = expr_eval(sc, e->args[0]), b = expr_eval(sc, e->args[1]);
    if (a.kind == V_NULL || b.kind == V_NULL)
        return value_null();
    bool lossy = false;
    struct value s = value_to_text(&sc->s->arena, &a), p = value_to_text(&sc->s->arena, &b);
    uint32_t collation = s.literal && !p.literal ? p.collation : s.collation;
    if (a.kind != V_STRING)
        collation = p.collation;
    s = value_convert(&sc->s->arena, &s, collation, &lossy);
    p = value_convert(&sc->s->arena, &p, collation, &lossy);
    bool hit = coll_like(collation, (const uint8_t *)s.s.ptr, s.s.len, (const uint8_t *)p.s.ptr, p.s.len,
                         e->column);
    return value_int(hit != e->negated);
}

static struct value eval_is(struct scope *sc, const struct expr *e)
{
    struct value v = expr_eval(sc, e->args[0]);
    bool is = e->op == IS_NULL   ? v.kind == V_NULL
              : e->op == IS_TRUE ? truth(&v) == 1
                                 : truth(&v) == 0;
    return value_int(is != e->negated);
}

static struct value eval_case(struct scope *sc, const struct expr *e)
{
    uint32_t i = 0, end = e->arg_count - e->has_else;
    struct value operand = value_null();
    if (e->negated)
        operand = expr_eval(sc, e->args[i++]);
    for (; i + 1 < end + (e->has_else ? 0u : 1u) && i + 1 <= end; i += 2) {
        struct value when = expr_eval(sc, e->args[i]);
        bool hit = e->negated ? operand.kind != V_NULL && when.kind != V_NULL &&
                                    value_compare(&operand, &when) == 0
                              : value_is_true(&when);
        if (hit)
            return expr_eval(sc, e->args[i + 1]);
    }
    return e->has_else ? expr_eval(sc, e->args[e->arg_count - 1]) : value_null();
}

struct value expr_eval(struct scope *sc, const struct expr *e)
{
    struct value v;
    switch (e->kind) {
    case E_LITERAL: return e->value;
    case E_COLUMN: return eval_column(sc, e);
    case E_VALUES:
    case E_DEFAULT: return eval_values(sc, e);
    case E_USER_VAR: return user_var_get(sc->s, e->name);
    case E_SYS_VAR: return sysvar_value(sc->s, e->name);
    case E_ASSIGN:
        v = expr_eval(sc, e->args[0]);
        user_var_set(sc->s, e->name, &v);
        return v;
    case E_NOT:
        v = expr_eval(sc, e->args[0]);
        return v.kind == V_NULL ? v : value_int(!value_is_true(&v));
    case E_NEGATE:
    case E_BIT_NOT:
        v = expr_eval(sc, e->args[0]);
        return v.kind == V_NULL ? v : e->kind == E_NEGATE ? arith_negate(sc, e, &v) : arith_bit_not(&v);
    case E_BINARY: return eval_binary(sc, e);
    case E_AND:
    case E_OR:
    case E_XOR: return eval_logic(sc, e);
    case E_IN: return eval_in(sc, e);
    case E_BETWEEN: return eval_between(sc, e);
    case E_LIKE: return eval_like(sc, e);
    case E_IS: return eval_is(sc, e);
    case E_CASE: return eval_case(sc, e);
    case E_FUNCTION: return func_call(sc, e);
    case E_AGGREGATE:
        return sc->aggregates ? sc->aggregates[e->column] : value_null();
    case E_CAST:
        v = expr_eval(sc, e->args[0]);
        return v.kind == V_NULL ? v : cast_eval(sc, e, &v);
    case E_COLLATE: {
        bool lossy = false;
        v = expr_eval(sc, e->args[0]);
        if (v.kind == V_NULL)
            return v;
        v = value_to_text(&sc->s->arena, &v);
        v = value_convert(&sc->s->arena, &v, e->collation, &lossy);
        v.collation = e->collation;
        v.literal = false;
        return v;
    }
    default: return value_null();
    }
}
