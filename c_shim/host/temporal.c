/* Dates and times: text, numbers, arithmetic on days, and the "2" storage formats. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "value.h"

static const uint8_t month_days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

static bool leap(unsigned y)
{
    return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

bool temporal_valid_date(const struct temporal *t, bool allow_zero)
{
    if (!t->year && !t->month && !t->day)
        return allow_zero;
    if (t->year > 9999 || t->month < 1 || t->month > 12 || t->day < 1)
        return false;
    return t->day <= month_days[t->month - 1] + (t->month == 2 && leap(t->year));
}

int64_t temporal_day_number(unsigned year, unsigned month, unsigned day)
{
    /* Civil days with the year beginning in March. */
    int64_t y = (int64_t)year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    unsigned yoe = (unsigned)(y - era * 400);
    unsigned doy = (153 * (month + (month > 2 ? -3u : 9u)) + 2) / 5 + day - 1;
    unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

void temporal_from_days(int64_t days, struct temporal *t)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned doe = (unsigned)(days - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    t->day = (uint8_t)(doy - (153 * mp + 2) / 5 + 1);
    t->month = (uint8_t)(mp < 10 ? mp + 3 : mp - 9);
    t->year = (uint16_t)(yoe + era * 400 + (t->month <= 2));
}

int64_t temporal_to_unix(const struct temporal *t, int zone_seconds)
{
    return temporal_day_number(t->year, t->month, t->day) * 86400 + t->hour * 3600 +
           t->minute * 60 + t->second - zone_seconds;
}

void temporal_from_unix(struct temporal *t, int64_t seconds, uint32_t micros, int zone_seconds)
{
    seconds += zone_seconds;
    int64_t days = seconds / 86400, rest = seconds % 86400;
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    *t = (struct temporal){.kind = TK_DATETIME, .micros = micros};
    temporal_from_days(days, t);
    t->hour = (uint16_t)(rest / 3600);
    t->minute = (uint8_t)(rest / 60 % 60);
    t->second = (uint8_t)(rest % 60);
}

struct scan {
    const char *s;
    size_t len, pos;
};

static int peek(const struct scan *c)
{
    return c->pos < c->len ? (unsigned char)c->s[c->pos] : -1;
}

static unsigned number(struct scan *c, unsigned max_digits, unsigned *digits)
{
    unsigned v = 0, n = 0;
    while (n < max_digits && isdigit(peek(c))) {
        v = v * 10 + (unsigned)(peek(c) - '0');
        c->pos++;
        n++;
    }
    if (digits)
        *digits = n;
    return v;
}

/* ".123456…": digits past the sixth are cut. */
static void fraction(struct scan *c, struct temporal *t, bool *truncated)
{
    if (peek(c) != '.')
        return;
    c->pos++;
    uint32_t v = 0;
    unsigned n = 0;
    for (; isdigit(peek(c)); c->pos++, n++)
        if (n < 6)
            v = v * 10 + (uint32_t)(peek(c) - '0');
        else if (peek(c) != '0')
            *truncated = true;
    t->decimals = (uint8_t)(n > 6 ? 6 : n);
    for (; n < 6; n++)
        v *= 10;
    t->micros = v;
}

static unsigned two_digit_year(unsigned y)
{
    return y < 70 ? 2000 + y : 1900 + y;
}

static bool time_in_range(const struct temporal *t)
{
    return t->minute < 60 && t->second < 60;
}

/* Digits without separators: YYYYMMDD, YYMMDD, YYYYMMDDHHMMSS, YYMMDDHHMMSS. */
static bool packed_datetime(struct scan *c, unsigned digits, struct temporal *t)
{
    unsigned year_digits = digits == 8 || digits == 14 ? 4 : 2;
    unsigned y = number(c, year_digits, NULL);
    t->year = (uint16_t)(year_digits == 2 ? two_digit_year(y) : y);
    t->month = (uint8_t)number(c, 2, NULL);
    t->day = (uint8_t)number(c, 2, NULL);
    if (digits >= 12) {
        t->hour = (uint16_t)number(c, 2, NULL);
        t->minute = (uint8_t)number(c, 2, NULL);
        t->second = (uint8_t)number(c, 2, NULL);
    }
    return digits == 6 || digits == 8 || digits == 12 || digits == 14;
}

static bool is_separator(int c)
{
    return c > 0 && ispunct(c);
}

static bool scan_date(struct scan *c, struct temporal *t)
{
    unsigned digits;
    struct scan save = *c;
    unsigned y = number(c, 5, &digits);
    if (!digits || !is_separator(peek(c))) {
        *c = save;
        return false;
    }
    t->year = (uint16_t)(digits <= 2 ? two_digit_year(y) : y);
    c->pos++;
    t->month = (uint8_t)number(c, 2, &digits);
    if (!digits || !is_separator(peek(c)))
        return false;
    c->pos++;
    t->day = (uint8_t)number(c, 2, &digits);
    return digits > 0;
}

static void scan_clock(struct scan *c, struct temporal *t, bool *truncated)
{
    t->hour = (uint16_t)number(c, 2, NULL);
    if (is_separator(peek(c))) {
        c->pos++;
        t->minute = (uint8_t)number(c, 2, NULL);
        if (is_separator(peek(c))) {
            c->pos++;
            t->second = (uint8_t)number(c, 2, NULL);
        }
    }
    fraction(c, t, truncated);
}

static bool parse_datetime(struct scan *c, struct temporal *t, bool *truncated)
{
    size_t digits = 0;
    while (c->pos + digits < c->len && isdigit((unsigned char)c->s[c->pos + digits]))
        digits++;
    t->kind = TK_DATETIME;
    if (digits >= 6 && (c->pos + digits == c->len || !is_separator(c->s[c->pos + digits]) ||
                        c->s[c->pos + digits] == '.')) {
        if (!packed_datetime(c, (unsigned)digits, t))
            return false;
        if (digits >= 12)
            fraction(c, t, truncated);
    } else {
        if (!scan_date(c, t))
            return false;
        if (peek(c) == 'T' || isspace(peek(c))) {
            c->pos++;
            while (isspace(peek(c)))
                c->pos++;
            if (isdigit(peek(c)))
                scan_clock(c, t, truncated);
        }
    }
    if (t->hour > 23 || !time_in_range(t))
        return false;
    /* A month or a day may be zero: NO_ZERO_IN_DATE is not among the default modes. */
    bool without_month = t->month == 0 && t->day <= 31;
    return temporal_valid_date(t, true) || without_month || (t->month <= 12 && t->day == 0);
}

static void clamp_time(struct temporal *t, bool *truncated)
{
    if (t->hour > 838 || (t->hour == 838 && t->minute == 59 && t->second == 59 && t->micros)) {
        t->hour = 838;
        t->minute = t->second = 59;
        t->micros = 0;
        *truncated = true;
    }
}

/* [-][D ]H:MM[:SS][.f], HHMMSS, or a whole datetime whose date is dropped. */
static bool parse_time(struct scan *c, struct temporal *t, bool *truncated)
{
    struct scan save = *c;
    t->kind = TK_TIME;
    if (peek(c) == '-') {
        t->negative = true;
        c->pos++;
    } else {
        struct temporal full = {0};
        if (scan_date(c, &full) && (peek(c) == ' ' || peek(c) == 'T')) {
            *c = save;
            if (!parse_datetime(c, &full, truncated))
                return false;
            *t = full;
            t->kind = TK_TIME;
            t->year = t->month = t->day = 0;
            return true;
        }
        *c = save;
    }
    unsigned digits, v = number(c, 9, &digits);
    if (!digits)
        return false;
    if (peek(c) == ' ' && c->pos + 1 < c->len && isdigit((unsigned char)c->s[c->pos + 1])) {
        c->pos++;
        unsigned hours = number(c, 2, NULL);
        v = v * 24 + hours;
        digits = 2;
        if (peek(c) != ':')
            t->hour = (uint16_t)(v > 839 ? 839 : v);
    }
    if (peek(c) == ':') {
        t->hour = (uint16_t)(v > 839 ? 839 : v);
        c->pos++;
        t->minute = (uint8_t)number(c, 2, NULL);
        if (peek(c) == ':') {
            c->pos++;
            t->second = (uint8_t)number(c, 2, NULL);
        }
    } else if (!t->hour) {
        t->hour = (uint16_t)(v / 10000 > 839 ? 839 : v / 10000);
        t->minute = (uint8_t)(v / 100 % 100);
        t->second = (uint8_t)(v % 100);
    }
    fraction(c, t, truncated);
    if (!time_in_range(t))
        return false;
    clamp_time(t, truncated);
    return true;
}

bool temporal_parse(struct temporal *t, enum temporal_kind kind, const char *s, size_t len,
                    bool *truncated)
{
    struct scan c = {s, len, 0};
    *t = (struct temporal){0};
    *truncated = false;
    while (isspace(peek(&c)))
        c.pos++;
    bool ok = kind == TK_TIME ? parse_time(&c, t, truncated) : parse_datetime(&c, t, truncated);
    while (ok && isspace(peek(&c)))
        c.pos++;
    if (ok && c.pos < c.len)
        *truncated = true;
    if (ok && kind == TK_DATE)
        t->kind = TK_DATE;
    return ok;
}

bool temporal_from_number(struct temporal *t, enum temporal_kind kind, int64_t number,
                          uint32_t micros)
{
    *t = (struct temporal){.kind = kind, .micros = micros, .decimals = micros ? 6 : 0};
    uint64_t n = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    bool truncated = false;
    if (kind == TK_TIME && n < 10000000000u) {
        t->negative = number < 0;
        t->hour = (uint16_t)(n / 10000 > 839 ? 839 : n / 10000);
        t->minute = (uint8_t)(n / 100 % 100);
        t->second = (uint8_t)(n % 100);
        if (!time_in_range(t))
            return false;
        clamp_time(t, &truncated);
        return !truncated;
    }
    if (number < 0)
        return false;
    if (n == 0)
        return true;
    uint64_t date = n, clock = 0;
    if (n > 99999999u) { /* with a time of day */
        date = n / 1000000;
        clock = n % 1000000;
    }
    if (date < 1000000) /* two-digit year */
        date += date / 10000 < 70 ? 20000000 : 19000000;
    t->year = (uint16_t)(date / 10000 > 10000 ? 10000 : date / 10000);
    t->month = (uint8_t)(date / 100 % 100);
    t->day = (uint8_t)(date % 100);
    t->hour = (uint16_t)(clock / 10000);
    t->minute = (uint8_t)(clock / 100 % 100);
    t->second = (uint8_t)(clock % 100);
    return t->hour < 24 && time_in_range(t) && temporal_valid_date(t, true);
}

size_t temporal_print(const struct temporal *t, char *out)
{
    int n = 0;
    if (t->kind != TK_TIME)
        n = sprintf(out, "%04u-%02u-%02u", t->year % 10000u, t->month % 100u, t->day % 100u);
    if (t->kind == TK_DATETIME)
        out[n++] = ' ';
    if (t->kind != TK_DATE)
        n += sprintf(out + n, "%s%02u:%02u:%02u", t->negative ? "-" : "", t->hour % 1000u,
                     t->minute % 100u, t->second % 100u);
    if (t->kind != TK_DATE && t->decimals) {
        char digits[12];
        snprintf(digits, sizeof digits, "%06u", t->micros % 1000000u);
        n += sprintf(out + n, ".%.*s", (int)t->decimals, digits);
    }
    return (size_t)n;
}

int64_t temporal_to_number(const struct temporal *t)
{
    int64_t date = t->year * 10000LL + t->month * 100 + t->day;
    int64_t clock = t->hour * 10000LL + t->minute * 100 + t->second;
    if (t->kind == TK_DATE)
        return date;
    if (t->kind == TK_TIME)
        return t->negative ? -clock : clock;
    return date * 1000000 + clock;
}

int temporal_compare(const struct temporal *a, const struct temporal *b)
{
    struct temporal x = *a, y = *b;
    if (x.kind == TK_DATE && y.kind != TK_DATE)
        x.kind = TK_DATETIME;
    if (y.kind == TK_DATE && x.kind != TK_DATE)
        y.kind = TK_DATETIME;
    int64_t p = temporal_to_number(&x), q = temporal_to_number(&y);
    if (p != q)
        return p < q ? -1 : 1;
    int64_t pm = x.negative ? -(int64_t)x.micros : x.micros;
    int64_t qm = y.negative ? -(int64_t)y.micros : y.micros;
    return pm < qm ? -1 : pm > qm;
}

void temporal_round(struct temporal *t, unsigned decimals)
{
    static const uint32_t unit[7] = {1000000, 100000, 10000, 1000, 100, 10, 1};
    t->micros -= t->micros % unit[decimals > 6 ? 6 : decimals];
    t->decimals = (uint8_t)decimals;
}

uint32_t temporal_pack_size(uint8_t col_type, unsigned decimals)
{
    uint32_t fraction_bytes = (decimals + 1) / 2;
    switch (col_type) {
    case CT_DATE: return 3;
    case CT_TIME: return 3 + fraction_bytes;
    case CT_DATETIME: return 5 + fraction_bytes;
    default: return 4 + fraction_bytes;
    }
}

static void put_be(uint8_t *out, uint64_t v, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0; v >>= 8)
        out[i] = (uint8_t)v;
}

static uint64_t get_be(const uint8_t *in, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | in[i];
    return v;
}

/* The fraction as an integer of 2 * ceil(f/2) digits. */
static uint32_t fraction_value(uint32_t micros, unsigned bytes)
{
    static const uint32_t unit[4] = {1000000, 10000, 100, 1};
    return bytes ? micros / unit[bytes] : 0;
}

static uint32_t fraction_micros(uint32_t v, unsigned bytes)
{
    static const uint32_t unit[4] = {0, 10000, 100, 1};
    return v * unit[bytes];
}

void temporal_pack(const struct temporal *t, uint8_t col_type, unsigned decimals, uint8_t *out)
{
    unsigned f = (decimals + 1) / 2;
    uint64_t frac = fraction_value(t->micros, f);
    uint64_t clock = (uint64_t)t->hour << 12 | (uint64_t)t->minute << 6 | t->second;
    if (col_type == CT_DATE) {
        uint32_t v = (uint32_t)t->year << 9 | (uint32_t)t->month << 5 | t->day;
        out[0] = (uint8_t)v; /* row format: little-endian */
        out[1] = (uint8_t)(v >> 8);
        out[2] = (uint8_t)(v >> 16);
    } else if (col_type == CT_TIME) {
        uint64_t v = clock << (8 * f) | frac, zero = (uint64_t)0x800000 << (8 * f);
        put_be(out, t->negative ? zero - v : zero + v, 3 + f);
    } else {
        uint64_t ym = (uint64_t)t->year * 13 + t->month;
        uint64_t v = (ym << 22 | (uint64_t)t->day << 17 | clock) + 0x8000000000u;
        put_be(out, v, 5);
        put_be(out + 5, frac, f);
    }
}

void temporal_unpack(struct temporal *t, uint8_t col_type, unsigned decimals, const uint8_t *in)
{
    unsigned f = (decimals + 1) / 2;
    *t = (struct temporal){.decimals = (uint8_t)decimals};
    uint64_t clock;
    if (col_type == CT_DATE) {
        uint32_t v = in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16;
        t->kind = TK_DATE;
        t->year = (uint16_t)(v >> 9);
        t->month = v >> 5 & 15;
        t->day = v & 31;
        return;
    }
    if (col_type == CT_TIME) {
        int64_t zero = (int64_t)0x800000 << (8 * f);
        int64_t v = (int64_t)get_be(in, 3 + f) - zero;
        t->kind = TK_TIME;
        t->negative = v < 0;
        uint64_t u = (uint64_t)(v < 0 ? -v : v);
        t->micros = fraction_micros((uint32_t)(u & (((uint64_t)1 << (8 * f)) - 1)), f);
        clock = u >> (8 * f);
    } else {
        uint64_t v = get_be(in, 5) - 0x8000000000u;
        t->kind = TK_DATETIME;
        t->micros = f ? fraction_micros((uint32_t)get_be(in + 5, f), f) : 0;
        t->year = (uint16_t)((v >> 22) / 13);
        t->month = (uint8_t)((v >> 22) % 13);
        t->day = v >> 17 & 31;
        clock = v & 0x1FFFF;
    }
    t->hour = (uint16_t)(clock >> 12 & 0x3FF);
    t->minute = clock >> 6 & 63;
    t->second = clock & 63;
}
