#include <math.h>
#include "linalg.h"
#include "self_slopes.h"
#include "small.h"
#include "vecchia.h"

size_t vecchia_size(const struct kernel *k, int q)
{
    const size_t p = (size_t)k->n_theta + 1 + q;
    return p + p * p;
}

void vecchia_init(const struct kernel *k, int q, double *memory, struct vecchia *sum)
{
    sum->p = k->n_theta + 1 + q;
    sum->value = 0.0;
    sum->score = memory;
    sum->information = memory + sum->p;
    fill(vecchia_size(k, q), 0.0, memory);
}

size_t vecchia_row_size(const struct kernel *k, int q, int s)
{
    const size_t n = (size_t)s + 1, p = (size_t)k->n_theta + 1 + q;
    return 2 * n * n + n * (p + 2) + self_slopes_size(k, s + 1);
}

enum status vecchia_add(const struct kernel *k, int s, const double *X, const double *y,
                        const double *noise, const double *b, double times, int slopes,
                        double *work, struct vecchia *sum)
{
    const int n = s + 1, p = sum->p;
    double *K = work, *L = K + (size_t)n * n, *u = L + (size_t)n * n, *w = u + n;
    double *Q = w + n, *rest = Q + (size_t)n * p; /* Q: n x p, columns T_j u          */
    kernel_cross(k, n, X, n, n, X, n, K);         /* K = k(X, X), L = T               */
    copy((size_t)n * n, K, L);
    for (int j = 0; j < n; j++)
        L[(size_t)j * n + j] += noise[j];
    const double D = small_chol(n, s, L) ? 0.0 : L[(size_t)s * n + s];
    if (!(D > 0.0))
        return STATUS_EXACT_NOT_PD;
    for (int j = 0; j < s; j++) {
        u[j] = L[(size_t)j * n + s]; /* L_S^{-1} T_Si */
        w[j] = y[j];
    }
    small_solve_t(s, n, L,
                  u); /* z = T_SS^{-1} T_Si                                      */
    const double r = y[s] - dot((size_t)s, u, y);
    sum->value -= times * 0.5 * (log(2.0 * 3.14159265358979323846 * D) + r * r / D);
    if (!isfinite(sum->value))
        return STATUS_NOT_FINITE;
    if (!slopes)
        return STATUS_OK;
    for (int j = 0; j < s; j++)
        u[j] = -u[j];
    u[s] = 1.0;
    small_solve(s, n, L, w);
    small_solve_t(s, n, L,
                  w); /* w = T_SS^{-1} y_S                                       */
    self_slopes(k, n, X, n, K, u, rest, Q);
    const int q = p - k->n_theta - 1;
    double *of_noise = Q + (size_t)k->n_theta * n;
    for (int j = 0; j < n; j++)
        of_noise[j] = noise[j] * u[j];
    for (int l = 0; l < q; l++)
        for (int j = 0; j < n; j++)
            of_noise[(size_t)(l + 1) * n + j] = of_noise[j] * b[(size_t)l * n + j];

    for (int j = 0; j < p; j++) {
        double *q = Q + (size_t)j * n;
        const double u_q = dot((size_t)n, u, q);
        sum->score[j] +=
            times * ((r * r / D - 1.0) * u_q / (2.0 * D) + r / D * dot((size_t)s, w, q));
        small_solve(s, n, L,
                    q); /* (q)_S <- L_S^{-1} (q)_S                               */
        q[s] = u_q / sqrt(2.0 * D);
    }
    for (int j = 0; j < p; j++)
        for (int l = j; l < p; l++)
            sum->information[(size_t)j * p + l] +=
                times / D * dot((size_t)n, Q + (size_t)j * n, Q + (size_t)l * n);
    return STATUS_OK;
}
