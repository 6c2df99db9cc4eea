/* The smallest host: opens a data directory, creates a table, writes rows, reads them by key.
 *
 *   cc -Iinclude examples/smallest_host.c -o smallest_host -ldl
 *   ./smallest_host path/to/libxtradb.so path/to/an/empty/directory
 *
 * The table has two columns and one key:   id INT NOT NULL PRIMARY KEY, word VARCHAR(20) NULL
 * Its row image, as table.h describes it:  [null bits: 1][id: 4][word: 1 length + 20 data]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xtradb.h>

static const xt_api *xt;

static void log_line(void *ctx, uint32_t level, const char *text, uint32_t length) {
  (void)ctx;
  (void)length;
  fprintf(stderr, "engine [%u] %s\n", level, text);
}

/* One collation, bytes in order with trailing spaces ignored, is enough for a word list. */
static int32_t compare(const xt_collation *c, const uint8_t *a, uint32_t a_length,
                       const uint8_t *b, uint32_t b_length) {
  uint32_t i, longer = a_length > b_length ? a_length : b_length;
  (void)c;
  for (i = 0; i < longer; i++) {
    int x = i < a_length ? a[i] : ' ', y = i < b_length ? b[i] : ' ';
    if (x != y) return x - y;
  }
  return 0;
}

static uint32_t sort_key(const xt_collation *c, uint8_t *key, uint32_t size, const uint8_t *text,
                         uint32_t length) {
  (void)c;
  while (length > 0 && text[length - 1] == ' ') length--;
  if (length > size) length = size;
  memcpy(key, text, length);
  return length;
}

static const xt_collation *collation(void *ctx, uint32_t id) {
  static xt_collation latin1_bin = {sizeof latin1_bin, 47, "latin1_bin", NULL, 1, 1,
                                    XT_COLLATION_PAD_SPACE, ' ', compare, sort_key, NULL};
  (void)ctx;
  return id == 47 ? &latin1_bin : NULL;
}

static xt_session *session;

/* Ends the program when a call failed, with the session's own words. */
static void must(xt_status code, const char *what) {
  if (code == XT_OK) return;
  fprintf(stderr, "%s: code %d: %s\n", what, code, session ? xt->session_error(session) : "");
  exit(1);
}

static void put_row(uint8_t *row, int32_t id, const char *word) {
  memset(row, 0, 26);
  row[1] = (uint8_t)id;
  row[2] = (uint8_t)(id >> 8);
  row[3] = (uint8_t)(id >> 16);
  row[4] = (uint8_t)(id >> 24);
  if (word == NULL) {
    row[0] = 1; /* the null bit of `word` */
  } else {
    row[5] = (uint8_t)strlen(word);
    memcpy(row + 6, word, strlen(word));
  }
}

int main(int argc, char **argv) {
  static const xt_column columns[] = {
      {"id", 1, 4, 4, 63, XT_COLUMN_NOT_NULL, 0, 0, XT_TYPE_LONG, 0, 0, 0},
      {"word", 5, 21, 20, 47, 0, 0, 1, XT_TYPE_VARCHAR, 1, 0, 0}};
  static const xt_key_part parts[] = {{0, 4, 0}};
  static const xt_key keys[] = {{"PRIMARY", parts, 1, XT_KEY_PRIMARY | XT_KEY_UNIQUE}};
  const xt_table_def def = {sizeof def, 0, columns, keys, 2, 1, 26, 1};
  static const char *const settings[] = {"innodb_buffer_pool_size=32M"};
  xt_host host = {sizeof host, XT_ABI_VERSION, NULL, log_line, collation, NULL, NULL, NULL, NULL,
                  NULL, NULL, NULL};
  xt_session_config who = {sizeof who, XT_ISOLATION_REPEATABLE_READ, 1, NULL};
  xt_table_use use = {sizeof use, XT_LOCK_X, XT_WAIT_DEFAULT, 0, XT_USE_WRITE, 0};
  xt_engine_config config = {sizeof config, 0, NULL, settings, 1, 0};
  xt_engine *engine;
  xt_table *table;
  uint8_t row[26], key[4] = {2, 0, 0, 0};
  char path[4096], why[1000];
  void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  xtradb_api_fn *get;

  if (library == NULL) {
    fprintf(stderr, "usage: smallest_host LIBRARY DIRECTORY: %s\n", argc == 3 ? dlerror() : "");
    return 2;
  }
  *(void **)&get = dlsym(library, "xtradb_api");
  xt = get ? get(XT_ABI_MAJOR) : NULL;
  if (xt == NULL) {
    fprintf(stderr, "not a library of major version %u\n", XT_ABI_MAJOR);
    return 2;
  }
  must(xt->engine_create(&host, &engine), "engine_create");
  config.datadir = argv[2];
  if (xt->engine_init(engine, &config) != XT_OK) {
    xt->engine_error(engine, why, sizeof why);
    fprintf(stderr, "engine_init: %s\n", why);
    return 1;
  }
  xt->engine_recovery_done(engine);
  snprintf(path, sizeof path, "%s/shop", argv[2]);
  mkdir(path, 0755); /* databases are directories, and the host's business */

  must(xt->session_open(engine, &who, &session), "session_open");
  must(xt->table_create(session, "shop/words", &def, NULL), "table_create");
  must(xt->table_open(session, "shop/words", &def, 0, &table), "table_open");
  must(xt->statement_begin(session, XT_STATEMENT_AUTOCOMMIT), "statement_begin");
  must(xt->table_use(table, session, &use), "table_use");
  put_row(row, 1, "one");
  must(xt->insert_row(table, row), "insert_row");
  put_row(row, 2, "two");
  must(xt->insert_row(table, row), "insert_row");
  put_row(row, 3, NULL);
  must(xt->insert_row(table, row), "insert_row");

  must(xt->index_begin(table, 0, 1), "index_begin");
  must(xt->index_read(table, row, key, sizeof key, XT_FIND_KEY_OR_NEXT), "index_read");
  do {
    printf("%d %.*s\n", row[1], row[0] & 1 ? 4 : row[5], row[0] & 1 ? "NULL" : (char *)row + 6);
  } while (xt->index_next(table, row) == XT_OK);
  must(xt->index_end(table), "index_end");
  must(xt->table_release(table), "table_release");
  must(xt->statement_end(session), "statement_end");
  must(xt->trx_commit(session), "trx_commit");
  must(xt->table_close(table), "table_close");
  must(xt->session_close(session), "session_close");
  session = NULL;
  must(xt->engine_deinit(engine, 10000), "engine_deinit");
  must(xt->engine_destroy(engine), "engine_destroy");
  return dlclose(library);
}
