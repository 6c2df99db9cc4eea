#include "load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fill.h"

#define THREADS_MAX 256
#define CHUNKS 10 /* of the items, and of each warehouse's stock */
#define BAR_WIDTH 40

/* ------------------------------------------------------------------------- what is there */

enum loaded load_examine(bench *b, shape *size)
{
    client c;
    xt_table_info info = { .struct_size = sizeof info };
    enum loaded found = LOADED_UNKNOWN;
    xt_status status;
    key_image key;

    if (!client_open(&c, b, 1, false))
        return LOADED_UNKNOWN;
    status = c.xt->table_find(c.session, DATABASE "/warehouse", &info);
    if (status == XT_OK)
        status = c.xt->table_find(c.session, DATABASE "/loaded", &info);
    else if (status == XT_NO_SUCH_TABLE)
        found = LOADED_NOTHING;
    client_close(&c);
    if (status == XT_NO_SUCH_TABLE)
        return found == LOADED_NOTHING ? found : LOADED_PARTLY;
    if (status != XT_OK || !client_open(&c, b, 1, true))
        return LOADED_UNKNOWN;
    key = KEY(&c, LOADED, PRIMARY, 1);
    status = statement_next(&c);
    if (status == XT_OK)
        status = bind_table(&c, LOADED, READ, ALL_COLUMNS, 0);
    if (status == XT_OK)
        status = read_key(&c, LOADED, PRIMARY, &key, XT_FIND_EXACT);
    if (status == XT_OK)
        *size = (shape){ .warehouses = (int)number(&c, LOADED, L_WAREHOUSES),
                         .items = (int)number(&c, LOADED, L_ITEMS),
                         .customers = (int)number(&c, LOADED, L_CUSTOMERS),
                         .last_name_c = (int)number(&c, LOADED, L_LAST_NAME_C) };
    if (status != XT_OK && status != XT_KEY_NOT_FOUND)
        client_complain(&c, "the database cannot be examined", status);
    else
        found = status == XT_OK ? LOADED_WHOLLY : LOADED_PARTLY;
    client_undo(&c);
    client_close(&c);
    return found;
}

/* Table `loaded` is created last and dropped first: while it stands, all others do. */
static bool create_tables(bench *b)
{
    client c;
    char name[64];
    xt_status status = XT_OK;

    if (!client_open(&c, b, 1, false))
        return false;
    for (int t = TABLE_COUNT - 1; t >= 0; t--) {
        snprintf(name, sizeof name, "%s/%s", DATABASE, table_name(t));
        c.touched = t;
        status = c.xt->table_drop(c.session, name);
        if (status != XT_OK && status != XT_NO_SUCH_TABLE)
            break;
        status = XT_OK;
    }
    for (int t = 0; status == XT_OK && t < TABLE_COUNT; t++) {
        snprintf(name, sizeof name, "%s/%s", DATABASE, table_name(t));
        c.touched = t;
        status = c.xt->table_create(c.session, name, table_definition(t), NULL);
    }
    if (status != XT_OK)
        client_complain(&c, "the tables cannot be created", status);
    client_close(&c);
    return status == XT_OK;
}

/* --------------------------------------------------------------------------- the progress */

/* What all loading threads share. */
typedef struct loading {
    bench *bench;
    atomic_int next; /* job, or load */
    int jobs;
    atomic_long rows;
    long rows_expected;
    atomic_bool failed;
    atomic_int running;
} loading;

static long expected_rows(const shape *s)
{
    long per_district = (long)s->customers * (1 + 1 + 1 + 10) + s->customers - delivered_at_load(s);

    return s->items + s->warehouses * (1L + DISTRICTS + s->items + DISTRICTS * per_district);
}

static void show_progress(const loading *l, bool terminal, double seconds)
{
    long rows = l->rows;
    double part = (double)rows / (double)l->rows_expected;
    double rate = (double)rows / seconds, left = (double)(l->rows_expected - rows) / (rate + 1);
    char bar[BAR_WIDTH + 1];

    part = part > 1 ? 1 : part;
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < (int)(part * BAR_WIDTH) ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    if (terminal)
        printf("\r  loading [%s] %3.0f %%  %.0f k rows/s  %.0f s left ", bar, part * 100, rate / 1e3,
               left < 0 ? 0 : left);
    else
        printf("  loading: %3.0f %%, %.0f k rows/s\n", part * 100, rate / 1e3);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------ the jobs */

/*
 * Jobs in order: chunks of the items; for each warehouse its own row and its districts', chunks of
 * its stock, and two for each district: customers, orders.
 */
enum { JOBS_PER_WAREHOUSE = 1 + CHUNKS + 2 * DISTRICTS };

static xt_status run_job(client *c, int job)
{
    int items = c->bench->size.items, at, warehouse;

    if (job < CHUNKS)
        return fill_items(c, job * (long)items / CHUNKS + 1, (job + 1) * (long)items / CHUNKS);
    job -= CHUNKS;
    warehouse = job / JOBS_PER_WAREHOUSE + 1;
    at = job % JOBS_PER_WAREHOUSE;
    if (at == 0)
        return fill_warehouse(c, warehouse);
    at--;
    if (at < CHUNKS)
        return fill_stock(c, warehouse, at * (long)items / CHUNKS + 1,
                          (at + 1) * (long)items / CHUNKS);
    at -= CHUNKS;
    return at < DISTRICTS ? fill_customers(c, warehouse, at + 1)
                          : fill_orders(c, warehouse, at + 1 - DISTRICTS);
}

/*
 * Loads: a session fills tables that belong together, each in one statement. It has the jobs of all
 * warehouses for them, with the dice that they have one by one, so that the rows are the same.
 */
enum load { LOAD_ORDERS, LOAD_CUSTOMERS, LOAD_STOCK, LOAD_ITEMS, LOAD_WAREHOUSES, LOAD_COUNT };

static enum load load_of(int job)
{
    int at = (job - CHUNKS) % JOBS_PER_WAREHOUSE;

    if (job < CHUNKS)
        return LOAD_ITEMS;
    if (at == 0)
        return LOAD_WAREHOUSES;
    if (at <= CHUNKS)
        return LOAD_STOCK;
    return at <= CHUNKS + DISTRICTS ? LOAD_CUSTOMERS : LOAD_ORDERS;
}

static xt_status run_seeded(client *c, int job)
{
    dice_seed(&c->dice, c->bench->options->seed * 1000003 + (uint64_t)job);
    return run_job(c, job);
}

static xt_status run_load(client *c, const loading *l, enum load load)
{
    c->loads = true;
    for (int job = 0; job < l->jobs && !l->failed; job++)
        if (load_of(job) == load)
            TRY(run_seeded(c, job));
    return fill_commit(c);
}

typedef struct load_thread {
    loading *loading;
    pthread_t thread;
    int number;
} load_thread;

static void *load_main(void *argument)
{
    load_thread *t = argument;
    loading *l = t->loading;
    client *c = calloc(1, sizeof *c);
    bool by_row = l->bench->options->load_by_row;
    int at, count = by_row ? l->jobs : LOAD_COUNT;

    if (c == NULL)
        abort();
    if (!client_open(c, l->bench, 1000 + (uint64_t)t->number, true))
        l->failed = true;
    while (!l->failed && (at = l->next++) < count) {
        xt_status status;

        c->rows_told = &l->rows;
        status = by_row ? run_seeded(c, at) : run_load(c, l, at);
        if (status != XT_OK) {
            client_complain(c, "loading", status);
            client_undo(c);
            l->failed = true;
        }
    }
    if (c->session != NULL)
        client_close(c);
    free(c);
    l->running--;
    return NULL;
}

static bool note_loaded(bench *b)
{
    client c;
    xt_status status;

    if (!client_open(&c, b, 1, true))
        return false;
    status = fill_loaded(&c);
    if (status != XT_OK)
        client_complain(&c, "loading", status);
    client_close(&c);
    return status == XT_OK;
}

static void watch(loading *l, uint64_t begin)
{
    bool terminal = isatty(STDOUT_FILENO);
    int pause_ms = terminal ? 200 : 2000;

    while (l->running > 0) {
        for (int waited = 0; l->running > 0 && waited < pause_ms; waited += 20)
            usleep(20000);
        if (l->running > 0 || terminal)
            show_progress(l, terminal, (double)(clock_us() - begin) / 1e6);
    }
    if (terminal)
        putchar('\n');
}

bool load_all(bench *b)
{
    loading l = { .bench = b, .jobs = CHUNKS + b->size.warehouses * JOBS_PER_WAREHOUSE,
                  .rows_expected = expected_rows(&b->size) };
    int threads = b->options->load_threads < THREADS_MAX ? b->options->load_threads : THREADS_MAX;
    load_thread pool[THREADS_MAX];
    uint64_t begin = clock_us();
    int started = 0;

    b->size.last_name_c = (int)(b->options->seed * 37 % 256);
    printf("Loading %d warehouse%s with %d thread%s: about %ld rows\n", b->size.warehouses,
           b->size.warehouses == 1 ? "" : "s", threads, threads == 1 ? "" : "s", l.rows_expected);
    fflush(stdout);
    if (!create_tables(b))
        return false;
    l.running = threads;
    for (; started < threads; started++) {
        pool[started] = (load_thread){ .loading = &l, .number = started };
        if (pthread_create(&pool[started].thread, NULL, load_main, &pool[started]) != 0)
            abort();
    }
    watch(&l, begin);
    for (int i = 0; i < started; i++)
        pthread_join(pool[i].thread, NULL);
    if (l.failed || !note_loaded(b))
        return false;
    printf("Loaded %ld rows in %.1f s, %.0f k rows/s\n", (long)l.rows,
           (double)(clock_us() - begin) / 1e6, (double)l.rows / (double)(clock_us() - begin) * 1e3);
    return true;
}
