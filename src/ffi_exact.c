#include "exact.h"
#include "ffi.h"
#include "linalg.h"

/* Returns list(status, alpha, value, ...) for the exact GP: alpha = (K + noise)^{-1} y, and value is minus the log
 * marginal likelihood. The noise variances are s2 / weights. Without slopes, adds L, the Cholesky factor of K + noise.
 * With slopes, adds derivatives in log kernel parameters (theta) and log s2 (noise), and diag (K + noise)^{-1}. */
SEXP ffi_exact(SEXP model, SEXP rows, SEXP weights, SEXP slopes_, SEXP control)
{
    struct exact e = {.model = arg_model(model)};
    e.pass = pass_over(arg_data(e.model, rows), NULL, control);
    const int n = e.pass.rows->N, slopes = arg_integer(slopes_, "slopes"),
              n_theta = slopes ? e.model->kernel->n_theta : 0;
    e.weights = arg_vector_or_null(weights, "weights", (size_t)n);
    double value, noise = 0.0;
    SEXP result = PROTECT(pack(NULL));
    double *theta = pack_vector(result, "theta", n_theta);
    fill((size_t)n_theta, 0.0, theta);
    e.alpha = pack_vector(result, "alpha", n);
    e.L = slopes ? alloc_doubles((size_t)n * n) : pack_matrix(result, "L", n, n);
    e.precision = slopes ? pack_vector(result, "precision", n) : NULL;
    if (pack_value(result, exact_run(&e, &value), "value", &value) == STATUS_OK && slopes)
        exact_gradient(&e, theta, &noise);
    pack_number(result, "noise", noise);
    return packed(result);
}

/* Returns the diagonal of (L L')^{-1} for the Cholesky factor L of an exact posterior. */
SEXP ffi_exact_precision(SEXP L_, SEXP control)
{
    int n, columns;
    const double *L = arg_matrix(L_, "L", &n, &columns);
    arg_check(n == columns, "`L` must be square");
    const struct plan plan = arg_plan(control, n);
    SEXP precision = PROTECT(Rf_allocVector(REALSXP, n));
    exact_precision(&plan, L, REAL(precision));
    UNPROTECT(1);
    return precision;
}
