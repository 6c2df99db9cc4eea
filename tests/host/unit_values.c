/* Values against bytes that a stock server stores, and back.
 *
 * The bytes are those of the row image: integers little-endian, everything else as on disk. Prints
 * the checks that fail; exit status 1 if there is one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "charset.h"
#include "value.h"

static unsigned checks, failures;
static struct arena arena;

static void fail(const char *what, const char *got, const char *want)
{
    printf("%s: got %s, expected %s\n", what, got, want);
    failures++;
}

static void hex(const uint8_t *p, size_t len, char *out)
{
    for (size_t i = 0; i < len; i++)
        sprintf(out + 2 * i, "%02X", p[i]);
    out[2 * len] = 0;
}

static struct column column(uint8_t type, uint32_t length, uint8_t decimals, uint32_t flags,
                            uint32_t collation)
{
    struct column c = {.name = "c", .type = type, .length = length, .char_length = length,
                       .decimals = decimals, .flags = flags, .collation = collation, .null_mask = 2,
                       .offset = 1};
    column_layout(&c);
    return c;
}

/* Stores `text`, expects `bytes` (hex) and `result`, and `back` when the row is read. */
static void store(const char *what, const struct column *c, struct value v, const char *bytes,
                  enum store_result result, const char *back)
{
    uint8_t row[600] = {1};
    char got[1300];
    checks++;
    enum store_result r = value_store(&arena, c, row, &v, 0);
    size_t len = c->pack_length;
    if (c->length_bytes && !col_is_blob(c))
        len = c->length_bytes + (row[1] | (c->length_bytes == 2 ? (size_t)row[2] << 8 : 0));
    hex(row + 1, len, got);
    if (r != result) {
        snprintf(got, sizeof got, "result %d", r);
        fail(what, got, "another result");
    } else if (strcmp(got, bytes)) {
        fail(what, got, bytes);
    }
    v = value_load(&arena, c, row, 0);
    v = value_to_text(&arena, &v);
    bool lossy = false;
    if (c->type != CT_BINARY && c->type != CT_BIT)
        v = value_convert(&arena, &v, COLL_UTF8MB4, &lossy);
    if (c->type == CT_BIT || c->type == CT_BINARY)
        hex((const uint8_t *)v.s.ptr, v.s.len, got);
    else
        snprintf(got, sizeof got, "%.*s", (int)v.s.len, v.s.ptr);
    if (back && strcmp(got, back))
        fail(what, got, back);
}

static struct value text(const char *s)
{
    return value_string(s, strlen(s), COLL_UTF8MB4);
}

static void text_store(const char *what, const struct column *c, const char *s, const char *bytes,
                       const char *back)
{
    store(what, c, text(s), bytes, ST_OK, back);
}

static void integers(void)
{
    struct column tiny = column(CT_TINYINT, 4, 0, 0, 63), small = column(CT_SMALLINT, 6, 0, 0, 63);
    struct column medium = column(CT_MEDIUMINT, 9, 0, 0, 63), big = column(CT_BIGINT, 20, 0, 0, 63);
    struct column ubig = column(CT_BIGINT, 20, 0, COL_UNSIGNED, 63);
    struct column zero = column(CT_INT, 8, 0, COL_UNSIGNED | COL_ZEROFILL, 63);
    text_store("tinyint", &tiny, "-128", "80", "-128");
    store("tinyint too big", &tiny, text("128"), "7F", ST_OUT_OF_RANGE, "127");
    store("tinyint garbage", &tiny, text("abc"), "00", ST_BAD_VALUE, "0");
    store("tinyint with a tail", &tiny, text("12abc"), "0C", ST_TRUNCATED, "12");
    text_store("smallint rounds", &small, "2.5", "0300", "3");
    text_store("mediumint", &medium, "-8388608", "000080", "-8388608");
    text_store("bigint", &big, "-9223372036854775808", "0000000000000080", "-9223372036854775808");
    text_store("bigint unsigned", &ubig, "18446744073709551615", "FFFFFFFFFFFFFFFF", "18446744073709551615");
    store("unsigned below zero", &ubig, text("-1"), "0000000000000000", ST_OUT_OF_RANGE, "0");
    text_store("zerofill", &zero, "42", "2A000000", "00000042");
}

static void decimals(void)
{
    struct column d = column(CT_DECIMAL, 10, 2, 0, 63), whole = column(CT_DECIMAL, 20, 0, 0, 63);
    struct column part = column(CT_DECIMAL, 5, 5, 0, 63), wide = column(CT_DECIMAL, 14, 4, 0, 63);
    text_store("decimal", &d, "1234.56", "800004D238", "1234.56");
    text_store("decimal below zero", &d, "-1234.56", "7FFFFB2DC7", "-1234.56");
    text_store("decimal of whole groups", &whole, "12345678901234567890", "8C149AA4350DFB38D2", "12345678901234567890");
    text_store("decimal of a fraction", &part, "-0.5", "7F3CAF", "-0.50000");
    text_store("decimal(14,4)", &wide, "1234567890.1234", "810DFB38D204D2", "1234567890.1234");
    store("decimal rounds", &d, text("0.005"), "8000000001", ST_TRUNCATED_NOTE, "0.01");
    store("decimal too big", &d, text("100000000"), "85F5E0FF63", ST_OUT_OF_RANGE, "99999999.99");
    text_store("decimal zero", &d, "-0", "8000000000", "0.00");
}

static void reals(void)
{
    struct column f = column(CT_FLOAT, 12, 31, 0, 63), d = column(CT_DOUBLE, 22, 31, 0, 63);
    text_store("float", &f, "1.5", "0000C03F", "1.5");
    text_store("float of six digits", &f, "16777216", "0000804B", "16777200");
    text_store("double", &d, "-2.25", "00000000000002C0", "-2.25");
    text_store("double large", &d, "1e100", "7DC39425AD49B254", "1e100");
}

static void times(void)
{
    struct column date = column(CT_DATE, 0, 0, 0, 63), t0 = column(CT_TIME, 0, 0, 0, 63);
    struct column t3 = column(CT_TIME, 0, 3, 0, 63), t6 = column(CT_TIME, 0, 6, 0, 63);
    struct column dt0 = column(CT_DATETIME, 0, 0, 0, 63), dt6 = column(CT_DATETIME, 0, 6, 0, 63);
    struct column ts0 = column(CT_TIMESTAMP, 0, 0, 0, 63), ts3 = column(CT_TIMESTAMP, 0, 3, 0, 63);
    struct column year = column(CT_YEAR, 4, 0, 0, 63);
    text_store("date", &date, "2024-02-29", "5DD00F", "2024-02-29");
    text_store("date zero", &date, "0000-00-00", "000000", "0000-00-00");
    store("date of no day", &date, text("2023-02-29"), "000000", ST_BAD_TEMPORAL, "0000-00-00");
    text_store("time", &t0, "12:34:56", "80C8B8", "12:34:56");
    text_store("time below zero", &t3, "-01:02:03.456", "7FEF7CEE30", "-01:02:03.456");
    text_store("time just below zero", &t6, "-00:00:00.000001", "7FFFFFFFFFFF", "-00:00:00.000001");
    text_store("time greatest", &t6, "838:59:59.000000", "B46EFB000000", "838:59:59.000000");
    text_store("datetime", &dt0, "2024-02-29 12:34:56", "99B2BAC8B8", "2024-02-29 12:34:56");
    text_store("datetime(6)", &dt6, "9999-12-31 23:59:59.999999", "FEF3FF7EFB0F423F", "9999-12-31 23:59:59.999999");
    text_store("timestamp", &ts0, "2001-09-09 01:46:40", "3B9ACA00", "2001-09-09 01:46:40");
    text_store("timestamp(3)", &ts3, "2001-09-09 01:46:40.123", "3B9ACA0004CE", "2001-09-09 01:46:40.123");
    store("timestamp before 1970", &ts0, text("1969-12-31 23:59:59"), "00000000", ST_BAD_TEMPORAL, NULL);
    text_store("year", &year, "2024", "7C", "2024");
    text_store("year zero", &year, "0000", "00", "0000");
}

static void strings(void)
{
    struct column c4 = column(CT_CHAR, 5, 0, 0, COLL_UTF8MB4), u2 = column(CT_CHAR, 4, 0, 0, 35);
    struct column b = column(CT_BINARY, 5, 0, 0, 63), v1 = column(CT_VARCHAR, 10, 0, 0, COLL_LATIN1);
    struct column vl = column(CT_VARCHAR, 300, 0, 0, COLL_LATIN1), bit = column(CT_BIT, 12, 0, 0, 63);
    text_store("char utf8mb4", &c4, "cd", "6364202020202020202020202020202020202020", "cd");
    text_store("char ucs2", &u2, "ef", "0065006600200020", "ef");
    text_store("binary", &b, "\x01\x02", "0102000000", "0102000000");
    text_store("varchar latin1", &v1, "v\xC3\xA9", "0276E9", "v\xC3\xA9");
    text_store("varchar with two length bytes", &vl, "long", "04006C6F6E67", "long");
    store("varchar too long", &v1, text("12345678901"), "0A31323334353637383930", ST_TOO_LONG, "1234567890");
    store("varchar blanks cut", &v1, text("1234567890 "), "0A31323334353637383930", ST_TRUNCATED_NOTE, "1234567890");
    store("varchar cannot hold", &v1, text("\xE4\xB8\xAD"), "013F", ST_BAD_VALUE, "?");
    struct value bits = value_string("\x0A\xAB", 2, COLL_BINARY);
    bits.from_hex = true;
    store("bit(12)", &bit, bits, "0AAB", ST_OK, "0AAB");
    store("bit too big", &bit, value_int(4096), "0FFF", ST_TOO_LONG, "0FFF");
}

static void members(void)
{
    static char *names[] = {"x", "y", "z"};
    static uint32_t lens[] = {1, 1, 1};
    struct column e = column(CT_ENUM, 0, 0, 0, COLL_LATIN1), s = column(CT_SET, 0, 0, 0, COLL_LATIN1);
    e.values = s.values = names;
    e.value_lens = s.value_lens = lens;
    e.value_count = s.value_count = 3;
    column_layout(&e);
    column_layout(&s);
    text_store("enum", &e, "Z", "03", "z");
    store("enum unknown", &e, text("q"), "00", ST_TRUNCATED, "");
    store("enum by number", &e, value_int(2), "02", ST_OK, "y");
    text_store("set", &s, "z,x", "05", "x,z");
    text_store("set empty", &s, "", "00", "");
}

static void addresses(void)
{
    struct column uuid = column(CT_UUID, 0, 0, 0, 63), i4 = column(CT_INET4, 0, 0, 0, 63);
    struct column i6 = column(CT_INET6, 0, 0, 0, 63);
    text_store("uuid with swapped segments", &uuid, "123e4567-e89b-12d3-a456-426655440000",
               "426655440000A45612D3E89B123E4567", "123e4567-e89b-12d3-a456-426655440000");
    text_store("uuid as it is", &uuid, "00000000-0000-0000-0000-000000000001",
               "00000000000000000000000000000001", "00000000-0000-0000-0000-000000000001");
    text_store("inet4", &i4, "192.0.2.1", "C0000201", "192.0.2.1");
    text_store("inet6", &i6, "2001:db8::1", "20010DB8000000000000000000000001", "2001:db8::1");
}

static void order(const char *what, uint32_t collation, const char *a, const char *b, int sign)
{
    checks++;
    uint8_t x[64], y[64];
    int c = coll_compare(collation, (const uint8_t *)a, strlen(a), (const uint8_t *)b, strlen(b),
                         coll_pads(collation));
    size_t n = coll_sort_key(collation, (const uint8_t *)a, strlen(a), x, sizeof x);
    size_t m = coll_sort_key(collation, (const uint8_t *)b, strlen(b), y, sizeof y);
    int k = memcmp(x, y, n < m ? n : m);
    k = k ? k : n < m ? -1 : n > m;
    if ((c > 0) - (c < 0) != sign)
        fail(what, "another order", "comparison");
    if ((k > 0) - (k < 0) != sign)
        fail(what, "another order", "sort keys");
}

static void collations(void)
{
    order("swedish: case", COLL_LATIN1, "abc", "ABC", 0);
    order("swedish: trailing blanks", COLL_LATIN1, "abc", "abc  ", 0);
    order("swedish: below a blank", COLL_LATIN1, "abc\t", "abc", -1);
    order("swedish: \xC3\x85 after Z", COLL_LATIN1, "Z", "\xC5", -1);
    order("general: accents", COLL_UTF8MB4, "e", "\xC3\xA9", 0);
    order("general: no expansion", COLL_UTF8MB4, "ss", "\xC3\x9F", 1);
    order("unicode: expansion", 224, "ss", "\xC3\x9F", 0);
    order("unicode: punctuation first", 224, "-", "a", -1);
    order("bin: by code", COLL_UTF8MB4_BIN, "Z", "a", -1);
    order("bin: beyond the BMP", COLL_UTF8MB4_BIN, "\xEF\xBF\xBD", "\xF0\x9F\x98\x80", -1);
    order("nopad", 1069, "a", "a ", -1);
    order("binary", 63, "a", "a ", -1);
    checks++;
    if (coll_prefix(COLL_UTF8MB4, (const uint8_t *)"\xE4\xB8\xAD\xE4\xB8\xAD", 6, 1) != 3)
        fail("prefix", "another length", "3 bytes");
}

static void names(void)
{
    static const char *const pairs[][2] = {
        {"plain_09", "plain_09"}, {"d na-m\xC3\xA9", "d@0020na@002dm@0p"}, {"\xE4\xB8\xAD", "@4e2d"}};
    char out[200], back[200];
    for (size_t i = 0; i < 3; i++) {
        checks++;
        if (!filename_encode(pairs[i][0], out, sizeof out) || strcmp(out, pairs[i][1]))
            fail("file name", out, pairs[i][1]);
        else if (!filename_decode(out, back, sizeof back) || strcmp(back, pairs[i][0]))
            fail("name of a file", back, pairs[i][0]);
    }
}

/* Random decimals and times through their bytes and back. */
static void round_trips(void)
{
    uint64_t state = 42;
    for (unsigned i = 0; i < 20000; i++) {
        char number[80], back[DEC_ROOM + 8];
        uint8_t bytes[40];
        struct decimal d, e;
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned scale = (unsigned)(state >> 40) % 12, precision = scale + 2 + (unsigned)(state >> 50) % 20;
        snprintf(number, sizeof number, "%s%llu.%0*llu", state >> 63 ? "-" : "", (unsigned long long)(state >> 20) % 10,
                 (int)(scale ? scale : 1), (unsigned long long)(state >> 8) % 10);
        dec_parse(&d, number, strlen(number), NULL);
        dec_round(&d, scale);
        dec_pack(&d, precision, scale, bytes);
        dec_unpack(&e, precision, scale, bytes);
        dec_print(&e, back);
        checks++;
        if (dec_compare(&d, &e) != 0)
            fail("decimal round trip", back, number);
        struct temporal t, u;
        temporal_from_unix(&t, (int64_t)(state >> 30), (uint32_t)(state >> 12) % 1000000, 0);
        temporal_pack(&t, CT_DATETIME, 6, bytes);
        temporal_unpack(&u, CT_DATETIME, 6, bytes);
        checks++;
        if (temporal_compare(&t, &u) != 0 || temporal_to_unix(&u, 0) != (int64_t)(state >> 30))
            fail("datetime round trip", "another time", "the same");
    }
}

int main(void)
{
    integers();
    decimals();
    reals();
    times();
    strings();
    members();
    addresses();
    collations();
    names();
    round_trips();
    arena_free(&arena);
    printf("values: %u checks, %u failed\n", checks, failures);
    return failures != 0;
}
