/* ddl.h: tables by name, the dictionary's view of them, CHECK TABLE. */
#include "common.h"

static char found[2000];

static uint32_t collect(void *ctx, const xt_value *values, uint32_t count) {
  (void)ctx;
  CHECK(count == 2 && values[0].kind == XT_VALUE_STRING && values[1].kind == XT_VALUE_STRING);
  snprintf(found + strlen(found), sizeof found - strlen(found), "%.*s/%.*s;",
           (int)values[0].length, values[0].v.s, (int)values[1].length, values[1].v.s);
  return 0;
}

static uint32_t refuse(void *ctx, const xt_value *values, uint32_t count) {
  (void)ctx;
  (void)values;
  (void)count;
  return 1;
}

static void create(void) {
  xt_create_options options;
  xt_table_def bad = def;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.row_format = XT_ROW_FORMAT_COMPACT;
  options.auto_increment = 50;
  OK(xt->table_create(session, "test/a", &def, NULL));
  OK(xt->table_create(session, "test/b", &def, &options));
  EXPECT(XT_TABLE_EXISTS, xt->table_create(session, "test/a", &def, NULL));
  CHECK(strstr(xt->session_error(session), "test/a") != NULL);
  options.row_format = 9;
  EXPECT(XT_INVALID, xt->table_create(session, "test/c", &def, &options));
  options.row_format = XT_ROW_FORMAT_COMPRESSED;
  options.key_block_size = 8;
  EXPECT(XT_UNSUPPORTED, xt->table_create(session, "test/c", &def, &options));
  options.struct_size = 16;
  EXPECT(XT_SHORT_STRUCT, xt->table_create(session, "test/c", &def, &options));
  EXPECT(XT_NULL_ARGUMENT, xt->table_create(session, NULL, &def, NULL));
  EXPECT(XT_NULL_ARGUMENT, xt->table_create(session, "test/c", NULL, NULL));
  EXPECT(XT_INVALID, xt->table_create(session, "c", &def, NULL));
  bad.columns_count = 0;
  CHECK(xt->table_create(session, "test/c", &bad, NULL) != XT_OK);
}

static void look(void) {
  xt_table_info info = {sizeof info, 0, 0, 0, 0, 0, 0, 0};
  const xt_description *description = NULL;
  xt_table *table = NULL;
  OK(xt->table_find(session, "test/b", &info));
  CHECK(info.row_format == XT_ROW_FORMAT_COMPACT && info.table_id > 0);
  EXPECT(XT_NO_SUCH_TABLE, xt->table_find(session, "test/nonsense", &info));
  EXPECT(XT_NULL_ARGUMENT, xt->table_find(session, "test/b", NULL));
  OK(xt->tables_list(session, "test", collect, NULL));
  CHECK(strcmp(found, "test/a;test/b;") == 0);
  EXPECT(XT_CANCELLED, xt->tables_list(session, NULL, refuse, NULL));
  EXPECT(XT_NULL_ARGUMENT, xt->tables_list(session, NULL, NULL, NULL));

  OK(xt->table_describe(session, "test/b", &description));
  CHECK(description->def.columns_count == 3 && description->def.keys_count == 2);
  CHECK(strcmp(description->def.columns[1].name, "name") == 0);
  CHECK(description->def.columns[1].type == XT_TYPE_VARCHAR);
  CHECK(description->def.columns[1].collation == 47);
  CHECK(strcmp(description->def.keys[0].name, "PRIMARY") == 0);
  CHECK(description->row_format == XT_ROW_FORMAT_COMPACT);
  /* It opens the table as it is. */
  OK(xt->table_open(session, "test/b", &description->def, 0, &table));
  OK(xt->table_close(table));
  OK(xt->description_free(description));
  EXPECT(XT_BAD_HANDLE, xt->description_free(description));
  EXPECT(XT_NO_SUCH_TABLE, xt->table_describe(session, "test/nonsense", &description));
  EXPECT(XT_NULL_ARGUMENT, xt->table_describe(session, "test/b", NULL));
}

static void insert(xt_table *table, uint32_t id) {
  uint8_t row[ROW_BYTES];
  use(table, XT_LOCK_X, XT_USE_WRITE);
  make_row(row, id, "row", NULL, 0);
  OK(xt->insert_row(table, row));
  end(table);
  OK(xt->trx_commit(session));
}

static void rename_truncate_drop(void) {
  xt_table_info before = {sizeof before, 0, 0, 0, 0, 0, 0, 0}, after = before;
  xt_table *table = open_table("test/a");
  insert(table, 1);
  OK(xt->table_close(table));
  OK(xt->table_rename(session, "test/a", "test/renamed"));
  EXPECT(XT_NO_SUCH_TABLE, xt->table_rename(session, "test/a", "test/x"));
  EXPECT(XT_TABLE_EXISTS, xt->table_rename(session, "test/renamed", "test/b"));
  table = open_table("test/renamed");
  CHECK(count_rows(table) == 1);
  OK(xt->trx_commit(session));
  OK(xt->table_close(table));
  OK(xt->table_find(session, "test/renamed", &before));
  OK(xt->table_truncate(session, "test/renamed"));
  OK(xt->table_find(session, "test/renamed", &after));
  CHECK(before.table_id != after.table_id);
  table = open_table("test/renamed");
  CHECK(count_rows(table) == 0);
  OK(xt->trx_commit(session));
  OK(xt->table_close(table));
  EXPECT(XT_NO_SUCH_TABLE, xt->table_truncate(session, "test/nonsense"));
  OK(xt->table_drop(session, "test/renamed"));
  EXPECT(XT_NO_SUCH_TABLE, xt->table_drop(session, "test/renamed"));
  EXPECT(XT_NULL_ARGUMENT, xt->table_drop(session, NULL));
  EXPECT(XT_NULL_ARGUMENT, xt->table_rename(session, "test/b", NULL));
  OK(xt->table_create(session, "test/renamed", &def, NULL));
  OK(xt->database_drop(session, "./test/"));
  EXPECT(XT_NO_SUCH_TABLE, xt->table_find(session, "test/b", &after));
  EXPECT(XT_INVALID, xt->database_drop(session, ".."));
}

static void a_table_in_use_is_not_dropped(void) {
  xt_session *other = open_session(2);
  xt_table_use how = {sizeof how, XT_LOCK_X, XT_WAIT_DEFAULT, 0, XT_USE_WRITE, 0};
  xt_table *table = NULL;
  OK(xt->table_create(session, "test/used", &def, NULL));
  OK(xt->table_open(other, "test/used", &def, 0, &table));
  OK(xt->statement_begin(other, 0));
  OK(xt->table_use(table, other, &how));
  EXPECT(XT_BUSY, xt->table_drop(session, "test/used"));
  EXPECT(XT_WRONG_ORDER, xt->table_drop(other, "test/used")); /* still bound to it */
  OK(xt->table_release(table));
  OK(xt->statement_end(other));
  OK(xt->trx_commit(other));
  OK(xt->table_close(table));
  OK(xt->session_close(other));
  OK(xt->table_drop(session, "test/used"));
}

static void check_and_analyze(void) {
  xt_table *table;
  uint32_t id;
  OK(xt->table_create(session, "test/checked", &def, NULL));
  table = open_table("test/checked");
  for (id = 1; id <= 50; id++) insert(table, id);
  use(table, XT_LOCK_NONE, 0);
  found[0] = 0;
  OK(xt->table_check(table, XT_CHECK_EXTENDED, collect, NULL));
  CHECK(strcmp(found, "") == 0);
  EXPECT(XT_NULL_ARGUMENT, xt->table_check(table, 0, NULL, NULL));
  OK(xt->table_analyze(table));
  EXPECT(XT_TRY_ALTER, xt->table_optimize(table));
  end(table);
  OK(xt->table_close(table));
  OK(xt->table_drop(session, "test/checked"));
}

/* Rows that are collected, a duplicate among them, and a key that comes and goes. */
static void loads_and_indexes(void) {
  xt_key more[3] = {keys[0], keys[1], {"pair", name_part, 1, XT_KEY_UNIQUE}};
  xt_table_def with = def;
  uint8_t row[ROW_BYTES], told[ROW_BYTES];
  xt_table *table;
  uint32_t id, again = 7, read;
  with.keys = more;
  with.keys_count = 3;
  OK(xt->table_create(session, "test/loaded", &def, NULL));
  table = open_table("test/loaded");
  for (again = 7;; again = 0) {
    xt_table_use how = {sizeof how, XT_LOCK_X, XT_WAIT_DEFAULT, 0, XT_USE_WRITE, 0};
    OK(xt->statement_begin(session, XT_STATEMENT_NO_FOREIGN_KEYS | XT_STATEMENT_RELAXED_UNIQUE));
    OK(xt->table_use(table, session, &how));
    OK(xt->bulk_begin(table, 0));
    for (id = 300; id > 0; id--) {
      make_row(row, id, id % 2 ? "odd" : "even", NULL, 0);
      OK(xt->insert_row(table, row));
    }
    if (!again) break;
    make_row(row, again, "twice", NULL, 0);
    OK(xt->insert_row(table, row));
    EXPECT(XT_DUPLICATE_KEY, xt->bulk_end(table));
    CHECK(xt->session_error_key(session) == 0);
    make_row(told, 0, NULL, NULL, 0);
    OK(xt->bulk_refused(table, told));
    memcpy(&read, told + 1, 4);
    CHECK(read == again);
    OK(xt->statement_rollback(session));
  }
  OK(xt->bulk_end(table));
  EXPECT(XT_KEY_NOT_FOUND, xt->bulk_refused(table, told));
  EXPECT(XT_NULL_ARGUMENT, xt->bulk_refused(table, NULL));
  end(table);
  OK(xt->trx_commit(session));
  CHECK(count_rows(table) == 300);
  OK(xt->trx_commit(session));
  EXPECT(XT_DUPLICATE_KEY, xt->index_add(session, "test/loaded", &with, NULL));
  make_row(told, 0, "", NULL, 0);
  EXPECT(XT_DUPLICATE_KEY, xt->index_add(session, "test/loaded", &with, told));
  CHECK(xt->session_error_key(session) == 2);
  CHECK(row_has_name(told, "even"));
  more[2].flags = 0;
  OK(xt->index_add(session, "test/loaded", &with, NULL));
  OK(xt->index_add(session, "test/loaded", &with, NULL));
  EXPECT(XT_NO_SUCH_TABLE, xt->index_add(session, "test/nonsense", &with, NULL));
  EXPECT(XT_NULL_ARGUMENT, xt->index_add(session, "test/loaded", NULL, NULL));
  use(table, XT_LOCK_NONE, 0);
  found[0] = 0;
  OK(xt->table_check(table, XT_CHECK_EXTENDED, collect, NULL));
  CHECK(strcmp(found, "") == 0);
  end(table);
  OK(xt->trx_commit(session));
  OK(xt->index_drop(session, "test/loaded", "pair"));
  EXPECT(XT_INVALID, xt->index_drop(session, "test/loaded", "pair"));
  EXPECT(XT_UNSUPPORTED, xt->index_drop(session, "test/loaded", "PRIMARY"));
  EXPECT(XT_NULL_ARGUMENT, xt->index_drop(session, "test/loaded", NULL));
  OK(xt->table_close(table));
  OK(xt->table_drop(session, "test/loaded"));
}

/* What a new key is on is said by the host's definition, which must be the table's. */
static void index_of_other_columns(void) {
  const xt_description *description = NULL;
  xt_key more[3] = {keys[0], keys[1], {"more", name_part, 1, 0}};
  xt_key_part third_part[] = {{2, 20, 0}};
  xt_column other[4] = {columns[0], columns[1], columns[2], columns[2]};
  xt_table_def with = def;
  OK(xt->table_create(session, "test/more", &def, NULL));
  with.keys = more;
  with.keys_count = 3;
  with.columns = other;
  other[1].name = "nonsense";
  EXPECT(XT_INVALID, xt->index_add(session, "test/more", &with, NULL));
  with.columns_count = 2;
  EXPECT(XT_INVALID, xt->index_add(session, "test/more", &with, NULL));
  with.columns = columns;
  with.columns_count = 3;
  more[2].name = "GEN_CLUST_INDEX";
  EXPECT(XT_INVALID, xt->index_add(session, "test/more", &with, NULL));
  /* A virtual column before the others. */
  more[1].parts = third_part;
  more[2].parts = third_part;
  more[2].name = "more";
  other[1] = columns[0];
  other[1].name = "computed";
  other[1].flags = XT_COLUMN_NOT_NULL | XT_COLUMN_VIRTUAL;
  other[2] = columns[1];
  other[3] = columns[2];
  with.columns = other;
  with.columns_count = 4;
  OK(xt->index_add(session, "test/more", &with, NULL));
  OK(xt->table_describe(session, "test/more", &description));
  CHECK(description->def.keys_count == 3);
  CHECK(description->def.keys[2].parts[0].column == 1);
  OK(xt->description_free(description));
  OK(xt->table_drop(session, "test/more"));
}

static void use_to_load(xt_table *table) {
  xt_table_use how = {sizeof how, XT_LOCK_X, XT_WAIT_DEFAULT, 0, XT_USE_WRITE, 0};
  OK(xt->table_use(table, session, &how));
  OK(xt->bulk_begin(table, 0));
}

static void load_row(xt_table *table, uint32_t id) {
  uint8_t row[ROW_BYTES];
  make_row(row, id, "row", NULL, 0);
  OK(xt->insert_row(table, row));
}

/* Rows that were accepted are in the table or refused: a load that is not ended keeps the commit, and a
 * rollback of what came after its begin takes nothing of it. */
static void loads_that_are_not_ended(void) {
  const uint32_t unchecked = XT_STATEMENT_NO_FOREIGN_KEYS | XT_STATEMENT_RELAXED_UNIQUE;
  xt_table *first, *second;
  OK(xt->table_create(session, "test/first", &def, NULL));
  OK(xt->table_create(session, "test/second", &def, NULL));
  first = open_table("test/first");
  second = open_table("test/second");
  OK(xt->statement_begin(session, unchecked));
  use_to_load(first);
  load_row(first, 1);
  end(first);
  EXPECT(XT_INVALID, xt->trx_commit(session));
  EXPECT(XT_INVALID, xt->trx_commit(session));
  OK(xt->trx_rollback(session));
  CHECK(count_rows(first) == 0);
  OK(xt->trx_commit(session));

  OK(xt->statement_begin(session, unchecked));
  use_to_load(first);
  load_row(first, 1);
  OK(xt->savepoint_set(session, "s", 1));
  use_to_load(second);
  load_row(second, 1);
  OK(xt->savepoint_rollback(session, "s", 1));
  OK(xt->bulk_end(second));
  load_row(first, 2);
  OK(xt->bulk_end(first));
  OK(xt->table_release(second));
  end(first);
  OK(xt->trx_commit(session));
  CHECK(count_rows(first) == 2);
  CHECK(count_rows(second) == 0);
  OK(xt->trx_commit(session));
  OK(xt->table_close(first));
  OK(xt->table_close(second));
  OK(xt->table_drop(session, "test/first"));
  OK(xt->table_drop(session, "test/second"));
}

int main(int argc, char **argv) {
  start(argc, argv);
  loads_and_indexes();
  index_of_other_columns();
  loads_that_are_not_ended();
  create();
  look();
  rename_truncate_drop();
  a_table_in_use_is_not_dropped();
  check_and_analyze();
  stop();
  return 0;
}
