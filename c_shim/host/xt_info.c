/* What a library lets one look at: settings, status, the monitor, INFORMATION_SCHEMA tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "exec.h"
#include "xt_engine.h"

#define NUMBER_ROOM 40

/* A value as text. Numbers and times are written into `room`. */
static struct is_value as_text(const xt_value *value, const xt_info_column *column,
                               char room[NUMBER_ROOM])
{
    struct is_value out = { .ptr = room };
    time_t seconds;
    struct tm local;
    int length = 0;

    if (value->is_null)
        return (struct is_value){ .null = true };
    switch (value->kind) {
    case XT_VALUE_INT:
        length = snprintf(room, NUMBER_ROOM, "%" PRId64, value->v.i);
        break;
    case XT_VALUE_UINT:
        length = snprintf(room, NUMBER_ROOM, "%" PRIu64, value->v.u);
        break;
    case XT_VALUE_DOUBLE:
        length = snprintf(room, NUMBER_ROOM, "%.15g", value->v.d);
        break;
    case XT_VALUE_ENUM:
        if (column != NULL && value->v.u < column->values_count) {
            out.ptr = column->values[value->v.u];
            length = (int)strlen(out.ptr);
        }
        break;
    case XT_VALUE_DATETIME:
        seconds = (time_t)value->v.u;
        localtime_r(&seconds, &local);
        length = (int)strftime(room, NUMBER_ROOM, "%Y-%m-%d %H:%M:%S", &local);
        break;
    default:
        return (struct is_value){ .ptr = value->v.s, .len = value->length };
    }
    out.len = (size_t)length;
    return out;
}

/* ---------------------------------------------------------------------------- settings, status */

static int op_show_variables(engine *base, void *es, bool global, row_fn fn, void *ctx)
{
    xt_host_engine *e = xt_engine_of(base);
    xt_session *xs = global || es == NULL ? NULL : ((xt_part *)es)->xs;
    const xt_setting *settings;
    uint32_t count;
    int result = 0;

    if (e->api->settings(&settings, &count) != XT_OK)
        return SE_GENERIC;
    for (uint32_t i = 0; result == 0 && i < count; i++) {
        const xt_setting *setting = xt_setting_at(settings, i);
        char buffer[1024] = "";

        if (e->api->setting_get(e->xe, xs, setting->name, buffer, sizeof buffer, NULL) != XT_OK)
            continue;
        struct is_value row[] = {
            { .ptr = setting->name, .len = strlen(setting->name) },
            { .ptr = buffer, .len = strlen(buffer) },
        };
        result = fn(ctx, row, 2);
    }
    return result;
}

/* The description of a setting by name, or NULL. */
static const xt_setting *find_setting(const xt_api *api, const char *name)
{
    const xt_setting *settings;
    uint32_t count;

    if (api->settings(&settings, &count) != XT_OK)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const xt_setting *setting = xt_setting_at(settings, i);

        if (strcasecmp(setting->name, name) == 0)
            return setting;
    }
    return NULL;
}

/* May SET give the setting a value of this type? */
static bool takes_type(const xt_setting *setting, enum set_type type)
{
    if (type == SET_ANY_TYPE)
        return true;
    switch (setting->type) {
    case XT_SETTING_INT:
    case XT_SETTING_UINT:
        return type == SET_INTEGER;
    case XT_SETTING_DOUBLE:
        return type != SET_TEXT;
    case XT_SETTING_STRING:
        return type == SET_TEXT;
    default:
        return type != SET_FRACTION;
    }
}

static int op_set_variable(engine *base, void *es, bool global, const char *name, const char *value,
                           enum set_type type)
{
    xt_host_engine *e = xt_engine_of(base);
    const xt_setting *setting = find_setting(e->api, name);
    xt_session *xs = global || es == NULL ? NULL : ((xt_part *)es)->xs;
    char current[512];

    if (setting == NULL)
        return 1193;
    if (!(setting->flags & XT_SETTING_DYNAMIC))
        return 1238;
    if (!global && !(setting->flags & XT_SETTING_SESSION))
        return 1229;
    if (!takes_type(setting, type))
        return 1232;
    if (value == NULL && global) {
        value = setting->default_value;
    } else if (value == NULL) { /* a session's default is the global value */
        if (e->api->setting_get(e->xe, NULL, setting->name, current, sizeof current, NULL) != XT_OK)
            return 1231;
        value = current;
    }
    switch (e->api->setting_set(e->xe, xs, setting->name, value)) {
    case XT_OK:
        return 0;
    case XT_UNKNOWN_SETTING:
        return 1193;
    case XT_SETTING_READ_ONLY:
        return 1238;
    default:
        return 1231;
    }
}

struct row_taker {
    row_fn fn;
    void *ctx;
    const xt_info_table *table; /* NULL: status */
};

static uint32_t take_row(void *ctx, const xt_value *values, uint32_t count)
{
    struct row_taker *taker = ctx;
    struct is_value row[64];
    char rooms[64][NUMBER_ROOM];

    if (count > 64)
        return 1;
    for (uint32_t i = 0; i < count; i++) {
        const xt_info_column *column = NULL;

        if (taker->table != NULL && i < taker->table->columns_count)
            column = &taker->table->columns[i];
        row[i] = as_text(&values[i], column, rooms[i]);
    }
    return taker->fn(taker->ctx, row, count) != 0;
}

static int op_show_status(engine *base, void *es, row_fn fn, void *ctx)
{
    xt_host_engine *e = xt_engine_of(base);
    struct row_taker taker = { .fn = fn, .ctx = ctx };
    xt_status status = e->api->status_read(e->xe, take_row, &taker);

    (void)es;
    return status == XT_OK || status == XT_CANCELLED ? SE_OK : SE_GENERIC;
}

struct text_taker {
    char *text;
    size_t length;
};

static uint32_t take_text(void *ctx, const char *text, uint32_t length)
{
    struct text_taker *taker = ctx;
    char *grown = realloc(taker->text, taker->length + length + 1);

    if (grown == NULL)
        return 1;
    memcpy(grown + taker->length, text, length);
    taker->text = grown;
    taker->length += length;
    taker->text[taker->length] = '\0';
    return 0;
}

static int op_monitor_text(engine *base, void *es, char **text)
{
    xt_host_engine *e = xt_engine_of(base);
    struct text_taker taker = { 0 };
    xt_status status = e->api->monitor_text(e->xe, XT_MONITOR_STATUS, take_text, &taker);

    (void)es;
    if (status != XT_OK) {
        free(taker.text);
        return status < 1000 ? (int)status : SE_GENERIC;
    }
    *text = taker.text != NULL ? taker.text : strdup("");
    return SE_OK;
}

/* ----------------------------------------------------------------------------- who waits */

static const xt_info_table *info_table(const xt_api *api, const char *name)
{
    const xt_plugin *plugins;
    uint32_t count;

    if (api->plugins(&plugins, &count) != XT_OK)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const xt_plugin *plugin = xt_plugin_at(plugins, i);

        if (plugin->info_table != NULL && strcasecmp(plugin->name, name) == 0)
            return plugin->info_table;
    }
    return NULL;
}

static uint32_t column_at(const xt_info_table *table, const char *name)
{
    uint32_t at = 0;

    while (at < table->columns_count && strcasecmp(table->columns[at].name, name) != 0)
        at++;
    return at;
}

struct wait_question {
    uint64_t session;
    uint32_t session_column, state_column;
    const xt_info_column *state;
    bool waits;
};

static uint32_t look_at_trx(void *ctx, const xt_value *values, uint32_t count)
{
    struct wait_question *q = ctx;
    struct is_value state;
    char room[NUMBER_ROOM];

    if (q->session_column >= count || q->state_column >= count ||
        values[q->session_column].v.u != q->session)
        return 0;
    state = as_text(&values[q->state_column], q->state, room);
    q->waits = !state.null && state.len == 9 && memcmp(state.ptr, "LOCK WAIT", 9) == 0;
    return q->waits;
}

/* INNODB_TRX knows: trx_state is LOCK WAIT for the session's transaction. */
static bool op_waits_for_lock(engine *base, void *es)
{
    xt_host_engine *e = xt_engine_of(base);
    const xt_info_table *table = info_table(e->api, "INNODB_TRX");
    struct wait_question q = { .session = session_id(((xt_part *)es)->s) };

    if (table == NULL)
        return false;
    q.session_column = column_at(table, "trx_mysql_thread_id");
    q.state_column = column_at(table, "trx_state");
    if (q.state_column < table->columns_count)
        q.state = &table->columns[q.state_column];
    e->api->info_fill(e->xe, NULL, "INNODB_TRX", look_at_trx, &q);
    if (!q.waits)
        return false;
    /* INNODB_TRX may be 0.1 s old and tell of a wait that is over: ask again when it cannot be. */
    q.waits = false;
    nanosleep(&(struct timespec){ .tv_nsec = 110 * 1000000L }, NULL);
    e->api->info_fill(e->xe, NULL, "INNODB_TRX", look_at_trx, &q);
    return q.waits;
}

void xt_info_ops(struct se_ops *ops)
{
    ops->show_variables = op_show_variables;
    ops->set_variable = op_set_variable;
    ops->show_status = op_show_status;
    ops->monitor_text = op_monitor_text;
    ops->waits_for_lock = op_waits_for_lock;
}

/* ------------------------------------------------------------------ INFORMATION_SCHEMA tables */

typedef struct xt_is_table {
    is_table base; /* first */
    const xt_api *api;
    const xt_info_table *table;
    engine *eng;
    struct is_column *columns;
} xt_is_table;

static int fill(is_table *base, session *s, row_fn fn, void *ctx)
{
    xt_is_table *t = (xt_is_table *)base;
    struct row_taker taker = { .fn = fn, .ctx = ctx, .table = t->table };
    xt_part *part;
    xt_status status;

    if (t->eng == NULL)
        return SE_OK; /* no engine, no rows */
    part = s != NULL ? s->parts[t->eng->slot].es : NULL;
    status = t->api->info_fill(xt_engine_of(t->eng)->xe, part != NULL ? part->xs : NULL,
                               t->base.name, take_row, &taker);
    if (status == XT_OK || status == XT_CANCELLED)
        return SE_OK;
    return status < 1000 ? (int)status : SE_GENERIC;
}

static struct is_column make_column(const xt_info_column *c)
{
    static const uint8_t types[] = {
        [XT_VALUE_INT] = CT_BIGINT, [XT_VALUE_UINT] = CT_BIGINT, [XT_VALUE_DOUBLE] = CT_DOUBLE,
        [XT_VALUE_STRING] = CT_VARCHAR, [XT_VALUE_ENUM] = CT_VARCHAR,
        [XT_VALUE_DATETIME] = CT_DATETIME,
    };

    return (struct is_column){
        .name = c->name,
        .type = c->kind <= XT_VALUE_DATETIME ? types[c->kind] : CT_VARCHAR,
        .length = c->length,
        .nullable = c->flags & XT_INFO_NULLABLE,
        .is_unsigned = c->kind == XT_VALUE_UINT || (c->flags & XT_INFO_UNSIGNED),
    };
}

is_table *xt_is_table_new(host *h, const struct xt_api *api, uint32_t plugin_index, engine *eng)
{
    const xt_plugin *plugins, *plugin;
    uint32_t count;
    xt_is_table *t;

    (void)h;
    if (api->plugins(&plugins, &count) != XT_OK || plugin_index >= count)
        return NULL;
    plugin = xt_plugin_at(plugins, plugin_index);
    t = calloc(1, sizeof *t);
    if (t == NULL || plugin->info_table == NULL) {
        free(t);
        return NULL;
    }
    t->api = api;
    t->table = plugin->info_table;
    t->eng = eng;
    t->columns = calloc(t->table->columns_count + 1, sizeof *t->columns);
    if (t->columns == NULL)
        abort();
    for (uint32_t i = 0; i < t->table->columns_count; i++)
        t->columns[i] = make_column(&t->table->columns[i]);
    t->base = (is_table){ .column_count = t->table->columns_count, .columns = t->columns,
                          .fill = fill };
    snprintf(t->base.name, sizeof t->base.name, "%s", plugin->name);
    return &t->base;
}

void xt_is_table_free(is_table *base)
{
    xt_is_table *t = (xt_is_table *)base;

    if (t == NULL)
        return;
    free(t->columns);
    free(t);
}
