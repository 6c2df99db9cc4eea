#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static double ms(uint64_t us)
{
    return (double)us / 1e3;
}

static double per_second(double count, const results *r)
{
    return r->elapsed > 0 ? count / r->elapsed : 0;
}

double notpm(const results *r)
{
    return 60 * per_second((double)r->kinds[NEW_ORDER].committed, r);
}

static uint64_t transactions(const results *r)
{
    uint64_t all = 0;

    for (unsigned k = 0; k < KIND_COUNT; k++)
        all += r->kinds[k].latency.count;
    return all;
}

/* The worst second, as a part of the mean. */
static double worst_second(const results *r)
{
    double sum = 0, least = -1;

    for (int i = 0; i < r->second_count; i++) {
        double n = r->seconds[i].transactions;

        sum += n;
        least = least < 0 || n < least ? n : least;
    }
    return sum > 0 ? least * r->second_count / sum : 0;
}

static void report_counters(const counters *c, uint64_t all)
{
    double n = all > 0 ? (double)all : 1;

    printf("\na transaction: %.1f KiB of log, %.2f pages read, %.2f written, %.2f row lock waits; in "
           "all %llu waits for a free page, %llu for the log\n\n",
           (double)c->values[REDO_BYTES] / n / 1024, (double)c->values[PAGES_READ] / n,
           (double)c->values[PAGES_WRITTEN] / n, (double)c->values[ROW_LOCK_WAITS] / n,
           (unsigned long long)c->values[FREE_WAITS], (unsigned long long)c->values[LOG_WAITS]);
}

void report_run(const bench *b, const results *r)
{
    uint64_t all = transactions(r);

    printf("\nNOTPM %.0f   (%.0f transactions/s, %.1f s, %d thread%s, %d warehouse%s, worst second "
           "%.2f of the mean)\n\n", notpm(r), per_second((double)all, r), r->elapsed,
           b->options->threads, b->options->threads == 1 ? "" : "s", b->size.warehouses,
           b->size.warehouses == 1 ? "" : "s", worst_second(r));
    printf("%-13s %9s %7s %12s %9s %9s  %8s %8s %8s %8s ms\n", "", "committed", "share",
           "rolled back", "deadlocks", "timeouts", "p50", "p95", "p99", "max");
    for (unsigned k = 0; k < KIND_COUNT; k++) {
        const kind_totals *t = &r->kinds[k];

        printf("%-13s %9llu %5.1f %% %12llu %9llu %9llu  %8.2f %8.2f %8.2f %8.2f\n", kind_name(k),
               (unsigned long long)t->committed,
               all > 0 ? 100.0 * (double)t->latency.count / (double)all : 0,
               (unsigned long long)t->rolled_back, (unsigned long long)t->deadlocks,
               (unsigned long long)t->lock_timeouts, ms(histogram_quantile(&t->latency, 0.50)),
               ms(histogram_quantile(&t->latency, 0.95)), ms(histogram_quantile(&t->latency, 0.99)),
               ms(t->latency.max));
    }
    report_counters(&r->counters, all);
    fflush(stdout);
}

void report_check(const check_results *r)
{
    for (int i = 1; i <= CONDITION_COUNT; i++) {
        const condition_result *c = &r->conditions[i];

        printf("  %2d  %-58s  ", i, condition_text(i));
        if (!c->checked)
            puts("not checked");
        else if (c->violations == 0)
            puts("holds");
        else
            printf("VIOLATED %llu times: %s\n", (unsigned long long)c->violations, c->first);
    }
    printf("%s, in %.1f s\n",
           r->held ? "All conditions hold" : "The database is NOT consistent", r->seconds);
    fflush(stdout);
}

/* ----------------------------------------------------------------------------------- JSON */

static void json_string(FILE *f, const char *text)
{
    putc('"', f);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', f);
        if ((unsigned char)*text >= ' ')
            putc(*text, f);
    }
    putc('"', f);
}

static void json_settings(FILE *f, const bench *b)
{
    const options *o = b->options;

    fprintf(f, "{\n  \"warehouses\": %d, \"items\": %d, \"customers\": %d, \"threads\": %d,\n"
            "  \"seconds\": %d, \"warmup\": %d, \"isolation\": %u, \"one_statement\": %s,\n"
            "  \"settings\": [", b->size.warehouses, b->size.items, b->size.customers, o->threads,
            o->seconds, o->warmup, o->isolation, o->one_statement ? "true" : "false");
    for (uint32_t i = 0; i < o->setting_count; i++) {
        fputs(i > 0 ? ", " : "", f);
        json_string(f, o->settings[i]);
    }
    putc(']', f);
}

static void json_kind(FILE *f, enum kind kind, const kind_totals *t)
{
    fputs("    ", f);
    json_string(f, kind_name(kind));
    fprintf(f, ": {\"committed\": %llu, \"rolled_back\": %llu, \"deadlocks\": %llu, "
            "\"lock_wait_timeouts\": %llu, \"p50_ms\": %.3f, \"p95_ms\": %.3f, \"p99_ms\": %.3f, "
            "\"max_ms\": %.3f}%s\n", (unsigned long long)t->committed,
            (unsigned long long)t->rolled_back, (unsigned long long)t->deadlocks,
            (unsigned long long)t->lock_timeouts, ms(histogram_quantile(&t->latency, 0.50)),
            ms(histogram_quantile(&t->latency, 0.95)), ms(histogram_quantile(&t->latency, 0.99)),
            ms(t->latency.max), kind + 1 < KIND_COUNT ? "," : "");
}

static void json_run(FILE *f, const results *r)
{
    fprintf(f, ",\n  \"notpm\": %.1f, \"transactions_per_second\": %.1f, \"elapsed\": %.3f, "
            "\"worst_second_of_mean\": %.3f,\n  \"kinds\": {\n", notpm(r),
            per_second((double)transactions(r), r), r->elapsed, worst_second(r));
    for (unsigned k = 0; k < KIND_COUNT; k++)
        json_kind(f, k, &r->kinds[k]);
    fputs("  },\n  \"engine\": {", f);
    for (unsigned i = 0; i < COUNTER_COUNT; i++)
        fprintf(f, "%s\"%s\": %llu", i > 0 ? ", " : "", counter_name(i),
                (unsigned long long)r->counters.values[i]);
    fputs("},\n  \"each_second\": [\n", f);
    for (int i = 0; i < r->second_count; i++) {
        const second *s = &r->seconds[i];

        fprintf(f, "    {\"transactions\": %u, \"new_orders\": %u, \"retries\": %u, \"p50_ms\": "
                "%.3f, \"p95_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}%s\n", s->transactions,
                s->kinds[NEW_ORDER], s->retries, ms(s->p50), ms(s->p95), ms(s->p99), ms(s->max),
                i + 1 < r->second_count ? "," : "");
    }
    fputs("  ]", f);
}

static void json_check(FILE *f, const check_results *r)
{
    fprintf(f, ",\n  \"consistent\": %s,\n  \"conditions\": [\n", r->held ? "true" : "false");
    for (int i = 1; i <= CONDITION_COUNT; i++) {
        const condition_result *c = &r->conditions[i];

        fprintf(f, "    {\"number\": %d, \"checked\": %s, \"violations\": %llu, \"condition\": ", i,
                c->checked ? "true" : "false", (unsigned long long)c->violations);
        json_string(f, condition_text(i));
        if (c->violations > 0) {
            fputs(", \"first\": ", f);
            json_string(f, c->first);
        }
        fprintf(f, "}%s\n", i < CONDITION_COUNT ? "," : "");
    }
    fputs("  ]", f);
}

bool write_json(const char *path, const bench *b, const results *r, const check_results *check)
{
    FILE *f = fopen(path, "we");
    bool written;

    if (f != NULL) {
        json_settings(f, b);
        if (r != NULL)
            json_run(f, r);
        if (check != NULL)
            json_check(f, check);
        fputs("\n}\n", f);
        written = !ferror(f);
        if (fclose(f) == 0 && written)
            return true;
    }
    fprintf(stderr, "xtradb-tpcc: '%s' cannot be written: %s\n", path, strerror(errno));
    return false;
}
