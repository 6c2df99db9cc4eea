/* Conversions between kinds of values, comparison, text. */
#include "value.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value value_string(const char *s, size_t len, uint32_t collation)
{
    struct value v = {.kind = V_STRING, .collation = collation};
    v.s.ptr = s;
    v.s.len = len;
    return v;
}

struct value value_decimal(struct arena *a, const struct decimal *d)
{
    struct value v = {.kind = V_DECIMAL};
    v.dec = (struct decimal *)arena_bytes(a, sizeof *d);
    *v.dec = *d;
    return v;
}

/* Digits of a %e text as MariaDB shows them: fixed notation while the point is near the digits. */
static size_t print_digits(const char *e_text, char *out)
{
    char digits[40];
    size_t n = 0, len = 0;
    const char *p = e_text;
    if (*p == '-') {
        out[len++] = '-';
        p++;
    }
    for (; *p && *p != 'e'; p++)
        if (isdigit((unsigned char)*p))
            digits[n++] = *p;
    int point = atoi(p + 1) + 1;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (point < -14 || (point > 15 && (int)n <= point)) { /* digits after the point save no exponent */
        out[len++] = digits[0];
        if (n > 1) {
            out[len++] = '.';
            memcpy(out + len, digits + 1, n - 1);
            len += n - 1;
        }
        return len + (size_t)sprintf(out + len, "e%d", point - 1);
    }
    if (point <= 0) {
        out[len++] = '0';
        out[len++] = '.';
        for (int i = point; i < 0; i++)
            out[len++] = '0';
    }
    for (size_t i = 0; i < n; i++) {
        if (point > 0 && (int)i == point)
            out[len++] = '.';
        out[len++] = digits[i];
    }
    for (int i = (int)n; i < point; i++)
        out[len++] = '0';
    return len;
}

size_t double_print(double d, char *out)
{
    char text[40];
    if (d == 0)
        return (size_t)sprintf(out, signbit(d) ? "-0" : "0");
    for (int precision = 14; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, d);
        if (strtod(text, NULL) == d)
            break;
    }
    return print_digits(text, out);
}

size_t float_print(float f, char *out)
{
    char text[40];
    if (f == 0)
        return (size_t)sprintf(out, signbit(f) ? "-0" : "0");
    snprintf(text, sizeof text, "%.5e", (double)f);
    return print_digits(text, out);
}

static uint64_t hex_number(const struct value *v)
{
    uint64_t n = 0;
    for (size_t i = v->s.len > 8 ? v->s.len - 8 : 0; i < v->s.len; i++)
        n = n << 8 | (uint8_t)v->s.ptr[i];
    return n;
}

/* Text of a string value in ASCII for number parsing (wide character sets are narrowed). */
static size_t narrow(const struct value *v, char *out, size_t size)
{
    size_t n = 0;
    for (size_t p = 0; p < v->s.len && n + 1 < size;) {
        uint32_t code;
        unsigned used = coll_decode(v->collation, (const uint8_t *)v->s.ptr + p, v->s.len - p, &code);
        if (!used)
            break;
        out[n++] = (char)(code < 128 ? code : '?');
        p += used;
    }
    out[n] = 0;
    return n;
}

double value_to_double(const struct value *v)
{
    char text[400];
    switch (v->kind) {
    case V_INT: return (double)v->i;
    case V_UINT: return (double)v->u;
    case V_DOUBLE: return v->d;
    case V_DECIMAL: return dec_to_double(v->dec);
    case V_TEMPORAL: return (double)temporal_to_number(&v->t) + v->t.micros / 1e6;
    case V_STRING:
        if (v->from_hex || v->has_index)
            return (double)(v->has_index ? v->index : hex_number(v));
        narrow(v, text, sizeof text);
        return strtod(text, NULL);
    default: return 0;
    }
}

void value_to_decimal(const struct value *v, struct decimal *d)
{
    char text[400];
    switch (v->kind) {
    case V_INT: dec_from_int(d, v->i); return;
    case V_UINT: dec_from_uint(d, v->u); return;
    case V_DOUBLE: dec_from_double(d, v->d); return;
    case V_DECIMAL: *d = *v->dec; return;
    case V_TEMPORAL:
        dec_from_int(d, temporal_to_number(&v->t));
        if (v->t.decimals) {
            snprintf(text, sizeof text, "%lld.%06u", (long long)temporal_to_number(&v->t),
                     (unsigned)v->t.micros);
            dec_parse(d, text, strlen(text), NULL);
            dec_round(d, v->t.decimals);
        }
        return;
    case V_STRING:
        if (v->from_hex || v->has_index)
            dec_from_uint(d, v->has_index ? v->index : hex_number(v));
        else
            dec_parse(d, text, narrow(v, text, sizeof text), NULL);
        return;
    default: dec_from_int(d, 0);
    }
}

int64_t value_to_int(const struct value *v, bool *ok)
{
    struct decimal d;
    int64_t i = 0;
    *ok = true;
    if (v->kind == V_INT)
        return v->i;
    if (v->kind == V_UINT) {
        *ok = v->u <= INT64_MAX;
        return (int64_t)v->u;
    }
    value_to_decimal(v, &d);
    *ok = dec_to_int(&d, &i);
    return i;
}

/* Zeros in front, to `width`; what is longer stays. */
static size_t fill_with_zeros(char *text, size_t len, size_t width)
{
    if (len >= width)
        return len;
    memmove(text + width - len, text, len);
    memset(text, '0', width - len);
    return width;
}

struct value value_to_text(struct arena *a, const struct value *v)
{
    char text[DEC_ROOM + 400];
    size_t len = 0;
    switch (v->kind) {
    case V_INT: {
        uint64_t abs = v->i < 0 ? 0 - (uint64_t)v->i : (uint64_t)v->i;
        len = (size_t)sprintf(text, "%s%0*llu", v->i < 0 ? "-" : "", (int)v->shown,
                              (unsigned long long)abs);
        break;
    }
    case V_UINT:
        len = (size_t)sprintf(text, "%0*llu", (int)v->shown, (unsigned long long)v->u);
        break;
    case V_DOUBLE:
        if (v->shown >= 2)
            len = (size_t)sprintf(text, "%.*f", v->shown - 2, v->d);
        else if (v->shown)
            len = float_print((float)v->d, text);
        else
            len = double_print(v->d, text);
        len = fill_with_zeros(text, len, v->zeros);
        break;
    case V_DECIMAL: len = fill_with_zeros(text, dec_print(v->dec, text), v->zeros); break;
    case V_TEMPORAL: len = temporal_print(&v->t, text); break;
    default: return *v;
    }
    return value_string(arena_strndup(a, text, len), len, COLL_UTF8MB4);
}

bool value_is_true(const struct value *v)
{
    if (v->kind == V_INT || v->kind == V_UINT)
        return v->u != 0;
    return v->kind != V_NULL && value_to_double(v) != 0;
}

struct value value_convert(struct arena *a, const struct value *v, uint32_t collation, bool *lossy)
{
    if (v->kind != V_STRING)
        return *v;
    struct value r = *v;
    r.collation = collation;
    if (coll_same_charset(v->collation, collation) || coll_is_binary(collation) ||
        coll_is_binary(v->collation))
        return r;
    char *out = (char *)arena_bytes(a, v->s.len * 4 + 4);
    size_t n = 0;
    for (size_t p = 0; p < v->s.len;) {
        uint32_t code;
        unsigned used = coll_decode(v->collation, (const uint8_t *)v->s.ptr + p, v->s.len - p, &code);
        unsigned made = used ? coll_encode(collation, code, (uint8_t *)out + n) : 0;
        if (!made) {
            *lossy = true;
            made = coll_encode(collation, '?', (uint8_t *)out + n);
        }
        n += made;
        p += used ? used : 1;
    }
    r.s.ptr = out;
    r.s.len = n;
    return r;
}

/* Which of two collations decides: binary, else the one that was not written as a literal. */
static uint32_t common_collation(const struct value *a, const struct value *b)
{
    if (coll_is_binary(a->collation) || coll_is_binary(b->collation))
        return COLL_BINARY;
    if (a->collation == b->collation)
        return a->collation;
    return a->literal ? b->collation : a->collation;
}

static int compare_strings(const struct value *a, const struct value *b)
{
    uint32_t collation = common_collation(a, b);
    struct arena temp = {0};
    struct value x = *a, y = *b;
    bool lossy = false;
    if (!coll_is_binary(collation)) {
        if (!coll_same_charset(x.collation, collation))
            x = value_convert(&temp, a, collation, &lossy);
        if (!coll_same_charset(y.collation, collation))
            y = value_convert(&temp, b, collation, &lossy);
    }
    bool pad = !coll_is_binary(collation) && collation < 1024;
    int c = coll_compare(collation, (const uint8_t *)x.s.ptr, x.s.len, (const uint8_t *)y.s.ptr,
                         y.s.len, pad);
    arena_free(&temp);
    return c;
}

static int compare_double(double a, double b)
{
    return a < b ? -1 : a > b;
}

/* A temporal with something else: a string is read as a time, a number as a packed one. */
static int compare_temporal(const struct value *t, const struct value *o)
{
    struct temporal other;
    bool truncated;
    if (o->kind == V_TEMPORAL)
        return temporal_compare(&t->t, &o->t);
    if (o->kind == V_STRING) {
        char text[64];
        size_t len = narrow(o, text, sizeof text);
        if (temporal_parse(&other, t->t.kind == TK_DATE ? TK_DATETIME : t->t.kind, text, len, &truncated))
            return temporal_compare(&t->t, &other);
    }
    return compare_double(value_to_double(t), value_to_double(o));
}

static bool is_integer(const struct value *v)
{
    return v->kind == V_INT || v->kind == V_UINT;
}

/* A BIT column is a number wherever it is compared. */
static bool is_bits(const struct value *v)
{
    return v->kind == V_STRING && v->from_hex && !v->literal;
}

int value_compare(const struct value *a, const struct value *b)
{
    if (is_bits(a) || is_bits(b)) {
        struct value x = *a, y = *b;
        if (a->kind == V_STRING && a->from_hex)
            x = value_uint(hex_number(a));
        if (b->kind == V_STRING && b->from_hex)
            y = value_uint(hex_number(b));
        return value_compare(&x, &y);
    }
    if (is_integer(a) && is_integer(b)) {
        if (a->kind == V_INT && a->i < 0)
            return b->kind == V_INT && b->i <= a->i ? (b->i < a->i) : -1;
        if (b->kind == V_INT && b->i < 0)
            return 1;
        return a->u < b->u ? -1 : a->u > b->u;
    }
    if (a->kind == V_STRING && b->kind == V_STRING)
        return compare_strings(a, b);
    if (a->kind == V_TEMPORAL)
        return compare_temporal(a, b);
    if (b->kind == V_TEMPORAL)
        return -compare_temporal(b, a);
    bool exact_a = is_integer(a) || a->kind == V_DECIMAL, exact_b = is_integer(b) || b->kind == V_DECIMAL;
    if (exact_a && exact_b) {
        struct decimal x, y;
        value_to_decimal(a, &x);
        value_to_decimal(b, &y);
        return dec_compare(&x, &y);
    }
    return compare_double(value_to_double(a), value_to_double(b));
}
