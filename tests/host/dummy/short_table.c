/* A library whose table of functions ends before version 1.0 does. */
#include <xtradb.h>

const xt_api *xtradb_api(uint32_t wanted_major)
{
    static const xt_api table = { .struct_size = 16, .abi_version = XT_ABI_VERSION };

    return wanted_major == XT_ABI_MAJOR ? &table : 0;
}
