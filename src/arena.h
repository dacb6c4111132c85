#ifndef PFDTC_ARENA_H
#define PFDTC_ARENA_H

/* Memory from above, in pieces that live as long as who gives it says.  Never taken in threads. */
#include <stddef.h>

struct arena {
    double *base;      /* given beforehand: `size` doubles, which go first, or NULL */
    size_t size, used; /* used: all that was asked for */
    double *(*more)(size_t n); /* beyond them; may not return */
};
double *arena_take(struct arena *arena, size_t n);
int *arena_ints(struct arena *arena, size_t n);

#endif
