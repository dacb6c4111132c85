#include "ffi.h"
#include "linalg.h"
#include "objective.h"

/* objective: list(name, nu, Wt, share), NULL what it has not; rows: list(x, y, scale) */
static struct evaluation *arg_evaluation(SEXP objective, SEXP model_, SEXP z, SEXP rows,
                                         int want, SEXP control)
{
    struct evaluation *e = (struct evaluation *)R_alloc(1, sizeof *e);
    struct model *model = (struct model *)R_alloc(1, sizeof *model);
    SEXP nu = list_get(objective, "nu"), Wt = list_get(objective, "Wt");
    *model = arg_model(model_);
    *e = (struct evaluation){.z = arg_points(model, z), .with_gradient = want > 0};
    e->objective = arg_objective(list_get(objective, "name"));
    e->rows = arg_rows(model, rows);
    if (e->rows.columns != e->z.columns)
        Rf_error("internal: `z` and `x` must have the same columns");
    e->pass.plan = arg_plan(control, e->rows.N);
    e->summary.s2 = model->s2;
    if (e->objective->with_nu) {
        struct lowrank *made = (struct lowrank *)R_alloc(1, sizeof *made);
        *made = arg_lowrank(nu, model->kernel);
        e->panel.nu = made;
        e->panel.Wt = arg_vector_or_null(Wt, "Wt", (size_t)made->q * e->rows.N);
    }
    if (list_get(objective, "share") != R_NilValue)
        e->summary.share = arg_number(list_get(objective, "share"), "share");
    return e;
}

/* everything laid out in `scratch` where that is large enough */
static void open_evaluation(struct evaluation *e, SEXP scratch)
{
    struct arena arena = {NULL, 0};
    evaluation_open(e, &arena);
    arena.base = TYPEOF(scratch) == REALSXP && (size_t)XLENGTH(scratch) >= arena.used
                     ? REAL(scratch)
                     : room(arena.used);
    arena.used = 0;
    evaluation_open(e, &arena);
}

static void pack_gradient(SEXP result, const struct evaluation *e, enum status status)
{
    const size_t size = (size_t)e->z.M * e->z.columns;
    const int n_theta = e->z.kernel->n_theta,
              there = status == STATUS_OK && e->with_gradient;
    double *dZ = pack_matrix(result, "gradient", e->z.M, e->z.columns),
           *dtheta = pack_vector(result, "theta", n_theta);
    fill(size, 0.0, dZ);
    fill((size_t)n_theta, 0.0, dtheta);
    if (there) {
        copy(size, e->gradient, dZ);
        copy((size_t)n_theta, e->gradient + size, dtheta);
    }
}

SEXP ffi_evaluate(SEXP objective, SEXP model, SEXP z, SEXP rows, SEXP want, SEXP control,
                  SEXP scratch)
{
    struct evaluation *e =
        arg_evaluation(objective, model, z, rows, arg_integer(want, "want"), control);
    double value = R_PosInf, slope = 0.0;
    if (e->rows.y == NULL)
        Rf_error("internal: `y` must be there");
    open_evaluation(e, scratch);
    enum status status = evaluation_begin(e);
    if (status == STATUS_OK)
        status = evaluation_sums(e);
    if (status == STATUS_OK)
        status = evaluation_factor(e);
    if (status == STATUS_OK) {
        evaluation_gradient(e);
        value = evaluation_value(e, evaluation_rss(e), e->with_gradient ? &slope : NULL);
        status = R_FINITE(value) ? STATUS_OK : STATUS_NOT_FINITE;
    }
    SEXP result = PROTECT(pack("status", "value", "gradient", "theta", "noise", NULL));
    pack_gradient(result, e, status);
    pack_status(result, status);
    pack_number(result, "value", status == STATUS_OK ? value : R_PosInf);
    pack_number(result, "noise", slope);
    UNPROTECT(1);
    return result;
}

SEXP ffi_evaluate_size(SEXP objective, SEXP model, SEXP z, SEXP rows, SEXP want,
                       SEXP control)
{
    struct arena arena = {NULL, 0};
    evaluation_open(
        arg_evaluation(objective, model, z, rows, arg_integer(want, "want"), control),
        &arena);
    return Rf_ScalarReal((double)arena.used);
}
