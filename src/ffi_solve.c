#include "ffi.h"
#include "gram.h"
#include "linalg.h"
#include "near.h"

/*
 * What solving (K + s2 I) w = y by conjugate gradients takes: products with K, streamed over
 * pairs of row blocks, and with B^{-1} = (A'A + s2 I)^{-1}, the preconditioner.
 */

SEXP ffi_kernel_product(SEXP model_, SEXP rows_, SEXP v, SEXP control)
{
    const struct model model = arg_model(model_);
    const struct source rows = arg_rows(&model, rows_);
    struct pass pass = {.plan = arg_plan(control, rows.N), .rows = &rows};
    int N, m;
    const double *V = arg_matrix(v, "v", &N, &m);
    if (N != rows.N || m < 1)
        Rf_error("internal: `v` must be a number or more for each of the rows");
    const struct kernel_product self = {model.kernel, &pass, m, V};
    SEXP result = PROTECT(Rf_allocMatrix(REALSXP, N, m));
    const struct sink sink = kernel_product_sink(&self, REAL(result));
    LAY_OUT(pass_open, &pass);
    run_pass(&pass, 1, &sink);
    UNPROTECT(1);
    return result;
}

SEXP ffi_kernel_cross_matvec(SEXP model_, SEXP x, SEXP u, SEXP x_new, SEXP control)
{
    const struct model model = arg_model(model_);
    const struct source rows = arg_new_rows(&model, x),
                        new_rows = arg_new_rows(&model, x_new);
    struct pass pass = {.plan = arg_plan(control, new_rows.N), .rows = &new_rows};
    SEXP result = PROTECT(Rf_allocVector(REALSXP, new_rows.N));
    const struct kernel_cross_matvec self = {model.kernel, &rows,
                                             arg_vector(u, "u", (size_t)rows.N),
                                             pass.plan.block, REAL(result)};
    const struct sink sink = kernel_cross_matvec_sink(&self);
    LAY_OUT(pass_open, &pass);
    run_pass(&pass, 1, &sink);
    UNPROTECT(1);
    return result;
}

/* Ay, beta = (s2 I + G)^{-1} Ay and, without whitening, beta <- L^{-T} beta: the weights of A'beta =
 * k(X, Z) L^{-T} beta */
static const double *response_weights(const struct posterior *p, int whiten, double *Ay,
                                      double *beta)
{
    const int M = p->z.M;
    double *weights = room((size_t)M);
    if (!whiten)
        solve_lower(M, 1, p->z.L, Ay);
    copy((size_t)M, Ay, beta);
    solve_chol(M, 1, p->C, beta);
    copy((size_t)M, beta, weights);
    if (!whiten)
        solve_lower_t(M, 1, p->z.L, weights);
    return weights;
}

SEXP ffi_response(SEXP model_, SEXP z, SEXP posterior, SEXP rows_, SEXP whiten_,
                  SEXP control)
{
    const struct model model = arg_model(model_);
    const struct posterior p = arg_posterior(&model, z, posterior);
    const struct source rows = arg_data(&model, rows_);
    const int M = p.z.M, whiten = arg_integer(whiten_, "whiten");
    struct inducing points = p.z;
    struct pass pass = {
        .plan = arg_plan(control, rows.N), .rows = &rows, .z = &points, .again = 1};
    if (!whiten)
        points.L = NULL;
    double *sums = room((size_t)M + 1), rss = 0.0;
    const struct sink sum = response_sink(&M, pass.plan.block, sums);
    SEXP result = PROTECT(pack("Ay", "beta", "yy", "rss", "v", NULL));
    LAY_OUT(pass_open, &pass);
    run_pass(&pass, 1, &sum);
    const struct residuals residuals = {
        M, response_weights(&p, whiten, sums, pack_vector(result, "beta", M)), model.s2,
        pack_vector(result, "v", rows.N)};
    const struct sink left = residuals_sink(&residuals, pass.plan.block, &rss);
    run_pass(&pass, 1, &left);
    copy((size_t)M, sums, pack_vector(result, "Ay", M));
    pack_number(result, "yy", sums[M]);
    pack_number(result, "rss", rss);
    UNPROTECT(1);
    return result;
}

SEXP ffi_decorrelate(SEXP u_, SEXP d, SEXP rows, SEXP v, SEXP transpose)
{
    int s, N;
    const double *u = arg_matrix(u_, "u", &s, &N);
    if (XLENGTH(rows) != (R_xlen_t)s * N)
        Rf_error("internal: `rows` must be an integer for every element of `u`");
    SEXP result = PROTECT(Rf_allocVector(REALSXP, N));
    near_decorrelate(s, N, u, arg_vector(d, "d", (size_t)N),
                     arg_indices(rows, "rows", 0, N), arg_vector(v, "v", (size_t)N),
                     arg_integer(transpose, "transpose"), REAL(result));
    UNPROTECT(1);
    return result;
}
