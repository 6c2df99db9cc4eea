/* Random numbers and texts as TPC-C draws them (clauses 2.1.6 and 4.3.2). */
#ifndef XTRADB_TPCC_DRAW_H
#define XTRADB_TPCC_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#define LAST_NAME_MAX 16

/* One for each thread. */
typedef struct dice {
    uint64_t state;
    int last_name_c, customer_c, item_c; /* NURand's constants for this run */
} dice;

void dice_seed(dice *d, uint64_t seed);
/* The constants of a run; `load_c` is the one that last names were loaded with. */
void dice_constants(dice *d, uint64_t seed, int load_c);

uint64_t draw_bits(dice *d);
/* Uniform, both ends included. */
int draw(dice *d, int low, int high);
bool draw_percent(dice *d, int percent);
/* NURand(a, low, high) with constant c. */
int draw_uneven(dice *d, int a, int c, int low, int high);
/* Letters and digits; returns the length. */
uint32_t draw_text(dice *d, char *to, int shortest, int longest);
uint32_t draw_digits(dice *d, char *to, int length);
/* The last name of a number 0..999, with a NUL. */
void last_name(int number, char name[LAST_NAME_MAX + 1]);

#endif
