#include "xt_engine.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "charset.h"
#include "exec.h"

#define DEINIT_TIMEOUT_MS 30000

int xt_result(const xt_part *part, xt_status status)
{
    if (status == XT_OK)
        return SE_OK;
    sql_engine_message(part->s, part->engine->api->session_error(part->xs));
    return status < 1000 ? (int)status : SE_GENERIC;
}

/* -------------------------------------------------------------------------------- callbacks */

static void take_log(void *ctx, uint32_t level, const char *text, uint32_t length)
{
    xt_host_engine *e = ctx;
    char line[2048];

    snprintf(line, sizeof line, "InnoDB: %.*s", (int)length, text);
    e->h->log(e->h, level == XT_LOG_ERROR ? 2 : level == XT_LOG_WARNING ? 1 : 0, line);
}

static int32_t collation_compare(const xt_collation *c, const uint8_t *a, uint32_t a_length,
                                 const uint8_t *b, uint32_t b_length)
{
    return coll_compare(c->id, a, a_length, b, b_length, c->flags & XT_COLLATION_PAD_SPACE);
}

static uint32_t collation_sort_key(const xt_collation *c, uint8_t *key, uint32_t key_size,
                                   const uint8_t *text, uint32_t length)
{
    return (uint32_t)coll_sort_key(c->id, text, length, key, key_size);
}

static uint32_t collation_prefix(const xt_collation *c, const uint8_t *text, uint32_t length,
                                 uint32_t characters)
{
    return (uint32_t)coll_prefix(c->id, text, length, characters);
}

static xt_known_collation *collation_new(uint32_t id, const struct collation_info *info)
{
    xt_known_collation *made = calloc(1, sizeof *made);
    bool wide = charset_minlen(info->charset) > 1;

    if (made == NULL)
        abort();
    made->collation = (xt_collation){
        .struct_size = sizeof made->collation,
        .id = id,
        .name = info->name,
        .data = info,
        .mbminlen = charset_minlen(info->charset),
        .mbmaxlen = charset_maxlen(info->charset),
        .flags = info->charset == CS_BINARY ? XT_COLLATION_BINARY
                 : coll_pads(id)            ? XT_COLLATION_PAD_SPACE : 0,
        .pad_char = 0x20,
        .compare = collation_compare,
        .sort_key = collation_sort_key,
        .prefix = collation_prefix,
    };
    if (!wide && (info->order == ORDER_BYTES || info->order == ORDER_CODE))
        made->collation.flags |= XT_COLLATION_ASCII_BINARY;
    return made;
}

static const xt_collation *find_collation(void *ctx, uint32_t id)
{
    xt_host_engine *e = ctx;
    const struct collation_info *info = coll_info(id);
    xt_known_collation *known;

    if (info == NULL)
        return NULL;
    pthread_mutex_lock(&e->mutex);
    for (known = e->collations; known != NULL && known->collation.id != id;)
        known = known->next;
    if (known == NULL) {
        known = collation_new(id, info);
        known->next = e->collations;
        e->collations = known;
    }
    pthread_mutex_unlock(&e->mutex);
    return &known->collation;
}

static uint8_t kill_check(void *ctx, void *session_ctx)
{
    const xt_part *part = session_ctx;

    (void)ctx;
    return part != NULL && atomic_load(&part->s->interrupted);
}

static void take_warning(void *ctx, void *session_ctx, uint32_t level, uint32_t code,
                         const char *text)
{
    const xt_part *part = session_ctx;

    (void)ctx;
    if (part != NULL)
        sql_condition_text(part->s, level == XT_LOG_NOTE ? LEVEL_NOTE : LEVEL_WARNING, code, text);
}

static uint32_t query_text(void *ctx, void *session_ctx, char *buffer, uint32_t size)
{
    xt_part *part = session_ctx;
    uint32_t length;

    (void)ctx;
    if (part == NULL)
        return 0;
    pthread_mutex_lock(&part->mutex);
    length = part->query_length < size ? part->query_length : size;
    memcpy(buffer, part->query, length);
    pthread_mutex_unlock(&part->mutex);
    return length;
}

static void remember_query(xt_part *part, const char *sql, size_t length)
{
    pthread_mutex_lock(&part->mutex);
    part->query_length = (uint32_t)(length < QUERY_TEXT_MAX ? length : QUERY_TEXT_MAX);
    if (part->query_length > 0)
        memcpy(part->query, sql, part->query_length);
    pthread_mutex_unlock(&part->mutex);
}

/* --------------------------------------------------------------------------------- sessions */

static int op_session_open(engine *base, session *s, void **es)
{
    xt_host_engine *e = xt_engine_of(base);
    xt_part *part = calloc(1, sizeof *part);
    xt_session_config config = {
        .struct_size = sizeof config,
        .isolation = XT_ISOLATION_REPEATABLE_READ,
        .connection_id = session_id(s),
        .session_ctx = part,
    };
    xt_status status;

    if (part == NULL)
        return SE_OUT_OF_MEM;
    part->engine = e;
    part->s = s;
    pthread_mutex_init(&part->mutex, NULL);
    status = e->api->session_open(e->xe, &config, &part->xs);
    if (status != XT_OK) {
        char why[512] = "";

        e->api->engine_error(e->xe, why, sizeof why);
        sql_engine_message(s, why);
        pthread_mutex_destroy(&part->mutex);
        free(part);
        return status < 1000 ? (int)status : SE_GENERIC;
    }
    *es = part;
    return SE_OK;
}

static void op_session_close(engine *e, void *es)
{
    xt_part *part = es;

    (void)e;
    if (part == NULL)
        return;
    xt_release_bound(part);
    part->engine->api->session_close(part->xs);
    pthread_mutex_destroy(&part->mutex);
    free(part);
}

static bool op_in_transaction(engine *base, void *es)
{
    xt_session_info info = { .struct_size = sizeof info };

    if (xt_engine_of(base)->api->session_state(((xt_part *)es)->xs, &info) != XT_OK)
        return false;
    return info.flags & XT_SESSION_IN_TRX;
}

static void op_interrupt(engine *base, void *es)
{
    xt_engine_of(base)->api->session_interrupt(((xt_part *)es)->xs);
}

/* ---------------------------------------------------------------- statements, transactions */

static int op_statement_start(engine *base, void *es)
{
    xt_part *part = es;
    const session *s = part->s;
    uint32_t flags = 0;

    if (!session_in_transaction(s))
        flags |= XT_STATEMENT_AUTOCOMMIT;
    if (!s->foreign_key_checks)
        flags |= XT_STATEMENT_NO_FOREIGN_KEYS;
    if (!s->unique_checks)
        flags |= XT_STATEMENT_RELAXED_UNIQUE;
    remember_query(part, s->sql, s->sql_len);
    return xt_result(part, xt_engine_of(base)->api->statement_begin(part->xs, flags));
}

static int op_statement_end(engine *base, void *es, bool rollback)
{
    const xt_api *api = xt_engine_of(base)->api;
    xt_part *part = es;
    xt_status status;

    xt_release_bound(part);
    status = rollback ? api->statement_rollback(part->xs) : api->statement_end(part->xs);
    remember_query(part, NULL, 0);
    return xt_result(part, status);
}

static int op_begin(engine *base, void *es, enum se_isolation level, bool read_only, bool snapshot)
{
    static const uint32_t levels[] = {
        [SE_READ_UNCOMMITTED] = XT_ISOLATION_READ_UNCOMMITTED,
        [SE_READ_COMMITTED] = XT_ISOLATION_READ_COMMITTED,
        [SE_REPEATABLE_READ] = XT_ISOLATION_REPEATABLE_READ,
        [SE_SERIALIZABLE] = XT_ISOLATION_SERIALIZABLE,
    };
    const xt_api *api = xt_engine_of(base)->api;
    xt_part *part = es;
    uint32_t flags = (read_only ? XT_TRX_READ_ONLY : 0) | (snapshot ? XT_TRX_CONSISTENT_SNAPSHOT : 0);
    xt_status status = api->session_set_isolation(part->xs, levels[level]);

    if (status == XT_OK)
        status = api->trx_begin(part->xs, flags);
    return xt_result(part, status);
}

static int op_commit(engine *base, void *es)
{
    xt_part *part = es;

    xt_release_bound(part);
    return xt_result(part, xt_engine_of(base)->api->trx_commit(part->xs));
}

static int op_rollback(engine *base, void *es)
{
    xt_part *part = es;

    xt_release_bound(part);
    return xt_result(part, xt_engine_of(base)->api->trx_rollback(part->xs));
}

/* SQL compares the names of savepoints without regard to case; the library compares bytes. */
static uint32_t fold(const char *name, char folded[256])
{
    uint32_t length = 0;

    for (; name[length] != '\0' && length < 256; length++) {
        char c = name[length];

        folded[length] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    return length;
}

static int op_savepoint(engine *base, void *es, const char *name)
{
    xt_part *part = es;
    char folded[256];
    uint32_t length = fold(name, folded);

    return xt_result(part, xt_engine_of(base)->api->savepoint_set(part->xs, folded, length));
}

static int op_rollback_to(engine *base, void *es, const char *name)
{
    xt_part *part = es;
    char folded[256];
    uint32_t length = fold(name, folded);

    return xt_result(part, xt_engine_of(base)->api->savepoint_rollback(part->xs, folded, length));
}

static int op_release(engine *base, void *es, const char *name)
{
    xt_part *part = es;
    char folded[256];
    uint32_t length = fold(name, folded);

    return xt_result(part, xt_engine_of(base)->api->savepoint_release(part->xs, folded, length));
}

/* ------------------------------------------------------------------------------------- life */

static const struct se_ops *operations(void)
{
    static struct se_ops ops;
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&once);
    if (ops.session_open == NULL) {
        ops = (struct se_ops){
            .session_open = op_session_open, .session_close = op_session_close,
            .in_transaction = op_in_transaction, .interrupt = op_interrupt,
            .statement_start = op_statement_start, .statement_end = op_statement_end,
            .begin = op_begin, .commit = op_commit, .rollback = op_rollback,
            .savepoint = op_savepoint, .rollback_to = op_rollback_to, .release = op_release,
        };
        xt_table_ops(&ops);
        xt_info_ops(&ops);
    }
    pthread_mutex_unlock(&once);
    return &ops;
}

static void free_engine(xt_host_engine *e)
{
    if (e->xe != NULL)
        e->api->engine_destroy(e->xe);
    while (e->collations != NULL) {
        xt_known_collation *next = e->collations->next;

        free(e->collations);
        e->collations = next;
    }
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

/* "name=value" for each setting; freed by the caller with free_settings. */
static char **make_settings(const host *h)
{
    char **settings = calloc(h->setting_count + 1, sizeof *settings);

    if (settings == NULL)
        abort();
    for (size_t i = 0; i < h->setting_count; i++)
        if (asprintf(&settings[i], "%s=%s", h->settings[i].name, h->settings[i].value) < 0)
            abort();
    return settings;
}

static void free_settings(char **settings)
{
    for (char **s = settings; *s != NULL; s++)
        free(*s);
    free(settings);
}

static xt_status start(xt_host_engine *e)
{
    char **settings = make_settings(e->h);
    xt_engine_config config = {
        .struct_size = sizeof config,
        .datadir = e->h->datadir,
        .settings = (const char *const *)settings,
        .settings_count = (uint32_t)e->h->setting_count,
    };
    xt_status status = e->api->engine_create(&e->callbacks, &e->xe);

    if (status == XT_OK)
        status = e->api->engine_init(e->xe, &config);
    if (status == XT_OK)
        status = e->api->engine_recovery_done(e->xe);
    free_settings(settings);
    return status;
}

engine *xt_engine_new(host *h, const struct xt_api *api, uint32_t plugin_index, char *err,
                      size_t err_size)
{
    xt_host_engine *e = calloc(1, sizeof *e);
    const xt_plugin *plugins;
    uint32_t count;
    xt_status status;

    if (e == NULL || api->plugins(&plugins, &count) != XT_OK || plugin_index >= count) {
        free(e);
        return NULL;
    }
    const xt_plugin *plugin = xt_plugin_at(plugins, plugin_index);
    e->base = (engine){ .ops = operations(), .comment = plugin->description,
                        .transactional = true, .savepoints = true };
    snprintf(e->base.name, sizeof e->base.name, "%s", plugin->name);
    e->h = h;
    e->api = api;
    pthread_mutex_init(&e->mutex, NULL);
    e->callbacks = (xt_host){ .struct_size = sizeof e->callbacks, .abi_version = XT_ABI_VERSION,
                              .ctx = e, .log = take_log, .collation = find_collation,
                              .kill_check = kill_check, .warning = take_warning,
                              .query_text = query_text };
    status = start(e);
    if (status == XT_OK)
        return &e->base;
    if (err_size > 0)
        api->engine_error(e->xe, err, (uint32_t)err_size);
    free_engine(e);
    return NULL;
}

int xt_engine_free(engine *base, char *err, size_t err_size)
{
    xt_host_engine *e = xt_engine_of(base);
    xt_status status = e->api->engine_deinit(e->xe, DEINIT_TIMEOUT_MS);

    if (status != XT_OK && err_size > 0)
        e->api->engine_error(e->xe, err, (uint32_t)err_size);
    if (status != XT_OK && e->api->engine_state(e->xe) == XT_STATE_RUNNING)
        return status < 1000 ? (int)status : SE_GENERIC;
    if (status != XT_OK)
        e->h->log(e->h, 2, err_size > 0 ? err : "the engine did not close cleanly");
    free_engine(e);
    return SE_OK;
}
