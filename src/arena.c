#include "arena.h"

double *arena_take(struct arena *arena, size_t n)
{
    double *piece = arena->base == NULL ? NULL : arena->base + arena->used;
    arena->used += (n + 7) / 8 * 8; /* pieces of whole cache lines */
    return piece;
}

int *arena_ints(struct arena *arena, size_t n)
{
    return (int *)arena_take(arena,
                             (n * sizeof(int) + sizeof(double) - 1) / sizeof(double));
}
