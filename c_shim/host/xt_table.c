/* Handles on tables: reading and writing; creating, dropping, checking tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "exec.h"
#include "xt_engine.h"

static xt_handle *handle_of(se_table *t)
{
    return (xt_handle *)t;
}

static const xt_api *api_of(const xt_handle *handle)
{
    return handle->part->engine->api;
}

/* ----------------------------------------------------------------------------- open and close */

static int op_open(engine *base, void *es, const table_def *def, se_table **out)
{
    xt_part *part = es;
    xt_handle *handle = calloc(1, sizeof *handle);
    xt_table_info info = { .struct_size = sizeof info };
    const xt_api *api = xt_engine_of(base)->api;
    char name[XT_NAME_MAX];
    xt_template template;
    xt_status status;

    if (handle == NULL)
        return SE_OUT_OF_MEM;
    if (!xt_table_name(name, def->db, def->name)) {
        free(handle);
        return SE_NO_SUCH_TABLE;
    }
    xt_template_make(&template, def);
    status = api->table_open(part->xs, name, &template.def, 0, &handle->table);
    xt_template_free(&template);
    if (status == XT_OK)
        status = api->table_info(handle->table, &info);
    if (status != XT_OK) {
        int result = xt_result(part, status);

        api->table_close(handle->table);
        free(handle);
        return result;
    }
    handle->base = (se_table){ .eng = base, .def = def, .owner = part->s };
    handle->part = part;
    handle->ref_length = info.ref_length;
    *out = &handle->base;
    return SE_OK;
}

static void unbind(xt_handle *handle)
{
    xt_handle **link = &handle->part->bound;

    if (!handle->bound)
        return;
    while (*link != handle)
        link = &(*link)->next_bound;
    *link = handle->next_bound;
    handle->bound = false;
    handle->place = XT_PLACE_NONE;
}

void xt_release_bound(xt_part *part)
{
    while (part->bound != NULL) {
        xt_handle *handle = part->bound;

        part->engine->api->table_release(handle->table);
        unbind(handle);
    }
}

static void op_close(se_table *t)
{
    xt_handle *handle = handle_of(t);

    unbind(handle);
    api_of(handle)->table_close(handle->table);
    free(handle);
}

static int op_table_start(se_table *t, enum se_lock lock, const uint8_t *read_set)
{
    static const uint32_t locks[] = { [SE_LOCK_NONE] = XT_LOCK_NONE, [SE_LOCK_SHARED] = XT_LOCK_S,
                                      [SE_LOCK_EXCLUSIVE] = XT_LOCK_X };
    xt_handle *handle = handle_of(t);
    xt_part *part = handle->part;
    const xt_api *api = api_of(handle);
    xt_table_use use = {
        .struct_size = sizeof use,
        .lock = locks[lock],
        .wait = part->s->skip_locked ? XT_WAIT_SKIP_LOCKED
                : part->s->lock_wait_seconds > 0 ? XT_WAIT_SECONDS : XT_WAIT_DEFAULT,
        .flags = lock == SE_LOCK_EXCLUSIVE ? XT_USE_WRITE : 0,
    };
    xt_status status;

    if (part->s->lock_wait_seconds > 0)
        use.wait_seconds = part->s->lock_wait_seconds - 1;
    if (use.wait == XT_WAIT_SECONDS && use.wait_seconds == 0)
        use.wait = XT_WAIT_NOWAIT;
    status = api->table_use(handle->table, part->xs, &use);
    if (status != XT_OK)
        return xt_result(part, status);
    handle->place = XT_PLACE_NONE;
    if (!handle->bound) {
        handle->bound = true;
        handle->next_bound = part->bound;
        part->bound = handle;
    }
    /* whoever changes rows compares whole images, so needs whole rows */
    if (read_set != NULL && lock != SE_LOCK_EXCLUSIVE)
        status = api->table_columns(handle->table, read_set, NULL, (t->def->column_count + 7) / 8);
    return xt_result(part, status);
}

/* ----------------------------------------------------------------------------------- reading */

/* Ends the scan or index that is open. */
static void leave(xt_handle *handle)
{
    if (handle->place == XT_PLACE_INDEX)
        api_of(handle)->index_end(handle->table);
    else if (handle->place != XT_PLACE_NONE)
        api_of(handle)->scan_end(handle->table);
    handle->place = XT_PLACE_NONE;
}

static xt_status enter_index(xt_handle *handle, uint32_t key)
{
    xt_status status;

    if (handle->place == XT_PLACE_INDEX && handle->key == key)
        return XT_OK;
    leave(handle);
    status = api_of(handle)->index_begin(handle->table, key, 1);
    if (status == XT_OK) {
        handle->place = XT_PLACE_INDEX;
        handle->key = key;
    }
    return status;
}

static xt_status enter_scan(xt_handle *handle, enum xt_place place)
{
    xt_status status;

    leave(handle);
    status = api_of(handle)->scan_begin(handle->table, place == XT_PLACE_SCAN);
    if (status == XT_OK)
        handle->place = place;
    return status;
}

static int op_index_read(se_table *t, uint32_t key, uint8_t *row, const uint8_t *image,
                         uint32_t key_length, enum se_find find)
{
    xt_handle *handle = handle_of(t);
    xt_status status = enter_index(handle, key);

    if (status == XT_OK) /* the numbers of se_find and XT_FIND_ are both HA_READ_'s */
        status = api_of(handle)->index_read(handle->table, row, image, key_length, (uint32_t)find);
    return xt_result(handle->part, status);
}

static int op_index_first(se_table *t, uint32_t key, uint8_t *row)
{
    xt_handle *handle = handle_of(t);
    xt_status status = enter_index(handle, key);

    if (status == XT_OK)
        status = api_of(handle)->index_first(handle->table, row);
    return xt_result(handle->part, status);
}

static int op_index_last(se_table *t, uint32_t key, uint8_t *row)
{
    xt_handle *handle = handle_of(t);
    xt_status status = enter_index(handle, key);

    if (status == XT_OK)
        status = api_of(handle)->index_last(handle->table, row);
    return xt_result(handle->part, status);
}

static int op_index_next(se_table *t, uint8_t *row)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, api_of(handle)->index_next(handle->table, row));
}

static int op_index_prev(se_table *t, uint8_t *row)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, api_of(handle)->index_prev(handle->table, row));
}

static int op_end(se_table *t)
{
    leave(handle_of(t));
    return SE_OK;
}

static int op_rnd_init(se_table *t)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, enter_scan(handle, XT_PLACE_SCAN));
}

static int op_rnd_next(se_table *t, uint8_t *row)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, api_of(handle)->scan_next(handle->table, row));
}

static uint32_t op_ref_length(se_table *t)
{
    return handle_of(t)->ref_length;
}

static void op_position(se_table *t, const uint8_t *row, uint8_t *ref)
{
    xt_handle *handle = handle_of(t);

    xt_result(handle->part, api_of(handle)->table_position(handle->table, row, ref,
                                                           handle->ref_length));
}

static int op_rnd_pos(se_table *t, uint8_t *row, const uint8_t *ref)
{
    xt_handle *handle = handle_of(t);
    xt_status status = XT_OK;

    if (handle->place == XT_PLACE_NONE)
        status = enter_scan(handle, XT_PLACE_POSITION);
    if (status == XT_OK)
        status = api_of(handle)->read_position(handle->table, row, ref, handle->ref_length);
    return xt_result(handle->part, status);
}

static void op_unlock_row(se_table *t)
{
    api_of(handle_of(t))->unlock_row(handle_of(t)->table);
}

static void op_semi_consistent(se_table *t)
{
    api_of(handle_of(t))->table_extra(handle_of(t)->table, XT_EXTRA_SEMI_CONSISTENT);
}

static bool op_was_semi_consistent(se_table *t)
{
    return api_of(handle_of(t))->was_semi_consistent(handle_of(t)->table);
}

/* ----------------------------------------------------------------------------------- writing */

static int op_write_row(se_table *t, uint8_t *row)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, api_of(handle)->insert_row(handle->table, row));
}

static int op_update_row(se_table *t, const uint8_t *old, uint8_t *row)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, api_of(handle)->update_row(handle->table, old, row));
}

static int op_delete_row(se_table *t, const uint8_t *old)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, api_of(handle)->delete_row(handle->table, old));
}

static uint32_t op_error_key(se_table *t)
{
    xt_handle *handle = handle_of(t);
    uint32_t key = api_of(handle)->session_error_key(handle->part->xs);

    return key == XT_NO_KEY ? NO_KEY : key;
}

static int op_bulk_begin(se_table *t, uint64_t rows)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, api_of(handle)->bulk_begin(handle->table, rows));
}

static int op_bulk_end(se_table *t)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, api_of(handle)->bulk_end(handle->table));
}

static int op_bulk_refused(se_table *t, uint8_t *row)
{
    xt_handle *handle = handle_of(t);

    if (!XT_API_HAS(api_of(handle), bulk_refused))
        return SE_KEY_NOT_FOUND;
    return xt_result(handle->part, api_of(handle)->bulk_refused(handle->table, row));
}

static int op_autoinc_reserve(se_table *t, uint64_t count, uint64_t *first)
{
    xt_handle *handle = handle_of(t);
    uint64_t reserved = 0;
    xt_status status =
        api_of(handle)->autoinc_reserve(handle->table, 1, 1, count, first, &reserved);

    if (status == XT_OK && reserved < count)
        return SE_AUTOINC_ERANGE;
    return xt_result(handle->part, status);
}

static int op_autoinc_set(se_table *t, uint64_t next)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, api_of(handle)->autoinc_set(handle->table, next));
}

/* --------------------------------------------------------------------------------- estimates */

static int op_analyze_table(se_table *t)
{
    xt_handle *handle = handle_of(t);

    return xt_result(handle->part, api_of(handle)->table_analyze(handle->table));
}

static uint64_t op_records_in_range(se_table *t, uint32_t key, struct se_bound low,
                                    struct se_bound high)
{
    xt_handle *handle = handle_of(t);
    xt_bound lower = { .key = low.image, .length = low.length,
                       .find = low.inclusive ? XT_FIND_EXACT : XT_FIND_AFTER };
    xt_bound upper = { .key = high.image, .length = high.length,
                       .find = high.inclusive ? XT_FIND_AFTER : XT_FIND_BEFORE };
    uint64_t rows = 1;

    if (api_of(handle)->records_in_range(handle->table, key, low.image != NULL ? &lower : NULL,
                                         high.image != NULL ? &upper : NULL, &rows) != XT_OK)
        return 1; /* an estimate that cannot be had is no reason to fail */
    return rows;
}

static int op_info(se_table *t, struct se_info *out)
{
    xt_handle *handle = handle_of(t);
    xt_table_stats stats = { .struct_size = sizeof stats };
    xt_table_info info = { .struct_size = sizeof info };
    xt_status status = api_of(handle)->table_stats(handle->table, &stats);

    if (status == XT_OK)
        status = api_of(handle)->table_info(handle->table, &info);
    if (status != XT_OK)
        return xt_result(handle->part, status);
    *out = (struct se_info){
        .rows = stats.rows, .data_bytes = stats.data_length, .index_bytes = stats.index_length,
        .free_bytes = stats.free_length, .mean_row = stats.rows > 0 ? stats.data_length / stats.rows : 0,
        .autoinc = stats.auto_increment, .row_format = xt_row_format_name(info.row_format),
    };
    return SE_OK;
}

/* --------------------------------------------------------------------------------------- DDL */

static int op_create_table(engine *base, void *es, const table_def *def)
{
    const xt_api *api = xt_engine_of(base)->api;
    xt_part *part = es;
    xt_create_options options = {
        .struct_size = sizeof options,
        .row_format = def->row_format,
        .key_block_size = def->key_block_size,
        .auto_increment = def->autoinc_start,
    };
    char name[XT_NAME_MAX];
    xt_template template;
    xt_status status;

    if (!xt_table_name(name, def->db, def->name))
        return SE_UNSUPPORTED;
    xt_template_make(&template, def);
    status = api->table_create(part->xs, name, &template.def, &options);
    xt_template_free(&template);
    return xt_result(part, status);
}

static int op_drop_table(engine *base, void *es, const char *db, const char *table)
{
    xt_part *part = es;
    char name[XT_NAME_MAX];

    if (!xt_table_name(name, db, table))
        return SE_NO_SUCH_TABLE;
    return xt_result(part, xt_engine_of(base)->api->table_drop(part->xs, name));
}

static int op_rename_table(engine *base, void *es, const char *db, const char *table,
                           const char *new_db, const char *new_table)
{
    xt_part *part = es;
    char from[XT_NAME_MAX], to[XT_NAME_MAX];

    if (!xt_table_name(from, db, table) || !xt_table_name(to, new_db, new_table))
        return SE_NO_SUCH_TABLE;
    return xt_result(part, xt_engine_of(base)->api->table_rename(part->xs, from, to));
}

static int op_truncate_table(engine *base, void *es, const table_def *def)
{
    xt_part *part = es;
    char name[XT_NAME_MAX];

    if (!xt_table_name(name, def->db, def->name))
        return SE_NO_SUCH_TABLE;
    return xt_result(part, xt_engine_of(base)->api->table_truncate(part->xs, name));
}

static int op_add_keys(engine *base, void *es, const table_def *def, uint8_t *row, uint32_t *key)
{
    const xt_api *api = xt_engine_of(base)->api;
    xt_part *part = es;
    char name[XT_NAME_MAX];
    xt_template template;
    xt_status status;

    if (!XT_API_HAS(api, index_add) || !xt_table_name(name, def->db, def->name))
        return SE_UNSUPPORTED;
    xt_template_make(&template, def);
    status = api->index_add(part->xs, name, &template.def, row);
    xt_template_free(&template);
    if (status == XT_DUPLICATE_KEY)
        *key = api->session_error_key(part->xs);
    return xt_result(part, status);
}

static int op_drop_key(engine *base, void *es, const char *db, const char *table, const char *key)
{
    const xt_api *api = xt_engine_of(base)->api;
    xt_part *part = es;
    char name[XT_NAME_MAX];

    if (!XT_API_HAS(api, index_drop) || !xt_table_name(name, db, table))
        return SE_UNSUPPORTED;
    return xt_result(part, api->index_drop(part->xs, name, key));
}

struct first_finding {
    char *message;
    size_t size;
};

/* Keeps the first finding of a check. */
static uint32_t take_finding(void *ctx, const xt_value *values, uint32_t count)
{
    struct first_finding *first = ctx;

    if (count >= 2 && first->message[0] == '\0' && values[1].kind == XT_VALUE_STRING)
        snprintf(first->message, first->size, "%.*s", (int)values[1].length, values[1].v.s);
    return 0;
}

static int op_check_table(se_table *t, bool extended, char *message, size_t size)
{
    xt_handle *handle = handle_of(t);
    struct first_finding first = { .message = message, .size = size };
    xt_status status;

    message[0] = '\0';
    status = api_of(handle)->table_check(handle->table, extended ? XT_CHECK_EXTENDED : 0,
                                         take_finding, &first);
    if (status == XT_OK && message[0] == '\0')
        snprintf(message, size, "OK");
    return xt_result(handle->part, status);
}

static int op_describe_table(engine *base, void *es, const char *db, const char *table,
                             table_def **out)
{
    const xt_api *api = xt_engine_of(base)->api;
    const xt_description *description = NULL;
    xt_part *part = es;
    char name[XT_NAME_MAX];
    xt_status status;

    if (!xt_table_name(name, db, table))
        return SE_NO_SUCH_TABLE;
    status = api->table_describe(part->xs, name, &description);
    if (status != XT_OK)
        return xt_result(part, status);
    *out = xt_def_from_description(description, db, table);
    api->description_free(description);
    return SE_OK;
}

struct name_taker {
    row_fn fn;
    void *ctx;
};

/* (database, table) in file-name encoding -> the table as SQL spells it. */
static uint32_t take_name(void *ctx, const xt_value *values, uint32_t count)
{
    struct name_taker *taker = ctx;
    char file[XT_NAME_MAX], name[XT_NAME_MAX];
    struct is_value value;

    if (count < 2 || values[1].kind != XT_VALUE_STRING)
        return 0;
    snprintf(file, sizeof file, "%.*s", (int)values[1].length, values[1].v.s);
    if (!filename_decode(file, name, sizeof name))
        return 0;
    value = (struct is_value){ .ptr = name, .len = strlen(name) };
    return (uint32_t)taker->fn(taker->ctx, &value, 1);
}

static int op_list_tables(engine *base, void *es, const char *db, row_fn fn, void *ctx)
{
    struct name_taker taker = { .fn = fn, .ctx = ctx };
    xt_part *part = es;
    char database[XT_NAME_MAX];
    xt_status status;

    if (!filename_encode(db, database, sizeof database))
        return SE_OK;
    status = xt_engine_of(base)->api->tables_list(part->xs, database, take_name, &taker);
    return status == XT_CANCELLED ? SE_OK : xt_result(part, status);
}

void xt_table_ops(struct se_ops *ops)
{
    ops->open = op_open;
    ops->close = op_close;
    ops->table_start = op_table_start;
    ops->index_read = op_index_read;
    ops->index_first = op_index_first;
    ops->index_last = op_index_last;
    ops->index_next = op_index_next;
    ops->index_prev = op_index_prev;
    ops->index_end = op_end;
    ops->rnd_init = op_rnd_init;
    ops->rnd_next = op_rnd_next;
    ops->rnd_end = op_end;
    ops->ref_length = op_ref_length;
    ops->position = op_position;
    ops->rnd_pos = op_rnd_pos;
    ops->unlock_row = op_unlock_row;
    ops->semi_consistent = op_semi_consistent;
    ops->was_semi_consistent = op_was_semi_consistent;
    ops->write_row = op_write_row;
    ops->update_row = op_update_row;
    ops->delete_row = op_delete_row;
    ops->error_key = op_error_key;
    ops->bulk_begin = op_bulk_begin;
    ops->bulk_end = op_bulk_end;
    ops->bulk_refused = op_bulk_refused;
    ops->autoinc_reserve = op_autoinc_reserve;
    ops->autoinc_set = op_autoinc_set;
    ops->analyze_table = op_analyze_table;
    ops->records_in_range = op_records_in_range;
    ops->info = op_info;
    ops->create_table = op_create_table;
    ops->drop_table = op_drop_table;
    ops->rename_table = op_rename_table;
    ops->truncate_table = op_truncate_table;
    ops->add_keys = op_add_keys;
    ops->drop_key = op_drop_key;
    ops->check_table = op_check_table;
    ops->describe_table = op_describe_table;
    ops->list_tables = op_list_tables;
}
