#include <math.h>
#include "pass.h"
#include "linalg.h"

struct plan plan_for(const struct plan *like, int n, int block)
{
    struct plan plan = *like;
    plan.N = n;
    plan.block = block > n ? (n > 0 ? n : 1) : block;
    plan.n_blocks = n / plan.block + (n % plan.block > 0);
    if (plan.threads > plan.n_blocks)
        plan.threads = plan.n_blocks > 0 ? plan.n_blocks : 1;
    return plan;
}

/* ---- memory for a block's matrices: kept for later passes, or the thread's own --------------- */

static size_t matrix_size(const struct pass *p)
{
    return p->z == NULL ? 0 : (size_t)p->z->M * p->plan.block;
}

/* Returns the number of doubles for a block's features A, its K = k(Z, X_b) if a sink reads K, and scales with FITC. */
static size_t made_size(const struct pass *p)
{
    return (p->wants_K ? 2 : 1) * matrix_size(p) + (p->fitc ? (size_t)p->plan.block : 0);
}

static size_t thread_size(const struct pass *p)
{
    const size_t made = p->kept < p->plan.n_blocks ? made_size(p) : 0;
    return made + (p->rows ? source_size(p->rows, p->plan.block) : 0);
}

void pass_open(struct pass *p)
{
    const size_t each = made_size(p) + (size_t)p->beside * p->plan.block,
                 fit = p->plan.memory / sizeof(double);
    if (p->opened)
        return;
    p->opened = 1;
    if (p->again && p->z != NULL)
        while (p->kept < p->plan.n_blocks && (size_t)(p->kept + 1) * each <= fit)
            p->kept++;
    p->memory = arena_take(p->plan.arena, (size_t)p->kept * made_size(p));
    p->thread = arena_take(p->plan.arena, (size_t)p->plan.threads * thread_size(p));
}

struct block pass_block(const struct pass *p, int b, double *scratch)
{
    const int start = b * p->plan.block, left = p->plan.N - start,
              n = min_int(left, p->plan.block);
    if (p->rows == NULL)
        return (struct block){.n = n, .first = start};
    return source_block(p->rows, start, n, scratch);
}

/* A block of rows X_b has K = k(Z, X_b) and A = L^{-1} K diag(scale), L L' = k(Z, Z). `scale` is stored with FITC; else
 * it is the roots of the row weights. If no sink reads K, A overwrites K. */
struct made {
    double *K, *A, *scale;
};

static struct made made_of(const struct pass *p, int b, int slot)
{
    double *K = b < p->kept ? p->memory + (size_t)b * made_size(p)
                            : p->thread + (size_t)slot * thread_size(p);
    double *A = p->wants_K ? K + matrix_size(p) : K;
    return (struct made){K, A, A + matrix_size(p)};
}

/* Computes K = k(Z, X_b) and A = L^{-1} K diag(scale) for a block, L L' = k(Z, Z). `scale` has the roots of row weights
 * w or, with FITC, sqrt(w s2 / (s2 + w E)) for the noise variance s2 and the row's residual prior variance E. */
static void make(const struct pass *p, const struct block *b, const struct made *to)
{
    kernel_cross(p->z->model->kernel, points_of(p->z), rows_of(b), to->K);
    inducing_whiten(p->z, b->n, p->fitc ? NULL : b->scale, to->K, to->A);
    if (!p->fitc)
        return;
    inducing_unexplained(p->z, b, to->A, to->scale);
    for (int i = 0; i < b->n; i++) {
        const double w = weight_of(b->scale, i), s2 = p->z->model->s2;
        to->scale[i] = sqrt(w * s2 / (s2 + w * to->scale[i]));
    }
    scale_columns(p->z->M, b->n, to->scale, to->A);
}

const double *pass_A(const struct pass *p, const struct block *b, double *A)
{
    const int number = b->first / p->plan.block;
    if (p->made && number < p->kept)
        return made_of(p, number, 0).A;
    inducing_features(p->z, b, A);
    return A;
}

/* Returns the number of doubles that a thread needs for its sums and scratch. */
static size_t stride_of(const struct pass *p)
{
    const struct sink *s = &p->sink;
    return whole_lines(s->n_sums) +
           whole_lines(s->per_row * (size_t)p->plan.block + s->more);
}

/* Returns the sums of thread i or, if the sink has its own sums for each block, of block i. */
static double *sums_of(const struct pass *p, int i)
{
    if (i == 0)
        return p->sink.sums;
    return p->sink.by_block ? p->block_sums + (size_t)i * p->sink.n_sums
                            : p->work + (size_t)i * stride_of(p);
}

static void visit_block(const struct pass *p, int b, int slot)
{
    const struct made made = made_of(p, b, slot);
    double *scratch = p->thread + (size_t)(slot + 1) * thread_size(p) -
                      (p->rows ? source_size(p->rows, p->plan.block) : 0);
    struct visit v = {.number = b, .block = pass_block(p, b, scratch)};
    if (p->z != NULL) {
        v.K = made.K;
        v.A = made.A;
        if (!(p->made && b < p->kept))
            make(p, &v.block, &made);
    }
    if (p->fitc)
        v.block.scale = made.scale;
    v.sums = sums_of(p, p->sink.by_block ? b : slot);
    v.work = p->work + (size_t)slot * stride_of(p) + whole_lines(p->sink.n_sums);
    p->sink.add(p->sink.self, &v);
}

/* Visits all blocks. Each thread gets a few consecutive blocks, because entering a parallel region may cost more than
 * computing a small block. */
static void visit_all(const struct pass *p)
{
    const struct plan *plan = &p->plan;
    const int share = (plan->n_blocks + plan->threads - 1) / plan->threads;
    const int chunk = plan->threads == 1 ? 1 : min_int(share, 4);
    for (int first = 0; first < plan->n_blocks; first += plan->threads * chunk) {
        if (plan->interrupt != NULL)
            plan->interrupt();
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1)                                             \
    num_threads(plan->threads) if (plan->threads > 1)
#endif
        for (int i = 0; i < plan->threads; i++)
            for (int b = first + i * chunk; b < first + (i + 1) * chunk; b++)
                if (b < plan->n_blocks)
                    visit_block(p, b, i);
    }
}

void pass_run(struct pass *p, struct sink sink)
{
    p->sink = sink;
    pass_open(p);
    const size_t n_work = (size_t)p->plan.threads * stride_of(p);
    if (n_work > p->n_work) {
        p->work = arena_take(p->plan.arena, n_work);
        p->n_work = n_work;
    }
    const int n =
        sink.by_block && p->plan.n_blocks > 0 ? p->plan.n_blocks : p->plan.threads;
    if (sink.by_block)
        p->block_sums = arena_take(p->plan.arena, (size_t)n * sink.n_sums);
    for (int i = p->goes_on ? 1 : 0; i < n; i++)
        fill(sink.n_sums, 0.0, sums_of(p, i));
    visit_all(p);
    for (int i = 1; i < n; i++)
        add_scaled(sink.n_sums, 1.0, sums_of(p, i), sink.sums);
    p->made = 1;
}
