#include <math.h>
#include "pf.h"
#include "linalg.h"

/* Replaces X by D^{-1} X for D = I + A A' / s2, where A are the rows' features, from the Cholesky factor C of s2 D. */
static void solve_D(int M, int n, const double *C, double s2, double *X)
{
    solve_chol(M, n, C, X);
    scale_by((size_t)M * n, s2, X);
}

static void transpose(int n, const double *A, double *At)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            At[(size_t)i * n + j] = A[(size_t)j * n + i];
}

/* Computes root [M], where root_m^2 = k(z_m, z_m) / largest k(z, z). Returns the jitter times the largest k(z, z). */
static double jitter_of_points(const struct inducing *z, double *root)
{
    double most = 0.0;
    kernel_diagonal(z->model->kernel, points_of(z), root);
    for (int m = 0; m < z->M; m++)
        most = root[m] > most ? root[m] : most;
    for (int m = 0; m < z->M; m++)
        root[m] = most > 0.0 ? sqrt(root[m] / most) : 1.0;
    return z->jitter * most;
}

/* Computes Q = D^{-1} (V - G J G) D^{-1}, where D = I + G / s2, G = s->G, and J = I - L^{-1} k(Z, Z) L^{-T}
 * = jitter L^{-1} diag(root)^2 L^{-T}. G J G = jitter B'B for B = diag(root) L^{-T} G. V (M x M) is overwritten. */
static void without_jitter(const struct inducing *z, const struct stats *s, double jitter,
                           const double *root, const double *C, double *V, double *B,
                           double *Q)
{
    const int M = s->M;
    const double s2 = z->model->s2;
    copy((size_t)M * M, s->G, B);
    solve_lower_t(M, M, z->L, B);
    scale_rows(M, M, root, B);
    mult_AtB(M, M, M, -jitter, B, B, 1.0, V);
    solve_D(M, M, C, s2, V);
    transpose(M, V, Q);
    solve_D(M, M, C, s2, Q);
}

/* Replaces the columns x_j of X by D^{-1} x_j, D = I + s->G / s2. Returns sum_j s_j |D^{-1} x_j|^2 + p tr Q, s_j =
 * aux->sign[j], p = aux->p. If p = 1, without_jitter() computes Q, D^{-1} V D^{-1} less the jitter's share. */
static double transfer(const struct inducing *z, const struct stats *s,
                       const struct lowrank *aux, const double *C, double *X, double *V,
                       double *B, double *Q, double *root, double *jitter)
{
    const int M = s->M;
    double value = 0.0;
    solve_D(M, aux->q, C, z->model->s2, X);
    for (int j = 0; j < aux->q; j++)
        value += aux->sign[j] * sum_squares((size_t)M, X + (size_t)j * M);
    if (!aux->p)
        return value;
    *jitter = jitter_of_points(z, root);
    without_jitter(z, s, *jitter, root, C, V, B, Q);
    return value + trace(M, Q);
}

/* Computes the terms that k in the auxiliary covariance (p = 1) adds to the pF objective's derivatives Abar in A =
 * L^{-1} k(Z, X), Lbar in L and kzz_bar in each k(z, z). With G = A A', D = I + G / s2, W0 = A k(X, X) A', J = jitter
 * L^{-1} diag(root)^2 L^{-T} and Q1 = D^{-1} (W0 - G^2 - G J G) D^{-1}:
 *   Abar += Hs A + E A k(X, X),   E = 2 (D^{-2} - I),
 *   Hs   -= 2 (R + R') / s2 + 4 D^{-2} G + 2 (D^{-2} G J + J D^{-2} G),   R = D^{-1} Q1,
 *   Lbar += tril(2 L^{-T} G D^{-2} G J)
 * Updates Hs, and adds E W0 to AbarAt (Abar A'). Computes E, Lbar_share = 2 L^{-T} G D^{-2} G J and, if k(z, z) depends
 * on z, kzz_bar = -z->jitter diag(L^{-T} G D^{-2} G L^{-1}). */
static void adjoint_of_prior(const struct inducing *z, const struct stats *s,
                             double jitter, const double *root, const double *C,
                             double s2, const double *W0, const double *Q1, double *work,
                             double *Hs, double *AbarAt, double *E, double *Lbar_share,
                             double *kzz_bar)
{
    const int M = s->M;
    const size_t MM = (size_t)M * M;
    double *R = work, *GD2 = work + MM, *GD2J = GD2 + MM;

    copy(MM, Q1, R);
    solve_D(M, M, C, s2, R);
    add_transpose(M, R);
    add_scaled(MM, -2.0 / s2, R, Hs);

    copy(MM, s->G, GD2);
    solve_D(M, M, C, s2, GD2);
    solve_D(M, M, C, s2, GD2);
    add_scaled(MM, -4.0, GD2, Hs);

    /* GD2J = J GD2' for GD2 = D^{-2} G, D = I + G / s2 and J = jitter L^{-1} diag(root)^2 L^{-T} */
    copy(MM, GD2, R);
    solve_lower_right(M, M, z->L, R);
    transpose(M, R, GD2J);
    scale_rows(M, M, root, GD2J);
    scale_rows(M, M, root, GD2J);
    solve_lower(M, M, z->L, GD2J);
    scale_by(MM, jitter, GD2J);
    copy(MM, GD2J, R);
    add_transpose(M, R);
    add_scaled(MM, -2.0, R, Hs);

    mult_ABt(M, M, M, 2.0, s->G, GD2J, 0.0, Lbar_share); /* 2 G D^{-2} G J */
    solve_lower_t(M, M, z->L, Lbar_share);

    if (!kernel_is_constant(z->model->kernel)) {
        mult_AB(M, M, M, 1.0, s->G, GD2, 0.0, R);
        solve_lower_t(M, M, z->L, R);
        solve_lower_right(M, M, z->L, R);
        for (int m = 0; m < M; m++)
            kzz_bar[m] = -z->jitter * R[(size_t)m * M + m];
    }

    fill(MM, 0.0, E);
    add_diagonal(M, 1.0, E);
    solve_D(M, M, C, s2, E);
    solve_D(M, M, C, s2, E);
    add_diagonal(M, -1.0, E);
    scale_by(MM, 2.0, E);
    mult_AB(M, M, M, 1.0, E, W0, 1.0, AbarAt);
}

enum status pf_evaluate(const struct inducing *z, const struct stats *s,
                        const struct lowrank *aux, const double *T, const double *W0,
                        struct arena *arena, double *value, struct adjoint *adjoint)
{
    const int M = s->M, q = s->q, last = q - 1;
    const size_t MM = (size_t)M * M, Mq = (size_t)M * q;
    double *C = arena_take(arena, 3 * MM + 4 * Mq + (aux->p ? 5 * MM + M : 0)),
           *S1 = C + MM, *S2 = S1 + MM, *X = S2 + MM, *Y = X + Mq, *R = Y + Mq,
           *B = R + Mq, *prior = B + Mq;
    double *Q1 = prior, *share = prior + MM, *scratch = share + MM,
           *root = scratch + 3 * MM; /* for p = 1 */
    const double s2 = z->model->s2;
    double jitter = 0.0, fit = aux->p ? -trace(M, W0) : 0.0;

    if (chol_shifted(M, s->G, s2, C))
        return STATUS_INNER_NOT_PD;

    copy(Mq, s->AW, R); /* P_r = A R_x: y is subtracted from the mean's column */
    add_scaled((size_t)M, -1.0, s->Ay, R + (size_t)last * M);
    copy(Mq, s->AW, X); /* X = D^{-1} (A W_x - G T) */
    mult_AB(M, M, q, -1.0, s->G, T, 1.0, X);
    for (int j = 0; j < q; j++)
        fit -= aux->sign[j] * sum_squares((size_t)M, R + (size_t)j * M);
    if (aux->p) { /* V = W0 - G^2 */
        copy(MM, W0, S2);
        mult_AtB(M, M, M, -1.0, s->G, s->G, 1.0, S2);
    }
    *value = fit + transfer(z, s, aux, C, X, S2, S1, Q1, root, &jitter);
    if (adjoint == NULL)
        return STATUS_OK;

    copy(Mq, X, Y); /* Y = D^{-1} X; then Y and R are multiplied by the signs */
    solve_D(M, q, C, s2, Y);
    scale_columns(M, q, aux->sign, Y);
    scale_columns(M, q, aux->sign, R);

    double *Hs = adjoint->H, *AbarAt = S1;
    copy(Mq, T, B); /* H = P + P', P = -2 Y (T + X / s2)' */
    add_scaled(Mq, 1.0 / s2, X, B);
    mult_ABt(M, q, M, -2.0, Y, B, 0.0, Hs);
    add_transpose(M, Hs);

    for (size_t i = 0; i < Mq; i++) /* F = 2 (Y - P_r) */
        adjoint->F[i] = 2.0 * (Y[i] - R[i]);
    for (int m = 0; m < M; m++) /* f = 2 P_r[, last] */
        adjoint->f[m] = 2.0 * R[(size_t)last * M + m];
    mult_AB(M, M, q, -2.0, s->G, Y, 0.0, adjoint->Wm_bar); /* Tbar = -2 G Y */

    fill(MM, 0.0, AbarAt);
    if (aux->p)
        adjoint_of_prior(z, s, jitter, root, C, s2, W0, Q1, scratch, Hs, AbarAt,
                         adjoint->E, share, adjoint->kzz_bar);
    mult_ABt(M, q, M, 1.0, adjoint->F, s->AW, 1.0, AbarAt);
    add_xyt(M, M, 1.0, adjoint->f, s->Ay, AbarAt);
    mult_AB(M, M, M, 1.0, Hs, s->G, 1.0, AbarAt);
    mult_ABt(M, q, M, 1.0, adjoint->Wm_bar, T, 1.0, AbarAt); /* + Tbar T' */

    double *Lbar = S2; /* -tril(L^{-T} (Abar A' + Tbar T')), with its diagonal */
    copy(MM, AbarAt, Lbar);
    solve_lower_t(M, M, z->L, Lbar);
    scale_by(MM, -1.0, Lbar);
    if (aux->p)
        add_scaled(MM, 1.0, share, Lbar);
    chol_adjoint(M, z->L, Lbar, adjoint->Kmm_bar);

    solve_lower_t(M, M, z->L, Hs);
    solve_lower_t(M, q, z->L, adjoint->F);
    solve_lower_t(M, 1, z->L, adjoint->f);
    solve_lower_t(M, q, z->L, adjoint->Wm_bar);
    if (aux->p)
        solve_lower_t(M, M, z->L, adjoint->E);
    return STATUS_OK;
}

enum status pf_transfer(const struct inducing *z, const struct stats *s,
                        const struct lowrank *aux, double *U, double *V,
                        struct arena *arena, double *value)
{
    const int M = s->M;
    const size_t MM = (size_t)M * M;
    double *C = arena_take(arena, 3 * MM + M), *B = C + MM, *Q = B + MM, *root = Q + MM,
           jitter;
    if (chol_shifted(M, s->G, z->model->s2, C))
        return STATUS_INNER_NOT_PD;
    *value = transfer(z, s, aux, C, U, V, B, Q, root, &jitter);
    return STATUS_OK;
}
