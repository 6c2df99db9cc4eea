/*
 * The error log: one line per event, on stderr or in the file of --log-error.
 *
 *   2026-11-30 10:05:12 0 [ERROR] xtradb-host: unknown variable 'innodb-foo=1'
 *
 * Any thread may log; a line is written by one write(2), so lines never mix. Nothing here blocks
 * on a latch: the engine may call it under its page latches.
 */
#ifndef XTRADB_COMMON_LOG_H
#define XTRADB_COMMON_LOG_H

#include <stdbool.h>

typedef enum host_log_level {
    HOST_LOG_ERROR,
    HOST_LOG_WARNING,
    HOST_LOG_NOTE,
} host_log_level;

/* Lines less grave than this are dropped. At first: notes. */
void host_log_level_max(host_log_level level);

/* Sends the log to a file, appending. False with errno set when it cannot be opened. */
bool host_log_open(const char *path);

void host_log(host_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
