#include "lowrank.h"
#include "linalg.h"

void lowrank_rows(const struct lowrank *nu, int n, const double *scale, const double *K_u,
                  double *Wt)
{
    mult_AtB(nu->q, nu->n_u, n, 1.0, nu->W, K_u, 0.0, Wt);
    scale_columns(nu->q, n, scale, Wt);
}

void lowrank_points(const struct lowrank *nu, int M, const double *Z, double *K_zu,
                    double *Wm)
{
    kernel_cross(nu->kernel, M, Z, M, nu->n_u, nu->U, nu->n_u, K_zu);
    mult_AB(M, nu->n_u, nu->q, 1.0, K_zu, nu->W, 0.0, Wm);
}

size_t lowrank_pull_size(const struct lowrank *nu, int M)
{
    return (size_t)M * nu->n_u + kernel_size(nu->kernel, M);
}

void lowrank_pull(const struct lowrank *nu, int M, const double *Z, const double *K_zu,
                  const double *Wm_bar, double *work, double *dZ)
{
    double *K_bar = work, *rest = work + (size_t)M * nu->n_u;
    mult_ABt(M, nu->q, nu->n_u, 1.0, Wm_bar, nu->W, 0.0, K_bar); /* Wm_bar W' */
    kernel_pull(nu->kernel, M, Z, M, nu->n_u, nu->U, nu->n_u, K_zu, K_bar, rest, dZ,
                NULL);
}
