/* Compares kernels with their definitions, and their adjoints with differences. */
#include <math.h>
#include "ctest.h"
#include "kernel_pull.h"

struct kernel_shape {
    int M, n, columns, d;
};
static const struct kernel_shape shapes[] = {{1, 1, 1, 1}, {4, 3, 3, 2}, {1, 6, 2, 2},
                                             {5, 1, 1, 1}, {3, 0, 2, 1}, {7, 5, 4, 3}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* Returns random rows.  Columns begin ld apart, with NaN between them; the array ends with the last column. */
static double *random_rows(int n, int columns, int ld)
{
    double *X = array((size_t)(columns - 1) * ld + n);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < n; i++)
            X[(size_t)j * ld + i] = uniform(-1.5, 1.5);
    return X;
}

static void cross(const char *name, struct kernel_shape s)
{
    const struct covariance c = covariance_new(name, s.d, s.columns);
    const int ldz = s.M + 1, ldx = s.n + 3;
    const double *Z = random_rows(s.M, s.columns, ldz),
                 *X = random_rows(s.n, s.columns, ldx);
    const struct rows rows_Z = {s.M, Z, ldz}, rows_X = {s.n, X, ldx};
    const size_t size = (size_t)s.M * s.n;
    double *K = array(size), *Kzz = array((size_t)s.M * s.M), *diagonal = array(s.n);
    kernel_cross(&c.kernel, rows_Z, rows_X, K);
    CHECK_ARRAY(size, K, naive_kernel(&c, s.M, Z, ldz, s.n, X, ldx).x, 1e-14);
    kernel_diagonal(&c.kernel, rows_X, diagonal);
    for (int i = 0; i < s.n; i++)
        CHECK(diagonal[i] == *c.variance);
    kernel_cross(&c.kernel, rows_Z, rows_Z, Kzz);
    for (int i = 0; i < s.M; i++) /* distance 0 is exactly 0 */
        CHECK(Kzz[(size_t)i * s.M + i] == *c.variance);
}

/* Checks that rows around 1e8 keep their digits, and that kernel values of distant rows are 0, not NaN, even if
 * (x - z) / l overflows. */
static void extremes(const char *name)
{
    struct covariance c = covariance_new(name, 1, 1);
    double *near = array(4), *far = array(4), *K = array(16), *K_far = array(16),
           *bar = array_random(16, -1.0, 1.0), *dZ = array_zero(4),
           *dtheta = array_zero(2);
    for (int i = 0; i < 4; i++) {
        near[i] = 3.0 * i;
        far[i] = 1e8 + near[i];
    }
    kernel_cross(&c.kernel, matrix_rows(4, near), matrix_rows(4, near), K);
    kernel_cross(&c.kernel, matrix_rows(4, far), matrix_rows(4, far), K_far);
    CHECK_ARRAY(16, K_far, K, 0.0);
    for (int i = 0; i < 4; i++) {
        static const double lengthscales[] = {1e-308, 1e-6, 1e6, 1e200};
        double *work = array(kernel_size(&c.kernel, 4));
        c.lengthscale[0] = lengthscales[i];
        kernel_cross(&c.kernel, matrix_rows(4, near), matrix_rows(4, near), K);
        for (int j = 0; j < 16; j++) {
            const double want = j % 5 == 0 || i > 1 ? *c.variance : 0.0;
            CHECK_NEAR(K[j], want, 1e-5);
        }
        kernel_pull(&c.kernel, matrix_rows(4, near), matrix_rows(4, near), K, bar, work,
                    dZ, dtheta);
        for (int j = 0; j < 4; j++)
            CHECK(isfinite(dZ[j]));
        CHECK(isfinite(dtheta[0]) && isfinite(dtheta[1]));
    }
}

void group_kernel(void)
{
    CHECK(profile_of("cubic") == NULL);
    CHECK(profile_of("") == NULL);
    for (int k = 0; k < n_kernels; k++) {
        CHECK(profile_of(kernel_names[k]) != NULL);
        for (int i = 0; i < N_SHAPES; i++)
            cross(kernel_names[k], shapes[i]);
        extremes(kernel_names[k]);
    }
}

/* ---- adjoints ---------------------------------------------------------------------- */

/* F = sum(K_bar * K), where K is k(Z, X) or, if X = NULL, k(Z, Z) + jitter diag k(z, z). */
struct kernel_sum {
    const struct covariance *c;
    struct kernel_shape s;
    int ldz, ldx;
    double *Z, *X, *K_bar, jitter;
};

static struct rows sum_Z(const struct kernel_sum *f)
{
    return (struct rows){f->s.M, f->Z, f->ldz};
}

static struct rows sum_X(const struct kernel_sum *f)
{
    return (struct rows){f->s.n, f->X, f->ldx};
}

static double kernel_sum(const void *context)
{
    const struct kernel_sum *f = context;
    const struct kernel *k = &f->c->kernel;
    const int M = f->s.M, self = f->X == NULL, n = self ? M : f->s.n;
    const size_t taken = arrays_taken(), size = (size_t)M * n;
    double *K = array(size), sum = 0.0;
    kernel_cross(k, sum_Z(f), self ? sum_Z(f) : sum_X(f), K);
    for (int m = 0; m < M && self; m++)
        K[(size_t)m * M + m] += f->jitter * k->term->variance;
    for (size_t i = 0; i < size; i++)
        sum += f->K_bar[i] * K[i];
    arrays_release(taken);
    return sum;
}

/* Compares dZ - dZ0 and dtheta - theta0, the derivatives that were added, with differences of F. */
static void check_slopes(struct kernel_sum *f, struct covariance *c, const double *dZ0,
                         const double *dZ, const double *theta0, const double *dtheta)
{
    const int M = f->s.M, d = f->s.d;
    for (int j = 0; j < f->s.columns; j++)
        for (int m = 0; m < M; m++) {
            const size_t i = (size_t)j * M + m;
            CHECK_NEAR(dZ[i] - dZ0[i],
                       slope(kernel_sum, f, f->Z + (size_t)j * f->ldz + m), 1e-8);
        }
    for (int j = 0; j < d; j++) /* derivatives in the logs of parameters */
        CHECK_NEAR(dtheta[j] - theta0[j],
                   c->lengthscale[j] * slope(kernel_sum, f, c->lengthscale + j), 1e-8);
    CHECK_NEAR(dtheta[d] - theta0[d], *c->variance * slope(kernel_sum, f, c->variance),
               1e-8);
}

static void pull(const char *name, struct kernel_shape s)
{
    struct covariance c = covariance_new(name, s.d, s.columns);
    const struct kernel *k = &c.kernel;
    const size_t Mn = (size_t)s.M * s.n, Md = (size_t)s.M * s.columns;
    const size_t n_theta = (size_t)k->n_theta;
    struct kernel_sum f = {&c, s, s.M + 2, s.n + 1, NULL, NULL, NULL, 0.0};
    CHECK(k->n_theta == s.d + 1);
    f.Z = random_rows(s.M, s.columns, f.ldz);
    f.X = random_rows(s.n, s.columns, f.ldx);
    f.K_bar = array_random(Mn, -1.0, 1.0);
    const double *dZ0 = array_random(Md, -1.0, 1.0),
                 *theta0 = array_random(n_theta, -1.0, 1.0);
    double *K = array(Mn), *dZ = array_copy(Md, dZ0), *alone = array_copy(Md, dZ0),
           *dtheta = array_copy(n_theta, theta0),
           *theta_alone = array_copy(n_theta, theta0);
    kernel_cross(k, sum_Z(&f), sum_X(&f), K);
    kernel_pull(k, sum_Z(&f), sum_X(&f), K, f.K_bar, array(kernel_size(k, s.M)), dZ,
                dtheta);
    check_slopes(&f, &c, dZ0, dZ, theta0, dtheta);
    kernel_pull(k, sum_Z(&f), sum_X(&f), K, f.K_bar, array(kernel_size(k, s.M)), alone,
                NULL);
    CHECK_ARRAY(Md, alone, dZ, 0.0);
    kernel_pull(k, sum_Z(&f), sum_X(&f), K, f.K_bar, array(kernel_size(k, s.M)), NULL,
                theta_alone);
    CHECK_ARRAY(n_theta, theta_alone, dtheta, 0.0);
}

static void pull_self(const char *name, struct kernel_shape s)
{
    struct covariance c = covariance_new(name, s.d, s.columns);
    const struct kernel *k = &c.kernel;
    const size_t Md = (size_t)s.M * s.columns, n_theta = (size_t)k->n_theta;
    struct kernel_sum f = {&c, s, s.M + 1, 0, NULL, NULL, random_spd(s.M).x, 0.3};
    f.Z = random_rows(s.M, s.columns, f.ldz);
    const double *dZ0 = array_random(Md, -1.0, 1.0),
                 *theta0 = array_random(n_theta, -1.0, 1.0);
    double *dZ = array_copy(Md, dZ0), *alone = array_copy(Md, dZ0),
           *dtheta = array_copy(n_theta, theta0),
           *theta_alone = array_copy(n_theta, theta0);
    kernel_pull_self(k, s.columns, sum_Z(&f), f.jitter, f.K_bar, &arrays, dZ, dtheta);
    check_slopes(&f, &c, dZ0, dZ, theta0, dtheta);
    kernel_pull_self(k, s.columns, sum_Z(&f), f.jitter, f.K_bar, &arrays, alone, NULL);
    CHECK_ARRAY(Md, alone, dZ, 0.0);
    kernel_pull_self(k, s.columns, sum_Z(&f), f.jitter, f.K_bar, &arrays, NULL,
                     theta_alone);
    CHECK_ARRAY(n_theta, theta_alone, dtheta, 0.0);
}

/* Checks that F = 1.7 sum_i w_i k(x_i, x_i) has a derivative only in the log variance. */
static void pull_diagonal(const char *name)
{
    const struct covariance c = covariance_new(name, 2, 3);
    double *dtheta = array(3), *want = array(3);
    for (int j = 0; j < 3; j++)
        dtheta[j] = want[j] = j;
    const double w[] = {1.2, 0.0, 3.0, 0.0};
    want[2] += 1.7 * 4.2 * *c.variance;
    kernel_pull_diagonal(&c.kernel, matrix_rows(2, w), 1.7, w, 2, NULL, dtheta);
    CHECK_ARRAY(3, dtheta, want, 1e-15);
}

void group_pull(void)
{
    for (int k = 0; k < n_kernels; k++) {
        for (int i = 0; i < N_SHAPES; i++) {
            pull(kernel_names[k], shapes[i]);
            pull_self(kernel_names[k], shapes[i]);
        }
        pull_diagonal(kernel_names[k]);
    }
}
