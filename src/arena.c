#include "arena.h"

double *arena_take(struct arena *arena, size_t n)
{
    const size_t before = arena->used;
    arena->used += (n + 7) / 8 * 8; /* pieces of whole cache lines */
    return arena->used <= arena->size ? arena->base + before : arena->more(n);
}

int *arena_ints(struct arena *arena, size_t n)
{
    return (int *)arena_take(arena,
                             (n * sizeof(int) + sizeof(double) - 1) / sizeof(double));
}
