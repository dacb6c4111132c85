#include "divergence.h"
#include "linalg.h"
#include "pairs.h"

/* ---- R = W_x' - y' of a block --------------------------------------------------------------- */

/* scratch: panel_size() */
static void residual_rows(const struct divergence *d, const struct block *b, double *work,
                          double *R)
{
    const int q = d->panel.aux->q;
    copy((size_t)q * b->n, panel_rows(&d->panel, b, work), R);
    for (int i = 0; i < b->n; i++)
        R[(size_t)i * q + q - 1] -= (b->scale == NULL ? 1.0 : b->scale[i]) * b->y[i];
}

static double *kept_rows(const struct divergence *d, int b)
{
    return b < d->pass.kept ? d->R + (size_t)b * d->panel.aux->q * d->pass.plan.block
                            : NULL;
}

/* of a block that is kept, or made now; scratch: panel_size() and q n */
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

static size_t rows_size(const struct divergence *d)
{
    const int n = d->pass.plan.block;
    return panel_size(&d->panel, n) + (size_t)d->panel.aux->q * n;
}

/* ---- sums over the rows ---------------------------------------------------------------------- */

/* sums: those of stats.h, U (M x q) = A (W_x - A'T) */
static void sums_add(const void *self, const struct visit *v)
{
    const struct divergence *d = self;
    const struct block *b = &v->block;
    const int M = d->z.M, q = d->panel.aux->q, n = b->n;
    double *left = v->work + 2 * (size_t)n, *room = left + (size_t)q * n,
           *kept = kept_rows(d, v->number);
    stats_add(d->z.model->kernel, M, 0, b, v->A, NULL, v->work, v->sums);
    copy((size_t)q * n, panel_rows(&d->panel, b, room), left);
    mult_AtB(q, M, n, -1.0, d->T, v->A, 1.0, left);
    mult_ABt(M, n, q, 1.0, v->A, left, 1.0, v->sums + stats_size(M, 0));
    if (kept != NULL)
        residual_rows(d, b, room, kept);
}

/* sums: (I), V (M x M) = A E A' where p = 1 */
static void pairs_block(const void *self, const struct visit *v)
{
    const struct divergence *d = self;
    const struct pass *pass = &d->pass;
    const struct lowrank *aux = d->panel.aux;
    const struct block *here = &v->block;
    const int M = d->z.M, q = aux->q;
    const size_t n = (size_t)pass->plan.block;
    double *R_signed = v->work, *A_c = R_signed + q * n, *AE = A_c + M * n,
           *E = AE + M * n, *moment = E + n * n, *room = moment + n * n,
           *rows = room + source_size(pass->rows, pass->plan.block);

    copy((size_t)q * here->n, find_rows(d, here, rows), R_signed);
    for (int i = 0; i < here->n; i++)
        for (int j = 0; j < q; j++)
            R_signed[(size_t)i * q + j] *= aux->sign[j];
    fill((size_t)M * here->n, 0.0, AE);
    for (int c = 0; c < pass->plan.n_blocks; c++) {
        const struct block there = pass_block(pass, c, room);
        const size_t size = (size_t)here->n * there.n;
        const double *A = pass_A(pass, &there, A_c), *R_c = find_rows(d, &there, rows);
        pairs_unexplained(d->z.model->kernel, here, &there, M, v->A, A, E);
        if (aux->p) { /* p K, K = E + A_c'A_b */
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

/* sums: C(X) */
static void constant_block(const void *self, const struct visit *v)
{
    const struct divergence *d = self;
    const struct pass *pass = &d->pass;
    const struct lowrank *aux = d->panel.aux;
    const struct block *here = &v->block;
    const size_t n = (size_t)pass->plan.block;
    double *out = v->work, *pair = out + (size_t)aux->q * n, *room = pair + n * n,
           *rows = room + source_size(pass->rows, pass->plan.block);
    fill((size_t)aux->q * here->n, 0.0, out);
    for (int c = 0; c < pass->plan.n_blocks; c++) {
        const struct block there = pass_block(pass, c, room);
        pairs_add(aux->kernel, here, &there, aux->q, find_rows(d, &there, rows), pair,
                  out);
        if (aux->p)
            v->sums[0] += pairs_sum_squares(aux->kernel, here, &there, pair);
    }
    const double *R = find_rows(d, here, rows);
    for (int i = 0; i < here->n; i++)
        for (int j = 0; j < aux->q; j++)
            v->sums[0] +=
                aux->sign[j] * out[(size_t)i * aux->q + j] * R[(size_t)i * aux->q + j];
}

/* ---- all of it -------------------------------------------------------------------------------- */

static void make_sinks(const struct divergence *d, struct sink *sums, struct sink *pairs)
{
    const int block = d->pass.plan.block;
    const size_t M = (size_t)d->z.M, q = (size_t)d->panel.aux->q, n = (size_t)block,
                 room = source_size(d->pass.rows, block) + rows_size(d);
    *sums = (struct sink){.self = d, .sums = d->sums, .add = sums_add};
    sums->n_sums = stats_size(d->z.M, 0) + M * q;
    sums->n_work = (2 + q) * n + panel_size(&d->panel, block);
    *pairs = (struct sink){.self = d, .sums = d->pairs, .add = pairs_block};
    pairs->n_sums = 1 + (d->panel.aux->p ? M * M : 0);
    pairs->n_work = (q + 2 * M + 2 * n) * n + room;
    if (M == 0) {
        pairs->add = constant_block;
        pairs->n_sums = 1;
    }
}

void divergence_open(struct divergence *d, struct arena *arena)
{
    const struct lowrank *aux = d->panel.aux;
    const int M = d->z.M, q = aux->q;
    const size_t m = (size_t)M, small = pf_size(M, q, aux->p) + m + m * aux->n_u;
    d->pass.rows = &d->rows;
    d->pass.z = M > 0 ? &d->z : NULL;
    d->pass.again = 1;
    d->pass.beside = q;
    pass_open(&d->pass, arena);
    d->L = arena_take(arena, m * m);
    d->T = arena_take(arena, m * q);
    d->R = arena_take(arena, (size_t)d->pass.kept * q * d->pass.plan.block);
    d->sums = arena_take(arena, stats_size(M, 0) + m * q);
    d->pairs = arena_take(arena, 1 + m * m);
    d->small = arena_take(arena, small);
    struct sink sums, pairs;
    make_sinks(d, &sums, &pairs);
    const size_t a = pass_size(&d->pass, 1, &sums), b = pass_size(&d->pass, 1, &pairs);
    d->work = arena_take(arena, a > b ? a : b);
}

enum status divergence_value(struct divergence *d, double *value)
{
    const struct lowrank *aux = d->panel.aux;
    const int M = d->z.M;
    struct sink sums, pairs;
    struct stats stats;
    enum status status = inducing_factor(&d->z, d->small, d->L);
    if (status != STATUS_OK)
        return status;
    d->z.L = d->L;
    lowrank_points(aux, M, d->z.Z, d->small, d->T); /* T = L^{-1} W_m */
    solve_lower(M, aux->q, d->L, d->T);
    make_sinks(d, &sums, &pairs);
    pass_run(&d->pass, 1, &sums, d->work);
    pass_run(&d->pass, 1, &pairs, d->work);
    status = stats_finish(M, 0, d->sums, &stats);
    if (status == STATUS_OK)
        status = pf_transfer(&d->z, &stats, aux, d->sums + stats_size(M, 0), d->pairs + 1,
                             d->small, value);
    *value += d->pairs[0];
    return status;
}

double divergence_constant(struct divergence *d)
{
    struct sink sums, pairs;
    make_sinks(d, &sums, &pairs);
    pass_run(&d->pass, 1, &pairs, d->work);
    return d->pairs[0];
}
