#include <math.h>
#include "effects.h"
#include "linalg.h"

/* Returns the number of effects of the first grouping, which are eliminated. */
static int eliminated(const struct effects *e)
{
    return e->grouping->p * e->grouping->levels;
}

size_t effects_size(const struct effects *e)
{
    return stats_size(e->M, 0) + (size_t)e->m * e->q +
           (size_t)e->grouping->p * eliminated(e) + (size_t)e->q;
}

struct effect_sums effects_sums(const struct effects *e, const double *sums)
{
    const double *H = sums + stats_size(e->M, 0), *n = H + (size_t)e->m * e->q;
    return (struct effect_sums){H, n, n + (size_t)e->grouping->p * eliminated(e)};
}

int effects_row(const struct effects *e, const double *x, int ldx, int *column,
                double *value)
{
    int k = 0;
    for (int g = 0; g < e->n; g++) {
        const struct grouping *of = e->grouping + g;
        const double level = x[(size_t)of->column * ldx];
        const int known = level >= 1.0 && level <= of->levels;
        for (int j = 0; j < of->p; j++, k++) {
            column[k] = known ? of->first + ((int)level - 1) * of->p + j : -1;
            value[k] = of->design[j] < 0 ? 1.0 : x[(size_t)of->design[j] * ldx];
        }
    }
    return k;
}

/* Adds one row to H = sum F z', n = sum z_1 z_1' (by level) and r = sum z y. z = (z_1, z_2) is the row's design, z_1
 * for the first grouping. F = (a; z_2), a = L^{-1} k(Z, x), L L' = k(Z, Z). a and y are already multiplied by `scale`,
 * the root of the row's weight; `value`, the nonzero entries of z, is not. */
static void add_row(const struct effects *e, const double *a, double y, int entries,
                    const int *column, const double *value, double scale, double *H)
{
    const int q1 = eliminated(e), p = e->grouping->p;
    double *n = H + (size_t)e->m * e->q, *r = n + (size_t)p * q1;
    for (int i = 0; i < entries; i++) {
        if (column[i] < 0)
            continue;
        const double v = value[i] * scale;
        double *h = H + (size_t)column[i] * e->m;
        add_scaled((size_t)e->M, v, a, h);
        r[column[i]] += v * y;
        for (int j = 0; j < entries; j++) {
            if (column[j] >= q1)
                h[e->M + column[j] - q1] += v * value[j] * scale;
            else if (column[j] >= 0 && column[i] < q1)
                n[(size_t)column[i] * p + column[j] % p] += v * value[j] * scale;
        }
    }
}

static void add_block(const void *self, const struct visit *v)
{
    const struct effects *e = self;
    const struct block *b = &v->block;
    double *H = v->sums + stats_size(e->M, 0), *ys = v->work;
    int column[most_entries];
    double value[most_entries];
    stats_add(e->kernel, e->M, 0, b, v->A, NULL, v->work, v->sums);
    block_response(b, ys);
    for (int i = 0; i < b->n; i++) {
        const int entries = effects_row(e, b->X + i, b->ldx, column, value);
        add_row(e, v->A + (size_t)i * e->M, ys[i], entries, column, value,
                or_one(b->scale, i), H);
    }
}

struct sink effect_sums_sink(const struct effects *self, double *sums)
{
    return sum_sink(self, add_block, 2, 0, effects_size(self), sums);
}

/* ---- elimination of the effects of the first grouping ----------------------------------------- */

void level_products(int p, int levels, const int *start, const int *column,
                    const double *V, int size, double *S)
{
    for (int l = 0; l < levels; l++)
        for (int j = start[l]; j < start[l + 1]; j++) {
            double *to = S + (size_t)size * column[j];
            for (int i = j; i < start[l + 1]; i++)
                for (int a = 0; a < p; a++)
                    to[column[i]] += V[(size_t)p * i + a] * V[(size_t)p * j + a];
        }
}

size_t eliminate_size(const struct effects *e)
{
    return (size_t)e->m * e->m + (size_t)e->m + 2;
}

/* For a level with n = sum z z' over the design variables z of its rows, computes the Cholesky factor T (p x p) of I +
 * root'n root / s2, or NaN, and U = T^{-1} root'. root root' is the prior covariance of the level's effects. */
static void factor_level(int p, const double *n, const double *root, double s2, double *T,
                         double *U)
{
    mult_AB(p, p, p, 1.0 / s2, n, root, 0.0, U);
    mult_AtB(p, p, p, 1.0, root, U, 0.0, T);
    add_diagonal(p, 1.0, T);
    if (chol_lower(p, T))
        T[0] = NAN;
    for (int i = 0; i < p; i++)
        for (int j = 0; j < p; j++)
            U[(size_t)j * p + i] = root[(size_t)i * p + j];
    solve_lower(p, p, T, U);
}

static void eliminate_block(const void *self, const struct visit *v)
{
    const struct eliminating *to = self;
    const struct effects *e = to->effects;
    const int m = e->m, p = e->grouping->p;
    const size_t pp = (size_t)p * p, mp = (size_t)m * p;
    double *h = v->sums + (size_t)m * m, *rest = h + m, *T = v->work, *t = T + pp,
           *X = t + p;
    for (int i = 0; i < v->block.n; i++) {
        const size_t l = (size_t)(v->block.first + i);
        double *U = to->U + l * pp, *x = X + (size_t)i * mp;
        factor_level(p, to->from.n + l * pp, e->grouping->root, to->s2, T, U);
        mult_ABt(m, p, p, 1.0 / to->s2, to->from.H + l * mp, U, 0.0, x);
        mult_Ax(p, p, 1.0 / to->s2, U, to->from.r + l * p, 0.0, t);
        mult_Ax(m, p, 1.0, x, t, 1.0, h);
        rest[0] += sum_squares((size_t)p, t);
        rest[1] += chol_logdet(p, T);
    }
    add_A_At(m, v->block.n * p, X, v->sums);
}

struct sink eliminating_sink(const struct eliminating *self, double *sums)
{
    const size_t p = (size_t)self->effects->grouping->p;
    return sum_sink(self, eliminate_block, (size_t)self->effects->m * p, p * p + p,
                    eliminate_size(self->effects), sums);
}

static void solve_block(const void *self, const struct visit *v)
{
    const struct solving *to = self;
    const struct effects *e = to->effects;
    const int m = e->m, p = e->grouping->p, n = v->block.n;
    const size_t pp = (size_t)p * p, mp = (size_t)m * p, first = (size_t)v->block.first;
    double *V = v->work, *t = V + pp, *Y = t + p, *x = Y + mp;
    mult_AtB(m, m, n * p, 1.0 / to->s2, to->W, to->from.H + first * mp, 0.0, x);
    for (int i = 0; i < n; i++) {
        const size_t l = first + (size_t)i;
        const double *U = to->U + l * pp, *H = to->from.H + l * mp;
        double *b = to->b + l * p, *covariance = to->covariance + l * pp;
        mult_AtB(p, p, p, 1.0, U, U, 0.0, V);
        copy((size_t)p, to->from.r + l * p, t);
        mult_Atx(m, p, -1.0, H, to->gamma, 1.0, t);
        mult_Ax(p, p, 1.0 / to->s2, V, t, 0.0, b);
        mult_AB(m, p, p, 1.0, x + (size_t)i * mp, V, 0.0, Y);
        copy(pp, V, covariance);
        mult_AtB(p, m, p, 1.0, Y, Y, 1.0, covariance);
    }
}

struct sink solving_sink(const struct solving *self)
{
    const size_t p = (size_t)self->effects->grouping->p, m = (size_t)self->effects->m;
    return row_sink(self, solve_block, m * p, p * p + p + m * p);
}

/* Returns the prior variance of the row's effects of levels that the data lack: the sum of |Lam'z|^2 over the groupings
 * with such a level, where z are the design variables and Lam is the root of the effects' covariance. */
static double new_levels(const struct effects *e, const int *column, const double *value)
{
    double variance = 0.0;
    for (int g = 0; g < e->n; column += e->grouping[g].p, value += e->grouping[g].p, g++)
        for (int j = 0; j < e->grouping[g].p && *column < 0; j++) {
            const double *root = e->grouping[g].root + (size_t)j * e->grouping[g].p,
                         x = dot((size_t)e->grouping[g].p, root, value);
            variance += x * x;
        }
    return variance;
}

/* Completes F = (a; z_2) for a new row x with a = L^{-1} k(Z, x). Returns the posterior mean z'b of its effects b. Its
 * design z = (z_1, z_2) has z_1 for the first grouping. For the row's level l of this grouping, computes own = U_l z_1,
 * and subtracts H_l U_l'own / s2 from F. Given all other effects, those of the level have the posterior covariance
 * U_l'U_l. H_l is the weighted sum of F z_1' over the level's data rows. */
static double take_row(const struct effect_predicting *to, const double *x, int ldx,
                       double *F, double *own, double *unexplained)
{
    const struct solving *s = &to->of;
    const struct effects *e = s->effects;
    const int q1 = eliminated(e), p = e->grouping->p, m = e->m;
    int column[most_entries];
    double value[most_entries], mean = 0.0, back[most_entries];
    const int entries = effects_row(e, x, ldx, column, value);
    *unexplained += new_levels(e, column, value);
    fill((size_t)(m - e->M), 0.0, F + e->M);
    fill((size_t)p, 0.0, own);
    for (int i = 0; i < entries; i++) {
        if (column[i] >= 0)
            mean += value[i] * to->b[column[i]];
        if (column[i] >= q1)
            F[e->M + column[i] - q1] = value[i];
    }
    if (column[0] >= 0) {
        const double *U = s->U + (size_t)column[0] * p;
        mult_Ax(p, p, 1.0, U, value, 0.0, own);
        mult_Atx(p, p, 1.0, U, own, 0.0, back); /* U_l'U_l z_1 */
        mult_Ax(m, p, -1.0 / s->s2, s->from.H + (size_t)column[0] * m, back, 1.0, F);
    }
    return mean;
}

static void effect_predict_block(const void *self, const struct visit *v)
{
    const struct effect_predicting *to = self;
    const struct effects *e = to->of.effects;
    const struct block *b = &v->block;
    const int M = e->M, m = e->m, p = e->grouping->p, n = b->n;
    double *mean = to->mean + b->first, *variance = to->variance + b->first,
           *unexplained = to->unexplained + b->first, *F = v->work,
           *Y = to->features == NULL ? F + (size_t)m * n
                                     : to->features + (size_t)m * b->first;
    inducing_unexplained(to->z, b, v->A, unexplained);
    mult_Atx(M, n, 1.0, v->A, to->of.gamma, 0.0, mean);
    for (int i = 0; i < n; i++) {
        double unused[most_entries],
            *own = to->own == NULL ? unused : to->own + (size_t)p * (b->first + i);
        copy((size_t)M, v->A + (size_t)i * M, F + (size_t)i * m);
        mean[i] +=
            take_row(to, b->X + i, b->ldx, F + (size_t)i * m, own, unexplained + i);
        variance[i] = sum_squares((size_t)p, own);
    }
    mult_AtB(m, m, n, 1.0, to->of.W, F, 0.0, Y);
    for (int i = 0; i < n; i++)
        variance[i] += sum_squares((size_t)m, Y + (size_t)i * m);
}

struct sink effect_predicting_sink(const struct effect_predicting *self)
{
    return row_sink(self, effect_predict_block,
                    (size_t)self->of.effects->m * (self->features == NULL ? 2 : 1), 0);
}
