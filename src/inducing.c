#include "inducing.h"
#include "linalg.h"

enum status inducing_factor(const struct inducing *z, double *work, double *L)
{
    const struct kernel *k = z->model->kernel;
    const int M = z->M;
    const double jitter = z->model->jitter;
    double *diagonal = work;
    kernel_cross(k, points_of(z), points_of(z), L);
    kernel_diagonal(k, points_of(z), diagonal);
    for (int m = 0; m < M; m++)
        L[(size_t)m * M + m] += jitter * (diagonal[m] > 0.0 ? diagonal[m] : 1.0);
    return chol_lower(M, L) ? STATUS_KMM_NOT_PD : STATUS_OK;
}

enum status inducing_ladder(struct model *model, const struct inducing *z, double most,
                            double *work, double *L)
{
    enum status status = inducing_factor(z, work, L);
    while (status != STATUS_OK) {
        const double next = model->jitter > 0.0 ? 10.0 * model->jitter : 1e-15;
        if (next > most)
            return status;
        model->jitter = next;
        status = inducing_factor(z, work, L);
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
