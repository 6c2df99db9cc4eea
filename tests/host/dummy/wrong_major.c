/* A library of another major version: it answers NULL to ours. */
#include <xtradb.h>

const xt_api *xtradb_api(uint32_t wanted_major)
{
    static const xt_api table = { .struct_size = sizeof table };

    return wanted_major == XT_ABI_MAJOR + 1 ? &table : 0;
}
