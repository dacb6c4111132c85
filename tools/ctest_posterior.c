/* Compares the DTC posterior and the exact posterior with dense algebra, and derivatives of log likelihoods with finite
 * differences. */
#include <math.h>
#include "ctest.h"
#include "exact.h"
#include "linalg.h"
#include "posterior.h"
#include "responses.h"

static const struct shape shapes[] = {/* M, N, columns, d, n_u, q */
                                      {1, 1, 1, 1, 1, 1},
                                      {4, 11, 3, 2, 1, 1},
                                      {5, 1, 2, 1, 1, 1},
                                      {2, 9, 1, 1, 1, 1}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };
static const double log_2pi = 1.837877066409345483560659472811;

/* Returns n new rows, with leading dimension n + 1. */
static double *new_rows(const struct problem *p, int n)
{
    const int columns = p->shape.columns, ldx = n + 1;
    double *X = array((size_t)(columns - 1) * ldx + n);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < n; i++)
            X[(size_t)j * ldx + i] = uniform(-2.5, 2.5);
    return X;
}

static void predict(const struct problem *p, const struct posterior *post,
                    const struct dense *f, int n)
{
    const int M = p->shape.M, ldx = n + 1;
    const struct covariance *c = &p->covariance;
    const double *X = new_rows(p, n);
    /* q(x, X) = k(x, Z) Kmm^{-1} k(Z, X) */
    const struct matrix Kxz = naive_kernel(c, n, X, ldx, M, p->Z, M),
                        Kxx = naive_kernel(c, n, X, ldx, n, X, ldx),
                        to_z = times(Kxz, f->Kmm_inverse),
                        Qxx = times(to_z, transposed(Kxz)),
                        gain = times(times(to_z, transposed(f->Kxm)), f->B_inverse),
                        mean = times(gain, f->y),
                        sor =
                            plus(Qxx, -1.0, times(gain, times(f->Kxm, transposed(to_z)))),
                        dtc = plus(plus(Kxx, -1.0, Qxx), 1.0, sor);
    const size_t size = (size_t)n, nn = size * size, Mn = size * (size_t)M;
    const struct block block = {n, X, ldx, NULL, NULL, 0};
    const struct matrix L = matrix_of(M, M, post->z.L),
                        A = times(inverse(L, NULL), transposed(Kxz));
    double *got = array(size), *variance = array(size), *left = array(size),
           *covariance = array(nn);
    const struct predicting to = {post, got, variance, left};
    const struct visit visit = {.block = block, .A = A.x, .work = array(Mn)};
    predicting_sink(&to).add(&to, &visit);
    CHECK_ARRAY(size, got, mean.x, 1e-11);
    for (int i = 0; i < n; i++) {
        CHECK_NEAR(variance[i], at(sor, i, i), 1e-11);
        CHECK_NEAR(left[i], at(Kxx, i, i) - at(Qxx, i, i), 1e-11);
        CHECK(left[i] >= 0.0);
    }
    posterior_covariance(post, &block, 0, array(Mn), covariance);
    CHECK_ARRAY(nn, covariance, dtc.x, 1e-11);
    posterior_covariance(post, &block, 1, array(Mn), covariance);
    CHECK_ARRAY(nn, covariance, sor.x, 1e-11);
}

static void posterior(struct problem *p)
{
    const int M = p->shape.M, N = p->shape.N;
    const struct dense f = dense_of(p);
    const struct matrix v = times(f.B_inverse, f.y);
    struct pieces pass;
    pieces_make(p, NULL, N, &pass);
    const struct piece *all = pass.piece;
    double *C = array((size_t)M * M), *beta = array((size_t)M), *e = array((size_t)N),
           *want = array((size_t)N);
    CHECK(posterior_factor(&pass.stats, p->s2, C, beta) == STATUS_OK);
    CHECK_ARRAY((size_t)M, beta, times(matrix_of(M, N, all->A), v).x, 1e-11);
    for (int i = 0; i < N; i++)
        want[i] = p->s2 * v.x[i];
    block_response(&all->block, e);
    mult_Atx(M, N, -1.0, all->A, beta, 1.0, e);
    CHECK_ARRAY((size_t)N, e, want, 1e-11);
    const struct posterior post = {pass.z, C, beta};
    for (int n = 0; n < 5; n++)
        predict(p, &post, &f, n);
    double *G = array_copy((size_t)M * M, pass.stats.G);
    pass.stats.G = G;
    for (int m = 0; m < M; m++) /* s2 I + G is no longer positive definite */
        G[(size_t)m * M + m] = -1.0;
    CHECK(posterior_factor(&pass.stats, p->s2, C, beta) == STATUS_INNER_NOT_PD);
}

void group_posterior(void)
{
    for_problems(shapes, N_SHAPES, 0, posterior);
}

/* ---- the exact GP ------------------------------------------------------------------ */

/* Returns the exact GP for the problem's rows, with p->scale as weights. */
static struct exact exact_of(const struct problem *p, const struct source *rows,
                             const struct model *model)
{
    const struct plan like = {.threads = 2, .arena = &arrays};
    struct exact e = {.model = model, .weights = p->scale};
    e.pass = (struct pass){.plan = plan_for(&like, rows->N, 4), .rows = rows};
    e.L = array((size_t)rows->N * rows->N);
    e.alpha = array((size_t)rows->N);
    e.precision = array((size_t)rows->N);
    return e;
}

struct evidence {
    const struct problem *p;
    const struct source *rows;
    struct model *model;
};

static double minus_evidence(const void *context)
{
    const struct evidence *v = context;
    const size_t taken = arrays_taken();
    struct exact e = exact_of(v->p, v->rows, v->model);
    double value = 0.0;
    CHECK(exact_run(&e, &value) == STATUS_OK);
    arrays_release(taken);
    return value;
}

static void exact(struct problem *p)
{
    const int N = p->shape.N, d = p->shape.d;
    const struct covariance *c = &p->covariance;
    const struct source rows = {
        .N = N, .columns = p->shape.columns, .X = p->X, .y = p->y, .ldx = N};
    struct model model = {&c->kernel, p->s2};
    const struct evidence v = {p, &rows, &model};
    const struct matrix K = naive_kernel(c, N, p->X, N, N, p->X, N),
                        y = matrix_of(N, 1, p->y);
    struct matrix B = matrix_of(N, N, K.x);
    struct exact e = exact_of(p, &rows, &model);
    double log_det, value, noise, *dtheta = array((size_t)d + 1);
    for (int i = 0; i < N; i++)
        B.x[(size_t)i * N + i] += p->s2 / (p->scale == NULL ? 1.0 : p->scale[i]);
    const struct matrix B_inverse = inverse(B, &log_det), v_y = times(B_inverse, y);
    CHECK(exact_run(&e, &value) == STATUS_OK);
    CHECK_ARRAY((size_t)N, e.alpha, v_y.x, 1e-12);
    CHECK_NEAR(value, 0.5 * (N * log_2pi + log_det + at(times(transposed(y), v_y), 0, 0)),
               1e-12);
    exact_gradient(&e, dtheta, &noise);
    CHECK(!chol_finish(N, e.L));
    for (int i = 0; i < N; i++)
        CHECK_NEAR(e.precision[i], at(B_inverse, i, i), 1e-12);
    for (int j = 0; j < d; j++)
        CHECK_NEAR(dtheta[j],
                   c->lengthscale[j] * slope(minus_evidence, &v, c->lengthscale + j),
                   1e-8);
    CHECK_NEAR(dtheta[d], *c->variance * slope(minus_evidence, &v, c->variance), 1e-8);
    CHECK_NEAR(noise, p->s2 * slope(minus_evidence, &v, &model.s2), 1e-8);

    for (int m = 0; m < 4; m++) {
        const double *X = new_rows(p, m);
        const struct matrix Kn = naive_kernel(c, N, p->X, N, m, X, m + 1),
                            gain = times(transposed(Kn), B_inverse);
        double *mean = array((size_t)m), *variance = array((size_t)m);
        const struct block b = {m, X, m + 1, NULL, NULL, 0};
        const struct matrix A = times(inverse(matrix_of(N, N, e.L), NULL), Kn);
        const struct posterior of_rows = {.z = {.model = &model, .M = N, .L = e.L},
                                          .beta = e.alpha};
        const struct predicting to = {&of_rows, mean, NULL, variance};
        const struct visit visit = {.block = b, .K = Kn.x, .A = A.x};
        predicting_sink(&to).add(&to, &visit);
        CHECK_ARRAY((size_t)m, mean, times(gain, y).x, 1e-12);
        for (int i = 0; i < m; i++)
            CHECK_NEAR(variance[i], *c->variance - at(times(gain, Kn), i, i), 1e-12);
    }
    model.s2 = -2.0 * *c->variance;
    CHECK(exact_run(&e, &value) == STATUS_EXACT_NOT_PD);
}

void group_exact(void)
{
    for_problems(shapes, N_SHAPES, 0, exact);
}

/* ---- likelihoods: derivatives, weights and the majorant ----------------------------------- */

static void likelihood(const char *name, double y, double size)
{
    const double shape[2] = {4.0, 0.5}, weight[2] = {2.5, 0.5}, offset[2] = {0.0, 0.0},
                 h = 1e-5;
    const double ys[2] = {y, y}, sizes[2] = {size, size};
    const struct sites plain = {response_named(name), ys, offset, sizes, NULL, shape};
    struct sites sites = plain;
    sites.weight = weight;
    for (double f = -3.0; f <= 3.0; f += 0.25)
        for (int i = 0; i < 2; i++) {
            const struct site_value at = sites_at(&sites, i, f),
                                    up = sites_at(&sites, i, f + h),
                                    down = sites_at(&sites, i, f - h);
            CHECK_NEAR(at.l, weight[i] * sites_at(&plain, i, f).l, 1e-14);
            CHECK_NEAR(at.g, (up.l - down.l) / (2.0 * h), 1e-8);
            CHECK_NEAR(at.W, -(up.g - down.g) / (2.0 * h), 1e-8);
            CHECK_NEAR(at.l3, -(up.W - down.W) / (2.0 * h), 1e-7);
            if (plain.response->majorant == NULL)
                continue;
            const double w = sites_majorant(&sites, i, f);
            for (double t = -6.0; t <= 6.0; t += 0.5)
                CHECK(sites_at(&sites, i, f + t).l >=
                      at.l + at.g * t - 0.5 * w * t * t - 1e-12);
            /* at the other f with the same |y - f| both sides are equal, so no smaller w would do */
            const double t = 2.0 * (y - f);
            CHECK_NEAR(sites_at(&sites, i, f + t).l, at.l + at.g * t - 0.5 * w * t * t,
                       1e-12);
        }
}

void group_likelihoods(void)
{
    CHECK(response_named("cauchy") == NULL);
    likelihood("logit", 2.0, 3.0);
    likelihood("probit", 2.0, 3.0);
    likelihood("log", 4.0, 1.0);
    likelihood("nb", 4.0, 1.7);
    likelihood("gamma", 0.4, 1.7);
    likelihood("tweedie", 1.4, 1.0);
    likelihood("tweedie", 0.0, 1.0);
    likelihood("positive", 1.0, 1.0);
    likelihood("positive", 4.0, 1.0);
    for (int k = 0; k < 3; k++) {
        const char *noise[3] = {"logistic", "normal", "gumbel"};
        likelihood(noise[k], 0.4, 0.4);
        likelihood(noise[k], 0.4, 0.5);
        likelihood(noise[k], -0.4, 1.7);
        likelihood(noise[k], -INFINITY, 0.7);
        likelihood(noise[k], 0.2, INFINITY);
    }
    likelihood("student", 0.3, 1.0);
}
