/* What the engine counts of itself, by the names of SHOW STATUS. */
#ifndef XTRADB_TPCC_OBSERVE_H
#define XTRADB_TPCC_OBSERVE_H

#include "connect.h"

enum counter { REDO_BYTES, PAGES_READ, PAGES_WRITTEN, DATA_SYNCS, FREE_WAITS, LOG_WAITS,
               ROW_LOCK_WAITS, COUNTER_COUNT };

typedef struct counters {
    uint64_t values[COUNTER_COUNT];
} counters;

void counters_read(bench *b, counters *to);
/* to = to - from */
void counters_subtract(counters *to, const counters *from);
/* As the JSON file has it. */
const char *counter_name(enum counter counter);

#endif
