#include <stdint.h>
#include "blas_threads.h"
#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"

struct plan plan_blocks(SEXP control, int N)
{
    struct plan plan;
    plan.N = N;
    plan.threads = arg_integer(list_get(control, "threads"), "threads");
    plan.block = arg_integer(list_get(control, "block"), "block");
    plan.parallel_blocks =
        arg_integer(list_get(control, "parallel_blocks"), "parallel_blocks");
    const double memory = arg_number(list_get(control, "memory"), "memory");
    if (plan.threads < 1 || plan.block < 1)
        Rf_error("internal: `threads` and `block` must be at least 1");
    if (!(memory >= 0.0))
        Rf_error("internal: `memory` must be at least 0");
    plan.memory = memory < (double)(SIZE_MAX / 2) ? (size_t)memory : SIZE_MAX / 2;
#ifndef _OPENMP
    plan.threads = 1;
#endif
    if (plan.block > N)
        plan.block = N > 0 ? N : 1;
    plan.n_blocks = N / plan.block + (N % plan.block > 0);
    if (plan.threads > plan.n_blocks)
        plan.threads = plan.n_blocks > 0 ? plan.n_blocks : 1;
    return plan;
}

struct block plan_block(const struct plan *plan, const struct rows *rows, int b)
{
    const int start = b * plan->block, left = plan->N - start;
    struct block block;
    block.n = left < plan->block ? left : plan->block;
    block.X = rows->X + start;
    block.ldx = rows->N;
    block.y = rows->y == NULL ? NULL : rows->y + start;
    block.scale = rows->scale == NULL ? NULL : rows->scale + start;
    return block;
}

static void run_one(int n_steps, const struct step *steps, void *context, int b, int slot)
{
    for (int s = 0; s < n_steps; s++)
        steps[s].run(context, b, slot);
}

/* Whole blocks in parallel, a few in a row to a slot: entering a parallel region costs more
 * than a small block on a busy machine. */
static void run_in_parallel(const struct plan *plan, int n_steps,
                            const struct step *steps, void *context)
{
    const int share = (plan->n_blocks + plan->threads - 1) / plan->threads;
    const int chunk = share < 4 ? share : 4;
    for (int first = 0; first < plan->n_blocks; first += plan->threads * chunk) {
        R_CheckUserInterrupt();
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(plan->threads)
#endif
        for (int i = 0; i < plan->threads; i++)
            for (int b = first + i * chunk; b < first + (i + 1) * chunk; b++)
                if (b < plan->n_blocks)
                    run_one(n_steps, steps, context, b, i);
    }
}

/* Steps that only evaluate kernels in parallel, the BLAS outside, with its own threads. */
static void run_in_waves(const struct plan *plan, int n_steps, const struct step *steps,
                         void *context)
{
    for (int first = 0; first < plan->n_blocks; first += plan->threads) {
        const int left = plan->n_blocks - first;
        const int wave = left < plan->threads ? left : plan->threads;
        R_CheckUserInterrupt();
        for (int s = 0; s < n_steps; s++) {
            if (steps[s].calls_blas) {
                for (int i = 0; i < wave; i++)
                    steps[s].run(context, first + i, i);
            } else {
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(wave)
#endif
                for (int i = 0; i < wave; i++)
                    steps[s].run(context, first + i, i);
            }
        }
    }
}

void run_blocks(const struct plan *plan, int n_steps, const struct step *steps,
                void *context)
{
    if (plan->threads == 1) {
        for (int b = 0; b < plan->n_blocks; b++) {
            R_CheckUserInterrupt();
            run_one(n_steps, steps, context, b, 0);
        }
    } else if (plan->parallel_blocks) {
        run_in_parallel(plan, n_steps, steps, context);
    } else {
        run_in_waves(plan, n_steps, steps, context);
    }
}

SEXP ffi_linalg_own(SEXP lanes)
{
    return Rf_ScalarInteger(linalg_own(arg_count(lanes, "lanes")));
}

SEXP ffi_blas_threads(SEXP n)
{
    return Rf_ScalarInteger(blas_threads(arg_count(n, "n")));
}
