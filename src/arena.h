#pragma once

/* Memory that the caller gives, from which pieces are taken.  Threads never take from it. */
#include <stddef.h>

struct arena {
    double *base;              /* `size` doubles that are used first, or NULL */
    size_t size, used;         /* used: doubles taken so far */
    double *(*more)(size_t n); /* gives further memory; may not return */
};

static inline double *arena_take(struct arena *arena, size_t n)
{
    const size_t before = arena->used;
    arena->used += (n + 7) / 8 * 8; /* pieces of whole cache lines */
    return arena->used <= arena->size ? arena->base + before : arena->more(n);
}

static inline int *arena_ints(struct arena *arena, size_t n)
{
    return (int *)arena_take(arena,
                             (n * sizeof(int) + sizeof(double) - 1) / sizeof(double));
}
