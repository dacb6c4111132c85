#include <math.h>
#include "softmax_rows.h"
#include "linalg.h"

struct class_rows class_rows_in(const struct softmax *l, const struct visit *v,
                                double *work)
{
    const int n = v->block.n;
    struct class_rows r;
    r.p = l->p + (size_t)v->block.first * l->K;
    r.mean = work;
    r.g = r.mean + (size_t)l->q * n;
    r.rest = r.g + (size_t)l->q * n;
    return r;
}

void class_contrasts(const struct softmax *l, const double *x, double *y)
{
    mult_Atx(l->K, l->q, 1.0, l->contrasts, x, 0.0, y);
}

void class_rows_complete(const struct softmax *l, int row, int i, struct class_rows *r)
{
    const int class = (int)l->y[row];
    double *mean = r->mean + (size_t)i * l->q, *g = r->g + (size_t)i * l->q;
    class_contrasts(l, r->p + (size_t)i * l->K, mean);
    for (int j = 0; j < l->q; j++)
        g[j] =
            or_one(l->weight, row) * (l->contrasts[class + (size_t)j * l->K] - mean[j]);
}

struct class_rows class_rows_again(const struct softmax *l, const struct visit *v,
                                   double *work)
{
    struct class_rows r = class_rows_in(l, v, work);
    for (int i = 0; i < v->block.n; i++)
        class_rows_complete(l, v->block.first + i, i, &r);
    return r;
}

void class_curvature(const struct softmax *l, const struct visit *v,
                     const struct class_rows *r, int j, int k, double *W)
{
    const double *Cj = l->contrasts + (size_t)j * l->K,
                 *Ck = l->contrasts + (size_t)k * l->K;
    for (int i = 0; i < v->block.n; i++) {
        const double *p = r->p + (size_t)i * l->K, mean = r->mean[(size_t)i * l->q + k];
        double sum = 0.0;
        for (int a = 0; a < l->K; a++)
            sum += p[a] * Cj[a] * (Ck[a] - mean);
        W[i] = or_one(l->weight, v->block.first + i) * sum;
    }
}

double class_row(const struct softmax *l, int row, const double *phi, double *p)
{
    double top = -INFINITY, sum = 0.0;
    mult_Ax(l->K, l->q, 1.0, l->contrasts, phi, 0.0, p);
    for (int k = 0; k < l->K; k++) {
        p[k] += l->center[k];
        top = p[k] > top ? p[k] : top;
    }
    const double own = p[(int)l->y[row]] - top;
    for (int k = 0; k < l->K; k++)
        sum += p[k] = exp(p[k] - top);
    for (int k = 0; k < l->K; k++)
        p[k] /= sum;
    return or_one(l->weight, row) * (own - log(sum));
}
