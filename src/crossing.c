#include "crossing.h"
#include "linalg.h"
#include "pairs.h"

/* sums: A e (M x n_new), |e|^2 [n_new] */
size_t crossing_size(const struct crossing_rows *self)
{
    return ((size_t)self->posterior->z.M + 1) * self->rows_new.n;
}

static void crossing_add(const void *self, const struct visit *v)
{
    const struct crossing_rows *c = self;
    const int M = c->posterior->z.M, n = c->rows_new.n, n_b = v->block.n;
    const struct kernel *k = c->posterior->z.model->kernel;
    double *E = v->work, *ee = v->sums + (size_t)M * n;
    pairs_unexplained(k, &c->rows_new, &v->block, M, c->a, v->A, E);
    mult_AB(M, n_b, n, 1.0, v->A, E, 1.0, v->sums);
    for (int j = 0; j < n; j++)
        ee[j] += sum_squares((size_t)n_b, E + (size_t)j * n_b);
}

struct sink crossing_sink(const struct crossing_rows *self, double *sums)
{
    const struct inducing *z = &self->posterior->z;
    const struct block *x = &self->rows_new;
    inducing_features(z, x, self->a);
    return sum_sink(self, crossing_add, (size_t)x->n, crossing_size(self), sums);
}

void crossing_finish(const struct crossing_rows *self, double *sums, double *cross,
                     double *gain, double *size)
{
    const struct posterior *p = self->posterior;
    const int M = p->z.M, n = self->rows_new.n;
    const size_t m = (size_t)M;
    double *Ae = sums, *ee = sums + m * n, *Cx = self->a;
    solve_lower(M, n, p->C, Ae); /* C^{-1} A e,  C^{-1} a */
    solve_lower(M, n, p->C, Cx);
    for (int j = 0; j < n; j++) {
        cross[j] = dot(m, Cx + m * j, Ae + m * j);
        gain[j] = (ee[j] - sum_squares(m, Ae + m * j)) / p->z.model->s2;
        size[j] = ee[j];
    }
}
