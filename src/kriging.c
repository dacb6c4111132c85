#include <float.h>
#include <math.h>
#include "kriging.h"
#include "linalg.h"

size_t kriging_size(int n_c, int g)
{
    return (size_t)n_c * n_c + (size_t)n_c * g;
}

void kriging_weights(int n_c, int g, double s2, double k_most, const double *K,
                     const double *k_S, const double *scale, const double *prior,
                     double *work, double *W, struct kriging *point)
{
    double *C = work, *KW = C + (size_t)n_c * n_c;
    double jitter = k_most * (n_c + 16.0) * DBL_EPSILON;
    int failed = chol_shifted(n_c, K, s2, C);
    for (int i = 0; i < 8 && failed; i++, jitter *= 10.0) /* any w will do */
        failed = chol_shifted(n_c, K, s2 + jitter, C);
    copy((size_t)n_c * g, k_S, W);
    if (failed)
        fill((size_t)n_c * g, 0.0, W);
    else
        solve_chol(n_c, g, C, W);
    for (size_t i = 0; i < (size_t)n_c * g; i++)
        if (!isfinite(W[i]))
            W[i] = 0.0;
    mult_AB(n_c, n_c, g, 1.0, K, W, 0.0, KW);
    for (int j = 0; j < g; j++) {
        const double *w = W + (size_t)j * n_c, *k = k_S + (size_t)j * n_c,
                     *Kw = KW + (size_t)j * n_c;
        double wh = 0.0, wk = 0.0, w1 = 0.0;
        for (int i = 0; i < n_c; i++) {
            wk += w[i] * k[i];
            wh += w[i] * (k[i] - Kw[i] - s2 * w[i]);
            w1 += (scale == NULL ? 1.0 : scale[i]) * fabs(w[i]);
        }
        point[j].J = prior[j] - wk - wh; /* (K + s2 I) w = k_x - h */
        point[j].wh = wh;
        point[j].ww = sum_squares((size_t)n_c, w);
        point[j].w1 = w1;
    }
}

void kriging_rows(int n, int n_c, int g, double s2, const double *K_b, int first,
                  const int *S, const double *W, double *H)
{
    mult_AB(n, n_c, g, -1.0, K_b, W, 1.0, H);
    for (int i = 0; i < n_c; i++) {
        const int row = S[i] - first;
        if (row >= 0 && row < n)
            for (int j = 0; j < g; j++)
                H[(size_t)j * n + row] -= s2 * W[(size_t)j * n_c + i];
    }
}

void kriging_whiten(int M, int n, int n_c, int g, const double *A_b, int first,
                    const int *S, const double *W, double *Aw)
{
    for (int i = 0; i < n_c; i++) {
        const int row = S[i] - first;
        if (row >= 0 && row < n)
            for (int j = 0; j < g; j++)
                add_scaled((size_t)M, W[(size_t)j * n_c + i], A_b + (size_t)row * M,
                           Aw + (size_t)j * M);
    }
}
