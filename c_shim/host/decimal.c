/* Exact decimal numbers, and MariaDB's binary decimal format. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

static void dec_zero(struct decimal *d)
{
    d->negative = false;
    d->int_digits = 1;
    d->scale = 0;
    d->digit[0] = 0;
}

/* Removes zeros before the first digit that counts; keeps one integer digit at least. */
static void dec_trim(struct decimal *d)
{
    unsigned lead = 0;
    while (lead + 1 < d->int_digits && d->digit[lead] == 0)
        lead++;
    if (lead) {
        memmove(d->digit, d->digit + lead, (size_t)(d->int_digits + d->scale) - lead);
        d->int_digits = (uint8_t)(d->int_digits - lead);
    }
    if (dec_is_zero(d))
        d->negative = false;
}

bool dec_is_zero(const struct decimal *d)
{
    for (unsigned i = 0; i < (unsigned)d->int_digits + d->scale; i++)
        if (d->digit[i])
            return false;
    return true;
}

/* Applies a power of ten by moving the point. */
static void dec_shift(struct decimal *d, int exponent)
{
    uint8_t digits[DEC_ROOM];
    int total = d->int_digits + d->scale;
    memcpy(digits, d->digit, (size_t)total);
    int point = d->int_digits + exponent;
    int lead = point < 1 ? 1 - point : 0; /* zeros before */
    int whole = point < 1 ? 1 : point;
    if (whole > DEC_MAX_DIGITS + 1)
        whole = DEC_MAX_DIGITS + 1;       /* out of range anyway */
    int scale = total - point > 0 ? total - point : 0;
    if (scale > 70)
        scale = 70;
    for (int i = 0; i < whole + scale; i++) {
        int from = i - lead;
        d->digit[i] = from >= 0 && from < total ? digits[from] : 0;
    }
    if (point > DEC_MAX_DIGITS + 1)
        d->digit[0] = 9;
    d->int_digits = (uint8_t)whole;
    d->scale = (uint8_t)scale;
}

bool dec_parse(struct decimal *d, const char *s, size_t len, size_t *used)
{
    size_t p = 0;
    bool any = false;
    dec_zero(d);
    while (p < len && isspace((unsigned char)s[p]))
        p++;
    bool negative = p < len && s[p] == '-';
    if (p < len && (s[p] == '-' || s[p] == '+'))
        p++;
    unsigned n = 0;
    for (; p < len && isdigit((unsigned char)s[p]); p++, any = true) {
        if (n == 0 && s[p] == '0')
            continue;
        if (n < 82)
            d->digit[n++] = (uint8_t)(s[p] - '0');
    }
    if (n == 0)
        d->digit[n++] = 0;
    d->int_digits = (uint8_t)n;
    if (p < len && s[p] == '.') {
        unsigned scale = 0;
        for (p++; p < len && isdigit((unsigned char)s[p]); p++, any = true)
            if (scale < 70)
                d->digit[d->int_digits + scale++] = (uint8_t)(s[p] - '0');
        d->scale = (uint8_t)scale;
    }
    if (any && p < len && tolower((unsigned char)s[p]) == 'e') {
        size_t e = p + 1;
        if (e < len && (s[e] == '-' || s[e] == '+'))
            e++;
        if (e < len && isdigit((unsigned char)s[e])) {
            long exponent = strtol(s + p + 1, NULL, 10);
            dec_shift(d, exponent > 200 ? 200 : exponent < -200 ? -200 : (int)exponent);
            while (e < len && isdigit((unsigned char)s[e]))
                e++;
            p = e;
        }
    }
    d->negative = negative;
    dec_trim(d);
    if (used)
        *used = any ? p : 0;
    return any;
}

void dec_from_uint(struct decimal *d, uint64_t v)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    dec_parse(d, text, (size_t)len, NULL);
}

void dec_from_int(struct decimal *d, int64_t v)
{
    dec_from_uint(d, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
    d->negative = v < 0;
}

void dec_from_double(struct decimal *d, double v)
{
    char text[40];
    if (!isfinite(v))
        v = v < 0 ? -1e70 : 1e70;
    dec_parse(d, text, double_print(v, text), NULL);
}

double dec_to_double(const struct decimal *d)
{
    char text[DEC_ROOM + 8];
    size_t len = dec_print(d, text);
    text[len] = 0;
    return strtod(text, NULL);
}

/* Digit of weight 10^place (place 0 = units). */
static int dec_digit(const struct decimal *d, int place)
{
    int i = d->int_digits - 1 - place;
    return i >= 0 && i < d->int_digits + d->scale ? d->digit[i] : 0;
}

static int dec_compare_abs(const struct decimal *a, const struct decimal *b)
{
    int high = a->int_digits > b->int_digits ? a->int_digits : b->int_digits;
    int low = a->scale > b->scale ? a->scale : b->scale;
    for (int p = high - 1; p >= -low; p--) {
        int diff = dec_digit(a, p) - dec_digit(b, p);
        if (diff)
            return diff;
    }
    return 0;
}

int dec_compare(const struct decimal *a, const struct decimal *b)
{
    bool a_negative = a->negative && !dec_is_zero(a);
    bool b_negative = b->negative && !dec_is_zero(b);
    if (a_negative != b_negative)
        return a_negative ? -1 : 1;
    int c = dec_compare_abs(a, b);
    return a_negative ? -c : c;
}

void dec_negate(struct decimal *d)
{
    if (!dec_is_zero(d))
        d->negative = !d->negative;
}

void dec_add(struct decimal *out, const struct decimal *a, const struct decimal *b)
{
    int high = (a->int_digits > b->int_digits ? a->int_digits : b->int_digits) + 1;
    int low = a->scale > b->scale ? a->scale : b->scale;
    const struct decimal *big = a, *small = b;
    bool subtract = a->negative != b->negative;
    if (subtract && dec_compare_abs(a, b) < 0) {
        big = b;
        small = a;
    }
    struct decimal r = {.negative = big->negative, .int_digits = (uint8_t)high,
                        .scale = (uint8_t)low};
    int carry = 0;
    for (int p = -low; p < high; p++) {
        int v = dec_digit(big, p) + (subtract ? -dec_digit(small, p) : dec_digit(small, p)) + carry;
        carry = v < 0 ? -1 : v / 10;
        r.digit[high - 1 - p] = (uint8_t)(v < 0 ? v + 10 : v % 10);
    }
    dec_trim(&r);
    *out = r;
}

void dec_multiply(struct decimal *out, const struct decimal *a, const struct decimal *b)
{
    struct decimal x = *a, y = *b;
    if (x.scale + y.scale > DEC_MAX_SCALE) { /* keep the product inside the room */
        if (x.scale > 19)
            dec_round(&x, 19);
        if (y.scale > 19)
            dec_round(&y, 19);
    }
    int xn = x.int_digits + x.scale, yn = y.int_digits + y.scale;
    unsigned sum[2 * DEC_ROOM] = {0};
    for (int i = xn - 1; i >= 0; i--)
        for (int j = yn - 1; j >= 0; j--)
            sum[i + j + 1] += (unsigned)(x.digit[i] * y.digit[j]);
    for (int i = xn + yn - 1; i > 0; i--) {
        sum[i - 1] += sum[i] / 10;
        sum[i] %= 10;
    }
    int whole = x.int_digits + y.int_digits, skip = 0;
    while (skip < whole - 1 && sum[skip] == 0)
        skip++;
    if (whole - skip > 82)
        skip = whole - 82;
    struct decimal r = {.negative = a->negative != b->negative, .int_digits = (uint8_t)(whole - skip),
                        .scale = (uint8_t)(x.scale + y.scale)};
    for (int i = skip; i < xn + yn; i++)
        r.digit[i - skip] = (uint8_t)sum[i];
    dec_trim(&r);
    *out = r;
}

/* The quotient's digits down to 10^-scale, the rest cut off. The divisor is not 0. */
static void quotient(struct decimal *out, const struct decimal *dividend, const struct decimal *by,
                     unsigned scale)
{
    struct decimal a = *dividend, divisor = *by, rest, ten, r = {0};
    dec_shift(&a, by->scale); /* both by the same power of ten: the divisor is an integer */
    dec_shift(&divisor, by->scale);
    divisor.negative = false;
    dec_trim(&divisor);
    dec_zero(&rest);
    dec_from_uint(&ten, 10);
    int n = 0;
    for (; n < a.int_digits + (int)scale; n++) { /* long division: bring down a digit at a time */
        struct decimal next, digit;
        dec_multiply(&next, &rest, &ten);
        dec_from_uint(&digit, (uint64_t)dec_digit(&a, a.int_digits - 1 - n));
        dec_add(&rest, &next, &digit);
        while (dec_compare_abs(&rest, &divisor) >= 0) {
            struct decimal minus = divisor;
            minus.negative = true;
            dec_add(&next, &rest, &minus);
            rest = next;
            r.digit[n]++;
        }
    }
    r.int_digits = a.int_digits;
    r.scale = (uint8_t)scale;
    r.negative = dividend->negative != by->negative;
    dec_trim(&r);
    *out = r;
}

bool dec_divide(struct decimal *out, const struct decimal *a, const struct decimal *b)
{
    if (dec_is_zero(b))
        return false;
    unsigned scale = a->scale + 4u > DEC_MAX_SCALE ? DEC_MAX_SCALE : a->scale + 4u;
    quotient(out, a, b, scale + 1); /* one digit more, to round by */
    dec_round(out, scale);
    return true;
}

bool dec_divide_whole(struct decimal *out, const struct decimal *a, const struct decimal *b)
{
    if (dec_is_zero(b))
        return false;
    quotient(out, a, b, 0);
    return true;
}

void dec_round(struct decimal *d, unsigned scale)
{
    while (d->scale < scale)
        d->digit[d->int_digits + d->scale++] = 0;
    if (d->scale == scale)
        return;
    bool up = d->digit[d->int_digits + scale] >= 5;
    d->scale = (uint8_t)scale;
    for (int i = d->int_digits + (int)scale - 1; up && i >= 0; i--) {
        up = d->digit[i] == 9;
        d->digit[i] = up ? 0 : (uint8_t)(d->digit[i] + 1);
    }
    if (up) {
        memmove(d->digit + 1, d->digit, (size_t)d->int_digits + scale);
        d->digit[0] = 1;
        d->int_digits++;
    }
    dec_trim(d);
}

bool dec_to_uint(const struct decimal *d, uint64_t *out)
{
    struct decimal r = *d;
    dec_round(&r, 0);
    uint64_t v = 0;
    for (unsigned i = 0; i < r.int_digits; i++)
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, r.digit[i], &v)) {
            *out = r.negative ? 0 : UINT64_MAX;
            return false;
        }
    *out = r.negative && v ? 0 : v;
    return !(r.negative && v);
}

bool dec_to_int(const struct decimal *d, int64_t *out)
{
    struct decimal r = *d;
    uint64_t v = 0;
    r.negative = false;
    bool fits = dec_to_uint(&r, &v);
    uint64_t limit = (uint64_t)INT64_MAX + (d->negative ? 1 : 0);
    if (!fits || v > limit) {
        *out = d->negative ? INT64_MIN : INT64_MAX;
        return false;
    }
    *out = d->negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

size_t dec_print(const struct decimal *d, char *out)
{
    size_t n = 0;
    if (d->negative && !dec_is_zero(d))
        out[n++] = '-';
    for (unsigned i = 0; i < d->int_digits; i++)
        out[n++] = (char)('0' + d->digit[i]);
    if (d->scale)
        out[n++] = '.';
    for (unsigned i = 0; i < d->scale; i++)
        out[n++] = (char)('0' + d->digit[d->int_digits + i]);
    out[n] = 0;
    return n;
}

static const uint8_t group_bytes[10] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4};

uint32_t dec_packed_size(unsigned precision, unsigned scale)
{
    unsigned whole = precision - scale;
    return whole / 9 * 4 + group_bytes[whole % 9] + scale / 9 * 4 + group_bytes[scale % 9];
}

/* `count` digits of weight 10^(place + count - 1) … 10^place as one group. */
static uint8_t *pack_group(uint8_t *out, const struct decimal *d, int place, unsigned count)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < count; i++)
        v = v * 10 + (uint32_t)dec_digit(d, place + (int)(count - 1 - i));
    for (unsigned b = group_bytes[count]; b-- > 0;)
        *out++ = (uint8_t)(v >> (8 * b));
    return out;
}

bool dec_pack(const struct decimal *value, unsigned precision, unsigned scale, uint8_t *out)
{
    struct decimal d = *value;
    dec_round(&d, scale);
    unsigned whole = precision - scale;
    bool fits = d.int_digits <= whole || (whole == 0 && d.int_digits == 1 && d.digit[0] == 0);
    if (!fits) {
        d.int_digits = (uint8_t)(whole ? whole : 1);
        memset(d.digit, 9, sizeof d.digit);
        if (!whole)
            d.digit[0] = 0;
    }
    uint8_t *p = out;
    unsigned first = whole % 9;
    int place = (int)whole - (int)first;
    if (first)
        p = pack_group(p, &d, place, first);
    for (; place > 0; place -= 9)
        p = pack_group(p, &d, place - 9, 9);
    unsigned done = 0;
    for (; done + 9 <= scale; done += 9)
        p = pack_group(p, &d, -(int)done - 9, 9);
    if (done < scale)
        p = pack_group(p, &d, -(int)scale, scale - done);
    if (d.negative && !dec_is_zero(&d))
        for (uint8_t *q = out; q < p; q++)
            *q = (uint8_t)~*q;
    out[0] ^= 0x80;
    return fits;
}

static const uint8_t *unpack_group(const uint8_t *in, uint8_t flip, uint8_t *digits, unsigned count,
                                   bool first)
{
    uint32_t v = 0;
    for (unsigned b = 0; b < group_bytes[count]; b++) {
        uint8_t byte = (uint8_t)(in[b] ^ flip);
        v = v << 8 | (uint8_t)(first && b == 0 ? byte ^ 0x80 : byte);
    }
    for (unsigned i = count; i-- > 0; v /= 10)
        digits[i] = (uint8_t)(v % 10);
    return in + group_bytes[count];
}

void dec_unpack(struct decimal *d, unsigned precision, unsigned scale, const uint8_t *in)
{
    unsigned whole = precision - scale, n = 0;
    d->negative = !(in[0] & 0x80);
    uint8_t flip = d->negative ? 0xFF : 0;
    bool first = true;
    if (!whole)
        d->digit[n++] = 0;
    for (unsigned left = whole, size = whole % 9; left; left -= size, size = 9) {
        if (!size)
            size = 9;
        in = unpack_group(in, flip, d->digit + n, size, first);
        first = false;
        n += size;
    }
    d->int_digits = (uint8_t)n;
    for (unsigned left = scale; left;) {
        unsigned size = left >= 9 ? 9 : left;
        in = unpack_group(in, flip, d->digit + n, size, first);
        first = false;
        n += size;
        left -= size;
    }
    d->scale = (uint8_t)scale;
    dec_trim(d);
}
