#include "measure.h"

#include <string.h>

#define EXACT 64 /* below: one bucket for each microsecond; above: 32 for each doubling */
#define STEPS 32

unsigned bucket_of(uint64_t us)
{
    unsigned shift, bucket;

    if (us < EXACT)
        return (unsigned)us;
    shift = 63u - (unsigned)__builtin_clzll(us) - 5;
    bucket = shift * STEPS + (unsigned)(us >> shift);
    return bucket < BUCKET_COUNT ? bucket : BUCKET_COUNT - 1;
}

/* The greatest value of a bucket. */
static uint64_t bucket_end(unsigned bucket)
{
    unsigned shift;

    if (bucket < EXACT)
        return bucket;
    shift = bucket / STEPS - 1;
    return ((uint64_t)(bucket - shift * STEPS + 1) << shift) - 1;
}

void histogram_add(histogram *h, uint64_t us)
{
    h->counts[bucket_of(us)]++;
    h->count++;
    h->max = us > h->max ? us : h->max;
}

void histogram_merge(histogram *to, const histogram *from)
{
    for (unsigned i = 0; i < BUCKET_COUNT; i++)
        to->counts[i] += from->counts[i];
    to->count += from->count;
    to->max = from->max > to->max ? from->max : to->max;
}

uint64_t histogram_quantile(const histogram *h, double part)
{
    uint64_t wanted = (uint64_t)((double)h->count * part + 0.5), seen = 0;

    for (unsigned i = 0; i < BUCKET_COUNT; i++) {
        seen += h->counts[i];
        if (seen >= wanted && seen > 0)
            return bucket_end(i) < h->max ? bucket_end(i) : h->max;
    }
    return h->max;
}

void slot_add(second_slot *slot, enum kind kind, uint64_t us)
{
    unsigned long long max = atomic_load_explicit(&slot->max, memory_order_relaxed);

    atomic_fetch_add_explicit(&slot->buckets[bucket_of(us)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&slot->kinds[kind], 1, memory_order_relaxed);
    while (us > max && !atomic_compare_exchange_weak_explicit(&slot->max, &max, us,
                                                              memory_order_relaxed,
                                                              memory_order_relaxed))
        ;
}

void slot_take(second_slot *slot, second *result)
{
    histogram h;

    memset(&h, 0, sizeof h);
    memset(result, 0, sizeof *result);
    for (unsigned i = 0; i < BUCKET_COUNT; i++) {
        h.counts[i] = atomic_exchange(&slot->buckets[i], 0);
        h.count += h.counts[i];
    }
    h.max = atomic_exchange(&slot->max, 0);
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        result->kinds[k] = atomic_exchange(&slot->kinds[k], 0);
        result->transactions += result->kinds[k];
    }
    result->retries = atomic_exchange(&slot->retries, 0);
    result->p50 = histogram_quantile(&h, 0.50);
    result->p95 = histogram_quantile(&h, 0.95);
    result->p99 = histogram_quantile(&h, 0.99);
    result->max = h.max;
}
