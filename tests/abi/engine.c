/* engine.h and info.h: the life of an engine, settings, what can be looked at. */
#include "common.h"

static void wrong_order(xt_engine_config *config) {
  xt_engine *second = NULL;
  EXPECT(XT_WRONG_ORDER, xt->engine_init(engine, config));
  EXPECT(XT_WRONG_ORDER, xt->engine_destroy(engine));
  CHECK(xt->engine_state(engine) == XT_STATE_RUNNING);
  OK(xt->engine_create(&host, &second));
  EXPECT(XT_DATADIR_IN_USE, xt->engine_init(second, config));
  OK(xt->engine_destroy(second));
}

static void bad_settings(void) {
  static const char *const unknown[] = {"innodb_nonsense=1"};
  static const char *const range[] = {"innodb_page_size=5000"};
  xt_engine_config config = test_config();
  xt_engine *e = NULL;
  char why[300];
  OK(xt->engine_create(&host, &e));
  config.settings = unknown;
  config.settings_count = 1;
  EXPECT(XT_UNKNOWN_SETTING, xt->engine_init(e, &config));
  xt->engine_error(e, why, sizeof why);
  CHECK(strstr(why, "innodb_nonsense") != NULL);
  config.settings = range;
  EXPECT(XT_SETTING_RANGE, xt->engine_init(e, &config));
  config.settings = NULL;
  EXPECT(XT_NULL_ARGUMENT, xt->engine_init(e, &config));
  config.struct_size = 8;
  EXPECT(XT_SHORT_STRUCT, xt->engine_init(e, &config));
  OK(xt->engine_destroy(e));
}

static void settings_of_a_running_engine(void) {
  xt_session *s = open_session(5);
  char text[64];
  uint32_t needed = 0;
  OK(xt->setting_get(engine, NULL, "innodb_buffer_pool_size", text, sizeof text, &needed));
  CHECK(strcmp(text, "16777216") == 0 && needed == 9);
  EXPECT(XT_BUFFER_SHORT,
         xt->setting_get(engine, NULL, "innodb_buffer_pool_size", text, 8, &needed));
  CHECK(needed == 9);
  OK(xt->setting_set(engine, NULL, "innodb_io_capacity", "1K"));
  OK(xt->setting_get(engine, NULL, "io-capacity", text, sizeof text, NULL));
  CHECK(strcmp(text, "1024") == 0);
  EXPECT(XT_SETTING_RANGE, xt->setting_set(engine, NULL, "innodb_io_capacity", "5"));
  EXPECT(XT_SETTING_READ_ONLY, xt->setting_set(engine, NULL, "innodb_page_size", "4096"));
  EXPECT(XT_UNKNOWN_SETTING, xt->setting_set(engine, NULL, "innodb_nonsense", "4096"));
  EXPECT(XT_NULL_ARGUMENT, xt->setting_set(engine, NULL, "innodb_io_capacity", NULL));
  /* A session has its own value of the few that have one. */
  OK(xt->setting_set(engine, s, "innodb_lock_wait_timeout", "77"));
  OK(xt->setting_get(engine, s, "innodb_lock_wait_timeout", text, sizeof text, NULL));
  CHECK(strcmp(text, "77") == 0);
  OK(xt->setting_get(engine, NULL, "innodb_lock_wait_timeout", text, sizeof text, NULL));
  CHECK(strcmp(text, "1") == 0);
  EXPECT(XT_SETTING_READ_ONLY, xt->setting_set(engine, s, "innodb_io_capacity", "300"));
  CHECK(strstr(xt->session_error(s), "innodb_io_capacity") != NULL);
  OK(xt->session_close(s));
}

struct rows {
  unsigned seen, stop_after;
  uint32_t width;
};

static uint32_t count_row(void *ctx, const xt_value *values, uint32_t count) {
  struct rows *rows = (struct rows *)ctx;
  uint32_t i;
  for (i = 0; i < count; i++) CHECK(values[i].kind >= XT_VALUE_INT);
  rows->width = count;
  return ++rows->seen == rows->stop_after;
}

static uint32_t collect_text(void *ctx, const char *text, uint32_t length) {
  char *buffer = (char *)ctx;
  size_t has = strlen(buffer);
  if (has + length < 60000) {
    memcpy(buffer + has, text, length);
    buffer[has + length] = 0;
  }
  return 0;
}

static void what_can_be_looked_at(void) {
  static char text[60000];
  struct rows rows = {0, 0, 0};
  OK(xt->info_fill(engine, NULL, "INNODB_CMP", count_row, &rows));
  CHECK(rows.seen == 5 && rows.width == 6);
  memset(&rows, 0, sizeof rows);
  OK(xt->info_fill(engine, session, "innodb_cmpmem_reset", count_row, &rows));
  CHECK(rows.seen == 5 && rows.width == 6);
  memset(&rows, 0, sizeof rows);
  rows.stop_after = 2;
  EXPECT(XT_CANCELLED, xt->info_fill(engine, session, "INNODB_CMP", count_row, &rows));
  CHECK(rows.seen == 2);
  OK(xt->info_fill(engine, NULL, "INNODB_TRX", count_row, &rows));
  OK(xt->info_fill(engine, NULL, "INNODB_LOCKS", count_row, &rows));
  OK(xt->info_fill(engine, NULL, "INNODB_LOCK_WAITS", count_row, &rows));
  EXPECT(XT_INVALID, xt->info_fill(engine, NULL, "INNODB_NONSENSE", count_row, &rows));
  EXPECT(XT_NULL_ARGUMENT, xt->info_fill(engine, NULL, "INNODB_TRX", NULL, NULL));
  EXPECT(XT_NULL_ARGUMENT, xt->info_fill(engine, NULL, NULL, count_row, &rows));

  memset(&rows, 0, sizeof rows);
  OK(xt->status_read(engine, count_row, &rows));
  CHECK(rows.seen >= 110 && rows.width == 2);
  memset(&rows, 0, sizeof rows);
  rows.stop_after = 3;
  EXPECT(XT_CANCELLED, xt->status_read(engine, count_row, &rows));
  EXPECT(XT_NULL_ARGUMENT, xt->status_read(engine, NULL, NULL));

  OK(xt->monitor_text(engine, XT_MONITOR_STATUS, collect_text, text));
  CHECK(strstr(text, "INNODB MONITOR OUTPUT") != NULL);
  CHECK(strstr(text, "Log sequence number") != NULL);
  OK(xt->monitor_text(engine, XT_MONITOR_MUTEX, collect_text, text));
  EXPECT(XT_INVALID, xt->monitor_text(engine, 99, collect_text, text));
  EXPECT(XT_NULL_ARGUMENT, xt->monitor_text(engine, XT_MONITOR_STATUS, NULL, NULL));
}

static void limits_and_log(void) {
  xt_limits limits = {sizeof limits, 0, 0, 0, 0, 0, 0, 0};
  OK(xt->engine_limits(engine, &limits));
  CHECK(limits.page_size == 16384 && limits.key_length_max == 3072 && limits.columns_max == 1017);
  EXPECT(XT_NULL_ARGUMENT, xt->engine_limits(engine, NULL));
  limits.struct_size = 4;
  EXPECT(XT_SHORT_STRUCT, xt->engine_limits(engine, &limits));
  OK(xt->engine_flush_log(engine, 0));
  OK(xt->engine_flush_log(engine, 1));
}

static void closing_waits_for_those_who_use_it(void) {
  xt_engine_config config = test_config();
  xt_session_config who = {sizeof who, XT_ISOLATION_REPEATABLE_READ, 4711, NULL};
  xt_session *s = NULL;
  xt_table *table;
  char why[300];
  s = open_session(4711);
  EXPECT(XT_BUSY, xt->engine_deinit(engine, 50));
  xt->engine_error(engine, why, sizeof why);
  CHECK(strstr(why, "4711") != NULL);
  CHECK(xt->engine_state(engine) == XT_STATE_RUNNING);
  OK(xt->session_close(s));
  /* An open table, although no session is. */
  OK(xt->table_create(session, "test/held", &def, NULL));
  table = open_table("test/held");
  OK(xt->session_close(session));
  session = NULL;
  EXPECT(XT_BUSY, xt->engine_deinit(engine, 0));
  xt->engine_error(engine, why, sizeof why);
  CHECK(strstr(why, "table") != NULL);
  OK(xt->table_close(table));
  OK(xt->engine_pre_shutdown(engine));
  OK(xt->engine_deinit(engine, 10000));
  CHECK(xt->engine_state(engine) == XT_STATE_CREATED);
  EXPECT(XT_NOT_RUNNING, xt->engine_deinit(engine, 0));
  EXPECT(XT_NOT_RUNNING, xt->session_open(engine, &who, &s));
  /* And again. */
  OK(xt->engine_init(engine, &config));
  OK(xt->engine_recovery_done(engine));
  session = open_session(1);
  table = open_table("test/held");
  CHECK(count_rows(table) == 0);
  OK(xt->table_close(table));
}

int main(int argc, char **argv) {
  xt_engine_config config;
  start(argc, argv);
  config = test_config();
  wrong_order(&config);
  bad_settings();
  settings_of_a_running_engine();
  what_can_be_looked_at();
  limits_and_log();
  closing_waits_for_those_who_use_it();
  stop();
  return 0;
}
