/* Latencies: histograms whose buckets are about 3 % wide, in microseconds. */
#ifndef XTRADB_TPCC_MEASURE_H
#define XTRADB_TPCC_MEASURE_H

#include <stdatomic.h>
#include <stdint.h>

#include "transact.h"

enum { BUCKET_COUNT = 1024, SLOT_COUNT = 16 };

typedef struct histogram {
    uint64_t counts[BUCKET_COUNT];
    uint64_t count, max;
} histogram;

/* One second as all threads count it, while it runs. */
typedef struct second_slot {
    atomic_uint buckets[BUCKET_COUNT];
    atomic_uint kinds[KIND_COUNT];
    atomic_uint retries;
    atomic_ullong max;
} second_slot;

/* One second that is over. Latencies in microseconds. */
typedef struct second {
    uint32_t kinds[KIND_COUNT];
    uint32_t transactions, retries;
    uint64_t p50, p95, p99, max;
} second;

unsigned bucket_of(uint64_t us);
void histogram_add(histogram *h, uint64_t us);
void histogram_merge(histogram *to, const histogram *from);
/* The latency that `part` (0..1) of all do not exceed; 0 if there are none. */
uint64_t histogram_quantile(const histogram *h, double part);

void slot_add(second_slot *slot, enum kind kind, uint64_t us);
/* Sums the second up and clears the slot. */
void slot_take(second_slot *slot, second *result);

#endif
