/* Date and time functions. */
#include <string.h>
#include <strings.h>
#include <time.h>

#include "func.h"

#define FN(name)                                                                                   \
    static struct value name(struct scope *sc, const struct expr *e, struct value *args,           \
                             uint32_t count)
#define UNUSED_ARGS (void)sc, (void)e, (void)args, (void)count

static struct value temporal_value(const struct temporal *t)
{
    struct value v = {.kind = V_TEMPORAL};
    v.t = *t;
    return v;
}

/* A value as a date with time; false: it is none. */
static bool as_datetime(struct scope *sc, const struct value *v, struct temporal *t)
{
    bool truncated;
    if (v->kind == V_TEMPORAL) {
        *t = v->t;
        return t->kind != TK_TIME;
    }
    if (v->kind == V_STRING) {
        struct value text = func_text(sc, v);
        bool date_only = !memchr(text.s.ptr, ':', text.s.len) && text.s.len <= 10;
        if (!temporal_parse(t, TK_DATETIME, text.s.ptr, text.s.len, &truncated))
            return false;
        if (date_only)
            t->kind = TK_DATE;
        return temporal_valid_date(t, false);
    }
    return temporal_from_number(t, TK_DATETIME, func_int(v), 0);
}

static struct value now_value(struct scope *sc, enum temporal_kind kind, unsigned decimals)
{
    struct temporal t;
    temporal_from_unix(&t, sc->s->now_seconds, sc->s->now_micros, sc->s->zone_seconds);
    temporal_round(&t, decimals);
    t.kind = (uint8_t)kind;
    if (kind == TK_TIME)
        t.year = t.month = t.day = 0;
    if (kind == TK_DATE)
        t.hour = t.minute = t.second = 0;
    return temporal_value(&t);
}

FN(fn_now)
{
    UNUSED_ARGS;
    return now_value(sc, TK_DATETIME, count ? (unsigned)func_int(&args[0]) % 7 : 0);
}

FN(fn_sysdate)
{
    UNUSED_ARGS;
    struct timespec now;
    struct temporal t;
    clock_gettime(CLOCK_REALTIME, &now);
    temporal_from_unix(&t, now.tv_sec, (uint32_t)(now.tv_nsec / 1000), sc->s->zone_seconds);
    temporal_round(&t, count ? (unsigned)func_int(&args[0]) % 7 : 0);
    return temporal_value(&t);
}

FN(fn_curdate)
{
    UNUSED_ARGS;
    return now_value(sc, TK_DATE, 0);
}

FN(fn_curtime)
{
    UNUSED_ARGS;
    return now_value(sc, TK_TIME, 0);
}

FN(fn_unix_timestamp)
{
    UNUSED_ARGS;
    struct temporal t;
    if (!count)
        return value_int(sc->s->now_seconds);
    if (!as_datetime(sc, &args[0], &t))
        return value_int(0);
    return value_int(temporal_to_unix(&t, sc->s->zone_seconds));
}

FN(fn_from_unixtime)
{
    UNUSED_ARGS;
    struct temporal t;
    int64_t n = func_int(&args[0]);
    if (n < 0 || n > INT32_MAX)
        return value_null();
    temporal_from_unix(&t, n, 0, sc->s->zone_seconds);
    return temporal_value(&t);
}

FN(fn_date)
{
    UNUSED_ARGS;
    struct temporal t;
    if (!as_datetime(sc, &args[0], &t))
        return value_null();
    t.kind = TK_DATE;
    t.hour = t.minute = t.second = t.micros = t.decimals = 0;
    return temporal_value(&t);
}

static struct value field(struct scope *sc, struct value *args, char which)
{
    struct temporal t;
    bool truncated;
    if (args[0].kind == V_TEMPORAL && args[0].t.kind == TK_TIME) {
        t = args[0].t;
    } else if (strchr("his", which) && args[0].kind == V_STRING) {
        struct value text = func_text(sc, &args[0]);
        if (!temporal_parse(&t, TK_TIME, text.s.ptr, text.s.len, &truncated))
            return value_null();
    }
    else if (!as_datetime(sc, &args[0], &t))
        return value_null();
    switch (which) {
    case 'y': return value_int(t.year);
    case 'm': return value_int(t.month);
    case 'd': return value_int(t.day);
    case 'h': return value_int(t.hour);
    case 'i': return value_int(t.minute);
    default: return value_int(t.second);
    }
}

FN(fn_year) { UNUSED_ARGS; return field(sc, args, 'y'); }
FN(fn_month) { UNUSED_ARGS; return field(sc, args, 'm'); }
FN(fn_day) { UNUSED_ARGS; return field(sc, args, 'd'); }
FN(fn_hour) { UNUSED_ARGS; return field(sc, args, 'h'); }
FN(fn_minute) { UNUSED_ARGS; return field(sc, args, 'i'); }
FN(fn_second) { UNUSED_ARGS; return field(sc, args, 's'); }

static void add_months(struct temporal *t, int64_t n)
{
    static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t months = t->year * 12LL + t->month - 1 + n;
    if (months < 0)
        months = 0;
    t->year = (uint16_t)(months / 12);
    t->month = (uint8_t)(months % 12 + 1);
    bool leap = (t->year % 4 == 0 && t->year % 100) || t->year % 400 == 0;
    uint8_t last = (uint8_t)(days[t->month - 1] + (t->month == 2 && leap));
    if (t->day > last)
        t->day = last;
}

static void add_micros(struct temporal *t, __int128 micros)
{
    __int128 at = (__int128)temporal_to_unix(t, 0) * 1000000 + t->micros + micros;
    int64_t seconds = (int64_t)(at / 1000000), rest = (int64_t)(at % 1000000);
    if (rest < 0) {
        rest += 1000000;
        seconds--;
    }
    uint8_t decimals = t->decimals;
    temporal_from_unix(t, seconds, (uint32_t)rest, 0);
    t->decimals = decimals;
}

static struct value add_interval(struct scope *sc, const struct value *when, const struct value *unit,
                                 int64_t n)
{
    static const struct { const char *name; int64_t micros; int months; } units[] = {
        {"MICROSECOND", 1, 0},        {"SECOND", 1000000, 0},       {"MINUTE", 60000000, 0},
        {"HOUR", 3600000000, 0},      {"DAY", 86400000000, 0},      {"WEEK", 7 * 86400000000, 0},
        {"MONTH", 0, 1},              {"QUARTER", 0, 3},            {"YEAR", 0, 12}};
    struct temporal t;
    if (!as_datetime(sc, when, &t))
        return value_null();
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(units[i].name, unit->s.ptr))
            continue;
        if (units[i].months) {
            add_months(&t, n * units[i].months);
        } else {
            bool date_only = t.kind == TK_DATE && units[i].micros >= 86400000000;
            if (units[i].micros == 1)
                t.decimals = 6;
            add_micros(&t, (__int128)n * units[i].micros);
            t.kind = date_only ? TK_DATE : TK_DATETIME;
        }
        return t.year > 9999 ? value_null() : temporal_value(&t);
    }
    return value_null();
}

FN(fn_date_add)
{
    UNUSED_ARGS;
    return add_interval(sc, &args[0], &args[2], func_int(&args[1]));
}

FN(fn_date_sub)
{
    UNUSED_ARGS;
    return add_interval(sc, &args[0], &args[2], -func_int(&args[1]));
}

FN(fn_timestampadd)
{
    UNUSED_ARGS;
    return add_interval(sc, &args[2], &args[0], func_int(&args[1]));
}

FN(fn_datediff)
{
    UNUSED_ARGS;
    struct temporal a, b;
    if (!as_datetime(sc, &args[0], &a) || !as_datetime(sc, &args[1], &b))
        return value_null();
    return value_int(temporal_day_number(a.year, a.month, a.day) -
                     temporal_day_number(b.year, b.month, b.day));
}

const struct function time_functions[] = {
    {"NOW", fn_now, 0, 1, 0},
    {"CURRENT_TIMESTAMP", fn_now, 0, 1, 0},
    {"LOCALTIME", fn_now, 0, 1, 0},
    {"LOCALTIMESTAMP", fn_now, 0, 1, 0},
    {"SYSDATE", fn_sysdate, 0, 1, FUNC_VOLATILE},
    {"CURDATE", fn_curdate, 0, 0, 0},
    {"CURRENT_DATE", fn_curdate, 0, 0, 0},
    {"CURTIME", fn_curtime, 0, 1, 0},
    {"CURRENT_TIME", fn_curtime, 0, 1, 0},
    {"UNIX_TIMESTAMP", fn_unix_timestamp, 0, 1, 0},
    {"FROM_UNIXTIME", fn_from_unixtime, 1, 1, 0},
    {"DATE", fn_date, 1, 1, 0},
    {"YEAR", fn_year, 1, 1, 0},
    {"MONTH", fn_month, 1, 1, 0},
    {"DAY", fn_day, 1, 1, 0},
    {"DAYOFMONTH", fn_day, 1, 1, 0},
    {"HOUR", fn_hour, 1, 1, 0},
    {"MINUTE", fn_minute, 1, 1, 0},
    {"SECOND", fn_second, 1, 1, 0},
    {"DATE_ADD", fn_date_add, 3, 3, 0},
    {"ADDDATE", fn_date_add, 3, 3, 0},
    {"DATE_SUB", fn_date_sub, 3, 3, 0},
    {"SUBDATE", fn_date_sub, 3, 3, 0},
    {"TIMESTAMPADD", fn_timestampadd, 3, 3, 0},
    {"DATEDIFF", fn_datediff, 2, 2, 0},
    {NULL, NULL, 0, 0, 0},
};
