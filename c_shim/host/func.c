/* Finding and calling functions; those that concern the session, and control flow. */
#include "func.h"

#include <string.h>
#include <strings.h>
#include <time.h>

static const struct function *const groups[] = {string_functions, number_functions, time_functions,
                                                misc_functions};
enum { GROUP_SIZE = 256 };

int func_find(const char *name)
{
    for (int g = 0; g < 4; g++)
        for (int i = 0; groups[g][i].name; i++)
            if (!strcasecmp(groups[g][i].name, name))
                return g * GROUP_SIZE + i;
    return -1;
}

static const struct function *func_at(int id)
{
    return &groups[id / GROUP_SIZE][id % GROUP_SIZE];
}

bool func_is_constant(int function)
{
    return !(func_at(function)->flags & FUNC_VOLATILE);
}

struct value func_call(struct scope *sc, const struct expr *e)
{
    const struct function *f = func_at(e->function);
    struct value args[64];
    if (e->arg_count < f->min || e->arg_count > f->max || e->arg_count > 64) {
        sql_error(sc->s, 1582, e->name);
        return value_null();
    }
    if (f->flags & FUNC_LAZY)
        return f->call(sc, e, NULL, e->arg_count);
    for (uint32_t i = 0; i < e->arg_count; i++) {
        args[i] = expr_eval(sc, e->args[i]);
        if (args[i].kind == V_NULL && !(f->flags & FUNC_NULL_OK))
            return value_null();
    }
    return f->call(sc, e, args, e->arg_count);
}

struct value func_text(struct scope *sc, const struct value *v)
{
    return value_to_text(&sc->s->arena, v);
}

int64_t func_int(const struct value *v)
{
    bool ok;
    return value_to_int(v, &ok);
}

static struct value ascii(struct scope *sc, const char *text)
{
    size_t len = strlen(text);
    return value_string(arena_strndup(&sc->s->arena, text, len), len, COLL_UTF8MB3);
}

#define FN(name)                                                                                   \
    static struct value name(struct scope *sc, const struct expr *e, struct value *args,           \
                             uint32_t count)
#define UNUSED_ARGS (void)sc, (void)e, (void)args, (void)count

FN(fn_if)
{
    UNUSED_ARGS;
    struct value c = expr_eval(sc, e->args[0]);
    return expr_eval(sc, e->args[value_is_true(&c) ? 1 : 2]);
}

FN(fn_coalesce)
{
    UNUSED_ARGS;
    struct value v = value_null();
    for (uint32_t i = 0; i < count && v.kind == V_NULL; i++)
        v = expr_eval(sc, e->args[i]);
    return v;
}

FN(fn_nullif)
{
    UNUSED_ARGS;
    if (args[0].kind == V_NULL || args[1].kind == V_NULL)
        return args[0];
    return value_compare(&args[0], &args[1]) == 0 ? value_null() : args[0];
}

FN(fn_isnull)
{
    UNUSED_ARGS;
    return value_int(args[0].kind == V_NULL);
}

FN(fn_database)
{
    UNUSED_ARGS;
    return *sc->s->db ? ascii(sc, sc->s->db) : value_null();
}

FN(fn_user)
{
    UNUSED_ARGS;
    return ascii(sc, "root@localhost");
}

FN(fn_version)
{
    UNUSED_ARGS;
    return sysvar_value(sc->s, "version");
}

FN(fn_connection_id)
{
    UNUSED_ARGS;
    return value_uint(sc->s->id);
}

FN(fn_last_insert_id)
{
    UNUSED_ARGS;
    if (count)
        sc->s->last_insert_id = sc->s->insert_id_now = (uint64_t)func_int(&args[0]);
    return value_uint(sc->s->last_insert_id);
}

FN(fn_row_count)
{
    UNUSED_ARGS;
    return value_int(sc->s->row_count);
}

FN(fn_found_rows)
{
    UNUSED_ARGS;
    return value_uint(sc->s->found_rows);
}

/* SLEEP(seconds): ends early with 1 when the statement is interrupted. */
FN(fn_sleep)
{
    UNUSED_ARGS;
    double seconds = value_to_double(&args[0]);
    struct timespec step = {0, 10 * 1000000L};
    for (double slept = 0; slept < seconds; slept += 0.01) {
        if (atomic_load(&sc->s->interrupted))
            return value_int(1);
        nanosleep(&step, NULL);
    }
    return value_int(0);
}

FN(fn_uuid)
{
    UNUSED_ARGS;
    static atomic_uint_fast64_t counter;
    uint64_t a = (uint64_t)sc->s->now_seconds * 1000003u + sc->s->now_micros;
    uint64_t b = atomic_fetch_add(&counter, 1) * 0x9E3779B97F4A7C15u ^ a * 0xBF58476D1CE4E5B9u;
    uint8_t bytes[16];
    char text[37];
    memcpy(bytes, &a, 8);
    memcpy(bytes + 8, &b, 8);
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x40);
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);
    uuid_print(bytes, text);
    return ascii(sc, text);
}

FN(fn_json_valid)
{
    UNUSED_ARGS;
    struct value t = func_text(sc, &args[0]);
    return value_int(json_valid(t.s.ptr, t.s.len));
}

const struct function misc_functions[] = {
    {"IF", fn_if, 3, 3, FUNC_LAZY},
    {"IFNULL", fn_coalesce, 2, 2, FUNC_LAZY},
    {"NVL", fn_coalesce, 2, 2, FUNC_LAZY},
    {"COALESCE", fn_coalesce, 1, 64, FUNC_LAZY},
    {"NULLIF", fn_nullif, 2, 2, FUNC_NULL_OK},
    {"ISNULL", fn_isnull, 1, 1, FUNC_NULL_OK},
    {"DATABASE", fn_database, 0, 0, 0},
    {"SCHEMA", fn_database, 0, 0, 0},
    {"USER", fn_user, 0, 0, 0},
    {"CURRENT_USER", fn_user, 0, 0, 0},
    {"SESSION_USER", fn_user, 0, 0, 0},
    {"VERSION", fn_version, 0, 0, 0},
    {"CONNECTION_ID", fn_connection_id, 0, 0, 0},
    {"LAST_INSERT_ID", fn_last_insert_id, 0, 1, FUNC_VOLATILE},
    {"ROW_COUNT", fn_row_count, 0, 0, 0},
    {"FOUND_ROWS", fn_found_rows, 0, 0, 0},
    {"SLEEP", fn_sleep, 1, 1, FUNC_VOLATILE},
    {"UUID", fn_uuid, 0, 0, FUNC_VOLATILE},
    {"JSON_VALID", fn_json_valid, 1, 1, 0},
    {NULL, NULL, 0, 0, 0},
};
