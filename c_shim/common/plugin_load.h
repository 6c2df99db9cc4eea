/*
 * The grammar of --plugin-load and --plugin-load-add.
 *
 *   list := item { (";" | ":") item }     empty items are skipped, white space belongs to the name
 *   item := name ("=" | "#") soname       one plugin of a library
 *         | soname                        every plugin of a library
 *
 * Only the first "=" or "#" of an item splits it. The parser knows nothing of libraries: it hands
 * each item to a callback, and the first item that fails ends the list.
 */
#ifndef XTRADB_COMMON_PLUGIN_LOAD_H
#define XTRADB_COMMON_PLUGIN_LOAD_H

#include <stdbool.h>

/* Longest item, in bytes, separators not counted. */
#define PLUGIN_ITEM_MAX 511

/*
 * Called for each item. `name` is NULL when the whole library is meant. Both strings live until
 * the callback returns. False: the item failed (the callback has said why), stop here.
 */
typedef bool (*plugin_item_fn)(void *ctx, const char *name, const char *soname);

/* Why a list ended early. */
typedef enum plugin_list_end {
    PLUGIN_LIST_DONE,     /* every item was handed out */
    PLUGIN_LIST_FAILED,   /* the callback said stop */
    PLUGIN_LIST_TOO_LONG, /* an item is longer than PLUGIN_ITEM_MAX */
} plugin_list_end;

plugin_list_end plugin_list_walk(const char *list, plugin_item_fn item, void *ctx);

#endif
