#include "plugin_load.h"

#include <stddef.h>
#include <string.h>

/* Splits an item in place and hands it out. */
static bool hand_out(char *text, plugin_item_fn item, void *ctx)
{
    char *split = strpbrk(text, "=#");

    if (split == NULL)
        return item(ctx, NULL, text);
    *split = '\0';
    return item(ctx, text, split + 1);
}

plugin_list_end plugin_list_walk(const char *list, plugin_item_fn item, void *ctx)
{
    char text[PLUGIN_ITEM_MAX + 1];

    for (;;) {
        size_t length = strcspn(list, ";:");

        if (length > PLUGIN_ITEM_MAX)
            return PLUGIN_LIST_TOO_LONG;
        if (length > 0) {
            memcpy(text, list, length);
            text[length] = '\0';
            if (!hand_out(text, item, ctx))
                return PLUGIN_LIST_FAILED;
        }
        if (list[length] == '\0')
            return PLUGIN_LIST_DONE;
        list += length + 1;
    }
}
