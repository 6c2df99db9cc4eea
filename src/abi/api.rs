//! api.h: the table of functions and the one exported symbol.

use super::{c, catalog, ddl, engine, index, info, scan, session, settings, table, write};

/// The table, in the header's order.
static API: c::xt_api = c::xt_api {
    struct_size: size_of::<c::xt_api>() as u32,
    abi_version: c::XT_ABI_VERSION,

    plugins: Some(catalog::plugins),
    engine_create: Some(engine::create),
    engine_init: Some(engine::init),
    engine_recovery_done: Some(engine::recovery_done),
    engine_pre_shutdown: Some(engine::pre_shutdown),
    engine_deinit: Some(engine::deinit),
    engine_destroy: Some(engine::destroy),
    engine_state: Some(engine::state),
    engine_error: Some(engine::error),
    engine_limits: Some(engine::limits),
    engine_flush_log: Some(engine::flush_log),
    settings: Some(catalog::settings),
    setting_get: Some(settings::get),
    setting_set: Some(settings::set),
    setting_check: Some(settings::check),

    session_open: Some(session::open),
    session_close: Some(session::close),
    session_error: Some(session::error),
    session_error_key: Some(session::error_key),
    session_interrupt: Some(session::interrupt),
    session_set_isolation: Some(session::set_isolation),
    session_state: Some(session::state),
    statement_begin: Some(session::statement_begin),
    statement_end: Some(session::statement_end),
    statement_rollback: Some(session::statement_rollback),
    trx_begin: Some(session::trx_begin),
    trx_commit: Some(session::trx_commit),
    trx_commit_ordered: Some(session::trx_commit_ordered),
    trx_rollback: Some(session::trx_rollback),
    savepoint_set: Some(session::savepoint_set),
    savepoint_rollback: Some(session::savepoint_rollback),
    savepoint_release: Some(session::savepoint_release),
    trx_prepare: Some(session::trx_prepare),
    prepared_commit: Some(session::prepared_commit),
    prepared_rollback: Some(session::prepared_rollback),
    prepared_list: Some(session::prepared_list),

    table_open: Some(table::open),
    table_close: Some(table::close),
    table_info: Some(table::info),
    table_use: Some(table::use_by),
    table_release: Some(table::release),
    table_columns: Some(table::columns),
    table_extra: Some(table::extra),
    scan_begin: Some(scan::scan_begin),
    scan_next: Some(scan::scan_next),
    scan_end: Some(scan::cursor_end),
    table_position: Some(scan::position),
    read_position: Some(scan::read_position),
    compare_positions: Some(scan::compare_positions),
    read_n: Some(scan::read_n),
    unlock_row: Some(scan::unlock_row),
    was_semi_consistent: Some(scan::was_semi_consistent),
    insert_row: Some(write::insert_row),
    update_row: Some(write::update_row),
    delete_row: Some(write::delete_row),
    bulk_begin: Some(write::bulk_begin),
    bulk_end: Some(write::bulk_end),
    autoinc_reserve: Some(write::autoinc_reserve),
    autoinc_set: Some(write::autoinc_set),
    table_stats: Some(table::stats),
    table_rec_per_key: Some(table::rec_per_key),

    index_begin: Some(index::begin),
    index_end: Some(scan::cursor_end),
    index_read: Some(index::read),
    index_next: Some(index::next),
    index_prev: Some(index::prev),
    index_first: Some(index::first),
    index_last: Some(index::last),
    index_next_same: Some(index::next_same),
    records_in_range: Some(index::records_in_range),

    table_create: Some(ddl::create),
    table_drop: Some(ddl::drop),
    table_rename: Some(ddl::rename),
    table_truncate: Some(ddl::truncate),
    database_drop: Some(ddl::database_drop),
    table_find: Some(ddl::find),
    tables_list: Some(ddl::list),
    table_describe: Some(ddl::describe),
    description_free: Some(ddl::description_free),
    table_check: Some(ddl::check),
    table_analyze: Some(ddl::analyze),
    table_optimize: Some(ddl::optimize),

    info_fill: Some(info::fill),
    status_read: Some(info::status),
    monitor_text: Some(info::monitor),

    bulk_refused: Some(write::bulk_refused),
    index_add: Some(ddl::index_add),
    index_drop: Some(ddl::index_drop),
};

/// The table of functions, or NULL if the library does not speak the major version.
///
/// The one symbol that the library exports; include/xtradb/api.h describes it.
// SAFETY: no other item of the library or its dependencies has this name.
#[unsafe(no_mangle)]
pub extern "C" fn xtradb_api(wanted_major: u32) -> *const c::xt_api {
    if wanted_major == c::XT_ABI_MAJOR {
        &raw const API
    } else {
        std::ptr::null()
    }
}
