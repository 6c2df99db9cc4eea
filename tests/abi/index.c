/* index.h: every find flag on a unique and on a plain key, both directions, ranges. */
#include "common.h"

static xt_table *table;
static uint8_t row[ROW_BYTES];

/* id 10, 20 .. 90; names a, b, b, b, c, NULL, NULL, ba, z (in the order of the ids) */
static const char *const names[] = {"a", "b", "b", "b", "c", NULL, NULL, "ba", "z"};

static void fill(void) {
  uint32_t i;
  use(table, XT_LOCK_X, XT_USE_WRITE);
  for (i = 0; i < 9; i++) {
    make_row(row, (i + 1) * 10, names[i], NULL, 0);
    OK(xt->insert_row(table, row));
  }
  end(table);
  OK(xt->trx_commit(session));
}

/* Reads by id; 0 = not found. */
static uint32_t by_id(uint32_t id, uint32_t find) {
  uint8_t key[4];
  xt_status status;
  memcpy(key, &id, 4);
  status = xt->index_read(table, row, key, 4, find);
  CHECK(status == XT_OK || status == XT_KEY_NOT_FOUND);
  return status == XT_OK ? row_id(row) : 0;
}

static uint32_t by_name(const char *name, uint32_t find) {
  uint8_t key[23];
  xt_status status = xt->index_read(table, row, key, name_key(key, name), find);
  CHECK(status == XT_OK || status == XT_KEY_NOT_FOUND);
  return status == XT_OK ? row_id(row) : 0;
}

/* The first `length` bytes of the key image of a name. */
static uint32_t by_part(const char *name, uint32_t length, uint32_t find) {
  uint8_t key[23];
  xt_status status;
  name_key(key, name);
  status = xt->index_read(table, row, key, length, find);
  CHECK(status == XT_OK || status == XT_KEY_NOT_FOUND);
  return status == XT_OK ? row_id(row) : 0;
}

static void find_flags_on_a_unique_key(void) {
  OK(xt->index_begin(table, 0, 1));
  CHECK(by_id(20, XT_FIND_EXACT) == 20);
  CHECK(by_id(25, XT_FIND_EXACT) == 0);
  CHECK(by_id(20, XT_FIND_KEY_OR_NEXT) == 20);
  CHECK(by_id(25, XT_FIND_KEY_OR_NEXT) == 30);
  CHECK(by_id(91, XT_FIND_KEY_OR_NEXT) == 0);
  CHECK(by_id(20, XT_FIND_KEY_OR_PREV) == 20);
  CHECK(by_id(25, XT_FIND_KEY_OR_PREV) == 20);
  CHECK(by_id(5, XT_FIND_KEY_OR_PREV) == 0);
  CHECK(by_id(20, XT_FIND_AFTER) == 30);
  CHECK(by_id(90, XT_FIND_AFTER) == 0);
  CHECK(by_id(20, XT_FIND_BEFORE) == 10);
  CHECK(by_id(10, XT_FIND_BEFORE) == 0);
  CHECK(by_id(40, XT_FIND_PREFIX) == 40);
  CHECK(by_id(40, XT_FIND_PREFIX_LAST) == 40);
  CHECK(by_id(45, XT_FIND_PREFIX_LAST_OR_PREV) == 40);
  OK(xt->index_end(table));
}

static void find_flags_on_a_key_with_equal_values_and_nulls(void) {
  OK(xt->index_begin(table, 1, 1));
  /* Order: NULL 60, NULL 70, a 10, b 20, b 30, b 40, ba 80, c 50, z 90 */
  CHECK(by_name("b", XT_FIND_EXACT) == 20);
  CHECK(by_name(NULL, XT_FIND_EXACT) == 60);
  CHECK(by_name("bb", XT_FIND_EXACT) == 0);
  CHECK(by_name("bb", XT_FIND_KEY_OR_NEXT) == 50);
  CHECK(by_name("b", XT_FIND_KEY_OR_PREV) == 40);
  CHECK(by_name("bb", XT_FIND_KEY_OR_PREV) == 80);
  CHECK(by_name("b", XT_FIND_AFTER) == 80);
  CHECK(by_name(NULL, XT_FIND_AFTER) == 10);
  CHECK(by_name("b", XT_FIND_BEFORE) == 10);
  CHECK(by_name("a", XT_FIND_BEFORE) == 70);
  CHECK(by_name(NULL, XT_FIND_BEFORE) == 0);
  CHECK(by_name("b", XT_FIND_PREFIX_LAST) == 40);
  CHECK(by_name("bb", XT_FIND_PREFIX_LAST) == 0);
  CHECK(by_name("bb", XT_FIND_PREFIX_LAST_OR_PREV) == 80);
  /* A key that ends inside the string: everything that begins with it. */
  CHECK(by_part("b", 4, XT_FIND_PREFIX) == 20);
  CHECK(by_part("x", 4, XT_FIND_PREFIX) == 0);
  OK(xt->index_end(table));
}

static void both_directions(void) {
  static const uint32_t order[] = {60, 70, 10, 20, 30, 40, 80, 50, 90};
  int i;
  OK(xt->index_begin(table, 1, 1));
  EXPECT(XT_WRONG_ORDER, xt->index_next(table, row));
  OK(xt->index_first(table, row));
  for (i = 0; i < 9; i++) {
    CHECK(row_id(row) == order[i]);
    CHECK(row_has_name(row, names[row_id(row) / 10 - 1]));
    EXPECT(i < 8 ? XT_OK : XT_END_OF_FILE, xt->index_next(table, row));
  }
  OK(xt->index_last(table, row));
  for (i = 8; i >= 0; i--) {
    CHECK(row_id(row) == order[i]);
    EXPECT(i > 0 ? XT_OK : XT_END_OF_FILE, xt->index_prev(table, row));
  }
  /* There and back. */
  CHECK(by_name("c", XT_FIND_EXACT) == 50);
  OK(xt->index_prev(table, row));
  CHECK(row_id(row) == 80);
  OK(xt->index_next(table, row));
  CHECK(row_id(row) == 50);
  OK(xt->index_end(table));
}

static void rows_of_the_same_key(void) {
  uint8_t key[23];
  uint32_t length = name_key(key, "b");
  OK(xt->index_begin(table, 1, 1));
  OK(xt->index_read(table, row, key, length, XT_FIND_EXACT));
  OK(xt->index_next_same(table, row, key, length));
  CHECK(row_id(row) == 30);
  OK(xt->index_next_same(table, row, key, length));
  CHECK(row_id(row) == 40);
  EXPECT(XT_END_OF_FILE, xt->index_next_same(table, row, key, length));
  OK(xt->index_end(table));
}

static void batches(void) {
  static uint8_t rows[4 * ROW_BYTES];
  xt_batch batch = {sizeof batch, XT_PREV, rows, NULL, ROW_BYTES, 0, 4, 0};
  OK(xt->index_begin(table, 0, 1));
  EXPECT(XT_WRONG_ORDER, xt->read_n(table, &batch));
  CHECK(by_id(90, XT_FIND_EXACT) == 90);
  OK(xt->read_n(table, &batch));
  CHECK(batch.count == 4 && row_id(rows) == 80 && row_id(rows + 3 * ROW_BYTES) == 50);
  batch.direction = XT_NEXT;
  OK(xt->read_n(table, &batch));
  CHECK(batch.count >= 1 && row_id(rows) == 60);
  OK(xt->index_end(table));
}

static void bad_keys(void) {
  uint8_t key[40] = {0};
  EXPECT(XT_INVALID, xt->index_begin(table, 2, 1));
  EXPECT(XT_WRONG_ORDER, xt->index_read(table, row, key, 4, XT_FIND_EXACT));
  EXPECT(XT_WRONG_ORDER, xt->index_first(table, row));
  OK(xt->index_begin(table, 1, 1));
  EXPECT(XT_WRONG_ORDER, xt->index_begin(table, 1, 1));
  EXPECT(XT_INVALID, xt->index_read(table, row, key, 5, XT_FIND_EXACT));
  EXPECT(XT_INVALID, xt->index_read(table, row, key, 24, XT_FIND_EXACT));
  EXPECT(XT_INVALID, xt->index_read(table, row, key, 23, 99));
  EXPECT(XT_UNSUPPORTED, xt->index_read(table, row, key, 23, 9));
  EXPECT(XT_NULL_ARGUMENT, xt->index_read(table, row, NULL, 23, XT_FIND_EXACT));
  EXPECT(XT_NULL_ARGUMENT, xt->index_read(table, NULL, key, 23, XT_FIND_EXACT));
  key[1] = 21; /* longer than its part */
  EXPECT(XT_INVALID, xt->index_read(table, row, key, 23, XT_FIND_EXACT));
  OK(xt->index_read(table, row, NULL, 0, XT_FIND_KEY_OR_NEXT));
  CHECK(row_id(row) == 60);
  OK(xt->index_end(table));
  OK(xt->index_end(table));
}

static void ranges(void) {
  uint8_t low[4] = {20, 0, 0, 0}, high[4] = {50, 0, 0, 0};
  xt_bound lower = {low, 4, XT_FIND_EXACT}, upper = {high, 4, XT_FIND_AFTER};
  uint64_t rows = 0;
  OK(xt->records_in_range(table, 0, &lower, &upper, &rows));
  CHECK(rows == 4);
  OK(xt->records_in_range(table, 0, NULL, NULL, &rows));
  CHECK(rows >= 1);
  upper.find = XT_FIND_PREFIX;
  EXPECT(XT_INVALID, xt->records_in_range(table, 0, &lower, &upper, &rows));
  upper.find = XT_FIND_AFTER;
  upper.length = 3;
  EXPECT(XT_INVALID, xt->records_in_range(table, 0, &lower, &upper, &rows));
  EXPECT(XT_INVALID, xt->records_in_range(table, 5, NULL, NULL, &rows));
  EXPECT(XT_NULL_ARGUMENT, xt->records_in_range(table, 0, NULL, NULL, NULL));
}

int main(int argc, char **argv) {
  start(argc, argv);
  OK(xt->table_create(session, "test/keys", &def, NULL));
  table = open_table("test/keys");
  fill();
  use(table, XT_LOCK_NONE, 0);
  find_flags_on_a_unique_key();
  find_flags_on_a_key_with_equal_values_and_nulls();
  both_directions();
  rows_of_the_same_key();
  batches();
  bad_keys();
  ranges();
  end(table);
  /* The same under locks. */
  use(table, XT_LOCK_S, 0);
  find_flags_on_a_key_with_equal_values_and_nulls();
  rows_of_the_same_key();
  end(table);
  OK(xt->trx_commit(session));
  OK(xt->table_close(table));
  stop();
  return 0;
}
