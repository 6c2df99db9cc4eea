/* The run: threads that do transactions without pause, a line for each second. */
#ifndef XTRADB_TPCC_RUN_H
#define XTRADB_TPCC_RUN_H

#include "measure.h"
#include "observe.h"

typedef struct kind_totals {
    histogram latency; /* retries included */
    uint64_t committed, rolled_back;
    uint64_t deadlocks, lock_timeouts; /* tries that had to be repeated */
} kind_totals;

/* What the measured time gave (warm-up left out). */
typedef struct results {
    kind_totals kinds[KIND_COUNT];
    second *seconds;
    int second_count;
    double elapsed;    /* seconds */
    counters counters; /* of the engine, in that time */
    /* New orders that were acknowledged from the first transaction on, warm-up included. */
    uint64_t orders_acknowledged;
    bool failed;
} results;

/* False: it could not begin. A failure of the engine on the way is `failed`. */
bool run_workload(bench *b, results *r);
void results_free(results *r);

/* From a signal handler: ends the run early. */
void run_stop(void);

#endif
