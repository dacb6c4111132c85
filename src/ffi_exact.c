#include "exact.h"
#include "ffi.h"
#include "gram.h"
#include "linalg.h"

/* the rows, L (in `K`) and alpha of an exact process */
struct exact_data {
    struct model model;
    struct source rows;
    struct pass pass;
    const double *y, *weights;
    double *L, *alpha;
};

static struct exact_data *arg_exact(SEXP model, SEXP rows, SEXP weights, SEXP control)
{
    struct exact_data *e = (struct exact_data *)R_alloc(1, sizeof *e);
    *e = (struct exact_data){.model = arg_model(model)};
    e->rows = arg_data(&e->model, rows);
    e->y = e->rows.y;
    e->weights = arg_vector_or_null(weights, "weights", (size_t)e->rows.N);
    e->pass.plan = arg_plan(control, e->rows.N);
    e->pass.rows = &e->rows;
    LAY_OUT(pass_open, &e->pass);
    return e;
}

static enum status factor(struct exact_data *e)
{
    const int n = e->rows.N;
    const struct kernel_matrix self = {e->model.kernel,
                                       source_block(&e->rows, 0, n, NULL), e->L};
    const struct sink sink = kernel_matrix_sink(&self);
    run_pass(&e->pass, 1, &sink);
    return exact_factor(n, e->model.s2, e->weights, e->y, R_CheckUserInterrupt, e->L,
                        e->alpha);
}

SEXP ffi_exact(SEXP model, SEXP rows, SEXP weights, SEXP control)
{
    struct exact_data *e = arg_exact(model, rows, weights, control);
    const int n = e->rows.N;
    SEXP result = PROTECT(pack("status", "L", "alpha", "minus_evidence", NULL));
    e->L = pack_matrix(result, "L", n, n);
    e->alpha = pack_vector(result, "alpha", n);
    const enum status status = factor(e);
    pack_status(result, status);
    pack_number(result, "minus_evidence",
                status == STATUS_OK ? exact_minus_evidence(n, e->L, e->alpha, e->y)
                                    : R_PosInf);
    UNPROTECT(1);
    return result;
}

SEXP ffi_exact_evidence(SEXP model, SEXP rows, SEXP weights, SEXP control)
{
    struct exact_data *e = arg_exact(model, rows, weights, control);
    const int n = e->rows.N, n_theta = e->model.kernel->n_theta;
    double value = R_PosInf, noise = 0.0;
    SEXP result = PROTECT(pack("status", "value", "theta", "noise", NULL));
    double *theta = pack_vector(result, "theta", n_theta);
    fill((size_t)n_theta, 0.0, theta);
    e->L = room((size_t)n * n);
    e->alpha = room((size_t)n);
    const enum status status = factor(e);
    if (status == STATUS_OK) {
        double *K_bar = room((size_t)n * n);
        const struct exact_pulling self = {e->model.kernel,
                                           source_block(&e->rows, 0, n, NULL), K_bar};
        const struct sink sink = exact_pulling_sink(&self, e->pass.plan.block, theta);
        value = exact_minus_evidence(n, e->L, e->alpha, e->y);
        exact_adjoint(n, e->L, e->alpha, K_bar);
        noise = exact_slope_noise(n, e->model.s2, e->weights, K_bar);
        run_pass(&e->pass, 1, &sink);
    }
    pack_status(result, status);
    pack_number(result, "value", value);
    pack_number(result, "noise", noise);
    UNPROTECT(1);
    return result;
}

/* the training rows as points, L their factor */
static struct inducing arg_training(const struct model *model, SEXP x, SEXP L)
{
    struct inducing z = arg_points(model, x);
    z.L = arg_vector(L, "L", (size_t)z.M * z.M);
    return z;
}

SEXP ffi_exact_predict(SEXP model_, SEXP x, SEXP posterior, SEXP x_new, SEXP control)
{
    const struct model model = arg_model(model_);
    const struct inducing z = arg_training(&model, x, list_get(posterior, "L"));
    const struct source rows = arg_new_rows(&model, x_new);
    struct pass pass = {
        .plan = arg_plan(control, rows.N), .rows = &rows, .z = &z, .wants_K = 1};
    SEXP result = PROTECT(pack("mean", "variance", NULL));
    const struct exact_predicting self = {
        &z, arg_vector(list_get(posterior, "alpha"), "alpha", (size_t)z.M),
        pack_vector(result, "mean", rows.N), pack_vector(result, "variance", rows.N)};
    const struct sink sink = exact_predicting_sink(&self);
    if (rows.columns != z.columns)
        Rf_error("internal: both sets of rows must have the same columns");
    LAY_OUT(pass_open, &pass);
    run_pass(&pass, 1, &sink);
    UNPROTECT(1);
    return result;
}

/* k(X_new, X_new) - B'B, B = L^{-1} k(X, X_new) */
SEXP ffi_exact_covariance(SEXP model_, SEXP x, SEXP posterior, SEXP x_new)
{
    const struct model model = arg_model(model_);
    const struct inducing z = arg_training(&model, x, list_get(posterior, "L"));
    const struct source rows = arg_new_rows(&model, x_new);
    SEXP covariance = PROTECT(Rf_allocMatrix(REALSXP, rows.N, rows.N));
    const struct block block = source_block(&rows, 0, rows.N, NULL);
    exact_covariance(&z, &block, room((size_t)z.M * rows.N), REAL(covariance));
    UNPROTECT(1);
    return covariance;
}
