#include "block.h"
#include <stddef.h>

void block_response(const struct block *b, double *ys)
{
    for (int i = 0; i < b->n; i++)
        ys[i] = b->scale == NULL ? b->y[i] : b->scale[i] * b->y[i];
}
