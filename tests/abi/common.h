/* What the C tests of the interface share. Each is a program: LIBRARY DIRECTORY; 0 = all held. */
#ifndef TESTS_ABI_COMMON_H
#define TESTS_ABI_COMMON_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xtradb.h>

static const xt_api *xt;
static xt_engine *engine;
static xt_session *session;
static const char *datadir;

#define CHECK(condition)                                                                \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);    \
      fprintf(stderr, "session: %s\n", session ? xt->session_error(session) : "none");  \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)

/* The call must end with this code. */
#define EXPECT(code, call)                                                              \
  do {                                                                                  \
    xt_status got_ = (call);                                                            \
    if (got_ != (code)) {                                                               \
      char why_[1000] = "";                                                             \
      if (engine) xt->engine_error(engine, why_, sizeof why_);                          \
      fprintf(stderr, "%s:%d: %s: code %d instead of %s\nsession: %s\nengine: %s\n",    \
              __FILE__, __LINE__, #call, got_, #code,                                   \
              session ? xt->session_error(session) : "none", why_);                     \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)

#define OK(call) EXPECT(XT_OK, call)

static int32_t collation_compare(const xt_collation *c, const uint8_t *a, uint32_t a_length,
                                 const uint8_t *b, uint32_t b_length) {
  uint32_t i, longer = a_length > b_length ? a_length : b_length;
  (void)c;
  for (i = 0; i < longer; i++) {
    int x = i < a_length ? a[i] : ' ', y = i < b_length ? b[i] : ' ';
    if (x != y) return x - y;
  }
  return 0;
}

static uint32_t collation_sort_key(const xt_collation *c, uint8_t *key, uint32_t size,
                                   const uint8_t *text, uint32_t length) {
  (void)c;
  while (length > 0 && text[length - 1] == ' ') length--;
  if (length > size) length = size;
  memcpy(key, text, length);
  return length;
}

/* latin1_bin is known, everything else is not. */
static inline const xt_collation *host_collation(void *ctx, uint32_t id) {
  static xt_collation latin1_bin = {sizeof(xt_collation), 47, "latin1_bin", NULL, 1, 1,
                                    XT_COLLATION_PAD_SPACE, ' ', collation_compare,
                                    collation_sort_key, NULL};
  (void)ctx;
  return id == 47 ? &latin1_bin : NULL;
}

static unsigned lines_logged;

static inline void host_log(void *ctx, uint32_t level, const char *text, uint32_t length) {
  (void)ctx;
  if (level < XT_LOG_ERROR || level > XT_LOG_DEBUG || strlen(text) != length) abort();
  lines_logged++;
}

static xt_host host = {sizeof(xt_host), XT_ABI_VERSION, NULL, host_log, host_collation, NULL, NULL,
                       NULL, NULL, NULL, NULL, NULL};

static inline void load(int argc, char **argv) {
  void *library;
  xtradb_api_fn *get;
  if (argc != 3) exit(2);
  datadir = argv[2];
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  *(void **)&get = dlsym(library, "xtradb_api");
  xt = get(XT_ABI_MAJOR);
  if (xt == NULL) exit(2);
}

static inline xt_engine_config test_config(void) {
  static const char *const settings[] = {"innodb_buffer_pool_size=16M", "innodb-log-file-size=8M",
                                         "lock_wait_timeout=1"};
  xt_engine_config config = {sizeof(xt_engine_config), 0, NULL, settings, 3, 0};
  config.datadir = datadir;
  return config;
}

static inline xt_session *open_session(uint64_t id) {
  xt_session_config config = {sizeof(xt_session_config), XT_ISOLATION_REPEATABLE_READ, 0, NULL};
  xt_session *opened = NULL;
  config.connection_id = id;
  OK(xt->session_open(engine, &config, &opened));
  return opened;
}

/* Loads, starts an engine on the directory, makes a database `test`, opens `session`. */
static inline void start(int argc, char **argv) {
  xt_engine_config config;
  char path[4096];
  load(argc, argv);
  config = test_config();
  OK(xt->engine_create(&host, &engine));
  OK(xt->engine_init(engine, &config));
  OK(xt->engine_recovery_done(engine));
  snprintf(path, sizeof path, "%s/test", datadir);
  mkdir(path, 0755);
  session = open_session(1);
}

static inline void stop(void) {
  OK(xt->session_close(session));
  session = NULL;
  OK(xt->engine_deinit(engine, 10000));
  OK(xt->engine_destroy(engine));
}

/* ---- a table of two keys --------------------------------------------------------------------
 *
 *   id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NULL, KEY name (name),
 *   note BLOB NULL
 *   row: [null bits: 1][id: 4][name: 1 + 20][note: 2 + 8] = 36 bytes
 */
enum { ROW_BYTES = 36, NAME_NULL = 1, NOTE_NULL = 2 };

static const xt_column columns[] = {
    {"id", 1, 4, 4, 63, XT_COLUMN_NOT_NULL | XT_COLUMN_UNSIGNED | XT_COLUMN_AUTO_INCREMENT, 0, 0,
     XT_TYPE_LONG, 0, 0, 0},
    {"name", 5, 21, 20, 47, 0, 0, NAME_NULL, XT_TYPE_VARCHAR, 1, 0, 0},
    {"note", 26, 10, 0, 63, 0, 0, NOTE_NULL, XT_TYPE_BLOB, 2, 0, 0}};
static const xt_key_part id_part[] = {{0, 4, 0}};
static const xt_key_part name_part[] = {{1, 20, 0}};
static const xt_key keys[] = {{"PRIMARY", id_part, 1, XT_KEY_PRIMARY | XT_KEY_UNIQUE},
                              {"name", name_part, 1, 0}};
static const xt_table_def def = {sizeof(xt_table_def), 0, columns, keys, 3, 2, ROW_BYTES, 1};

static inline void make_row(uint8_t *row, uint32_t id, const char *name, const char *note,
                            uint16_t note_length) {
  memset(row, 0, ROW_BYTES);
  memcpy(row + 1, &id, 4);
  if (name == NULL) {
    row[0] |= NAME_NULL;
  } else {
    row[5] = (uint8_t)strlen(name);
    memcpy(row + 6, name, row[5]);
  }
  if (note == NULL) {
    row[0] |= NOTE_NULL;
  } else {
    memcpy(row + 26, &note_length, 2);
    memcpy(row + 28, &note, sizeof note);
  }
}

static inline uint32_t row_id(const uint8_t *row) {
  uint32_t id;
  memcpy(&id, row + 1, 4);
  return id;
}

static inline int row_has_name(const uint8_t *row, const char *name) {
  if (name == NULL) return (row[0] & NAME_NULL) != 0;
  return !(row[0] & NAME_NULL) && row[5] == strlen(name) && memcmp(row + 6, name, row[5]) == 0;
}

static inline int row_has_note(const uint8_t *row, const char *note, uint16_t length) {
  uint16_t has;
  const char *data;
  memcpy(&has, row + 26, 2);
  memcpy(&data, row + 28, sizeof data);
  if (note == NULL) return (row[0] & NOTE_NULL) != 0;
  return !(row[0] & NOTE_NULL) && has == length && memcmp(data, note, length) == 0;
}

static inline uint32_t name_key(uint8_t *key, const char *name) {
  memset(key, 0, 23);
  if (name == NULL) {
    key[0] = 1;
  } else {
    key[1] = (uint8_t)strlen(name);
    memcpy(key + 3, name, strlen(name));
  }
  return 23;
}

static inline xt_table *open_table(const char *name) {
  xt_table *table = NULL;
  OK(xt->table_open(session, name, &def, 0, &table));
  return table;
}

/* Begins a statement on the table. */
static inline void use(xt_table *table, uint32_t lock, uint32_t flags) {
  xt_table_use how = {sizeof(xt_table_use), 0, XT_WAIT_DEFAULT, 0, 0, 0};
  how.lock = lock;
  how.flags = flags;
  OK(xt->statement_begin(session, 0));
  OK(xt->table_use(table, session, &how));
}

static inline void end(xt_table *table) {
  OK(xt->table_release(table));
  OK(xt->statement_end(session));
}

/* Rows that a full scan of the table sees. */
static inline unsigned count_rows(xt_table *table) {
  uint8_t row[ROW_BYTES];
  unsigned rows = 0;
  xt_status status;
  use(table, XT_LOCK_NONE, 0);
  OK(xt->scan_begin(table, 1));
  while ((status = xt->scan_next(table, row)) == XT_OK) rows++;
  CHECK(status == XT_END_OF_FILE);
  OK(xt->scan_end(table));
  end(table);
  return rows;
}

#endif
