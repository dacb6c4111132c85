#include "inducing.h"
#include "linalg.h"

enum status inducing_factor(struct inducing *z, double *L)
{
    const struct kernel *k = z->model->kernel;
    const struct rows Z = points_of(z);
    double diagonal;
    z->L = L;
    kernel_cross(k, Z, Z, L);
    for (int m = 0; m < z->M; m++) {
        kernel_diagonal(k, rows_from(Z, m, 1), &diagonal);
        L[(size_t)m * z->M + m] += z->jitter * (diagonal > 0.0 ? diagonal : 1.0);
    }
    return chol_lower(z->M, L) ? STATUS_KMM_NOT_PD : STATUS_OK;
}

enum status inducing_ladder(struct inducing *z, double most, double *L)
{
    enum status status = inducing_factor(z, L);
    while (status != STATUS_OK) {
        const double next = z->jitter > 0.0 ? 10.0 * z->jitter : 1e-15;
        if (next > most * (1.0 + 1e-9)) /* `next` is rounded */
            return status;
        z->jitter = next;
        status = inducing_factor(z, L);
    }
    return status;
}

void inducing_whiten(const struct inducing *z, int n, const double *scale,
                     const double *K, double *A)
{
    if (A != K)
        copy((size_t)z->M * n, K, A);
    if (z->L != NULL)
        solve_lower(z->M, n, z->L, A);
    scale_columns(z->M, n, scale, A);
}

void inducing_features(const struct inducing *z, const struct block *b, double *A)
{
    kernel_cross(z->model->kernel, points_of(z), rows_of(b), A);
    inducing_whiten(z, b->n, b->scale, A, A);
}

void inducing_unexplained(const struct inducing *z, const struct block *b,
                          const double *A, double *left)
{
    kernel_diagonal(z->model->kernel, rows_of(b), left);
    subtract_squares(z->M, b->n, A, left);
}
