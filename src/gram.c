#include "gram.h"
#include "linalg.h"

void pairs_kernel(const struct kernel *k, const struct block *b, const struct block *c,
                  double *K)
{
    kernel_cross(k, rows_of(c), rows_of(b), K);
    scale_columns(c->n, b->n, b->scale, K);
    scale_rows(c->n, b->n, c->scale, K);
}

void pairs_add(const struct kernel *k, const struct block *b, const struct block *c,
               int m, const double *P_c, double *K_cb, double *out_b)
{
    pairs_kernel(k, b, c, K_cb);
    if (m == 1) /* mult_AB() would copy K_cb into tiles */
        mult_Atx(c->n, b->n, 1.0, K_cb, P_c, 1.0, out_b);
    else
        mult_AB(m, c->n, b->n, 1.0, P_c, K_cb, 1.0, out_b);
}

/* pairs_add_both() processes this many rows of block b at a time. Their kernel values stay in the level 1 cache. */
enum { ROWS = 2 * STRIP_ROWS };

size_t pairs_both_size(int n_b, int n_c)
{
    return (size_t)min_int(n_b, ROWS) * n_c;
}

void pairs_add_both(const struct kernel *k, const struct block *b, const struct block *c,
                    int m, int ldp, const double *p_b, const double *p_c, double *work,
                    double *out_b, double *out_c)
{
    const int itself = b->first == c->first;
    for (int i = 0; i < b->n; i += ROWS) {
        const struct rows some = rows_tile(rows_of(b), i, ROWS);
        const int n = some.n;
        kernel_cross(k, rows_of(c), some, work);
        for (int r = 0; r < n; r += STRIP_ROWS)
            strip_products(linalg_lanes(), c->n, min_int(n - r, STRIP_ROWS),
                           work + (size_t)r * c->n, m, ldp, p_c,
                           itself ? NULL : p_b + i + r, out_c, out_b + i + r);
    }
}

void pairs_unexplained(const struct kernel *k, const struct block *b,
                       const struct block *c, int M, const double *A_b, const double *A_c,
                       double *E_cb)
{
    pairs_kernel(k, b, c, E_cb);
    mult_AtB(c->n, M, b->n, -1.0, A_c, A_b, 1.0, E_cb);
}

static void matrix_add(const void *self, const struct visit *v)
{
    const struct kernel_matrix *to = self;
    kernel_cross(to->kernel, to->points, rows_of(&v->block),
                 to->out + (size_t)v->block.first * to->points.n);
}

struct sink kernel_matrix_sink(const struct kernel_matrix *self)
{
    return row_sink(self, matrix_add, 0, 0);
}

/* Adds the part of K V from the pairs of rows of a block, and from those of this block and each earlier one. */
static void product_add(const void *self, const struct visit *v)
{
    const struct kernel_matvecs *to = self;
    const struct pass *pass = to->pass;
    const struct block *here = &v->block;
    double *scratch = v->work + pairs_both_size(pass->plan.block, pass->plan.block);
    for (int j = 0; j <= v->number; j++) {
        if ((v->number + j) % to->shares != to->share)
            continue;
        const struct block there = pass_block(pass, j, scratch);
        pairs_add_both(to->kernel, here, &there, to->m, pass->rows->N,
                       to->V + here->first, to->V + there.first, v->work,
                       v->sums + here->first, v->sums + there.first);
    }
}

struct sink kernel_matvecs_sink(const struct kernel_matvecs *self, double *KV)
{
    const int n = self->pass->plan.block;
    return sum_sink(self, product_add, 0,
                    pairs_both_size(n, n) + source_size(self->pass->rows, n),
                    (size_t)self->pass->rows->N * self->m, KV);
}

static void cross_matvec_add(const void *self, const struct visit *v)
{
    const struct kernel_cross_matvec *to = self;
    const struct source *others = to->others;
    double *out = to->out + v->block.first;
    fill((size_t)v->block.n, 0.0, out);
    for (int start = 0; start < others->N; start += to->block) {
        const int n = min_int(others->N - start, to->block);
        const struct block there =
            source_block(others, start, n, v->work + (size_t)to->block * to->block);
        pairs_add(to->kernel, &v->block, &there, 1, to->u + start, v->work, out);
    }
}

struct sink kernel_cross_matvec_sink(const struct kernel_cross_matvec *self)
{
    const int n = self->block;
    return row_sink(self, cross_matvec_add, 0,
                    (size_t)n * n + source_size(self->others, n));
}
