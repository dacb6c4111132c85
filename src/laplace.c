#include <math.h>
#include "laplace.h"
#include "kernel_pull.h"
#include "linalg.h"

/* ---- sums over the rows at whitened inducing values u ---------------------------------------- */

static int concave(const struct laplace *l)
{
    return l->sites.response->majorant == NULL;
}

/* Returns the place of A w A' in l->sums, behind A W A' (lower triangle), A g and sum l. A is L^{-1} k(Z, X), g and -W
 * are the first two derivatives of the log densities l in f, and w >= 0 has l(f + t) >= l(f) + g t - w t^2 / 2. */
static size_t majorant_at(int M)
{
    return (size_t)M * M + M + 1;
}

static size_t mode_size(const struct laplace *l)
{
    return majorant_at(l->z.M) + (concave(l) ? 0 : (size_t)l->z.M * l->z.M);
}

/* Computes for each row of a block its residual prior variance, l->left, and l->q = |C^{-1} a|^2, where a = L^{-1} k(Z,
 * x) has the row's features and C C' = I + A W A'. */
static void spread(const struct laplace *l, const struct visit *v)
{
    const int M = l->z.M, n = v->block.n, first = v->block.first;
    solve_lower_squares(M, n, l->mode.C, v->A, v->work, l->q + first);
    inducing_unexplained(&l->z, &v->block, v->A, l->left + first);
}

static struct site_value site(const struct laplace *l, int i)
{
    return l->variational ? sites_average(&l->sites, i, l->f[i], l->q[i] + l->left[i])
                          : sites_at(&l->sites, i, l->f[i]);
}

static void mode_add(const void *self, const struct visit *v)
{
    const struct laplace *l = self;
    const int M = l->z.M, n = v->block.n, first = v->block.first;
    double *f = l->f + first, *g = l->g + first, *W = l->W + first,
           *Ag = v->sums + (size_t)M * M, *AW = v->work, *root = AW + (size_t)M * n;
    mult_Atx(M, n, 1.0, v->A, l->mode.trial, 0.0, f);
    if (l->variational)
        spread(l, v);
    for (int i = 0; i < n; i++) {
        const struct site_value at = site(l, first + i);
        g[i] = at.g;
        W[i] = at.W;
        l->l3[first + i] = at.l3;
        root[i] = sqrt(at.W > 0.0 ? at.W : 0.0);
        Ag[M] += at.l;
    }
    mult_Ax(M, n, 1.0, v->A, g, 1.0, Ag);
    if (!concave(l)) { /* adds A W A' with W of either sign; A w A' follows */
        copy((size_t)M * n, v->A, AW);
        scale_columns(M, n, W, AW);
        mult_ABt(M, n, M, 1.0, AW, v->A, 1.0, v->sums);
        for (int i = 0; i < n; i++)
            root[i] = sqrt(sites_majorant(&l->sites, first + i, f[i]));
    }
    copy((size_t)M * n, v->A, AW);
    scale_columns(M, n, root, AW);
    add_A_At(M, n, AW, v->sums + (concave(l) ? 0 : majorant_at(M)));
}

double laplace_pass(struct laplace *l)
{
    const int M = l->z.M;
    pass_run(l->pass, sum_sink(l, mode_add, (size_t)M + 1, 0, mode_size(l), l->sums));
    return l->sums[majorant_at(M) - 1];
}

/* Returns Psi = -log likelihood + |u|^2 / 2 at u = mode.trial. */
static double psi_at(void *self)
{
    struct laplace *l = self;
    const double sum = laplace_pass(l);
    return 0.5 * sum_squares((size_t)l->z.M, l->mode.trial) - sum;
}

/* ---- Newton's method for the mode of u ------------------------------------------------------ */

int laplace_factor(struct laplace *l, const double *G)
{
    return chol_shifted(l->z.M, G, 1.0, l->mode.C);
}

/* At u = mode.trial, computes the gradient r of Psi = -log likelihood + |u|^2 / 2, the Cholesky factor C of its Hessian
 * H = I + A W A', A = L^{-1} k(Z, X), and the step H^{-1} r. If H has no factor because some W are negative, weights of
 * a majorant (responses.h) replace W, so the step still lowers Psi. If this step is tiny, 1e-6 I, 2e-6 I, 4e-6 I, ...
 * is added to the original H until it has a factor; then steps also leave saddle points. If H has no factor because of
 * rounding, when no W is negative but W is huge, multiples of I are added, the first as large as rounding errors. */
static enum status prepare(void *self)
{
    struct laplace *l = self;
    const size_t M = (size_t)l->z.M;
    const double *Ag = l->sums + M * M;
    copy(M, l->mode.trial, l->mode.u);
    for (size_t m = 0; m < M; m++)
        l->mode.r[m] = l->mode.u[m] - Ag[m];
    copy(M * M, l->sums, l->G);
    mirror_lower((int)M, l->G);
    l->no_factor = laplace_factor(l, l->G);
    if (l->no_factor && !concave(l)) {
        if (laplace_factor(l, l->sums + majorant_at((int)M)))
            return STATUS_INNER_NOT_PD;
        const enum status status = newton_step(&l->mode);
        if (status != STATUS_OK || !(l->mode.decrement < 1e-2))
            return status;
    }
    double added = concave(l) ? 1e-15 * trace((int)M, l->G) : 1e-6;
    while (l->no_factor && isfinite(added) &&
           chol_shifted((int)M, l->G, 1.0 + added, l->mode.C))
        added *= 2.0;
    if (!isfinite(added))
        return STATUS_INNER_NOT_PD;
    const enum status status = newton_step(&l->mode);
    /* Where W is huge, a step lowers log W by only about 1, so it is lengthened. newton_run() halves it if too long. */
    scale_by(M, l->no_factor && concave(l) ? 32.0 : 1.0, l->mode.step);
    return status;
}

void laplace_open(struct laplace *l)
{
    const size_t M = (size_t)l->z.M, MM = M * M;
    struct arena *arena = l->pass->plan.arena;
    l->sums = arena_take(arena, 2 * MM + M + 1 + l->z.model->kernel->n_theta);
    newton_open(&l->mode, l->z.M, arena);
    l->mode.value = psi_at;
    l->mode.prepare = prepare;
    l->toward = arena_take(arena, l->variational ? MM : 0);
    l->work = arena_take(arena, l->variational ? MM : 0);
}

enum status laplace_mode(struct laplace *l, double enough, int maxit)
{
    const enum status status = newton_run(&l->mode, l, enough, maxit);
    return status == STATUS_OK && l->no_factor ? STATUS_INNER_NOT_PD : status;
}

/* ---- penalty for residual prior variances, and its derivatives -------------------------------- */

/* Returns max(W, 0): a row with negative W adds 0 to the penalty sum log(1 + W E) / 2, E: residual prior variances. */
static double kept(double W)
{
    return W > 0.0 ? W : 0.0;
}

/* Adds a block's part to A s, A = L^{-1} k(Z, X), and to the penalty sum log(1 + W E) / 2 for residual prior variances
 * E. s has the derivatives, in f through W, of minus half the log determinants of I + A W A' and I + W E. */
static void penalty_add(const void *self, const struct visit *v)
{
    const struct laplace *l = self;
    const int M = l->z.M, n = v->block.n, first = v->block.first;
    const double *left = l->left + first, *q = l->q + first;
    double *s = l->s + first;
    spread(l, v);
    for (int i = 0; i < n; i++) {
        const double W = kept(l->W[first + i]), l3 = l->l3[first + i];
        s[i] = 0.5 * l3 * (q[i] + (W > 0.0 ? left[i] / (1.0 + left[i] * W) : 0.0));
        v->sums[M] += 0.5 * log1p(left[i] * W);
    }
    mult_Ax(M, n, 1.0, v->A, s, 1.0, v->sums);
}

double laplace_penalty(struct laplace *l)
{
    const int M = l->z.M;
    if (l->variational) { /* the bound includes the penalty, and its derivative in q(u) is 0 */
        fill((size_t)M, 0.0, l->zeta);
        fill((size_t)l->pass->rows->N, 0.0, l->s);
        return 0.0;
    }
    pass_run(l->pass, sum_sink(l, penalty_add, (size_t)M, 0, (size_t)M + 1, l->sums));
    copy((size_t)M, l->sums, l->zeta);
    solve_chol(M, 1, l->mode.C, l->zeta);
    return l->sums[M];
}

/* ---- gradient of the log marginal likelihood in the kernel's parameters --------------------- */

/* F is the log marginal likelihood minus the penalty sum log(1 + W E) / 2 for residual prior variances E, u the mode of
 * whitened inducing values, g and -W two derivatives of log densities in f, and H = I + A W A'. The derivatives of F in
 * A = L^{-1} k(Z, X), in E, in k(Z, X) and in L are
 *
 *     Abar = u (g + s - W p)' + zeta g' - H^{-1} A W - 2 A dE,   dE = -W / (2 (1 + E W)),
 *     Kmx_bar = L^{-T} Abar,  Lbar = -tril(L^{-T} Abar A'),
 *
 * where s are the derivatives of F in f through W at a fixed u, zeta = H^{-1} A s and p = A'zeta. The variational bound
 * has s = zeta = 0 and dE = -W / 2. A pass adds up Abar A' (M x M), g + s - W p, and the derivatives in theta. */

/* For a block, computes the derivatives of the log marginal likelihood in A = L^{-1} k(Z, X_b) (`bar`), in f (`slope`)
 * and in residual prior variances (dE), at the start of the scratch. Adds the elements of `slope` to v->sums. */
static void gradient_bars(const struct laplace *l, const struct visit *v)
{
    const int M = l->z.M, n = v->block.n, first = v->block.first;
    const double *g = l->g + first, *W = l->W + first, *left = l->left + first;
    double *bar = v->work, *slope = bar + (size_t)M * n, *dE = slope + n,
           *p = l->p + first;
    mult_Atx(M, n, 1.0, v->A, l->zeta, 0.0, p);
    copy((size_t)M * n, v->A, bar);
    solve_chol(M, n, l->mode.C, bar);
    for (int i = 0; i < n; i++) {
        dE[i] = l->variational ? -0.5 * W[i]
                               : -0.5 * kept(W[i]) / (1.0 + left[i] * kept(W[i]));
        slope[i] = g[i] + l->s[first + i] - W[i] * p[i];
        v->sums[(size_t)M * M] += slope[i];
        double *column = bar + (size_t)i * M;
        const double *a = v->A + (size_t)i * M;
        for (int m = 0; m < M; m++)
            column[m] = -W[i] * column[m] - 2.0 * dE[i] * a[m];
    }
    add_xyt(M, n, 1.0, l->mode.u, slope, bar);
    add_xyt(M, n, 1.0, l->zeta, g, bar);
}

void laplace_pull(const struct inducing *z, const struct visit *v, double *bar,
                  const double *dE, int extra, double *work)
{
    const struct block *b = &v->block;
    double *dtheta = v->sums + (size_t)z->M * z->M + extra;
    mult_ABt(z->M, b->n, z->M, 1.0, bar, v->A, 1.0, v->sums);
    solve_lower_t(z->M, b->n, z->L, bar);
    kernel_pull(z->model->kernel, points_of(z), rows_of(b), v->K, bar, work, NULL,
                dtheta);
    kernel_pull_diagonal(z->model->kernel, rows_of(b), 1.0, dE, 1, NULL, dtheta);
}

const double *laplace_slopes(struct pass *pass, const void *self, sink_add *add,
                             size_t per_row, size_t more, int extra, double *sums,
                             double *dtheta)
{
    const struct inducing *z = pass->z;
    const struct kernel *k = z->model->kernel;
    const size_t MM = (size_t)z->M * z->M, n_theta = (size_t)k->n_theta;
    double *Kmm_bar = arena_take(pass->plan.arena, MM);
    pass_run(pass, sum_sink(self, add, per_row, more + kernel_size(k, z->M),
                            MM + extra + n_theta, sums));
    copy(n_theta, sums + MM + extra, dtheta);
    solve_lower_t(z->M, z->M, z->L, sums); /* Lbar = -tril(L^{-T} Abar A') */
    scale_by(MM, -1.0, sums);
    chol_adjoint(z->M, z->L, sums, Kmm_bar);
    kernel_pull_self(k, z->columns, points_of(z), z->jitter, Kmm_bar, pass->plan.arena,
                     NULL, dtheta);
    return sums + MM;
}

static void gradient_add(const void *self, const struct visit *v)
{
    const struct laplace *l = self;
    const int M = l->z.M, n = v->block.n;
    double *bar = v->work, *dE = bar + (size_t)M * n + n;
    gradient_bars(l, v);
    laplace_pull(&l->z, v, bar, dE, 1, dE + n);
}

double laplace_gradient(struct laplace *l, double *dtheta)
{
    return *laplace_slopes(l->pass, l, gradient_add, (size_t)l->z.M + 2, 0, 1, l->sums,
                           dtheta);
}

/* ---- likelihoods of functions drawn from the posterior ----------------------------------------- */

static void paths_add(const void *self, const struct visit *v)
{
    const struct paths *p = self;
    const int n = v->block.n;
    mult_AB(p->S, p->M, n, 1.0, p->U, v->A, 0.0, v->work);
    for (int i = 0; i < n; i++) {
        const double *f = v->work + (size_t)i * p->S;
        for (int s = 0; s < p->S; s++)
            v->sums[s] += sites_at(p->sites, v->block.first + i, f[s]).l;
    }
}

struct sink paths_sink(const struct paths *self)
{
    return sum_sink(self, paths_add, (size_t)self->S, 0, (size_t)self->S, self->value);
}

/* ---- quadratic forms at new rows ------------------------------------------------------------- */

static void forms_add(const void *self, const struct visit *v)
{
    const struct forms *f = self;
    const int M = f->M, n = v->block.n;
    double *C_x = v->work, *PC = C_x + (size_t)M * n;
    copy((size_t)M * n, v->A, C_x);
    solve_chol(M, n, f->C, C_x);
    for (int k = 0; k < f->n_forms; k++) {
        mult_AB(M, M, n, 1.0, f->P + (size_t)k * M * M, C_x, 0.0, PC);
        for (int i = 0; i < n; i++)
            f->value[(size_t)(v->block.first + i) * f->n_forms + k] =
                dot((size_t)M, C_x + (size_t)i * M, PC + (size_t)i * M);
    }
}

struct sink forms_sink(const struct forms *self)
{
    return row_sink(self, forms_add, 2 * (size_t)self->M, 0);
}
