/* System variables of the host, and those of the engines behind them. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "charset.h"
#include "exec.h"

enum kind { K_TEXT, K_BOOL, K_NUMBER };
enum { F_GLOBAL = 1, F_SESSION = 2, F_BOTH = 3, F_READ_ONLY = 4 };

typedef unsigned (*apply_fn)(session *s, const char *name, const char *value);

static unsigned bad_value(session *s, const char *name, const char *value)
{
    return sql_error(s, 1231, name, value);
}

static bool is_on(const char *value)
{
    return !strcasecmp(value, "ON") || !strcmp(value, "1");
}

static unsigned apply_autocommit(session *s, const char *name, const char *value)
{
    (void)name;
    bool on = is_on(value);
    unsigned code = 0;
    if (on && !s->autocommit)
        code = transaction_commit(s);
    s->autocommit = on;
    return code;
}

static unsigned apply_sql_mode(session *s, const char *name, const char *value)
{
    (void)name;
    s->strict = strcasestr(value, "STRICT_") || strcasestr(value, "TRADITIONAL");
    s->division_checked = strcasestr(value, "ERROR_FOR_DIVISION_BY_ZERO") || strcasestr(value, "TRADITIONAL");
    s->zero_is_value = strcasestr(value, "NO_AUTO_VALUE_ON_ZERO") != NULL;
    return 0;
}

static unsigned apply_isolation(session *s, const char *name, const char *value)
{
    static const char *const levels[] = {"READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ",
                                         "SERIALIZABLE"};
    for (uint8_t i = 0; i < 4; i++)
        if (!strcasecmp(value, levels[i])) {
            s->isolation = i;
            return 0;
        }
    return bad_value(s, name, value);
}

static unsigned apply_time_zone(session *s, const char *name, const char *value)
{
    (void)name;
    char sign;
    unsigned hours, minutes;
    if (!strcasecmp(value, "SYSTEM") || !strcasecmp(value, "UTC")) {
        s->zone_seconds = 0;
        return 0;
    }
    if (sscanf(value, "%c%u:%u", &sign, &hours, &minutes) != 3 || (sign != '+' && sign != '-') ||
        hours > 14 || minutes > 59)
        return sql_error(s, 1298, value);
    s->zone_seconds = (int)(hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
    return 0;
}

static unsigned apply_charset(session *s, const char *name, const char *value)
{
    uint32_t collation = coll_default_of(value);
    if (!collation)
        return sql_error(s, 1115, value);
    if (!strcasecmp(name, "character_set_client") || !strcasecmp(name, "character_set_connection"))
        s->collation = collation;
    return 0;
}

static unsigned apply_collation(session *s, const char *name, const char *value)
{
    uint32_t collation = coll_by_name(value);
    if (!collation)
        return sql_error(s, 1273, value);
    if (!strcasecmp(name, "collation_connection"))
        s->collation = collation;
    return 0;
}

static unsigned apply_foreign_keys(session *s, const char *name, const char *value)
{
    (void)name;
    s->foreign_key_checks = is_on(value);
    return 0;
}

static unsigned apply_unique(session *s, const char *name, const char *value)
{
    (void)name;
    s->unique_checks = is_on(value);
    return 0;
}

static unsigned apply_lock_wait(session *s, const char *name, const char *value)
{
    (void)name;
    s->metadata_wait_seconds = (uint32_t)strtoul(value, NULL, 10);
    return 0;
}

static unsigned apply_read_only(session *s, const char *name, const char *value)
{
    (void)name;
    s->next_read_only = is_on(value);
    return 0;
}

static const struct sysvar {
    const char *name, *initial;
    enum kind kind;
    uint8_t flags;
    apply_fn apply;
} sysvars[] = {
    {"auto_increment_increment", "1", K_NUMBER, F_BOTH, NULL},
    {"auto_increment_offset", "1", K_NUMBER, F_BOTH, NULL},
    {"autocommit", "ON", K_BOOL, F_BOTH, apply_autocommit},
    {"character_set_client", "utf8mb4", K_TEXT, F_BOTH, apply_charset},
    {"character_set_connection", "utf8mb4", K_TEXT, F_BOTH, apply_charset},
    {"character_set_database", "utf8mb4", K_TEXT, F_BOTH, apply_charset},
    {"character_set_results", "utf8mb4", K_TEXT, F_BOTH, NULL},
    {"character_set_server", "utf8mb4", K_TEXT, F_BOTH, apply_charset},
    {"collation_connection", "utf8mb4_general_ci", K_TEXT, F_BOTH, apply_collation},
    {"collation_database", "utf8mb4_general_ci", K_TEXT, F_BOTH, apply_collation},
    {"collation_server", "utf8mb4_general_ci", K_TEXT, F_BOTH, apply_collation},
    {"datadir", NULL, K_TEXT, F_GLOBAL | F_READ_ONLY, NULL},
    {"default_storage_engine", "InnoDB", K_TEXT, F_BOTH, NULL},
    {"foreign_key_checks", "ON", K_BOOL, F_BOTH, apply_foreign_keys},
    {"lock_wait_timeout", "86400", K_NUMBER, F_BOTH, apply_lock_wait},
    {"lower_case_table_names", "0", K_NUMBER, F_GLOBAL | F_READ_ONLY, NULL},
    {"max_allowed_packet", "1073741824", K_NUMBER, F_BOTH, NULL},
    {"max_statement_time", "0", K_NUMBER, F_BOTH, NULL},
    {"net_read_timeout", "30", K_NUMBER, F_BOTH, NULL},
    {"net_write_timeout", "60", K_NUMBER, F_BOTH, NULL},
    {"note_verbosity", "basic", K_TEXT, F_BOTH, NULL},
    {"plugin_dir", NULL, K_TEXT, F_GLOBAL | F_READ_ONLY, NULL},
    {"sql_auto_is_null", "OFF", K_BOOL, F_BOTH, NULL},
    {"sql_log_bin", "ON", K_BOOL, F_SESSION, NULL},
    {"sql_mode",
     "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
     K_TEXT, F_BOTH, apply_sql_mode},
    {"sql_notes", "ON", K_BOOL, F_BOTH, NULL},
    {"sql_quote_show_create", "ON", K_BOOL, F_BOTH, NULL},
    {"sql_safe_updates", "OFF", K_BOOL, F_BOTH, NULL},
    {"sql_select_limit", "18446744073709551615", K_NUMBER, F_BOTH, NULL},
    {"storage_engine", "InnoDB", K_TEXT, F_BOTH, NULL},
    {"system_versioning_insert_history", "OFF", K_BOOL, F_BOTH, NULL},
    {"time_zone", "SYSTEM", K_TEXT, F_BOTH, apply_time_zone},
    {"transaction_isolation", "REPEATABLE-READ", K_TEXT, F_BOTH, apply_isolation},
    {"transaction_read_only", "OFF", K_BOOL, F_BOTH, apply_read_only},
    {"tx_isolation", "REPEATABLE-READ", K_TEXT, F_BOTH, apply_isolation},
    {"tx_read_only", "OFF", K_BOOL, F_BOTH, apply_read_only},
    {"unique_checks", "ON", K_BOOL, F_BOTH, apply_unique},
    {"version", "10.11.18-xtradb-host", K_TEXT, F_GLOBAL | F_READ_ONLY, NULL},
    {"version_comment", "xtradb reference host", K_TEXT, F_GLOBAL | F_READ_ONLY, NULL},
    {"wait_timeout", "28800", K_NUMBER, F_BOTH, NULL},
};
enum { SYSVAR_COUNT = sizeof sysvars / sizeof *sysvars };

/* Global values that were changed: for all hosts of the process, as an option file would be. */
static pthread_mutex_t global_lock = PTHREAD_MUTEX_INITIALIZER;
static char *global_value[SYSVAR_COUNT];

static const struct sysvar *sysvar_find(const char *name)
{
    for (size_t i = 0; i < SYSVAR_COUNT; i++)
        if (!strcasecmp(sysvars[i].name, name))
            return &sysvars[i];
    return NULL;
}

static void copy_global(session *s, const struct sysvar *v, char *out, size_t size)
{
    if (!strcmp(v->name, "datadir")) {
        snprintf(out, size, "%s/", s->h->datadir ? s->h->datadir : "");
        return;
    }
    if (!strcmp(v->name, "plugin_dir")) {
        snprintf(out, size, "%s/", s->h->plugin_dir ? s->h->plugin_dir : "");
        return;
    }
    pthread_mutex_lock(&global_lock);
    const char *value = global_value[v - sysvars];
    snprintf(out, size, "%s", value ? value : v->initial);
    pthread_mutex_unlock(&global_lock);
}

static struct variable *session_value(session *s, const char *name)
{
    for (struct variable *v = s->system_vars; v; v = v->next)
        if (!strcasecmp(v->name, name))
            return v;
    return NULL;
}

static void current_value(session *s, const struct sysvar *v, bool global, char *out, size_t size)
{
    struct variable *own = global ? NULL : session_value(s, v->name);
    if (own)
        snprintf(out, size, "%.*s", (int)own->value.s.len, own->value.s.ptr);
    else
        copy_global(s, v, out, size);
}

/* The two names of one variable. */
static const char *twin(const char *name)
{
    static const char *const pairs[][2] = {{"tx_isolation", "transaction_isolation"},
                                           {"tx_read_only", "transaction_read_only"},
                                           {"storage_engine", "default_storage_engine"}};
    for (size_t i = 0; i < 3; i++) {
        if (!strcasecmp(name, pairs[i][0]))
            return pairs[i][1];
        if (!strcasecmp(name, pairs[i][1]))
            return pairs[i][0];
    }
    return NULL;
}

static void remember(session *s, const char *name, const char *value)
{
    struct variable *v = session_value(s, name);
    if (!v) {
        v = mem_alloc(sizeof *v);
        v->name = mem_strdup(name);
        v->next = s->system_vars;
        s->system_vars = v;
    } else {
        free((char *)(uintptr_t)v->value.s.ptr);
    }
    v->value = value_string(mem_strdup(value), strlen(value), COLL_UTF8MB4);
}

static void remember_global(const struct sysvar *v, const char *value)
{
    pthread_mutex_lock(&global_lock);
    free(global_value[v - sysvars]);
    global_value[v - sysvars] = mem_strdup(value);
    pthread_mutex_unlock(&global_lock);
}

void sysvar_init(session *s)
{
    char text[600];
    for (size_t i = 0; i < SYSVAR_COUNT; i++)
        if (sysvars[i].apply) {
            copy_global(s, &sysvars[i], text, sizeof text);
            sysvars[i].apply(s, sysvars[i].name, text);
        }
    s->next_read_only = false;
}

static unsigned normalise(session *s, const struct sysvar *var, const struct value *v, char *text,
                          size_t size)
{
    struct value t = value_to_text(&s->arena, v);
    snprintf(text, size, "%.*s", (int)t.s.len, v->kind == V_NULL ? "" : t.s.ptr);
    if (var->kind == K_BOOL) {
        bool on = is_on(text) || !strcasecmp(text, "TRUE");
        bool off = !strcasecmp(text, "OFF") || !strcmp(text, "0") || !strcasecmp(text, "FALSE");
        if (!on && !off)
            return bad_value(s, var->name, text);
        snprintf(text, size, "%s", on ? "ON" : "OFF");
    } else if (var->kind == K_NUMBER) {
        if (v->kind == V_STRING || v->kind == V_NULL)
            return sql_error(s, 1232, var->name);
    } else if (v->kind == V_NULL && var->apply != apply_charset) {
        snprintf(text, size, "NULL");
    }
    return 0;
}

static enum set_type set_type_of(const struct value *v)
{
    if (!v)
        return SET_ANY_TYPE;
    switch (v->kind) {
    case V_INT:
    case V_UINT: return SET_INTEGER;
    case V_DECIMAL:
    case V_DOUBLE: return SET_FRACTION;
    default: return SET_TEXT; /* NULL, too */
    }
}

static unsigned engine_set(session *s, bool global, const char *name, const struct value *v)
{
    struct value t = v && v->kind != V_NULL ? value_to_text(&s->arena, v) : value_string("", 0, COLL_UTF8MB4);
    const char *text = v ? arena_strndup(&s->arena, t.s.ptr, t.s.len) : NULL;
    enum set_type type = set_type_of(v);
    for (uint32_t slot = 0; slot < MAX_ENGINES; slot++) {
        engine *e = registry_engine_at(s->h, slot);
        struct part *p;
        if (!e || !e->ops->set_variable || part_open(s, e, &p))
            continue;
        int code = e->ops->set_variable(e, p->es, global, name, text, type);
        switch (code) {
        case 0: return 0;
        case 1193: continue;
        case 1231: return bad_value(s, name, !text ? "DEFAULT" : v->kind == V_NULL ? "NULL" : text);
        case 1238: return sql_error(s, 1238, name, "read only");
        case 1228:
        case 1229:
        case 1232: return sql_error(s, (unsigned)code, name);
        default: return se_error(s, code, NULL, NULL);
        }
    }
    return s->diag.error ? s->diag.error : sql_error(s, 1193, name);
}

unsigned sysvar_set(session *s, enum set_scope scope, const char *name, const struct value *v)
{
    const struct sysvar *var = sysvar_find(name);
    char text[600];
    bool global = scope == SET_GLOBAL;
    if (!var)
        return engine_set(s, global, name, v);
    if (var->flags & F_READ_ONLY)
        return sql_error(s, 1238, var->name, "read only");
    if (global && !(var->flags & F_GLOBAL))
        return sql_error(s, 1228, var->name);
    if (v) {
        unsigned code = normalise(s, var, v, text, sizeof text);
        if (code)
            return code;
    } else if (global) {
        snprintf(text, sizeof text, "%s", var->initial);
    } else {
        copy_global(s, var, text, sizeof text);
    }
    if (!global && var->apply) {
        bool isolation_now = var->apply == apply_isolation && scope == SET_DEFAULT_SCOPE &&
                             s->explicit_trx;
        if (isolation_now)
            return sql_error(s, 1568);
        unsigned code = var->apply(s, var->name, text);
        if (code)
            return code;
        for (char *p = text; var->apply == apply_isolation && *p; p++)
            *p = (char)toupper((unsigned char)*p);
    }
    const struct sysvar *other = twin(var->name) ? sysvar_find(twin(var->name)) : NULL;
    if (global) {
        remember_global(var, text);
        if (other)
            remember_global(other, text);
    } else {
        remember(s, var->name, text);
        if (other)
            remember(s, other->name, text);
    }
    return 0;
}

static int list_own(session *s, bool global, row_fn fn, void *ctx)
{
    char text[600];
    for (size_t i = 0; i < SYSVAR_COUNT; i++) {
        current_value(s, &sysvars[i], global, text, sizeof text);
        struct is_value row[2] = {{sysvars[i].name, strlen(sysvars[i].name), false},
                                  {text, strlen(text), false}};
        int rc = fn(ctx, row, 2);
        if (rc)
            return rc;
    }
    return 0;
}

int sysvar_list(session *s, bool global, row_fn fn, void *ctx)
{
    int rc = list_own(s, global, fn, ctx);
    for (uint32_t slot = 0; slot < MAX_ENGINES && !rc; slot++) {
        engine *e = registry_engine_at(s->h, slot);
        struct part *p;
        if (e && e->ops->show_variables && !part_open(s, e, &p))
            rc = e->ops->show_variables(e, p->es, global, fn, ctx);
    }
    return rc;
}

struct lookup {
    session *s;
    const char *name;
    struct value found;
    bool hit;
};

static struct value typed_text(session *s, const char *text, size_t len)
{
    bool digits = len > 0 && len < 20;
    for (size_t i = 0; i < len; i++)
        digits &= isdigit((unsigned char)text[i]) != 0;
    if (digits)
        return value_uint(strtoull(arena_strndup(&s->arena, text, len), NULL, 10));
    if (len == 2 && !strncasecmp(text, "ON", 2))
        return value_int(1);
    if (len == 3 && !strncasecmp(text, "OFF", 3))
        return value_int(0);
    return value_string(arena_strndup(&s->arena, text, len), len, COLL_UTF8MB4);
}

static int lookup_row(void *ctx, const struct is_value *values, size_t count)
{
    struct lookup *l = ctx;
    if (count < 2 || strlen(l->name) != values[0].len || strncasecmp(l->name, values[0].ptr, values[0].len))
        return 0;
    l->found = values[1].null ? value_null() : typed_text(l->s, values[1].ptr, values[1].len);
    l->hit = true;
    return 1;
}

struct value sysvar_value(session *s, const char *name)
{
    bool global = !strncasecmp(name, "global.", 7);
    char text[600];
    name += global ? 7 : !strncasecmp(name, "session.", 8) ? 8 : !strncasecmp(name, "local.", 6) ? 6 : 0;
    const struct sysvar *var = sysvar_find(name);
    if (var) {
        current_value(s, var, global, text, sizeof text);
        size_t len = strlen(text);
        if (var->kind == K_TEXT)
            return value_string(arena_strndup(&s->arena, text, len), len, COLL_UTF8MB4);
        return typed_text(s, text, len);
    }
    if (!strcasecmp(name, "last_insert_id") || !strcasecmp(name, "identity"))
        return value_uint(s->last_insert_id);
    if (!strcasecmp(name, "in_transaction")) {
        bool in = s->explicit_trx;
        for (uint32_t i = 0; i < MAX_ENGINES; i++)
            in |= s->parts[i].in_trx;
        return value_int(in);
    }
    if (!strcasecmp(name, "warning_count"))
        return value_uint(s->diag.count);
    struct lookup l = {.s = s, .name = name};
    sysvar_list(s, global, lookup_row, &l);
    if (!l.hit && !s->diag.error)
        sql_error(s, 1193, name);
    return l.found;
}
