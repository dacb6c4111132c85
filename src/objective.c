#include <math.h>
#include <string.h>
#include "objective.h"
#include "kernel_pull.h"
#include "linalg.h"
#include "gram.h"
#include "posterior.h"

static double *matrix(const struct evaluation *e)
{
    return arena_take(e->pass.plan.arena, (size_t)e->z.M * e->z.M);
}

/* Returns y'(A'A + s2 I)^{-1} y = rss / s2 + |beta|^2, where A = L^{-1} k(Z, X), and L^{-1} f(Z) has the posterior mean
 * beta. A second pass computes rss = |y - A'beta|^2, so that nothing cancels if residuals are small. */
static double quadratic_form(const struct evaluation *e, double rss)
{
    return rss / e->z.model->s2 + sum_squares((size_t)e->z.M, e->beta);
}

/* Computes the variational bound of Titsias (2009), as a value to minimise. Let K = k(X, X) for N rows X, A = L^{-1}
 * k(Z, X), G = A A', D = I + G / s2, c = y'(A'A + s2 I)^{-1} y and t = tr(K - A'A). The derivative in A is Abar:
 *
 *     -ELBO = N/2 log(2 pi s2) + log det D / 2 + c / 2 + t / (2 s2)
 *     Abar = ((s2 I + G)^{-1} - I/s2) A - beta v',  v = (y - A'beta) / s2,  beta = (s2 I + G)^{-1} A y */
static enum status vfe_factor(struct evaluation *e)
{
    const int M = e->z.M;
    const double s2 = e->z.model->s2;
    const enum status status = posterior_factor(&e->stats, s2, e->C, e->beta);
    if (status != STATUS_OK || !e->with_gradient)
        return status;
    chol_inverse(M, e->C, e->adjoint.H);
    e->trace = trace(M, e->adjoint.H);
    add_diagonal(M, -1.0 / s2, e->adjoint.H);
    posterior_adjoint(&e->z, &e->stats, e->beta, -1.0 / s2, matrix(e), &e->adjoint);
    *e->adjoint.k_bar = 1.0 / (2.0 * s2);
    return STATUS_OK;
}

/* Returns -ELBO. Its derivative in log s2 is [N - (M - tr D^{-1}) - rss / s2 - t / s2] / 2 for N rows, M inducing
 * points, the residual sum of squares rss, the weighted sum t of residual prior variances, and D = I + A A' / s2. */
static double vfe_value(const struct evaluation *e, double rss, double *slope)
{
    const struct stats *s = &e->stats;
    const double s2 = e->z.model->s2, logdet_D = chol_logdet(s->M, e->C) - s->M * log(s2);
    if (slope != NULL)
        *slope = 0.5 * (s->n - (s->M - s2 * e->trace) - rss / s2 - s->t / s2);
    return 0.5 * s->n * (LOG_2PI + log(s2)) + 0.5 * logdet_D +
           0.5 * quadratic_form(e, rss) + s->t / (2.0 * s2);
}

/* Computes the pF objective if the auxiliary distribution is white noise around the mean of the exact posterior. Its
 * values are independent, with variance u / w_n at row n of weight w_n, u = e->share s2, and variance 0 at Z. The
 * squared error of the mean, in the RKHS norm of the posterior covariance, is c - y'(K + s2 I)^{-1} y with c = y'(s2 I
 * + A'A)^{-1} y and A = L^{-1} k(Z, X) (theory vignette, Proposition 2b). Only c depends on Z. The objective has
 * s2^2 times c. With G = A A', D = I + G / s2, N = I - D^{-1}, t = tr(K - A'A), beta = (s2 I + G)^{-1} A y, and the
 * derivative Abar in A:
 *
 *     value = s2^2 c + u (t + tr(G D^{-2}))
 *     Abar = -2 u N (4 I - 5 N + 2 N^2) A - 2 s2 beta (y - A'beta)' */
static enum status white_factor(struct evaluation *e)
{
    const int M = e->z.M;
    const double s2 = e->z.model->s2, *N = e->N;
    const enum status status = posterior_factor(&e->stats, s2, e->C, e->beta);
    if (status != STATUS_OK)
        return status;
    copy((size_t)M * M, e->stats.G, e->N);
    solve_chol(M, M, e->C, e->N);
    if (!e->with_gradient)
        return STATUS_OK;
    double *rest = matrix(e), *H = e->adjoint.H;
    mult_AB(M, M, M, 2.0, N, N, 0.0, rest);
    add_scaled((size_t)M * M, -5.0, N, rest);
    add_diagonal(M, 4.0, rest);
    mult_AB(M, M, M, -e->share * s2, N, rest, 0.0, H);
    add_transpose(M, H); /* N and its powers are symmetric but for rounding */
    posterior_adjoint(&e->z, &e->stats, e->beta, -2.0 * s2, rest, &e->adjoint);
    return STATUS_OK;
}

static double white_value(const struct evaluation *e, double rss, double *slope)
{
    const int M = e->z.M;
    const double s2 = e->z.model->s2, *N = e->N;
    double transfer = 0.0; /* tr(G D^{-2}) = s2 tr(N - N^2) */
    (void)slope;
    for (int j = 0; j < M; j++) {
        transfer += N[(size_t)j * M + j];
        for (int i = 0; i < M; i++)
            transfer -= N[(size_t)j * M + i] * N[(size_t)i * M + j];
    }
    return s2 * (s2 * quadratic_form(e, rss) + e->share * (e->stats.t + s2 * transfer));
}

static enum status pf_factor(struct evaluation *e)
{
    return pf_evaluate(&e->z, &e->stats, e->panel.aux, e->T, e->W0, e->pass.plan.arena,
                       &e->pf, e->with_gradient ? &e->adjoint : NULL);
}

static double pf_value(const struct evaluation *e, double rss, double *slope)
{
    (void)rss, (void)slope;
    return e->pf;
}

static const struct objective objectives[] = {
    /* columns: name, with_aux, with_residuals, with_theta, factor, value */
    {"vfe", 0, 1, 1, vfe_factor, vfe_value},
    {"white", 0, 1, 0, white_factor, white_value},
    {"pf", 1, 0, 0, pf_factor, pf_value},
};

const struct objective *objective_named(const char *name)
{
    for (size_t i = 0; i < sizeof objectives / sizeof objectives[0]; i++)
        if (strcmp(objectives[i].name, name) == 0)
            return objectives + i;
    return NULL;
}

/* ---- passes over the rows, for sums and gradients -------------------------------------------- */

static int p_of(const struct evaluation *e)
{
    return e->panel.aux != NULL && e->panel.aux->p;
}

static void sums_add(const void *self, const struct visit *v)
{
    const struct evaluation *e = self;
    const double *Wt = panel_rows(&e->panel, &v->block, v->work + 2 * (size_t)v->block.n);
    stats_add(e->z.model->kernel, e->z.M, panel_columns(&e->panel), &v->block, v->A, Wt,
              v->work, v->sums);
}

static size_t pairing_size(const struct evaluation *e)
{
    const int M = e->z.M, n = e->pass.plan.block;
    return ((size_t)2 * M + n) * n + source_size(&e->rows, n);
}

/* Returns A k(X, X_b) (M x n_b) for block b, A = L^{-1} k(Z, X). If e->AK keeps it, computes it only if `again`. */
static const double *pairing_AK(const struct evaluation *e, const struct block *here,
                                int again, double *work)
{
    const struct pass *pass = &e->pass;
    const int M = e->z.M, b = here->first / pass->plan.block;
    const size_t Mn = (size_t)M * pass->plan.block;
    double *AK = b < pass->kept ? e->AK + (size_t)b * Mn : work, *A_c = work + Mn,
           *pair = A_c + Mn,
           *scratch = pair + (size_t)pass->plan.block * pass->plan.block;
    if (b < pass->kept && !again)
        return AK;
    fill((size_t)M * here->n, 0.0, AK);
    for (int c = 0; c < pass->plan.n_blocks; c++) {
        const struct block there = pass_block(pass, c, scratch);
        pairs_add(e->z.model->kernel, here, &there, M, pass_A(pass, &there, A_c), pair,
                  AK);
    }
    return AK;
}

/* Adds a block's part to W0 = A k(X, X) A' (M x M), where A = L^{-1} k(Z, X). */
static void pairing_add(const void *self, const struct visit *v)
{
    const struct evaluation *e = self;
    const int M = e->z.M;
    mult_ABt(M, v->block.n, M, 1.0, pairing_AK(e, &v->block, 1, v->work), v->A, 1.0,
             v->sums);
}

double gradient_block(const struct adjoint *adjoint, const struct block *b,
                      const double *A, const double *Wt, const double *AK, double *work,
                      double *Kmx_bar)
{
    const int M = adjoint->M, n = b->n;
    double *e = work;
    block_response(b, e);
    mult_Atx(M, n, -1.0, A, adjoint->beta, 1.0, e);

    mult_AB(M, M, n, 1.0, adjoint->H, A, 0.0, Kmx_bar);
    if (adjoint->q > 0)
        mult_AB(M, adjoint->q, n, 1.0, adjoint->F, Wt, 1.0, Kmx_bar);
    add_xyt(M, n, 1.0, adjoint->f, e, Kmx_bar);
    if (adjoint->E != NULL)
        mult_AB(M, M, n, 1.0, adjoint->E, AK, 1.0, Kmx_bar);
    scale_columns(M, n, b->scale, Kmx_bar);
    return sum_squares((size_t)n, e);
}

static size_t theta_at(const struct inducing *z)
{
    return (size_t)z->M * z->columns;
}

/* Returns the number of doubles of the gradient in Z and hyperparameters, plus 1 for the residual sum of squares. */
static size_t gradient_size(const struct inducing *z)
{
    return theta_at(z) + (size_t)z->model->kernel->n_theta + 1;
}

/* Computes the objective's derivative in k(Z, X_b) for block b, at v->work. Adds squared residuals to the last sum. */
static void gradient_bar(const struct evaluation *e, const struct visit *v)
{
    const struct block *b = &v->block;
    double *Kmx_bar = v->work, *part = Kmx_bar + (size_t)e->z.M * b->n,
           *scratch = part + b->n + kernel_size(e->z.model->kernel, e->z.M);
    const double *Wt = panel_rows(&e->panel, b, scratch), *AK = NULL;
    if (p_of(e))
        AK = pairing_AK(e, b, 0, scratch + panel_size(&e->panel, b->n));
    v->sums[gradient_size(&e->z) - 1] +=
        gradient_block(&e->adjoint, b, v->A, Wt, AK, part, Kmx_bar);
}

static void gradient_add(const void *self, const struct visit *v)
{
    const struct evaluation *e = self;
    const struct kernel *k = e->z.model->kernel;
    const struct block *b = &v->block;
    double *work = v->work + (size_t)e->z.M * b->n, *dtheta = v->sums + theta_at(&e->z);
    gradient_bar(e, v);
    kernel_pull(k, points_of(&e->z), rows_of(b), v->K, v->work, work, v->sums,
                e->objective->with_theta ? dtheta : NULL);
    if (!e->objective->with_theta || kernel_is_constant(k))
        return;
    for (int i = 0; i < b->n; i++)
        work[i] = weight_of(b->scale, i);
    kernel_pull_diagonal(k, rows_of(b), *e->adjoint.k_bar, work, 1, NULL, dtheta);
}

/* ---- the steps of an evaluation -------------------------------------------------------------- */

static void lay_out(struct evaluation *e)
{
    const int M = e->z.M, q = panel_columns(&e->panel), p = p_of(e),
              n_u = e->panel.aux == NULL ? 0 : e->panel.aux->n_u;
    const size_t MM = (size_t)M * M, Mn = (size_t)M * e->pass.plan.block;
    struct arena *arena = e->pass.plan.arena;
    e->AK = arena_take(arena, p ? (size_t)e->pass.kept * Mn : 0);
    e->sums = arena_take(arena, stats_size(M, q));
    e->W0 = arena_take(arena, p ? MM : 0);
    e->L = arena_take(arena, MM);
    e->T = arena_take(arena, (size_t)M * q);
    e->K_zu = arena_take(arena, (size_t)M * n_u);
    if (e->objective->with_residuals) {
        e->C = arena_take(arena, MM);
        e->beta = arena_take(arena, (size_t)M);
        e->N = arena_take(arena, MM);
    }
    e->adjoint_memory = arena_take(arena, evaluation_adjoint_size(e));
    e->gradient = arena_take(arena, gradient_size(&e->z));
}

enum status evaluation_begin(struct evaluation *e)
{
    const int M = e->z.M, p = p_of(e);
    e->pass.rows = &e->rows;
    e->pass.z = &e->z;
    e->pass.wants_K = e->with_gradient;
    e->pass.again = e->with_gradient || p || e->objective->with_residuals;
    e->pass.beside = p ? M : 0;
    pass_open(&e->pass);
    lay_out(e);
    adjoint_init(M, panel_columns(&e->panel), p, e->adjoint_memory, &e->adjoint);
    const enum status status = inducing_ladder(&e->z, e->most_jitter, e->L);
    if (status == STATUS_OK && e->panel.aux != NULL)
        lowrank_points(e->panel.aux, &e->z, e->K_zu, e->T);
    return status;
}

enum status evaluation_sums(struct evaluation *e)
{
    const int q = panel_columns(&e->panel);
    const size_t M = (size_t)e->z.M;
    pass_run(&e->pass, sum_sink(e, sums_add, 2 + panel_size(&e->panel, 1), 0,
                                stats_size(e->z.M, q), e->sums));
    if (p_of(e))
        pass_run(&e->pass, sum_sink(e, pairing_add, 0, pairing_size(e), M * M, e->W0));
    return stats_finish(e->z.M, q, e->sums, &e->stats);
}

void evaluation_gradient(struct evaluation *e)
{
    const struct residuals residuals = {.M = e->z.M, .beta = e->beta};
    if (e->with_gradient)
        pass_run(&e->pass,
                 sum_sink(e, gradient_add, (size_t)e->z.M + 1 + panel_size(&e->panel, 1),
                          kernel_size(e->z.model->kernel, e->z.M) +
                              (p_of(e) ? pairing_size(e) : 0),
                          gradient_size(&e->z), e->gradient));
    else if (e->objective->with_residuals)
        pass_run(&e->pass, residuals_sink(&residuals, e->gradient));
}

void evaluation_points(struct evaluation *e, double k_sum)
{
    const struct inducing *z = &e->z;
    const struct kernel *k = z->model->kernel;
    const struct adjoint *a = &e->adjoint;
    double *dtheta = e->objective->with_theta ? e->gradient + theta_at(z) : NULL;
    kernel_pull_self(k, z->columns, points_of(z), z->jitter, a->Kmm_bar,
                     e->pass.plan.arena, e->gradient, dtheta);
    if (!kernel_is_constant(k))
        kernel_pull_diagonal(k, points_of(z), 1.0, a->kzz_bar, 1, e->gradient, dtheta);
    else if (dtheta != NULL) /* if k(x, x) varies, gradient_add() has added this part */
        dtheta[k->term->at] += *a->k_bar * k_sum;
    if (e->panel.aux != NULL)
        lowrank_pull(e->panel.aux, &e->z, e->K_zu, e->adjoint.Wm_bar, e->pass.plan.arena,
                     e->gradient);
}

double evaluation_rss(const struct evaluation *e)
{
    return e->gradient[e->with_gradient ? gradient_size(&e->z) - 1 : 0];
}

double evaluation_rss_of_sums(const struct evaluation *e)
{
    const size_t M = (size_t)e->z.M;
    if (!e->objective->with_residuals)
        return 0.0;
    const double rss = e->stats.yy - dot(M, e->stats.Ay, e->beta) -
                       e->z.model->s2 * sum_squares(M, e->beta);
    return rss > 0.0 ? rss : 0.0;
}

enum status evaluation_run(struct evaluation *e, double *value, double *slope)
{
    enum status status = evaluation_begin(e);
    if (status == STATUS_OK)
        status = evaluation_sums(e);
    if (status == STATUS_OK)
        status = e->objective->factor(e);
    if (status != STATUS_OK)
        return status;
    evaluation_gradient(e);
    if (e->with_gradient)
        evaluation_points(e, e->stats.k_sum);
    *value = e->objective->value(e, evaluation_rss(e), e->with_gradient ? slope : NULL);
    return isfinite(*value) ? STATUS_OK : STATUS_NOT_FINITE;
}

size_t evaluation_adjoint_size(const struct evaluation *e)
{
    return adjoint_size(e->z.M, panel_columns(&e->panel), p_of(e));
}
