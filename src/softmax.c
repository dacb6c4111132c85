#include <math.h>
#include "softmax.h"
#include "gemm.h"
#include "laplace.h"
#include "linalg.h"

/* ---- the mode of the posterior --------------------------------------------------------------- */

static size_t blocks_size(const struct softmax *l)
{
    return (size_t)l->z.M * l->z.M * pair_of(l->q, 0);
}

/* Adds a block to the log likelihood l and to A g (M x q), A the whitened k(Z, X), g = dl / dphi, phi = A'u. */
static void value_add(const void *self, const struct visit *v)
{
    const struct softmax *l = self;
    const int M = l->z.M, n = v->block.n, first = v->block.first;
    struct class_rows r = class_rows_in(l, v, v->work);
    mult_AtB(l->q, M, n, 1.0, l->mode.trial, v->A, 0.0, r.g); /* phi, in the place of g */
    for (int i = 0; i < n; i++) {
        v->sums[(size_t)M * l->q] +=
            class_row(l, first + i, r.g + (size_t)i * l->q, r.p + (size_t)i * l->K);
        class_rows_complete(l, first + i, i, &r);
    }
    mult_ABt(M, n, l->q, 1.0, v->A, r.g, 1.0, v->sums);
}

/* Adds a block to the lower triangle of A W_jk A' for each j >= k, A the whitened k(Z, X). For a row, W_jk is minus the
 * second derivative of its log likelihood in phi_j and phi_k, phi = A'u. */
static void curvature_add(const void *self, const struct visit *v)
{
    const struct softmax *l = self;
    const int M = l->z.M, n = v->block.n;
    const struct class_rows r = class_rows_again(l, v, v->work);
    double *W = r.rest, *AW = W + n;
    for (int j = 0; j < l->q; j++)
        for (int k = 0; k <= j; k++) {
            class_curvature(l, v, &r, j, k, W);
            copy((size_t)M * n, v->A, AW);
            scale_columns(M, n, W, AW);
            gemm_add(linalg_lanes(), M, M, n, 1.0, (struct strided){AW, 1, M},
                     (struct strided){v->A, M, 1},
                     v->sums + (size_t)M * M * pair_of(j, k), 1, M, 1);
        }
}

static size_t row_size(const struct softmax *l)
{
    return (size_t)l->z.M + 3 * (size_t)l->q + 4;
}

static double psi_at(void *self)
{
    struct softmax *l = self;
    const size_t dim = (size_t)l->z.M * l->q;
    double *value = l->sums + blocks_size(l);
    pass_run(l->pass, sum_sink(l, value_add, row_size(l), 0, dim + 1, value));
    return 0.5 * sum_squares(dim, l->mode.trial) - value[dim];
}

/* Copies the sums of curvature_add(), the blocks of the Hessian minus I, to C (lower triangle). */
static void assemble(struct softmax *l)
{
    const size_t M = (size_t)l->z.M, dim = M * l->q;
    for (int j = 0; j < l->q; j++)
        for (int k = 0; k <= j; k++) {
            double *sum = l->sums + M * M * pair_of(j, k);
            mirror_lower((int)M, sum);
            for (size_t c = 0; c < M; c++)
                copy(M, sum + M * c, l->mode.C + dim * (M * k + c) + M * j);
        }
}

/* Computes the Cholesky factor C of the Hessian at u, and the Newton step. */
static enum status factor_here(struct softmax *l)
{
    pass_run(l->pass,
             sum_sink(l, curvature_add, row_size(l), 0, blocks_size(l), l->sums));
    assemble(l);
    l->factor = FACTOR_HERE;
    return chol_shifted(l->z.M * l->q, l->mode.C, 1.0, l->mode.C) ? STATUS_INNER_NOT_PD
                                                                  : newton_step(&l->mode);
}

/* Computes a step. With the factor of an earlier Hessian, a step is much cheaper than a Newton step. It is taken if it
 * halves the decrement and leaves it above the threshold l->near. Otherwise, a Newton step is computed. */
static enum status prepare(void *self)
{
    struct softmax *l = self;
    const size_t dim = (size_t)l->z.M * l->q;
    const double before = l->mode.decrement;
    copy(dim, l->mode.trial, l->mode.u);
    copy(dim, l->mode.u, l->mode.r);
    add_scaled(dim, -1.0, l->sums + blocks_size(l), l->mode.r);
    if (l->factor != FACTOR_NONE) {
        l->factor = FACTOR_EARLIER;
        if (newton_step(&l->mode) == STATUS_OK && l->mode.decrement < 0.5 * before &&
            l->mode.decrement >= l->near)
            return STATUS_OK;
    }
    return factor_here(l);
}

void softmax_open(struct softmax *l)
{
    const size_t M = (size_t)l->z.M, dim = M * l->q;
    struct arena *arena = l->pass->plan.arena;
    l->sums =
        arena_take(arena, blocks_size(l) + dim + l->q + 1 + l->z.model->kernel->n_theta);
    newton_open(&l->mode, (int)dim, arena);
    l->mode.value = psi_at;
    l->mode.prepare = prepare;
    l->at.z = &l->z;
    l->at.q = l->q;
    l->at.N = l->pass->rows->N;
}

enum status softmax_mode(struct softmax *l, double enough, int maxit)
{
    l->near = fmax(enough, 1e-6);
    const enum status status = newton_run(&l->mode, l, enough, maxit);
    return status == STATUS_OK && l->factor == FACTOR_EARLIER ? factor_here(l) : status;
}

/* ---- covariances of phi (latent functions f = C phi + b); penalty for residual prior variance ------ */

/* Computes l->inverse: for k <= j, the symmetric part of block (j, k) of the inverse of the Hessian in u. */
static void invert(struct softmax *l)
{
    const size_t M = (size_t)l->z.M, dim = M * l->q;
    const int n = (int)dim, most = 64; /* columns at a time, from the diagonal on */
    double *whole = arena_take(l->pass->plan.arena, dim * dim),
           *columns = arena_take(l->pass->plan.arena, dim * most);
    for (int start = 0; start < n; start += most) {
        const int width = min_int(n - start, most), rows = n - start;
        chol_inverse_columns(n, l->mode.C, start, width, columns);
        for (int c = 0; c < width; c++)
            copy((size_t)rows, columns + (size_t)c * rows,
                 whole + dim * (start + c) + start);
    }
    mirror_lower(n, whole);
    for (int j = 0; j < l->q; j++)
        for (int k = 0; k <= j; k++) {
            double *to = l->inverse + M * M * pair_of(j, k);
            for (size_t c = 0; c < M; c++)
                for (size_t m = 0; m < M; m++)
                    to[M * c + m] = 0.5 * (whole[dim * (M * k + c) + M * j + m] +
                                           whole[dim * (M * k + m) + M * j + c]);
        }
}

/* Computes the covariances S of phi = A'u and residual prior variances `left` of a block; A is the whitened k(Z, X).
 * If bar (M x n) is not NULL, it gets -sum_jk (H^{-1})_jk A W_jk, the derivative of -log det H / 2 in A for fixed W. -W
 * is the Hessian of a row's log likelihood in phi, and H_jk = [j = k] I + A W_jk A'. work: (M + 1) n */
static void spread(const struct softmax_at *to, const struct visit *v, double *work,
                   const struct softmax *l, const struct class_rows *r, double *bar)
{
    const int M = to->z->M, n = v->block.n, first = v->block.first, q = to->q;
    const size_t N = (size_t)to->N;
    double *T = work, *W = T + (size_t)M * n;
    fill(bar == NULL ? 0 : (size_t)M * n, 0.0, bar);
    for (int j = 0; j < q; j++)
        for (int k = 0; k <= j; k++) {
            mult_AB(M, M, n, 1.0, to->inverse + (size_t)M * M * pair_of(j, k), v->A, 0.0,
                    T);
            if (bar != NULL)
                class_curvature(l, v, r, j, k, W);
            for (int i = 0; i < n; i++) {
                const size_t at = (size_t)i * M, row = (size_t)(first + i);
                to->S[row + N * (j * q + k)] = to->S[row + N * (k * q + j)] =
                    dot((size_t)M, v->A + at, T + at);
                if (bar != NULL)
                    add_scaled((size_t)M, (j == k ? -1.0 : -2.0) * W[i], T + at,
                               bar + at);
            }
        }
    inducing_unexplained(to->z, &v->block, v->A, to->left + first);
}

/* Returns log det(I + e W0) / 2 for W0 = diag p - p p', and computes D [K] = 1 / (1 + e p) and den = sum p D. e is the
 * residual prior variance times the weight of a row with class probabilities p. The formulas are
 *
 *     (I + e W0)^{-1} = diag(D) + e (D p)(D p)' / den,   log det(I + e W0) = log den - sum log D. */
static double penalty_row(const struct softmax *l, double e, const double *p, double *D,
                          double *den)
{
    double sum = 0.0;
    *den = 0.0;
    for (int k = 0; k < l->K; k++) {
        D[k] = 1.0 / (1.0 + e * p[k]);
        *den += p[k] * D[k];
        sum += log1p(e * p[k]);
    }
    return 0.5 * (sum + log(*den));
}

/* Computes s = C's_f: derivatives in a row's phi (f = C phi + b) of F, the penalised log marginal likelihood, through
 * W. S is the covariance of phi, e the residual prior variance, w the row's weight, and W0 = diag p - p p'.
 *
 *     (s_f)_a = -(1/2) sum T_bc dW_bc / df_a = -w p_a (T_aa - p'diag T - 2 (T p)_a + 2 p'T p) / 2,
 *     T = C S C' + e (I + e w W0)^{-1}.
 *
 * D and den are from penalty_row(). x: scratch of 2 K + (q + 2) q */
static void slope_row(const struct softmax *l, int row, double e, const double *p,
                      const double *mean, double *D, double den, double *x, double *s)
{
    const int K = l->K, q = l->q;
    const size_t N = (size_t)l->pass->rows->N;
    const double w = or_one(l->weight, row), *S = l->at.S + row;
    double *T = x, *Tp = x + K, *own = Tp + K, *along = own + q * q, *c = along + q,
           pT = 0.0, pTp = 0.0;
    for (int j = 0; j < q; j++) {
        along[j] = 0.0;
        for (int k = 0; k < q; k++) {
            own[j * q + k] = S[N * (j * q + k)];
            along[j] += own[j * q + k] * mean[k];
        }
    }
    for (int a = 0; a < K; a++) {
        T[a] = e * (D[a] + e * w * D[a] * p[a] * D[a] * p[a] / den);
        Tp[a] = e * D[a] * p[a] / den;
        for (int k = 0; k < q; k++)
            c[k] = l->contrasts[a + (size_t)k * K];
        for (int j = 0; j < q; j++) {
            double half = 0.0;
            for (int k = 0; k < q; k++)
                half += own[j * q + k] * c[k];
            T[a] += c[j] * half;
            Tp[a] += c[j] * along[j];
        }
        pT += p[a] * T[a];
        pTp += p[a] * Tp[a];
    }
    for (int a = 0; a < K; a++)
        T[a] = -0.5 * w * p[a] * (T[a] - pT - 2.0 * Tp[a] + 2.0 * pTp);
    class_contrasts(l, T, s);
}

static double *kept_bar(const struct softmax *l, int block)
{
    return l->pass->wants_K && block < l->pass->kept
               ? l->bar + (size_t)block * l->z.M * l->pass->plan.block
               : NULL;
}

/* Adds a block's part to the sum of penalty_row() and to A s (M x q): A is the whitened k(Z, X), s from slope_row(). */
static void penalty_add(const void *self, const struct visit *v)
{
    const struct softmax *l = self;
    const int M = l->z.M, n = v->block.n, first = v->block.first;
    const struct class_rows r = class_rows_again(l, v, v->work);
    double *s = l->s + (size_t)first * l->q;
    spread(&l->at, v, r.rest, l, &r, kept_bar(l, v->number));
    for (int i = 0; i < n; i++) {
        const double *p = r.p + (size_t)i * l->K, e = l->at.left[first + i];
        double *D = r.rest, den;
        v->sums[(size_t)M * l->q] +=
            penalty_row(l, e * or_one(l->weight, first + i), p, D, &den);
        slope_row(l, first + i, e, p, r.mean + (size_t)i * l->q, D, den, D + l->K,
                  s + (size_t)i * l->q);
    }
    mult_ABt(M, n, l->q, 1.0, v->A, s, 1.0, v->sums);
}

double softmax_penalty(struct softmax *l)
{
    const size_t dim = (size_t)l->z.M * l->q;
    l->bar = l->pass->wants_K
                 ? arena_take(l->pass->plan.arena,
                              (size_t)l->pass->kept * l->z.M * l->pass->plan.block)
                 : NULL;
    invert(l);
    pass_run(l->pass,
             sum_sink(l, penalty_add, row_size(l),
                      3 * (size_t)l->K + (size_t)l->q * (l->q + 2), dim + 1, l->sums));
    copy(dim, l->sums, l->zeta);
    solve_chol((int)dim, 1, l->mode.C, l->zeta);
    return l->sums[dim];
}

/* F is Laplace's log marginal likelihood minus the penalty, a sum of log det(I + E W) / 2 over rows. For a row, E is
 * the residual prior variance. g and -W are the log likelihood's derivatives in phi = A'u (A whitened k(Z, X), mode u),
 * and s is that of F in phi through W. With zeta = H^{-1} A s and the Hessian H in u, the derivatives of F are
 *
 *     in A: Abar = sum_j [u_j (g + s - W A'zeta)_j' + zeta_j g_j'] - sum_jk (H^{-1})_jk A W_jk - 2 A dE,
 *     in E: dE = -tr((I + E W)^{-1} W) / 2.
 *
 * gradient_add() sums Abar A' (M x M), derivatives in phi [q], and derivatives in the kernel's parameters. */

/* Replaces pz [q] by g + s - W pz for a row. g and -W are the derivatives of its log likelihood in phi, and s, its part
 * of l->s, those of the penalised log marginal likelihood through W. x: scratch [K] */
static void slope_of_phi(const struct softmax *l, int row, const double *p,
                         const double *g, double *x, double *pz)
{
    double mean = 0.0;
    mult_Ax(l->K, l->q, 1.0, l->contrasts, pz, 0.0, x);
    for (int a = 0; a < l->K; a++)
        mean += p[a] * x[a];
    for (int a = 0; a < l->K; a++)
        x[a] = or_one(l->weight, row) * p[a] * (x[a] - mean);
    class_contrasts(l, x, pz);
    for (int j = 0; j < l->q; j++)
        pz[j] = g[j] + l->s[(size_t)row * l->q + j] - pz[j];
}

static double slope_of_left(const struct softmax *l, int row, const double *p, double *D)
{
    const double w = or_one(l->weight, row), e = w * l->at.left[row];
    double den, trace = 0.0, square = 0.0, cube = 0.0;
    penalty_row(l, e, p, D, &den);
    for (int a = 0; a < l->K; a++) {
        const double Dp = D[a] * p[a];
        trace += Dp * (1.0 - p[a]);
        square += Dp * p[a];
        cube += Dp * Dp * p[a];
    }
    return -0.5 * w * (trace + e * (cube - square * square) / den);
}

static void gradient_add(const void *self, const struct visit *v)
{
    const struct softmax *l = self;
    const int M = l->z.M, n = v->block.n, first = v->block.first, q = l->q, K = l->K;
    const struct class_rows r = class_rows_again(l, v, v->work);
    double *slope = r.rest, *dE = slope + (size_t)q * n, *rest = dE + n,
           *bar = kept_bar(l, v->number);
    if (bar == NULL) {
        bar = rest;
        rest += (size_t)M * n;
        spread(&l->at, v, rest, l, &r, bar);
    }
    mult_AtB(q, M, n, 1.0, l->zeta, v->A, 0.0, slope);
    for (int i = 0; i < n; i++) {
        double *at = slope + (size_t)i * q;
        const double *p = r.p + (size_t)i * K;
        slope_of_phi(l, first + i, p, r.g + (size_t)i * q, rest, at);
        add_scaled((size_t)q, 1.0, at, v->sums + (size_t)M * M);
        dE[i] = slope_of_left(l, first + i, p, rest);
        add_scaled((size_t)M, -2.0 * dE[i], v->A + (size_t)i * M, bar + (size_t)i * M);
    }
    mult_AB(M, q, n, 1.0, l->mode.u, slope, 1.0, bar);
    mult_AB(M, q, n, 1.0, l->zeta, r.g, 1.0, bar);
    laplace_pull(&l->z, v, bar, dE, q, rest);
}

void softmax_gradient(struct softmax *l, double *dtheta, double *dcenter)
{
    const double *sums = laplace_slopes(l->pass, l, gradient_add, row_size(l) + l->z.M,
                                        (size_t)l->K, l->q, l->sums, dtheta);
    mult_Ax(l->K, l->q, 1.0, l->contrasts, sums, 0.0, dcenter);
}

/* ---- predictions at new rows ----------------------------------------------------------------- */

static void at_add(const void *self, const struct visit *v)
{
    const struct softmax_at *to = self;
    const int M = to->z->M, n = v->block.n;
    for (int j = 0; j < to->n_u; j++)
        mult_Atx(M, n, 1.0, v->A, to->u + (size_t)M * j, 0.0,
                 to->mean + v->block.first + (size_t)to->N * j);
    spread(to, v, v->work, NULL, NULL, NULL);
}

struct sink softmax_at_sink(const struct softmax_at *self)
{
    return row_sink(self, at_add, (size_t)self->z->M + 1, 0);
}
