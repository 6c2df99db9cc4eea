/* The table of SQL functions. */
#ifndef XTRADB_HOST_FUNC_H
#define XTRADB_HOST_FUNC_H

#include "exec.h"

/* args: evaluated; unless NULL_OK is set none is NULL when the function runs. */
typedef struct value (*sql_function)(struct scope *sc, const struct expr *e, struct value *args,
                                     uint32_t count);
enum { FUNC_NULL_OK = 1, FUNC_VOLATILE = 2, FUNC_LAZY = 4 /* evaluates its arguments itself */ };

struct function {
    const char *name;
    sql_function call;
    uint8_t min, max;
    uint8_t flags;
};
extern const struct function string_functions[], number_functions[], time_functions[],
    misc_functions[];

/* Text of an argument in the arena; numbers become utf8mb4 text. */
struct value func_text(struct scope *sc, const struct value *v);
int64_t func_int(const struct value *v);

#endif
