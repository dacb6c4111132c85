#include "blas_threads.h"
#include "ffi.h"
#include "gram.h"
#include "kernel_slopes.h"
#include "linalg.h"
#include "row_features.h"
#include "select.h"

/* Returns the matrix k(x, z), nrow(x) x nrow(z). */
SEXP ffi_kernel_matrix(SEXP model_, SEXP x, SEXP z, SEXP control)
{
    const struct model *model = arg_model(model_);
    const struct block points = source_whole(arg_new_rows(model, x));
    struct pass pass = pass_over(arg_new_rows(model, z), NULL, control);
    SEXP K = PROTECT(Rf_allocMatrix(REALSXP, points.n, pass.rows->N));
    const struct kernel_matrix to = {model->kernel, rows_of(&points), REAL(K)};
    pass_run(&pass, kernel_matrix_sink(&to));
    UNPROTECT(1);
    return K;
}

SEXP ffi_kernel_diagonal(SEXP model_, SEXP x)
{
    const struct model *model = arg_model(model_);
    const struct block rows = source_whole(arg_new_rows(model, x));
    SEXP diagonal = PROTECT(Rf_allocVector(REALSXP, rows.n));
    kernel_diagonal(model->kernel, rows_of(&rows), REAL(diagonal));
    UNPROTECT(1);
    return diagonal;
}

/* Returns the unit vector of column `column` (from 1) of rows, rotated if the kernel rotates that column. */
static const double *arg_direction(SEXP column, const struct kernel *k,
                                   const struct source *rows)
{
    const int j = arg_integer(column, "column");
    arg_check(j > 0 && j <= rows->columns, "`column` must be among the columns");
    double *direction = alloc_doubles((size_t)rows->columns);
    fill((size_t)rows->columns, 0.0, direction);
    direction[j - 1] = 1.0;
    for (int c = 0; c < k->n_rotated && j <= k->n_rotated; c++)
        direction[c] = k->rotation[c * k->n_rotated + j - 1];
    return direction;
}

/* Returns the derivatives of k(x, z) in column `column` of z: a matrix, nrow(x) x nrow(z). */
SEXP ffi_kernel_slopes(SEXP model_, SEXP x, SEXP z, SEXP column)
{
    const struct model *model = arg_model(model_);
    const struct source *points = arg_new_rows(model, x), *rows = arg_new_rows(model, z);
    const double *direction = arg_direction(column, model->kernel, rows);
    SEXP K = PROTECT(Rf_allocMatrix(REALSXP, points->N, rows->N));
    kernel_slopes(model->kernel, direction, matrix_rows(points->N, points->X),
                  matrix_rows(rows->N, rows->X), REAL(K));
    UNPROTECT(1);
    return K;
}

/* Returns list(prior, size): prior variances of df/dx_column at the rows of x, and scales of their rounding errors. */
SEXP ffi_slope_variance(SEXP model_, SEXP x, SEXP column)
{
    const struct model *model = arg_model(model_);
    const struct source *rows = arg_new_rows(model, x);
    const double *direction = arg_direction(column, model->kernel, rows);
    SEXP result = PROTECT(pack(NULL));
    double *prior = pack_vector(result, "prior", rows->N);
    kernel_slope_variance(model->kernel, direction, matrix_rows(rows->N, rows->X), prior,
                          pack_vector(result, "size", rows->N));
    return packed(result);
}

static void interrupt_now_and_then(int m)
{
    if (m % 16 == 0)
        R_CheckUserInterrupt();
}

static void from_1(int n, const int *row, int *to)
{
    for (int i = 0; i < n; i++)
        to[i] = row[i] + 1;
}

/* Returns list(pivots, t): rows chosen greedily as inducing points; after each, the sum of residual prior variances. */
SEXP ffi_select(SEXP model_, SEXP x, SEXP m, SEXP tolerance)
{
    const struct model *model = arg_model(model_);
    const struct source *rows = arg_new_rows(model, x);
    const double tol = arg_number(tolerance, "tolerance");
    struct select_state s = {.kernel = model->kernel,
                             .X = matrix_rows(rows->N, rows->X),
                             .most = arg_count(m, "m")};
    s.pivot = alloc_integers((size_t)s.most);
    select_start(&s, scratch_arena(R_NilValue));
    while (select_step(&s, tol))
        interrupt_now_and_then(s.m);
    SEXP result = PROTECT(pack(NULL));
    from_1(s.m, s.pivot, pack_integer_matrix(result, "pivots", s.m, 1));
    copy((size_t)s.m, s.t, pack_vector(result, "t", s.m));
    return packed(result);
}

/* Chooses columns of V greedily, each to reduce tr((I - B B') P) most, for a positive semidefinite P. B is an
 * orthonormal basis of the columns chosen so far. Returns the numbers of the columns. */
SEXP ffi_select_guided(SEXP V, SEXP P, SEXP m, SEXP least_)
{
    const double least = arg_number(least_, "least");
    struct guided_state g = {.most = arg_count(m, "m")};
    g.V = arg_matrix(V, "V", &g.r, &g.n);
    g.P = arg_vector(P, "P", (size_t)g.r * g.r);
    g.pivot = alloc_integers((size_t)g.most);
    guided_start(&g, scratch_arena(R_NilValue));
    while (guided_step(&g, least))
        interrupt_now_and_then(g.m);
    SEXP pivots = PROTECT(Rf_allocVector(INTSXP, g.m));
    from_1(g.m, g.pivot, INTEGER(pivots));
    UNPROTECT(1);
    return pivots;
}

/* Returns n_features pseudo-random functions of each row of x, which identify a set of rows by their sums. */
SEXP ffi_row_features(SEXP x, SEXP n_features)
{
    int N, columns;
    const double *X = arg_matrix(x, "x", &N, &columns);
    const int n = arg_count(n_features, "n_features");
    SEXP F = PROTECT(Rf_allocMatrix(REALSXP, N, n));
    row_features(N, columns, X, n, REAL(F));
    UNPROTECT(1);
    return F;
}

SEXP ffi_status(SEXP status)
{
    return Rf_mkString(status_sentence((enum status)arg_integer(status, "status")));
}

/* Makes dense algebra use vectors of `lanes` doubles, or BLAS and LAPACK if lanes = 0. Returns the earlier choice. */
SEXP ffi_linalg_own(SEXP lanes)
{
    return Rf_ScalarInteger(linalg_own(arg_count(lanes, "lanes")));
}

/* Sets the number of threads of the BLAS to n, unless n = 0.  Returns the earlier number, or 0 if it is unknown. */
SEXP ffi_blas_threads(SEXP n)
{
    return Rf_ScalarInteger(blas_threads(arg_count(n, "n")));
}
