/* A host that lacks the collation of a key: the table is read in clustered order, and nothing else. */
#include <unistd.h>

#include "common.h"

static unsigned asked;

static const xt_collation *knows_nothing(void *ctx, uint32_t id) {
  (void)ctx;
  (void)id;
  asked++;
  return NULL;
}

static void make_table(const char *name) {
  OK(xt->table_create(session, name, &def, NULL));
}

static void insert(xt_table *table, uint32_t id, const char *name) {
  uint8_t row[ROW_BYTES];
  use(table, XT_LOCK_X, XT_USE_WRITE);
  make_row(row, id, name, NULL, 0);
  OK(xt->insert_row(table, row));
  end(table);
}

static void delete_first(xt_table *table) {
  uint8_t row[ROW_BYTES];
  use(table, XT_LOCK_X, XT_USE_WRITE);
  OK(xt->scan_begin(table, 1));
  OK(xt->scan_next(table, row));
  OK(xt->delete_row(table, row));
  OK(xt->scan_end(table));
  end(table);
}

static uint32_t find_history(void *ctx, const xt_value *values, uint32_t count) {
  static const char name[] = "Innodb_history_list_length";
  (void)count;
  if (values[0].length != sizeof name - 1 || memcmp(values[0].v.s, name, sizeof name - 1) != 0) return 0;
  *(uint64_t *)ctx = values[1].v.u;
  return 1;
}

/* Transactions that purge has still to deal with. */
static uint64_t history(void) {
  uint64_t length = UINT64_MAX;
  EXPECT(XT_CANCELLED, xt->status_read(engine, find_history, &length));
  return length;
}

static void history_goes(void) {
  int tries;
  for (tries = 0; history() > 0; tries++) {
    CHECK(tries < 600);
    usleep(100000);
  }
}

/* Without purge: what it would do waits for the next start. */
static void start_without_purge(int argc, char **argv) {
  static const char *const settings[] = {"innodb_buffer_pool_size=16M", "innodb-log-file-size=8M",
                                         "innodb_force_recovery=2"};
  xt_engine_config config;
  char path[4096];
  load(argc, argv);
  config = test_config();
  config.settings = settings;
  OK(xt->engine_create(&host, &engine));
  OK(xt->engine_init(engine, &config));
  OK(xt->engine_recovery_done(engine));
  snprintf(path, sizeof path, "%s/test", datadir);
  mkdir(path, 0755);
  session = open_session(1);
}

/* The same directory, opened by a host that knows no collation. */
static void start_again(void) {
  xt_engine_config config = test_config();
  host.collation = knows_nothing;
  OK(xt->engine_create(&host, &engine));
  OK(xt->engine_init(engine, &config));
  OK(xt->engine_recovery_done(engine));
  session = open_session(1);
}

static void text_is_the_primary_key(void) {
  static const xt_key by_name[] = {{"PRIMARY", name_part, 1, XT_KEY_PRIMARY | XT_KEY_UNIQUE}};
  xt_column own[3];
  xt_table_def text = def;
  xt_table *opened = NULL;
  memcpy(own, columns, sizeof own);
  own[0].flags &= ~(uint32_t)XT_COLUMN_AUTO_INCREMENT;
  own[1].flags |= XT_COLUMN_NOT_NULL;
  own[1].null_mask = 0;
  text.columns = own;
  text.keys = by_name;
  text.keys_count = 1;
  if (host.collation != knows_nothing) {
    OK(xt->table_create(session, "test/text", &text, NULL));
    return;
  }
  EXPECT(XT_COLLATION_UNKNOWN, xt->table_open(session, "test/text", &text, 0, &opened));
  CHECK(strstr(xt->session_error(session), "47") && strstr(xt->session_error(session), "test/text"));
}

int main(int argc, char **argv) {
  xt_table_info info;
  xt_table_use how = {sizeof(xt_table_use), XT_LOCK_X, XT_WAIT_DEFAULT, 0, XT_USE_WRITE, 0};
  xt_table *table;
  uint8_t row[ROW_BYTES];
  unsigned before;

  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  start_without_purge(argc, argv);
  make_table("test/t");
  table = open_table("test/t");
  OK(xt->table_info(table, &info));
  CHECK(!(info.flags & XT_TABLE_NO_COLLATION));
  insert(table, 2, "b\xE4");
  insert(table, 1, "B\xE4");
  insert(table, 3, NULL);
  insert(table, 0, "gone");
  delete_first(table);
  OK(xt->table_close(table));
  text_is_the_primary_key();
  stop();

  start_again();
  table = open_table("test/t");
  before = asked;
  CHECK(before > 0);
  OK(xt->table_info(table, &info));
  CHECK(info.flags & XT_TABLE_NO_COLLATION);
  CHECK(count_rows(table) == 3);
  use(table, XT_LOCK_NONE, 0);
  OK(xt->index_begin(table, 0, 1));
  OK(xt->index_first(table, row));
  CHECK(row_id(row) == 1 && row_has_name(row, "B\xE4"));
  OK(xt->index_end(table));
  EXPECT(XT_COLLATION_UNKNOWN, xt->index_begin(table, 1, 1));
  CHECK(strstr(xt->session_error(session), "47") && strstr(xt->session_error(session), "test/t"));
  end(table);
  OK(xt->statement_begin(session, 0));
  EXPECT(XT_COLLATION_UNKNOWN, xt->table_use(table, session, &how));
  OK(xt->statement_end(session));
  EXPECT(XT_COLLATION_UNKNOWN, xt->table_create(session, "test/u", &def, NULL));
  text_is_the_primary_key();
  CHECK(count_rows(table) == 3);
  OK(xt->table_close(table));
  CHECK(asked == before);
  /* The deleted row has an entry in a key where no place can be found: its history stays. */
  sleep(1);
  CHECK(history() > 0);
  OK(xt->table_drop(session, "test/t"));
  history_goes();
  stop();
  return 0;
}
