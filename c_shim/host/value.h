/* SQL values: literals and results of expressions, and their way into and out of row images. */
#ifndef XTRADB_HOST_VALUE_H
#define XTRADB_HOST_VALUE_H

#include "host.h"
#include "mem.h"

/* A decimal number: digits most significant first, `int_digits` of them before the point. */
enum { DEC_MAX_DIGITS = 65, DEC_MAX_SCALE = 38, DEC_ROOM = 160 };
struct decimal {
    bool negative;
    uint8_t int_digits, scale;
    uint8_t digit[DEC_ROOM];
};

enum temporal_kind { TK_DATE, TK_TIME, TK_DATETIME };
struct temporal {
    uint8_t kind; /* enum temporal_kind */
    bool negative;
    uint8_t month, day, minute, second;
    uint16_t year, hour; /* hour up to 838 in a TIME */
    uint32_t micros;
    uint8_t decimals;    /* fraction digits shown */
};

enum value_kind { V_NULL, V_INT, V_UINT, V_DECIMAL, V_DOUBLE, V_STRING, V_TEMPORAL };
struct value {
    uint8_t kind;    /* enum value_kind */
    bool from_hex;   /* V_STRING of a hex or bit literal: a number in numeric context */
    bool literal;    /* V_STRING written in the statement: the other side's collation wins */
    /* How a column shows it. V_INT, V_UINT: zero-filled to that width. V_DOUBLE: 0 shortest, 1 as a
     * FLOAT, 2 + d with d digits after the point. */
    uint8_t shown;
    uint8_t zeros; /* V_DECIMAL, V_DOUBLE: zero-filled to that width */
    bool has_index;  /* V_STRING of an ENUM or SET column: `index` is its number */
    uint64_t index;
    uint32_t collation; /* V_STRING */
    union {
        int64_t i;
        uint64_t u;
        double d;
        struct decimal *dec;
        struct temporal t;
        struct { const char *ptr; size_t len; } s;
    };
};

/* decimal.c */
bool dec_parse(struct decimal *d, const char *s, size_t len, size_t *used); /* false: no digit */
void dec_from_int(struct decimal *d, int64_t v);
void dec_from_uint(struct decimal *d, uint64_t v);
void dec_from_double(struct decimal *d, double v);
double dec_to_double(const struct decimal *d);
bool dec_is_zero(const struct decimal *d);
int dec_compare(const struct decimal *a, const struct decimal *b);
void dec_add(struct decimal *out, const struct decimal *a, const struct decimal *b);
void dec_negate(struct decimal *d);
void dec_multiply(struct decimal *out, const struct decimal *a, const struct decimal *b);
/* Quotient with a->scale + 4 digits; false: division by zero. */
bool dec_divide(struct decimal *out, const struct decimal *a, const struct decimal *b);
bool dec_divide_whole(struct decimal *out, const struct decimal *a, const struct decimal *b);
void dec_round(struct decimal *d, unsigned scale);            /* half away from zero; pads with zeros */
bool dec_to_int(const struct decimal *d, int64_t *out);       /* rounded; false: out of range, clamped */
bool dec_to_uint(const struct decimal *d, uint64_t *out);
size_t dec_print(const struct decimal *d, char *out);         /* at most DEC_ROOM + 4 bytes */
uint32_t dec_packed_size(unsigned precision, unsigned scale);
/* Stores with the column's precision; false: does not fit (the largest value is stored). */
bool dec_pack(const struct decimal *d, unsigned precision, unsigned scale, uint8_t *out);
void dec_unpack(struct decimal *d, unsigned precision, unsigned scale, const uint8_t *in);

/* temporal.c */
/* Parses; `kind` is what is wanted. False: not a date or time at all. *truncated: something was cut. */
bool temporal_parse(struct temporal *t, enum temporal_kind kind, const char *s, size_t len,
                    bool *truncated);
bool temporal_from_number(struct temporal *t, enum temporal_kind kind, int64_t number,
                          uint32_t micros);
bool temporal_valid_date(const struct temporal *t, bool allow_zero);
size_t temporal_print(const struct temporal *t, char *out);   /* at most 32 bytes */
int64_t temporal_to_number(const struct temporal *t);         /* 20240229123456, 123456 or 20240229 */
int temporal_compare(const struct temporal *a, const struct temporal *b);
void temporal_round(struct temporal *t, unsigned decimals);   /* truncates, as the server does */
uint32_t temporal_pack_size(uint8_t col_type, unsigned decimals);
void temporal_pack(const struct temporal *t, uint8_t col_type, unsigned decimals, uint8_t *out);
void temporal_unpack(struct temporal *t, uint8_t col_type, unsigned decimals, const uint8_t *in);
int64_t temporal_to_unix(const struct temporal *t, int zone_seconds); /* seconds since 1970 */
void temporal_from_unix(struct temporal *t, int64_t seconds, uint32_t micros, int zone_seconds);
int64_t temporal_day_number(unsigned year, unsigned month, unsigned day); /* days since 1970-01-01 */
void temporal_from_days(int64_t days, struct temporal *t);

/* netaddr.c: text <-> bytes; false: not such a text. */
bool uuid_parse(const char *s, size_t len, uint8_t out[16]);   /* text order */
void uuid_print(const uint8_t in[16], char out[37]);
void uuid_to_stored(const uint8_t text[16], uint8_t stored[16]); /* MariaDB's order of segments */
void uuid_from_stored(const uint8_t stored[16], uint8_t text[16]);
bool inet4_parse(const char *s, size_t len, uint8_t out[4]);
bool inet6_parse(const char *s, size_t len, uint8_t out[16]);
size_t inet4_print(const uint8_t in[4], char *out);
size_t inet6_print(const uint8_t in[16], char *out);            /* at most 46 bytes */

/* value.c: conversions. Strings made here live in the arena. */
static inline struct value value_null(void) { return (struct value){.kind = V_NULL}; }
static inline struct value value_int(int64_t i) { return (struct value){.kind = V_INT, .i = i}; }
static inline struct value value_uint(uint64_t u) { return (struct value){.kind = V_UINT, .u = u}; }
static inline struct value value_double(double d)
{
    return (struct value){.kind = V_DOUBLE, .d = d};
}
bool json_valid(const char *s, size_t len); /* json.c */
struct value value_string(const char *s, size_t len, uint32_t collation);
struct value value_decimal(struct arena *a, const struct decimal *d);
double value_to_double(const struct value *v);
/* Rounded to an integer; *ok false when out of range (clamped). */
int64_t value_to_int(const struct value *v, bool *ok);
void value_to_decimal(const struct value *v, struct decimal *d);
/* Text as a client sees it; numbers and times in ASCII, strings as they are. */
struct value value_to_text(struct arena *a, const struct value *v);
bool value_is_true(const struct value *v);
/* <0, 0, >0; neither may be NULL. Compares as MariaDB does for the two kinds. */
int value_compare(const struct value *a, const struct value *b);
size_t double_print(double d, char *out);            /* shortest text that reads back; <= 40 bytes */
size_t float_print(float f, char *out);              /* 6 significant digits, as the client shows */
/* A string in another character set; characters it lacks become '?', *lossy is set then. */
struct value value_convert(struct arena *a, const struct value *v, uint32_t collation, bool *lossy);

/* What became of a value on its way into a column. */
enum store_result {
    ST_OK = 0,
    ST_TRUNCATED_NOTE,  /* note 1265: only digits after the point or blanks were lost */
    ST_OUT_OF_RANGE,    /* 1264 */
    ST_TOO_LONG,        /* 1406 */
    ST_TRUNCATED,       /* 1265 */
    ST_BAD_VALUE,       /* 1366 incorrect integer/decimal/string value */
    ST_BAD_TEMPORAL,    /* 1292 */
    ST_BAD_NULL         /* 1048 */
};

/* store.c: value -> row. Always stores something (the nearest value); the caller decides by sql_mode
 * whether the result is an error. BLOB bytes are put into the arena. */
enum store_result value_store(struct arena *a, const struct column *c, uint8_t *row,
                              const struct value *v, int zone_seconds);
/* load.c: row -> value; strings point into the row or BLOB memory. */
struct value value_load(struct arena *a, const struct column *c, const uint8_t *row,
                        int zone_seconds);
void rec_set_null(const struct column *c, uint8_t *row, bool null);

/* collation.c, beyond host.h. */
uint32_t coll_by_name(const char *name);                /* 0: unknown */
uint32_t coll_default_of(const char *charset);          /* 0: unknown */
const char *coll_name(uint32_t collation);
const char *coll_charset(uint32_t collation);           /* "latin1", "utf8mb4" … */
bool coll_same_charset(uint32_t a, uint32_t b);
bool coll_is_binary(uint32_t collation);                /* 63 */
size_t coll_char_count(uint32_t collation, const uint8_t *s, size_t len);
/* Decodes one character; 0 = malformed. Encodes one; 0 = not in the set. */
unsigned coll_decode(uint32_t collation, const uint8_t *s, size_t len, uint32_t *code);
unsigned coll_encode(uint32_t collation, uint32_t code, uint8_t *out);
/* First malformed byte's offset, or len. */
size_t coll_well_formed(uint32_t collation, const uint8_t *s, size_t len);
uint32_t coll_bin_of(const char *charset);
/* LIKE with % and _ ; escape is the escape character. */
bool coll_like(uint32_t collation, const uint8_t *s, size_t s_len, const uint8_t *p, size_t p_len,
               uint32_t escape);
enum { COLL_BINARY = 63, COLL_LATIN1 = 8, COLL_UTF8MB3 = 33, COLL_UTF8MB4 = 45, COLL_UTF8MB4_BIN = 46,
       COLL_ASCII = 11 };

#endif
