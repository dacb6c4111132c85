#include "exact.h"
#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"

struct exact_loop {
    struct plan plan;
    struct rows rows; /* the rows walked over, by block */
    const struct kernel *kernel;
    const double *X; /* the n training rows */
    int n;
    double *K;      /* whole matrix, n x N                       */
    double **block; /* or one block of it a slot, n x block      */
    double **work, **theta;
    const double *L, *alpha, *K_bar;
    double *mean, *variance;
};

static double *cross_block(struct exact_loop *e, int b, int slot, struct block *block)
{
    double *K = e->K == NULL ? e->block[slot] : e->K + (size_t)b * e->plan.block * e->n;
    *block = plan_block(&e->plan, &e->rows, b);
    kernel_cross(e->kernel, e->n, e->X, e->n, block->n, block->X, block->ldx, K);
    return K;
}

static void kernels(void *context, int b, int slot)
{
    struct block block;
    cross_block(context, b, slot, &block);
}

static void predict_block(void *context, int b, int slot)
{
    struct exact_loop *e = context;
    const size_t start = (size_t)b * e->plan.block;
    const struct block block = plan_block(&e->plan, &e->rows, b);
    exact_rows(e->kernel, e->n, e->L, e->alpha, block.n, block.X, block.ldx,
               e->block[slot], e->mean + start, e->variance + start);
}

static void pull_block(void *context, int b, int slot)
{
    struct exact_loop *e = context;
    struct block block;
    const double *K = cross_block(e, b, slot, &block);
    kernel_pull(e->kernel, e->n, e->X, e->n, block.n, block.X, block.ldx, K,
                e->K_bar + (size_t)b * e->plan.block * e->n, e->work[slot], NULL,
                e->theta[slot]);
}

static struct exact_loop unpack(const struct kernel *k, SEXP x, SEXP rows, SEXP control)
{
    struct exact_loop e = {.kernel = k};
    int columns;
    e.X = arg_inputs(k, x, "x", &e.n, &columns);
    e.rows.X = arg_inputs(k, rows, "x", &e.rows.N, &e.rows.columns);
    if (e.rows.columns != columns)
        Rf_error("internal: both sets of rows must have the same columns");
    e.plan = arg_plan(control, e.rows.N);
    return e;
}

static double **slots(const struct exact_loop *e, size_t size)
{
    double **slot = (double **)R_alloc((size_t)e->plan.threads, sizeof *slot);
    for (int i = 0; i < e->plan.threads; i++)
        slot[i] = (double *)R_alloc(size, sizeof(double));
    return slot;
}

/* K whole, then L in its place */
static enum status factor(struct exact_loop *e, double s2, const double *weights,
                          const double *y, double *K, double *alpha)
{
    const struct step steps[] = {{kernels, 0}};
    e->K = K;
    run_blocks(&e->plan, 1, steps, e);
    e->K = NULL;
    exact_begin(e->n, s2, weights, K, alpha);
    for (int start = 0; start < e->n;) {
        R_CheckUserInterrupt();
        start = exact_columns(e->n, start, K);
        if (start < 0)
            return STATUS_EXACT_NOT_PD;
    }
    return exact_end(e->n, y, K, alpha);
}

SEXP ffi_exact(SEXP kernel, SEXP x, SEXP y_, SEXP weights_, SEXP s2_, SEXP control)
{
    static const char *const names[] = {"status", "L", "alpha", "minus_evidence"};
    const struct kernel k = arg_kernel(kernel);
    const double s2 = arg_number(s2_, "s2");
    struct exact_loop e = unpack(&k, x, x, control);
    const double *y = arg_vector(y_, "y", (size_t)e.n);
    const double *weights = arg_vector_or_null(weights_, "weights", (size_t)e.n);
    SEXP result = PROTECT(new_list(4, names));
    SET_VECTOR_ELT(result, 1, Rf_allocMatrix(REALSXP, e.n, e.n));
    SET_VECTOR_ELT(result, 2, Rf_allocVector(REALSXP, e.n));
    double *L = REAL(VECTOR_ELT(result, 1)), *alpha = REAL(VECTOR_ELT(result, 2));
    const enum status status = factor(&e, s2, weights, y, L, alpha);
    SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
    SET_VECTOR_ELT(result, 3,
                   Rf_ScalarReal(status == STATUS_OK
                                     ? exact_minus_evidence(e.n, L, alpha, y)
                                     : R_PosInf));
    UNPROTECT(1);
    return result;
}

SEXP ffi_exact_evidence(SEXP kernel, SEXP x, SEXP y_, SEXP weights_, SEXP s2_,
                        SEXP control)
{
    static const char *const names[] = {"status", "value", "theta", "noise"};
    const struct step steps[] = {{pull_block, 0}};
    const struct kernel k = arg_kernel(kernel);
    const double s2 = arg_number(s2_, "s2");
    struct exact_loop e = unpack(&k, x, x, control);
    const double *y = arg_vector(y_, "y", (size_t)e.n);
    const double *weights = arg_vector_or_null(weights_, "weights", (size_t)e.n);
    const size_t nn = (size_t)e.n * e.n, n_theta = (size_t)k.n_theta;
    double *L = (double *)R_alloc(nn, sizeof(double)), value = R_PosInf, noise = 0.0;
    double *alpha = (double *)R_alloc((size_t)e.n, sizeof(double));
    SEXP result = PROTECT(new_list(4, names)),
         theta_ = Rf_allocVector(REALSXP, (R_xlen_t)n_theta);
    SET_VECTOR_ELT(result, 2, theta_);
    double *theta = REAL(theta_);
    fill(n_theta, 0.0, theta);

    const enum status status = factor(&e, s2, weights, y, L, alpha);
    if (status == STATUS_OK) {
        double *K_bar = (double *)R_alloc(nn, sizeof(double));
        value = exact_minus_evidence(e.n, L, alpha, y);
        exact_adjoint(e.n, L, alpha, K_bar);
        noise = exact_slope_noise(e.n, s2, weights, K_bar);
        e.K_bar = K_bar;
        e.block = slots(&e, (size_t)e.n * e.plan.block);
        e.work = slots(&e, kernel_size(&k, e.n));
        e.theta = slots(&e, n_theta);
        for (int i = 0; i < e.plan.threads; i++)
            fill(n_theta, 0.0, e.theta[i]);
        run_blocks(&e.plan, 1, steps, &e);
        for (int i = 0; i < e.plan.threads; i++)
            add_scaled(n_theta, 1.0, e.theta[i], theta);
    }
    SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
    SET_VECTOR_ELT(result, 1, Rf_ScalarReal(value));
    SET_VECTOR_ELT(result, 3, Rf_ScalarReal(noise));
    UNPROTECT(1);
    return result;
}

SEXP ffi_exact_predict(SEXP kernel, SEXP x, SEXP L, SEXP alpha, SEXP x_new, SEXP control)
{
    static const char *const names[] = {"mean", "variance"};
    const struct step steps[] = {{kernels, 0}, {predict_block, 1}};
    const struct kernel k = arg_kernel(kernel);
    struct exact_loop e = unpack(&k, x, x_new, control);
    e.L = arg_vector(L, "L", (size_t)e.n * e.n);
    e.alpha = arg_vector(alpha, "alpha", (size_t)e.n);
    e.block = slots(&e, (size_t)e.n * e.plan.block);
    SEXP result = PROTECT(new_list(2, names));
    for (int i = 0; i < 2; i++)
        SET_VECTOR_ELT(result, i, Rf_allocVector(REALSXP, e.rows.N));
    e.mean = REAL(VECTOR_ELT(result, 0));
    e.variance = REAL(VECTOR_ELT(result, 1));
    run_blocks(&e.plan, 2, steps, &e);
    UNPROTECT(1);
    return result;
}

/* k(X_new, X_new) - B'B, B = L^{-1} k(X, X_new) */
SEXP ffi_exact_covariance(SEXP kernel, SEXP x, SEXP L, SEXP x_new)
{
    const struct kernel k = arg_kernel(kernel);
    int n, m, columns;
    const double *X = arg_inputs(&k, x, "x", &n, &columns),
                 *X_new = arg_inputs(&k, x_new, "x_new", &m, &columns);
    double *B = (double *)R_alloc((size_t)n * m, sizeof(double));
    SEXP covariance = PROTECT(Rf_allocMatrix(REALSXP, m, m));
    kernel_cross(&k, n, X, n, m, X_new, m, B);
    solve_lower(n, m, arg_vector(L, "L", (size_t)n * n), B);
    kernel_cross(&k, m, X_new, m, m, X_new, m, REAL(covariance));
    mult_AtB(m, n, m, -1.0, B, B, 1.0, REAL(covariance));
    mirror_lower(m, REAL(covariance));
    UNPROTECT(1);
    return covariance;
}
