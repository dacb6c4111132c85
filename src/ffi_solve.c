#include "ffi.h"
#include "gram.h"
#include "linalg.h"
#include "near.h"

/* Entry points for solving (K + s2 I) w = y by conjugate gradients (s2: noise variance): products with K = k(X, X),
 * over pairs of row blocks, and with the preconditioner (A'A + s2 I)^{-1}, A = L^{-1} k(Z, X), L L' = k(Z, Z). */

/* Returns K V for K = k(X, X) without weights and V (N x m), or part `share` of `shares` parts whose sum is K V. */
SEXP ffi_kernel_matvecs(SEXP model_, SEXP rows, SEXP V_, SEXP share_, SEXP shares_,
                        SEXP control)
{
    const struct model *model = arg_model(model_);
    struct pass pass = pass_over(arg_rows(model, rows), NULL, control);
    int N, m;
    const double *V = arg_matrix(V_, "V", &N, &m);
    arg_check(N == pass.rows->N && m > 0, "`V` must have the rows of `x`, and columns");
    const int share = arg_count(share_, "share"), shares = arg_count(shares_, "shares");
    arg_check(share < shares, "`share` must be below `shares`");
    const struct kernel_matvecs to = {model->kernel, &pass, m, V, share, shares};
    SEXP KV = PROTECT(Rf_allocMatrix(REALSXP, N, m));
    pass_run(&pass, kernel_matvecs_sink(&to, REAL(KV)));
    UNPROTECT(1);
    return KV;
}

/* Returns k(x_new, x) u. */
SEXP ffi_kernel_cross_matvec(SEXP model_, SEXP x, SEXP u, SEXP x_new, SEXP control)
{
    const struct model *model = arg_model(model_);
    const struct source *rows = arg_new_rows(model, x);
    struct pass pass = pass_over(arg_new_rows(model, x_new), NULL, control);
    SEXP Ku = PROTECT(Rf_allocVector(REALSXP, pass.rows->N));
    const struct kernel_cross_matvec to = {model->kernel, rows,
                                           arg_vector(u, "u", (size_t)rows->N),
                                           pass.plan.block, REAL(Ku)};
    pass_run(&pass, kernel_cross_matvec_sink(&to));
    UNPROTECT(1);
    return Ku;
}

/* Computes beta = (s2 I + A A')^{-1} A y for A = L^{-1} k(Z, X), L L' = k(Z, Z), noise variance s2. Returns w with
 * A'beta = F'w. If `whiten`, F is A, so w = beta. Otherwise F is k(Z, X), w = L^{-T} beta, and Ay is F y at first. */
static const double *response_weights(const struct posterior *p, int whiten, double *Ay,
                                      double *beta)
{
    const int M = p->z.M;
    double *weights = alloc_doubles((size_t)M);
    if (!whiten)
        solve_lower(M, 1, p->z.L, Ay);
    copy((size_t)M, Ay, beta);
    solve_chol(M, 1, p->C, beta);
    copy((size_t)M, beta, weights);
    if (!whiten)
        solve_lower_t(M, 1, p->z.L, weights);
    return weights;
}

/* Returns list(Ay, beta, yy, rss, v) for a response y: yy = |y|^2, rss = |y - A'beta|^2, v = (A'A + s2 I)^{-1} y, where
 * A is L^{-1} k(Z, X), L L' = k(Z, Z), beta = A v and s2 is the noise variance. Without `whiten`, Ay = L^{-1} (k(Z, X)
 * y) takes only O(N M) operations, but is only accurate enough for preconditioners. */
SEXP ffi_response(SEXP posterior, SEXP rows, SEXP whiten_, SEXP control)
{
    const struct posterior *p = arg_posterior(posterior);
    const int M = p->z.M, whiten = arg_integer(whiten_, "whiten");
    struct inducing points = p->z;
    points.L = whiten ? p->z.L : NULL;
    struct pass pass = pass_over(arg_data(points.model, rows), &points, control);
    double *sums = alloc_doubles((size_t)M + 1), rss = 0.0;
    SEXP result = PROTECT(pack(NULL));
    pass.again = 1;
    pass_run(&pass, response_sink(&M, sums));
    const struct residuals residuals = {
        M, response_weights(p, whiten, sums, pack_vector(result, "beta", M)),
        points.model->s2, pack_vector(result, "v", pass.rows->N), NULL};
    pass_run(&pass, residuals_sink(&residuals, &rss));
    copy((size_t)M, sums, pack_vector(result, "Ay", M));
    pack_number(result, "yy", sums[M]);
    pack_number(result, "rss", rss);
    return packed(result);
}

/* Returns F v, or F'v if `transpose`: element i of F v is (v_i - u_i'v[rows_i]) / sqrt(d_i), where ffi_near() returns
 * the weights u_i of the neighbours rows_i and the conditional variances d_i. */
SEXP ffi_decorrelate(SEXP u_, SEXP d, SEXP rows, SEXP v, SEXP transpose)
{
    int s, N;
    const double *u = arg_matrix(u_, "u", &s, &N);
    SEXP result = PROTECT(Rf_allocVector(REALSXP, N));
    near_decorrelate(s, N, u, arg_vector(d, "d", (size_t)N),
                     arg_indices(rows, "rows", (size_t)s * N, 0, N),
                     arg_vector(v, "v", (size_t)N), arg_integer(transpose, "transpose"),
                     REAL(result));
    UNPROTECT(1);
    return result;
}
