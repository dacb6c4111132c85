/* Tests of likelihood.h: densities of rows given their neighbours (a row in each lane), their derivatives, and the
 * expected information. */
#include <math.h>
#include "ctest.h"
#include "linalg.h"
#include "likelihood.h"

static const double TWO_PI = 6.28318530717958647692;

struct conditioned {
    struct covariance c;
    int s;             /* number of neighbours; row s is the row itself            */
    double *X, *y, *w; /* (s + 1) x columns, [s + 1], [s + 1]                      */
    double *b;         /* (s + 1) x 2                                              */
    double gamma;      /* gamma b_0 is added to the log noise                      */
    double s2;
};

/* Returns log N(y; 0, k(X, X) + s2 diag(e^{gamma b_0} / w)) of the first n rows. */
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

/* Returns dT / dtheta_j of the first n rows for slopes 0. theta has the log lengthscales (by differences), log variance
 * (K), log noise (diag(s2 / w)) and the slopes of the log noise (diag(s2 b_j / w)). */
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

/* Returns tr(T^{-1} T_j T^{-1} T_k) / 2 of the first n rows. */
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

/* Copies n numbers to one of the lanes. */
static void into_lane(int lanes, int lane, size_t n, const double *from, double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i * lanes + lane] = from[i];
}

/* Subtracts `times` times the density, score and information of a row, computed naively, from the sum. */
static void take_off(struct conditioned *t, double times, struct vecchia *sum)
{
    const int d = t->c.d, p = sum->p, s = t->s;
    sum->value -= times * conditional(t);
    for (int j = 0; j < p && j < d + 3; j++) {
        double *theta = j < d        ? t->c.lengthscale + j
                        : j == d     ? t->c.variance
                        : j == d + 1 ? &t->s2
                                     : &t->gamma;
        sum->score[j] -=
            times * (j < d + 2 ? *theta : 1.0) * slope(conditional, t, theta);
    }
    for (int j = 0; j < p; j++)
        for (int k = j; k < p; k++)
            sum->information[(size_t)j * p + k] -=
                times * (fisher(t, j, k, s + 1) - fisher(t, j, k, s));
}

static void rows_beside(int most_lanes, const char *name, int s, int d, int columns)
{
    const struct covariance c = covariance_new(name, d, columns);
    const struct lanes *v = lanes_of(most_lanes);
    const int lanes = v->lanes, q = 2 * (s % 2), p = d + 2 + q;
    const size_t n = (size_t)s + 1, size = vecchia_size(&c.kernel, q);
    const struct gathered r = {v,
                               array(n * columns * lanes),
                               array(n * lanes),
                               array(n * lanes),
                               array(q * n * lanes),
                               array_random((size_t)lanes, 0.5, 2.0),
                               NULL,
                               array(vecchia_rows_size(v, &c.kernel, q, s))};
    struct conditioned rows[8];
    CHECK(lanes <= most_lanes);
    for (int l = 0; l < lanes; l++) {
        struct conditioned *t = rows + l;
        *t = (struct conditioned){c, s, NULL, NULL, NULL, NULL, 0.0, 0.3};
        t->X = array_random(n * columns, -2.0, 2.0);
        t->y = array_random(n, -1.0, 1.0);
        t->w = array_random(n, 0.4, 2.5);
        t->b = array_random(2 * n, -1.0, 1.0);
        into_lane(lanes, l, n * columns, t->X, r.X);
        into_lane(lanes, l, n, t->y, r.y);
        into_lane(lanes, l, q * n, t->b, r.b);
        for (size_t i = 0; i < n; i++)
            r.noise[i * lanes + l] = t->s2 / t->w[i];
    }

    struct vecchia sum, other;
    vecchia_init(&c.kernel, q, array(size), &sum);
    CHECK(sum.p == p && sum.value == 0.0);
    CHECK(vecchia_add(&r, &c.kernel, s, 1, &sum) == STATUS_OK);
    /* two calls add up; without slopes, score and information do not change */
    vecchia_init(&c.kernel, q, array(size), &other);
    CHECK(vecchia_add(&r, &c.kernel, s, 0, &other) == STATUS_OK);
    CHECK_NEAR(other.value, sum.value, 1e-14);
    for (size_t j = 0; j < size; j++)
        CHECK(other.score[j] == 0.0); /* the information follows the score in memory */
    CHECK(vecchia_add(&r, &c.kernel, s, 1, &other) == STATUS_OK);
    CHECK_NEAR(other.value, 2.0 * sum.value, 1e-14);
    for (size_t j = 0; j < size; j++)
        CHECK(other.score[j] == sum.score[j]);

    for (int l = 0; l < lanes; l++)
        take_off(rows + l, r.times[l], &sum);
    CHECK_NEAR(sum.value, 0.0, 1e-10);
    for (int j = 0; j < p && j < d + 3; j++)
        CHECK_NEAR(sum.score[j], 0.0, 1e-7);
    for (int j = 0; j < p; j++)
        for (int k = j; k < p; k++)
            CHECK_NEAR(sum.information[(size_t)j * p + k], 0.0, 1e-7);
}

/* Checks the status for matrices without a factor, and for numbers beyond double precision. */
static void failures(int most_lanes, const char *name)
{
    const struct covariance c = covariance_new(name, 1, 1);
    const struct lanes *v = lanes_of(most_lanes);
    const int lanes = v->lanes, last = lanes - 1;
    const struct gathered r = {v,
                               array(3 * (size_t)lanes),
                               array(3 * (size_t)lanes),
                               array(3 * (size_t)lanes),
                               NULL,
                               array((size_t)lanes),
                               NULL,
                               array(vecchia_rows_size(v, &c.kernel, 0, 2))};
    struct vecchia sum;
    vecchia_init(&c.kernel, 0, array(vecchia_size(&c.kernel, 0)), &sum);
    for (int l = 0; l < lanes; l++) {
        into_lane(lanes, l, 3, (const double[]){1.0, 1.5, 2.0}, r.X);
        into_lane(lanes, l, 3, (const double[]){1.0, 2.0, 3.0}, r.y);
        into_lane(lanes, l, 3, (const double[]){0.1, 0.1, 0.1}, r.noise);
        r.times[l] = 1.0;
    }
    CHECK(vecchia_add(&r, &c.kernel, 2, 1, &sum) == STATUS_OK);
    vecchia_init(&c.kernel, 0, sum.score, &sum);
    r.X[lanes + last] = 1.0; /* the row of the last lane has two equal neighbours */
    r.noise[last] = r.noise[lanes + last] = 0.0;
    CHECK(vecchia_add(&r, &c.kernel, 2, 1, &sum) == STATUS_EXACT_NOT_PD);
    r.noise[last] = NAN;
    CHECK(vecchia_add(&r, &c.kernel, 2, 1, &sum) == STATUS_EXACT_NOT_PD);
    r.noise[last] = INFINITY;
    CHECK(vecchia_add(&r, &c.kernel, 2, 1, &sum) == STATUS_EXACT_NOT_PD);
    CHECK(sum.value == 0.0 && sum.score[0] == 0.0);
    r.noise[last] = r.noise[lanes + last] = 0.1;
    r.y[2 * lanes + last] = 1e200;
    CHECK(vecchia_add(&r, &c.kernel, 2, 1, &sum) == STATUS_NOT_FINITE);
    CHECK(sum.score[0] == 0.0);
}

void group_vecchia(void)
{
    const size_t taken = arrays_taken();
    for (int lanes = 1; lanes <= 8; lanes *= 2)
        for (int k = 0; k < n_kernels; k++) {
            for (int s = 0; s <= 9; s += s < 2 ? 1 : 7)
                for (int d = 1; d <= 3; d += 2) {
                    if (!in_turn())
                        continue;
                    rows_beside(lanes, kernel_names[k], s, d, d + s % 2);
                    arrays_release(taken);
                }
            failures(lanes, kernel_names[k]);
            arrays_release(taken);
        }
}
