/* Arithmetic and CAST. */
#include "expr_arith.h"

#include <math.h>
#include <string.h>

#include "charset.h"

static bool is_integer(const struct value *v)
{
    return v->kind == V_INT || v->kind == V_UINT || (v->kind == V_STRING && (v->from_hex || v->has_index)) ||
           (v->kind == V_TEMPORAL && !v->t.decimals);
}

static bool is_real(const struct value *v)
{
    return v->kind == V_DOUBLE || (v->kind == V_STRING && !v->from_hex && !v->has_index);
}

/* An operand as the server words it: columns with all their names. */
static void print_operand(struct scope *sc, const struct expr *e, struct strbuf *b)
{
    static const char *const ops[] = {"+", "-", "*", "/", "DIV", "MOD", "&", "|", "^", "<<", ">>"};
    if (e->kind == E_COLUMN && sc->def) {
        buf_printf(b, "`%s`.`%s`.`%s`", sc->def->db, sc->alias ? sc->alias : sc->def->name, e->name);
    } else if (e->kind == E_BINARY && e->op <= OP_SHR) {
        print_operand(sc, e->args[0], b);
        buf_printf(b, " %s ", ops[e->op]);
        print_operand(sc, e->args[1], b);
    } else if (e->to > e->from && e->to <= sc->s->sql_len) {
        buf_add(b, sc->s->sql + e->from, e->to - e->from);
    }
}

static struct value out_of_range(struct scope *sc, const struct expr *e, const char *type)
{
    struct strbuf b = {0};
    print_operand(sc, e, &b);
    sql_error(sc->s, 1690, type, b.data ? b.data : "?");
    buf_free(&b);
    return value_null();
}

/* Under ERROR_FOR_DIVISION_BY_ZERO a warning, and an error where strict mode writes rows. */
static struct value division_by_zero(struct scope *sc)
{
    session *s = sc->s;
    if (s->division_checked && s->strict && s->writing)
        sql_error(s, 1365);
    else if (s->division_checked)
        sql_warning(s, 1365);
    return value_null();
}

static bool is_unsigned(const struct value *v)
{
    return v->kind == V_UINT || (v->kind == V_STRING && (v->from_hex || v->has_index));
}

/* Both operands as 128-bit numbers: no 64-bit operation overflows there. */
static __int128 wide(const struct value *v)
{
    bool ok;
    if (v->kind == V_UINT)
        return (__int128)v->u;
    if (v->kind == V_STRING)
        return (__int128)(uint64_t)value_to_double(v);
    return value_to_int(v, &ok);
}

static struct value integer_result(struct scope *sc, const struct expr *e, __int128 r, bool u)
{
    if (u) {
        if (r < 0 || r > UINT64_MAX)
            return out_of_range(sc, e, "BIGINT UNSIGNED");
        return value_uint((uint64_t)r);
    }
    if (r < INT64_MIN || r > INT64_MAX)
        return out_of_range(sc, e, "BIGINT");
    return value_int((int64_t)r);
}

static struct value integer_op(struct scope *sc, const struct expr *e, const struct value *a,
                               const struct value *b)
{
    __int128 x = wide(a), y = wide(b);
    bool u = is_unsigned(a) || is_unsigned(b);
    switch (e->op) {
    case OP_ADD: return integer_result(sc, e, x + y, u);
    case OP_SUB: return integer_result(sc, e, x - y, u);
    case OP_MUL:
        if (__builtin_mul_overflow(x, y, &x))
            return out_of_range(sc, e, "BIGINT");
        return integer_result(sc, e, x, u);
    case OP_INT_DIV:
        return y == 0 ? division_by_zero(sc) : integer_result(sc, e, x / y, u);
    default:
        return y == 0 ? division_by_zero(sc) : integer_result(sc, e, x % y, is_unsigned(a));
    }
}

static struct value real_op(struct scope *sc, const struct expr *e, double x, double y)
{
    double r;
    switch (e->op) {
    case OP_ADD: r = x + y; break;
    case OP_SUB: r = x - y; break;
    case OP_MUL: r = x * y; break;
    case OP_DIV:
        if (y == 0)
            return division_by_zero(sc);
        r = x / y;
        break;
    case OP_INT_DIV:
        if (y == 0)
            return division_by_zero(sc);
        return integer_result(sc, e, (__int128)trunc(x / y), false);
    default:
        if (y == 0)
            return division_by_zero(sc);
        r = fmod(x, y);
    }
    return isfinite(r) ? value_double(r) : out_of_range(sc, e, "DOUBLE");
}

static struct value decimal_op(struct scope *sc, const struct expr *e, const struct value *a,
                               const struct value *b)
{
    struct decimal x, y, r, q;
    value_to_decimal(a, &x);
    value_to_decimal(b, &y);
    switch (e->op) {
    case OP_ADD: dec_add(&r, &x, &y); break;
    case OP_SUB:
        dec_negate(&y);
        dec_add(&r, &x, &y);
        break;
    case OP_MUL: dec_multiply(&r, &x, &y); break;
    case OP_DIV:
        if (!dec_divide(&r, &x, &y))
            return division_by_zero(sc);
        break;
    default:
        if (dec_is_zero(&y))
            return division_by_zero(sc);
        dec_divide_whole(&q, &x, &y);
        if (e->op == OP_INT_DIV) {
            int64_t i;
            return dec_to_int(&q, &i) ? value_int(i) : out_of_range(sc, e, "BIGINT");
        }
        dec_multiply(&r, &q, &y);
        dec_negate(&r);
        dec_add(&r, &x, &r);
    }
    if (r.int_digits > DEC_MAX_DIGITS)
        return out_of_range(sc, e, "DECIMAL");
    return value_decimal(&sc->s->arena, &r);
}

static struct value bit_op(const struct expr *e, const struct value *a, const struct value *b)
{
    uint64_t x = (uint64_t)wide(a), y = (uint64_t)wide(b);
    switch (e->op) {
    case OP_BIT_AND: return value_uint(x & y);
    case OP_BIT_OR: return value_uint(x | y);
    case OP_BIT_XOR: return value_uint(x ^ y);
    case OP_SHL: return value_uint(y > 63 ? 0 : x << y);
    default: return value_uint(y > 63 ? 0 : x >> y);
    }
}

struct value arith_eval(struct scope *sc, const struct expr *e, const struct value *a,
                        const struct value *b)
{
    if (e->op >= OP_BIT_AND)
        return bit_op(e, a, b);
    if (is_real(a) || is_real(b))
        return real_op(sc, e, value_to_double(a), value_to_double(b));
    if (is_integer(a) && is_integer(b) && e->op != OP_DIV)
        return integer_op(sc, e, a, b);
    return decimal_op(sc, e, a, b);
}

struct value arith_negate(struct scope *sc, const struct expr *e, const struct value *v)
{
    if (is_real(v))
        return value_double(-value_to_double(v));
    if (is_integer(v)) {
        __int128 r = -wide(v);
        if (r >= INT64_MIN && r <= INT64_MAX)
            return value_int((int64_t)r);
    }
    struct decimal d;
    value_to_decimal(v, &d);
    dec_negate(&d);
    (void)e;
    return value_decimal(&sc->s->arena, &d);
}

struct value arith_bit_not(const struct value *v)
{
    return value_uint(~(uint64_t)wide(v));
}

static struct value cast_text(struct scope *sc, const struct expr *e, const struct value *v)
{
    bool lossy = false;
    struct value t = value_to_text(&sc->s->arena, v);
    bool binary = e->op == CT_BINARY || e->op == CT_VARBINARY;
    uint32_t collation = binary ? COLL_BINARY : e->collation ? e->collation : sc->s->collation;
    t = value_convert(&sc->s->arena, &t, collation, &lossy);
    t.collation = collation;
    t.from_hex = t.literal = false;
    if (e->length && e->length != UINT32_MAX)
        t.s.len = coll_prefix(collation, (const uint8_t *)t.s.ptr, t.s.len, e->length);
    return t;
}

static struct value cast_temporal(struct scope *sc, const struct expr *e, const struct value *v)
{
    /* A column of that type does it: store and load. */
    struct column c = {.type = e->op, .null_mask = 1, .null_byte = 0, .offset = 1, .collation = COLL_BINARY};
    uint8_t row[16] = {0};
    c.decimals = (uint8_t)(e->length != UINT32_MAX && e->length <= 6 ? e->length : 0);
    column_layout(&c);
    enum store_result r = value_store(&sc->s->arena, &c, row, v, sc->s->zone_seconds);
    if (r == ST_BAD_TEMPORAL)
        return value_null();
    return value_load(&sc->s->arena, &c, row, sc->s->zone_seconds);
}

struct value cast_eval(struct scope *sc, const struct expr *e, const struct value *v)
{
    struct decimal d;
    bool ok;
    switch (e->op) {
    case CT_BIGINT:
        if (e->length) { /* UNSIGNED */
            uint64_t u;
            if (v->kind == V_INT)
                return value_uint((uint64_t)v->i);
            value_to_decimal(v, &d);
            if (d.negative)
                return value_uint((uint64_t)value_to_int(v, &ok));
            dec_to_uint(&d, &u);
            return value_uint(u);
        }
        if (v->kind == V_UINT)
            return value_int((int64_t)v->u);
        return value_int(value_to_int(v, &ok));
    case CT_DECIMAL:
        value_to_decimal(v, &d);
        dec_round(&d, e->decimals > DEC_MAX_SCALE ? DEC_MAX_SCALE : e->decimals);
        return value_decimal(&sc->s->arena, &d);
    case CT_DOUBLE:
    case CT_FLOAT:
        return value_double(value_to_double(v));
    case CT_DATE: case CT_TIME: case CT_DATETIME: case CT_TIMESTAMP:
        return cast_temporal(sc, e, v);
    default:
        return cast_text(sc, e, v);
    }
}
