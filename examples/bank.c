/* A bank: threads move money between accounts while an auditor adds all of it up, again and again.
 *
 *   cc -pthread -Iinclude examples/bank.c -o bank -ldl
 *   ./bank LIBRARY DIRECTORY [TRANSFERS_OF_EACH_THREAD]
 *
 * Two transfers may want each other's account: the engine ends one of them (XT_DEADLOCK), and that
 * one tries again. The auditor reads one snapshot, takes no lock and waits for nobody.
 *
 *   accounts: id INT NOT NULL PRIMARY KEY, balance INT NOT NULL     row: [null bits: 1][id: 4][balance: 4]
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xtradb.h>

enum { ACCOUNTS = 20, START = 1000, THREADS = 4, ROW = 9 };

static const xt_api *xt;
static xt_engine *engine;
static int transfers = 500;
static int deadlocks, audits; /* counted with __atomic */
static int open_for_business = 1;

static const xt_column columns[] = {
    {"id", 1, 4, 4, 63, XT_COLUMN_NOT_NULL, 0, 0, XT_TYPE_LONG, 0, 0, 0},
    {"balance", 5, 4, 4, 63, XT_COLUMN_NOT_NULL, 0, 0, XT_TYPE_LONG, 0, 0, 0}};
static const xt_key_part parts[] = {{0, 4, 0}};
static const xt_key keys[] = {{"PRIMARY", parts, 1, XT_KEY_PRIMARY | XT_KEY_UNIQUE}};
static const xt_table_def def = {sizeof def, 0, columns, keys, 2, 1, ROW, 1};

static const xt_collation *no_collation(void *ctx, uint32_t id) { return id == 0 ? ctx : NULL; }

static void must(xt_status code, const char *what, const xt_session *session) {
  if (code == XT_OK) return;
  fprintf(stderr, "%s: code %d: %s\n", what, code, session ? xt->session_error(session) : "");
  exit(1);
}

struct client {
  xt_session *session;
  xt_table *table;
};

static struct client client_open(uint64_t id) {
  xt_session_config who = {sizeof who, XT_ISOLATION_REPEATABLE_READ, id, NULL};
  struct client c;
  must(xt->session_open(engine, &who, &c.session), "session_open", NULL);
  must(xt->table_open(c.session, "bank/accounts", &def, 0, &c.table), "table_open", c.session);
  return c;
}

static void client_close(struct client *c) {
  must(xt->table_close(c->table), "table_close", c->session);
  must(xt->session_close(c->session), "session_close", NULL);
}

static void begin(struct client *c, uint32_t lock, uint32_t flags) {
  xt_table_use use = {sizeof use, lock, XT_WAIT_DEFAULT, 0, flags, 0};
  must(xt->statement_begin(c->session, 0), "statement_begin", c->session);
  must(xt->table_use(c->table, c->session, &use), "table_use", c->session);
}

static void commit(struct client *c) {
  must(xt->table_release(c->table), "table_release", c->session);
  must(xt->statement_end(c->session), "statement_end", c->session);
  must(xt->trx_commit(c->session), "trx_commit", c->session);
}

static void put(uint8_t *row, int32_t id, int32_t balance) { /* little-endian, as this machine is */
  memcpy(row + 1, &id, 4);
  memcpy(row + 5, &balance, 4);
}

static int32_t balance_of(const uint8_t *row) {
  int32_t balance;
  memcpy(&balance, row + 5, 4);
  return balance;
}

static xt_status add(struct client *c, int32_t account, int32_t amount) {
  uint8_t row[ROW], changed[ROW] = {0};
  xt_status code = xt->index_read(c->table, row, (const uint8_t *)&account, 4, XT_FIND_EXACT);
  if (code != XT_OK) return code;
  put(changed, account, balance_of(row) + amount);
  return xt->update_row(c->table, row, changed);
}

static xt_status transfer(struct client *c, int32_t from, int32_t to, int32_t amount) {
  xt_status code;
  begin(c, XT_LOCK_X, XT_USE_WRITE); /* reads lock what they find, until the commit */
  must(xt->index_begin(c->table, 0, 0), "index_begin", c->session);
  code = add(c, from, -amount);
  if (code == XT_OK) code = add(c, to, amount);
  if (code == XT_OK) commit(c);
  else must(xt->trx_rollback(c->session), "trx_rollback", c->session);
  return code;
}

static void *teller(void *number) {
  unsigned seed = (unsigned)(uintptr_t)number;
  struct client c = client_open(seed);
  int i;
  for (i = 0; i < transfers; i++) {
    int32_t from = rand_r(&seed) % ACCOUNTS;
    int32_t to = (from + 1 + rand_r(&seed) % (ACCOUNTS - 1)) % ACCOUNTS;
    int32_t amount = 1 + rand_r(&seed) % 100;
    xt_status code;
    while ((code = transfer(&c, from, to, amount)) == XT_DEADLOCK)
      __atomic_add_fetch(&deadlocks, 1, __ATOMIC_RELAXED);
    must(code, "transfer", c.session);
  }
  client_close(&c);
  return NULL;
}

static void *auditor(void *unused) {
  struct client c = client_open(100);
  do {
    uint8_t row[ROW];
    int32_t total = 0;
    begin(&c, XT_LOCK_NONE, 0);
    must(xt->scan_begin(c.table, 1), "scan_begin", c.session);
    while (xt->scan_next(c.table, row) == XT_OK) total += balance_of(row);
    commit(&c);
    if (total != ACCOUNTS * START) {
      fprintf(stderr, "the accounts hold %d\n", total);
      exit(1);
    }
    audits++;
  } while (__atomic_load_n(&open_for_business, __ATOMIC_RELAXED));
  client_close(&c);
  return unused;
}

static void found_the_bank(const char *datadir) {
  xt_session_config who = {sizeof who, XT_ISOLATION_REPEATABLE_READ, 1, NULL};
  xt_session *session;
  struct client c;
  char path[4096];
  int32_t id;
  snprintf(path, sizeof path, "%s/bank", datadir);
  mkdir(path, 0755);
  must(xt->session_open(engine, &who, &session), "session_open", NULL);
  must(xt->table_create(session, "bank/accounts", &def, NULL), "table_create", session);
  must(xt->session_close(session), "session_close", NULL);
  c = client_open(1);
  begin(&c, XT_LOCK_X, XT_USE_WRITE);
  for (id = 0; id < ACCOUNTS; id++) {
    uint8_t row[ROW] = {0};
    put(row, id, START);
    must(xt->insert_row(c.table, row), "insert_row", c.session);
  }
  commit(&c);
  client_close(&c);
}

int main(int argc, char **argv) {
  xt_host host = {sizeof host, XT_ABI_VERSION, NULL, NULL, no_collation, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  xt_engine_config config = {sizeof config, 0, argc > 2 ? argv[2] : NULL, NULL, 0, 0};
  void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  pthread_t threads[THREADS + 1];
  xtradb_api_fn *get;
  uintptr_t i;
  if (library == NULL) return fputs("usage: bank LIBRARY DIRECTORY [TRANSFERS]\n", stderr), 2;
  if (argc > 3) transfers = atoi(argv[3]);
  *(void **)&get = dlsym(library, "xtradb_api");
  xt = get(XT_ABI_MAJOR);
  must(xt->engine_create(&host, &engine), "engine_create", NULL);
  must(xt->engine_init(engine, &config), "engine_init", NULL);
  must(xt->engine_recovery_done(engine), "engine_recovery_done", NULL);
  found_the_bank(argv[2]);
  pthread_create(&threads[THREADS], NULL, auditor, NULL);
  for (i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, teller, (void *)(i + 1));
  for (i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  __atomic_store_n(&open_for_business, 0, __ATOMIC_RELAXED);
  pthread_join(threads[THREADS], NULL);
  printf("%d transfers, %d deadlocks, %d audits: the total is still %d\n", THREADS * transfers, deadlocks, audits,
         ACCOUNTS * START);
  must(xt->engine_deinit(engine, 10000), "engine_deinit", NULL);
  must(xt->engine_destroy(engine), "engine_destroy", NULL);
  return dlclose(library);
}
