/* table.h: templates, binding, rows in and out, positions, batches, AUTO_INCREMENT. */
#include "common.h"

static xt_table *table;
static char long_note[40000];

static void bad_templates(void) {
  xt_column bad_columns[3];
  xt_key bad_keys[2];
  xt_key_part bad_part = {7, 4, 0};
  xt_table_def bad = def;
  xt_table *t = NULL;
  EXPECT(XT_NULL_ARGUMENT, xt->table_open(session, NULL, &def, 0, &t));
  EXPECT(XT_NULL_ARGUMENT, xt->table_open(session, "test/rows", NULL, 0, &t));
  EXPECT(XT_NULL_ARGUMENT, xt->table_open(session, "test/rows", &def, 0, NULL));
  EXPECT(XT_INVALID, xt->table_open(session, "rows", &def, 0, &t));
  EXPECT(XT_NO_SUCH_TABLE, xt->table_open(session, "test/nonsense", &def, 0, &t));
  CHECK(strstr(xt->session_error(session), "nonsense") != NULL);
  bad.struct_size = 8;
  EXPECT(XT_SHORT_STRUCT, xt->table_open(session, "test/rows", &bad, 0, &t));
  bad = def;
  bad.row_length = 20;
  EXPECT(XT_INVALID, xt->table_open(session, "test/rows", &bad, 0, &t));
  bad = def;
  bad.columns = NULL;
  EXPECT(XT_NULL_ARGUMENT, xt->table_open(session, "test/rows", &bad, 0, &t));
  memcpy(bad_columns, columns, sizeof columns);
  memcpy(bad_keys, keys, sizeof keys);
  bad = def;
  bad.columns = bad_columns;
  bad.keys = bad_keys;
  bad_columns[1].type = 77;
  EXPECT(XT_INVALID, xt->table_open(session, "test/rows", &bad, 0, &t));
  CHECK(strstr(xt->session_error(session), "name") != NULL);
  bad_columns[1] = columns[1];
  bad_columns[2].name = NULL;
  EXPECT(XT_NULL_ARGUMENT, xt->table_open(session, "test/rows", &bad, 0, &t));
  bad_columns[2] = columns[2];
  bad_keys[1].parts = &bad_part;
  EXPECT(XT_INVALID, xt->table_open(session, "test/rows", &bad, 0, &t));
  CHECK(t == NULL);
}

static void order_of_calls(void) {
  xt_table_use how = {sizeof how, XT_LOCK_NONE, XT_WAIT_DEFAULT, 0, 0, 0};
  uint8_t row[ROW_BYTES], ref[16];
  make_row(row, 1, NULL, NULL, 0);
  EXPECT(XT_WRONG_ORDER, xt->table_use(table, session, &how)); /* no statement */
  EXPECT(XT_WRONG_ORDER, xt->scan_begin(table, 1));            /* not bound */
  OK(xt->table_release(table));
  OK(xt->statement_begin(session, 0));
  EXPECT(XT_NULL_ARGUMENT, xt->table_use(table, session, NULL));
  EXPECT(XT_NULL_ARGUMENT, xt->table_use(table, NULL, &how));
  how.lock = 9;
  EXPECT(XT_INVALID, xt->table_use(table, session, &how));
  how.lock = XT_LOCK_S;
  how.flags = XT_USE_WRITE;
  EXPECT(XT_INVALID, xt->table_use(table, session, &how));
  how.lock = XT_LOCK_NONE;
  how.flags = 0;
  how.wait = 9;
  EXPECT(XT_INVALID, xt->table_use(table, session, &how));
  how.wait = XT_WAIT_DEFAULT;
  OK(xt->table_use(table, session, &how));
  EXPECT(XT_WRONG_ORDER, xt->insert_row(table, row)); /* bound for reading */
  EXPECT(XT_WRONG_ORDER, xt->update_row(table, row, row));
  EXPECT(XT_WRONG_ORDER, xt->scan_next(table, row));
  EXPECT(XT_NO_ACTIVE_RECORD, xt->table_position(table, row, ref, sizeof ref));
  OK(xt->scan_begin(table, 1));
  EXPECT(XT_WRONG_ORDER, xt->scan_begin(table, 1));
  EXPECT(XT_WRONG_ORDER, xt->index_begin(table, 0, 1));
  EXPECT(XT_NULL_ARGUMENT, xt->scan_next(table, NULL));
  EXPECT(XT_END_OF_FILE, xt->scan_next(table, row));
  OK(xt->scan_end(table));
  OK(xt->scan_end(table));
  EXPECT(XT_INVALID, xt->table_extra(table, 99));
  OK(xt->table_extra(table, XT_EXTRA_KEYREAD));
  OK(xt->table_extra(table, XT_EXTRA_NO_KEYREAD));
  EXPECT(XT_INVALID, xt->table_columns(table, (const uint8_t *)"", NULL, 0));
  end(table);
  how.flags = XT_USE_WRITE;
  how.lock = XT_LOCK_X;
  OK(xt->statement_begin(session, 0));
  OK(xt->table_use(table, session, &how));
  EXPECT(XT_NULL_ARGUMENT, xt->insert_row(table, NULL));
  EXPECT(XT_NO_ACTIVE_RECORD, xt->update_row(table, row, row));
  EXPECT(XT_NO_ACTIVE_RECORD, xt->delete_row(table, row));
  /* A BLOB of two bytes at NULL. */
  make_row(row, 1, NULL, "xx", 2);
  memset(row + 28, 0, 8);
  EXPECT(XT_NULL_ARGUMENT, xt->insert_row(table, row));
  end(table);
  OK(xt->trx_commit(session));
}

static void rows_come_back(void) {
  static const char *const names[] = {"one", NULL, "", "twenty bytes exactly"};
  uint8_t row[ROW_BYTES];
  uint32_t i;
  memset(long_note, 'n', sizeof long_note);
  long_note[39999] = '!';
  use(table, XT_LOCK_X, XT_USE_WRITE);
  OK(xt->bulk_begin(table, 4));
  for (i = 0; i < 4; i++) {
    make_row(row, i + 1, names[i], i == 1 ? NULL : long_note, i == 2 ? 0 : 40000);
    OK(xt->insert_row(table, row));
  }
  OK(xt->bulk_end(table));
  make_row(row, 3, "again", NULL, 0);
  EXPECT(XT_DUPLICATE_KEY, xt->insert_row(table, row));
  CHECK(xt->session_error_key(session) == 0);
  end(table);
  OK(xt->trx_commit(session));

  use(table, XT_LOCK_NONE, 0);
  OK(xt->scan_begin(table, 1));
  for (i = 0; i < 4; i++) {
    memset(row, 0xEE, sizeof row);
    OK(xt->scan_next(table, row));
    CHECK(row_id(row) == i + 1);
    CHECK(row_has_name(row, names[i]));
    CHECK(row_has_note(row, i == 1 ? NULL : long_note, i == 2 ? 0 : 40000));
  }
  EXPECT(XT_END_OF_FILE, xt->scan_next(table, row));
  OK(xt->scan_end(table));
  end(table);
}

static void update_and_delete(void) {
  uint8_t row[ROW_BYTES], changed[ROW_BYTES];
  uint8_t write_name[1] = {2};
  use(table, XT_LOCK_X, XT_USE_WRITE);
  OK(xt->scan_begin(table, 1));
  OK(xt->scan_next(table, row));
  EXPECT(XT_RECORD_IS_THE_SAME, xt->update_row(table, row, row));
  /* Only the name is written: the BLOB pointer of the row may be anything. */
  OK(xt->table_columns(table, NULL, write_name, 1));
  make_row(changed, 1, "uno", "garbage", 7);
  memset(changed + 28, 0xEE, 8);
  OK(xt->update_row(table, row, changed));
  OK(xt->table_columns(table, NULL, NULL, 0));
  OK(xt->scan_next(table, row));
  OK(xt->delete_row(table, row));
  EXPECT(XT_NO_ACTIVE_RECORD, xt->delete_row(table, row));
  OK(xt->scan_end(table));
  end(table);
  OK(xt->trx_commit(session));
  use(table, XT_LOCK_NONE, 0);
  OK(xt->scan_begin(table, 1));
  OK(xt->scan_next(table, row));
  CHECK(row_has_name(row, "uno") && row_has_note(row, long_note, 40000));
  OK(xt->scan_next(table, row));
  CHECK(row_id(row) == 3);
  end(table);
  CHECK(count_rows(table) == 3);
}

static void positions(void) {
  xt_table_info info = {sizeof info, 0, 0, 0, 0, 0, 0, 0};
  uint8_t row[ROW_BYTES], first[16], second[16];
  int32_t order = 9;
  OK(xt->table_info(table, &info));
  CHECK(info.ref_length == 4 && info.clustered_key == 0 && info.table_id > 0);
  EXPECT(XT_NULL_ARGUMENT, xt->table_info(table, NULL));
  use(table, XT_LOCK_NONE, 0);
  OK(xt->scan_begin(table, 1));
  OK(xt->scan_next(table, row));
  EXPECT(XT_INVALID, xt->table_position(table, row, first, 3));
  EXPECT(XT_NULL_ARGUMENT, xt->table_position(table, row, NULL, 4));
  OK(xt->table_position(table, row, first, sizeof first));
  OK(xt->scan_next(table, row));
  OK(xt->table_position(table, row, second, sizeof second));
  OK(xt->compare_positions(table, first, second, &order));
  CHECK(order == -1);
  OK(xt->compare_positions(table, second, second, &order));
  CHECK(order == 0);
  EXPECT(XT_NULL_ARGUMENT, xt->compare_positions(table, first, NULL, &order));
  OK(xt->scan_end(table));
  OK(xt->scan_begin(table, 0));
  EXPECT(XT_WRONG_ORDER, xt->scan_next(table, row));
  OK(xt->read_position(table, row, first, 4));
  CHECK(row_id(row) == 1);
  OK(xt->read_position(table, row, second, 4));
  CHECK(row_id(row) == 3);
  memset(first, 0x55, sizeof first);
  EXPECT(XT_KEY_NOT_FOUND, xt->read_position(table, row, first, 4));
  EXPECT(XT_INVALID, xt->read_position(table, row, first, 5));
  EXPECT(XT_NULL_ARGUMENT, xt->read_position(table, row, NULL, 4));
  OK(xt->scan_end(table));
  end(table);
}

static void many_rows_in_one_call(void) {
  enum { CAPACITY = 7, STRIDE = 40 };
  static uint8_t rows[CAPACITY * STRIDE], refs[CAPACITY * 8];
  xt_batch batch = {sizeof batch, XT_NEXT, rows, refs, STRIDE, 8, CAPACITY, 0};
  uint8_t row[ROW_BYTES];
  uint32_t id, seen = 0, i;
  xt_status status;
  use(table, XT_LOCK_X, XT_USE_WRITE);
  for (id = 100; id < 300; id++) {
    make_row(row, id, "batch", "note", 4);
    OK(xt->insert_row(table, row));
  }
  end(table);
  OK(xt->trx_commit(session));
  use(table, XT_LOCK_NONE, 0);
  EXPECT(XT_WRONG_ORDER, xt->read_n(table, &batch));
  OK(xt->scan_begin(table, 1));
  EXPECT(XT_NULL_ARGUMENT, xt->read_n(table, NULL));
  batch.row_stride = 10;
  EXPECT(XT_INVALID, xt->read_n(table, &batch));
  batch.row_stride = STRIDE;
  batch.direction = 5;
  EXPECT(XT_INVALID, xt->read_n(table, &batch));
  batch.direction = XT_PREV;
  EXPECT(XT_WRONG_ORDER, xt->read_n(table, &batch));
  batch.direction = XT_NEXT;
  batch.capacity = 0;
  OK(xt->read_n(table, &batch));
  batch.capacity = CAPACITY;
  do {
    status = xt->read_n(table, &batch);
    CHECK(status == XT_OK || status == XT_END_OF_FILE);
    for (i = 0; i < batch.count; i++, seen++) {
      const uint8_t *got = rows + i * STRIDE;
      uint32_t ref;
      if (seen < 3) continue;
      CHECK(row_id(got) == 100 + seen - 3);
      /* BLOBs of the whole batch are there at once. */
      CHECK(row_has_name(got, "batch") && row_has_note(got, "note", 4));
      memcpy(&ref, refs + i * 8, 4);
      CHECK(ref == row_id(got));
    }
  } while (status == XT_OK);
  CHECK(seen == 203);
  OK(xt->scan_end(table));
  end(table);
}

static void auto_increment(void) {
  uint64_t first = 0, count = 0;
  uint8_t row[ROW_BYTES];
  use(table, XT_LOCK_X, XT_USE_WRITE);
  OK(xt->autoinc_reserve(table, 1, 1, 3, &first, &count));
  CHECK(first == 300 && count >= 3);
  EXPECT(XT_INVALID, xt->autoinc_reserve(table, 1, 0, 1, &first, &count));
  EXPECT(XT_NULL_ARGUMENT, xt->autoinc_reserve(table, 1, 1, 1, NULL, &count));
  make_row(row, 5000, "explicit", NULL, 0);
  OK(xt->insert_row(table, row));
  OK(xt->autoinc_reserve(table, 1, 1, 1, &first, &count));
  CHECK(first == 5001);
  OK(xt->autoinc_set(table, 9000));
  OK(xt->autoinc_reserve(table, 5, 10, 1, &first, &count));
  CHECK(first == 9005);
  end(table);
  OK(xt->trx_commit(session));
}

static void statistics(void) {
  xt_table_stats stats;
  double rec_per_key[2] = {0, 0};
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  OK(xt->table_stats(table, &stats));
  CHECK(stats.data_length > 0 && stats.clustered_pages > 0 && stats.auto_increment > 9005);
  EXPECT(XT_NULL_ARGUMENT, xt->table_stats(table, NULL));
  OK(xt->table_rec_per_key(table, 0, rec_per_key, 1));
  CHECK(rec_per_key[0] >= 1);
  EXPECT(XT_INVALID, xt->table_rec_per_key(table, 2, rec_per_key, 1));
  EXPECT(XT_NULL_ARGUMENT, xt->table_rec_per_key(table, 0, NULL, 1));
}

int main(int argc, char **argv) {
  start(argc, argv);
  OK(xt->table_create(session, "test/rows", &def, NULL));
  bad_templates();
  table = open_table("./test/rows");
  order_of_calls();
  rows_come_back();
  update_and_delete();
  positions();
  many_rows_in_one_call();
  auto_increment();
  statistics();
  OK(xt->table_close(table));
  EXPECT(XT_BAD_HANDLE, xt->table_close(table));
  stop();
  return 0;
}
