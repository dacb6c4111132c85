#include "posterior.h"
#include "linalg.h"

enum status posterior_factor(const struct stats *s, double s2, double *C, double *beta)
{
    const int M = s->M;
    copy((size_t)M * M, s->G, C);
    for (int m = 0; m < M; m++)
        C[(size_t)m * M + m] += s2;
    if (chol_lower(M, C))
        return STATUS_INNER_NOT_PD;
    copy((size_t)M, s->Ay, beta);
    solve_chol(M, 1, C, beta);
    return STATUS_OK;
}

void posterior_inverse(int M, const double *C, double *inverse)
{
    fill((size_t)M * M, 0.0, inverse);
    for (int m = 0; m < M; m++)
        inverse[(size_t)m * M + m] = 1.0;
    solve_chol(M, M, C, inverse);
}

void posterior_adjoint(const struct inducing *z, const struct stats *s, double s2,
                       const double *beta, double factor, double *work,
                       struct adjoint *adjoint)
{
    const int M = s->M;
    double *Lbar = work;
    mult_AB(M, M, M, -1.0, adjoint->H, s->G, 0.0, Lbar);
    add_xyt(M, M, -factor * s2, beta, beta, Lbar); /* A (y - A'beta) = s2 beta */
    solve_lower_t(M, M, z->L, Lbar);
    for (int j = 1; j < M; j++)
        fill((size_t)j, 0.0, Lbar + (size_t)j * M);
    chol_adjoint(M, z->L, Lbar, adjoint->Kmm_bar);

    solve_lower_t(M, M, z->L, adjoint->H);
    for (int m = 0; m < M; m++)
        adjoint->f[m] = factor * beta[m];
    solve_lower_t(M, 1, z->L, adjoint->f);
    adjoint->beta = beta;
}

void posterior_residual(int M, int n, const double *A, const double *beta,
                        const double *ys, double *e)
{
    if (e != ys)
        copy((size_t)n, ys, e);
    mult_Atx(M, n, -1.0, A, beta, 1.0, e);
}

void posterior_rows(const struct posterior *p, int n, const double *X, int ldx,
                    double *Ka, double *mean, double *sor_variance, double *unexplained)
{
    const int M = p->z.M;
    inducing_whiten(&p->z, n, NULL, Ka, Ka);
    mult_Atx(M, n, 1.0, Ka, p->beta, 0.0, mean);
    kernel_diagonal(p->z.kernel, n, X, ldx, unexplained);
    for (int i = 0; i < n; i++) {
        const double left = unexplained[i] - sum_squares((size_t)M, Ka + (size_t)i * M);
        unexplained[i] = left > 0.0 ? left : 0.0;
    }
    solve_lower(M, n, p->C, Ka);
    for (int i = 0; i < n; i++)
        sor_variance[i] = p->s2 * sum_squares((size_t)M, Ka + (size_t)i * M);
}

void posterior_covariance(const struct posterior *p, int n, const double *X, int ldx,
                          int sor, double *Ka, double *covariance)
{
    const int M = p->z.M;
    kernel_cross(p->z.kernel, n, X, ldx, n, X, ldx, covariance);
    inducing_whiten(&p->z, n, NULL, Ka, Ka);
    if (sor)
        fill((size_t)n * n, 0.0, covariance);
    else
        mult_AtB(n, M, n, -1.0, Ka, Ka, 1.0, covariance);
    solve_lower(M, n, p->C, Ka);
    mult_AtB(n, M, n, p->s2, Ka, Ka, 1.0, covariance);
    mirror_lower(n, covariance);
}
