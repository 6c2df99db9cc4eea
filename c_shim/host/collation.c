/* Character sets and collations of the host.
 *
 * Everything here is pure, allocation-free and non-blocking: the engine calls compare, sort key and
 * prefix while pages are latched. The weight tables were read out of a stock server
 * (gen_collations.py), so that indexes have the order that the stock server gives them. They are
 * expanded once, before main runs. */
#include "charset.h"

#include <string.h>
#include <strings.h>

#include "value.h"

#include "coll_bytes.inc"
#define BYTE_WEIGHTS(id, ...) static const uint8_t weights_##id[256] = {__VA_ARGS__};
#include "coll_bytes8.inc"
#define weights_0 NULL

static const uint16_t general_pairs[] = {
#include "coll_general.inc"
};
static const uint16_t unicode_runs[] = {
#include "coll_unicode_1.inc"
#include "coll_unicode_2.inc"
};

static uint16_t general_weight[65536];
/* Offset in unicode_runs of the weights of a character, 0 = implicit; the count is in the run. */
static uint32_t unicode_at[65536];
static uint8_t unicode_count[65536];

__attribute__((constructor)) static void expand_tables(void)
{
    for (unsigned c = 0; c < 65536; c++)
        general_weight[c] = (uint16_t)c;
    for (size_t i = 0; i + 1 < sizeof general_pairs / sizeof *general_pairs; i += 2)
        general_weight[general_pairs[i]] = general_pairs[i + 1];
    size_t n = sizeof unicode_runs / sizeof *unicode_runs;
    for (size_t i = 0; i + 1 < n;) {
        unsigned c = unicode_runs[i], count = unicode_runs[i + 1];
        i += 2;
        for (; count; count--, c++) {
            unsigned weights = 1;
            if (unicode_runs[i] >= 0xFFF0 && unicode_runs[i] <= 0xFFF8)
                weights = unicode_runs[i++] - 0xFFF0u;
            unicode_at[c] = (uint32_t)i | 0x80000000u;
            unicode_count[c] = (uint8_t)weights;
            i += weights;
        }
    }
}

static const struct collation_info collations[] = {
    {63, "binary", CS_BINARY, ORDER_BYTES, NULL},
    {8, "latin1_swedish_ci", CS_LATIN1, ORDER_TABLE, weights_8},
    {47, "latin1_bin", CS_LATIN1, ORDER_BYTES, NULL},
    {5, "latin1_german1_ci", CS_LATIN1, ORDER_TABLE, weights_5},
    {15, "latin1_danish_ci", CS_LATIN1, ORDER_TABLE, weights_15},
    {48, "latin1_general_ci", CS_LATIN1, ORDER_TABLE, weights_48},
    {49, "latin1_general_cs", CS_LATIN1, ORDER_TABLE, weights_49},
    {94, "latin1_spanish_ci", CS_LATIN1, ORDER_TABLE, weights_94},
    {1032, "latin1_swedish_nopad_ci", CS_LATIN1, ORDER_TABLE, weights_8},
    {1071, "latin1_nopad_bin", CS_LATIN1, ORDER_BYTES, NULL},
    {11, "ascii_general_ci", CS_ASCII, ORDER_TABLE, weights_11},
    {65, "ascii_bin", CS_ASCII, ORDER_BYTES, NULL},
    {1035, "ascii_general_nopad_ci", CS_ASCII, ORDER_TABLE, weights_11},
    {1089, "ascii_nopad_bin", CS_ASCII, ORDER_BYTES, NULL},
    {33, "utf8mb3_general_ci", CS_UTF8MB3, ORDER_GENERAL, NULL},
    {83, "utf8mb3_bin", CS_UTF8MB3, ORDER_CODE, NULL},
    {192, "utf8mb3_unicode_ci", CS_UTF8MB3, ORDER_UNICODE, NULL},
    {1057, "utf8mb3_general_nopad_ci", CS_UTF8MB3, ORDER_GENERAL, NULL},
    {1107, "utf8mb3_nopad_bin", CS_UTF8MB3, ORDER_CODE, NULL},
    {1216, "utf8mb3_unicode_nopad_ci", CS_UTF8MB3, ORDER_UNICODE, NULL},
    {45, "utf8mb4_general_ci", CS_UTF8MB4, ORDER_GENERAL, NULL},
    {46, "utf8mb4_bin", CS_UTF8MB4, ORDER_CODE, NULL},
    {224, "utf8mb4_unicode_ci", CS_UTF8MB4, ORDER_UNICODE, NULL},
    {1069, "utf8mb4_general_nopad_ci", CS_UTF8MB4, ORDER_GENERAL, NULL},
    {1070, "utf8mb4_nopad_bin", CS_UTF8MB4, ORDER_CODE, NULL},
    {1248, "utf8mb4_unicode_nopad_ci", CS_UTF8MB4, ORDER_UNICODE, NULL},
    {35, "ucs2_general_ci", CS_UCS2, ORDER_GENERAL, NULL},
    {90, "ucs2_bin", CS_UCS2, ORDER_CODE, NULL},
    {128, "ucs2_unicode_ci", CS_UCS2, ORDER_UNICODE, NULL},
    {54, "utf16_general_ci", CS_UTF16, ORDER_GENERAL, NULL},
    {55, "utf16_bin", CS_UTF16, ORDER_CODE, NULL},
    {101, "utf16_unicode_ci", CS_UTF16, ORDER_UNICODE, NULL},
    {56, "utf16le_general_ci", CS_UTF16LE, ORDER_GENERAL, NULL},
    {62, "utf16le_bin", CS_UTF16LE, ORDER_CODE, NULL},
    {60, "utf32_general_ci", CS_UTF32, ORDER_GENERAL, NULL},
    {61, "utf32_bin", CS_UTF32, ORDER_CODE, NULL},
    {160, "utf32_unicode_ci", CS_UTF32, ORDER_UNICODE, NULL},
#define BYTE_COLLATION(id, name, set, weights) \
    {id, name, CS_##set, weights ? ORDER_TABLE : ORDER_BYTES, weights_##weights},
#include "coll_bytes8.inc"
};
enum { COLLATION_COUNT = sizeof collations / sizeof *collations };

/* Position in `collations` plus 1, by number; 0 = unknown. */
static uint8_t place_of[2048];

__attribute__((constructor)) static void number_collations(void)
{
    for (unsigned i = 0; i < COLLATION_COUNT; i++)
        place_of[collations[i].id] = (uint8_t)(i + 1);
}

const struct collation_info *coll_info(uint32_t id)
{
    return id < 2048 && place_of[id] ? &collations[place_of[id] - 1] : NULL;
}

/* For calls on rows: an unknown number compares as bytes. */
static const struct collation_info *info_of(uint32_t id)
{
    const struct collation_info *c = coll_info(id);
    return c ? c : &collations[0];
}

const struct collation_info *coll_info_at(unsigned i)
{
    return i < COLLATION_COUNT ? &collations[i] : NULL;
}

bool coll_pads(uint32_t id)
{
    return id != COLL_BINARY && id < 1024;
}

/* The weights of a string, one after the other. */
struct cursor {
    const struct collation_info *info;
    const uint8_t *p, *end;
    const uint16_t *more;   /* weights left of the character read last */
    unsigned more_count;
    uint16_t implicit;      /* second word of an implicit weight, 0 = none */
};

static int32_t unicode_next(struct cursor *c, uint32_t code)
{
    if (code > 0xFFFF)
        return 0xFFFD;
    if (unicode_at[code]) {
        c->more = unicode_runs + (unicode_at[code] & 0x7FFFFFFF);
        c->more_count = unicode_count[code];
        return -2; /* take it from the list */
    }
    unsigned base = code >= 0x4E00 && code <= 0x9FA5   ? 0xFB40
                    : code >= 0x3400 && code <= 0x4DB5 ? 0xFB80
                                                       : 0xFBC0;
    c->implicit = (uint16_t)((code & 0x7FFF) | 0x8000);
    return (int32_t)(base + (code >> 15));
}

/* The next weight, -1 at the end. */
static int32_t weight_next(struct cursor *c)
{
    for (;;) {
        if (c->more_count) {
            c->more_count--;
            uint16_t w = *c->more++;
            if (w)
                return w;
            continue;
        }
        if (c->implicit) {
            int32_t w = c->implicit;
            c->implicit = 0;
            return w;
        }
        if (c->p >= c->end)
            return -1;
        if (c->info->order == ORDER_BYTES)
            return *c->p++;
        if (c->info->order == ORDER_TABLE)
            return c->info->table[*c->p++];
        uint32_t code;
        unsigned n = charset_decode(c->info->charset, c->p, (size_t)(c->end - c->p), &code);
        if (!n)
            return 0xFF0000 + *c->p++; /* malformed: after every character */
        c->p += n;
        if (c->info->order == ORDER_CODE)
            return (int32_t)code;
        if (c->info->order == ORDER_GENERAL)
            return code > 0xFFFF ? 0xFFFD : general_weight[code];
        int32_t w = unicode_next(c, code);
        if (w != -2)
            return w;
    }
}

static int32_t space_weight(const struct collation_info *info)
{
    if (info->order == ORDER_TABLE)
        return info->table[' '];
    return info->order == ORDER_UNICODE ? unicode_runs[unicode_at[' '] & 0x7FFFFFFF] : ' ';
}

static int compare_bytes(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
    size_t n = a_len < b_len ? a_len : b_len;
    int c = n ? memcmp(a, b, n) : 0;
    return c ? c : a_len < b_len ? -1 : a_len > b_len;
}

int coll_compare(uint32_t collation, const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
                 bool pad_space)
{
    const struct collation_info *info = info_of(collation);
    if (info->order == ORDER_BYTES && !pad_space)
        return compare_bytes(a, a_len, b, b_len);
    struct cursor x = {.info = info, .p = a, .end = a + a_len};
    struct cursor y = {.info = info, .p = b, .end = b + b_len};
    for (;;) {
        int32_t v = weight_next(&x), w = weight_next(&y);
        if (v < 0 && w < 0)
            return 0;
        if (pad_space && v < 0)
            v = space_weight(info);
        if (pad_space && w < 0)
            w = space_weight(info);
        if (v != w)
            return v < w ? -1 : 1;
    }
}

size_t coll_sort_key(uint32_t collation, const uint8_t *s, size_t len, uint8_t *out, size_t out_size)
{
    const struct collation_info *info = info_of(collation);
    struct cursor c = {.info = info, .p = s, .end = s + len};
    unsigned bytes = info->order == ORDER_CODE ? 3 : info->order >= ORDER_GENERAL ? 2 : 1;
    bool pad = coll_pads(collation);
    int32_t space = space_weight(info);
    size_t n = 0;
    while (n + bytes <= out_size) {
        int32_t w = weight_next(&c);
        if (w < 0 && !pad)
            break;
        if (w < 0)
            w = space; /* up to the full size: "a" sorts after "a<tab>" */
        if (w > 0xFFFF && bytes == 2)
            w = 0xFFFF;
        for (unsigned b = bytes; b-- > 0;)
            out[n++] = (uint8_t)(w >> (8 * b));
    }
    return n;
}

uint32_t coll_mbminlen(uint32_t collation)
{
    return charset_minlen(info_of(collation)->charset);
}

uint32_t coll_mbmaxlen(uint32_t collation)
{
    return charset_maxlen(info_of(collation)->charset);
}

size_t coll_prefix(uint32_t collation, const uint8_t *s, size_t len, size_t chars)
{
    enum charset cs = info_of(collation)->charset;
    if (charset_maxlen(cs) == 1)
        return len < chars ? len : chars;
    size_t p = 0;
    for (; chars && p < len; chars--) {
        uint32_t code;
        unsigned n = charset_decode(cs, s + p, len - p, &code);
        p += n ? n : 1;
    }
    return p < len ? p : len;
}

size_t coll_char_count(uint32_t collation, const uint8_t *s, size_t len)
{
    enum charset cs = info_of(collation)->charset;
    if (charset_maxlen(cs) == 1)
        return len;
    size_t p = 0, count = 0;
    for (; p < len; count++) {
        uint32_t code;
        unsigned n = charset_decode(cs, s + p, len - p, &code);
        p += n ? n : 1;
    }
    return count;
}

size_t coll_well_formed(uint32_t collation, const uint8_t *s, size_t len)
{
    enum charset cs = info_of(collation)->charset;
    for (size_t p = 0; p < len;) {
        uint32_t code;
        unsigned n = charset_decode(cs, s + p, len - p, &code);
        if (!n)
            return p;
        p += n;
    }
    return len;
}

unsigned coll_decode(uint32_t collation, const uint8_t *s, size_t len, uint32_t *code)
{
    return charset_decode(info_of(collation)->charset, s, len, code);
}

unsigned coll_encode(uint32_t collation, uint32_t code, uint8_t *out)
{
    return charset_encode(info_of(collation)->charset, code, out);
}

/* True when two characters (their bytes) count as equal. */
static bool same_char(uint32_t collation, const uint8_t *a, unsigned a_len, const uint8_t *b,
                      unsigned b_len)
{
    return coll_compare(collation, a, a_len, b, b_len, false) == 0;
}

static unsigned char_length(uint32_t collation, const uint8_t *s, size_t len, uint32_t *code)
{
    unsigned n = coll_decode(collation, s, len, code);
    if (!n) {
        *code = 0xFFFFFFFF;
        n = 1;
    }
    return n;
}

bool coll_like(uint32_t collation, const uint8_t *s, size_t s_len, const uint8_t *p, size_t p_len,
               uint32_t escape)
{
    size_t i = 0, j = 0, star_i = 0, star_j = SIZE_MAX;
    while (i < s_len || j < p_len) {
        uint32_t pc = 0, sc = 0;
        if (j < p_len) {
            unsigned pn = char_length(collation, p + j, p_len - j, &pc);
            if (pc == '%') {
                star_j = j + pn;
                star_i = i;
                j += pn;
                continue;
            }
            if (i < s_len) {
                unsigned sn = char_length(collation, s + i, s_len - i, &sc);
                bool literal = pc == escape && j + pn < p_len;
                size_t at = literal ? j + pn : j;
                unsigned n = literal ? char_length(collation, p + at, p_len - at, &pc) : pn;
                if ((!literal && pc == '_') || same_char(collation, s + i, sn, p + at, n)) {
                    i += sn;
                    j = at + n;
                    continue;
                }
            }
        }
        if (star_j == SIZE_MAX || star_i >= s_len)
            return false;
        star_i += char_length(collation, s + star_i, s_len - star_i, &sc);
        i = star_i; /* the last % takes one character more */
        j = star_j;
    }
    return true;
}
