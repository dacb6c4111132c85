#include "blas_threads.h"
#include "ffi.h"
#include "gram.h"
#include "linalg.h"
#include "row_features.h"
#include "select.h"

SEXP ffi_kernel_matrix(SEXP model_, SEXP x, SEXP z, SEXP control)
{
    const struct model model = arg_model(model_);
    const struct source points = arg_new_rows(&model, x), rows = arg_new_rows(&model, z);
    struct pass pass = {.plan = arg_plan(control, rows.N), .rows = &rows};
    SEXP K = PROTECT(Rf_allocMatrix(REALSXP, points.N, rows.N));
    const struct kernel_matrix self = {model.kernel,
                                       source_block(&points, 0, points.N, NULL), REAL(K)};
    const struct sink sink = kernel_matrix_sink(&self);
    LAY_OUT(pass_open, &pass);
    run_pass(&pass, 1, &sink);
    UNPROTECT(1);
    return K;
}

static void interrupt_now_and_then(int m)
{
    if (m % 16 == 0)
        R_CheckUserInterrupt();
}

static int *room_for_rows(int n)
{
    return (int *)R_alloc((size_t)n, sizeof(int));
}

/* row numbers from 1 */
static void from_1(int n, const int *row, int *to)
{
    for (int i = 0; i < n; i++)
        to[i] = row[i] + 1;
}

SEXP ffi_select(SEXP model_, SEXP x, SEXP m, SEXP tolerance)
{
    const struct model model = arg_model(model_);
    const struct source rows = arg_new_rows(&model, x);
    const double tol = arg_number(tolerance, "tolerance");
    const int most = arg_count(m, "m");
    const size_t n = (size_t)rows.N;
    struct select_state s = {.kernel = model.kernel,
                             .X = rows.X,
                             .n = rows.N,
                             .ldx = rows.N,
                             .most = most,
                             .pivot = room_for_rows(most),
                             .A = room(n * most),
                             .prior = room(n),
                             .E = room(n),
                             .t = room((size_t)most)};
    double *work = room(select_size(s.n, most));
    select_start(&s);
    while (select_step(&s, tol, work))
        interrupt_now_and_then(s.m);
    SEXP result = PROTECT(pack("pivots", "t", NULL));
    from_1(s.m, s.pivot, pack_integers(result, "pivots", s.m));
    copy((size_t)s.m, s.t, pack_vector(result, "t", s.m));
    UNPROTECT(1);
    return result;
}

SEXP ffi_select_guided(SEXP V, SEXP P, SEXP m, SEXP least_)
{
    const double least = arg_number(least_, "least");
    struct guided_state g = {.most = arg_count(m, "m")};
    int r, columns;
    g.V = arg_matrix(V, "V", &g.r, &g.n);
    g.P = arg_matrix(P, "P", &r, &columns);
    if (r != g.r || columns != g.r)
        Rf_error("internal: `P` must have a row and a column for each row of `V`");
    g.pivot = room_for_rows(g.most);
    g.left = room((size_t)g.n);
    g.gain = room((size_t)g.n);
    g.B = room((size_t)g.r * g.most);
    g.S = room((size_t)g.n * g.most);
    double *work = room(guided_size(g.r, g.n, g.most));
    guided_start(&g, work);
    while (guided_step(&g, least, work))
        interrupt_now_and_then(g.m);
    SEXP pivots = PROTECT(Rf_allocVector(INTSXP, g.m));
    from_1(g.m, g.pivot, INTEGER(pivots));
    UNPROTECT(1);
    return pivots;
}

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

SEXP ffi_linalg_own(SEXP lanes)
{
    return Rf_ScalarInteger(linalg_own(arg_count(lanes, "lanes")));
}

SEXP ffi_blas_threads(SEXP n)
{
    return Rf_ScalarInteger(blas_threads(arg_count(n, "n")));
}
