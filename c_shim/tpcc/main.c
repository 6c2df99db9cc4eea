/* xtradb-tpcc: loads the TPC-C database where it is missing, runs the workload, checks the result. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "load.h"
#include "log.h"
#include "report.h"
#include "run.h"

static void on_signal(int number)
{
    (void)number;
    run_stop();
}

/* Makes sure that the database is there; takes its size. */
static bool prepare(bench *b)
{
    shape found;
    enum loaded there = load_examine(b, &found);
    const shape *wanted = &b->options->size;

    if (there == LOADED_UNKNOWN)
        return false;
    if (there == LOADED_WHOLLY && !b->options->reload) {
        b->size = found;
        if ((wanted->warehouses != 0 && wanted->warehouses != found.warehouses) ||
            (wanted->items != 0 && wanted->items != found.items) ||
            (wanted->customers != 0 && wanted->customers != found.customers)) {
            host_log(HOST_LOG_ERROR, "The directory has %d warehouses, %d items, %d customers; "
                     "--reload makes it anew", found.warehouses, found.items, found.customers);
            return false;
        }
        printf("Found %d warehouse%s\n", found.warehouses, found.warehouses == 1 ? "" : "s");
        fflush(stdout);
        return true;
    }
    if (b->options->check_only) {
        host_log(HOST_LOG_ERROR, "The directory has no complete database");
        return false;
    }
    b->size.warehouses = wanted->warehouses > 0 ? wanted->warehouses : 1;
    b->size.items = wanted->items > 0 ? wanted->items : 100000;
    b->size.customers = wanted->customers > 0 ? wanted->customers : 3000;
    return load_all(b);
}

/* Runs, reports; `*orders` gets how many orders must be there then. */
static bool measure(bench *b, results *r, int64_t *orders)
{
    int64_t before = check_count_orders(b);

    if (before < 0 || !run_workload(b, r))
        return false;
    if (!r->failed)
        *orders = before + (int64_t)r->orders_acknowledged;
    report_run(b, r);
    return (b->options->plot == NULL || write_plot(b->options->plot, b, r)) && !r->failed;
}

static bool work(bench *b)
{
    const options *o = b->options;
    check_results check;
    results r = { .seconds = NULL };
    int64_t orders = -1;
    bool good = prepare(b), ran = good && !o->prepare_only && !o->check_only;
    bool checked = good && !o->no_check && !o->prepare_only;

    if (ran)
        good = measure(b, &r, &orders);
    if (checked) {
        check_all(b, orders, &check);
        report_check(&check);
        good = good && check.held;
    }
    if (o->json != NULL)
        good = write_json(o->json, b, ran ? &r : NULL, checked ? &check : NULL) && good;
    results_free(&r);
    return good;
}

int main(int argc, char **argv)
{
    static options o;
    static bench b;
    struct sigaction action = { .sa_handler = on_signal };
    bool good;
    int result;

    describe_tables();
    result = options_parse(&o, argc, argv);
    if (result != EXIT_HELD)
        return result < 0 ? EXIT_HELD : result;
    host_log_level_max(o.verbose ? HOST_LOG_NOTE : HOST_LOG_WARNING);
    action.sa_flags = SA_RESETHAND; /* a second one ends the process */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!bench_open(&b, &o))
        return EXIT_FAILED;
    good = work(&b);
    if (!bench_close(&b))
        good = false;
    return good ? EXIT_HELD : EXIT_FAILED;
}
