/* xtradb/api.h - the table of functions.
 *
 * The table grows at its end only; no slot is ever moved, retyped or used anew. An older table is a
 * prefix of a newer one. Each function is described where its type is declared: xt_NAME_fn in
 * engine.h, session.h, table.h, index.h, ddl.h, info.h.
 */
#ifndef XTRADB_API_H
#define XTRADB_API_H

#include "ddl.h"
#include "engine.h"
#include "host.h"
#include "index.h"
#include "info.h"
#include "session.h"
#include "status.h"
#include "table.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XT_ABI_MAJOR 1u
#define XT_ABI_MINOR 1u
#define XT_ABI_VERSION (XT_ABI_MAJOR << 16 | XT_ABI_MINOR)

typedef struct xt_api {
  /** Bytes that the library filled in. */
  uint32_t struct_size;
  /** major << 16 | minor */
  uint32_t abi_version;

  /* ---- 1.0 ---- */

  /* engine.h */
  xt_plugins_fn *plugins;
  xt_engine_create_fn *engine_create;
  xt_engine_init_fn *engine_init;
  xt_engine_recovery_done_fn *engine_recovery_done;
  xt_engine_pre_shutdown_fn *engine_pre_shutdown;
  xt_engine_deinit_fn *engine_deinit;
  xt_engine_destroy_fn *engine_destroy;
  xt_engine_state_fn *engine_state;
  xt_engine_error_fn *engine_error;
  xt_engine_limits_fn *engine_limits;
  xt_engine_flush_log_fn *engine_flush_log;
  xt_settings_fn *settings;
  xt_setting_get_fn *setting_get;
  xt_setting_set_fn *setting_set;
  xt_setting_check_fn *setting_check;

  /* session.h */
  xt_session_open_fn *session_open;
  xt_session_close_fn *session_close;
  xt_session_error_fn *session_error;
  xt_session_error_key_fn *session_error_key;
  xt_session_interrupt_fn *session_interrupt;
  xt_session_set_isolation_fn *session_set_isolation;
  xt_session_state_fn *session_state;
  xt_statement_begin_fn *statement_begin;
  xt_statement_end_fn *statement_end;
  xt_statement_rollback_fn *statement_rollback;
  xt_trx_begin_fn *trx_begin;
  xt_trx_commit_fn *trx_commit;
  xt_trx_commit_ordered_fn *trx_commit_ordered;
  xt_trx_rollback_fn *trx_rollback;
  xt_savepoint_set_fn *savepoint_set;
  xt_savepoint_rollback_fn *savepoint_rollback;
  xt_savepoint_release_fn *savepoint_release;
  xt_trx_prepare_fn *trx_prepare;
  xt_prepared_commit_fn *prepared_commit;
  xt_prepared_rollback_fn *prepared_rollback;
  xt_prepared_list_fn *prepared_list;

  /* table.h */
  xt_table_open_fn *table_open;
  xt_table_close_fn *table_close;
  xt_table_info_get_fn *table_info;
  xt_table_use_fn *table_use;
  xt_table_release_fn *table_release;
  xt_table_columns_fn *table_columns;
  xt_table_extra_fn *table_extra;
  xt_scan_begin_fn *scan_begin;
  xt_scan_next_fn *scan_next;
  xt_scan_end_fn *scan_end;
  xt_table_position_fn *table_position;
  xt_read_position_fn *read_position;
  xt_compare_positions_fn *compare_positions;
  xt_read_n_fn *read_n;
  xt_unlock_row_fn *unlock_row;
  xt_was_semi_consistent_fn *was_semi_consistent;
  xt_insert_row_fn *insert_row;
  xt_update_row_fn *update_row;
  xt_delete_row_fn *delete_row;
  xt_bulk_begin_fn *bulk_begin;
  xt_bulk_end_fn *bulk_end;
  xt_autoinc_reserve_fn *autoinc_reserve;
  xt_autoinc_set_fn *autoinc_set;
  xt_table_stats_get_fn *table_stats;
  xt_table_rec_per_key_fn *table_rec_per_key;

  /* index.h */
  xt_index_begin_fn *index_begin;
  xt_index_end_fn *index_end;
  xt_index_read_fn *index_read;
  xt_index_next_fn *index_next;
  xt_index_prev_fn *index_prev;
  xt_index_first_fn *index_first;
  xt_index_last_fn *index_last;
  xt_index_next_same_fn *index_next_same;
  xt_records_in_range_fn *records_in_range;

  /* ddl.h */
  xt_table_create_fn *table_create;
  xt_table_drop_fn *table_drop;
  xt_table_rename_fn *table_rename;
  xt_table_truncate_fn *table_truncate;
  xt_database_drop_fn *database_drop;
  xt_table_find_fn *table_find;
  xt_tables_list_fn *tables_list;
  xt_table_describe_fn *table_describe;
  xt_description_free_fn *description_free;
  xt_table_check_fn *table_check;
  xt_table_analyze_fn *table_analyze;
  xt_table_optimize_fn *table_optimize;

  /* info.h */
  xt_info_fill_fn *info_fill;
  xt_status_read_fn *status_read;
  xt_monitor_text_fn *monitor_text;

  /* ---- 1.1 ---- */

  xt_bulk_refused_fn *bulk_refused;
  xt_index_add_fn *index_add;
  xt_index_drop_fn *index_drop;

  /* ---- 1.2: append here only ---- */
} xt_api;

/** True if the table that was returned has the member: needed for members younger than 1.0. */
#define XT_API_HAS(api, member) \
  ((api)->struct_size >= offsetof(xt_api, member) + sizeof((api)->member))

/** Type of the exported symbol "xtradb_api". */
typedef const xt_api *xtradb_api_fn(uint32_t wanted_major);

/** The one exported symbol: the table of functions, or NULL if the library does not speak the major
 *  version. Static; valid while the library is loaded. Thread: any. */
const xt_api *xtradb_api(uint32_t wanted_major);

#ifdef __cplusplus
}
#endif

#endif /* XTRADB_API_H */
