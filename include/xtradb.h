/* xtradb.h - the C interface of the xtradb storage engine, version 1.
 *
 * libxtradb.so exports ONE symbol, `xtradb_api`. It returns a table of functions (xtradb/api.h);
 * everything else is reached through that table. C99 and C++11. These headers are written by hand
 * and are the source of truth: the Rust side is generated from them.
 *
 *   #include <xtradb.h>
 *   xtradb_api_fn *get = (xtradb_api_fn *)dlsym(library, "xtradb_api");
 *   const xt_api *xt = get(XT_ABI_MAJOR);
 *   if (xt == NULL) ...                              this library speaks another major version
 *   xt->engine_create(&host, &engine);               xtradb/host.h, xtradb/engine.h
 *   xt->engine_init(engine, &config);
 *   xt->session_open(engine, &session_config, &session);           xtradb/session.h
 *   xt->table_open(session, "shop/orders", &def, 0, &table);       xtradb/table.h
 *
 * Rules that hold everywhere
 *
 *   Structs   A struct whose first member is `struct_size` is set by its maker to sizeof(struct).
 *             Later minor versions append members; a shorter struct than version 1.0 had is refused
 *             (XT_SHORT_STRUCT). Reserved members are zero. Arrays of such structs that the
 *             library gives (plugins, settings) are `struct_size` of the first apart. Structs
 *             without `struct_size` never grow.
 *   Strings   `const char *` in: NUL-terminated UTF-8, copied before the call returns. Bytes that
 *             may hold a NUL come with a length. Strings out: each says how long they live.
 *   Results   Functions return an xt_status (xtradb/status.h). Out-parameters are written only on
 *             XT_OK, except where noted. The text of the last error: session_error, engine_error.
 *   Handles   Opaque. Each has one owner and one closing function. Closing NULL is allowed. A
 *             closed or foreign handle is answered with XT_BAD_HANDLE where that can be detected;
 *             it is a bug of the host all the same.
 *   Threads   `const` static data is free for all threads. A function's "Thread:" line is one of
 *               any      any thread, at any time while the handle is open;
 *               owner    one thread at a time per handle; it need not be the same thread each time,
 *                        the host orders the calls. A session and all tables bound to it count as
 *                        ONE handle for this rule;
 *               control  one thread at a time per engine: create, init, deinit, destroy.
 *   Fork      A child after fork() must not call the library.
 *   Panics    A bug inside the library is answered with XT_INTERNAL; the host lives. If pages may
 *             hold changes that the log does not know, the engine stops (XT_STOPPED from then on)
 *             and the next engine_init recovers.
 *   Codes     Besides the codes that a function lists, every one may return XT_NULL_ARGUMENT,
 *             XT_BAD_HANDLE, XT_SHORT_STRUCT, XT_INVALID, XT_WRONG_ORDER, XT_INTERNAL,
 *             XT_OUT_OF_MEMORY, and every one that needs a running engine XT_NOT_RUNNING and
 *             XT_STOPPED. Those are the "common codes".
 */
#ifndef XTRADB_H
#define XTRADB_H

#include "xtradb/api.h"

#endif /* XTRADB_H */
