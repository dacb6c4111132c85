#pragma once

/* Memory that the caller gives, from which pieces are taken.  Threads never take from it. */
#include <stddef.h>

struct arena {
    double *base;              /* `size` doubles that are used first, or NULL */
    size_t size, used;         /* used: doubles taken so far */
    double *(*more)(size_t n); /* gives further memory; may not return */
};
double *arena_take(struct arena *arena, size_t n);
int *arena_ints(struct arena *arena, size_t n);
