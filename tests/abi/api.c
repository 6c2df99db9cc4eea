/* Everything that needs no running engine: versions, plugins, settings, and bad arguments. */
#include "common.h"

static void versions(xtradb_api_fn *get) {
  CHECK(get(XT_ABI_MAJOR) == xt);
  CHECK(get(0) == NULL);
  CHECK(get(XT_ABI_MAJOR + 1) == NULL);
  CHECK(get(0xFFFFFFFFu) == NULL);
  CHECK(xt->struct_size == sizeof(xt_api));
  CHECK(xt->abi_version == XT_ABI_VERSION);
  CHECK(XT_API_HAS(xt, monitor_text));
}

static void every_slot_is_filled(void) {
  const char *slots = (const char *)xt + 8;
  size_t i, count = (xt->struct_size - 8) / sizeof(void *);
  for (i = 0; i < count; i++) {
    void *slot;
    memcpy(&slot, slots + i * sizeof slot, sizeof slot);
    CHECK(slot != NULL);
  }
}

static void plugins(void) {
  static const char *const names[] = {"InnoDB", "INNODB_TRX", "INNODB_LOCKS", "INNODB_LOCK_WAITS",
                                      "INNODB_CMP", "INNODB_CMP_RESET", "INNODB_CMPMEM",
                                      "INNODB_CMPMEM_RESET", "XTRADB_MEMORY",
                                      "XTRADB_RECOVERY"};
  const xt_plugin *plugins, *plugin;
  uint32_t count, i, c;
  OK(xt->plugins(&plugins, &count));
  CHECK(count == 10);
  for (i = 0; i < count; i++) {
    plugin = (const xt_plugin *)((const char *)plugins + (size_t)i * plugins->struct_size);
    CHECK(strcmp(plugin->name, names[i]) == 0);
    CHECK(plugin->description[0] && plugin->author[0] && plugin->version[0]);
    CHECK(strcmp(plugin->licence, "GPL") == 0);
    CHECK(plugin->version_number > 0);
    CHECK((plugin->kind == XT_PLUGIN_STORAGE_ENGINE) == (i == 0));
    CHECK((plugin->info_table == NULL) == (i == 0));
    if (i == 0) continue;
    CHECK(plugin->kind == XT_PLUGIN_INFORMATION_SCHEMA);
    CHECK(strcmp(plugin->info_table->name, names[i]) == 0);
    for (c = 0; c < plugin->info_table->columns_count; c++) {
      const xt_info_column *column = &plugin->info_table->columns[c];
      CHECK(column->name[0]);
      CHECK(column->kind >= XT_VALUE_INT && column->kind <= XT_VALUE_DATETIME);
      CHECK((column->kind == XT_VALUE_ENUM) == (column->values_count > 0));
    }
  }
  EXPECT(XT_NULL_ARGUMENT, xt->plugins(NULL, &count));
  EXPECT(XT_NULL_ARGUMENT, xt->plugins(&plugins, NULL));
}

static void settings(void) {
  const xt_setting *settings, *last = NULL;
  uint32_t count, i;
  char why[200];
  OK(xt->settings(&settings, &count));
  CHECK(count >= 142);
  for (i = 0; i < count; i++) {
    const xt_setting *s =
        (const xt_setting *)((const char *)settings + (size_t)i * settings->struct_size);
    CHECK(strncmp(s->name, "innodb_", 7) == 0);
    CHECK(last == NULL || strcmp(last->name, s->name) < 0);
    CHECK(s->doc[0]);
    CHECK(s->type >= XT_SETTING_BOOL && s->type <= XT_SETTING_STRING);
    CHECK((s->type == XT_SETTING_ENUM) == (s->values_count > 0));
    /* Every default is a value of its setting. */
    OK(xt->setting_check(s->name, s->default_value, why, sizeof why));
    last = s;
  }
  OK(xt->setting_check("innodb_buffer_pool_size", "1G", why, sizeof why));
  OK(xt->setting_check("BUFFER-POOL-SIZE", "1G", NULL, 0));
  EXPECT(XT_SETTING_RANGE, xt->setting_check("innodb_page_size", "5000", why, sizeof why));
  CHECK(strstr(why, "innodb_page_size") != NULL);
  EXPECT(XT_SETTING_RANGE, xt->setting_check("innodb_doublewrite", "maybe", why, 10));
  CHECK(strlen(why) == 9);
  EXPECT(XT_UNKNOWN_SETTING, xt->setting_check("innodb_nonsense", "1", why, sizeof why));
  CHECK(strstr(why, "innodb_nonsense") != NULL);
  EXPECT(XT_NULL_ARGUMENT, xt->setting_check(NULL, "1", why, sizeof why));
  EXPECT(XT_NULL_ARGUMENT, xt->setting_check("innodb_page_size", NULL, why, sizeof why));
}

static void a_host_that_is_not_sound_is_refused(void) {
  xt_host bad = host;
  xt_engine *made = NULL;
  char why[200];
  EXPECT(XT_NULL_ARGUMENT, xt->engine_create(NULL, &made));
  EXPECT(XT_NULL_ARGUMENT, xt->engine_create(&host, NULL));
  bad.struct_size = 40;
  EXPECT(XT_SHORT_STRUCT, xt->engine_create(&bad, &made));
  CHECK(xt->engine_error(NULL, why, sizeof why) == strlen(why));
  CHECK(strstr(why, "xt_host") != NULL);
  bad = host;
  bad.abi_version = 9u << 16;
  EXPECT(XT_INVALID, xt->engine_create(&bad, &made));
  bad = host;
  bad.collation = NULL;
  EXPECT(XT_NULL_ARGUMENT, xt->engine_create(&bad, &made));
  CHECK(made == NULL);
}

static uint32_t no_row(void *ctx, const xt_value *values, uint32_t count) {
  (void)ctx;
  (void)values;
  (void)count;
  return 0;
}

static uint32_t no_text(void *ctx, const char *text, uint32_t length) {
  (void)ctx;
  (void)text;
  (void)length;
  return 0;
}

/* Every function that takes an engine, with a handle that is none. */
static void engine_calls(xt_engine *e, xt_status code) {
  xt_engine_config config = test_config();
  xt_limits limits = {sizeof limits, 0, 0, 0, 0, 0, 0, 0};
  xt_session_config who = {sizeof who, 2, 1, NULL};
  xt_session *s = NULL;
  xt_xid xid;
  char text[100];
  uint32_t count;
  memset(&xid, 0, sizeof xid);
  xid.gtrid_length = 1;
  EXPECT(code, xt->engine_init(e, &config));
  EXPECT(code, xt->engine_recovery_done(e));
  EXPECT(code, xt->engine_pre_shutdown(e));
  EXPECT(code, xt->engine_deinit(e, 0));
  EXPECT(code, xt->engine_limits(e, &limits));
  EXPECT(code, xt->engine_flush_log(e, 1));
  EXPECT(code, xt->setting_get(e, NULL, "innodb_page_size", text, sizeof text, NULL));
  EXPECT(code, xt->setting_set(e, NULL, "innodb_io_capacity", "200"));
  EXPECT(code, xt->session_open(e, &who, &s));
  EXPECT(code, xt->prepared_commit(e, &xid));
  EXPECT(code, xt->prepared_rollback(e, &xid));
  EXPECT(code, xt->prepared_list(e, 0, NULL, 0, &count));
  EXPECT(code, xt->info_fill(e, NULL, "INNODB_TRX", no_row, NULL));
  EXPECT(code, xt->status_read(e, no_row, NULL));
  EXPECT(code, xt->monitor_text(e, XT_MONITOR_STATUS, no_text, NULL));
  CHECK(s == NULL);
}

static void session_calls(xt_session *s, xt_status code) {
  xt_session_info info = {sizeof info, 0, 0};
  xt_table *t = NULL;
  xt_table_info table_info = {sizeof table_info, 0, 0, 0, 0, 0, 0, 0};
  const xt_description *description = NULL;
  xt_xid xid;
  memset(&xid, 0, sizeof xid);
  xid.gtrid_length = 1;
  CHECK(xt->session_error(s)[0] != 0);
  CHECK(xt->session_error_key(s) == XT_NO_KEY);
  EXPECT(code, xt->session_interrupt(s));
  EXPECT(code, xt->session_set_isolation(s, 1));
  EXPECT(code, xt->session_state(s, &info));
  EXPECT(code, xt->statement_begin(s, 0));
  EXPECT(code, xt->statement_end(s));
  EXPECT(code, xt->statement_rollback(s));
  EXPECT(code, xt->trx_begin(s, 0));
  EXPECT(code, xt->trx_commit(s));
  EXPECT(code, xt->trx_commit_ordered(s, NULL, 0));
  EXPECT(code, xt->trx_rollback(s));
  EXPECT(code, xt->savepoint_set(s, "a", 1));
  EXPECT(code, xt->savepoint_rollback(s, "a", 1));
  EXPECT(code, xt->savepoint_release(s, "a", 1));
  EXPECT(code, xt->trx_prepare(s, &xid));
  EXPECT(code, xt->table_open(s, "test/t", &def, 0, &t));
  EXPECT(code, xt->table_create(s, "test/t", &def, NULL));
  EXPECT(code, xt->table_drop(s, "test/t"));
  EXPECT(code, xt->table_rename(s, "test/t", "test/u"));
  EXPECT(code, xt->table_truncate(s, "test/t"));
  EXPECT(code, xt->database_drop(s, "test"));
  EXPECT(code, xt->table_find(s, "test/t", &table_info));
  EXPECT(code, xt->tables_list(s, NULL, no_row, NULL));
  EXPECT(code, xt->table_describe(s, "test/t", &description));
  CHECK(t == NULL && description == NULL);
}

static void table_calls(xt_table *t, xt_status code) {
  uint8_t row[ROW_BYTES] = {0}, ref[8] = {0};
  xt_table_info info = {sizeof info, 0, 0, 0, 0, 0, 0, 0};
  xt_table_stats stats;
  xt_batch batch = {sizeof batch, XT_NEXT, row, NULL, ROW_BYTES, 0, 1, 0};
  double rec_per_key;
  uint64_t first, count;
  int32_t order;
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  EXPECT(code, xt->table_info(t, &info));
  EXPECT(code, xt->table_release(t));
  EXPECT(code, xt->table_columns(t, NULL, NULL, 0));
  EXPECT(code, xt->table_extra(t, XT_EXTRA_KEYREAD));
  EXPECT(code, xt->scan_begin(t, 1));
  EXPECT(code, xt->scan_next(t, row));
  EXPECT(code, xt->scan_end(t));
  EXPECT(code, xt->table_position(t, row, ref, sizeof ref));
  EXPECT(code, xt->read_position(t, row, ref, 4));
  EXPECT(code, xt->compare_positions(t, ref, ref, &order));
  EXPECT(code, xt->read_n(t, &batch));
  EXPECT(code, xt->unlock_row(t));
  CHECK(xt->was_semi_consistent(t) == 0);
  EXPECT(code, xt->insert_row(t, row));
  EXPECT(code, xt->update_row(t, row, row));
  EXPECT(code, xt->delete_row(t, row));
  EXPECT(code, xt->bulk_begin(t, 0));
  EXPECT(code, xt->bulk_end(t));
  EXPECT(code, xt->bulk_refused(t, row));
  EXPECT(code, xt->autoinc_reserve(t, 1, 1, 1, &first, &count));
  EXPECT(code, xt->autoinc_set(t, 1));
  EXPECT(code, xt->table_stats(t, &stats));
  EXPECT(code, xt->table_rec_per_key(t, 0, &rec_per_key, 1));
  EXPECT(code, xt->index_begin(t, 0, 1));
  EXPECT(code, xt->index_end(t));
  EXPECT(code, xt->index_read(t, row, ref, 4, XT_FIND_EXACT));
  EXPECT(code, xt->index_next(t, row));
  EXPECT(code, xt->index_prev(t, row));
  EXPECT(code, xt->index_first(t, row));
  EXPECT(code, xt->index_last(t, row));
  EXPECT(code, xt->index_next_same(t, row, ref, 4));
  EXPECT(code, xt->records_in_range(t, 0, NULL, NULL, &count));
  EXPECT(code, xt->table_check(t, 0, no_row, NULL));
  EXPECT(code, xt->table_analyze(t));
  EXPECT(code, xt->table_optimize(t));
}

static void handles_that_are_none(void) {
  static const uintptr_t garbage[] = {1, 0x1000, 0x1000000000000001u, 0x2000000000000001u,
                                      0x3000000000000001u, UINTPTR_MAX};
  size_t i;
  engine_calls(NULL, XT_NULL_ARGUMENT);
  session_calls(NULL, XT_NULL_ARGUMENT);
  table_calls(NULL, XT_NULL_ARGUMENT);
  for (i = 0; i < sizeof garbage / sizeof *garbage; i++) {
    engine_calls((xt_engine *)garbage[i], XT_BAD_HANDLE);
    session_calls((xt_session *)garbage[i], XT_BAD_HANDLE);
    table_calls((xt_table *)garbage[i], XT_BAD_HANDLE);
    EXPECT(XT_BAD_HANDLE, xt->engine_destroy((xt_engine *)garbage[i]));
    EXPECT(XT_BAD_HANDLE, xt->session_close((xt_session *)garbage[i]));
    EXPECT(XT_BAD_HANDLE, xt->table_close((xt_table *)garbage[i]));
    EXPECT(XT_BAD_HANDLE, xt->description_free((const xt_description *)garbage[i]));
    CHECK(xt->engine_state((xt_engine *)garbage[i]) == 0);
  }
  OK(xt->engine_destroy(NULL));
  OK(xt->session_close(NULL));
  OK(xt->table_close(NULL));
  OK(xt->description_free(NULL));
  CHECK(xt->engine_state(NULL) == 0);
}

static void an_engine_that_does_not_run(void) {
  xt_engine *e = NULL;
  xt_engine_config config = test_config();
  char why[300];
  OK(xt->engine_create(&host, &e));
  CHECK(xt->engine_state(e) == XT_STATE_CREATED);
  /* All but init. */
  EXPECT(XT_NULL_ARGUMENT, xt->engine_init(e, NULL));
  config.datadir = NULL;
  EXPECT(XT_NULL_ARGUMENT, xt->engine_init(e, &config));
  config.datadir = "/no/such/directory";
  EXPECT(XT_IO, xt->engine_init(e, &config));
  xt->engine_error(e, why, sizeof why);
  CHECK(strstr(why, "/no/such/directory") != NULL);
  EXPECT(XT_NOT_RUNNING, xt->engine_recovery_done(e));
  EXPECT(XT_NOT_RUNNING, xt->engine_deinit(e, 0));
  EXPECT(XT_NOT_RUNNING, xt->status_read(e, no_row, NULL));
  CHECK(xt->engine_state(e) == XT_STATE_CREATED);
  OK(xt->engine_destroy(e));
  engine_calls(e, XT_BAD_HANDLE);
  EXPECT(XT_BAD_HANDLE, xt->engine_destroy(e));
}

int main(int argc, char **argv) {
  void *self;
  xtradb_api_fn *get;
  load(argc, argv);
  self = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
  *(void **)&get = dlsym(self, "xtradb_api");
  versions(get);
  every_slot_is_filled();
  plugins();
  settings();
  a_host_that_is_not_sound_is_refused();
  handles_that_are_none();
  an_engine_that_does_not_run();
  dlclose(self);
  return 0;
}
