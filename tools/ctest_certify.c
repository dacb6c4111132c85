/* Compares certificates with the formulas of certify.h, and with the exact GP. */
#include <float.h>
#include <math.h>
#include "certify.h"
#include "ctest.h"

static const struct shape shapes[] = {/* M, N, columns, d, n_u, q */
                                      {1, 1, 1, 1, 1, 1},
                                      {4, 11, 3, 2, 1, 1},
                                      {5, 1, 2, 1, 1, 1},
                                      {2, 9, 1, 1, 1, 1}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

struct certificate {
    double mean_error;           /* >= |mean_DTC - mean_exact| */
    double var_lower, var_upper; /* bounds on var_exact */
};

/* A new point x, by dense algebra: h = B^{-1} q(X, x), C_x = (a - A h) / s2. */
struct point {
    double prior, mean, sor, left, hh, hEh, CC;
    double exact_mean, exact_var;
    struct crossing crossing;
};

struct setting {
    const struct problem *p;
    struct dense f;
    struct pieces pass;
    struct posterior post;
    struct matrix E;
    struct norms exact; /* the norms themselves, without allowances for rounding */
    int n;
    double *X, *Kzx;
    struct point *point;
};

static double quadratic(struct matrix u, struct matrix S)
{
    return at(times(transposed(u), times(S, u)), 0, 0);
}

static double frobenius(struct matrix A)
{
    return sqrt(trace_of(times(transposed(A), A)));
}

static struct point point_of(const struct setting *s, int i)
{
    const struct problem *p = s->p;
    const struct dense *f = &s->f;
    const int M = p->shape.M, N = p->shape.N, ldx = s->n + 1;
    const struct covariance *c = &p->covariance;
    struct point x;
    const struct matrix kz = matrix_of(M, 1, s->Kzx + (size_t)i * M),
                        kx = scaled_rows(p->scale,
                                         naive_kernel(c, N, p->X, N, 1, s->X + i, ldx)),
                        to_z = times(f->Kmm_inverse, kz), q = times(f->Kxm, to_z),
                        h = times(f->B_inverse, q),
                        rest = plus(kz, -1.0, times(transposed(f->Kxm), h)),
                        e = plus(kx, -1.0, q), /* e_x = E(X, x) */
        K_inverse = inverse(plus(f->K, p->s2, identity(N)), NULL);
    x.crossing = (struct crossing){at(times(transposed(h), e), 0, 0),
                                   quadratic(e, f->B_inverse), quadratic(e, identity(N))};
    x.prior = *c->variance;
    x.mean = at(times(transposed(h), f->y), 0, 0);
    x.left = x.prior - at(times(transposed(kz), to_z), 0, 0);
    x.sor = x.prior - x.left - at(times(transposed(q), h), 0, 0);
    x.hh = at(times(transposed(h), h), 0, 0);
    x.hEh = quadratic(h, s->E);
    x.CC = quadratic(rest, f->Kmm_inverse) / (p->s2 * p->s2);
    x.exact_mean = at(times(transposed(kx), times(K_inverse, f->y)), 0, 0);
    x.exact_var = x.prior - quadratic(kx, K_inverse);
    return x;
}

/* Returns the certificate of a point by the formulas of certify.h. */
static struct certificate expected(const struct norms *s, double s2,
                                   const struct point *x)
{
    const double inner = s->growth * s->G_norm / s2;
    const double everything = fabs(x->mean) + sqrt(x->prior * s->c);
    struct certificate want = {everything, 0.0, x->prior};
    if (inner >= 0.25)
        return want;
    const double moved = 0.5 * inner * sqrt(s2 * x->CC);
    const double h = sqrt(x->hh + s->growth * s->G_norm * x->CC) + moved;
    const double kappa = sqrt(s->slack * x->prior), kappa_h = kappa * sqrt(s->weight) * h;
    double eta = sqrt(x->hEh + s->growth * s->Psi_norm * x->CC) +
                 sqrt(s->spread) * kappa_h + sqrt(s->lam) * moved;
    if (sqrt(s->lam) * h < eta)
        eta = sqrt(s->lam) * h;
    const double both = kappa + kappa_h, wide = sqrt(x->left) + eta + both,
                 gap = sqrt(x->left) - eta - both,
                 k_error = s->unit * (sqrt(x->prior * s->K_norm) + s->K_norm * h),
                 sor_error = x->sor * inner / (1.0 - inner) + 2.0 * k_error * h;
    const double error = wide * s->w_E + sqrt(x->CC) * s->beta_error +
                         s->slack * x->prior * s->alpha * (1.0 + sqrt(s->weight) * h) +
                         s->growth * sqrt(x->prior) * s->beta + k_error * s->w_norm;
    if (error < everything)
        want.mean_error = error;
    want.var_lower = x->sor - sor_error - (2.0 * wide - both) * both;
    if (gap > 0.0)
        want.var_lower += gap * gap / (1.0 + s->lam / s2);
    if (want.var_lower < 0.0)
        want.var_lower = 0.0;
    if (x->sor + sor_error + wide * wide < x->prior)
        want.var_upper = x->sor + sor_error + wide * wide;
    return want;
}

/* Returns the certificate that also uses e_x, from exact norms without allowances for rounding (certify.h). */
static struct certificate expected_with(const struct norms *s, double s2,
                                        const struct point *x)
{
    struct certificate want = expected(s, s2, x);
    const double root = sqrt(x->left), ratio = s->lam / s2,
                 eta = fmin(sqrt(x->hEh), sqrt(s->lam * x->hh)),
                 gap = fmax(root - eta, 0.0), apart = sqrt(ratio) * eta;
    const double p2 = x->left - 2.0 * x->crossing.cross, low = fmax(gap * gap, p2),
                 high = fmin((root + eta) * (root + eta), p2 + eta * eta);
    const double q = sqrt(x->crossing.gain), q_high = q + apart,
                 q_low = fmax(q - apart, 0.0);
    if (low > 0.0)
        want.var_lower =
            fmax(want.var_lower, x->sor + low * low / (low + q_high * q_high));
    want.var_upper = fmin(want.var_upper, x->sor + high - q_low * q_low / (1.0 + ratio));
    return want;
}

static struct certificate *certificates(const struct setting *s,
                                        const struct norms *norms, int crossed)
{
    const size_t n = (size_t)s->n;
    const int M = s->p->shape.M;
    /* an array of exactly the size of n structs */
    struct certificate *got =
        (struct certificate *)array(n * (sizeof *got / sizeof(double)));
    double *cross = array(n), *gain = array(n), *size = array(n);
    const struct crossings crossings = {cross, gain, size};
    const struct block block = {s->n, s->X, s->n + 1, NULL, NULL, 0};
    const struct matrix L = matrix_of(M, M, s->pass.z.L),
                        A = times(inverse(L, NULL), matrix_of(M, s->n, s->Kzx));
    for (int i = 0; i < s->n; i++) {
        cross[i] = s->point[i].crossing.cross;
        gain[i] = s->point[i].crossing.gain;
        size[i] = s->point[i].crossing.size;
    }
    const struct certifying new_rows = {
        &s->post,
        norms,
        crossed ? &crossings : NULL,
        {array(n), array(n), array(n), array(n), array(n), array(n)}};
    const struct certified to = new_rows.to;
    const struct visit visit = {
        .block = block, .A = A.x, .work = array(certify_size(M, s->n))};
    certifying_sink(&new_rows).add(&new_rows, &visit);
    for (int i = 0; i < s->n; i++) {
        CHECK_NEAR(to.mean[i], s->point[i].mean, 1e-11);
        CHECK_NEAR(to.sor_variance[i], s->point[i].sor, 1e-11);
        CHECK_NEAR(to.unexplained[i], s->point[i].left, 1e-11);
        got[i] = (struct certificate){to.mean_error[i], to.var_lower[i], to.var_upper[i]};
    }
    return got;
}

static void check_norms(const struct setting *s, const struct norms *norms)
{
    const struct certificate *got = certificates(s, norms, 0);
    for (int i = 0; i < s->n; i++) {
        const struct certificate want = expected(norms, s->p->s2, s->point + i);
        CHECK_NEAR(got[i].mean_error, want.mean_error, 1e-9);
        CHECK_NEAR(got[i].var_lower, want.var_lower, 1e-9);
        CHECK_NEAR(got[i].var_upper, want.var_upper, 1e-9);
    }
}

/* Checks the allowances for rounding one by one and together, each so large that it matters. */
static void allowances(const struct setting *s)
{
    struct norms norms = s->exact;
    check_norms(s, &norms);
    norms.K_norm = 1e10; /* errors of kernel values grow with the bound on |K|_2 */
    check_norms(s, &norms);
    norms.K_norm = s->exact.K_norm;
    norms.growth = 0.1 * s->p->s2 / (1e-3 + norms.G_norm);
    check_norms(s, &norms);
    norms.slack = 1e-3;
    check_norms(s, &norms);
    norms.weight = 2.5;
    norms.spread = 3.0;
    check_norms(s, &norms);
    norms.beta_error = 0.2;
    norms.alpha = 7.0;
    norms.beta = 1.5;
    check_norms(s, &norms);
    norms.w_norm = 1e12;
    check_norms(s, &norms);
    norms.lam *= 100.0; /* here eta comes from Psi, and after the next change from lam */
    check_norms(s, &norms);
    norms.Psi_norm = 1e9;
    check_norms(s, &norms);
    norms.c = 0.0; /* then the exact mean is 0 */
    check_norms(s, &norms);
    norms.w_E = INFINITY;
    check_norms(s, &norms);
    norms.growth = 0.25 * s->p->s2 / norms.G_norm; /* then only the prior bounds hold */
    check_norms(s, &norms);
    norms.growth = NAN;
    const struct certificate *got = certificates(s, &norms, 0);
    for (int i = 0; i < s->n; i++)
        CHECK(got[i].var_lower == 0.0 && got[i].var_upper >= s->point[i].prior);
}

/* Checks that the exact GP is inside the bounds, with exact norms and with larger ones. */
static void contains(const struct setting *s)
{
    struct norms norms = s->exact;
    const double tiny = 1e-10;
    double before = 0.0;
    for (int wider = 0; wider < 3; wider++) {
        const struct certificate *got = certificates(s, &norms, 0),
                                 *with = certificates(s, &norms, 1);
        double width = 0.0;
        for (int i = 0; i < s->n; i++) {
            const struct point *x = s->point + i;
            CHECK(fabs(x->mean - x->exact_mean) <= got[i].mean_error + tiny);
            CHECK(got[i].var_lower <= x->exact_var + tiny);
            CHECK(got[i].var_upper >= x->exact_var - tiny);
            width += got[i].mean_error + got[i].var_upper - got[i].var_lower;
            CHECK(with[i].mean_error == got[i].mean_error);
            CHECK(with[i].var_lower <= x->exact_var + tiny);
            CHECK(with[i].var_upper >= x->exact_var - tiny);
            CHECK(with[i].var_lower >= got[i].var_lower);
            CHECK(with[i].var_upper <= got[i].var_upper);
            if (wider == 0) {
                const struct certificate want = expected_with(&norms, s->p->s2, x);
                CHECK_NEAR(with[i].var_lower, want.var_lower, 1e-9);
                CHECK_NEAR(with[i].var_upper, want.var_upper, 1e-9);
            }
        }
        CHECK(width >= before);
        before = width;
        norms.lam *= 1.5;
        norms.w_E *= 1.5;
        norms.slack += certify_slack(s->p->shape.M, s->p->shape.N);
        norms.growth += 1e-15;
    }
}

static void certify_problem(struct problem *p)
{
    const int M = p->shape.M, N = p->shape.N, columns = p->shape.columns;
    struct setting s = {.p = p, .f = dense_of(p)};
    const struct dense *f = &s.f;
    double *C = array((size_t)M * M), *beta = array((size_t)M);
    pieces_make(p, NULL, N, &s.pass);
    CHECK(posterior_factor(&s.pass.stats, p->s2, C, beta) == STATUS_OK);
    s.post = (struct posterior){s.pass.z, C, beta};
    s.E = plus(f->K, -1.0, f->Q);

    const struct matrix A = matrix_of(M, N, s.pass.piece->A), G = times(A, transposed(A)),
                        Psi = times(A, times(s.E, transposed(A))),
                        w = times(inverse(plus(f->K, p->s2, identity(N)), NULL), f->y),
                        b = matrix_of(M, 1, beta);
    s.exact =
        (struct norms){.weight = 1.0,
                       .spread = 1.0,
                       .c = at(times(transposed(f->y), times(f->B_inverse, f->y)), 0, 0),
                       .t = trace_of(s.E),
                       .lam = trace_of(s.E),
                       .w_E = sqrt(quadratic(w, s.E)),
                       .w_norm = frobenius(w),
                       .unit = 16.0 * DBL_EPSILON,
                       .K_norm = frobenius(G) + trace_of(s.E),
                       .G_norm = frobenius(G),
                       .beta = frobenius(b),
                       .Psi_norm = frobenius(Psi),
                       .G = G.x,
                       .Psi = Psi.x};
    for (s.n = 0; s.n < 4; s.n++) {
        const int n = s.n, ldx = n + 1;
        s.X = array((size_t)(columns - 1) * ldx + n);
        for (int j = 0; j < columns; j++)
            for (int i = 0; i < n; i++)
                s.X[(size_t)j * ldx + i] = uniform(-2.5, 2.5);
        s.Kzx = naive_kernel(&p->covariance, M, p->Z, M, n, s.X, ldx).x;
        struct point point[4];
        for (int i = 0; i < n; i++)
            point[i] = point_of(&s, i);
        s.point = point;
        allowances(&s);
        contains(&s);
    }
}

void group_certify(void)
{
    CHECK_NEAR(certify_slack(7, 100) / DBL_EPSILON, 4.0 * (7 + 10 + 32), 1e-15);
    CHECK(certify_size(0, 0) == 0);
    for_problems(shapes, N_SHAPES, 0, certify_problem);
}
