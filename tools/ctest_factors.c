/* Compares kernels with their definitions, and adjoints with differences: every profile of the table alone, in
 * products, and in sums that share a factor. */
#include <math.h>
#include "ctest.h"
#include "kernel_pull.h"
#include "kernel_slopes.h"
#include "tree.h"
#include "likelihood.h"

#include <string.h>

enum { D = 2, COLUMNS = 5, LEVELS = 3, M = 6, N = 5, MOST = 8 };

/* The first two levels have correlation a, other pairs b; the parameters are -log a and -log b. */
static void table_of(const double *parameter, double *table)
{
    const double a = exp(-parameter[0]), b = exp(-parameter[1]);
    const double correlation[] = {1, a, b, a, 1, b, b, b, 1},
                 of_a[] = {0, 1, 0, 1, 0, 0, 0, 0, 0},
                 of_b[] = {0, 0, 1, 0, 0, 1, 1, 1, 0};
    for (int i = 0; i < 9; i++) {
        table[i] = correlation[i];
        table[9 + i] = -parameter[0] * a * of_a[i];
        table[18 + i] = -parameter[1] * b * of_b[i];
    }
}

struct composite {
    struct kernel kernel;
    struct factor factor[3];
    struct term term[2];
    double parameter[3][MOST], table[3][27];
    int column[3][LEVELS], which[2][2];
};

static void set_factor(struct composite *c, int f, const struct profile *profile)
{
    const int group = profile->metric == METRIC_GROUP,
              levels = group || profile->metric == METRIC_LEVELS;
    struct factor *to = c->factor + f;
    *to = (struct factor){
        .profile = profile, .d = levels ? LEVELS : D, .power = group ? 1 : 2};
    if (strcmp(profile->name, "constant") == 0)
        to->d = 0;
    to->isotropic = profile->metric == METRIC_SCALED && f == 2;
    to->n_parameters = levels ? 2 : factor_n_metric(to) + profile->n_shape;
    for (int j = 0; j < to->d; j++)
        c->column[f][j] = group && j > 0 ? j - 1 : levels ? D + j : (j + f) % D;
    for (int j = 0; j < MOST; j++)
        c->parameter[f][j] = uniform(0.7, 1.4);
    to->column = c->column[f];
    to->parameter = c->parameter[f];
    const int mean = strcmp(profile->name, "mean") == 0;
    to->table = levels || mean ? c->table[f] : NULL;
    for (int j = 0; j < 2 * D && mean; j++)
        c->table[f][j] = uniform(0.5, 1.5);
}

/* Makes the kernel g0, g0 g1 or g0 g1 + g0 g2 from numbers of profiles (profile.c). A number below 0 stands for
 * none. */
static void composite_new(const int *profiles, struct composite *c)
{
    int n_factors = 0;
    while (n_factors < 3 && profiles[n_factors] >= 0) {
        set_factor(c, n_factors, profile_at(profiles[n_factors]));
        n_factors++;
    }
    const int n_terms = n_factors == 3 ? 2 : 1;
    for (int t = 0; t < n_terms; t++) {
        c->which[t][0] = 0;
        c->which[t][1] = t + 1;
        c->term[t] = (struct term){.variance = 1.3 + t,
                                   .n_factors = n_factors > 1 ? 2 : 1,
                                   .factor = c->which[t]};
    }
    kernel_places(n_factors, c->factor, n_terms, c->term, &c->kernel);
}

static double naive_factor(const struct factor *f, const double *x, const double *z)
{
    double s = 0.0, l;
    int a = 0, b = 0, equal = 1;
    switch (f->profile->metric) {
    case METRIC_EQUALITY:
        for (int j = 0; j < f->d; j++)
            equal = equal && x[f->column[j]] == z[f->column[j]];
        return equal;
    case METRIC_LEVELS:
        for (int j = 0; j < LEVELS; j++) {
            a = x[f->column[j]] == 1.0 ? j : a;
            b = z[f->column[j]] == 1.0 ? j : b;
        }
        return f->table[a * LEVELS + b];
    case METRIC_GROUP:
        for (a = 0; a < LEVELS; a++)
            for (b = 0; b < LEVELS; b++)
                s += f->table[a * LEVELS + b] * (a > 0 ? x[a - 1] : 1.0) *
                     (b > 0 ? z[b - 1] : 1.0);
        return x[f->column[0]] == z[f->column[0]] ? s : 0.0;
    case METRIC_PRODUCT:
        if (f->table != NULL) {
            for (int j = 0; j < f->d; j++)
                s += (x[f->column[j]] - f->table[j]) * (z[f->column[j]] - f->table[j]) *
                     pow(f->table[f->d + j], 2.0);
            return 1.0 + s;
        }
        for (int j = 0; j < f->d; j++)
            s += x[f->column[j]] * z[f->column[j]];
        return f->profile->n_shape ? pow(s + f->parameter[0], 2.0) : s;
    case METRIC_PERIODIC:
        for (int j = 0; j < f->d; j++)
            s += pow(
                sin(acos(-1.0) * (x[f->column[j]] - z[f->column[j]]) / f->parameter[1]),
                2.0);
        return exp(-2.0 * s / (f->parameter[0] * f->parameter[0]));
    default:
        for (int j = 0; j < f->d; j++) {
            l = f->parameter[f->isotropic ? 0 : j];
            s += pow((x[f->column[j]] - z[f->column[j]]) / l, 2.0);
        }
        if (f->profile->n_shape) {
            l = f->parameter[f->isotropic ? 1 : f->d];
            return pow(1.0 + s / (2.0 * l), -l);
        }
        return naive_profile(f->profile->name, sqrt(s));
    }
}

static double naive_entry(const struct composite *c, const double *X, int n, int i,
                          const double *Z, int m, int j)
{
    double x[COLUMNS], z[COLUMNS], sum = 0.0;
    for (int h = 0; h < COLUMNS; h++) {
        x[h] = X[(size_t)h * n + i];
        z[h] = Z[(size_t)h * m + j];
    }
    for (int t = 0; t < c->kernel.n_terms; t++) {
        double product = c->term[t].variance;
        for (int f = 0; f < c->term[t].n_factors; f++)
            product *= naive_factor(c->factor + c->which[t][f], x, z);
        sum += product;
    }
    return sum;
}

static double *rows(int n)
{
    double *X = array_random((size_t)n * COLUMNS, -1.5, 1.5);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < LEVELS; j++)
            X[(size_t)(D + j) * n + i] = (i * 7 + 1) % LEVELS == j;
    return X;
}

struct question {
    struct composite *c;
    double *Z, *X, *K_bar, jitter; /* X = NULL: K is k(Z, Z) + jitter diag k(z, z) */
};

/* Returns sum(K_bar * K). */
static double value(const void *context)
{
    const struct question *q = context;
    const size_t taken = arrays_taken();
    const int n = q->X == NULL ? M : N;
    const double *X = q->X == NULL ? q->Z : q->X;
    double *K = array((size_t)M * n), sum = 0.0;
    for (int f = 0; f < q->c->kernel.n_factors; f++)
        if (factor_has_levels(q->c->factor + f))
            table_of(q->c->parameter[f], q->c->table[f]);
    kernel_cross(&q->c->kernel, matrix_rows(M, q->Z), matrix_rows(n, X), K);
    for (int m = 0; m < M && q->X == NULL; m++)
        K[(size_t)m * M + m] *= 1.0 + q->jitter;
    for (int i = 0; i < M * n; i++)
        sum += q->K_bar[i] * K[i];
    arrays_release(taken);
    return sum;
}

/* Finds the address of each parameter, in the order of theta.  Returns how many there are. */
static int parameters(struct composite *c, double **at)
{
    int n = 0;
    for (int t = 0; t < c->kernel.n_terms; t++) {
        for (int f = t > 0; f < c->term[t].n_factors; f++)
            for (int j = 0; j < c->factor[c->which[t][f]].n_parameters; j++)
                at[n++] = c->parameter[c->which[t][f]] + j;
        at[n++] = &c->term[t].variance;
    }
    return n;
}

static void check_slopes(struct question *q, const double *dZ, const double *dtheta)
{
    double *at[3 * MOST];
    const int n = parameters(q->c, at);
    CHECK(n == q->c->kernel.n_theta);
    for (int j = 0; j < n; j++)
        CHECK_NEAR(dtheta[j], *at[j] * slope(value, q, at[j]),
                   3e-7); /* differences in a period are less accurate */
    for (int i = 0; i < M * D; i++)
        CHECK_NEAR(dZ[i], slope(value, q, q->Z + i), 1e-8);
    value(q); /* restores the tables */
}

/* Checks that log p(y_M | y_1, ..., y_{M-1}) does not depend on the order of the neighbours, which differs by lane. */
static void in_lanes(const struct composite *c, const double *Z, const double *y)
{
    const struct kernel *k = &c->kernel;
    struct vecchia sum[2];
    for (int most = 1; most <= 8; most += 7) {
        const struct lanes *v = lanes_of(most);
        const int lanes = v->lanes;
        double *X = array((size_t)M * COLUMNS * lanes), *of_y = array((size_t)M * lanes),
               *noise = array((size_t)M * lanes), *times = array((size_t)lanes);
        for (int l = 0; l < lanes; l++)
            for (int a = 0; a < M; a++) {
                const int row = a < M - 1 ? (a + l) % (M - 1) : a, at = a * lanes + l;
                for (int j = 0; j < COLUMNS; j++)
                    X[j * M * lanes + at] = Z[j * M + row];
                of_y[at] = y[row];
                noise[at] = 0.2 + 0.1 * row;
                times[l] = 1.0 / lanes;
            }
        struct vecchia *to = sum + (most > 1);
        vecchia_init(k, 0, array(vecchia_size(k, 0)), to);
        const struct gathered of = {
            v,    X,     of_y, noise,
            NULL, times, NULL, array(vecchia_rows_size(v, k, 0, M - 1))};
        CHECK(vecchia_add(&of, k, M - 1, 1, to) == STATUS_OK);
    }
    CHECK_NEAR(sum[1].value, sum[0].value, 1e-11);
    CHECK_ARRAY(vecchia_size(k, 0), sum[1].score, sum[0].score, 1e-9);
}

static void composite(const int *profiles)
{
    struct composite c;
    composite_new(profiles, &c);
    const struct kernel *k = &c.kernel;
    const size_t n_theta = (size_t)k->n_theta;
    struct question q = {&c, rows(M), rows(N), array_random(M * N, -1.0, 1.0), 0.3};
    const struct rows Z = matrix_rows(M, q.Z), X = matrix_rows(N, q.X);
    double *K = array(M * N), *Kzz = array(M * M), *diagonal = array(M),
           *dZ = array_zero(M * COLUMNS), *dtheta = array_zero(n_theta);
    value(&q);
    kernel_cross(k, Z, X, K);
    for (int i = 0; i < N; i++)
        for (int m = 0; m < M; m++)
            CHECK_NEAR(K[i * M + m], naive_entry(&c, q.X, N, i, q.Z, M, m), 1e-13);
    kernel_pull(k, Z, X, K, q.K_bar, array(kernel_size(k, M)), dZ, dtheta);
    check_slopes(&q, dZ, dtheta);

    kernel_cross(k, Z, Z, Kzz);
    kernel_diagonal(k, Z, diagonal);
    for (int m = 0; m < M; m++)
        CHECK(Kzz[m * M + m] == diagonal[m]);
    q.X = NULL;
    q.K_bar = random_spd(M).x;
    dZ = array_zero(M * COLUMNS);
    dtheta = array_zero(n_theta);
    kernel_pull_self(k, COLUMNS, Z, q.jitter, q.K_bar, &arrays, dZ, dtheta);
    check_slopes(&q, dZ, dtheta);

    /* compares u'(dK / dtheta) v with differences of u'K v */
    double *u = array_random(M, -1.0, 1.0), *v = array_random(M, -1.0, 1.0),
           *at[3 * MOST], *slopes = array_zero(n_theta * M);
    for (int t = 0; t < k->n_terms; t++) {
        kernel_term(k, k->term + t, -1, 0, Z, Z, Kzz);
        term_slopes(k, k->term + t, Z, Kzz, v, array(term_slopes_size(k, M)), slopes);
    }
    in_lanes(&c, q.Z, v);
    q.jitter = 0.0;
    for (int i = 0; i < M * M; i++)
        q.K_bar[i] = u[i % M] * v[i / M];
    parameters(&c, at);
    for (size_t j = 0; j < n_theta; j++) {
        double sum = 0.0;
        for (int m = 0; m < M; m++)
            sum += u[m] * slopes[j * M + m];
        CHECK_NEAR(sum, *at[j] * slope(value, &q, at[j]), 3e-7);
    }
    struct coordinate *coordinates =
        (struct coordinate *)array(5 * (size_t)kernel_n_coordinates(k));
    CHECK(kernel_coordinates(k, coordinates) <= kernel_n_coordinates(k));
}

void group_factors(void)
{
    const size_t taken = arrays_taken();
    for (int i = 0; profile_at(i) != NULL; i++) {
        CHECK(profile_of(profile_at(i)->name) == profile_at(i));
        composite((const int[]){i, -1, -1});
        for (int j = 0; profile_at(j) != NULL; j++) {
            if (!in_turn())
                continue;
            composite((const int[]){i, j, -1});
            composite((const int[]){i, j, (i + 2 * j) % 11});
            arrays_release(taken);
        }
    }
}
