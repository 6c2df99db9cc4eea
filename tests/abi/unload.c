/* The library leaves memory: after use by several threads of the host, which live on. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>

#include "common.h"

static pthread_barrier_t gate;

static void use_it(void) {
  xt_engine *e = NULL;
  const xt_plugin *plugins;
  const xt_setting *settings;
  uint32_t count;
  xt_engine_config config = test_config();
  config.datadir = "/no/such/directory";
  OK(xt->plugins(&plugins, &count));
  OK(xt->settings(&settings, &count));
  OK(xt->engine_create(&host, &e));
  EXPECT(XT_IO, xt->engine_init(e, &config));
  OK(xt->engine_destroy(e));
}

static void *live_on(void *unused) {
  (void)unused;
  pthread_barrier_wait(&gate);
  use_it();
  pthread_barrier_wait(&gate);
  pthread_barrier_wait(&gate); /* the library goes meanwhile */
  return NULL;
}

static int count_mapped(struct dl_phdr_info *info, size_t size, void *name) {
  (void)size;
  return strstr(info->dlpi_name, (const char *)name) != NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[3];
  int round, i;
  load(argc, argv);
  dlclose(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD));
  for (round = 0; round < 3; round++) {
    void *library;
    xtradb_api_fn *get;
    pthread_barrier_init(&gate, NULL, 4);
    for (i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, live_on, NULL) == 0);
    pthread_barrier_wait(&gate);
    use_it();
    pthread_barrier_wait(&gate);
    /* `load` has one reference. */
    library = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
    CHECK(library != NULL);
    CHECK(dlclose(library) == 0 && dlclose(library) == 0);
    if (dl_iterate_phdr(count_mapped, (void *)"libxtradb") != 0) {
      fprintf(stderr, "round %d: the library is still mapped\n", round);
      return 1;
    }
    pthread_barrier_wait(&gate);
    for (i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&gate);
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    *(void **)&get = dlsym(library, "xtradb_api");
    xt = get(XT_ABI_MAJOR);
  }
  return 0;
}
