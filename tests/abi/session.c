/* session.h: statements, transactions, savepoints, two-phase commit slots. */
#include "common.h"

static xt_table *table;

static void insert(uint32_t id, const char *name) {
  uint8_t row[ROW_BYTES];
  use(table, XT_LOCK_X, XT_USE_WRITE);
  make_row(row, id, name, NULL, 0);
  OK(xt->insert_row(table, row));
  end(table);
}

static uint32_t flags(void) {
  xt_session_info info = {sizeof info, 0, 0};
  OK(xt->session_state(session, &info));
  return info.flags;
}

static void opening(void) {
  xt_session_config config = {sizeof config, 9, 1, NULL};
  xt_session *s = NULL;
  EXPECT(XT_INVALID, xt->session_open(engine, &config, &s));
  config.isolation = XT_ISOLATION_READ_COMMITTED;
  EXPECT(XT_NULL_ARGUMENT, xt->session_open(engine, NULL, &s));
  EXPECT(XT_NULL_ARGUMENT, xt->session_open(engine, &config, NULL));
  config.struct_size = 4;
  EXPECT(XT_SHORT_STRUCT, xt->session_open(engine, &config, &s));
  config.struct_size = sizeof config;
  OK(xt->session_open(engine, &config, &s));
  CHECK(strcmp(xt->session_error(s), "") == 0);
  OK(xt->session_close(s));
  EXPECT(XT_BAD_HANDLE, xt->session_close(s));
  EXPECT(XT_BAD_HANDLE, xt->trx_commit(s));
}

static void order_of_calls(void) {
  EXPECT(XT_WRONG_ORDER, xt->statement_end(session));
  EXPECT(XT_WRONG_ORDER, xt->statement_rollback(session));
  OK(xt->statement_begin(session, 0));
  CHECK(flags() & XT_SESSION_IN_STATEMENT);
  EXPECT(XT_WRONG_ORDER, xt->statement_begin(session, 0));
  OK(xt->statement_end(session));
  OK(xt->trx_commit(session));
  OK(xt->trx_rollback(session));
  OK(xt->trx_begin(session, 0));
  EXPECT(XT_WRONG_ORDER, xt->trx_begin(session, 0));
  CHECK(flags() & XT_SESSION_IN_TRX);
  OK(xt->trx_commit(session));
  CHECK(!(flags() & XT_SESSION_IN_TRX));
  EXPECT(XT_INVALID, xt->session_set_isolation(session, 4));
  OK(xt->session_set_isolation(session, XT_ISOLATION_READ_COMMITTED));
  OK(xt->session_set_isolation(session, XT_ISOLATION_REPEATABLE_READ));
  OK(xt->trx_begin(session, XT_TRX_CONSISTENT_SNAPSHOT | XT_TRX_READ_ONLY));
  CHECK(flags() & XT_SESSION_HAS_VIEW);
  OK(xt->trx_rollback(session));
}

static void commit_and_rollback(void) {
  OK(xt->trx_begin(session, 0));
  insert(1, "one");
  CHECK(flags() & XT_SESSION_TRX_CHANGED);
  CHECK(flags() & XT_SESSION_HAS_LOCKS);
  OK(xt->trx_commit(session));
  CHECK(count_rows(table) == 1);
  OK(xt->trx_commit(session));
  OK(xt->trx_begin(session, 0));
  insert(2, "two");
  CHECK(count_rows(table) == 2);
  OK(xt->trx_rollback(session));
  CHECK(count_rows(table) == 1);
  OK(xt->trx_commit(session));
}

static void a_statement_is_undone_alone(void) {
  uint8_t row[ROW_BYTES];
  OK(xt->trx_begin(session, 0));
  insert(10, "kept");
  use(table, XT_LOCK_X, XT_USE_WRITE);
  make_row(row, 11, "undone", NULL, 0);
  OK(xt->insert_row(table, row));
  make_row(row, 12, "undone", NULL, 0);
  OK(xt->insert_row(table, row));
  OK(xt->statement_rollback(session));
  /* The statement's tables are no longer bound. */
  EXPECT(XT_WRONG_ORDER, xt->insert_row(table, row));
  OK(xt->trx_commit(session));
  CHECK(count_rows(table) == 2);
  OK(xt->trx_commit(session));
}

static void savepoints(void) {
  const char with_nul[3] = {'a', 0, 'b'};
  OK(xt->trx_begin(session, 0));
  insert(20, "a");
  OK(xt->savepoint_set(session, "s1", 2));
  insert(21, "b");
  OK(xt->savepoint_set(session, with_nul, 3));
  insert(22, "c");
  CHECK(count_rows(table) == 5);
  OK(xt->savepoint_rollback(session, with_nul, 3));
  CHECK(count_rows(table) == 4);
  OK(xt->savepoint_rollback(session, "s1", 2));
  CHECK(count_rows(table) == 3);
  /* The younger one is forgotten, the older one stays. */
  EXPECT(XT_NO_SAVEPOINT, xt->savepoint_rollback(session, with_nul, 3));
  insert(23, "d");
  OK(xt->savepoint_release(session, "s1", 2));
  EXPECT(XT_NO_SAVEPOINT, xt->savepoint_rollback(session, "s1", 2));
  EXPECT(XT_NO_SAVEPOINT, xt->savepoint_release(session, "s1", 2));
  EXPECT(XT_NULL_ARGUMENT, xt->savepoint_set(session, NULL, 2));
  EXPECT(XT_INVALID, xt->savepoint_set(session, "", 0));
  OK(xt->trx_rollback(session));
  CHECK(count_rows(table) == 2);
  OK(xt->trx_commit(session));
}

static void two_phase_commit_is_refused_in_words(void) {
  xt_xid xid, room[4];
  uint32_t count = 99;
  memset(&xid, 0, sizeof xid);
  EXPECT(XT_NULL_ARGUMENT, xt->trx_prepare(session, NULL));
  EXPECT(XT_INVALID, xt->trx_prepare(session, &xid));
  xid.gtrid_length = 1;
  xid.data[0] = 'x';
  EXPECT(XT_UNSUPPORTED, xt->trx_prepare(session, &xid));
  CHECK(xt->session_error(session)[0] != 0);
  OK(xt->prepared_list(engine, 0, room, 4, &count));
  CHECK(count == 0);
  EXPECT(XT_NULL_ARGUMENT, xt->prepared_list(engine, 0, room, 4, NULL));
  EXPECT(XT_NULL_ARGUMENT, xt->prepared_list(engine, 0, NULL, 4, &count));
}

static void an_open_transaction_is_rolled_back_with_its_session(void) {
  xt_session *other = open_session(2), *mine = session;
  uint8_t row[ROW_BYTES];
  xt_table *again;
  session = other;
  again = open_table("test/trx");
  use(again, XT_LOCK_X, XT_USE_WRITE);
  make_row(row, 99, "lost", NULL, 0);
  OK(xt->insert_row(again, row));
  OK(xt->session_close(other));
  session = mine;
  EXPECT(XT_WRONG_ORDER, xt->insert_row(again, row));
  CHECK(count_rows(again) == 2); /* the table stays open and serves another session */
  OK(xt->table_close(again));
}

int main(int argc, char **argv) {
  start(argc, argv);
  opening();
  OK(xt->table_create(session, "test/trx", &def, NULL));
  table = open_table("test/trx");
  order_of_calls();
  commit_and_rollback();
  a_statement_is_undone_alone();
  savepoints();
  two_phase_commit_is_refused_in_words();
  an_open_transaction_is_rolled_back_with_its_session();
  OK(xt->table_close(table));
  stop();
  return 0;
}
