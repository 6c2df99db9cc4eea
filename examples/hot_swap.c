/* Hot swap: replaces the engine by another build under a running program, again and again, on the
 * same data. A thread of the host uses every build and outlives them all.
 *
 *   cc -pthread -Iinclude examples/hot_swap.c -o hot_swap -ldl
 *   ./hot_swap LIBRARY DIRECTORY ROUNDS [OTHER_LIBRARY]
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xtradb.h>

static const xt_collation *no_collation(void *ctx, uint32_t id) {
  (void)ctx;
  (void)id;
  return NULL;
}

static xt_host host = {sizeof host, XT_ABI_VERSION, NULL, NULL, no_collation, NULL, NULL, NULL,
                       NULL, NULL, NULL, NULL};

/* The main thread and the worker take turns at this gate, twice a round. */
static pthread_barrier_t gate;
static const xt_api *xt; /* NULL: no more rounds */
static xt_engine *engine;
static int worker_failed;

static void *worker(void *unused) {
  xt_session_config who = {sizeof who, XT_ISOLATION_REPEATABLE_READ, 7, NULL};
  (void)unused;
  for (;;) {
    xt_session *session;
    pthread_barrier_wait(&gate);
    if (xt == NULL) return NULL;
    worker_failed |= xt->session_open(engine, &who, &session) != XT_OK ||
                     xt->trx_begin(session, XT_TRX_CONSISTENT_SNAPSHOT) != XT_OK ||
                     xt->trx_commit(session) != XT_OK || xt->session_close(session) != XT_OK;
    pthread_barrier_wait(&gate);
  }
}

static int fail(const char *what, int round) {
  char why[1000] = "";
  if (xt != NULL) xt->engine_error(engine, why, sizeof why);
  fprintf(stderr, "round %d: %s: %s\n", round, what, why);
  return 1;
}

/* One life of one build; 0 = it went well and is gone. */
static int one_life(const char *path, const char *datadir, int round) {
  xt_engine_config config = {sizeof config, 0, NULL, NULL, 0, 0};
  xt_session_config who = {sizeof who, XT_ISOLATION_REPEATABLE_READ, 1, NULL};
  xt_session *session;
  const xt_plugin *plugins;
  uint32_t count;
  xtradb_api_fn *get;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fail(dlerror(), round);
  *(void **)&get = dlsym(library, "xtradb_api");
  xt = get(XT_ABI_MAJOR);
  if (xt == NULL || xt->plugins(&plugins, &count) != XT_OK) return fail("api", round);
  if (xt->engine_create(&host, &engine) != XT_OK) return fail("create", round);
  config.datadir = datadir;
  if (xt->engine_init(engine, &config) != XT_OK) return fail("init", round);
  xt->engine_recovery_done(engine);
  printf("round %d: %s %s\n", round, plugins->name, plugins->version);

  pthread_barrier_wait(&gate); /* the worker works */
  pthread_barrier_wait(&gate);
  if (worker_failed) return fail("the worker failed", round);

  /* While a session is open the engine stays: an error that says who, and a retry works. */
  if (xt->session_open(engine, &who, &session) != XT_OK) return fail("session", round);
  if (xt->engine_deinit(engine, 0) != XT_BUSY) return fail("deinit with a session", round);
  if (xt->session_close(session) != XT_OK) return fail("session_close", round);
  if (xt->engine_deinit(engine, 10000) != XT_OK) return fail("deinit", round);
  if (xt->engine_destroy(engine) != XT_OK) return fail("destroy", round);
  xt = NULL;
  dlclose(library);
  if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL) return fail("the old build stays", round);
  return 0;
}

int main(int argc, char **argv) {
  pthread_t thread;
  int round, failed = 0;
  if (argc < 4) {
    fprintf(stderr, "usage: hot_swap LIBRARY DIRECTORY ROUNDS [OTHER_LIBRARY]\n");
    return 2;
  }
  pthread_barrier_init(&gate, NULL, 2);
  if (pthread_create(&thread, NULL, worker, NULL) != 0) return 1;
  for (round = 1; round <= atoi(argv[3]) && !failed; round++)
    failed = one_life(argc > 4 && round % 2 == 0 ? argv[4] : argv[1], argv[2], round);
  if (failed) return 1; /* the worker may stand at the gate: no join */
  xt = NULL;
  pthread_barrier_wait(&gate);
  pthread_join(thread, NULL);
  printf("%d rounds, no build left behind\n", round - 1);
  return 0;
}
