#include <math.h>
#include "linalg.h"
#include "simd.h"
#include "small.h"

/* y -= sum_k c[k ldc] x_k over the columns x_k of X, ldx apart; y and x_k from `first` on */
INSIDE void subtract_columns(int first, int n, int columns, const double *X, int ldx,
                             const double *c, int ldc, double *restrict y)
{
    int k = 0;
    for (; k + 4 <= columns; k += 4) {
        const double *restrict x0 = X + (size_t)k * ldx, *restrict x1 = x0 + ldx,
                               *restrict x2 = x1 + ldx, *restrict x3 = x2 + ldx;
        const double *ck = c + (size_t)k * ldc;
        const double c0 = ck[0], c1 = ck[(size_t)ldc], c2 = ck[2 * (size_t)ldc],
                     c3 = ck[3 * (size_t)ldc];
        SIMD
        for (int i = first; i < n; i++)
            y[i] -= (c0 * x0[i] + c1 * x1[i]) + (c2 * x2[i] + c3 * x3[i]);
    }
    for (; k < columns; k++) {
        const double *restrict x = X + (size_t)k * ldx, ck = c[(size_t)k * ldc];
        SIMD
        for (int i = first; i < n; i++)
            y[i] -= ck * x[i];
    }
}

CLONES int small_chol(int n, int columns, double *A)
{
    for (int j = 0; j < n; j++) {
        double *column = A + (size_t)j * n;
        subtract_columns(j, n, j < columns ? j : columns, A, n, A + j, n, column);
        if (j >= columns)
            continue;
        if (!(column[j] > 0.0) || !isfinite(column[j]))
            return 1;
        const double rate = 1.0 / sqrt(column[j]);
        column[j] = rate;
        for (int i = j + 1; i < n; i++)
            column[i] *= rate;
    }
    return 0;
}

CLONES void small_solve_t(int s, int n, const double *L, double *b)
{
    for (int j = s - 1; j >= 0; j--) {
        const double *column = L + (size_t)j * n;
        b[j] = (b[j] - dot((size_t)(s - 1 - j), column + j + 1, b + j + 1)) * column[j];
    }
}
