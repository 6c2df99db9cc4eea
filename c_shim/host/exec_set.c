/* SET of user and system variables, SET NAMES. */
#include <string.h>

#include "exec.h"

static unsigned set_names(session *s, const struct set_item *item)
{
    static const char *const names[] = {"character_set_client", "character_set_connection",
                                        "character_set_results"};
    unsigned code = 0;
    struct value v = item->value ? item->value->value : value_string("utf8mb4", 7, COLL_UTF8MB4);
    if (!coll_default_of(arena_strndup(&s->arena, v.s.ptr, v.s.len)))
        return sql_error(s, 1115, v.s.ptr);
    for (size_t i = 0; i < 3 && !code; i++)
        code = sysvar_set(s, SET_SESSION, names[i], &v);
    if (!code && item->name) {
        struct value c = value_string(item->name, strlen(item->name), COLL_UTF8MB4);
        code = sysvar_set(s, SET_SESSION, "collation_connection", &c);
    }
    return code;
}

unsigned exec_set(session *s, struct stmt *st)
{
    struct scope sc = {.s = s, .clause = "SET"};
    struct value *values = arena_alloc(&s->arena, (st->set_count + 1) * sizeof *values);
    unsigned code = 0;
    for (uint32_t i = 0; i < st->set_count && !code; i++) {
        struct set_item *item = &st->sets[i];
        if (item->scope == SET_NAMES) {
            code = set_names(s, item);
            continue;
        }
        if (item->value)
            code = expr_bind(&sc, item->value);
        if (item->value && !code) {
            values[i] = expr_eval(&sc, item->value);
            code = s->diag.error;
        }
        if (code)
            break;
        if (item->scope == SET_USER_VAR)
            user_var_set(s, item->name, &values[i]);
        else
            code = sysvar_set(s, item->scope, item->name, item->value ? &values[i] : NULL);
    }
    if (!code)
        send_ok(s, 0, 0, NULL);
    return code;
}
