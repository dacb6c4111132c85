#include "divergence.h"
#include "ffi.h"

static struct divergence divergence_of(const struct model *model, SEXP rows, SEXP aux,
                                       SEXP control)
{
    struct divergence d = {.panel = {arg_lowrank(aux, model->kernel), NULL}};
    d.rows = *arg_data(model, rows);
    d.pass.plan = arg_plan(control, d.rows.N);
    return d;
}

/* Returns list(status, value): the squared pF divergence times the squared noise variance, from all pairs of rows. */
SEXP ffi_pf_divergence(SEXP points, SEXP rows, SEXP aux, SEXP control)
{
    const struct inducing z = arg_points(points);
    struct divergence d = divergence_of(z.model, rows, aux, control);
    double value;
    d.z = z;
    SEXP result = PROTECT(pack(NULL));
    pack_value(result, divergence_value(&d, &value), "value", &value);
    return packed(result);
}

/* Returns tr((k^ + (mu^ - y)(mu^ - y)') k(X, X)) for aux = GP(mean mu^, covariance k^) at the rows X: the part of the
 * squared pF divergence, times the squared noise variance, that does not depend on inducing points. */
SEXP ffi_pf_constant(SEXP model, SEXP rows, SEXP aux, SEXP control)
{
    struct divergence d = divergence_of(arg_model(model), rows, aux, control);
    return Rf_ScalarReal(divergence_constant(&d));
}

/* Returns the q functions b_j and mu of the auxiliary distribution `aux` at N rows (q x N), times the roots of the row
 * weights. aux is a Gaussian process with mean mu and covariance p k + sum_j +-b_j b_j', where p is 0 or 1. */
SEXP ffi_lowrank_rows(SEXP model_, SEXP aux_, SEXP rows_, SEXP control)
{
    const struct model *model = arg_model(model_);
    const struct lowrank *aux = arg_lowrank(aux_, model->kernel);
    struct pass pass = pass_over(arg_rows(model, rows_), NULL, control);
    SEXP Wt = PROTECT(Rf_allocMatrix(REALSXP, aux->q, pass.rows->N));
    const struct panel_values to = {{aux, NULL}, REAL(Wt)};
    pass_run(&pass, panel_sink(&to));
    UNPROTECT(1);
    return Wt;
}
