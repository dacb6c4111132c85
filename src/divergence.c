#include "divergence.h"
#include "linalg.h"
#include "gram.h"

/* Computes R (q x n) at a block's n rows: b_j of the auxiliary covariance p k + sum +-b_j b_j', and its mean minus y */
static void residual_rows(const struct divergence *d, const struct block *b, double *work,
                          double *R)
{
    const int q = d->panel.aux->q;
    copy((size_t)q * b->n, panel_rows(&d->panel, b, work), R);
    for (int i = 0; i < b->n; i++)
        R[(size_t)i * q + q - 1] -= or_one(b->scale, i) * b->y[i];
}

static double *kept_rows(const struct divergence *d, int b)
{
    return b < d->pass.kept ? d->R + (size_t)b * d->panel.aux->q * d->pass.plan.block
                            : NULL;
}

/* Returns R (q x n) of residual_rows(): the auxiliary b_j and mean minus y at a block, stored or computed in `work` */
static const double *find_rows(const struct divergence *d, const struct block *b,
                               double *work)
{
    const double *kept = kept_rows(d, b->first / d->pass.plan.block);
    if (kept != NULL)
        return kept;
    double *R = work + panel_size(&d->panel, b->n);
    residual_rows(d, b, work, R);
    return R;
}

/* Adds a block to the sums of struct stats, and to U (M x q) = A (W_x - A'T) for A = L^{-1} k(Z, X), L L' = k(Z, Z).
 * W_x has the b_j of the auxiliary covariance p k + sum_j +-b_j b_j', and its mean, at the rows; L T has them at Z. */
static void sums_add(const void *self, const struct visit *v)
{
    const struct divergence *d = self;
    const struct block *b = &v->block;
    const int M = d->z.M, q = d->panel.aux->q, n = b->n;
    double *left = v->work + 2 * (size_t)n, *scratch = left + (size_t)q * n,
           *kept = kept_rows(d, v->number);
    stats_add(d->z.model->kernel, M, 0, b, v->A, NULL, v->work, v->sums);
    copy((size_t)q * n, panel_rows(&d->panel, b, scratch), left);
    mult_AtB(q, M, n, -1.0, d->T, v->A, 1.0, left);
    mult_ABt(M, n, q, 1.0, v->A, left, 1.0, v->sums + stats_size(M, 0));
    if (kept != NULL)
        residual_rows(d, b, scratch, kept);
}

/* Adds the pairs of a row n of this block and any row m to sum (k^ + r r')_nm E_nm. aux has the covariance k^, r is its
 * mean minus y, and E = K - A'A with A = L^{-1} k(Z, X). If k^ contains k (aux->p = 1), also adds them to A E A'. */
static void pairs_block(const void *self, const struct visit *v)
{
    const struct divergence *d = self;
    const struct pass *pass = &d->pass;
    const struct lowrank *aux = d->panel.aux;
    const struct block *here = &v->block;
    const int M = d->z.M, q = aux->q;
    const size_t n = (size_t)pass->plan.block;
    double *R_signed = v->work, *A_c = R_signed + q * n, *AE = A_c + M * n,
           *E = AE + M * n, *moment = E + n * n, *scratch = moment + n * n,
           *rows = scratch + source_size(pass->rows, pass->plan.block);

    copy((size_t)q * here->n, find_rows(d, here, rows), R_signed);
    scale_rows(q, here->n, aux->sign, R_signed);
    fill((size_t)M * here->n, 0.0, AE);
    for (int c = 0; c < pass->plan.n_blocks; c++) {
        const struct block there = pass_block(pass, c, scratch);
        const size_t size = (size_t)here->n * there.n;
        const double *A = pass_A(pass, &there, A_c), *R_c = find_rows(d, &there, rows);
        pairs_unexplained(d->z.model->kernel, here, &there, M, v->A, A, E);
        if (aux->p) { /* p K in the moment k^ + r r' is p (E + A_c'A_b) */
            copy(size, E, moment);
            mult_AtB(there.n, M, here->n, 1.0, A, v->A, 1.0, moment);
            mult_AB(M, there.n, here->n, 1.0, A, E, 1.0, AE);
        }
        mult_AtB(there.n, q, here->n, 1.0, R_c, R_signed, aux->p ? 1.0 : 0.0, moment);
        v->sums[0] += dot(size, moment, E);
    }
    if (aux->p)
        mult_ABt(M, here->n, M, 1.0, AE, v->A, 1.0, v->sums + 1);
}

/* Adds pairs of a row n of this block and any row m to sum (k^ + r r')_nm K_nm. aux has covariance k^, mean y + r. */
static void constant_block(const void *self, const struct visit *v)
{
    const struct divergence *d = self;
    const struct pass *pass = &d->pass;
    const struct lowrank *aux = d->panel.aux;
    const struct block *here = &v->block;
    const size_t n = (size_t)pass->plan.block;
    double *out = v->work, *pair = out + (size_t)aux->q * n, *scratch = pair + n * n,
           *rows = scratch + source_size(pass->rows, pass->plan.block);
    fill((size_t)aux->q * here->n, 0.0, out);
    for (int c = 0; c < pass->plan.n_blocks; c++) {
        const struct block there = pass_block(pass, c, scratch);
        pairs_add(aux->kernel, here, &there, aux->q, find_rows(d, &there, rows), pair,
                  out);
        if (aux->p)
            v->sums[0] += sum_squares((size_t)here->n * there.n, pair);
    }
    const double *R = find_rows(d, here, rows);
    for (int i = 0; i < here->n; i++)
        for (int j = 0; j < aux->q; j++)
            v->sums[0] +=
                aux->sign[j] * out[(size_t)i * aux->q + j] * R[(size_t)i * aux->q + j];
}

static void open_rows(struct divergence *d)
{
    const int q = d->panel.aux->q;
    d->pass.rows = &d->rows;
    d->pass.again = 1;
    d->pass.beside = q;
    pass_open(&d->pass);
    d->R = arena_take(d->pass.plan.arena, (size_t)d->pass.kept * q * d->pass.plan.block);
}

/* Returns a sink whose function `add` is called with each block, and reads all blocks to form pairs of rows. */
static struct sink pairs_sink(const struct divergence *d, sink_add *add, size_t n_sums,
                              double *sums)
{
    const size_t n = (size_t)d->pass.plan.block, M = (size_t)d->z.M,
                 q = (size_t)d->panel.aux->q;
    return sum_sink(d, add, 2 * (q + M + n) + panel_size(&d->panel, 1),
                    source_size(d->pass.rows, d->pass.plan.block), n_sums, sums);
}

enum status divergence_value(struct divergence *d, double *value)
{
    const struct lowrank *aux = d->panel.aux;
    const int M = d->z.M, q = aux->q;
    const size_t m = (size_t)M, of_rows = stats_size(M, 0), of_pairs = aux->p ? m * m : 0;
    struct arena *arena = d->pass.plan.arena;
    double *L = arena_take(arena, m * m), *sums = arena_take(arena, of_rows + m * q),
           *pairs = arena_take(arena, 1 + of_pairs);
    struct stats stats;
    enum status status = inducing_factor(&d->z, L);
    if (status != STATUS_OK)
        return status;
    d->pass.z = &d->z;
    d->T = arena_take(arena, m * q);
    lowrank_points(aux, &d->z, arena_take(arena, m * aux->n_u), d->T);
    open_rows(d);
    pass_run(&d->pass, sum_sink(d, sums_add, 2 + q + panel_size(&d->panel, 1), 0,
                                of_rows + m * q, sums));
    pass_run(&d->pass, pairs_sink(d, pairs_block, 1 + of_pairs, pairs));
    status = stats_finish(M, 0, sums, &stats);
    if (status == STATUS_OK)
        status = pf_transfer(&d->z, &stats, aux, sums + of_rows, pairs + 1, arena, value);
    *value += pairs[0];
    return status;
}

double divergence_constant(struct divergence *d)
{
    double constant;
    open_rows(d);
    pass_run(&d->pass, pairs_sink(d, constant_block, 1, &constant));
    return constant;
}
