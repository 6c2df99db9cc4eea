/* Numeric functions. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "func.h"

#define FN(name)                                                                                   \
    static struct value name(struct scope *sc, const struct expr *e, struct value *args,           \
                             uint32_t count)
#define UNUSED_ARGS (void)sc, (void)e, (void)args, (void)count

static bool is_real(const struct value *v)
{
    return v->kind == V_DOUBLE || (v->kind == V_STRING && !v->from_hex);
}

FN(fn_abs)
{
    UNUSED_ARGS;
    struct value v = args[0];
    if (v.kind == V_INT && v.i < 0)
        return value_int(-v.i);
    if (v.kind == V_INT || v.kind == V_UINT)
        return v;
    if (is_real(&v))
        return value_double(fabs(value_to_double(&v)));
    struct decimal d;
    value_to_decimal(&v, &d);
    d.negative = false;
    return value_decimal(&sc->s->arena, &d);
}

FN(fn_sign)
{
    UNUSED_ARGS;
    double d = value_to_double(&args[0]);
    return value_int(d < 0 ? -1 : d > 0);
}

static struct value to_whole(const struct value *v, double (*step)(double), bool up)
{
    if (v->kind == V_INT || v->kind == V_UINT)
        return *v;
    if (is_real(v))
        return value_double(step(value_to_double(v)));
    struct decimal d, one;
    int64_t i;
    value_to_decimal(v, &d);
    bool rest = false;
    for (unsigned k = 0; k < d.scale; k++)
        rest |= d.digit[d.int_digits + k] != 0;
    d.scale = 0;
    if (rest && d.negative != up) {
        dec_from_int(&one, d.negative ? -1 : 1);
        dec_add(&d, &d, &one);
    }
    dec_to_int(&d, &i);
    return value_int(i);
}

FN(fn_floor)
{
    UNUSED_ARGS;
    return to_whole(&args[0], floor, false);
}

FN(fn_ceil)
{
    UNUSED_ARGS;
    return to_whole(&args[0], ceil, true);
}

static struct value round_to(struct scope *sc, struct value *args, uint32_t count, bool truncate)
{
    int64_t places = count > 1 ? func_int(&args[1]) : 0;
    places = places > 30 ? 30 : places < -30 ? -30 : places;
    if (is_real(&args[0]) || places < 0) {
        double unit = pow(10, (double)places), d = value_to_double(&args[0]) * unit;
        d = (truncate ? trunc(d) : rint(d)) / unit;
        return args[0].kind == V_INT ? value_int((int64_t)d) : value_double(d);
    }
    if (args[0].kind == V_INT || args[0].kind == V_UINT)
        return args[0];
    struct decimal d;
    value_to_decimal(&args[0], &d);
    if (truncate && d.scale > places)
        d.scale = (uint8_t)places;
    else if (d.scale > places)
        dec_round(&d, (unsigned)places);
    return value_decimal(&sc->s->arena, &d);
}

FN(fn_round)
{
    UNUSED_ARGS;
    return round_to(sc, args, count, false);
}

FN(fn_truncate)
{
    UNUSED_ARGS;
    return round_to(sc, args, count, true);
}

FN(fn_pow)
{
    UNUSED_ARGS;
    return value_double(pow(value_to_double(&args[0]), value_to_double(&args[1])));
}

FN(fn_sqrt)
{
    UNUSED_ARGS;
    double d = value_to_double(&args[0]);
    return d < 0 ? value_null() : value_double(sqrt(d));
}

FN(fn_mod)
{
    UNUSED_ARGS;
    struct expr left = {.kind = E_LITERAL, .value = args[0]}, right = {.kind = E_LITERAL, .value = args[1]};
    struct expr *both[2] = {&left, &right};
    struct expr mod = {.kind = E_BINARY, .op = OP_MOD, .args = both, .arg_count = 2};
    return expr_eval(sc, &mod);
}

/* The result has the type that holds all arguments: the widest scale, or a double. */
static struct value extreme(struct scope *sc, struct value *args, uint32_t count, int sign)
{
    struct value best = args[0];
    bool number = true, decimal = false, real = false;
    unsigned scale = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (value_compare(&args[i], &best) * sign > 0)
            best = args[i];
        number &= args[i].kind != V_STRING && args[i].kind != V_TEMPORAL;
        real |= args[i].kind == V_DOUBLE;
        if (args[i].kind == V_DECIMAL) {
            decimal = true;
            scale = args[i].dec->scale > scale ? args[i].dec->scale : scale;
        }
    }
    if (number && real)
        return value_double(value_to_double(&best));
    if (!number || !decimal)
        return best;
    struct decimal d;
    value_to_decimal(&best, &d);
    dec_round(&d, scale);
    return value_decimal(&sc->s->arena, &d);
}

FN(fn_greatest)
{
    UNUSED_ARGS;
    return extreme(sc, args, count, 1);
}

FN(fn_least)
{
    UNUSED_ARGS;
    return extreme(sc, args, count, -1);
}

/* The server's generator; RAND(n) repeats its sequence. The state lives in the expression. */
FN(fn_rand)
{
    UNUSED_ARGS;
    enum { MAX = 0x3FFFFFFF };
    struct value *state = &((struct expr *)(uintptr_t)e)->value;
    if (state->kind != V_UINT) {
        uint64_t n = count ? (uint64_t)func_int(&args[0])
                           : (uint64_t)sc->s->now_seconds * 1000003u + sc->s->now_micros + sc->s->id;
        uint32_t first = (uint32_t)(n * 0x10001u + 55555555u) % MAX;
        uint32_t second = (uint32_t)(n * 0x10000001u) % MAX;
        *state = value_uint((uint64_t)first << 32 | second);
    }
    uint64_t first = state->u >> 32, second = state->u & 0xFFFFFFFF;
    first = (first * 3 + second) % MAX;
    second = (first + second + 33) % MAX;
    state->u = first << 32 | second;
    return value_double((double)first / MAX);
}

const struct function number_functions[] = {
    {"ABS", fn_abs, 1, 1, 0},
    {"SIGN", fn_sign, 1, 1, 0},
    {"FLOOR", fn_floor, 1, 1, 0},
    {"CEIL", fn_ceil, 1, 1, 0},
    {"CEILING", fn_ceil, 1, 1, 0},
    {"ROUND", fn_round, 1, 2, 0},
    {"TRUNCATE", fn_truncate, 2, 2, 0},
    {"POW", fn_pow, 2, 2, 0},
    {"POWER", fn_pow, 2, 2, 0},
    {"SQRT", fn_sqrt, 1, 1, 0},
    {"MOD", fn_mod, 2, 2, 0},
    {"GREATEST", fn_greatest, 1, 64, 0},
    {"LEAST", fn_least, 1, 64, 0},
    {"RAND", fn_rand, 0, 1, FUNC_VOLATILE},
    {NULL, NULL, 0, 0, 0},
};
