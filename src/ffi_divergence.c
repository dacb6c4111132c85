#include "divergence.h"
#include "ffi.h"

/* points of `z`, or none where that is R's NULL */
static struct divergence *open_divergence(SEXP model_, SEXP z, SEXP rows, SEXP nu_,
                                          SEXP control)
{
    struct divergence *d = (struct divergence *)R_alloc(1, sizeof *d);
    struct model *model = (struct model *)R_alloc(1, sizeof *model);
    struct lowrank *nu = (struct lowrank *)R_alloc(1, sizeof *nu);
    *model = arg_model(model_);
    *nu = arg_lowrank(nu_, model->kernel);
    *d = (struct divergence){.panel = {nu, NULL}};
    if (z != R_NilValue)
        d->z = arg_points(model, z);
    d->rows = arg_data(model, rows);
    d->pass.plan = arg_plan(control, d->rows.N);
    LAY_OUT(divergence_open, d);
    return d;
}

SEXP ffi_pf_divergence(SEXP model, SEXP z, SEXP rows, SEXP nu, SEXP control)
{
    double value = R_PosInf;
    const enum status status =
        divergence_value(open_divergence(model, z, rows, nu, control), &value);
    SEXP result = PROTECT(pack("status", "value", NULL));
    pack_status(result, status);
    pack_number(result, "value", value);
    UNPROTECT(1);
    return result;
}

SEXP ffi_pf_constant(SEXP model, SEXP rows, SEXP nu, SEXP control)
{
    return Rf_ScalarReal(
        divergence_constant(open_divergence(model, R_NilValue, rows, nu, control)));
}

SEXP ffi_lowrank_rows(SEXP model_, SEXP nu_, SEXP rows_, SEXP control)
{
    const struct model model = arg_model(model_);
    const struct lowrank nu = arg_lowrank(nu_, model.kernel);
    const struct source rows = arg_rows(&model, rows_);
    struct pass pass = {.plan = arg_plan(control, rows.N), .rows = &rows};
    SEXP Wt = PROTECT(Rf_allocMatrix(REALSXP, nu.q, rows.N));
    const struct panel_values to = {{&nu, NULL}, REAL(Wt)};
    const struct sink sink = panel_sink(&to, pass.plan.block);
    LAY_OUT(pass_open, &pass);
    run_pass(&pass, 1, &sink);
    UNPROTECT(1);
    return Wt;
}
