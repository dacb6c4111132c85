#include "arena.h"

double *arena_take(struct arena *arena, size_t n)
{
    double *piece = arena->base == NULL ? NULL : arena->base + arena->used;
    arena->used += (n + 7) / 8 * 8; /* pieces of whole cache lines */
    return piece;
}
