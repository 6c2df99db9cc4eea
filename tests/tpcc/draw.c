/* Dice of neighbouring seeds have nothing in common. */
#include "../../c_shim/tpcc/draw.c"

#include <stdlib.h>

enum { DICE = 128, DRAWS = 2000, ALL = DICE * DRAWS };

static int order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

int main(void)
{
    static uint64_t drawn[ALL];

    for (int i = 0; i < DICE; i++) {
        dice d = { 0 };

        dice_seed(&d, (uint64_t)i);
        for (int j = 0; j < DRAWS; j++)
            drawn[i * DRAWS + j] = draw_bits(&d);
    }
    qsort(drawn, ALL, sizeof drawn[0], order);
    for (int i = 1; i < ALL; i++)
        if (drawn[i] == drawn[i - 1]) {
            fprintf(stderr, "the same number was drawn twice\n");
            return 1;
        }
    return 0;
}
