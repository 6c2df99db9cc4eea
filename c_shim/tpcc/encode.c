#include "encode.h"

#include <string.h>
#include <time.h>

#define DIGITS_PER_WORD 9
#define DATETIME_SIGN (INT64_C(1) << 39)

static const uint64_t powers[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000,
                                   1000000000, 10000000000, 100000000000, 1000000000000 };
static const uint8_t digit_bytes[] = { 0, 1, 1, 2, 2, 3, 3, 4, 4, 4 };

static void put_big(uint8_t *to, uint64_t value, unsigned bytes)
{
    while (bytes-- > 0) {
        to[bytes] = (uint8_t)value;
        value >>= 8;
    }
}

static uint64_t get_big(const uint8_t *from, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | from[i];
    return value;
}

/*
 * MariaDB's binary decimal: the digits before the point in groups of nine from the right, those
 * behind it in groups from the left (here at most nine); each group big-endian; the first bit
 * flipped, and for negative numbers every bit.
 */
static void put_decimal(uint8_t *to, const xt_column *c, int64_t value)
{
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    uint64_t whole = magnitude / powers[c->decimals], fraction = magnitude % powers[c->decimals];
    unsigned digits = c->precision - c->decimals, first = digits % DIGITS_PER_WORD;
    uint8_t *at = to;

    if (first > 0 || digits >= DIGITS_PER_WORD) {
        unsigned words = digits / DIGITS_PER_WORD; /* 0 or 1: DECIMAL(12,2) is the largest */

        put_big(at, words > 0 ? whole / powers[DIGITS_PER_WORD] : whole, digit_bytes[first]);
        at += digit_bytes[first];
        if (words > 0)
            put_big(at, whole % powers[DIGITS_PER_WORD], 4);
        at += words * 4;
    }
    put_big(at, fraction, digit_bytes[c->decimals]);
    if (value < 0)
        for (uint32_t i = 0; i < c->octets; i++)
            to[i] = (uint8_t)~to[i];
    to[0] ^= 0x80;
}

static int64_t get_decimal(const uint8_t *from, const xt_column *c)
{
    unsigned digits = c->precision - c->decimals, first = digits % DIGITS_PER_WORD;
    uint8_t bytes[16], *at = bytes;
    bool negative = (from[0] & 0x80) == 0;
    uint64_t whole;

    memcpy(bytes, from, c->octets);
    bytes[0] ^= 0x80;
    if (negative)
        for (uint32_t i = 0; i < c->octets; i++)
            bytes[i] = (uint8_t)~bytes[i];
    whole = get_big(at, digit_bytes[first]);
    at += digit_bytes[first];
    if (digits >= DIGITS_PER_WORD) {
        whole = whole * powers[DIGITS_PER_WORD] + get_big(at, 4);
        at += 4;
    }
    whole = whole * powers[c->decimals] + get_big(at, digit_bytes[c->decimals]);
    return negative ? -(int64_t)whole : (int64_t)whole;
}

static void put_value(uint8_t *to, const xt_column *c, int64_t value)
{
    switch (c->type) {
    case XT_TYPE_NEWDECIMAL:
        put_decimal(to, c, value);
        break;
    case XT_TYPE_DATETIME2:
        put_big(to, (uint64_t)(value + DATETIME_SIGN), 5);
        break;
    default:
        for (uint32_t i = 0; i < c->octets; i++)
            to[i] = (uint8_t)((uint64_t)value >> 8 * i);
    }
}

void put_number(uint8_t *row, const xt_column *column, int64_t value)
{
    row[column->null_offset] &= (uint8_t)~column->null_mask;
    put_value(row + column->offset, column, value);
}

int64_t get_number(const uint8_t *row, const xt_column *column)
{
    const uint8_t *from = row + column->offset;

    switch (column->type) {
    case XT_TYPE_NEWDECIMAL:
        return get_decimal(from, column);
    case XT_TYPE_DATETIME2:
        return (int64_t)get_big(from, 5) - DATETIME_SIGN;
    case XT_TYPE_TINY:
        return (int8_t)from[0];
    case XT_TYPE_SHORT:
        return (int16_t)(from[0] | from[1] << 8);
    default:
        return (int32_t)(from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
                         (uint32_t)from[3] << 24);
    }
}

void put_text(uint8_t *row, const xt_column *column, const char *text, uint32_t length)
{
    uint8_t *to = row + column->offset;

    if (length > column->octets)
        length = column->octets;
    if (column->length_bytes > 0)
        to[0] = (uint8_t)length;
    if (column->length_bytes > 1)
        to[1] = (uint8_t)(length >> 8);
    to += column->length_bytes;
    memcpy(to, text, length);
    if (column->length_bytes == 0)
        memset(to + length, ' ', column->octets - length);
}

const char *get_text(const uint8_t *row, const xt_column *column, uint32_t *length)
{
    const uint8_t *from = row + column->offset;

    *length = column->length_bytes == 0   ? column->octets
              : column->length_bytes == 1 ? from[0]
                                          : from[0] | (uint32_t)from[1] << 8;
    return (const char *)from + column->length_bytes;
}

void key_number(key_image *key, const xt_column *column, int64_t value)
{
    put_value(key->bytes + key->length, column, value);
    key->length += column->octets;
}

void key_text(key_image *key, const xt_column *column, const char *text)
{
    uint32_t length = (uint32_t)strlen(text);
    uint8_t *to = key->bytes + key->length;

    if (column->type == XT_TYPE_VARCHAR) {
        to[0] = (uint8_t)length;
        to[1] = (uint8_t)(length >> 8);
        to += 2;
        key->length += 2;
    }
    memset(to, ' ', column->octets);
    memcpy(to, text, length);
    key->length += column->octets;
}

int64_t datetime_now(void)
{
    time_t now = time(NULL);
    struct tm t;
    int64_t day, time_of_day;

    gmtime_r(&now, &t);
    day = ((int64_t)(t.tm_year + 1900) * 13 + t.tm_mon + 1) << 5 | t.tm_mday;
    time_of_day = t.tm_hour << 12 | t.tm_min << 6 | t.tm_sec;
    return day << 17 | time_of_day;
}
