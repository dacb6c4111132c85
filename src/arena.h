#ifndef PFDTC_ARENA_H
#define PFDTC_ARENA_H

/* One piece of memory cut up twice: with base == NULL the doubles are only counted. */
#include <stddef.h>

struct arena {
    double *base;
    size_t used;
};
double *arena_take(struct arena *arena, size_t n);
int *arena_ints(struct arena *arena, size_t n);

#endif
