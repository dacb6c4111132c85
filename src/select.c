#include <math.h>
#include "select.h"
#include "linalg.h"

size_t select_size(int n, int most)
{
    return (size_t)most + n;
}

void select_start(struct select_state *s)
{
    s->m = 0;
    kernel_diagonal(s->kernel, s->n, s->X, s->ldx, s->E);
}

int select_step(struct select_state *s, double tolerance, double *work)
{
    const int n = s->n, m = s->m;
    double *row = work, *column = row + s->most;
    double prior, *a = s->A + (size_t)m * n;
    int best = 0;

    for (int i = 1; i < n; i++)
        if (s->E[i] > s->E[best])
            best = i;
    kernel_diagonal(s->kernel, 1, s->X + best, s->ldx, &prior);
    if (m >= s->most || !(s->E[best] > tolerance * prior))
        return 0;

    /* a = (k(X, x) - A A[best, ]') / sqrt(E[best]) */
    kernel_cross(s->kernel, n, s->X, s->ldx, 1, s->X + best, s->ldx, column);
    for (int j = 0; j < m; j++)
        row[j] = s->A[(size_t)j * n + best];
    copy((size_t)n, column, a);
    mult_Ax(n, m, -1.0, s->A, row, 1.0, a);

    const double root = sqrt(s->E[best]);
    double t = 0.0;
    for (int i = 0; i < n; i++) {
        a[i] /= root;
        const double left = s->E[i] - a[i] * a[i];
        /* a twin of the pivot is explained completely, whatever rounding says */
        s->E[i] = column[i] == prior || left < 0.0 ? 0.0 : left;
        t += s->E[i];
    }
    a[best] = root;
    s->pivot[m] = best;
    s->t[m] = t;
    s->m = m + 1;
    return 1;
}
