/* xtradb/engine.h - the engine's life, plugins, settings.
 *
 *               engine_create            engine_init
 *      (nothing) ----------> CREATED ----------------> RUNNING
 *          ^                  ^   |                     |  ^   engine_pre_shutdown
 *          | engine_destroy   |   +--- init failed -----+  |   (optional, stays RUNNING)
 *          +------------------+-------------------------+--+
 *                                  engine_deinit  (XT_BUSY: still RUNNING, repeat later)
 *
 * init -> deinit -> init works any number of times. Several engines may run in one process, each on
 * a data directory of its own.
 */
#ifndef XTRADB_ENGINE_H
#define XTRADB_ENGINE_H

#include "host.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct xt_engine xt_engine;
typedef struct xt_session xt_session;
typedef struct xt_info_table xt_info_table;

/* ---- plugins --------------------------------------------------------------------------------- */

#define XT_PLUGIN_STORAGE_ENGINE 1
#define XT_PLUGIN_INFORMATION_SCHEMA 4

/** xt_plugin.maturity, as MariaDB counts. */
#define XT_MATURITY_UNKNOWN 0
#define XT_MATURITY_EXPERIMENTAL 1
#define XT_MATURITY_ALPHA 2
#define XT_MATURITY_BETA 3
#define XT_MATURITY_GAMMA 4
#define XT_MATURITY_STABLE 5

/** One plugin of the library, as a plugin-load string names it. Static, const, valid while the
 *  library is loaded; reading it needs no engine. */
typedef struct xt_plugin {
  uint32_t struct_size;
  /** XT_PLUGIN_* (MySQL's plugin types). */
  uint32_t kind;
  /** "InnoDB", "INNODB_TRX" ... compared without regard to case. */
  const char *name;
  const char *description;
  const char *author;
  /** "1.0.3" and the same as major << 16 | minor << 8 | patch. */
  const char *version;
  uint32_t version_number;
  /** XT_MATURITY_* */
  uint32_t maturity;
  /** "GPL". */
  const char *licence;
  /** Version of the interface of this kind: XT_ABI_VERSION. */
  uint32_t interface_version;
  uint32_t reserved;
  /** Columns of the table; NULL for the storage engine. */
  const xt_info_table *info_table;
} xt_plugin;

/** The library's plugins, the storage engine first.
 *  Owner: the library (static). Thread: any. Codes: common. */
typedef xt_status xt_plugins_fn(const xt_plugin **plugins, uint32_t *count);

/* ---- life ------------------------------------------------------------------------------------ */

/** xt_engine_config.flags: unknown settings are a warning in the log instead of an error. */
#define XT_INIT_LOOSE_SETTINGS 1u
/** The directory must hold an instance. Without this flag a directory without one gets a new one. */
#define XT_INIT_NO_CREATE 2u

typedef struct xt_engine_config {
  uint32_t struct_size;
  /** XT_INIT_* */
  uint32_t flags;
  /** The data directory; must exist. Relative paths in settings are relative to it. */
  const char *datadir;
  /** `settings_count` strings "name=value" with or without the "innodb_" prefix; '-' and '_' are
   *  the same; sizes take K, M, G, T. */
  const char *const *settings;
  uint32_t settings_count;
  uint32_t reserved;
} xt_engine_config;

/** xt_engine_state's answers. */
#define XT_STATE_CREATED 1
#define XT_STATE_RUNNING 2
#define XT_STATE_STOPPED 3

/** Makes an engine that does not run yet. Starts no thread, opens no file.
 *  Owner: caller; engine_destroy. Thread: any. Codes: common. */
typedef xt_status xt_engine_create_fn(const xt_host *host, xt_engine **engine);

/** Opens (or creates) the data directory, recovers, starts the engine's threads. On failure
 *  everything is closed again, engine_error has the text, and init may be repeated.
 *  Thread: control. Codes: common, XT_WRONG_ORDER (is running), XT_UNKNOWN_SETTING,
 *  XT_SETTING_RANGE, XT_DATADIR_IN_USE, XT_IO, XT_CRASHED, XT_UNSUPPORTED, XT_READ_ONLY. */
typedef xt_status xt_engine_init_fn(xt_engine *engine, const xt_engine_config *config);

/** Tells that the host's own recovery is over: prepared transactions that nobody decided stay
 *  prepared, and purge may start. Until this call purge does not run.
 *  Thread: any. Codes: common. */
typedef xt_status xt_engine_recovery_done_fn(xt_engine *engine);

/** Ends background work that could use the host (sessions are still open). Optional.
 *  Thread: control. Codes: common. */
typedef xt_status xt_engine_pre_shutdown_fn(xt_engine *engine);

/** Closes the engine: waits at most `timeout_ms` until no session and no table is open and no call
 *  runs, then refuses with XT_BUSY - engine_error says who - and the engine goes on running.
 *  Joins every thread; afterwards no code of the library runs until the next call. A stopped
 *  engine is closed without writing. Units: milliseconds.
 *  Thread: control. Codes: common, XT_BUSY, XT_NOT_RUNNING, XT_IO. */
typedef xt_status xt_engine_deinit_fn(xt_engine *engine, uint32_t timeout_ms);

/** Frees the handle. NULL is allowed. Thread: control. Codes: common, XT_WRONG_ORDER (runs). */
typedef xt_status xt_engine_destroy_fn(xt_engine *engine);

/** XT_STATE_*, or 0 if `engine` is NULL or not a handle. Thread: any. */
typedef uint32_t xt_engine_state_fn(const xt_engine *engine);

/** Copies the text of the last error of an engine function, NUL-terminated, cut to `size` bytes;
 *  returns the length of the whole text. `engine` NULL: the text of the last failed engine_create.
 *  Thread: any. */
typedef uint32_t xt_engine_error_fn(const xt_engine *engine, char *buffer, uint32_t size);

/** What tables of this instance may have. */
typedef struct xt_limits {
  uint32_t struct_size;
  uint32_t page_size;
  uint32_t columns_max;
  uint32_t keys_max;
  uint32_t key_parts_max;
  /** Bytes of a whole key and of one part. */
  uint32_t key_length_max;
  uint32_t key_part_length_max;
  uint32_t reserved;
} xt_limits;

/** Limits of the running instance. `limits->struct_size` is set by the caller.
 *  Thread: any. Codes: common. */
typedef xt_status xt_engine_limits_fn(const xt_engine *engine, xt_limits *limits);

/** Writes the log out and, if `sync`, makes it durable (FLUSH LOGS).
 *  Thread: any. Codes: common, XT_IO. */
typedef xt_status xt_engine_flush_log_fn(xt_engine *engine, uint8_t sync);

/* ---- settings -------------------------------------------------------------------------------- */

#define XT_SETTING_BOOL 1
#define XT_SETTING_INT 2   /* signed */
#define XT_SETTING_UINT 3
#define XT_SETTING_DOUBLE 4
#define XT_SETTING_ENUM 5
#define XT_SETTING_STRING 6

/** xt_setting.flags: each session has its own value; the global one is the start value. */
#define XT_SETTING_SESSION 1u
/** Can be changed while the engine runs. */
#define XT_SETTING_DYNAMIC 2u
/** As a command-line option: takes no value / takes one optionally (else: required). */
#define XT_SETTING_NO_VALUE 4u
#define XT_SETTING_OPTIONAL_VALUE 8u
/** Accepted for compatibility; has no effect (yet). */
#define XT_SETTING_IGNORED 16u
/** Setting it starts an action (innodb_buffer_pool_dump_now). */
#define XT_SETTING_ACTION 32u

/** One setting. Static. Ranges that do not apply are 0. */
typedef struct xt_setting {
  uint32_t struct_size;
  /** XT_SETTING_BOOL ... XT_SETTING_STRING */
  uint32_t type;
  /** Full name: "innodb_buffer_pool_size". */
  const char *name;
  /** One sentence. */
  const char *doc;
  /** As text: "134217728", "ON", "full_crc32", "". */
  const char *default_value;
  /** XT_SETTING_SESSION ... */
  uint32_t flags;
  uint32_t values_count;
  /** XT_SETTING_ENUM: the values' names, in order of their numbers. */
  const char *const *values;
  /** XT_SETTING_INT and XT_SETTING_UINT (bit pattern): smallest, largest, multiple of (0: any). */
  uint64_t min;
  uint64_t max;
  uint64_t block;
  /** XT_SETTING_DOUBLE */
  double min_double;
  double max_double;
} xt_setting;

/** All settings, sorted by name; needs no engine.
 *  Owner: the library (static). Thread: any. Codes: common. */
typedef xt_status xt_settings_fn(const xt_setting **settings, uint32_t *count);

/** Copies the value as text, NUL-terminated. `session` NULL: the global value. `*needed` (may be
 *  NULL) gets the length with NUL, also with XT_BUFFER_SHORT.
 *  Thread: any (session given: owner). Codes: common, XT_UNKNOWN_SETTING, XT_BUFFER_SHORT. */
typedef xt_status xt_setting_get_fn(xt_engine *engine, xt_session *session, const char *name,
                                    char *buffer, uint32_t size, uint32_t *needed);

/** Sets a dynamic setting from text. Numbers outside the range are refused, never cut. `session`
 *  NULL: the global value; else the session's own.
 *  Thread: any (session given: owner). Codes: common, XT_UNKNOWN_SETTING, XT_SETTING_READ_ONLY,
 *  XT_SETTING_RANGE. The text is in session_error, else engine_error. */
typedef xt_status xt_setting_set_fn(xt_engine *engine, xt_session *session, const char *name,
                                    const char *value);

/** Checks a "name" / "value" pair without an engine, e.g. for command-line options; writes the
 *  reason, NUL-terminated, to `buffer` (may be NULL if `size` is 0).
 *  Thread: any. Codes: common, XT_UNKNOWN_SETTING, XT_SETTING_RANGE. */
typedef xt_status xt_setting_check_fn(const char *name, const char *value, char *buffer,
                                      uint32_t size);

#ifdef __cplusplus
}
#endif

#endif /* XTRADB_ENGINE_H */
