#pragma once

/* An arena is scratch memory of the caller, which routines take in pieces. Only the main thread may take from it. */
#include <stddef.h>

struct arena {
    double *base;              /* memory of `size` doubles, used first; or NULL */
    size_t size, used;         /* `used` counts the doubles taken so far */
    double *(*more)(size_t n); /* allocates n more doubles; may raise an R error */
};

/* Rounds a number of doubles up to whole cache lines. */
static inline size_t whole_lines(size_t n)
{
    return (n + 7) / 8 * 8;
}

static inline double *arena_take(struct arena *arena, size_t n)
{
    const size_t before = arena->used;
    arena->used += whole_lines(n);
    return arena->used <= arena->size ? arena->base + before : arena->more(n);
}

static inline int *arena_ints(struct arena *arena, size_t n)
{
    return (int *)arena_take(arena,
                             (n * sizeof(int) + sizeof(double) - 1) / sizeof(double));
}
