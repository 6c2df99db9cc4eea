/* xtradb/host.h - what the host gives to the engine: callbacks.
 *
 * Two classes of callbacks.
 *   leaf   pure, quick, never blocks, never calls the engine back, may be called by any thread,
 *          engine threads included, while pages are latched: collation functions, clock, log.
 *   free   called with nothing latched. May take the host's own locks. Must not call the engine
 *          back except for session_interrupt.
 * No callback may unwind or throw (C++: noexcept). Each may be NULL unless "required".
 * The struct must live, unchanged, from engine_create to engine_destroy.
 */
#ifndef XTRADB_HOST_H
#define XTRADB_HOST_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Importance of a log line or warning. */
#define XT_LOG_ERROR 1
#define XT_LOG_WARNING 2
#define XT_LOG_NOTE 3
#define XT_LOG_DEBUG 4

/** xt_collation.flags: comparison is memcmp over the bytes, then by length; no padding. */
#define XT_COLLATION_BINARY 1u
/** The shorter string counts as padded with spaces (PAD SPACE). */
#define XT_COLLATION_PAD_SPACE 2u
/** Strings of bytes 0x00..0x7F only compare bytewise under this collation. */
#define XT_COLLATION_ASCII_BINARY 4u

typedef struct xt_collation xt_collation;

/** Negative, 0, positive as a < b, a = b, a > b. Lengths in bytes. With XT_COLLATION_PAD_SPACE
 *  trailing spaces do not count. Leaf. */
typedef int32_t xt_collation_compare_fn(const xt_collation *collation, const uint8_t *a,
                                        uint32_t a_length, const uint8_t *b, uint32_t b_length);

/** Writes at most `key_size` bytes whose memcmp order is the collation's order; returns the bytes
 *  written. Equal strings give equal keys, whatever their trailing spaces. Leaf. */
typedef uint32_t xt_collation_sort_key_fn(const xt_collation *collation, uint8_t *key,
                                          uint32_t key_size, const uint8_t *text, uint32_t length);

/** Number of bytes of the first `characters` characters of `text` (at most `length`; malformed
 *  bytes count as one character each). Leaf. */
typedef uint32_t xt_collation_prefix_fn(const xt_collation *collation, const uint8_t *text,
                                        uint32_t length, uint32_t characters);

/** One collation of the host. Made by the host; must live until engine_destroy. */
struct xt_collation {
  uint32_t struct_size;
  /** MySQL's collation number as the dictionary stores it: 8 latin1_swedish_ci, 63 binary,
   *  45 utf8mb4_general_ci ... */
  uint32_t id;
  /** "utf8mb4_general_ci". Static. */
  const char *name;
  /** For the host's own use, e.g. CHARSET_INFO *. */
  const void *data;
  /** Bytes of the shortest and the longest character. */
  uint32_t mbminlen;
  uint32_t mbmaxlen;
  /** XT_COLLATION_* */
  uint32_t flags;
  /** The pad character, mostly 0x20. */
  uint32_t pad_char;
  /** Required. */
  xt_collation_compare_fn *compare;
  /** Required. */
  xt_collation_sort_key_fn *sort_key;
  /** Required if mbmaxlen > 1. */
  xt_collation_prefix_fn *prefix;
};

/** Takes one line of the engine's log, without newline. `length` bytes, NUL after them. Leaf. */
typedef void xt_host_log_fn(void *ctx, uint32_t level, const char *text, uint32_t length);

/** The collation with this number, or NULL. Asked once for each number. Free. Required. */
typedef const xt_collation *xt_host_collation_fn(void *ctx, uint32_t id);

/** True (1) if the statement of the session should end. `session_ctx` as given to session_open.
 *  Called by the thread that drives the session, every now and then. Free. */
typedef uint8_t xt_host_kill_check_fn(void *ctx, void *session_ctx);

/** A warning for the user of a session (SHOW WARNINGS). `code` is MySQL's error number. Called by
 *  the thread that drives the session. Free. */
typedef void xt_host_warning_fn(void *ctx, void *session_ctx, uint32_t level, uint32_t code,
                                const char *text);

/** Copies the text of the session's running statement, for INNODB_TRX and the monitor; returns the
 *  bytes written, 0 if there is none. Called by ANY thread; session_close waits for it. Free. */
typedef uint32_t xt_host_query_text_fn(void *ctx, void *session_ctx, char *buffer, uint32_t size);

/** Tells that `waiter` is about to wait for `blocker` (contexts of session_open; blocker may be
 *  NULL = not a session). Free. */
typedef void xt_host_wait_report_fn(void *ctx, void *waiter_ctx, void *blocker_ctx);

/** Microseconds. `wall`: since 1970-01-01 UTC; otherwise monotonic, from any start. Leaf. */
typedef uint64_t xt_host_clock_fn(void *ctx, uint8_t wall);

/** First call of an engine thread that is going to use free callbacks; returns a token for
 *  thread_detach. `name` lives for the call. Not called on threads of the host. Free. */
typedef void *xt_host_thread_attach_fn(void *ctx, const char *name);
/** Last call of that thread. Free. */
typedef void xt_host_thread_detach_fn(void *ctx, void *token);

/** Callbacks. Filled in by the host. */
typedef struct xt_host {
  /** sizeof(xt_host) */
  uint32_t struct_size;
  /** XT_ABI_VERSION of the header that the host was compiled with. */
  uint32_t abi_version;
  /** First argument of every callback. */
  void *ctx;
  /* 1.0 */
  xt_host_log_fn *log;
  xt_host_collation_fn *collation;
  xt_host_kill_check_fn *kill_check;
  xt_host_warning_fn *warning;
  xt_host_query_text_fn *query_text;
  xt_host_wait_report_fn *wait_report;
  xt_host_clock_fn *clock;
  xt_host_thread_attach_fn *thread_attach;
  xt_host_thread_detach_fn *thread_detach;
  /* 1.1: append here only */
} xt_host;

#ifdef __cplusplus
}
#endif

#endif /* XTRADB_HOST_H */
