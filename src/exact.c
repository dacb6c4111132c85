#include <float.h>
#include "exact.h"
#include "linalg.h"

static const double log_2pi = 1.837877066409345483560659472811;

enum { columns_at_a_time = 256 };

void exact_begin(int n, double s2, const double *weights, double *K, double *alpha)
{
    for (int i = 0; i < n; i++) /* alpha: the diagonal, for exact_end */
        alpha[i] = K[(size_t)i * n + i] += weights == NULL ? s2 : s2 / weights[i];
}

int exact_columns(int n, int start, double *K)
{
    const int left = n - start,
              width = left < columns_at_a_time ? left : columns_at_a_time;
    return chol_columns(n, start, width, K) ? -1 : start + width;
}

enum status exact_end(int n, const double *y, double *K, double *alpha)
{
    if (chol_finish(n, K))
        return STATUS_EXACT_NOT_PD;
    for (int i = 0; i < n; i++) { /* a pivot that is nothing but rounding */
        const double pivot = K[(size_t)i * n + i];
        if (pivot * pivot <= 8.0 * DBL_EPSILON * alpha[i])
            return STATUS_EXACT_NOT_PD;
    }
    copy((size_t)n, y, alpha);
    solve_chol(n, 1, K, alpha);
    return STATUS_OK;
}

double exact_minus_evidence(int n, const double *L, const double *alpha, const double *y)
{
    return 0.5 * (n * log_2pi + chol_logdet(n, L) + dot((size_t)n, y, alpha));
}

void exact_adjoint(int n, const double *L, const double *alpha, double *K_bar)
{
    fill((size_t)n * n, 0.0, K_bar);
    for (int i = 0; i < n; i++)
        K_bar[(size_t)i * n + i] = 0.5;
    solve_chol(n, n, L, K_bar);
    add_xyt(n, n, -0.5, alpha, alpha, K_bar);
}

double exact_slope_noise(int n, double s2, const double *weights, const double *K_bar)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += K_bar[(size_t)i * n + i] * (weights == NULL ? s2 : s2 / weights[i]);
    return sum;
}

void exact_rows(const struct kernel *k, int n, const double *L, const double *alpha,
                int m, const double *X_new, int ldx, double *Ka, double *mean,
                double *variance)
{
    mult_Atx(n, m, 1.0, Ka, alpha, 0.0, mean);
    solve_lower(n, m, L, Ka);
    kernel_diagonal(k, m, X_new, ldx, variance);
    for (int i = 0; i < m; i++) {
        const double left = variance[i] - sum_squares((size_t)n, Ka + (size_t)i * n);
        variance[i] = left > 0.0 ? left : 0.0;
    }
}
