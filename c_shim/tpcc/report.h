/* What a run came to: for people, and as JSON. */
#ifndef XTRADB_TPCC_REPORT_H
#define XTRADB_TPCC_REPORT_H

#include "check.h"
#include "run.h"

/* New orders a minute. */
double notpm(const results *r);

void report_run(const bench *b, const results *r);
void report_check(const check_results *r);

/* `r` or `check` may be NULL: not done. False: the file cannot be written (said why). */
bool write_json(const char *path, const bench *b, const results *r, const check_results *check);

/* Throughput and latency of each second as an SVG picture. False: as above. */
bool write_plot(const char *path, const bench *b, const results *r);

#endif
