#include <math.h>
#include <string.h>
#include "objective.h"
#include "kernel_pull.h"
#include "linalg.h"
#include "pairs.h"
#include "pf.h"
#include "posterior.h"
#include "vfe.h"
#include "white.h"

/* ---- the variational bound: state C, beta ---------------------------------------------------- */

static size_t posterior_state(int M, int q, int p)
{
    (void)q, (void)p;
    return (size_t)M * M + M;
}

static size_t one_matrix(int M, int q, int p)
{
    (void)q, (void)p;
    return (size_t)M * M;
}

static enum status vfe_factor(const struct summary *s, double *state, double *work,
                              struct adjoint *adjoint)
{
    double *C = state, *beta = C + (size_t)s->z->M * s->z->M;
    const enum status status = posterior_factor(&s->stats, s->z->model->s2, C, beta);
    if (status == STATUS_OK && adjoint != NULL)
        vfe_adjoint(s->z, &s->stats, C, beta, work, adjoint);
    return status;
}

static double vfe_value_of(const struct summary *s, const double *state, double rss,
                           double *work, double *slope)
{
    const double *C = state, *beta = C + (size_t)s->z->M * s->z->M;
    if (slope != NULL)
        *slope = vfe_slope_noise(&s->stats, s->z->model->s2, C, rss, work);
    return vfe_value(&s->stats, s->z->model->s2, C, beta, rss);
}

/* y'y - A y'beta - s2 |beta|^2 */
static double residuals_of_sums(const struct summary *s, const double *state)
{
    const size_t M = (size_t)s->z->M;
    const double *beta = state + M * M;
    const double rss =
        s->stats.yy - dot(M, s->stats.Ay, beta) - s->z->model->s2 * sum_squares(M, beta);
    return rss > 0.0 ? rss : 0.0;
}

/* ---- white noise: state C, beta, N ----------------------------------------------------------- */

static size_t white_state(int M, int q, int p)
{
    return posterior_state(M, q, p) + one_matrix(M, q, p);
}

static enum status white_factor(const struct summary *s, double *state, double *work,
                                struct adjoint *adjoint)
{
    const int M = s->z->M;
    double *C = state, *beta = C + (size_t)M * M, *N = beta + M;
    const enum status status = posterior_factor(&s->stats, s->z->model->s2, C, beta);
    if (status != STATUS_OK)
        return status;
    white_shares(&s->stats, C, N);
    if (adjoint != NULL)
        white_adjoint(s->z, &s->stats, s->share, N, beta, work, adjoint);
    return STATUS_OK;
}

static double white_value_of(const struct summary *s, const double *state, double rss,
                             double *work, double *slope)
{
    const int M = s->z->M;
    const double *beta = state + (size_t)M * M, *N = beta + M;
    (void)work, (void)slope;
    return white_value(&s->stats, s->z->model->s2, s->share,
                       white_transfer(M, s->z->model->s2, N), beta, rss);
}

/* ---- pF: state fit and transfer -------------------------------------------------------------- */

static size_t pf_state(int M, int q, int p)
{
    (void)M, (void)q, (void)p;
    return 2;
}

static enum status pf_factor(const struct summary *s, double *state, double *work,
                             struct adjoint *adjoint)
{
    struct pf_terms terms = {0.0, 0.0};
    const enum status status =
        pf_evaluate(s->z, &s->stats, s->aux, s->T, s->W0, work, &terms, adjoint);
    state[0] = terms.fit;
    state[1] = terms.transfer;
    return status;
}

static double pf_value_of(const struct summary *s, const double *state, double rss,
                          double *work, double *slope)
{
    (void)s, (void)rss, (void)work, (void)slope;
    return state[0] + state[1];
}

/* ---- the table -------------------------------------------------------------------------------- */

static const struct objective objectives[] = {
    /* name, aux, residuals, theta */
    {"vfe", 0, 1, 1, posterior_state, one_matrix, vfe_factor, vfe_value_of,
     residuals_of_sums},
    {"white", 0, 1, 0, white_state, one_matrix, white_factor, white_value_of,
     residuals_of_sums},
    {"pf", 1, 0, 0, pf_state, pf_size, pf_factor, pf_value_of, NULL},
};

const struct objective *objective_named(const char *name)
{
    for (size_t i = 0; i < sizeof objectives / sizeof objectives[0]; i++)
        if (strcmp(objectives[i].name, name) == 0)
            return objectives + i;
    return NULL;
}

/* ---- an evaluation ---------------------------------------------------------------------------- */

static size_t largest(size_t a, size_t b)
{
    return a > b ? a : b;
}

static int p_of(const struct evaluation *e)
{
    return e->panel.aux != NULL && e->panel.aux->p;
}

static size_t small_size(const struct evaluation *e)
{
    const int M = e->z.M, q = panel_columns(&e->panel);
    size_t small = largest((size_t)M, e->objective->work_size(M, q, p_of(e)));
    if (e->panel.aux != NULL)
        small = largest(small, lowrank_pull_size(e->panel.aux, M));
    return largest(small, kernel_self_size(e->z.model->kernel, M, e->z.columns));
}

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
    e->state = arena_take(arena, e->objective->state_size(M, q, p));
    e->adjoint_memory = arena_take(arena, adjoint_size(M, q, p));
    e->gradient = arena_take(arena, gradient_size(&e->z));
    e->small = arena_take(arena, small_size(e));
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
    e->summing = (struct summing){e->z.model->kernel, M, e->panel};
    e->pairing = (struct pairing){&e->pass, e->AK};
    e->pulling = (struct pulling){&e->z, &e->adjoint, e->panel, p ? &e->pairing : NULL,
                                  e->objective->with_theta};
    const enum status status = inducing_factor(&e->z, e->small, e->L);
    e->z.L = e->L;
    e->summary.z = &e->z;
    e->summary.aux = e->panel.aux;
    e->summary.T = e->T;
    e->summary.W0 = e->W0;
    if (status == STATUS_OK && e->panel.aux != NULL) { /* T = L^{-1} W_m */
        lowrank_points(e->panel.aux, M, e->z.Z, e->K_zu, e->T);
        solve_lower(M, e->panel.aux->q, e->L, e->T);
    }
    return status;
}

enum status evaluation_sums(struct evaluation *e)
{
    pass_run(&e->pass, stats_sink(&e->summing, e->sums));
    if (p_of(e))
        pass_run(&e->pass, pairing_sink(&e->pairing, e->W0));
    return stats_finish(e->z.M, panel_columns(&e->panel), e->sums, &e->summary.stats);
}

enum status evaluation_factor(struct evaluation *e)
{
    const size_t M = (size_t)e->z.M;
    const enum status status = e->objective->factor(
        &e->summary, e->state, e->small, e->with_gradient ? &e->adjoint : NULL);
    if (e->objective->with_residuals)
        e->adjoint.beta = e->state + M * M;
    return status;
}

void evaluation_gradient(struct evaluation *e)
{
    const struct residuals residuals = {.M = e->z.M, .beta = e->adjoint.beta};
    if (e->with_gradient)
        pass_run(&e->pass, gradient_sink(&e->pulling, e->gradient));
    else if (e->objective->with_residuals)
        pass_run(&e->pass, residuals_sink(&residuals, e->gradient));
}

void evaluation_points(struct evaluation *e, double k_sum)
{
    gradient_finish(&e->pulling, k_sum, e->small, e->gradient);
    if (e->panel.aux != NULL)
        lowrank_pull(e->panel.aux, e->z.M, e->z.Z, e->K_zu, e->adjoint.Wm_bar, e->small,
                     e->gradient);
}

double evaluation_rss(const struct evaluation *e)
{
    return e->gradient[e->with_gradient ? gradient_size(&e->z) - 1 : 0];
}

double evaluation_value(struct evaluation *e, double rss, double *slope)
{
    return e->objective->value(&e->summary, e->state, rss, e->small, slope);
}

double evaluation_rss_of_sums(const struct evaluation *e)
{
    return e->objective->residuals == NULL
               ? 0.0
               : e->objective->residuals(&e->summary, e->state);
}

enum status evaluation_run(struct evaluation *e, double *value, double *slope)
{
    enum status status = evaluation_begin(e);
    if (status == STATUS_OK)
        status = evaluation_sums(e);
    if (status == STATUS_OK)
        status = evaluation_factor(e);
    if (status != STATUS_OK)
        return status;
    evaluation_gradient(e);
    if (e->with_gradient)
        evaluation_points(e, e->summary.stats.k_sum);
    *value = evaluation_value(e, evaluation_rss(e), e->with_gradient ? slope : NULL);
    return isfinite(*value) ? STATUS_OK : STATUS_NOT_FINITE;
}

/* ---- adjoints that go elsewhere --------------------------------------------------------------- */

/* of what adjoint_init() lays out */
static size_t laid_out(const struct evaluation *e)
{
    return adjoint_size(e->z.M, panel_columns(&e->panel), p_of(e));
}

size_t evaluation_adjoint_size(const struct evaluation *e)
{
    return laid_out(e) + (size_t)e->z.M + 1;
}

void evaluation_adjoint_to(const struct evaluation *e, double *vector)
{
    const size_t M = (size_t)e->z.M, size = laid_out(e);
    copy(size, e->adjoint_memory, vector);
    fill(M, 0.0, vector + size);
    if (e->adjoint.beta != NULL)
        copy(M, e->adjoint.beta, vector + size);
    vector[size + M] = e->adjoint.k_bar;
}

void evaluation_adjoint_from(struct evaluation *e, const double *vector)
{
    const size_t size = laid_out(e);
    copy(size, vector, e->adjoint_memory);
    if (e->objective->with_residuals)
        e->adjoint.beta = vector + size;
    e->adjoint.k_bar = vector[size + (size_t)e->z.M];
}
