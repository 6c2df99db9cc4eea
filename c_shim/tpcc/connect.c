#include "connect.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "plugin_load.h"

#define CLOSE_TIMEOUT_MS 60000

/* ------------------------------------------------------------------------------ callbacks */

/* latin1_bin: bytes in order, trailing spaces do not count. */
static int32_t compare(const xt_collation *collation, const uint8_t *a, uint32_t a_length,
                       const uint8_t *b, uint32_t b_length)
{
    uint32_t shorter = a_length < b_length ? a_length : b_length;
    int order = memcmp(a, b, shorter);

    (void)collation;
    for (uint32_t i = shorter; order == 0 && i < a_length; i++)
        order = a[i] - ' ';
    for (uint32_t i = shorter; order == 0 && i < b_length; i++)
        order = ' ' - b[i];
    return order;
}

static uint32_t sort_key(const xt_collation *collation, uint8_t *key, uint32_t key_size,
                         const uint8_t *text, uint32_t length)
{
    (void)collation;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length > key_size)
        length = key_size;
    memcpy(key, text, length);
    return length;
}

static const xt_collation *find_collation(void *ctx, uint32_t id)
{
    static const xt_collation latin1_bin = {
        .struct_size = sizeof latin1_bin, .id = LATIN1_BIN, .name = "latin1_bin", .mbminlen = 1,
        .mbmaxlen = 1, .flags = XT_COLLATION_PAD_SPACE | XT_COLLATION_ASCII_BINARY, .pad_char = ' ',
        .compare = compare, .sort_key = sort_key,
    };

    (void)ctx;
    return id == LATIN1_BIN ? &latin1_bin : NULL;
}

static void log_line(void *ctx, uint32_t level, const char *text, uint32_t length)
{
    (void)ctx;
    (void)length;
    host_log(level == XT_LOG_ERROR     ? HOST_LOG_ERROR
             : level == XT_LOG_WARNING ? HOST_LOG_WARNING
                                       : HOST_LOG_NOTE, "%s", text);
}

/* -------------------------------------------------------------------------------- opening */

/* One item of the plugin-load string: the first storage engine is the one to use. */
static bool take_item(void *ctx, const char *name, const char *soname)
{
    bench *b = ctx;
    host_error error = { 0 };
    library *library = library_hold(&b->loader, soname, &error);
    const xt_plugin *plugin;
    int at;

    if (library == NULL) {
        host_log(HOST_LOG_ERROR, "%s", error.text);
        return false;
    }
    at = name == NULL ? 0 : library_plugin(library, name); /* a library's engine stands first */
    if (at < 0) {
        host_log(HOST_LOG_ERROR, "No plugin '%s' in '%s'", name, soname);
        return false;
    }
    plugin = library_plugin_at(library, (uint32_t)at);
    if (b->library == NULL && plugin->kind == XT_PLUGIN_STORAGE_ENGINE)
        b->library = library; /* its hold is kept until bench_close */
    else
        library_release(&b->loader, library);
    return true;
}

static bool load_plugins(bench *b)
{
    plugin_list_end end = plugin_list_walk(b->options->plugin_load, take_item, b);

    if (end == PLUGIN_LIST_TOO_LONG)
        host_log(HOST_LOG_ERROR, "An item of --plugin-load is too long");
    if (end != PLUGIN_LIST_DONE)
        return false;
    if (b->library == NULL)
        host_log(HOST_LOG_ERROR, "No storage engine in --plugin-load=%s", b->options->plugin_load);
    return b->library != NULL;
}

/* The data directory and the database's folder in it. */
static bool make_directories(const char *datadir)
{
    char path[PATH_MAX];

    if (mkdir(datadir, 0755) == 0)
        host_log(HOST_LOG_NOTE, "Made the directory '%s'", datadir);
    snprintf(path, sizeof path, "%s/%s", datadir, DATABASE);
    mkdir(path, 0755);
    if (access(path, W_OK) == 0)
        return true;
    host_log(HOST_LOG_ERROR, "'%s' cannot be made or written", path);
    return false;
}

static bool start_engine(bench *b)
{
    char why[1024] = "";
    xt_engine_config config = { .struct_size = sizeof config, .datadir = b->options->datadir,
                                .settings = b->options->settings,
                                .settings_count = b->options->setting_count };
    xt_status status = b->xt->engine_create(&b->host, &b->engine);

    if (status == XT_OK) {
        status = b->xt->engine_init(b->engine, &config);
        if (status == XT_OK) {
            b->xt->engine_recovery_done(b->engine);
            return true;
        }
    }
    b->xt->engine_error(b->engine, why, sizeof why);
    host_log(HOST_LOG_ERROR, "The engine does not start (code %d): %s", status, why);
    b->xt->engine_destroy(b->engine);
    b->engine = NULL;
    return false;
}

bool bench_open(bench *b, const options *o)
{
    memset(b, 0, sizeof *b);
    b->options = o;
    b->size = o->size;
    b->loader = (loader){ .plugin_dir = o->plugin_dir, .scratch_dir = o->datadir };
    b->host = (xt_host){ .struct_size = sizeof b->host, .abi_version = XT_ABI_VERSION,
                         .log = log_line, .collation = find_collation };
    if (!load_plugins(b) || !make_directories(o->datadir)) {
        if (b->library != NULL)
            library_release(&b->loader, b->library);
        return false;
    }
    b->xt = b->library->api;
    if (start_engine(b))
        return true;
    library_release(&b->loader, b->library);
    return false;
}

bool bench_close(bench *b)
{
    char why[1024] = "";
    xt_status status = b->xt->engine_deinit(b->engine, CLOSE_TIMEOUT_MS);

    if (status != XT_OK) {
        b->xt->engine_error(b->engine, why, sizeof why);
        host_log(HOST_LOG_ERROR, "The engine does not close (code %d): %s", status, why);
        return false; /* it runs: the process must end with it */
    }
    b->xt->engine_destroy(b->engine);
    library_release(&b->loader, b->library);
    return true;
}

static uint32_t print_piece(void *ctx, const char *text, uint32_t length)
{
    (void)ctx;
    fwrite(text, 1, length, stderr);
    return 0;
}

void bench_print_monitor(bench *b)
{
    b->xt->monitor_text(b->engine, XT_MONITOR_STATUS, print_piece, NULL);
}

/* -------------------------------------------------------------------------------- clients */

void client_complain(const client *c, const char *what, xt_status status)
{
    fprintf(stderr, "xtradb-tpcc: %s: code %d at table %s: %s\n", what, status,
            table_name(c->touched), c->session != NULL ? c->xt->session_error(c->session) : "");
}

bool is_retriable(xt_status status)
{
    return status == XT_DEADLOCK || status == XT_LOCK_WAIT_TIMEOUT || status == XT_RECORD_CHANGED ||
           status == XT_LOCK_TABLE_FULL;
}

static xt_status open_tables(client *c)
{
    for (unsigned t = 0; t < TABLE_COUNT; t++) {
        handle *h = &c->handles[t];
        char name[64];

        h->def = table_definition(t);
        c->touched = t;
        snprintf(name, sizeof name, "%s/%s", DATABASE, table_name(t));
        TRY(c->xt->table_open(c->session, name, h->def, 0, &h->table));
    }
    return XT_OK;
}

bool client_open(client *c, bench *b, uint64_t id, bool with_tables)
{
    xt_session_config who = { .struct_size = sizeof who, .isolation = b->options->isolation,
                              .connection_id = id };
    xt_status status;

    memset(c, 0, sizeof *c);
    c->bench = b;
    c->xt = b->xt;
    status = b->xt->session_open(b->engine, &who, &c->session);
    if (status == XT_OK && with_tables)
        status = open_tables(c);
    dice_seed(&c->dice, b->options->seed + id);
    dice_constants(&c->dice, b->options->seed, b->size.last_name_c);
    if (status == XT_OK)
        return true;
    client_complain(c, "a session cannot be opened", status);
    client_close(c);
    return false;
}

void client_close(client *c)
{
    for (unsigned t = 0; t < TABLE_COUNT; t++)
        c->xt->table_close(c->handles[t].table);
    c->xt->session_close(c->session);
    memset(c->handles, 0, sizeof c->handles);
    c->session = NULL;
}

static xt_status release_tables(client *c)
{
    for (unsigned t = 0; t < TABLE_COUNT; t++) {
        handle *h = &c->handles[t];

        if (!h->bound)
            continue;
        h->bound = h->has_key = h->in_load = false;
        TRY(c->xt->table_release(h->table));
    }
    return XT_OK;
}

static xt_status statement_end(client *c)
{
    if (!c->in_statement)
        return XT_OK;
    TRY(release_tables(c));
    c->in_statement = false;
    return c->xt->statement_end(c->session);
}

static xt_status statement_begin(client *c, uint32_t flags)
{
    TRY(statement_end(c));
    TRY(c->xt->statement_begin(c->session, flags));
    c->in_statement = true;
    return XT_OK;
}

xt_status statement_next(client *c)
{
    if (c->in_statement && c->bench->options->one_statement)
        return XT_OK;
    return statement_begin(c, 0);
}

xt_status statement_next_load(client *c)
{
    return statement_begin(c, XT_STATEMENT_NO_FOREIGN_KEYS | XT_STATEMENT_RELAXED_UNIQUE);
}

xt_status load_begin(client *c, enum table table)
{
    handle *h = &c->handles[table];

    if (h->in_load)
        return XT_OK;
    h->in_load = true;
    return c->xt->bulk_begin(h->table, 0);
}

xt_status load_end(client *c)
{
    for (unsigned t = 0; t < TABLE_COUNT; t++) {
        handle *h = &c->handles[t];

        if (!h->in_load)
            continue;
        c->touched = t;
        h->in_load = false;
        TRY(c->xt->bulk_end(h->table));
    }
    return XT_OK;
}

xt_status client_commit(client *c)
{
    TRY(statement_end(c));
    return c->xt->trx_commit(c->session);
}

xt_status client_undo(client *c)
{
    xt_status status = release_tables(c), ended;

    if (c->in_statement) {
        c->in_statement = false;
        ended = c->xt->statement_rollback(c->session);
        if (status == XT_OK && ended != XT_TRX_ABORTED)
            status = ended;
    }
    ended = c->xt->trx_rollback(c->session);
    return status != XT_OK ? status : ended;
}

static void map_of(uint64_t set, uint8_t map[8])
{
    for (unsigned i = 0; i < 8; i++)
        map[i] = (uint8_t)(set >> 8 * i);
}

xt_status bind_table(client *c, enum table table, enum mode mode, uint64_t reads, uint64_t writes)
{
    handle *h = &c->handles[table];
    uint8_t lock = mode == READ ? XT_LOCK_NONE : XT_LOCK_X, read_map[8], write_map[8];

    c->touched = table;
    if (!h->bound || h->lock != lock) {
        xt_table_use use = { .struct_size = sizeof use, .lock = lock,
                             .flags = mode == READ ? 0 : XT_USE_WRITE };

        TRY(c->xt->table_use(h->table, c->session, &use));
        h->bound = true;
        h->lock = lock;
        h->has_key = false;
        h->reads = h->writes = ALL_COLUMNS;
    }
    if (h->reads == reads && h->writes == writes)
        return XT_OK;
    map_of(reads, read_map);
    map_of(writes, write_map);
    h->reads = reads;
    h->writes = writes;
    return c->xt->table_columns(h->table, read_map, write_map, (h->def->columns_count + 7) / 8);
}

xt_status read_key(client *c, enum table table, uint32_t key, const key_image *image, uint32_t find)
{
    handle *h = &c->handles[table];

    c->touched = table;
    if (h->has_key && h->key != key) {
        TRY(c->xt->index_end(h->table));
        h->has_key = false;
    }
    if (!h->has_key) {
        TRY(c->xt->index_begin(h->table, key, 1));
        h->has_key = true;
        h->key = key;
    }
    return c->xt->index_read(h->table, h->row, image->bytes, image->length, find);
}

xt_status read_next_same(client *c, enum table table, const key_image *image)
{
    handle *h = &c->handles[table];

    c->touched = table;
    return c->xt->index_next_same(h->table, h->row, image->bytes, image->length);
}

void copy_row(client *c, enum table table)
{
    handle *h = &c->handles[table];

    memcpy(h->next, h->row, h->def->row_length);
}

xt_status insert_next(client *c, enum table table)
{
    c->touched = table;
    return c->xt->insert_row(c->handles[table].table, c->handles[table].next);
}

xt_status update_to_next(client *c, enum table table)
{
    handle *h = &c->handles[table];
    xt_status status = c->xt->update_row(h->table, h->row, h->next);

    c->touched = table;
    return status == XT_RECORD_IS_THE_SAME ? XT_OK : status;
}

xt_status delete_row(client *c, enum table table)
{
    c->touched = table;
    return c->xt->delete_row(c->handles[table].table, c->handles[table].row);
}

key_image number_key(const client *c, enum table table, uint32_t key, unsigned count,
                     const int *numbers)
{
    const xt_table_def *def = c->handles[table].def;
    key_image image = { .length = 0 };

    for (unsigned i = 0; i < count; i++)
        key_number(&image, &def->columns[def->keys[key].parts[i].column], numbers[i]);
    return image;
}
