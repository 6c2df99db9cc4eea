/* xtradb/info.h - what can be looked at: INFORMATION_SCHEMA tables, status, monitor. */
#ifndef XTRADB_INFO_H
#define XTRADB_INFO_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** xt_value.kind and xt_info_column.kind */
#define XT_VALUE_INT 1      /* v.i */
#define XT_VALUE_UINT 2     /* v.u */
#define XT_VALUE_DOUBLE 3   /* v.d */
#define XT_VALUE_STRING 4   /* v.s, `length` bytes, UTF-8, not NUL-terminated */
#define XT_VALUE_ENUM 5     /* v.u: position in the column's `values`, from 0 */
#define XT_VALUE_DATETIME 6 /* v.u: seconds since 1970 UTC; the host turns it into local time */

/** One value. Strings live for the callback only. */
typedef struct xt_value {
  uint32_t kind;
  /** 1: NULL; the rest is undefined. */
  uint32_t is_null;
  union {
    int64_t i;
    uint64_t u;
    double d;
    const char *s;
  } v;
  uint32_t length;
  uint32_t reserved;
} xt_value;

/** Takes one row. Returns 0 to go on, anything else to stop (the call then returns XT_CANCELLED).
 *  Called without latches, on the calling thread; must not call the engine back. */
typedef uint32_t xt_emit_fn(void *ctx, const xt_value *values, uint32_t count);

/** Takes a piece of text, `length` bytes. Same rules. */
typedef uint32_t xt_text_fn(void *ctx, const char *text, uint32_t length);

/** xt_info_column.flags */
#define XT_INFO_NULLABLE 1u
#define XT_INFO_UNSIGNED 2u

/** One column of an INFORMATION_SCHEMA table. Static. */
typedef struct xt_info_column {
  const char *name;
  /** XT_VALUE_* */
  uint32_t kind;
  /** Display width of numbers, characters of strings. */
  uint32_t length;
  /** XT_INFO_* */
  uint32_t flags;
  uint32_t values_count;
  /** Names of an XT_VALUE_ENUM. */
  const char *const *values;
} xt_info_column;

/** xt_info_table.flags: only for users with the PROCESS privilege; others see no rows. */
#define XT_INFO_NEEDS_PROCESS 1u

/** One INFORMATION_SCHEMA table. Static; xt_plugin.info_table. */
struct xt_info_table {
  uint32_t struct_size;
  uint32_t flags;
  /** "INNODB_TRX" */
  const char *name;
  const xt_info_column *columns;
  uint32_t columns_count;
  uint32_t reserved;
};

/** Emits the table's rows. `session` (may be NULL) is asked whether it was interrupted. `table`: the
 *  name, in any case. The *_RESET tables set their counters back after a complete read.
 *  Thread: any (session given: owner). Codes: common, XT_INVALID (no such table), XT_CANCELLED,
 *  XT_INTERRUPTED. */
typedef xt_status xt_info_fill_fn(xt_engine *engine, xt_session *session, const char *table,
                                  xt_emit_fn *emit, void *ctx);

/** Emits (name, value) for each status variable, sorted by name: "Innodb_buffer_pool_reads" ...
 *  Cheap. Thread: any. Codes: common, XT_CANCELLED. */
typedef xt_status xt_status_read_fn(xt_engine *engine, xt_emit_fn *emit, void *ctx);

/** monitor_text kinds */
#define XT_MONITOR_STATUS 1 /* SHOW ENGINE INNODB STATUS */
#define XT_MONITOR_MUTEX 2  /* SHOW ENGINE INNODB MUTEX: lines "name<TAB>status" */

/** Emits the monitor's text in pieces. Thread: any. Codes: common, XT_CANCELLED. */
typedef xt_status xt_monitor_text_fn(xt_engine *engine, uint32_t kind, xt_text_fn *emit, void *ctx);

#ifdef __cplusplus
}
#endif

#endif /* XTRADB_INFO_H */
