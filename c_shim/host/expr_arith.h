#ifndef XTRADB_HOST_EXPR_ARITH_H
#define XTRADB_HOST_EXPR_ARITH_H

#include "exec.h"

struct value arith_eval(struct scope *sc, const struct expr *e, const struct value *a,
                        const struct value *b);
struct value arith_negate(struct scope *sc, const struct expr *e, const struct value *v);
struct value arith_bit_not(const struct value *v);
struct value cast_eval(struct scope *sc, const struct expr *e, const struct value *v);

#endif
