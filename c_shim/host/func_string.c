/* String functions. */
#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <wctype.h>

#include "charset.h"
#include "digest.h"
#include "func.h"

#define FN(name)                                                                                   \
    static struct value name(struct scope *sc, const struct expr *e, struct value *args,           \
                             uint32_t count)
#define UNUSED_ARGS (void)sc, (void)e, (void)args, (void)count

enum { STRING_MAX = 64 << 20 };

static struct value made(char *text, size_t len, uint32_t collation)
{
    return value_string(text, len, collation);
}

static struct value ascii(struct scope *sc, const char *text, size_t len)
{
    return value_string(arena_strndup(&sc->s->arena, text, len), len, COLL_UTF8MB4);
}

/* The collation of a result made of several strings: binary wins, else a column's, else the first. */
static uint32_t result_collation(const struct value *args, uint32_t count)
{
    uint32_t collation = 0;
    bool literal = true;
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].kind != V_STRING)
            continue;
        if (coll_is_binary(args[i].collation))
            return COLL_BINARY;
        if (!collation || (literal && !args[i].literal)) {
            collation = args[i].collation;
            literal = args[i].literal;
        }
    }
    return collation ? collation : COLL_UTF8MB4;
}

/* Argument as text in the result's character set. A narrow result takes wider arguments as utf8mb4. */
static struct value in_collation(struct scope *sc, const struct value *v, uint32_t collation)
{
    bool lossy = false;
    struct value t = func_text(sc, v);
    return value_convert(&sc->s->arena, &t, collation, &lossy);
}

static bool is_ascii(const struct value *v)
{
    for (size_t i = 0; i < v->s.len; i++)
        if ((unsigned char)v->s.ptr[i] >= 0x80)
            return false;
    return true;
}

/* Where conversion would lose characters, utf8mb4 holds them all. */
static uint32_t common_collation(struct scope *sc, const struct value *args, uint32_t count)
{
    uint32_t collation = result_collation(args, count);
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].kind != V_STRING || coll_same_charset(args[i].collation, collation))
            continue;
        bool lossy = false;
        value_convert(&sc->s->arena, &args[i], collation, &lossy);
        if (lossy && !is_ascii(&args[i]))
            return COLL_UTF8MB4;
    }
    return collation;
}

static struct value join(struct scope *sc, struct value *args, uint32_t count,
                         const struct value *separator)
{
    uint32_t collation = common_collation(sc, args, count);
    size_t len = 0;
    for (uint32_t i = 0; i < count; i++) {
        args[i] = in_collation(sc, &args[i], collation);
        len += args[i].s.len + (separator && i ? separator->s.len : 0);
    }
    char *out = (char *)arena_bytes(&sc->s->arena, len + 1), *p = out;
    for (uint32_t i = 0; i < count; i++) {
        if (separator && i) {
            memcpy(p, separator->s.ptr, separator->s.len);
            p += separator->s.len;
        }
        memcpy(p, args[i].s.ptr, args[i].s.len);
        p += args[i].s.len;
    }
    return made(out, len, collation);
}

FN(fn_concat)
{
    UNUSED_ARGS;
    return join(sc, args, count, NULL);
}

FN(fn_concat_ws)
{
    UNUSED_ARGS;
    if (args[0].kind == V_NULL)
        return value_null();
    struct value separator = func_text(sc, &args[0]);
    uint32_t kept = 0;
    for (uint32_t i = 1; i < count; i++)
        if (args[i].kind != V_NULL)
            args[kept++] = args[i];
    return join(sc, args, kept, &separator);
}

FN(fn_repeat)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    int64_t n = func_int(&args[1]);
    if (n <= 0 || !t.s.len)
        return made("", 0, t.collation);
    if ((uint64_t)n > STRING_MAX / t.s.len)
        return value_null();
    size_t len = t.s.len * (size_t)n;
    char *out = (char *)arena_bytes(&sc->s->arena, len + 1);
    for (size_t i = 0; i < len; i += t.s.len)
        memcpy(out + i, t.s.ptr, t.s.len);
    return made(out, len, t.collation);
}

FN(fn_space)
{
    UNUSED_ARGS;
    int64_t n = func_int(&args[0]);
    if (n < 0 || n > STRING_MAX)
        n = 0;
    char *out = (char *)arena_bytes(&sc->s->arena, (size_t)n + 1);
    memset(out, ' ', (size_t)n);
    return made(out, (size_t)n, COLL_UTF8MB4);
}

FN(fn_length)
{
    UNUSED_ARGS;
    return value_int((int64_t)func_text(sc, &args[0]).s.len);
}

FN(fn_char_length)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    return value_int((int64_t)coll_char_count(t.collation, (const uint8_t *)t.s.ptr, t.s.len));
}

static struct value hex_text(struct scope *sc, const uint8_t *p, size_t len, const char *digits)
{
    char *out = (char *)arena_bytes(&sc->s->arena, 2 * len + 1);
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    return made(out, 2 * len, COLL_UTF8MB4);
}

FN(fn_hex)
{
    UNUSED_ARGS;
    char text[24];
    bool bits = args[0].kind == V_STRING && args[0].from_hex && !args[0].literal; /* a BIT column */
    if (!bits && (args[0].kind == V_STRING || args[0].kind == V_TEMPORAL)) {
        struct value t = func_text(sc, &args[0]);
        return hex_text(sc, (const uint8_t *)t.s.ptr, t.s.len, "0123456789ABCDEF");
    }
    uint64_t u = args[0].kind == V_UINT ? args[0].u : (uint64_t)func_int(&args[0]);
    return ascii(sc, text, (size_t)sprintf(text, "%llX", (unsigned long long)u));
}

FN(fn_unhex)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    uint8_t *out = arena_alloc(&sc->s->arena, t.s.len / 2 + 2);
    size_t n = t.s.len % 2; /* an odd number of digits has a zero before it */
    for (size_t i = 0; i < t.s.len; i++, n++) {
        int c = tolower((unsigned char)t.s.ptr[i]);
        if (!isxdigit(c))
            return value_null();
        unsigned digit = (unsigned)(isdigit(c) ? c - '0' : c - 'a' + 10);
        out[n / 2] = (uint8_t)(out[n / 2] << 4 | digit);
    }
    return made((char *)out, n / 2, COLL_BINARY);
}

FN(fn_md5)
{
    UNUSED_ARGS;
    uint8_t digest[16];
    struct value t = func_text(sc, &args[0]);
    md5_digest((const uint8_t *)t.s.ptr, t.s.len, digest);
    return hex_text(sc, digest, 16, "0123456789abcdef");
}

FN(fn_crc32)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    return value_uint(crc32_digest((const uint8_t *)t.s.ptr, t.s.len));
}

static struct value pad(struct scope *sc, struct value *args, uint32_t count, bool left)
{
    struct value t = func_text(sc, &args[0]);
    struct value with = count > 2 ? in_collation(sc, &args[2], t.collation)
                                  : value_string(" ", 1, t.collation);
    int64_t want = func_int(&args[1]);
    if (want < 0 || want > STRING_MAX)
        return value_null();
    const uint8_t *s = (const uint8_t *)t.s.ptr, *w = (const uint8_t *)with.s.ptr;
    size_t have = coll_char_count(t.collation, s, t.s.len), chars = (size_t)want;
    if (have >= chars)
        return made((char *)(uintptr_t)t.s.ptr, coll_prefix(t.collation, s, t.s.len, chars), t.collation);
    size_t unit = coll_char_count(t.collation, w, with.s.len), missing = chars - have;
    if (!unit)
        return value_null();
    char *out = (char *)arena_bytes(&sc->s->arena, t.s.len + (missing / unit + 1) * with.s.len + 1);
    size_t n = 0;
    if (!left)
        memcpy(out, t.s.ptr, n = t.s.len);
    for (; missing >= unit; missing -= unit, n += with.s.len)
        memcpy(out + n, with.s.ptr, with.s.len);
    size_t rest = coll_prefix(t.collation, w, with.s.len, missing);
    memcpy(out + n, with.s.ptr, rest);
    n += rest;
    if (left) {
        memcpy(out + n, t.s.ptr, t.s.len);
        n += t.s.len;
    }
    return made(out, n, t.collation);
}

FN(fn_lpad)
{
    UNUSED_ARGS;
    return pad(sc, args, count, true);
}

FN(fn_rpad)
{
    UNUSED_ARGS;
    return pad(sc, args, count, false);
}

/* `chars` characters from character `from` (0-based). */
static struct value slice(const struct value *t, size_t from, size_t chars)
{
    const uint8_t *s = (const uint8_t *)t->s.ptr;
    size_t skip = coll_prefix(t->collation, s, t->s.len, from);
    size_t len = coll_prefix(t->collation, s + skip, t->s.len - skip, chars);
    struct value r = *t;
    r.s.ptr += skip;
    r.s.len = len;
    return r;
}

FN(fn_left)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    int64_t n = func_int(&args[1]);
    return slice(&t, 0, n > 0 ? (size_t)n : 0);
}

FN(fn_right)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    int64_t n = func_int(&args[1]);
    int64_t have = (int64_t)coll_char_count(t.collation, (const uint8_t *)t.s.ptr, t.s.len);
    n = n < 0 ? 0 : n > have ? have : n;
    return slice(&t, (size_t)(have - n), (size_t)n);
}

FN(fn_substring)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    int64_t from = func_int(&args[1]), n = count > 2 ? func_int(&args[2]) : INT64_MAX;
    int64_t have = (int64_t)coll_char_count(t.collation, (const uint8_t *)t.s.ptr, t.s.len);
    if (from < 0)
        from += have + 1;
    if (from <= 0 || n <= 0)
        return made("", 0, t.collation);
    return slice(&t, (size_t)from - 1, (size_t)n);
}

static locale_t case_locale;

__attribute__((constructor)) static void load_case_locale(void)
{
    case_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
}

static struct value change_case(struct scope *sc, const struct value *v, bool upper)
{
    struct value t = func_text(sc, v);
    if (coll_is_binary(t.collation))
        return t;
    uint8_t *out = arena_bytes(&sc->s->arena, 4 * t.s.len + 4);
    size_t n = 0;
    for (size_t p = 0; p < t.s.len;) {
        uint32_t code;
        unsigned used = coll_decode(t.collation, (const uint8_t *)t.s.ptr + p, t.s.len - p, &code), made = 0;
        if (used && (case_locale || code < 128)) {
            wint_t c = (wint_t)code;
            c = code < 128 ? (wint_t)(upper ? toupper((int)code) : tolower((int)code))
                : upper    ? towupper_l(c, case_locale)
                           : towlower_l(c, case_locale);
            made = coll_encode(t.collation, (uint32_t)c, out + n);
        }
        if (!made) { /* malformed, or the other case is not in the character set */
            made = used ? used : 1;
            memcpy(out + n, t.s.ptr + p, made);
        }
        n += made;
        p += used ? used : 1;
    }
    t.s.ptr = (char *)out;
    t.s.len = n;
    return t;
}

FN(fn_upper)
{
    UNUSED_ARGS;
    return change_case(sc, &args[0], true);
}

FN(fn_lower)
{
    UNUSED_ARGS;
    return change_case(sc, &args[0], false);
}

static struct value trim(struct scope *sc, const struct value *v, bool left, bool right)
{
    struct value t = func_text(sc, v);
    while (right && t.s.len && t.s.ptr[t.s.len - 1] == ' ')
        t.s.len--;
    while (left && t.s.len && *t.s.ptr == ' ') {
        t.s.ptr++;
        t.s.len--;
    }
    return t;
}

FN(fn_trim)
{
    UNUSED_ARGS;
    return trim(sc, &args[0], true, true);
}

FN(fn_ltrim)
{
    UNUSED_ARGS;
    return trim(sc, &args[0], true, false);
}

FN(fn_rtrim)
{
    UNUSED_ARGS;
    return trim(sc, &args[0], false, true);
}

FN(fn_replace)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    struct value from = in_collation(sc, &args[1], t.collation), to = in_collation(sc, &args[2], t.collation);
    struct strbuf b = {0};
    if (!from.s.len)
        return t;
    for (size_t i = 0; i < t.s.len;) {
        bool hit = t.s.len - i >= from.s.len && !memcmp(t.s.ptr + i, from.s.ptr, from.s.len);
        if (b.len + (hit ? to.s.len : 1) > STRING_MAX) {
            buf_free(&b);
            return value_null();
        }
        buf_add(&b, hit ? to.s.ptr : t.s.ptr + i, hit ? to.s.len : 1);
        i += hit ? from.s.len : 1;
    }
    t.s.ptr = arena_strndup(&sc->s->arena, b.data ? b.data : "", b.len);
    t.s.len = b.len;
    buf_free(&b);
    return t;
}

FN(fn_reverse)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    char *out = (char *)arena_bytes(&sc->s->arena, t.s.len + 1);
    size_t end = t.s.len;
    for (size_t p = 0; p < t.s.len;) {
        uint32_t code;
        unsigned n = coll_decode(t.collation, (const uint8_t *)t.s.ptr + p, t.s.len - p, &code);
        n = n ? n : 1;
        end -= n;
        memcpy(out + end, t.s.ptr + p, n);
        p += n;
    }
    t.s.ptr = out;
    return t;
}

/* CHAR(n, …): the numbers' bytes, big-endian. */
FN(fn_char)
{
    UNUSED_ARGS;
    uint8_t *out = arena_bytes(&sc->s->arena, 4 * count + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].kind == V_NULL)
            continue;
        uint32_t v = (uint32_t)func_int(&args[i]);
        for (int shift = 24; shift >= 0; shift -= 8)
            if (v >> shift || !shift)
                out[n++] = (uint8_t)(v >> shift);
    }
    return made((char *)out, n, e->collation ? e->collation : COLL_BINARY);
}

FN(fn_ascii)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    return value_int(t.s.len ? (unsigned char)t.s.ptr[0] : 0);
}

FN(fn_instr)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    struct value find = in_collation(sc, &args[1], t.collation);
    const uint8_t *s = (const uint8_t *)t.s.ptr;
    for (size_t i = 0; i + find.s.len <= t.s.len; i++)
        if (!coll_compare(t.collation, s + i, find.s.len, (const uint8_t *)find.s.ptr, find.s.len, false))
            return value_int((int64_t)coll_char_count(t.collation, s, i) + 1);
    return value_int(0);
}

FN(fn_locate)
{
    struct value swapped[2] = {args[1], args[0]};
    return fn_instr(sc, e, swapped, count);
}

FN(fn_strcmp)
{
    UNUSED_ARGS;
    struct value a = func_text(sc, &args[0]), b = func_text(sc, &args[1]);
    int c = value_compare(&a, &b);
    return value_int(c < 0 ? -1 : c > 0);
}

FN(fn_elt)
{
    UNUSED_ARGS;
    int64_t n = args[0].kind == V_NULL ? 0 : func_int(&args[0]);
    return n >= 1 && n < count ? args[n] : value_null();
}

FN(fn_weight_string)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    static const uint8_t bytes[] = {[ORDER_BYTES] = 1, [ORDER_TABLE] = 1, [ORDER_GENERAL] = 2,
                                    [ORDER_UNICODE] = 2, [ORDER_CODE] = 3};
    const struct collation_info *info = coll_info(t.collation);
    size_t room = coll_char_count(t.collation, (const uint8_t *)t.s.ptr, t.s.len) *
                  (info ? bytes[info->order] : 1);
    uint8_t *out = arena_bytes(&sc->s->arena, room + 1);
    size_t n = coll_sort_key(t.collation, (const uint8_t *)t.s.ptr, t.s.len, out, room);
    return made((char *)out, n, COLL_BINARY);
}

const struct function string_functions[] = {
    {"CONCAT", fn_concat, 1, 64, 0},
    {"CONCAT_WS", fn_concat_ws, 2, 64, FUNC_NULL_OK},
    {"REPEAT", fn_repeat, 2, 2, 0},
    {"SPACE", fn_space, 1, 1, 0},
    {"LENGTH", fn_length, 1, 1, 0},
    {"OCTET_LENGTH", fn_length, 1, 1, 0},
    {"CHAR_LENGTH", fn_char_length, 1, 1, 0},
    {"CHARACTER_LENGTH", fn_char_length, 1, 1, 0},
    {"HEX", fn_hex, 1, 1, 0},
    {"UNHEX", fn_unhex, 1, 1, 0},
    {"MD5", fn_md5, 1, 1, 0},
    {"CRC32", fn_crc32, 1, 1, 0},
    {"LPAD", fn_lpad, 2, 3, 0},
    {"RPAD", fn_rpad, 2, 3, 0},
    {"LEFT", fn_left, 2, 2, 0},
    {"RIGHT", fn_right, 2, 2, 0},
    {"SUBSTRING", fn_substring, 2, 3, 0},
    {"SUBSTR", fn_substring, 2, 3, 0},
    {"MID", fn_substring, 2, 3, 0},
    {"UPPER", fn_upper, 1, 1, 0},
    {"UCASE", fn_upper, 1, 1, 0},
    {"LOWER", fn_lower, 1, 1, 0},
    {"LCASE", fn_lower, 1, 1, 0},
    {"TRIM", fn_trim, 1, 1, 0},
    {"LTRIM", fn_ltrim, 1, 1, 0},
    {"RTRIM", fn_rtrim, 1, 1, 0},
    {"REPLACE", fn_replace, 3, 3, 0},
    {"REVERSE", fn_reverse, 1, 1, 0},
    {"CHAR", fn_char, 1, 64, FUNC_NULL_OK},
    {"CHR", fn_char, 1, 1, FUNC_NULL_OK},
    {"ASCII", fn_ascii, 1, 1, 0},
    {"ORD", fn_ascii, 1, 1, 0},
    {"INSTR", fn_instr, 2, 2, 0},
    {"LOCATE", fn_locate, 2, 2, 0},
    {"STRCMP", fn_strcmp, 2, 2, 0},
    {"ELT", fn_elt, 2, 64, FUNC_NULL_OK},
    {"WEIGHT_STRING", fn_weight_string, 1, 1, 0},
    {NULL, NULL, 0, 0, 0},
};
