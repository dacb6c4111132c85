/* Tests of status.h and linalg.h. */
#include <math.h>
#include <string.h>
#include "ctest.h"
#include "linalg.h"
#include "sparse.h"

void group_status(void)
{
    static const enum status all[] = {STATUS_OK, STATUS_KMM_NOT_PD, STATUS_INNER_NOT_PD,
                                      STATUS_EXACT_NOT_PD, STATUS_NOT_FINITE};
    const int n = (int)(sizeof all / sizeof all[0]);
    const char *unknown = status_sentence((enum status)(n + 1000));
    CHECK(strlen(unknown) > 0);
    for (int i = 0; i < n; i++) {
        CHECK(strlen(status_sentence(all[i])) > 0);
        CHECK(strcmp(status_sentence(all[i]), unknown) != 0);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(status_sentence(all[i]), status_sentence(all[j])) != 0);
    }
}

static struct matrix random_matrix(int rows, int columns)
{
    return (struct matrix){rows, columns,
                           array_random((size_t)rows * columns, -1.0, 1.0)};
}

/* Returns alpha P + beta C; C is not read if beta = 0. */
static struct matrix combined(double alpha, struct matrix P, double beta, struct matrix C)
{
    const struct matrix R = plus(matrix_new(P.rows, P.columns), alpha, P);
    return beta == 0.0 ? R : plus(R, beta, C);
}

static size_t size_of(struct matrix A)
{
    return (size_t)A.rows * A.columns;
}

static void check_matrix(struct matrix got, struct matrix want, double tolerance)
{
    CHECK(got.rows == want.rows && got.columns == want.columns);
    CHECK_ARRAY(size_of(want), got.x, want.x, tolerance);
}

/* Returns a matrix for a result: NaN if beta = 0, because then it must not be read. */
static struct matrix target(int rows, int columns, double beta)
{
    return beta == 0.0 ? (struct matrix){rows, columns, array((size_t)rows * columns)}
                       : random_matrix(rows, columns);
}

static void products(int m, int k, int n, double alpha, double beta)
{
    const struct matrix A = random_matrix(m, k), B = random_matrix(k, n),
                        At = transposed(A), Bt = transposed(B), x = random_matrix(k, 1),
                        z = random_matrix(m, 1);
    struct matrix C = target(m, n, beta);
    const struct matrix AB = combined(alpha, times(A, B), beta, C);
    struct matrix C2 = matrix_of(m, n, C.x), C3 = matrix_of(m, n, C.x),
                  u = target(m, 1, beta), v = target(k, 1, beta);
    const struct matrix Ax = combined(alpha, times(A, x), beta, u),
                        Atz = combined(alpha, times(At, z), beta, v);
    mult_AB(m, k, n, alpha, A.x, B.x, beta, C.x);
    check_matrix(C, AB, 1e-13);
    mult_ABt(m, k, n, alpha, A.x, Bt.x, beta, C2.x);
    check_matrix(C2, AB, 1e-13);
    mult_AtB(m, k, n, alpha, At.x, B.x, beta, C3.x);
    check_matrix(C3, AB, 1e-13);
    mult_Ax(m, k, alpha, A.x, x.x, beta, u.x);
    check_matrix(u, Ax, 1e-13);
    mult_Atx(m, k, alpha, A.x, z.x, beta, v.x);
    check_matrix(v, Atz, 1e-13);
}

static void updates(int m, int n)
{
    const struct matrix A = random_matrix(m, n), x = random_matrix(m, 1),
                        y = random_matrix(n, 1), S = random_matrix(m, m);
    struct matrix R = matrix_of(m, n, A.x), C = matrix_of(m, m, S.x), T = C;
    add_xyt(m, n, -0.7, x.x, y.x, R.x);
    check_matrix(R, plus(A, -0.7, times(x, transposed(y))), 1e-14);

    struct matrix want = plus(S, 1.0, times(A, transposed(A)));
    for (int j = 1; j < m; j++) /* NaN above the diagonal: neither read nor written */
        for (int i = 0; i < j; i++)
            C.x[(size_t)j * m + i] = NAN;
    add_A_At(m, n, A.x, C.x);
    for (int j = 0; j < m; j++)
        for (int i = 0; i < m; i++) {
            if (i < j)
                CHECK(isnan(at(C, i, j)));
            else
                CHECK_NEAR(at(C, i, j), at(want, i, j), 1e-14);
        }
    const struct matrix B = random_matrix(m, n);
    struct matrix D = matrix_of(m, m, C.x); /* NaN above the diagonal */
    add_lower_ABt(m, n, -0.3, A.x, B.x, D.x);
    const struct matrix both = plus(want, -0.3, times(A, transposed(B)));
    for (int j = 0; j < m; j++)
        for (int i = 0; i < m; i++) {
            if (i < j)
                CHECK(isnan(at(D, i, j)));
            else
                CHECK_NEAR(at(D, i, j), at(both, i, j), 1e-14);
        }
    mirror_lower(m, C.x);
    for (int j = 0; j < m; j++)
        for (int i = 0; i < m; i++)
            CHECK_NEAR(at(C, i, j), i < j ? at(want, j, i) : at(want, i, j), 1e-14);

    T = matrix_of(m, m, S.x);
    add_transpose(m, T.x);
    check_matrix(T, plus(S, 1.0, transposed(S)), 0.0);

    struct matrix scaled = matrix_of(m, n, A.x);
    scale_columns(m, n, y.x, scaled.x);
    check_matrix(scaled, scaled_columns(A, y.x), 0.0);
    scale_columns(m, n, NULL, scaled.x);
    check_matrix(scaled, scaled_columns(A, y.x), 0.0);
    CHECK_NEAR(trace(m, S.x), trace_of(S), 1e-15);
}

static void vectors(size_t n)
{
    const double *x = array_random(n, -1.0, 1.0), *y = array_random(n, -1.0, 1.0);
    double xy = 0.0, xx = 0.0, *z = array(n), *want = array(n);
    for (size_t i = 0; i < n; i++) {
        xy += x[i] * y[i];
        xx += x[i] * x[i];
        want[i] = y[i] - 0.3 * x[i];
    }
    CHECK_NEAR(dot(n, x, y), xy, 1e-14);
    CHECK_NEAR(sum_squares(n, x), xx, 1e-14);
    copy(n, y, z);
    CHECK_ARRAY(n, z, y, 0.0);
    add_scaled(n, -0.3, x, z);
    CHECK_ARRAY(n, z, want, 1e-15);
    fill(n, 0.25, z);
    for (size_t i = 0; i < n; i++)
        CHECK(z[i] == 0.25);
}

/* Arguments of linalg_own(): each kind of vectors, the widest first, then the BLAS, which is the choice outside this
 * test. */
static const int ways[] = {8, 4, 2, 1, 0};

static void small_and_large(void)
{
    static const int extents[] = {0, 1, 3, 6};
    static const double scalars[][2] = {{1.0, 0.0}, {-0.5, 1.0}, {2.0, 0.3}};
    if (in_turn()) {
        products(13, 300, 150, -0.5, 1.0); /* more than one part of packed matrices */
        products(290, 129, 17, 2.0, 0.3);
        updates(170, 131);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            updates(extents[i], extents[j]);
            for (int h = 0; h < 4; h++)
                for (int s = 0; s < 3; s++)
                    products(extents[i], extents[j], extents[h], scalars[s][0],
                             scalars[s][1]);
        }
    for (size_t n = 0; n < 10; n++)
        vectors(n);
}

/* Checks that copied rows keep their columns with an entry, in order, and lose the others. */
static void sparse_matrices(void)
{
    enum { N = 30, Q = 20, SOME = 7 };
    struct arena arena = {array(2000), 2000, 0, NULL};
    struct matrix B = random_matrix(N, Q);
    for (int i = 0; i < N * Q; i++)
        B.x[i] *= i % 11 == 0;
    const struct sparse b = sparse_rows(N, Q, B.x, &arena);
    const int row[SOME] = {3, 0, 29, 3, 14, 15, 16};
    int at[2 * Q];
    double *to = array(SOME * Q);
    const int count = sparse_gather(&b, SOME, row, at, to);
    for (int j = 0, k = 0; j < Q; j++) {
        double size = 0.0;
        for (int i = 0; i < SOME; i++)
            size += fabs(B.x[j * N + row[i]]);
        CHECK((k < count && at[k] == j) == (size > 0.0));
        for (int i = 0; i < SOME && size > 0.0; i++)
            CHECK(to[k * SOME + i] == B.x[j * N + row[i]]);
        k += size > 0.0;
    }
    CHECK(count < Q && sparse_gather(&b, 0, row, at, to) == 0);
}

void group_linalg(void)
{
    sparse_matrices();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        linalg_own(ways[i]);
        small_and_large();
    }
}

/* ---- Cholesky and triangular solves ------------------------------------------------ */

/* A matrix with its inverse by naive loops, which cost more than all other steps of a test. */
struct spd {
    struct matrix S, inverse;
    double log_det;
};

static struct spd spd_new(int m)
{
    struct spd s = {.S = random_spd(m)};
    s.inverse = inverse(s.S, &s.log_det);
    return s;
}

static void factor_and_solve(struct spd spd, int n)
{
    const int m = spd.S.rows;
    const struct matrix S = spd.S, B = random_matrix(m, n), Bt = transposed(B);
    struct matrix L = matrix_of(m, m, S.x);
    for (int j = 1; j < m; j++) /* only the lower triangle is read */
        for (int i = 0; i < j; i++)
            L.x[(size_t)j * m + i] = NAN;
    CHECK(chol_lower(m, L.x) == 0);
    check_matrix(times(L, transposed(L)), S, 1e-14);
    for (int j = 1; j < m; j++)
        for (int i = 0; i < j; i++)
            CHECK(at(L, i, j) == 0.0);
    CHECK_NEAR(chol_logdet(m, L.x), spd.log_det, 1e-13);

    struct matrix X = matrix_of(m, n, B.x);
    solve_lower(m, n, L.x, X.x);
    check_matrix(times(L, X), B, 1e-13);
    double *squares = array((size_t)n), *alone = array((size_t)n);
    struct matrix work = matrix_new(m, n), in_place = matrix_of(m, n, B.x);
    solve_lower_squares(m, n, L.x, B.x, work.x, squares);
    solve_lower_squares(m, n, L.x, in_place.x, in_place.x, alone);
    for (int j = 0; j < n; j++) {
        CHECK_NEAR(squares[j], sum_squares((size_t)m, X.x + (size_t)m * j), 1e-13);
        CHECK(squares[j] == alone[j]);
    }
    X = matrix_of(m, n, B.x);
    solve_lower_t(m, n, L.x, X.x);
    check_matrix(times(transposed(L), X), B, 1e-13);
    X = matrix_of(n, m, Bt.x);
    solve_lower_right(n, m, L.x, X.x);
    check_matrix(times(X, L), Bt, 1e-13);
    X = matrix_of(m, n, B.x);
    solve_chol(m, n, L.x, X.x);
    check_matrix(X, times(spd.inverse, B), 1e-12);
}

/* F(S) = sum(Lbar * L) for the Cholesky factor L of S */
struct factor_sum {
    int n;
    double *S;
    double *Lbar;
};

static double factor_sum(const void *context)
{
    const struct factor_sum *f = context;
    const size_t size = (size_t)f->n * f->n, taken = arrays_taken();
    double *L = array_copy(size, f->S), sum = 0.0;
    CHECK(chol_lower(f->n, L) == 0);
    for (size_t i = 0; i < size; i++)
        sum += L[i] != 0.0 ? L[i] * f->Lbar[i] : 0.0;
    arrays_release(taken);
    return sum;
}

static void adjoint_of_factor(int n)
{
    const size_t size = (size_t)n * n;
    struct factor_sum f = {n, random_spd(n).x, array_random(size, -1.0, 1.0)};
    double *L = array_copy(size, f.S), *S_bar = array(size);
    chol_lower(n, L);
    chol_adjoint(n, L, f.Lbar, S_bar);
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) { /* only the lower triangle is read */
            const double d = slope(factor_sum, &f, f.S + (size_t)j * n + i);
            CHECK_NEAR((i == j ? 1.0 : 2.0) * S_bar[(size_t)j * n + i], d, 1e-8);
            CHECK_NEAR(S_bar[(size_t)i * n + j], S_bar[(size_t)j * n + i], 1e-13);
        }
}

static void factors(struct spd large)
{
    static const int extents[] = {0, 1, 2, 5, 9};
    if (in_turn())
        factor_and_solve(large, 19);
    for (int i = 0; i < 5; i++) {
        for (int n = 0; n < 4; n++)
            factor_and_solve(spd_new(extents[i]), n);
        adjoint_of_factor(extents[i]);
    }
    for (int bad = 0; bad < 3; bad++) { /* negative, NaN, infinite */
        static const double wrong[] = {-1.0, NAN, INFINITY};
        for (int n = 1; n < 4; n++) {
            struct matrix S = random_spd(n);
            S.x[n * n - 1] = wrong[bad];
            CHECK(chol_lower(n, S.x) == 1);
        }
    }
}

void group_chol(void)
{
    const struct spd large =
        spd_new(220); /* more rows than are factorised or packed at a time */
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        linalg_own(ways[i]);
        factors(large);
    }
}
