#include "blas_threads.h"
#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"

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

SEXP ffi_linalg_own(SEXP lanes)
{
    return Rf_ScalarInteger(linalg_own(arg_count(lanes, "lanes")));
}

SEXP ffi_blas_threads(SEXP n)
{
    return Rf_ScalarInteger(blas_threads(arg_count(n, "n")));
}
