#include "pairs.h"
#include "linalg.h"
#include "strip.h"

size_t pairs_size(int n_b, int n_c)
{
    return (size_t)n_b * n_c;
}

static const double *scaled_kernel(const struct kernel *k, const struct block *b,
                                   const struct block *c, double *work)
{
    double *K = work;
    kernel_cross(k, rows_of(c), rows_of(b), K);
    scale_columns(c->n, b->n, b->scale, K);
    scale_rows(c->n, b->n, c->scale, K);
    return K;
}

void pairs_add(const struct kernel *k, const struct block *b, const struct block *c,
               int m, const double *P_c, double *work, double *out_b)
{
    const double *K = scaled_kernel(k, b, c, work);
    mult_AB(m, c->n, b->n, 1.0, P_c, K, 1.0, out_b);
}

/* Takes this number of rows of b at a time, so that their kernel values stay in the nearest
 * cache. */
enum { ROWS = 2 * STRIP_ROWS };

size_t pairs_both_size(int n_b, int n_c)
{
    return pairs_size(n_b < ROWS ? n_b : ROWS, n_c);
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
            strip_products(linalg_lanes(), c->n, n - r < STRIP_ROWS ? n - r : STRIP_ROWS,
                           work + (size_t)r * c->n, m, ldp, p_c,
                           itself ? NULL : p_b + i + r, out_c, out_b + i + r);
    }
}

void pairs_unexplained(const struct kernel *k, const struct block *b,
                       const struct block *c, int M, const double *A_b, const double *A_c,
                       double *E_cb)
{
    scaled_kernel(k, b, c, E_cb);
    mult_AtB(c->n, M, b->n, -1.0, A_c, A_b, 1.0, E_cb);
}

double pairs_sum_squares(const struct kernel *k, const struct block *b,
                         const struct block *c, double *work)
{
    return sum_squares((size_t)b->n * c->n, scaled_kernel(k, b, c, work));
}
