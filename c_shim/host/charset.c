/* Encodings, and names of character sets and collations. */
#include "charset.h"

#include <string.h>
#include <strings.h>

#include "value.h"

static const struct {
    const char *name;
    uint8_t minlen, maxlen;
    uint32_t default_collation, bin;
} charsets[CS_COUNT] = {
    [CS_BINARY] = {"binary", 1, 1, 63, 63},   [CS_LATIN1] = {"latin1", 1, 1, 8, 47},
    [CS_ASCII] = {"ascii", 1, 1, 11, 65},     [CS_UTF8MB3] = {"utf8mb3", 1, 3, 33, 83},
    [CS_UTF8MB4] = {"utf8mb4", 1, 4, 45, 46}, [CS_UCS2] = {"ucs2", 2, 2, 35, 90},
    [CS_UTF16] = {"utf16", 2, 4, 54, 55},     [CS_UTF16LE] = {"utf16le", 2, 4, 56, 62},
    [CS_UTF32] = {"utf32", 4, 4, 60, 61},
#define BYTE_CHARSET(id, name, ci, bin) [CS_##id] = {name, 1, 1, ci, bin},
#include "charset_bytes.inc"
};

/* What the bytes of the other single-byte sets mean; 0xFFFD = nothing. */
static const uint16_t byte_codes[CS_COUNT][256] = {
#define BYTE_MAP(id, ...) [CS_##id] = {__VA_ARGS__},
#include "charset_bytes.inc"
};

/* cp1252 as MySQL's latin1 maps 0x80..0x9F; the rest is the code itself. */
static const uint16_t cp1252[32] = {
    0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160,
    0x2039, 0x152,  0x8D,   0x17D,  0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E, 0x178};

uint32_t charset_minlen(enum charset cs)
{
    return charsets[cs].minlen;
}

uint32_t charset_maxlen(enum charset cs)
{
    return charsets[cs].maxlen;
}

static unsigned utf8_decode(const uint8_t *s, size_t len, uint32_t *code, unsigned max)
{
    uint8_t c = s[0];
    if (c < 0x80) {
        *code = c;
        return 1;
    }
    unsigned n = c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (!n || n > max || n > len)
        return 0;
    uint32_t v = c & (0xFFu >> (n + 1));
    for (unsigned i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        v = v << 6 | (s[i] & 0x3Fu);
    }
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (v < least[n] || v > 0x10FFFF || (v >= 0xD800 && v < 0xE000))
        return 0;
    *code = v;
    return n;
}

static unsigned utf16_decode(const uint8_t *s, size_t len, uint32_t *code, bool little)
{
    if (len < 2)
        return 0;
    unsigned hi = s[little], lo = s[!little];
    uint32_t v = hi << 8 | lo;
    if (v < 0xD800 || v >= 0xE000) {
        *code = v;
        return 2;
    }
    if (v >= 0xDC00 || len < 4)
        return 0;
    uint32_t w = (uint32_t)s[2 + little] << 8 | s[2 + !little];
    if (w < 0xDC00 || w >= 0xE000)
        return 0;
    *code = 0x10000 + ((v - 0xD800) << 10) + (w - 0xDC00);
    return 4;
}

unsigned charset_decode(enum charset cs, const uint8_t *s, size_t len, uint32_t *code)
{
    if (!len)
        return 0;
    switch (cs) {
    case CS_LATIN1:
        *code = s[0] >= 0x80 && s[0] < 0xA0 ? cp1252[s[0] - 0x80] : s[0];
        return 1;
    case CS_ASCII:
        *code = s[0];
        return s[0] < 0x80;
    case CS_UTF8MB3:
        return utf8_decode(s, len, code, 3);
    case CS_UTF8MB4:
        return utf8_decode(s, len, code, 4);
    case CS_UCS2:
        if (len < 2)
            return 0;
        *code = (uint32_t)s[0] << 8 | s[1];
        return 2;
    case CS_UTF16:
    case CS_UTF16LE:
        return utf16_decode(s, len, code, cs == CS_UTF16LE);
    case CS_UTF32:
        if (len < 4)
            return 0;
        *code = (uint32_t)s[0] << 24 | (uint32_t)s[1] << 16 | (uint32_t)s[2] << 8 | s[3];
        return *code > 0x10FFFF ? 0 : 4;
    case CS_BINARY:
        *code = s[0];
        return 1;
    default:
        *code = byte_codes[cs][s[0]];
        return *code != 0xFFFD;
    }
}

static unsigned utf8_encode(uint32_t c, uint8_t *out, unsigned max)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    unsigned n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (n > max || c > 0x10FFFF)
        return 0;
    for (unsigned i = n; i-- > 1; c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3F));
    out[0] = (uint8_t)(c | (0xF00u >> n));
    return n;
}

static unsigned utf16_encode(uint32_t c, uint8_t *out, bool little)
{
    unsigned n = c > 0xFFFF ? 4 : 2;
    uint32_t v = n == 2 ? c : (0xD800 + ((c - 0x10000) >> 10)) << 16 | (0xDC00 + ((c - 0x10000) & 0x3FF));
    for (unsigned i = 0; i < n; i++)
        out[little ? (i ^ 1) : i] = (uint8_t)(v >> (8 * (n - 1 - i)));
    return n;
}

static unsigned latin1_encode(uint32_t c, uint8_t *out)
{
    if (c < 0x80 || (c >= 0xA0 && c < 0x100)) {
        out[0] = (uint8_t)c;
        return 1;
    }
    for (unsigned i = 0; i < 32; i++)
        if (cp1252[i] == c) {
            out[0] = (uint8_t)(0x80 + i);
            return 1;
        }
    return 0;
}

static unsigned byte_encode(enum charset cs, uint32_t c, uint8_t *out)
{
    for (unsigned i = 0; c != 0xFFFD && i < 256; i++)
        if (byte_codes[cs][i] == c) {
            out[0] = (uint8_t)i;
            return 1;
        }
    return 0;
}

unsigned charset_encode(enum charset cs, uint32_t code, uint8_t *out)
{
    switch (cs) {
    case CS_LATIN1:
        return latin1_encode(code, out);
    case CS_UTF8MB3:
        return utf8_encode(code, out, 3);
    case CS_UTF8MB4:
        return utf8_encode(code, out, 4);
    case CS_UCS2:
        return code > 0xFFFF ? 0 : utf16_encode(code, out, false);
    case CS_UTF16:
    case CS_UTF16LE:
        return utf16_encode(code, out, cs == CS_UTF16LE);
    case CS_UTF32:
        for (unsigned i = 0; i < 4; i++)
            out[i] = (uint8_t)(code >> (8 * (3 - i)));
        return 4;
    case CS_ASCII:
        out[0] = (uint8_t)code;
        return code < 0x80;
    case CS_BINARY:
        out[0] = (uint8_t)code;
        return code < 0x100;
    default:
        return byte_encode(cs, code, out);
    }
}

/* MariaDB's older spelling: utf8 and utf8_… mean utf8mb3. */
static bool name_is(const char *given, const char *name)
{
    if (!strcasecmp(given, name))
        return true;
    return !strncasecmp(given, "utf8", 4) && !strncmp(name, "utf8mb3", 7) &&
           !strcasecmp(given + 4, name + 7);
}

uint32_t coll_by_name(const char *name)
{
    for (unsigned i = 0; coll_info_at(i); i++)
        if (name_is(name, coll_info_at(i)->name))
            return coll_info_at(i)->id;
    return 0;
}

uint32_t coll_default_of(const char *charset)
{
    for (unsigned i = 0; i < CS_COUNT; i++)
        if (name_is(charset, charsets[i].name))
            return charsets[i].default_collation;
    return 0;
}

uint32_t coll_bin_of(const char *charset)
{
    for (unsigned i = 0; i < CS_COUNT; i++)
        if (name_is(charset, charsets[i].name))
            return charsets[i].bin;
    return 0;
}

const char *coll_name(uint32_t collation)
{
    const struct collation_info *c = coll_info(collation);
    return c ? c->name : "binary";
}

const char *coll_charset(uint32_t collation)
{
    const struct collation_info *c = coll_info(collation);
    return charsets[c ? c->charset : CS_BINARY].name;
}

bool coll_same_charset(uint32_t a, uint32_t b)
{
    return coll_charset(a) == coll_charset(b);
}

bool coll_is_binary(uint32_t collation)
{
    return collation == COLL_BINARY;
}
