/* Value -> row image. Stores the nearest value and says what was lost. */
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "charset.h"
#include "value.h"

static void put_le(uint8_t *p, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++, v >>= 8)
        p[i] = (uint8_t)v;
}

static bool only_blanks(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isspace((unsigned char)s[i]))
            return false;
    return true;
}

/* A string as ASCII; strings of wide character sets are narrowed. */
static size_t ascii_text(const struct value *v, char *out, size_t size)
{
    size_t n = 0;
    for (size_t p = 0; p < v->s.len && n + 1 < size;) {
        uint32_t code;
        unsigned used = coll_decode(v->collation, (const uint8_t *)v->s.ptr + p, v->s.len - p, &code);
        out[n++] = (char)(used && code < 128 ? code : '?');
        p += used ? used : 1;
    }
    out[n] = 0;
    return n;
}

/* The value as a decimal; strings report garbage. */
static enum store_result to_decimal(const struct value *v, struct decimal *d)
{
    char text[400];
    size_t used;
    if (v->kind != V_STRING || v->from_hex) {
        value_to_decimal(v, d);
        return ST_OK;
    }
    size_t len = ascii_text(v, text, sizeof text);
    if (!dec_parse(d, text, len, &used))
        return ST_BAD_VALUE;
    return only_blanks(text + used, len - used) ? ST_OK : ST_TRUNCATED;
}

static enum store_result store_integer(const struct column *c, uint8_t *p, const struct value *v)
{
    unsigned bits = 8 * c->pack_length;
    struct decimal d;
    enum store_result result = ST_OK;
    bool fits = true;
    if (c->flags & COL_UNSIGNED) {
        uint64_t u = v->u, max = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
        if (v->kind == V_INT && v->i < 0) {
            u = 0;
            fits = false;
        } else if (v->kind != V_INT && v->kind != V_UINT) {
            result = to_decimal(v, &d);
            fits = dec_to_uint(&d, &u);
        }
        if (u > max) {
            u = max;
            fits = false;
        }
        put_le(p, u, c->pack_length);
    } else {
        int64_t i = v->i, max = (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
        if (v->kind == V_UINT && v->u > INT64_MAX) {
            i = INT64_MAX;
            fits = false;
        } else if (v->kind != V_INT && v->kind != V_UINT) {
            result = to_decimal(v, &d);
            fits = dec_to_int(&d, &i);
        }
        if (i > max || i < -max - 1) {
            i = i > max ? max : -max - 1;
            fits = false;
        }
        put_le(p, (uint64_t)i, c->pack_length);
    }
    return result != ST_OK ? result : fits ? ST_OK : ST_OUT_OF_RANGE;
}

static enum store_result store_real(const struct column *c, uint8_t *p, const struct value *v)
{
    enum store_result result = ST_OK;
    double d;
    if (v->kind == V_STRING && !v->from_hex) {
        char text[400], *end;
        size_t len = ascii_text(v, text, sizeof text);
        d = strtod(text, &end);
        if (end == text)
            result = ST_BAD_VALUE;
        else if (!only_blanks(end, len - (size_t)(end - text)))
            result = ST_TRUNCATED;
        if (!isfinite(d) && result == ST_OK)
            result = ST_OUT_OF_RANGE;
    } else {
        d = value_to_double(v);
    }
    double max = c->type == CT_FLOAT ? (double)FLT_MAX : DBL_MAX;
    if (c->decimals < 31) {
        double unit = pow(10, c->decimals);
        max = fmin(max, pow(10, (double)c->length - c->decimals) - 1 / unit);
        if (fabs(d) < 1e15)
            d = rint(d * unit) / unit;
    }
    if (isnan(d))
        d = 0;
    if (fabs(d) > max || (d < 0 && c->flags & COL_UNSIGNED)) {
        d = d < 0 ? (c->flags & COL_UNSIGNED ? 0 : -max) : max;
        if (result == ST_OK)
            result = ST_OUT_OF_RANGE;
    }
    if (c->type == CT_FLOAT) {
        float f = (float)d;
        memcpy(p, &f, sizeof f);
    } else {
        memcpy(p, &d, sizeof d);
    }
    return result;
}

static enum store_result store_decimal(const struct column *c, uint8_t *p, const struct value *v)
{
    struct decimal d, rounded;
    enum store_result result = to_decimal(v, &d);
    bool fits = true;
    if (d.negative && c->flags & COL_UNSIGNED) {
        dec_from_int(&d, 0);
        fits = false;
    }
    rounded = d;
    dec_round(&rounded, c->decimals);
    if (result == ST_OK && v->kind != V_DOUBLE && dec_compare(&d, &rounded) != 0)
        result = ST_TRUNCATED_NOTE;
    fits &= dec_pack(&rounded, c->length, c->decimals, p);
    return fits || result == ST_BAD_VALUE ? result : ST_OUT_OF_RANGE;
}

static enum store_result store_year(uint8_t *p, const struct value *v)
{
    struct decimal d;
    int64_t y = 0;
    enum store_result result = ST_OK;
    if (v->kind == V_TEMPORAL && v->t.kind != TK_TIME)
        y = v->t.year;
    else {
        result = to_decimal(v, &d);
        dec_to_int(&d, &y);
    }
    bool text = v->kind == V_STRING && !v->from_hex;
    if (y >= 0 && y < 100 && (y != 0 || (text && v->s.len < 4)))
        y += y < 70 ? 2000 : 1900;
    bool fits = y == 0 || (y >= 1901 && y <= 2155);
    p[0] = (uint8_t)(y && fits ? y - 1900 : 0);
    return result != ST_OK ? result : fits ? ST_OK : ST_OUT_OF_RANGE;
}

/* The value as a date or time of the wanted kind. */
static enum store_result to_temporal(const struct value *v, enum temporal_kind kind,
                                     struct temporal *t)
{
    bool truncated = false, ok;
    if (v->kind == V_TEMPORAL) {
        *t = v->t;
        if (kind == TK_TIME && t->kind != TK_TIME) {
            t->year = t->month = t->day = 0;
            if (t->kind == TK_DATE)
                t->hour = t->minute = t->second = 0;
        } else if (kind != TK_TIME && t->kind == TK_TIME) {
            return ST_BAD_TEMPORAL;
        }
        ok = true;
    } else if (v->kind == V_STRING && !v->from_hex) {
        char text[80];
        ok = temporal_parse(t, kind, text, ascii_text(v, text, sizeof text), &truncated);
    } else {
        struct decimal d, whole;
        value_to_decimal(v, &d);
        whole = d;
        whole.scale = 0;
        int64_t n;
        uint32_t micros = 0;
        for (unsigned i = 0; i < 6; i++)
            micros = micros * 10 + (i < d.scale ? d.digit[d.int_digits + i] : 0u);
        ok = dec_to_int(&whole, &n) && temporal_from_number(t, kind, n, micros);
    }
    if (!ok) {
        if (!(kind == TK_TIME && t->hour == 838))
            *t = (struct temporal){.kind = (uint8_t)kind};
        return ST_BAD_TEMPORAL;
    }
    return truncated ? (kind == TK_TIME && t->hour == 838 ? ST_BAD_TEMPORAL : ST_TRUNCATED) : ST_OK;
}

static void put_timestamp(const struct column *c, uint8_t *p, uint32_t seconds,
                          const struct temporal *t)
{
    uint8_t as_time[8];
    for (unsigned i = 0; i < 4; i++)
        p[i] = (uint8_t)(seconds >> (8 * (3 - i)));
    struct temporal only = {.kind = TK_TIME, .micros = t->micros};
    temporal_pack(&only, CT_TIME, c->decimals, as_time);
    memcpy(p + 4, as_time + 3, c->pack_length - 4);
}

static enum store_result store_temporal(const struct column *c, uint8_t *p, const struct value *v,
                                        int zone_seconds)
{
    struct temporal t;
    enum temporal_kind kind = c->type == CT_DATE ? TK_DATE : c->type == CT_TIME ? TK_TIME : TK_DATETIME;
    enum store_result result = to_temporal(v, kind, &t);
    bool had_time = t.hour || t.minute || t.second || t.micros;
    temporal_round(&t, c->decimals);
    if (c->type == CT_DATE) {
        t.hour = t.minute = t.second = 0;
        temporal_pack(&t, CT_DATE, 0, p);
        return result == ST_OK && had_time ? ST_TRUNCATED_NOTE : result;
    }
    if (c->type != CT_TIMESTAMP) {
        if (c->type == CT_DATETIME)
            t.negative = false;
        temporal_pack(&t, c->type, c->decimals, p);
        return result;
    }
    int64_t seconds = 0;
    bool zero = !t.year && !t.month && !t.day;
    if (!zero && temporal_valid_date(&t, false))
        seconds = temporal_to_unix(&t, zone_seconds);
    if (!zero && (seconds <= 0 || seconds > INT32_MAX)) {
        seconds = 0;
        t.micros = 0;
        if (result == ST_OK)
            result = ST_BAD_TEMPORAL;
    }
    put_timestamp(c, p, (uint32_t)seconds, &t);
    return result;
}

/* The value as a string in the column's character set, cut to whole characters. */
static enum store_result to_column_text(struct arena *a, const struct column *c,
                                        const struct value *v, struct value *out)
{
    struct value text = value_to_text(a, v);
    bool lossy = false;
    *out = value_convert(a, &text, c->collation, &lossy);
    if (coll_is_binary(c->collation))
        return ST_OK;
    size_t good = coll_well_formed(c->collation, (const uint8_t *)out->s.ptr, out->s.len);
    if (good < out->s.len) {
        out->s.len = good;
        return ST_BAD_VALUE;
    }
    return lossy ? ST_BAD_VALUE : ST_OK;
}

static bool only_spaces(uint32_t collation, const uint8_t *s, size_t len)
{
    for (size_t p = 0; p < len;) {
        uint32_t code;
        unsigned n = coll_decode(collation, s + p, len - p, &code);
        if (!n || code != ' ')
            return false;
        p += n;
    }
    return true;
}

static void pad(const struct column *c, uint8_t *p, size_t from)
{
    if (c->type == CT_BINARY) {
        memset(p + from, 0, c->pack_length - from);
        return;
    }
    uint8_t space[4];
    unsigned n = coll_encode(c->collation, ' ', space);
    for (size_t i = from; i + n <= c->pack_length; i += n)
        memcpy(p + i, space, n);
}

static enum store_result store_string(struct arena *a, const struct column *c, uint8_t *p,
                                      const struct value *v)
{
    struct value text;
    enum store_result result = to_column_text(a, c, v, &text);
    const uint8_t *s = (const uint8_t *)text.s.ptr;
    size_t keep = coll_prefix(c->collation, s, text.s.len, c->char_length);
    if (keep < text.s.len && result == ST_OK) {
        bool blanks = !coll_is_binary(c->collation) &&
                      only_spaces(c->collation, s + keep, text.s.len - keep);
        result = !blanks ? ST_TOO_LONG : c->type == CT_CHAR ? ST_OK : ST_TRUNCATED_NOTE;
    }
    if (c->type == CT_CHAR || c->type == CT_BINARY) {
        memcpy(p, s, keep);
        pad(c, p, keep);
        return result;
    }
    put_le(p, keep, c->length_bytes);
    if (keep)
        memcpy(p + c->length_bytes, s, keep);
    return result;
}

static enum store_result store_blob(struct arena *a, const struct column *c, uint8_t *row,
                                    const struct value *v)
{
    struct value text;
    enum store_result result = to_column_text(a, c, v, &text);
    uint64_t max = c->length_bytes == 4 ? UINT32_MAX : ((uint64_t)1 << (8 * c->length_bytes)) - 1;
    size_t len = text.s.len;
    if (len > max) {
        len = max;
        while (len && coll_well_formed(c->collation, (const uint8_t *)text.s.ptr, len) < len)
            len--;
        result = ST_TOO_LONG;
    }
    char *copy = arena_strndup(a, text.s.ptr, len); /* the source may be a row that changes */
    rec_set_blob(c, row, (const uint8_t *)copy, (uint32_t)len);
    return result;
}

/* Position (from 1) of an ENUM or SET member; 0 = none. */
static uint32_t member(const struct column *c, const uint8_t *s, size_t len)
{
    for (uint32_t i = 0; i < c->value_count; i++)
        if (coll_compare(c->collation, (const uint8_t *)c->values[i], c->value_lens[i], s, len,
                         coll_pads(c->collation)) == 0)
            return i + 1;
    return 0;
}

static enum store_result store_enum(struct arena *a, const struct column *c, uint8_t *p,
                                    const struct value *v)
{
    uint64_t n = 0;
    bool known = true, ok;
    if (v->kind == V_STRING && !v->from_hex) {
        struct value text;
        char digits[32], *end;
        to_column_text(a, c, v, &text);
        n = member(c, (const uint8_t *)text.s.ptr, text.s.len);
        if (!n && ascii_text(v, digits, sizeof digits) && isdigit((unsigned char)digits[0])) {
            n = strtoul(digits, &end, 10);
            if (*end)
                n = 0;
        }
        known = n > 0 && n <= c->value_count;
    } else {
        n = (uint64_t)value_to_int(v, &ok);
        known = ok && n <= c->value_count && n > 0;
    }
    put_le(p, known ? n : 0, c->pack_length);
    return known ? ST_OK : ST_TRUNCATED;
}

static enum store_result store_set(struct arena *a, const struct column *c, uint8_t *p,
                                   const struct value *v)
{
    uint64_t bits = 0;
    bool ok = true;
    uint64_t all = c->value_count == 64 ? UINT64_MAX : ((uint64_t)1 << c->value_count) - 1;
    if (v->kind != V_STRING || v->from_hex) {
        bits = v->kind == V_UINT ? v->u : (uint64_t)value_to_int(v, &ok);
        put_le(p, bits & all, c->pack_length);
        return ok && !(bits & ~all) ? ST_OK : ST_TRUNCATED;
    }
    struct value text;
    to_column_text(a, c, v, &text);
    const uint8_t *s = (const uint8_t *)text.s.ptr;
    size_t start = 0, pos = 0;
    while (text.s.len && pos <= text.s.len) {
        uint32_t code = 0;
        unsigned n = pos < text.s.len ? coll_decode(c->collation, s + pos, text.s.len - pos, &code) : 0;
        if (pos == text.s.len || code == ',') {
            uint32_t m = member(c, s + start, pos - start);
            if (m)
                bits |= (uint64_t)1 << (m - 1);
            else
                ok = false;
            start = pos + (n ? n : 1);
        }
        pos += n ? n : 1;
    }
    put_le(p, bits, c->pack_length);
    return ok ? ST_OK : ST_TRUNCATED;
}

static enum store_result store_bit(const struct column *c, uint8_t *p, const struct value *v)
{
    uint8_t number[8];
    const uint8_t *s = number;
    size_t len = 8;
    if (v->kind == V_STRING) {
        s = (const uint8_t *)v->s.ptr;
        len = v->s.len;
    } else {
        bool ok;
        uint64_t u = v->kind == V_UINT ? v->u : (uint64_t)value_to_int(v, &ok);
        for (unsigned i = 0; i < 8; i++)
            number[i] = (uint8_t)(u >> (8 * (7 - i)));
    }
    while (len && *s == 0) {
        s++;
        len--;
    }
    unsigned top = c->length % 8 ? c->length % 8 : 8; /* bits in the first byte */
    bool fits = len < c->pack_length || (len == c->pack_length && (top == 8 || s[0] >> top == 0));
    memset(p, 0, c->pack_length);
    if (fits) {
        memcpy(p + c->pack_length - len, s, len);
        return ST_OK;
    }
    memset(p, 0xFF, c->pack_length);
    if (top < 8)
        p[0] = (uint8_t)((1u << top) - 1);
    return ST_TOO_LONG;
}

static enum store_result store_address(const struct column *c, uint8_t *p, const struct value *v)
{
    uint8_t bytes[16] = {0};
    bool ok = false;
    if (v->kind == V_STRING) {
        const char *s = v->s.ptr;
        bool raw = coll_is_binary(v->collation) && v->s.len == c->pack_length;
        if (raw)
            memcpy(bytes, s, c->pack_length);
        ok = raw || (c->type == CT_UUID    ? uuid_parse(s, v->s.len, bytes)
                     : c->type == CT_INET4 ? inet4_parse(s, v->s.len, bytes)
                                           : inet6_parse(s, v->s.len, bytes));
    }
    if (!ok)
        memset(bytes, 0, sizeof bytes);
    if (c->type == CT_UUID)
        uuid_to_stored(bytes, p);
    else
        memcpy(p, bytes, c->pack_length);
    return ok ? ST_OK : ST_BAD_TEMPORAL; /* 1292 as well */
}

enum store_result value_store(struct arena *a, const struct column *c, uint8_t *row,
                              const struct value *v, int zone_seconds)
{
    uint8_t *p = row + c->offset;
    if (v->kind == V_NULL) {
        if (!c->null_mask)
            return ST_BAD_NULL;
        rec_set_null(c, row, true);
        return ST_OK;
    }
    rec_set_null(c, row, false);
    switch (c->type) {
    case CT_FLOAT:
    case CT_DOUBLE: return store_real(c, p, v);
    case CT_DECIMAL: return store_decimal(c, p, v);
    case CT_YEAR: return store_year(p, v);
    case CT_DATE:
    case CT_TIME:
    case CT_DATETIME:
    case CT_TIMESTAMP: return store_temporal(c, p, v, zone_seconds);
    case CT_CHAR:
    case CT_BINARY:
    case CT_VARCHAR:
    case CT_VARBINARY: return store_string(a, c, p, v);
    case CT_TEXT:
    case CT_BLOB:
    case CT_JSON:
    case CT_GEOMETRY: return store_blob(a, c, row, v);
    case CT_ENUM: return store_enum(a, c, p, v);
    case CT_SET: return store_set(a, c, p, v);
    case CT_BIT: return store_bit(c, p, v);
    case CT_UUID:
    case CT_INET4:
    case CT_INET6: return store_address(c, p, v);
    default: return store_integer(c, p, v);
    }
}
