#include "inducing.h"
#include "linalg.h"

enum status inducing_factor(const struct kernel *k, int M, const double *Z, double jitter,
                            double *work, double *L)
{
    double *diagonal = work;
    kernel_cross(k, M, Z, M, M, Z, M, L);
    kernel_diagonal(k, M, Z, M, diagonal);
    for (int m = 0; m < M; m++)
        L[(size_t)m * M + m] += jitter * (diagonal[m] > 0.0 ? diagonal[m] : 1.0);
    return chol_lower(M, L) ? STATUS_KMM_NOT_PD : STATUS_OK;
}

enum status inducing_ladder(const struct kernel *k, int M, const double *Z, double most,
                            double *work, double *jitter, double *L)
{
    enum status status = inducing_factor(k, M, Z, *jitter, work, L);
    while (status != STATUS_OK) {
        const double next = *jitter > 0.0 ? 10.0 * *jitter : 1e-15;
        if (next > most)
            return status;
        *jitter = next;
        status = inducing_factor(k, M, Z, next, work, L);
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
