/* Reads an INFORMATION_SCHEMA table of the library: its columns need no engine, its rows do.
 *
 *   cc -Iinclude examples/information_schema.c -o information_schema -ldl
 *   ./information_schema LIBRARY DIRECTORY [TABLE [ROWS_MAX]]
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <xtradb.h>

static const xt_api *xt;

/* This host knows no text but ASCII in tables that it never opens. */
static const xt_collation *no_collation(void *ctx, uint32_t id) {
  (void)ctx;
  (void)id;
  return NULL;
}

/* What the row callback gets as `ctx`. */
struct print {
  const xt_info_table *table;
  unsigned rows, rows_max;
};

static void print_value(const xt_info_column *column, const xt_value *value) {
  if (value->is_null) {
    printf("NULL");
    return;
  }
  switch (value->kind) {
    case XT_VALUE_INT: printf("%" PRId64, value->v.i); break;
    case XT_VALUE_DOUBLE: printf("%g", value->v.d); break;
    case XT_VALUE_STRING: printf("%.*s", (int)value->length, value->v.s); break;
    case XT_VALUE_ENUM: printf("%s", column->values[value->v.u]); break;
    default: printf("%" PRIu64, value->v.u); break;
  }
}

/* Returning anything but 0 ends the call with XT_CANCELLED. */
static uint32_t print_row(void *ctx, const xt_value *values, uint32_t count) {
  struct print *print = (struct print *)ctx;
  uint32_t i;
  if (print->rows == print->rows_max) return 1;
  print->rows++;
  for (i = 0; i < count; i++) {
    if (i > 0) putchar('\t');
    print_value(&print->table->columns[i], &values[i]);
  }
  putchar('\n');
  return 0;
}

/* Structs in arrays that the library gives are `struct_size` apart: a later one may be longer. */
static const xt_info_table *find_table(const char *name) {
  const xt_plugin *plugins;
  uint32_t count, i;
  if (xt->plugins(&plugins, &count) != XT_OK) return NULL;
  for (i = 0; i < count; i++) {
    const xt_plugin *plugin =
        (const xt_plugin *)((const char *)plugins + (size_t)i * plugins->struct_size);
    if (plugin->kind == XT_PLUGIN_INFORMATION_SCHEMA && strcasecmp(plugin->name, name) == 0)
      return plugin->info_table;
  }
  return NULL;
}

int main(int argc, char **argv) {
  xt_host host = {sizeof host, XT_ABI_VERSION, NULL, NULL, no_collation, NULL, NULL, NULL, NULL,
                  NULL, NULL, NULL};
  xt_engine_config config = {sizeof config, 0, NULL, NULL, 0, 0};
  const char *name = argc > 3 ? argv[3] : "INNODB_CMP";
  struct print print = {NULL, 0, argc > 4 ? (unsigned)atoi(argv[4]) : 1000000};
  xt_engine *engine;
  char why[1000];
  void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  xtradb_api_fn *get;
  xt_status status;
  uint32_t i;

  if (library == NULL) {
    fprintf(stderr, "usage: information_schema LIBRARY DIRECTORY [TABLE [ROWS_MAX]]\n");
    return 2;
  }
  *(void **)&get = dlsym(library, "xtradb_api");
  xt = get ? get(XT_ABI_MAJOR) : NULL;
  print.table = xt ? find_table(name) : NULL;
  if (print.table == NULL) {
    fprintf(stderr, "no table %s\n", name);
    return 1;
  }
  for (i = 0; i < print.table->columns_count; i++)
    printf("%s%s", i ? "\t" : "", print.table->columns[i].name);
  putchar('\n');

  config.datadir = argv[2];
  if (xt->engine_create(&host, &engine) != XT_OK) return 1;
  status = xt->engine_init(engine, &config);
  if (status == XT_OK) {
    status = xt->info_fill(engine, NULL, name, print_row, &print);
    if (status == XT_CANCELLED) {
      printf("... and more\n");
      status = XT_OK;
    }
    if (xt->engine_deinit(engine, 10000) != XT_OK) status = XT_GENERIC;
  }
  if (status != XT_OK) {
    xt->engine_error(engine, why, sizeof why);
    fprintf(stderr, "code %d: %s\n", status, why);
  }
  xt->engine_destroy(engine);
  dlclose(library);
  return status == XT_OK ? 0 : 1;
}
