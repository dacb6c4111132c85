/* Compares the objectives with Propositions 1, 2 and 2b of the theory vignette, and their gradients with
 * differences. */
#include <math.h>
#include "ctest.h"
#include "kernel_pull.h"
#include "linalg.h"
#include "objective.h"

static const double log_2pi = 1.837877066409345483560659472811;

/* Adds the derivatives from the blocks and from k(Z, Z) to dZ and dtheta, which may be NULL.  Returns rss. */
static double second_pass(const struct pieces *pass, const struct adjoint *a, double *dZ,
                          double *dtheta)
{
    const struct inducing *z = &pass->z;
    double rss = 0.0;
    for (int i = 0; i < pass->n_pieces; i++) {
        const struct piece *piece = pass->piece + i;
        const struct block *b = &piece->block;
        double *Kmx_bar = array((size_t)z->M * b->n);
        rss += gradient_block(a, b, piece->A, piece->Wt, piece->AK, array((size_t)b->n),
                              Kmx_bar);
        kernel_pull(z->model->kernel, points_of(z), rows_of(b), piece->K, Kmx_bar,
                    array(kernel_size(z->model->kernel, z->M)), dZ, dtheta);
    }
    kernel_pull_self(z->model->kernel, z->columns, points_of(z), z->jitter, a->Kmm_bar,
                     &arrays, dZ, dtheta);
    return rss;
}

struct answer pf_answer(const struct problem *p, int block, int gradient)
{
    const int M = p->shape.M, q = p->shape.q;
    const struct lowrank aux = problem_aux(p);
    struct answer e = {.dZ = array_zero((size_t)M * p->shape.columns)};
    struct adjoint a;
    struct pieces pass;
    double *K_zu = array((size_t)M * aux.n_u), *T = array((size_t)M * q);
    pieces_make(p, &aux, block, &pass);
    e.status = pass.status;
    if (e.status != STATUS_OK)
        return e;
    lowrank_points(&aux, &pass.z, K_zu, T);
    adjoint_init(M, q, aux.p, array(adjoint_size(M, q, aux.p)), &a);
    e.status = pf_evaluate(&pass.z, &pass.stats, &aux, T, pass.W0, &arrays, &e.value,
                           gradient ? &a : NULL);
    if (gradient) {
        second_pass(&pass, &a, e.dZ, NULL);
        lowrank_pull(&aux, &pass.z, K_zu, a.Wm_bar, &arrays, e.dZ);
    }
    return e;
}

/* Returns |y - A'beta|^2 without a gradient. */
static double residual_sum(const struct pieces *pass, const double *beta)
{
    double rss = 0.0;
    for (int i = 0; i < pass->n_pieces; i++) {
        const struct block *b = &pass->piece[i].block;
        double *residual = array((size_t)b->n);
        block_response(b, residual);
        mult_Atx(pass->z.M, b->n, -1.0, pass->piece[i].A, beta, 1.0, residual);
        rss += sum_squares((size_t)b->n, residual);
    }
    return rss;
}

const double white_share_of_noise = 0.7;

/* Evaluates an objective of the table that has no auxiliary distribution. */
static struct answer table_answer(const char *name, const struct problem *p, int block,
                                  int gradient)
{
    const struct objective *o = objective_named(name);
    const int M = p->shape.M;
    const size_t MM = (size_t)M * M;
    const struct kernel *k = &p->covariance.kernel;
    struct answer e = {.dZ = array_zero((size_t)M * p->shape.columns)};
    struct pieces pass;
    pieces_make(p, NULL, block, &pass);
    e.status = pass.status;
    if (e.status != STATUS_OK)
        return e;
    struct evaluation s = {.z = pass.z,
                           .stats = pass.stats,
                           .share = white_share_of_noise,
                           .with_gradient = gradient,
                           .pass.plan.arena = &arrays,
                           .C = array(MM),
                           .beta = array((size_t)M),
                           .N = array(MM)};
    const struct adjoint *a = &s.adjoint;
    adjoint_init(M, 0, 0, array(adjoint_size(M, 0, 0)), &s.adjoint);
    e.status = o->factor(&s);
    if (!gradient) {
        e.value = o->value(&s, residual_sum(&pass, s.beta), NULL);
        return e;
    }
    if (o->with_theta)
        e.dtheta = array_zero((size_t)k->n_theta);
    const double rss = second_pass(&pass, a, e.dZ, e.dtheta);
    if (o->with_theta)
        e.dtheta[k->term->at] += *a->k_bar * pass.stats.k_sum;
    e.value = o->value(&s, rss, &e.noise);
    return e;
}

struct answer vfe_answer(const struct problem *p, int block, int gradient)
{
    return table_answer("vfe", p, block, gradient);
}

struct answer white_answer(const struct problem *p, int block, int gradient)
{
    return table_answer("white", p, block, gradient);
}

/* ---- by definition ----------------------------------------------------------------- */

/* Returns sum_ij A_ij B_ij. */
static double inner(struct matrix A, struct matrix B)
{
    return trace_of(times(transposed(A), B));
}

struct terms {
    double fit, transfer;
};

/* Returns (I) - C(X) and (II) + (III) of Proposition 2, by definition. */
static struct terms naive_pf(const struct problem *p)
{
    const int M = p->shape.M, N = p->shape.N, last = p->shape.q - 1;
    const struct dense f = dense_of(p);
    double *sign = array_copy((size_t)p->shape.q, p->sign);
    sign[last] = 0.0; /* the covariance has no column for the mean */
    const struct matrix Wxt = scaled_columns(f.Wx, sign),
                        Wmt = scaled_columns(f.Wm, sign),
                        mu_x = matrix_of(N, 1, f.Wx.x + (size_t)last * N),
                        mu_m = matrix_of(M, 1, f.Wm.x + (size_t)last * M),
                        k_xx = plus(times(Wxt, transposed(f.Wx)), p->p, f.K),
                        k_mm = plus(times(Wmt, transposed(f.Wm)), p->p, f.Kzz),
                        k_mx =
                            plus(times(Wmt, transposed(f.Wx)), p->p, transposed(f.Kxm)),
                        Q_ = times(f.Kxm, f.Kmm_inverse),
                        I_BQ = plus(identity(N), -1.0, times(f.B_inverse, f.Q)),
                        S = times(f.Q, times(I_BQ, I_BQ)), r = plus(mu_x, -1.0, f.y),
                        second = plus(k_xx, 1.0, times(r, transposed(r))),
                        u = plus(mu_x, -1.0, times(Q_, mu_m));
    const double fit = -inner(second, f.Q), /* (I) - C(X), where C(X) has K, not Q */
        covariance = inner(k_xx, S) + inner(k_mm, times(times(transposed(Q_), S), Q_)) -
                     2.0 * trace_of(times(k_mx, times(S, Q_))),
                 mean = inner(u, times(S, u));
    return (struct terms){fit, covariance + mean};
}

/* Returns -log N(y; 0, Q + s2 I) + t / (2 s2). */
static double naive_vfe(const struct problem *p)
{
    const struct dense f = dense_of(p);
    const double t = trace_of(plus(f.K, -1.0, f.Q));
    return 0.5 * (p->shape.N * log_2pi + f.log_det_B +
                  inner(f.y, times(f.B_inverse, f.y)) + t / p->s2);
}

/* Returns s2^2 y'B^{-1} y + share s2 (tr(K - Q) + tr(Q (I - B^{-1} Q)^2)). */
static double naive_white(const struct problem *p)
{
    const struct dense f = dense_of(p);
    const struct matrix I_BQ = plus(identity(p->shape.N), -1.0, times(f.B_inverse, f.Q));
    const double covariance =
        trace_of(plus(f.K, -1.0, f.Q)) + trace_of(times(f.Q, times(I_BQ, I_BQ)));
    return p->s2 * (p->s2 * inner(f.y, times(f.B_inverse, f.y)) +
                    white_share_of_noise * covariance);
}

/* ---- checks ------------------------------------------------------------------------ */

struct question {
    answer_of *f;
    const struct problem *p;
};

static double value_of(const void *context)
{
    const struct question *a = context;
    const size_t taken = arrays_taken();
    const struct answer e = a->f(a->p, a->p->shape.N, 0);
    CHECK(e.status == STATUS_OK);
    arrays_release(taken);
    return e.value;
}

/* Compares a value with `want`, its gradient in Z with differences, and both for blocks of different sizes. */
static struct answer check_objective(answer_of *f, struct problem *p, double want)
{
    const int N = p->shape.N, blocks[] = {1, 4, (N + 1) / 2};
    const size_t size = (size_t)p->shape.M * p->shape.columns;
    const struct question question = {f, p};
    const struct answer e = f(p, N, 1);
    double *dZ = array(size);
    CHECK(e.status == STATUS_OK);
    CHECK_NEAR(e.value, want, 1e-10);
    CHECK_NEAR(value_of(&question), e.value, 1e-14);
    for (size_t i = 0; i < size; i++)
        dZ[i] = slope(value_of, &question, p->Z + i);
    CHECK_ARRAY(size, e.dZ, dZ, 1e-7);
    for (int i = 0; i < 3; i++) {
        const struct answer by_block = f(p, blocks[i], 1);
        CHECK_NEAR(by_block.value, e.value, 1e-11);
        CHECK_NEAR(by_block.noise, e.noise, 1e-10);
        CHECK_ARRAY(size, by_block.dZ, e.dZ, 1e-10);
        if (e.dtheta != NULL)
            CHECK_ARRAY((size_t)p->shape.d + 1, by_block.dtheta, e.dtheta, 1e-10);
    }
    return e;
}

static const struct shape shapes[] = {/* M, N, columns, d, n_u, q */
                                      {3, 8, 2, 2, 4, 3},
                                      {1, 1, 1, 1, 1, 1},
                                      {1, 6, 1, 1, 3, 1},
                                      {4, 1, 2, 1, 2, 6},
                                      {2, 9, 3, 2, 1, 2}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* Checks (II) + (III) as pf_transfer() computes them, from W_x - A'T. */
static void transfer_alone(const struct problem *p, double want)
{
    const int M = p->shape.M, N = p->shape.N, q = p->shape.q;
    const size_t MM = (size_t)M * M, Mq = (size_t)M * q;
    const struct lowrank aux = problem_aux(p);
    const struct dense f = dense_of(p);
    double *T = array(Mq), value;
    struct pieces pass;
    pieces_make(p, &aux, N, &pass);
    lowrank_points(&aux, &pass.z, array((size_t)M * aux.n_u), T);
    const struct matrix A = matrix_of(M, N, pass.piece[0].A), E = plus(f.K, -1.0, f.Q),
                        left = times(transposed(A), matrix_of(M, q, T)),
                        U = times(A, plus(f.Wx, -1.0, left)),
                        V = times(A, times(E, transposed(A)));
    CHECK(pf_transfer(&pass.z, &pass.stats, &aux, array_copy(Mq, U.x),
                      aux.p ? array_copy(MM, V.x) : NULL, &arrays, &value) == STATUS_OK);
    CHECK_NEAR(value, want, 1e-10);
}

static void check_pf(struct problem *p)
{
    const struct terms want = naive_pf(p);
    check_objective(pf_answer, p, want.fit + want.transfer);
    transfer_alone(p, want.transfer);
}

void group_pf(void)
{
    for_problems(shapes, N_SHAPES, 0, check_pf);
    for_problems(shapes, N_SHAPES, 1, check_pf);
    struct problem bad = problem_new("se", shapes[0], 1, 0);
    bad.s2 = -100.0;
    CHECK(pf_answer(&bad, 4, 0).status == STATUS_INNER_NOT_PD);
}

static void check_vfe(struct problem *p)
{
    struct covariance *c = &p->covariance;
    const int d = p->shape.d;
    const struct question question = {vfe_answer, p};
    const struct answer e = check_objective(vfe_answer, p, naive_vfe(p));
    double *want = array((size_t)d + 1);
    for (int j = 0; j < d; j++) /* derivatives in the logs of parameters */
        want[j] = c->lengthscale[j] * slope(value_of, &question, c->lengthscale + j);
    want[d] = *c->variance * slope(value_of, &question, c->variance);
    CHECK_ARRAY((size_t)d + 1, e.dtheta, want, 1e-7);
    CHECK_NEAR(e.noise, p->s2 * slope(value_of, &question, &p->s2), 1e-7);
}

void group_vfe(void)
{
    for_problems(shapes, N_SHAPES, 0, check_vfe);
    struct problem bad = problem_new("se", shapes[0], 0, 0);
    bad.X[0] = NAN;
    CHECK(vfe_answer(&bad, 4, 0).status == STATUS_NOT_FINITE);
    bad = problem_new("se", shapes[0], 0, 0);
    bad.Z[0] = NAN;
    CHECK(vfe_answer(&bad, 4, 0).status == STATUS_KMM_NOT_PD);
}

/* ---- one block of the second pass -------------------------------------------------- */

/* Checks Kmx_bar = (H A + F W_x' + f e' + E A K) diag(scale). */
static void gradient(int M, int n, int q, int with_E, int with_beta, int weighted)
{
    const size_t Mn = (size_t)M * n, MM = (size_t)M * M;
    double *scale = weighted ? array_random((size_t)n, 0.5, 1.5) : NULL;
    const struct block b = {n, NULL, 1, array_random((size_t)n, -1.0, 1.0), scale, 0};
    const struct matrix A = {M, n, array_random(Mn, -1.0, 1.0)},
                        AK = {M, n, array_random(Mn, -1.0, 1.0)},
                        Wt = {q, n, array_random((size_t)q * n, -1.0, 1.0)},
                        beta = {M, 1, array_random((size_t)M, -1.0, 1.0)};
    const struct matrix H = {M, M, array_random(MM, -1.0, 1.0)},
                        E = {M, M, array_random(MM, -1.0, 1.0)},
                        F = {M, q, array_random((size_t)M * q, -1.0, 1.0)},
                        f = {M, 1, array_random((size_t)M, -1.0, 1.0)};
    const struct adjoint a = {.M = M,
                              .q = q,
                              .H = H.x,
                              .F = F.x,
                              .f = f.x,
                              .E = with_E ? E.x : NULL,
                              .beta = with_beta ? beta.x : array_zero((size_t)M)};
    struct matrix e = scaled_rows(scale, matrix_of(n, 1, b.y));
    if (with_beta)
        e = plus(e, -1.0, times(transposed(A), beta));
    struct matrix want = plus(times(H, A), 1.0, times(F, Wt));
    want = plus(want, 1.0, times(f, transposed(e)));
    if (with_E)
        want = plus(want, 1.0, times(E, AK));
    double *got = array(Mn);
    const double rss = gradient_block(&a, &b, A.x, q > 0 ? Wt.x : NULL,
                                      with_E ? AK.x : NULL, array((size_t)n), got);
    CHECK_ARRAY(Mn, got, scaled_columns(want, scale).x, 1e-13);
    CHECK_NEAR(rss, inner(e, e), 1e-13);
}

void group_gradient(void)
{
    static const int extents[][2] = {{1, 1}, {4, 7}, {3, 0}, {5, 1}};
    for (int i = 0; i < 4; i++)
        for (int q = 0; q < 3; q++)
            for (int on = 0; on < 8; on++)
                gradient(extents[i][0], extents[i][1], q, on & 1, on & 2, on & 4);
}

static void check_white(struct problem *p)
{
    check_objective(white_answer, p, naive_white(p));
}

void group_white(void)
{
    for_problems(shapes, N_SHAPES, 0, check_white);
}
