/* A library with a plugin of another interface version. */
#include <xtradb.h>

static xt_status plugins(const xt_plugin **list, uint32_t *count)
{
    static const xt_plugin all[] = {
        { .struct_size = sizeof all[0], .kind = XT_PLUGIN_INFORMATION_SCHEMA, .name = "OLD_TABLE",
          .description = "", .author = "", .version = "9", .licence = "GPL",
          .interface_version = 9u << 16 },
    };

    *list = all;
    *count = 1;
    return XT_OK;
}

const xt_api *xtradb_api(uint32_t wanted_major)
{
    static const xt_api table = { .struct_size = sizeof table, .abi_version = XT_ABI_VERSION,
                                  .plugins = plugins };

    return wanted_major == XT_ABI_MAJOR ? &table : 0;
}
