/* Many sessions at once on one table, through the host's SQL.
 *
 *     stress SECONDS THREADS SEED [host options …]
 *     stress swaps=COUNT:DIRECTORY THREADS SEED [host options …]
 *
 * The second form takes the engine out beneath the sessions and puts DIRECTORY/0.so and DIRECTORY/1.so in
 * by turns, COUNT times; the memory that stays while it is out must not grow.
 *
 * Each thread moves amounts between rows of `accounts` in transactions of two updates, inserts and deletes
 * rows of `notes`, and now and then sums up all accounts under one view: the sum never changes.
 * Deadlocks, timeouts and duplicates are part of the game, other errors are not. At the end both
 * tables pass CHECK TABLE EXTENDED. Prints "ok" and what was done, or what went wrong. */
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host.h"
#include "mem.h"
#include "registry.h"

enum { ACCOUNTS = 100, EACH = 1000 };

struct taker { /* keeps the first value of the last row */
    sink sink;
    char value[64], error[512];
    unsigned code;
    bool bad_check;
};
struct worker {
    pthread_t thread;
    host *h;
    uint64_t random;
    unsigned number;
    uint64_t commits, retries, sums;
};

enum { SETTLED = 20, GROWTH_KIB = 64 }; /* from that swap on, each may add so much */

static atomic_bool stop, failed, swapping;

static void on_columns(sink *k, const struct sink_column *c, size_t n)
{
    (void)k, (void)c, (void)n;
}
static void on_row(sink *k, const struct sink_value *v, size_t n)
{
    struct taker *t = (struct taker *)k;
    snprintf(t->value, sizeof t->value, "%.*s", (int)v[0].len, v[0].null ? "" : v[0].ptr);
    if (n == 4 && v[3].len == 7 && !memcmp(v[3].ptr, "Corrupt", 7))
        t->bad_check = true;
}
static void on_end(sink *k, uint32_t warnings)
{
    (void)k, (void)warnings;
}
static void on_ok(sink *k, const struct sink_ok *ok)
{
    (void)k, (void)ok;
}
static void on_error(sink *k, unsigned code, const char *state, const char *text)
{
    struct taker *t = (struct taker *)k;
    (void)state;
    t->code = code;
    snprintf(t->error, sizeof t->error, "%u %s", code, text);
}

static unsigned run(session *s, struct taker *t, const char *sql)
{
    *t = (struct taker){{on_columns, on_row, on_end, on_ok, on_error}, "", "", 0, false};
    return session_run(s, sql, strlen(sql), &t->sink);
}

static unsigned pick(struct worker *w, unsigned below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->random >> 33) % below;
}

static void wrong(const char *what, const char *text)
{
    atomic_store(&failed, true);
    atomic_store(&stop, true);
    printf("%s: %s\n", what, text);
}

static void pause_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* 0 done, 1 to be tried again (rolled back), 2 wrong. */
static int judge(struct worker *w, session *s, struct taker *t, const char *sql)
{
    if (t->code == 1286 && atomic_load(&swapping)) /* the engine is out */
        pause_ms(1);
    if ((t->code == 1286 && atomic_load(&swapping)) || t->code == 1213 || t->code == 1205 || t->code == 1062) {
        struct taker ignored;
        w->retries++;
        run(s, &ignored, "ROLLBACK");
        return 1;
    }
    if (t->code)
        wrong(sql, t->error);
    return t->code ? 2 : 0;
}

static void transfer(struct worker *w, session *s)
{
    char sql[200];
    struct taker t;
    unsigned amount = pick(w, 50), from = pick(w, ACCOUNTS), to = pick(w, ACCOUNTS);
    run(s, &t, "BEGIN");
    for (int side = 0; side < 2; side++) {
        snprintf(sql, sizeof sql, "UPDATE accounts SET balance = balance %c %u WHERE id = %u",
                 side ? '+' : '-', amount, side ? to : from);
        run(s, &t, sql);
        if (judge(w, s, &t, sql))
            return;
    }
    run(s, &t, pick(w, 10) ? "COMMIT" : "ROLLBACK");
    if (!judge(w, s, &t, "COMMIT"))
        w->commits++;
}

static void note(struct worker *w, session *s)
{
    static const char *const forms[] = {
        "INSERT INTO notes VALUES (%u, %u, REPEAT('n', %u), REPEAT('b', %u0))",
        "REPLACE INTO notes VALUES (%u, %u, REPEAT('r', %u), REPEAT('c', %u0))",
        "UPDATE notes SET k = k + 1, body = REPEAT('u', %4$u0) WHERE k BETWEEN %2$u AND %2$u + %3$u",
        "DELETE FROM notes WHERE id = %u OR k = %u LIMIT %u"};
    char sql[300];
    struct taker t;
    snprintf(sql, sizeof sql, forms[pick(w, 4)], pick(w, 2000), pick(w, 300), 1 + pick(w, 20), pick(w, 1500));
    run(s, &t, sql);
    judge(w, s, &t, sql);
}

static void sum_up(struct worker *w, session *s)
{
    struct taker t;
    char want[32];
    run(s, &t, "SELECT SUM(balance) FROM accounts");
    snprintf(want, sizeof want, "%d", ACCOUNTS * EACH);
    if (judge(w, s, &t, "SELECT SUM(balance) FROM accounts"))
        return;
    w->sums++;
    if (strcmp(t.value, want))
        wrong("the sum of all accounts is", t.value);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    session *s = session_open(w->h);
    struct taker t;
    run(s, &t, "USE stress");
    run(s, &t, "SET innodb_lock_wait_timeout = 3");
    if (w->number % 2)
        run(s, &t, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    while (!atomic_load(&stop)) {
        unsigned what = pick(w, 10);
        if (what < 5)
            transfer(w, s);
        else if (what < 9)
            note(w, s);
        else
            sum_up(w, s);
    }
    session_close(s);
    return NULL;
}

/* Memory of the process, KiB. */
static long resident(void)
{
    char line[200];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

static bool say(session *s, const char *sql)
{
    struct taker t;
    if (run(s, &t, sql))
        wrong(sql, t.error);
    return t.code == 0;
}

/* Sessions at work are waited for a second; on a busy machine that may not be enough. */
static bool take_out(session *s, unsigned *refused)
{
    struct taker t;
    for (unsigned tries = 0; run(s, &t, "UNINSTALL SONAME 'libxtradb.so'"); tries++) {
        *refused += 1;
        if (t.code != 1620 || tries == 100) {
            wrong("UNINSTALL SONAME", t.error);
            return false;
        }
    }
    return true;
}

static void swap(session *s, unsigned count, const char *from, const char *plugins)
{
    char put[2][1000];
    long settled = 0, now = 0;
    unsigned refused = 0;
    for (int build = 0; build < 2; build++)
        snprintf(put[build], sizeof put[build], "cp %s/%d.so %s/.new && mv %s/.new %s/libxtradb.so", from, build,
                 plugins, plugins, plugins);
    atomic_store(&swapping, true);
    for (unsigned i = 0; i < count && !atomic_load(&stop); i++) {
        pause_ms(20);
        if (!take_out(s, &refused))
            return;
        malloc_trim(0); /* what the allocator keeps for later is not the engine's */
        now = resident();
        if (i == SETTLED)
            settled = now;
        if (system(put[i % 2]))
            wrong("the build cannot be put in place", put[i % 2]);
        if (!say(s, "INSTALL SONAME 'libxtradb.so'"))
            return;
    }
    long grown = count > SETTLED ? (now - settled) / (long)(count - SETTLED) : 0;
    printf("%u swaps, refused %u times; %ld KiB stay, %ld more with each\n", count, refused, now, grown);
    if (grown > GROWTH_KIB)
        wrong("memory grows with each swap", "too much");
}

static void prepare(session *s)
{
    static const char *const statements[] = {
        "CREATE DATABASE IF NOT EXISTS stress", "USE stress", "DROP TABLE IF EXISTS accounts, notes",
        "CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL, KEY (balance))",
        "CREATE TABLE notes (id INT PRIMARY KEY, k INT, s VARCHAR(40), body TEXT, KEY (k), KEY (s(5), k DESC))",
        "INSERT INTO accounts SELECT seq, 1000 FROM seq_0_to_99"};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        say(s, statements[i]);
}

static void finish(session *s, struct worker *w, unsigned threads)
{
    struct taker t;
    uint64_t commits = 0, retries = 0, sums = 0;
    for (unsigned i = 0; i < threads; i++) {
        commits += w[i].commits;
        retries += w[i].retries;
        sums += w[i].sums;
    }
    sum_up(&w[0], s);
    run(s, &t, "CHECK TABLE accounts, notes EXTENDED");
    if (t.bad_check || t.code)
        wrong("CHECK TABLE", t.error);
    if (!atomic_load(&failed))
        printf("ok: %llu transfers, %llu sums, %llu tried again\n", (unsigned long long)commits,
               (unsigned long long)sums, (unsigned long long)retries);
}

static void log_line(host *h, int level, const char *text)
{
    (void)h;
    if (level > 0)
        fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
    static host h;
    host_options options;
    if (argc < 4)
        return 2;
    char builds[500] = "";
    unsigned seconds = (unsigned)atoi(argv[1]), swaps = 0, threads = (unsigned)atoi(argv[2]);
    uint64_t seed = strtoull(argv[3], NULL, 10);
    sscanf(argv[1], "swaps=%u:%499s", &swaps, builds);
    argv[3] = argv[0];
    if (options_read(&options, argc - 3, argv + 3) || !threads)
        return 2;
    pthread_mutex_init(&h.lock, NULL);
    h.log = log_line;
    h.datadir = mem_strdup(options.datadir);
    h.plugin_dir = mem_strdup(options.plugin_dir ? options.plugin_dir : "");
    if (catalog_open(&h) || registry_open(&h, &options))
        return 1;
    session *s = session_open(&h);
    struct worker *workers = mem_alloc(threads * sizeof *workers);
    prepare(s);
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){.h = &h, .random = seed * 1000 + i, .number = i};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    if (swaps)
        swap(s, swaps, builds, h.plugin_dir);
    for (unsigned i = 0; i < 10 * seconds && !atomic_load(&stop); i++)
        pause_ms(100);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    atomic_store(&swapping, false);
    finish(s, workers, threads);
    session_close(s);
    if (!registry_close(&h))
        printf("the engine did not stop\n");
    catalog_close(&h);
    return atomic_load(&failed);
}
