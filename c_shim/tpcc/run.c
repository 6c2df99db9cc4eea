#include "run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STALL_SECONDS 30 /* without one transaction: the engine is asked what it does */

static atomic_bool stop_asked;

void run_stop(void)
{
    stop_asked = true;
}

/* What all threads share. Times are those of clock_us. */
typedef struct run {
    bench *bench;
    uint64_t measure_from; /* the warm-up is over */
    uint64_t end;
    atomic_bool stop, failed;
    second_slot slots[SLOT_COUNT];
} run;

typedef struct worker {
    run *run;
    pthread_t thread;
    client client;
    kind_totals kinds[KIND_COUNT];
    uint64_t orders_acknowledged;
} worker;

/* Seconds since the run began to be measured; negative in the warm-up. */
static int second_at(const run *r, uint64_t now)
{
    return (int)(((int64_t)now - (int64_t)r->measure_from + 1000000000000) / 1000000 - 1000000);
}

static second_slot *slot_of(run *r, int second)
{
    return &r->slots[(second + 1000000 * SLOT_COUNT) % SLOT_COUNT];
}

static void note(worker *w, const input *in, uint64_t begin, bool rolled_back)
{
    uint64_t now = clock_us();

    slot_add(slot_of(w->run, second_at(w->run, now)), in->kind, now - begin);
    if (in->kind == NEW_ORDER && !rolled_back)
        w->orders_acknowledged++;
    if (now < w->run->measure_from || now > w->run->end)
        return;
    histogram_add(&w->kinds[in->kind].latency, now - begin);
    if (rolled_back)
        w->kinds[in->kind].rolled_back++;
    else
        w->kinds[in->kind].committed++;
}

static void note_retry(worker *w, const input *in, xt_status status)
{
    uint64_t now = clock_us();

    slot_of(w->run, second_at(w->run, now))->retries++;
    if (now < w->run->measure_from)
        return;
    if (status == XT_LOCK_WAIT_TIMEOUT)
        w->kinds[in->kind].lock_timeouts++;
    else
        w->kinds[in->kind].deadlocks++;
}

static void *worker_main(void *argument)
{
    worker *w = argument;
    run *r = w->run;

    while (!r->stop) {
        uint64_t begin = clock_us();
        xt_status status;
        bool rolled_back;
        input in;

        input_draw(&in, &w->client);
        while (is_retriable(status = transact(&w->client, &in, &rolled_back)) && !r->stop)
            note_retry(w, &in, status);
        if (status == XT_OK) {
            note(w, &in, begin, rolled_back);
        } else if (!is_retriable(status)) {
            client_complain(&w->client, kind_name(in.kind), status);
            client_undo(&w->client);
            r->failed = r->stop = true;
        }
    }
    return NULL;
}

static void print_second(int at, const second *s)
{
    printf("%6d s %-7s %7u tx/s  %6u new orders  %7.2f p50  %7.2f p95  %7.2f p99  %8.2f max ms", at,
           at < 0 ? "warm-up" : "", s->transactions, s->kinds[NEW_ORDER], (double)s->p50 / 1e3,
           (double)s->p95 / 1e3, (double)s->p99 / 1e3, (double)s->max / 1e3);
    if (s->retries > 0)
        printf("  %u retries", s->retries);
    putchar('\n');
    fflush(stdout);
}

/* Prints each second when it is over, until the end or a stop. */
static void watch(run *r, results *result)
{
    int at = second_at(r, clock_us()), idle = 0, seconds = r->bench->options->seconds;
    counters before = { { 0 } };

    for (; at < seconds && !r->stop; at++) {
        second s;

        if (at == 0)
            counters_read(r->bench, &before);
        while (second_at(r, clock_us()) <= at && !r->stop && !stop_asked)
            usleep(5000);
        if (stop_asked)
            break;
        usleep(2000); /* who took the time just before its end has counted by now */
        slot_take(slot_of(r, at), &s);
        print_second(at, &s);
        if (at >= 0)
            result->seconds[result->second_count++] = s;
        idle = s.transactions > 0 || s.retries > 0 ? 0 : idle + 1;
        if (idle == STALL_SECONDS) {
            fprintf(stderr, "xtradb-tpcc: no transaction for %d seconds\n", idle);
            bench_print_monitor(r->bench);
        }
    }
    counters_read(r->bench, &result->counters);
    counters_subtract(&result->counters, &before);
    r->stop = true;
}

static void collect(const worker *w, results *result)
{
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        kind_totals *to = &result->kinds[k];

        histogram_merge(&to->latency, &w->kinds[k].latency);
        to->committed += w->kinds[k].committed;
        to->rolled_back += w->kinds[k].rolled_back;
        to->deadlocks += w->kinds[k].deadlocks;
        to->lock_timeouts += w->kinds[k].lock_timeouts;
    }
    result->orders_acknowledged += w->orders_acknowledged;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL)
        abort();
    return memory;
}

/* Opens the clients first, so that all threads begin at once. The number that were opened. */
static int open_clients(run *r, worker *workers, int count)
{
    for (int i = 0; i < count; i++) {
        workers[i].run = r;
        if (!client_open(&workers[i].client, r->bench, 1 + (uint64_t)i, true))
            return i;
    }
    return count;
}

/* Measured seconds up to now. */
static double elapsed(const run *r)
{
    uint64_t now = clock_us(), until = now < r->end ? now : r->end;

    return until > r->measure_from ? (double)(until - r->measure_from) / 1e6 : 0;
}

bool run_workload(bench *b, results *result)
{
    const options *o = b->options;
    run *r = allocate(1, sizeof *r);
    worker *workers = allocate((size_t)o->threads, sizeof *workers);
    int opened;

    memset(result, 0, sizeof *result);
    result->seconds = allocate((size_t)o->seconds + 1, sizeof *result->seconds);
    r->bench = b;
    opened = open_clients(r, workers, o->threads);
    r->measure_from = clock_us() + (uint64_t)o->warmup * 1000000;
    r->end = r->measure_from + (uint64_t)o->seconds * 1000000;
    for (int i = 0; opened == o->threads && i < opened; i++)
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0)
            abort();
    if (opened == o->threads) {
        watch(r, result);
        result->elapsed = elapsed(r);
        for (int i = 0; i < opened; i++)
            pthread_join(workers[i].thread, NULL);
    }
    for (int i = 0; i < opened; i++) {
        collect(&workers[i], result);
        client_close(&workers[i].client);
    }
    result->failed = r->failed;
    free(workers);
    free(r);
    return opened == o->threads;
}

void results_free(results *r)
{
    free(r->seconds);
    r->seconds = NULL;
}
