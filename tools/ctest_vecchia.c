/* Layer 4: the density of a row given its neighbours, its slopes and their expectation. */
#include <math.h>
#include "ctest.h"
#include "linalg.h"
#include "vecchia.h"

static const double TWO_PI = 6.28318530717958647692;

struct conditioned {
    struct covariance c;
    int s;             /* neighbours, and the row itself after them                */
    double *X, *y, *w; /* (s + 1) x columns, [s + 1], [s + 1]                      */
    double *b;         /* (s + 1) x 2                                              */
    double gamma;      /* adds gamma b_0 to the log noise                          */
    double s2;
};

/* log N(y; 0, k(X, X) + s2 diag(1 / w)) of the first n rows */
static double log_density(const struct conditioned *t, int n)
{
    if (n == 0)
        return 0.0;
    struct matrix T = naive_kernel(&t->c, n, t->X, t->s + 1, n, t->X, t->s + 1);
    for (int i = 0; i < n; i++)
        T.x[(size_t)i * n + i] += t->s2 / t->w[i] * exp(t->gamma * t->b[i]);
    double log_det;
    const struct matrix Ti = inverse(T, &log_det), y = matrix_of(n, 1, t->y);
    return -0.5 *
           (n * log(TWO_PI) + log_det + at(times(transposed(y), times(Ti, y)), 0, 0));
}

static double conditional(const void *context)
{
    const struct conditioned *t = context;
    const size_t taken = arrays_taken();
    const double value = log_density(t, t->s + 1) - log_density(t, t->s);
    arrays_release(taken);
    return value;
}

/* dT / dlog theta_j of the first n rows; the variance: K, the noise: diag(s2 / w), then diag(s2 b_j / w) */
static struct matrix slope_of(struct conditioned *t, int j, int n)
{
    const int d = t->c.d, ld = t->s + 1;
    struct matrix S = matrix_new(n, n);
    if (j >= d + 1) {
        for (int i = 0; i < n; i++)
            S.x[(size_t)i * n + i] =
                t->s2 / t->w[i] * (j == d + 1 ? 1.0 : t->b[(size_t)(j - d - 2) * ld + i]);
    } else if (j == d) {
        S = naive_kernel(&t->c, n, t->X, ld, n, t->X, ld);
    } else {
        const double l = t->c.lengthscale[j], h = 1e-5 * l;
        t->c.lengthscale[j] = l + h;
        const struct matrix up = naive_kernel(&t->c, n, t->X, ld, n, t->X, ld);
        t->c.lengthscale[j] = l - h;
        const struct matrix down = naive_kernel(&t->c, n, t->X, ld, n, t->X, ld);
        t->c.lengthscale[j] = l;
        for (size_t i = 0; i < (size_t)n * n; i++)
            S.x[i] = (up.x[i] - down.x[i]) / 2e-5;
    }
    return S;
}

/* tr(T^{-1} T_j T^{-1} T_k) / 2 of the first n rows */
static double fisher(struct conditioned *t, int j, int k, int n)
{
    if (n == 0)
        return 0.0;
    struct matrix T = naive_kernel(&t->c, n, t->X, t->s + 1, n, t->X, t->s + 1);
    for (int i = 0; i < n; i++)
        T.x[(size_t)i * n + i] += t->s2 / t->w[i] * exp(t->gamma * t->b[i]);
    const struct matrix Ti = inverse(T, NULL);
    return 0.5 *
           trace_of(times(times(Ti, slope_of(t, j, n)), times(Ti, slope_of(t, k, n))));
}

static void one_term(const char *name, int s, int d, int columns)
{
    struct conditioned t = {
        covariance_new(name, d, columns), s, NULL, NULL, NULL, NULL, 0.0, 0.3};
    const int q = 2 * (s % 2), p = d + 2 + q;
    const size_t n = (size_t)s + 1, size = vecchia_size(&t.c.kernel, q);
    t.X = array_random(n * columns, -2.0, 2.0);
    t.y = array_random(n, -1.0, 1.0);
    t.w = array_random(n, 0.4, 2.5);
    t.b = array_random(2 * n, -1.0, 1.0);
    double *noise = array(n), *memory = array(size), *work;
    for (size_t i = 0; i < n; i++)
        noise[i] = t.s2 / t.w[i];

    struct vecchia sum, other;
    vecchia_init(&t.c.kernel, q, memory, &sum);
    CHECK(sum.p == p && sum.value == 0.0);
    work = array(vecchia_row_size(&t.c.kernel, q, s));
    CHECK(vecchia_add(&t.c.kernel, s, t.X, t.y, noise, t.b, 1.0, 1, work, &sum) ==
          STATUS_OK);
    CHECK_NEAR(sum.value, conditional(&t), 1e-11);
    for (int j = 0; j < p; j++) {
        double *theta = j < d ? t.c.lengthscale + j : j == d ? t.c.variance : &t.s2;
        if (j < d + 2)
            CHECK_NEAR(sum.score[j], *theta * slope(conditional, &t, theta), 1e-8);
        if (j == d + 2)
            CHECK_NEAR(sum.score[j], slope(conditional, &t, &t.gamma), 1e-8);
        for (int k = j; k < p; k++)
            CHECK_NEAR(sum.information[(size_t)j * p + k],
                       fisher(&t, j, k, s + 1) - fisher(&t, j, k, s), 1e-8);
    }

    /* without slopes nothing else is touched; 1.5 and then 0.5 of it */
    vecchia_init(&t.c.kernel, q, array(size), &other);
    CHECK(vecchia_add(&t.c.kernel, s, t.X, t.y, noise, t.b, 1.5, 0, work, &other) ==
          STATUS_OK);
    CHECK_NEAR(other.value, 1.5 * sum.value, 1e-14);
    for (int j = 0; j < p + p * p; j++)
        CHECK(other.score[j] == 0.0); /* the information lies behind */
    vecchia_init(&t.c.kernel, q, other.score, &other);
    CHECK(vecchia_add(&t.c.kernel, s, t.X, t.y, noise, t.b, 0.5, 1, work, &other) ==
          STATUS_OK);
    CHECK_NEAR(other.value, 0.5 * sum.value, 1e-14);
    for (int j = 0; j < p + p * p; j++)
        CHECK_NEAR(other.score[j], 0.5 * sum.score[j], 1e-13);
}

/* what cannot be factorised, or is beyond double precision, is a status */
static void failures(const char *name)
{
    const struct covariance c = covariance_new(name, 1, 1);
    double X[3] = {1.0, 1.0, 2.0}, y[3] = {1.0, 2.0, 3.0}, noise[3] = {0.0, 0.0, 0.0};
    double *work = array(vecchia_row_size(&c.kernel, 0, 2));
    struct vecchia sum;
    vecchia_init(&c.kernel, 0, array(vecchia_size(&c.kernel, 0)), &sum);
    CHECK(vecchia_add(&c.kernel, 2, X, y, noise, NULL, 1.0, 1, work, &sum) ==
          STATUS_EXACT_NOT_PD);
    CHECK(sum.value == 0.0 && sum.score[0] == 0.0);
    noise[0] = noise[1] = noise[2] = NAN;
    CHECK(vecchia_add(&c.kernel, 2, X, y, noise, NULL, 1.0, 1, work, &sum) ==
          STATUS_EXACT_NOT_PD);
    noise[0] = noise[1] = noise[2] = 0.1;
    y[2] = 1e200;
    CHECK(vecchia_add(&c.kernel, 2, X, y, noise, NULL, 1.0, 1, work, &sum) ==
          STATUS_NOT_FINITE);
}

void group_vecchia(void)
{
    const size_t taken = arrays_taken();
    for (int k = 0; k < n_kernels; k++) {
        for (int s = 0; s <= 9; s += s < 2 ? 1 : 7)
            for (int d = 1; d <= 3; d += 2) {
                one_term(kernel_names[k], s, d, d + s % 2);
                arrays_release(taken);
            }
        failures(kernel_names[k]);
        arrays_release(taken);
    }
}
