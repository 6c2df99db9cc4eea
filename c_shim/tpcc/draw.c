#include "draw.h"

#include <stdio.h>

/* What splitmix64 makes of its state. */
static uint64_t scramble(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* All dice walk the same circle in the same steps: neighbouring seeds start far from each other, so that
   no thread repeats what another one draws. */
void dice_seed(dice *d, uint64_t seed)
{
    d->state = scramble(scramble(seed + 1) + 1);
}

/* splitmix64 */
uint64_t draw_bits(dice *d)
{
    return scramble(d->state += UINT64_C(0x9E3779B97F4A7C15));
}

int draw(dice *d, int low, int high)
{
    return low + (int)((draw_bits(d) >> 32) * (uint64_t)(high - low + 1) >> 32);
}

bool draw_percent(dice *d, int percent)
{
    return draw(d, 1, 100) <= percent;
}

int draw_uneven(dice *d, int a, int c, int low, int high)
{
    return ((draw(d, 0, a) | draw(d, low, high)) + c) % (high - low + 1) + low;
}

/* Clause 2.1.6.1: the constant for last names keeps a distance from the loader's. */
void dice_constants(dice *d, uint64_t seed, int load_c)
{
    dice own;
    int distance;

    dice_seed(&own, seed);
    do {
        d->last_name_c = draw(&own, 0, 255);
        distance = d->last_name_c > load_c ? d->last_name_c - load_c : load_c - d->last_name_c;
    } while (distance < 65 || distance > 119 || distance == 96 || distance == 112);
    d->customer_c = draw(&own, 0, 1023);
    d->item_c = draw(&own, 0, 8191);
}

uint32_t draw_text(dice *d, char *to, int shortest, int longest)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789AZ";
    int length = draw(d, shortest, longest);
    uint64_t bits = 0;

    for (int i = 0; i < length; i++, bits >>= 6) {
        if (i % 10 == 0)
            bits = draw_bits(d);
        to[i] = letters[bits & 63];
    }
    return (uint32_t)length;
}

uint32_t draw_digits(dice *d, char *to, int length)
{
    for (int i = 0; i < length; i++)
        to[i] = (char)('0' + draw(d, 0, 9));
    return (uint32_t)length;
}

void last_name(int number, char name[LAST_NAME_MAX + 1])
{
    static const char *const syllables[] = { "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI",
                                             "CALLY", "ATION", "EING" };

    snprintf(name, LAST_NAME_MAX + 1, "%s%s%s", syllables[number / 100 % 10],
             syllables[number / 10 % 10], syllables[number % 10]);
}
