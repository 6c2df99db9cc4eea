/*
 * A library with two INFORMATION_SCHEMA tables and no engine, to try loading, swapping and options
 * without one. TOY_VERSION is the version of the build. With PINNED it has a thread-local destructor
 * pending, so that it cannot leave memory once it was used.
 */
#include <string.h>

#include <xtradb.h>

#ifndef TOY_VERSION
#define TOY_VERSION "1.0"
#endif

static const xt_info_column columns[] = {
    { .name = "BUILD", .kind = XT_VALUE_STRING, .length = 16 },
};
static const xt_info_table table_a = { .struct_size = sizeof table_a, .name = "TOY_A",
                                       .columns = columns, .columns_count = 1 };
static const xt_info_table table_b = { .struct_size = sizeof table_b, .name = "TOY_B",
                                       .columns = columns, .columns_count = 1 };

#define PLUGIN(plugin_name, table)                                                              \
    { .struct_size = sizeof(xt_plugin), .kind = XT_PLUGIN_INFORMATION_SCHEMA,                   \
      .name = plugin_name, .description = "a toy", .author = "tests", .version = TOY_VERSION,   \
      .maturity = XT_MATURITY_STABLE, .licence = "GPL", .interface_version = XT_ABI_VERSION,    \
      .info_table = &table }

static xt_status plugins(const xt_plugin **list, uint32_t *count)
{
    static const xt_plugin all[] = { PLUGIN("TOY_A", table_a), PLUGIN("TOY_B", table_b) };

    *list = all;
    *count = 2;
    return XT_OK;
}

static xt_status settings(const xt_setting **list, uint32_t *count)
{
    static const xt_setting all[] = {
        { .struct_size = sizeof all[0], .type = XT_SETTING_BOOL, .name = "innodb_toy_on",
          .doc = "on or off", .default_value = "OFF" },
        { .struct_size = sizeof all[0], .type = XT_SETTING_UINT, .name = "innodb_toy_size",
          .doc = "one digit", .default_value = "1", .max = 9 },
        { .struct_size = sizeof all[0], .type = XT_SETTING_UINT, .name = "innodb_toy_speed",
          .doc = "one digit", .default_value = "1", .max = 9 },
    };

    *list = all;
    *count = 3;
    return XT_OK;
}

static xt_status setting_check(const char *name, const char *value, char *buffer, uint32_t size)
{
    if (strcmp(name, "innodb_toy_on") == 0 || strlen(value) == 1)
        return XT_OK;
    strncpy(buffer, "must be 0 to 9", size);
    return XT_SETTING_RANGE;
}

const xt_api *xtradb_api(uint32_t wanted_major)
{
    static const xt_api table = { .struct_size = sizeof table, .abi_version = XT_ABI_VERSION,
                                  .plugins = plugins, .settings = settings,
                                  .setting_check = setting_check };

    return wanted_major == XT_ABI_MAJOR ? &table : 0;
}
