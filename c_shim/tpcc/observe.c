#include "observe.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *status; /* the engine's name */
    const char *name;
} known[COUNTER_COUNT] = {
    [REDO_BYTES] = { "Innodb_os_log_written", "redo_bytes" },
    [PAGES_READ] = { "Innodb_pages_read", "pages_read" },
    [PAGES_WRITTEN] = { "Innodb_pages_written", "pages_written" },
    [DATA_SYNCS] = { "Innodb_data_fsyncs", "data_syncs" },
    [FREE_WAITS] = { "Innodb_buffer_pool_wait_free", "waits_for_a_free_page" },
    [LOG_WAITS] = { "Innodb_log_waits", "waits_for_the_log" },
    [ROW_LOCK_WAITS] = { "Innodb_row_lock_waits", "row_lock_waits" },
};

const char *counter_name(enum counter counter)
{
    return known[counter].name;
}

static uint64_t value_of(const xt_value *value)
{
    char digits[32] = "";

    if (value->kind != XT_VALUE_STRING)
        return value->v.u;
    if (value->length < sizeof digits)
        memcpy(digits, value->v.s, value->length);
    return strtoull(digits, NULL, 10);
}

/* A row of status_read: name, value. */
static uint32_t take(void *ctx, const xt_value *values, uint32_t count)
{
    counters *to = ctx;

    for (unsigned i = 0; count >= 2 && i < COUNTER_COUNT; i++)
        if (strlen(known[i].status) == values[0].length &&
            memcmp(known[i].status, values[0].v.s, values[0].length) == 0)
            to->values[i] = value_of(&values[1]);
    return 0;
}

void counters_read(bench *b, counters *to)
{
    memset(to, 0, sizeof *to);
    b->xt->status_read(b->engine, take, to);
}

void counters_subtract(counters *to, const counters *from)
{
    for (unsigned i = 0; i < COUNTER_COUNT; i++)
        to->values[i] -= from->values[i];
}
