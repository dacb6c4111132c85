#include "crossing.h"
#include "linalg.h"
#include "pairs.h"

struct crossing_rows {
    const struct posterior *posterior;
    const struct block *x;
    const double *a; /* L^{-1} k(Z, x) */
};

/* sums: A e (M x n_new), |e|^2 [n_new] */
static void crossing_add(const void *self, const struct visit *v)
{
    const struct crossing_rows *c = self;
    const int M = c->posterior->z.M, n = c->x->n, n_b = v->block.n;
    const struct kernel *k = c->posterior->z.model->kernel;
    double *E = v->work, *ee = v->sums + (size_t)M * n;
    pairs_unexplained(k, c->x, &v->block, M, c->a, v->A, E);
    mult_AB(M, n_b, n, 1.0, v->A, E, 1.0, v->sums);
    for (int j = 0; j < n; j++)
        ee[j] += sum_squares((size_t)n_b, E + (size_t)j * n_b);
}

void crossing_run(const struct posterior *p, const struct block *x, struct pass *pass,
                  double *cross, double *gain, double *size)
{
    const int M = p->z.M, n = x->n;
    const size_t m = (size_t)M;
    double *Ae = arena_take(pass->plan.arena, (m + 1) * n), *ee = Ae + m * n,
           *Cx = arena_take(pass->plan.arena, m * n);
    const struct crossing_rows self = {p, x, Cx};
    inducing_features(&p->z, x, Cx);
    pass_run(pass, sum_sink(&self, crossing_add, (size_t)n, 0, (m + 1) * n, Ae));
    solve_lower(M, n, p->C, Ae); /* C^{-1} A e,  C^{-1} a */
    solve_lower(M, n, p->C, Cx);
    for (int j = 0; j < n; j++) {
        cross[j] = dot(m, Cx + m * j, Ae + m * j);
        gain[j] = (ee[j] - sum_squares(m, Ae + m * j)) / p->z.model->s2;
        size[j] = ee[j];
    }
}
