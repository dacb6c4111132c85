#include <math.h>
#include "stats.h"
#include "linalg.h"

/* The sums are A A' (lower triangle), A y, A Wt' (A: whitened k(Z, X), Wt: values of auxiliary functions), y'y, the sum
 * of w k(x, x), that of w times residual prior variance, the number of rows, the sum of log w. w are row weights. */
enum { YY, K_SUM, T, ROWS, LOG_WEIGHTS, SCALARS };

size_t stats_size(int M, int q)
{
    return (size_t)M * M + M + (size_t)M * q + SCALARS;
}

void stats_add(const struct kernel *k, int M, int q, const struct block *b,
               const double *A, const double *Wt, double *work, double *sums)
{
    const int n = b->n;
    double *G = sums, *Ay = G + (size_t)M * M, *AW = Ay + M, *s = AW + (size_t)M * q;
    double *ys = work, *diagonal = work + n;

    block_response(b, ys);
    add_A_At(M, n, A, G);
    mult_Ax(M, n, 1.0, A, ys, 1.0, Ay);
    if (q > 0)
        mult_ABt(M, n, q, 1.0, A, Wt, 1.0, AW);
    s[YY] += sum_squares((size_t)n, ys);
    s[ROWS] += n;

    kernel_diagonal(k, rows_of(b), diagonal);
    for (int i = 0; i < n; i++) {
        const double w = weight_of(b->scale, i);
        s[K_SUM] += w * diagonal[i];
        s[T] += w * diagonal[i] - sum_squares((size_t)M, A + (size_t)i * M); /* E_ii */
        s[LOG_WEIGHTS] += b->scale == NULL ? 0.0 : 2.0 * log(b->scale[i]);
    }
}

enum status stats_finish(int M, int q, double *sums, struct stats *stats)
{
    const size_t size = stats_size(M, q) - SCALARS;
    const double *s = sums + size;
    double sum = s[YY] + s[K_SUM] + s[T];
    mirror_lower(M, sums);
    for (size_t i = 0; i < size; i++)
        sum += sums[i] * 0.0; /* NaN or Inf anywhere makes `sum` NaN */
    *stats = (struct stats){
        .M = M, .q = q, .G = sums, .yy = s[YY], .k_sum = s[K_SUM], .t = s[T]};
    stats->n = s[ROWS];
    stats->log_weights = s[LOG_WEIGHTS];
    stats->Ay = stats->G + (size_t)M * M;
    stats->AW = stats->Ay + M;
    return isfinite(sum) ? STATUS_OK : STATUS_NOT_FINITE;
}

size_t adjoint_size(int M, int q, int with_E)
{
    return (size_t)M * M * (with_E ? 3 : 2) + 2 * (size_t)M * q + 3 * (size_t)M + 1;
}

void adjoint_init(int M, int q, int with_E, double *memory, struct adjoint *adjoint)
{
    const size_t MM = (size_t)M * M, Mq = (size_t)M * q;
    fill(adjoint_size(M, q, with_E), 0.0, memory);
    adjoint->M = M;
    adjoint->q = q;
    adjoint->H = memory;
    adjoint->Kmm_bar = adjoint->H + MM;
    adjoint->F = adjoint->Kmm_bar + MM;
    adjoint->Wm_bar = adjoint->F + Mq;
    adjoint->f = adjoint->Wm_bar + Mq;
    adjoint->kzz_bar = adjoint->f + M;
    adjoint->beta = adjoint->kzz_bar + M;
    adjoint->k_bar = adjoint->beta + M;
    adjoint->E = with_E ? adjoint->k_bar + 1 : NULL;
}
