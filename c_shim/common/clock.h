/* Time that only goes on. */
#ifndef XTRADB_CLOCK_H
#define XTRADB_CLOCK_H

#include <stdint.h>

/* Microseconds since some moment. */
uint64_t clock_us(void);

#endif
