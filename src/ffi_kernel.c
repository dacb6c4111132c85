#include "row_features.h"
#include "ffi.h"
#include "ffi_blocks.h"
#include "select.h"

struct matrix_loop {
    struct plan plan;
    struct rows rows; /* the columns of the result */
    const struct kernel *kernel;
    const double *X;
    int n;
    double *K;
};

static void matrix_block(void *context, int b, int slot)
{
    struct matrix_loop *c = context;
    (void)slot;
    const struct block block = plan_block(&c->plan, &c->rows, b);
    kernel_cross(c->kernel, c->n, c->X, c->n, block.n, block.X, block.ldx,
                 c->K + (size_t)b * c->plan.block * c->n);
}

SEXP ffi_kernel_matrix(SEXP kernel, SEXP x, SEXP z, SEXP control)
{
    const struct step steps[] = {{matrix_block, 0}};
    const struct kernel k = arg_kernel(kernel);
    struct matrix_loop c = {.kernel = &k};
    int columns;
    c.X = arg_inputs(&k, x, "x", &c.n, &columns);
    c.rows.X = arg_inputs(&k, z, "z", &c.rows.N, &c.rows.columns);
    c.rows.y = c.rows.scale = NULL;
    c.plan = arg_plan(control, c.rows.N);
    SEXP K = PROTECT(Rf_allocMatrix(REALSXP, c.n, c.rows.N));
    c.K = REAL(K);
    run_blocks(&c.plan, 1, steps, &c);
    UNPROTECT(1);
    return K;
}

SEXP ffi_select(SEXP kernel, SEXP x, SEXP m, SEXP tolerance)
{
    static const char *const names[] = {"pivots", "t"};
    const struct kernel k = arg_kernel(kernel);
    const double tol = arg_number(tolerance, "tolerance");
    struct select_state s;
    int columns;
    s.kernel = &k;
    s.X = arg_inputs(&k, x, "x", &s.n, &columns);
    s.ldx = s.n;
    s.most = arg_count(m, "m");
    s.pivot = (int *)R_alloc((size_t)s.most, sizeof(int));
    s.A = (double *)R_alloc((size_t)s.n * s.most, sizeof(double));
    s.prior = (double *)R_alloc((size_t)s.n, sizeof(double));
    s.E = (double *)R_alloc((size_t)s.n, sizeof(double));
    s.t = (double *)R_alloc((size_t)s.most, sizeof(double));
    double *work = (double *)R_alloc(select_size(s.n, s.most), sizeof(double));
    select_start(&s);
    while (select_step(&s, tol, work))
        if (s.m % 16 == 0)
            R_CheckUserInterrupt();

    SEXP result = PROTECT(new_list(2, names));
    SET_VECTOR_ELT(result, 0, Rf_allocVector(INTSXP, s.m));
    SET_VECTOR_ELT(result, 1, Rf_allocVector(REALSXP, s.m));
    for (int i = 0; i < s.m; i++) {
        INTEGER(VECTOR_ELT(result, 0))[i] = s.pivot[i] + 1;
        REAL(VECTOR_ELT(result, 1))[i] = s.t[i];
    }
    UNPROTECT(1);
    return result;
}

SEXP ffi_select_guided(SEXP V, SEXP P, SEXP m, SEXP least_)
{
    const double least = arg_number(least_, "least");
    struct guided_state g;
    int r, columns;
    g.V = arg_matrix(V, "V", &g.r, &g.n);
    g.P = arg_matrix(P, "P", &r, &columns);
    if (r != g.r || columns != g.r)
        Rf_error("internal: `P` must have a row and a column for each row of `V`");
    g.most = arg_count(m, "m");
    g.pivot = (int *)R_alloc((size_t)g.most, sizeof(int));
    g.left = (double *)R_alloc((size_t)g.n, sizeof(double));
    g.gain = (double *)R_alloc((size_t)g.n, sizeof(double));
    g.B = (double *)R_alloc((size_t)g.r * g.most, sizeof(double));
    g.S = (double *)R_alloc((size_t)g.n * g.most, sizeof(double));
    double *work = (double *)R_alloc(guided_size(g.r, g.n, g.most), sizeof(double));
    guided_start(&g, work);
    while (guided_step(&g, least, work))
        if (g.m % 16 == 0)
            R_CheckUserInterrupt();

    SEXP pivots = PROTECT(Rf_allocVector(INTSXP, g.m));
    for (int i = 0; i < g.m; i++)
        INTEGER(pivots)[i] = g.pivot[i] + 1;
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
