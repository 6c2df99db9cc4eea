/* Writers to be killed: a host with N threads that commit and tell each commit to the outside.
 *
 *   writers LIBRARY DATADIR write N/M [setting=value ...]  M of N writers run until somebody kills it
 *   writers LIBRARY DATADIR verify N [setting=value ...]   recovers, checks, prints, exits
 *
 * "write" prints one line per acknowledged commit, "A writer number", by one write(2), after trx_commit
 * has returned: the ledger lies with the reader of the pipe, outside this process. "verify" prints
 * "C writer number" for each writer, then "OK rows", or a line "BAD ..." and exits with 1.
 *
 * Transaction n of writer w, all or nothing:
 *   counter   row w becomes n
 *   log       three rows (w, n, 0..2) come; those of n - 20 change (key, BLOB); those of n - 50 go
 *   shared    row n % 8 grows by 1: the writers wait for each other here
 * Every seventh transaction does its work, rolls back, and does it again. Every value follows from w, n and
 * part, so that a half transaction, a lost one or an index out of step shows.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xtradb.h>

enum { KEEP = 50, CHANGE_AFTER = 20, SHARED = 8, BODY_MAX = 24000, WRITERS_MAX = 16 };

static const xt_api *xt;
static xt_engine *engine;

/* ---- the host's side of the boundary -------------------------------------------------------------- */

static void log_line(void *ctx, uint32_t level, const char *text, uint32_t length)
{
    (void)ctx;
    if (level <= XT_LOG_WARNING)
        fprintf(stderr, "engine: %.*s\n", (int)length, text);
}

static int32_t compare_bytes(const xt_collation *collation, const uint8_t *a, uint32_t a_length, const uint8_t *b,
                             uint32_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    (void)collation;
    if (order == 0)
        return a_length < b_length ? -1 : a_length > b_length;
    return order;
}

static uint32_t key_of_bytes(const xt_collation *collation, uint8_t *key, uint32_t key_size, const uint8_t *text,
                             uint32_t length)
{
    uint32_t size = length < key_size ? length : key_size;
    (void)collation;
    memcpy(key, text, size);
    return size;
}

static const xt_collation binary = {
    .struct_size = sizeof(xt_collation), .id = 63, .name = "binary", .mbminlen = 1, .mbmaxlen = 1,
    .flags = XT_COLLATION_BINARY, .pad_char = 0x20, .compare = compare_bytes, .sort_key = key_of_bytes,
};

static const xt_collation *collation(void *ctx, uint32_t id)
{
    (void)ctx;
    return id == 63 ? &binary : NULL;
}

static const xt_host callbacks = {
    .struct_size = sizeof(xt_host), .abi_version = XT_ABI_VERSION, .log = log_line, .collation = collation,
};

static void fail(const char *what, xt_status status, xt_session *session)
{
    char text[500] = "";
    if (session != NULL)
        snprintf(text, sizeof(text), "%s", xt->session_error(session));
    else
        xt->engine_error(engine, text, sizeof(text));
    fprintf(stderr, "writers: %s: status %d: %s\n", what, (int)status, text);
    printf("BAD %s: status %d\n", what, (int)status);
    fflush(stdout);
    _exit(1);
}

#define CHECK(call, session)                     \
    do {                                         \
        xt_status status_ = (call);              \
        if (status_ != XT_OK)                    \
            fail(#call, status_, (session));     \
    } while (0)

/* ---- tables ---------------------------------------------------------------------------------------- */

static void put4(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value, at[1] = (uint8_t)(value >> 8), at[2] = (uint8_t)(value >> 16), at[3] = (uint8_t)(value >> 24);
}

static uint32_t get4(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

#define INT_COLUMN(name_, offset_) \
    { .name = name_, .offset = offset_, .length = 4, .octets = 4, .collation = 63, \
      .flags = XT_COLUMN_NOT_NULL, .type = XT_TYPE_LONG }

/* counter (w INT, n INT) and shared (w INT, n INT): null byte, then two integers. */
enum { PAIR_W = 1, PAIR_N = 5, PAIR_LENGTH = 9 };
static const xt_column pair_columns[] = { INT_COLUMN("w", PAIR_W), INT_COLUMN("n", PAIR_N) };
static const xt_key_part pair_primary[] = { { 0, 4, 0 } };
static const xt_key pair_keys[] = { { "PRIMARY", pair_primary, 1, XT_KEY_UNIQUE | XT_KEY_PRIMARY } };
static const xt_table_def pair_def = {
    .struct_size = sizeof(xt_table_def), .columns = pair_columns, .keys = pair_keys, .columns_count = 2,
    .keys_count = 1, .row_length = PAIR_LENGTH, .null_bytes = 1,
};

/* log (w INT, n INT, part INT, tag INT, body BLOB). */
enum { LOG_W = 1, LOG_N = 5, LOG_PART = 9, LOG_TAG = 13, LOG_BODY = 17, LOG_LENGTH = 27 };
static const xt_column log_columns[] = {
    INT_COLUMN("w", LOG_W), INT_COLUMN("n", LOG_N), INT_COLUMN("part", LOG_PART), INT_COLUMN("tag", LOG_TAG),
    { .name = "body", .offset = LOG_BODY, .length = 10, .octets = 0, .collation = 63, .flags = XT_COLUMN_NOT_NULL,
      .type = XT_TYPE_BLOB, .length_bytes = 2 },
};
static const xt_key_part log_primary[] = { { 0, 4, 0 }, { 1, 4, 0 }, { 2, 4, 0 } };
static const xt_key_part log_tag[] = { { 3, 4, 0 }, { 0, 4, 0 } };
static const xt_key_part log_body[] = { { 4, 30, 0 } };
static const xt_key log_keys[] = {
    { "PRIMARY", log_primary, 3, XT_KEY_UNIQUE | XT_KEY_PRIMARY },
    { "tag", log_tag, 2, 0 },
    { "body", log_body, 1, 0 },
};
static const xt_table_def log_def = {
    .struct_size = sizeof(xt_table_def), .columns = log_columns, .keys = log_keys, .columns_count = 5,
    .keys_count = 3, .row_length = LOG_LENGTH, .null_bytes = 1,
};

static const struct { const char *name; const xt_table_def *def; } tables[] = {
    { "k/counter", &pair_def }, { "k/shared", &pair_def }, { "k/log", &log_def },
};

/* ---- the values of a row --------------------------------------------------------------------------- */

static uint32_t mix(uint32_t w, uint32_t n, uint32_t part, uint32_t changed)
{
    uint32_t x = w * 0x9E3779B1u ^ n * 0x85EBCA77u ^ part * 0xC2B2AE3Du ^ changed * 0x27D4EB2Fu;
    x ^= x >> 15;
    x *= 0x2C1B3C6Du;
    x ^= x >> 12;
    return x;
}

static uint32_t tag_of(uint32_t w, uint32_t n, uint32_t part, bool changed)
{
    return mix(w, n, part, changed) % 1000 + (changed ? 1000 : 0);
}

/* Mostly short, every tenth off the page. */
static uint32_t body_of(uint8_t *body, uint32_t w, uint32_t n, uint32_t part, bool changed)
{
    uint32_t seed = mix(w, n, part, changed ? 3 : 2);
    uint32_t length = seed % 10 == 0 ? seed / 10 % BODY_MAX : seed / 10 % 200;
    for (uint32_t i = 0; i < length; i++) {
        seed = seed * 1664525u + 1013904223u;
        body[i] = (uint8_t)(seed >> 24);
    }
    return length;
}

static void log_row(uint8_t *row, uint8_t *body, uint32_t w, uint32_t n, uint32_t part, bool changed)
{
    uint32_t length = body_of(body, w, n, part, changed);
    memset(row, 0, LOG_LENGTH);
    row[0] = 0xFF;
    put4(row + LOG_W, w);
    put4(row + LOG_N, n);
    put4(row + LOG_PART, part);
    put4(row + LOG_TAG, tag_of(w, n, part, changed));
    row[LOG_BODY] = (uint8_t)length;
    row[LOG_BODY + 1] = (uint8_t)(length >> 8);
    memcpy(row + LOG_BODY + 2, &body, sizeof(body));
}

/* ---- writing ---------------------------------------------------------------------------------------- */

struct writer {
    uint32_t w;
    xt_session *session;
    xt_table *counter, *shared, *log;
    uint8_t body[BODY_MAX], old_body[BODY_MAX];
};

static void use(struct writer *me, xt_table *table)
{
    xt_table_use use = { .struct_size = sizeof(use), .lock = XT_LOCK_X, .flags = XT_USE_WRITE };
    CHECK(xt->table_use(table, me->session, &use), me->session);
}

/* Adds one to column n of the row with this key; returns the new value. */
static uint32_t add_one(struct writer *me, xt_table *table, uint32_t key)
{
    uint8_t row[PAIR_LENGTH], changed[PAIR_LENGTH], image[4];
    put4(image, key);
    use(me, table);
    CHECK(xt->index_begin(table, 0, 1), me->session);
    CHECK(xt->index_read(table, row, image, 4, XT_FIND_EXACT), me->session);
    memcpy(changed, row, sizeof(row));
    put4(changed + PAIR_N, get4(row + PAIR_N) + 1);
    CHECK(xt->update_row(table, row, changed), me->session);
    CHECK(xt->index_end(table), me->session);
    CHECK(xt->table_release(table), me->session);
    return get4(changed + PAIR_N);
}

static void find_log_row(struct writer *me, uint8_t *row, uint32_t n, uint32_t part)
{
    uint8_t image[12];
    put4(image, me->w);
    put4(image + 4, n);
    put4(image + 8, part);
    CHECK(xt->index_read(me->log, row, image, sizeof(image), XT_FIND_EXACT), me->session);
}

static void change_log(struct writer *me, uint32_t n)
{
    uint8_t row[LOG_LENGTH], old[LOG_LENGTH];
    use(me, me->log);
    for (uint32_t part = 0; part < 3; part++) {
        log_row(row, me->body, me->w, n, part, false);
        CHECK(xt->insert_row(me->log, row), me->session);
    }
    CHECK(xt->index_begin(me->log, 0, 1), me->session);
    for (uint32_t part = 0; part < 3 && n > CHANGE_AFTER; part++) {
        find_log_row(me, old, n - CHANGE_AFTER, part);
        log_row(old, me->old_body, me->w, n - CHANGE_AFTER, part, false);
        log_row(row, me->body, me->w, n - CHANGE_AFTER, part, true);
        CHECK(xt->update_row(me->log, old, row), me->session);
    }
    for (uint32_t part = 0; part < 3 && n > KEEP; part++) {
        find_log_row(me, old, n - KEEP, part);
        CHECK(xt->delete_row(me->log, old), me->session);
    }
    CHECK(xt->index_end(me->log), me->session);
    CHECK(xt->table_release(me->log), me->session);
}

static uint32_t work(struct writer *me)
{
    CHECK(xt->statement_begin(me->session, 0), me->session);
    uint32_t n = add_one(me, me->counter, me->w);
    CHECK(xt->statement_end(me->session), me->session);
    CHECK(xt->statement_begin(me->session, 0), me->session);
    change_log(me, n);
    CHECK(xt->statement_end(me->session), me->session);
    CHECK(xt->statement_begin(me->session, 0), me->session);
    add_one(me, me->shared, n % SHARED);
    CHECK(xt->statement_end(me->session), me->session);
    return n;
}

static void *write_for_ever(void *argument)
{
    struct writer *me = argument;
    for (;;) {
        CHECK(xt->trx_begin(me->session, 0), me->session);
        uint32_t n = work(me);
        if (n % 7 == 0) {
            CHECK(xt->trx_rollback(me->session), me->session);
            CHECK(xt->trx_begin(me->session, 0), me->session);
            n = work(me);
        }
        CHECK(xt->trx_commit(me->session), me->session);
        char line[40];
        int length = snprintf(line, sizeof(line), "A %u %u\n", me->w, n);
        if (write(1, line, (size_t)length) != length)
            _exit(1);
    }
}

/* ---- opening ---------------------------------------------------------------------------------------- */

static xt_session *open_session(uint64_t id)
{
    xt_session_config config = { .struct_size = sizeof(config), .isolation = XT_ISOLATION_REPEATABLE_READ, .connection_id = id };
    xt_session *session;
    CHECK(xt->session_open(engine, &config, &session), NULL);
    return session;
}

static void open_tables(struct writer *me)
{
    CHECK(xt->table_open(me->session, tables[0].name, tables[0].def, 0, &me->counter), me->session);
    CHECK(xt->table_open(me->session, tables[1].name, tables[1].def, 0, &me->shared), me->session);
    CHECK(xt->table_open(me->session, tables[2].name, tables[2].def, 0, &me->log), me->session);
}

static void insert_pairs(struct writer *me, xt_table *table, uint32_t count)
{
    use(me, table);
    for (uint32_t w = 0; w < count; w++) {
        uint8_t row[PAIR_LENGTH] = { 0xFF };
        put4(row + PAIR_W, w);
        CHECK(xt->insert_row(table, row), me->session);
    }
    CHECK(xt->table_release(table), me->session);
}

/* Creates what is missing. The rows come in one transaction, so that a kill leaves all or none. */
static void prepare(uint32_t writers)
{
    struct writer me = { .session = open_session(1) };
    xt_table_info info = { .struct_size = sizeof(info) };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        xt_status status = xt->table_find(me.session, tables[i].name, &info);
        if (status == XT_NO_SUCH_TABLE)
            CHECK(xt->table_create(me.session, tables[i].name, tables[i].def, NULL), me.session);
        else if (status != XT_OK)
            fail("table_find", status, me.session);
    }
    open_tables(&me);
    uint8_t row[PAIR_LENGTH], image[4] = { 0 };
    CHECK(xt->statement_begin(me.session, 0), me.session);
    use(&me, me.counter);
    CHECK(xt->index_begin(me.counter, 0, 1), me.session);
    xt_status status = xt->index_read(me.counter, row, image, 4, XT_FIND_EXACT);
    CHECK(xt->index_end(me.counter), me.session);
    CHECK(xt->table_release(me.counter), me.session);
    if (status == XT_KEY_NOT_FOUND) {
        insert_pairs(&me, me.counter, writers);
        insert_pairs(&me, me.shared, SHARED);
    } else if (status != XT_OK) {
        fail("index_read", status, me.session);
    }
    CHECK(xt->statement_end(me.session), me.session);
    CHECK(xt->trx_commit(me.session), me.session);
    xt->table_close(me.counter), xt->table_close(me.shared), xt->table_close(me.log);
    CHECK(xt->session_close(me.session), NULL);
}

static int write_all(uint32_t writers, uint32_t active)
{
    static struct writer all[WRITERS_MAX];
    pthread_t threads[WRITERS_MAX];
    prepare(writers);
    for (uint32_t w = 0; w < active; w++) {
        all[w].w = w;
        all[w].session = open_session(10 + w);
        open_tables(&all[w]);
    }
    if (write(1, "READY\n", 6) != 6)
        return 1;
    for (uint32_t w = 0; w < active; w++)
        if (pthread_create(&threads[w], NULL, write_for_ever, &all[w]) != 0)
            return 1;
    pthread_join(threads[0], NULL);
    return 1;
}

/* ---- checking --------------------------------------------------------------------------------------- */

#define BAD(...)             \
    do {                     \
        printf("BAD ");      \
        printf(__VA_ARGS__); \
        printf("\n");        \
        return 1;            \
    } while (0)

static void use_to_read(struct writer *me, xt_table *table, uint32_t key)
{
    xt_table_use use = { .struct_size = sizeof(use), .lock = XT_LOCK_NONE };
    CHECK(xt->table_use(table, me->session, &use), me->session);
    CHECK(xt->index_begin(table, key, 1), me->session);
}

static void end_reading(struct writer *me, xt_table *table)
{
    CHECK(xt->index_end(table), me->session);
    CHECK(xt->table_release(table), me->session);
}

/* Reads column n of rows 0..count-1 of a pair table, which must be all there is. */
static int read_pairs(struct writer *me, xt_table *table, uint32_t count, uint32_t *values)
{
    uint8_t row[PAIR_LENGTH];
    use_to_read(me, table, 0);
    xt_status status = xt->index_first(table, row);
    for (uint32_t i = 0; i < count; i++) {
        if (status != XT_OK)
            BAD("pair %u cannot be read: status %d %s", i, (int)status, xt->session_error(me->session));
        if (get4(row + PAIR_W) != i)
            BAD("pair %u expected, %u found", i, get4(row + PAIR_W));
        values[i] = get4(row + PAIR_N);
        status = xt->index_next(table, row);
    }
    if (status != XT_END_OF_FILE)
        BAD("more pairs than expected: status %d", (int)status);
    end_reading(me, table);
    return 0;
}

static int check_log_row(const uint8_t *row, uint32_t writers, const uint32_t *counters)
{
    static uint8_t expected[BODY_MAX];
    uint32_t w = get4(row + LOG_W), n = get4(row + LOG_N), part = get4(row + LOG_PART), tag = get4(row + LOG_TAG);
    if (w >= writers || part > 2 || n > counters[w] || n + KEEP <= counters[w] || n == 0)
        BAD("row (%u, %u, %u) must not be there: the counter is %u", w, n, part, w < writers ? counters[w] : 0);
    bool changed = n + CHANGE_AFTER <= counters[w];
    if (tag != tag_of(w, n, part, changed))
        BAD("row (%u, %u, %u): tag %u instead of %u", w, n, part, tag, tag_of(w, n, part, changed));
    uint32_t length = body_of(expected, w, n, part, changed), stored = row[LOG_BODY] | (uint32_t)row[LOG_BODY + 1] << 8;
    const uint8_t *body;
    memcpy(&body, row + LOG_BODY + 2, sizeof(body));
    if (stored != length || memcmp(body, expected, length) != 0)
        BAD("row (%u, %u, %u): the BLOB of %u bytes is not the one of %u bytes", w, n, part, stored, length);
    return 0;
}

/* Every row that must be there is, no other is, whichever index leads to it. */
static int check_log(struct writer *me, uint32_t key, uint32_t writers, const uint32_t *counters, uint32_t *rows)
{
    uint32_t wanted = 0, found = 0, last_tag = 0;
    for (uint32_t w = 0; w < writers; w++)
        wanted += 3 * (counters[w] < KEEP ? counters[w] : KEEP);
    uint8_t row[LOG_LENGTH];
    use_to_read(me, me->log, key);
    xt_status status = xt->index_first(me->log, row);
    for (; status == XT_OK; status = xt->index_next(me->log, row)) {
        if (check_log_row(row, writers, counters) != 0)
            return 1;
        if (key == 1 && get4(row + LOG_TAG) < last_tag)
            BAD("index tag: %u after %u", get4(row + LOG_TAG), last_tag);
        last_tag = get4(row + LOG_TAG);
        found++;
    }
    if (status != XT_END_OF_FILE)
        BAD("key %u: status %d after %u rows: %s", key, (int)status, found, xt->session_error(me->session));
    if (found != wanted)
        BAD("key %u: %u rows instead of %u", key, found, wanted);
    end_reading(me, me->log);
    *rows = found;
    return 0;
}

static uint32_t print_finding(void *ctx, const xt_value *values, uint32_t count)
{
    (void)ctx;
    for (uint32_t i = 0; i < count; i++)
        if (values[i].kind == XT_VALUE_STRING)
            printf("%s%.*s", i == 0 ? "BAD check: " : " ", (int)values[i].length, values[i].v.s);
    printf("\n");
    return 0;
}

static int check_tables(struct writer *me)
{
    xt_table *all[] = { me->counter, me->shared, me->log };
    for (size_t i = 0; i < 3; i++) {
        xt_table_use use = { .struct_size = sizeof(use), .lock = XT_LOCK_NONE };
        CHECK(xt->table_use(all[i], me->session, &use), me->session);
        xt_status status = xt->table_check(all[i], XT_CHECK_EXTENDED, print_finding, NULL);
        if (status != XT_OK)
            BAD("table_check of %s: status %d", tables[i].name, (int)status);
        CHECK(xt->table_release(all[i]), me->session);
    }
    return 0;
}

static int verify(uint32_t writers)
{
    struct writer me = { .session = open_session(1) };
    uint32_t counters[WRITERS_MAX], shared[SHARED], rows = 0;
    open_tables(&me);
    CHECK(xt->statement_begin(me.session, 0), me.session);
    if (read_pairs(&me, me.counter, writers, counters) != 0 || read_pairs(&me, me.shared, SHARED, shared) != 0)
        return 1;
    for (uint32_t i = 0; i < SHARED; i++) {
        uint32_t wanted = 0;
        for (uint32_t w = 0; w < writers; w++)
            for (uint32_t n = 1; n <= counters[w]; n++)
                wanted += n % SHARED == i;
        if (wanted != shared[i])
            BAD("shared row %u is %u instead of %u", i, shared[i], wanted);
    }
    for (uint32_t key = 0; key < 3; key++)
        if (check_log(&me, key, writers, counters, &rows) != 0)
            return 1;
    if (check_tables(&me) != 0)
        return 1;
    CHECK(xt->statement_end(me.session), me.session);
    CHECK(xt->trx_commit(me.session), me.session);
    xt->table_close(me.counter), xt->table_close(me.shared), xt->table_close(me.log);
    CHECK(xt->session_close(me.session), NULL);
    for (uint32_t w = 0; w < writers; w++)
        printf("C %u %u\n", w, counters[w]);
    printf("OK %u\n", rows);
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t writers = argc > 4 ? (uint32_t)atoi(argv[4]) : 0, active = writers;
    if (argc > 4 && strchr(argv[4], '/') != NULL)
        active = (uint32_t)atoi(strchr(argv[4], '/') + 1);
    if (writers == 0 || writers > WRITERS_MAX || active == 0 || active > writers) {
        fprintf(stderr, "usage: writers LIBRARY DATADIR write|verify N[/M] [setting=value ...]\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    xtradb_api_fn *get = NULL;
    if (library != NULL)
        *(void **)&get = dlsym(library, "xtradb_api");
    if (get == NULL || (xt = get(XT_ABI_MAJOR)) == NULL) {
        fprintf(stderr, "writers: %s cannot be used: %s\n", argv[1], dlerror());
        return 2;
    }
    xt_engine_config config = {
        .struct_size = sizeof(config), .datadir = argv[2], .settings = (const char *const *)(argv + 5),
        .settings_count = (uint32_t)(argc - 5),
    };
    CHECK(xt->engine_create(&callbacks, &engine), NULL);
    CHECK(xt->engine_init(engine, &config), NULL);
    CHECK(xt->engine_recovery_done(engine), NULL);
    if (strcmp(argv[3], "write") == 0)
        return write_all(writers, active);
    int result = verify(writers);
    fflush(stdout);
    /* A check that failed leaves the directory as it is, for a look. */
    if (result == 0) {
        CHECK(xt->engine_deinit(engine, 60000), NULL);
        xt->engine_destroy(engine);
    }
    return result;
}
