/* Tests of gemm_add_AtA(), of nearest neighbours, and of a row conditioned on its neighbours (near.h). */
#include <math.h>
#include "ctest.h"
#include "gemm.h"
#include "near.h"
#include "neighbours.h"
#include "pass.h"

/* Checks C += alpha A'A for columns of A that are stored apart. */
static void columns_of(int lanes, int m, int n)
{
    const size_t k = (size_t)m;
    const double *A = array_random(k * n, -1.0, 1.0);
    const double **columns = (const double **)(void *)array((size_t)n);
    for (int j = 0; j < n; j++) /* each column has its own memory */
        columns[j] = array_copy(k, A + k * (size_t)j);
    double *C = array_random((size_t)n * n, -1.0, 1.0);
    double *expected = array_copy((size_t)n * n, C);
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++)
            for (int l = 0; l < m; l++)
                expected[(size_t)j * n + i] -=
                    0.5 * A[k * (size_t)i + l] * A[k * (size_t)j + l];
    gemm_add_AtA(lanes, m, n, -0.5, columns, C);
    CHECK_ARRAY((size_t)n * n, C, expected, 1e-13);
}

void group_columns(void)
{
    const size_t taken = arrays_taken();
    for (int lanes = 1; lanes <= GEMM_LANES; lanes *= 2)
        for (int m = 0; m <= 11; m++)
            for (int n = 0; n <= 19; n += m > 2 ? 3 : 1) {
                columns_of(lanes, m, n);
                arrays_release(taken);
            }
}

/* ---- neighbours ---------------------------------------------------------------------- */

static int is_nearer(double r2, int row, double than, int other)
{
    return r2 < than || (r2 == than && row < other);
}

/* Returns the row that follows `last` in the order of distance, then number; or -1. */
static int next_row(int n, const double *r2, int self, const int *rank, int below,
                    int last)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        if (i == self || (rank != NULL && rank[i] >= below))
            continue;
        if (last >= 0 && !is_nearer(r2[last], last, r2[i], i))
            continue;
        if (best < 0 || is_nearer(r2[i], i, r2[best], best))
            best = i;
    }
    return best;
}

/* Inputs of rows: anywhere; on a grid, with equal distances; in small clusters that are far apart; so close to each
 * other that squared differences underflow in floats; 0/1 inputs of a factor with a level for each input.  For clusters
 * and tiny differences, distances in floats are inaccurate. */
enum lie { ANYWHERE, GRID, CLUSTERS, TINY, LEVELS, N_LIES };

/* Returns input j of row i, of d inputs. */
static double lie(enum lie how, int i, int j, int d)
{
    const double x = uniform(-3.0, 3.0);
    switch (how) {
    case GRID:
        return floor(uniform(0.0, 4.0));
    case CLUSTERS:
        return 1e9 * floor(uniform(0.0, 3.0)) + 1e-3 * x;
    case TINY:
        return 1e-22 * x;
    case LEVELS:
        return j == i * 5 % 7 % d;
    default:
        return x;
    }
}

static void neighbours_of(int n, int d, int s, int with_rank, enum lie how, int queries)
{
    struct covariance c = covariance_new("se", d, d);
    const int ldx = n + 1;
    double *X = array((size_t)(d - 1) * ldx + n);
    int *rank = array_int((size_t)n), *column = array_int((size_t)d);
    struct factor ascending = *c.kernel.factor; /* columns of levels must be ascending */
    ascending.column = column;
    c.kernel.factor = &ascending;
    for (int j = 0; j < d; j++) {
        column[j] = j;
        c.lengthscale[j] = how == GRID || how == LEVELS ? 0.5 : c.lengthscale[j];
        for (int i = 0; i < n; i++)
            X[(size_t)j * ldx + i] = lie(how, i, j, d);
    }
    for (int i = 0; i < n; i++)
        rank[i] = (i * 7) % n; /* all different if n is no multiple of 7 */
    struct tree tree = {.kernel = &c.kernel, .n = n, .with_ranks = with_rank};
    const int *ranks = with_rank ? rank : NULL;
    const struct source rows = {.N = n, .columns = d, .X = X, .ldx = ldx};
    tree_build(&tree, &rows, ranks, queries, &arrays);
    CHECK(how != LEVELS || tree.d == 1);
    double *u = array((size_t)d), *v = array((size_t)d), *r2 = array((size_t)n),
           *got_r2 = array((size_t)s);
    int *got = array_int((size_t)s);
    for (int q = 0; q < n; q += 1 + n / 20) {
        tree_coordinates(&tree, (struct rows){1, X + q, ldx}, u);
        for (int i = 0; i < n; i++) {
            tree_coordinates(&tree, (struct rows){1, X + i, ldx}, v);
            double raw = 0.0; /* squared distance of the inputs divided by lengthscales */
            r2[i] = 0.0;
            for (int j = 0; j < tree.d; j++)
                r2[i] += squared(u[j] - v[j], tree.at[j].gap);
            for (int j = 0; how == LEVELS && j < d; j++)
                raw += 4.0 * fabs(X[(size_t)j * ldx + i] - X[(size_t)j * ldx + q]);
            CHECK(how != LEVELS || r2[i] == raw);
        }
        const int found = tree_nearest(&tree, u, s, q, rank[q], got_r2, got);
        int last = -1;
        for (int i = 0; i < found; i++) {
            last = next_row(n, r2, q, ranks, rank[q], last);
            CHECK(got[i] == last);
            CHECK_NEAR(got_r2[i], r2[got[i]], 1e-14);
        }
        if (found < s)
            CHECK(next_row(n, r2, q, ranks, rank[q], last) == -1);
    }
}

void group_neighbours(void)
{
    static const int sizes[] = {1, 2, 64, 65, 129, 600, 1100};
    const size_t taken = arrays_taken();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int d = 1; d <= 9; d += 4)
            for (int ways = 0; ways < 4 * N_LIES; ways++) {
                if (!in_turn())
                    continue;
                neighbours_of(sizes[i], d, 9, ways % 2, (enum lie)(ways / 4),
                              ways / 2 % 2 * 1000);
                arrays_release(taken);
            }
}

/* ---- a row given its neighbours ------------------------------------------------------ */

/* Checks near_condition() for f(x) or, if `given`, for a functional with given covariances and prior variance. */
static void near_of(const char *name, int M, int s, int columns, double s2, int given)
{
    const int n = s + 1;
    const struct covariance c = covariance_new(name, columns, columns);
    const struct model model = {&c.kernel, s2};
    const struct inducing z = {.model = &model, .M = M};
    struct near p = {.z = &z, .s = s, .columns = columns};
    double *rows = array(near_rows_size(s, columns));
    p.X = rows;
    p.scale = p.X + (size_t)n * columns;
    p.y = p.scale + n;
    p.a = (const double **)(void *)array((size_t)n);
    for (size_t i = 0; i < (size_t)n * columns; i++)
        p.X[i] = uniform(-2.0, 2.0);
    for (int i = 0; i < n; i++)
        p.scale[i] = uniform(0.5, 1.5);
    for (int i = 0; i < s; i++)
        p.y[i] = uniform(-1.0, 1.0);
    for (int i = 0; i < n; i++) /* so that |a|^2 is well below k(x, x) scale^2 */
        p.a[i] = array_random((size_t)M, -0.2 / sqrt(M), 0.2 / sqrt(M));

    struct matrix E = naive_kernel(&c, n, p.X, n, n, p.X, n);
    if (given) {
        p.scale[s] = 1.0;
        p.prior = 2.0 * at(E, s, s);
        double *cross = array_random((size_t)s, -0.1, 0.1);
        for (int i = 0; i < s; i++)
            E.x[(size_t)s * n + i] = E.x[(size_t)i * n + s] = cross[i];
        E.x[(size_t)n * n - 1] = p.prior;
        p.cross = cross;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double *e = E.x + (size_t)j * n + i;
            *e *= p.scale[i] * p.scale[j];
            for (int m = 0; m < M; m++)
                *e -= p.a[i][m] * p.a[j][m];
        }
    struct matrix N = matrix_new(s, s), e = matrix_new(s, 1);
    for (int i = 0; i < s; i++) {
        e.x[i] = at(E, i, s);
        for (int j = 0; j < s; j++)
            N.x[(size_t)j * s + i] = at(E, i, j) + (i == j ? s2 : 0.0);
    }
    double want_mean = 0.0, want_left = at(E, s, s);
    double *want_r = array_copy((size_t)M, p.a[s]);
    const struct matrix want_u = times(inverse(N, NULL), e);
    for (int i = 0; i < s; i++) {
        want_mean += want_u.x[i] * p.y[i];
        want_left -= want_u.x[i] * e.x[i];
        for (int m = 0; m < M; m++)
            want_r[m] -= want_u.x[i] * p.a[i][m];
    }
    double *u = array((size_t)s), *r = array((size_t)M), mean, left;
    CHECK(near_condition(&p, array(near_size(s)), u, r, &mean, &left) == STATUS_OK);
    CHECK_ARRAY((size_t)s, u, want_u.x, 1e-10);
    CHECK_ARRAY((size_t)M, r, want_r, 1e-10);
    CHECK_NEAR(mean, want_mean, 1e-10);
    CHECK_NEAR(left, want_left, 1e-10);
}

/* Checks that equal rows without noise give no NaN, because the noise is increased, and that NaN gives a status. */
static void near_singular(void)
{
    const struct covariance c = covariance_new("matern32", 1, 1);
    double X[] = {0.5, 0.5, 0.5, 0.7}, scale[] = {1.0, 1.0, 1.0, 1.0};
    double y[] = {1.0, 1.0, 1.0}, a[2] = {0.0, 0.0}, u[3], r[2], mean = 0.0, left = 0.0;
    const double *columns[] = {a, a, a, a};
    const struct model model = {&c.kernel, 0.0};
    const struct inducing z = {.model = &model, .M = 2};
    struct near p = {&z, 3, 1, X, scale, y, columns, NULL, 0.0};
    CHECK(near_condition(&p, array(near_size(3)), u, r, &mean, &left) == STATUS_OK);
    const struct matrix k = naive_kernel(&c, 1, X, 4, 1, X + 3, 4);
    CHECK_NEAR(mean, k.x[0] / *c.variance, 1e-8);
    CHECK_NEAR(left, *c.variance - k.x[0] * k.x[0] / *c.variance, 1e-8);
    y[1] = NAN;
    CHECK(near_condition(&p, array(near_size(3)), u, r, &mean, &left) ==
          STATUS_NOT_FINITE);
    a[1] = NAN;
    CHECK(near_condition(&p, array(near_size(3)), u, r, &mean, &left) ==
          STATUS_NOT_FINITE);
}

void group_near(void)
{
    const size_t taken = arrays_taken();
    for (int i = 0; i < n_kernels; i++)
        for (int s = 0; s <= 9; s += s < 2 ? 1 : 3) {
            for (int given = 0; given <= 1; given++) {
                near_of(kernel_names[i], 1 + 3 * i, s, 1 + i % 2, 0.1, given);
                arrays_release(taken);
            }
        }
    near_singular();
}
