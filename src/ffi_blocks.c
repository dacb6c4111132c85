#include "ffi_blocks.h"

struct block plan_block(const struct plan *plan, const struct rows *rows, int b)
{
    const int start = b * plan->block, left = plan->N - start;
    struct block block;
    block.n = left < plan->block ? left : plan->block;
    block.first = start;
    block.X = rows->X + start;
    block.ldx = rows->N;
    block.y = rows->y == NULL ? NULL : rows->y + start;
    block.scale = rows->scale == NULL ? NULL : rows->scale + start;
    return block;
}
