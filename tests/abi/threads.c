/* Use from several threads: right use works, wrong use is a code, an interrupt ends a wait. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

enum { THREADS = 4, ROWS = 50 };

static void *insert_rows(void *number) {
  uint32_t base = (uint32_t)(uintptr_t)number * 1000, i;
  xt_table_use how = {sizeof how, XT_LOCK_X, XT_WAIT_DEFAULT, 0, XT_USE_WRITE, 0};
  xt_session *mine = open_session(base);
  xt_table *table = NULL;
  uint8_t row[ROW_BYTES];
  OK(xt->table_open(mine, "test/threads", &def, 0, &table));
  for (i = 1; i <= ROWS; i++) {
    OK(xt->statement_begin(mine, XT_STATEMENT_AUTOCOMMIT));
    OK(xt->table_use(table, mine, &how));
    make_row(row, base + i, "thread", "note", 4);
    OK(xt->insert_row(table, row));
    OK(xt->table_release(table));
    OK(xt->statement_end(mine));
    OK(xt->trx_commit(mine));
  }
  OK(xt->table_close(table));
  OK(xt->session_close(mine));
  return NULL;
}

static void each_thread_with_its_own_session(void) {
  pthread_t threads[THREADS];
  xt_table *table;
  uintptr_t i;
  for (i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, insert_rows, (void *)(i + 1)) == 0);
  for (i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  table = open_table("test/threads");
  CHECK(count_rows(table) == THREADS * ROWS);
  OK(xt->trx_commit(session));
  OK(xt->table_close(table));
}

static xt_session *shared;

/* Wrong on purpose: several threads in one session. Each call works or says XT_WRONG_ORDER. */
static void *hammer(void *unused) {
  xt_session_info info = {sizeof info, 0, 0};
  int i;
  (void)unused;
  for (i = 0; i < 2000; i++) {
    xt_status status = xt->session_state(shared, &info);
    CHECK(status == XT_OK || status == XT_WRONG_ORDER);
    status = xt->savepoint_set(shared, "s", 1);
    CHECK(status == XT_OK || status == XT_WRONG_ORDER);
  }
  return NULL;
}

static void two_threads_in_one_session_are_a_code(void) {
  pthread_t threads[2];
  int i;
  shared = open_session(7);
  OK(xt->trx_begin(shared, 0));
  for (i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, hammer, NULL) == 0);
  for (i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  OK(xt->session_close(shared));
}

static xt_table *contended;
static volatile int contending;

static void *ask(void *unused) {
  xt_table_info info = {sizeof info, 0, 0, 0, 0, 0, 0, 0};
  while (contending) {
    xt_status status = xt->table_info(contended, &info);
    CHECK(status == XT_OK || status == XT_WRONG_ORDER);
  }
  return unused;
}

/* Wrong on purpose: a commit cannot unbind a table while another thread is in it. The use is over. */
static void a_table_that_could_not_be_unbound_is_not_bound(void) {
  xt_table_use how = {sizeof how, XT_LOCK_X, XT_WAIT_DEFAULT, 0, XT_USE_WRITE, 0};
  uint8_t row[ROW_BYTES];
  pthread_t thread;
  int i;
  contended = open_table("test/threads");
  contending = 1;
  make_row(row, 9999, "late", NULL, 0);
  CHECK(pthread_create(&thread, NULL, ask, NULL) == 0);
  for (i = 0; i < 100000; i++) {
    xt_status status;
    OK(xt->statement_begin(session, 0));
    status = xt->table_use(contended, session, &how);
    CHECK(status == XT_OK || status == XT_WRONG_ORDER);
    OK(xt->trx_commit(session));
    OK(xt->statement_begin(session, 0));
    EXPECT(XT_WRONG_ORDER, xt->insert_row(contended, row));
    OK(xt->statement_end(session));
  }
  contending = 0;
  pthread_join(thread, NULL);
  OK(xt->table_close(contended));
}

static xt_status waited;
static volatile int waiting;

/* Waits for the row that the main thread has locked, for up to a minute. */
static void *wait_for_row(void *given) {
  xt_session *mine = (xt_session *)given;
  xt_table_use how = {sizeof how, XT_LOCK_X, XT_WAIT_SECONDS, 60, XT_USE_WRITE, 0};
  uint8_t row[ROW_BYTES], key[4] = {0xE9, 3, 0, 0}; /* 1001 */
  xt_table *table = NULL;
  OK(xt->table_open(mine, "test/threads", &def, 0, &table));
  OK(xt->statement_begin(mine, 0));
  OK(xt->table_use(table, mine, &how));
  OK(xt->index_begin(table, 0, 1));
  waiting = 1;
  waited = xt->index_read(table, row, key, 4, XT_FIND_EXACT);
  OK(xt->table_close(table));
  OK(xt->statement_rollback(mine));
  OK(xt->trx_rollback(mine));
  return NULL;
}

static void an_interrupt_ends_a_lock_wait(void) {
  xt_session *other = open_session(8);
  xt_table *table = open_table("test/threads");
  uint8_t row[ROW_BYTES], key[4] = {0xE9, 3, 0, 0};
  struct timespec before, after;
  pthread_t thread;
  use(table, XT_LOCK_X, XT_USE_WRITE);
  OK(xt->index_begin(table, 0, 1));
  OK(xt->index_read(table, row, key, 4, XT_FIND_EXACT));
  OK(xt->index_end(table));
  CHECK(pthread_create(&thread, NULL, wait_for_row, other) == 0);
  while (!waiting) usleep(1000);
  usleep(200000);
  clock_gettime(CLOCK_MONOTONIC, &before);
  OK(xt->session_interrupt(other));
  pthread_join(thread, NULL);
  clock_gettime(CLOCK_MONOTONIC, &after);
  CHECK(waited == XT_INTERRUPTED);
  CHECK(after.tv_sec - before.tv_sec < 10);
  end(table);
  OK(xt->trx_commit(session));
  OK(xt->table_close(table));
  OK(xt->session_close(other));
}

static void nowait_and_timeout(void) {
  xt_session *other = open_session(9);
  xt_table *table = open_table("test/threads"), *theirs = NULL;
  xt_table_use how = {sizeof how, XT_LOCK_X, XT_WAIT_NOWAIT, 0, 0, 0};
  uint8_t row[ROW_BYTES], key[4] = {0xE9, 3, 0, 0};
  use(table, XT_LOCK_X, XT_USE_WRITE);
  OK(xt->index_begin(table, 0, 1));
  OK(xt->index_read(table, row, key, 4, XT_FIND_EXACT));
  OK(xt->table_open(other, "test/threads", &def, 0, &theirs));
  OK(xt->statement_begin(other, 0));
  OK(xt->table_use(theirs, other, &how));
  OK(xt->index_begin(theirs, 0, 1));
  EXPECT(XT_LOCK_WAIT_TIMEOUT, xt->index_read(theirs, row, key, 4, XT_FIND_EXACT));
  how.wait = XT_WAIT_SKIP_LOCKED;
  OK(xt->table_use(theirs, other, &how));
  OK(xt->index_begin(theirs, 0, 1));
  OK(xt->index_read(theirs, row, key, 4, XT_FIND_KEY_OR_NEXT));
  CHECK(row_id(row) == 1002);
  how.wait = XT_WAIT_SECONDS;
  how.wait_seconds = 1;
  OK(xt->table_use(theirs, other, &how));
  OK(xt->index_begin(theirs, 0, 1));
  EXPECT(XT_LOCK_WAIT_TIMEOUT, xt->index_read(theirs, row, key, 4, XT_FIND_EXACT));
  OK(xt->table_close(theirs));
  OK(xt->session_close(other));
  end(table);
  OK(xt->trx_commit(session));
  OK(xt->table_close(table));
}

int main(int argc, char **argv) {
  start(argc, argv);
  OK(xt->table_create(session, "test/threads", &def, NULL));
  each_thread_with_its_own_session();
  two_threads_in_one_session_are_a_code();
  a_table_that_could_not_be_unbound_is_not_bound();
  an_interrupt_ends_a_lock_wait();
  nowait_and_timeout();
  stop();
  return 0;
}
