#include "ffi.h"
#include "linalg.h"
#include "objective.h"

/* objective: list(name, nu, Wt, share), NULL what it has not; rows: list(x, y, scale), or NULL where
 * none are read */
static struct evaluation *arg_evaluation(SEXP objective, SEXP model_, SEXP z, SEXP rows,
                                         int want, SEXP control)
{
    struct evaluation *e = (struct evaluation *)R_alloc(1, sizeof *e);
    struct model *model = (struct model *)R_alloc(1, sizeof *model);
    SEXP nu = list_get(objective, "nu"), Wt = list_get(objective, "Wt");
    *model = arg_model(model_);
    *e = (struct evaluation){.z = arg_points(model, z), .with_gradient = want > 0};
    e->objective = arg_objective(list_get(objective, "name"));
    e->pass.plan = plan_for(&(struct plan){.threads = 1}, 0, 1);
    if (rows != R_NilValue) {
        e->rows = arg_rows(model, rows);
        e->pass.plan = arg_plan(control, e->rows.N);
        if (e->rows.columns != e->z.columns)
            Rf_error("internal: `z` and `x` must have the same columns");
    }
    if (e->objective->with_nu) {
        struct lowrank *made = (struct lowrank *)R_alloc(1, sizeof *made);
        *made = arg_lowrank(nu, model->kernel);
        e->panel.nu = made;
        if (rows != R_NilValue)
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
    const int n_theta = e->z.model->kernel->n_theta,
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
        if (e->with_gradient)
            evaluation_points(e, e->summary.stats.k_sum);
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

/* ---- one step at a time, for rows that are elsewhere ------------------------------------------ */

SEXP ffi_sums(SEXP objective, SEXP model, SEXP z, SEXP rows, SEXP control)
{
    struct evaluation *e = arg_evaluation(objective, model, z, rows, 0, control);
    const int M = e->z.M, q = panel_columns(&e->panel), p = q > 0 && e->panel.nu->p;
    if (e->rows.y == NULL)
        Rf_error("internal: `y` must be there");
    open_evaluation(e, R_NilValue);
    SEXP result = PROTECT(pack("status", "G", "Ay", "AW", "AKA", "yy", "k_sum", "t", "n",
                               "log_weights", NULL));
    enum status status = evaluation_begin(e);
    if (status == STATUS_OK)
        status = evaluation_sums(e);
    if (status == STATUS_OK) {
        pack_sums(result, &e->summary.stats);
        pack_number(result, "t",
                    e->summary.stats.t); /* below 0 by rounding, as it is added up */
        copy((size_t)M * q, e->summary.stats.AW, pack_matrix(result, "AW", M, q));
        pack_number(result, "n", e->summary.stats.n);
        if (p)
            copy((size_t)M * M, e->W0, pack_matrix(result, "AKA", M, M));
    }
    pack_status(result, status);
    UNPROTECT(1);
    return result;
}

/* The adjoint as one vector: what adjoint_init() lays out, beta (0 without one), k_bar. */
static size_t vector_size(const struct evaluation *e)
{
    const int q = panel_columns(&e->panel), p = q > 0 && e->panel.nu->p;
    return adjoint_size(e->z.M, q, p) + (size_t)e->z.M + 1;
}

static void adjoint_to(const struct evaluation *e, double *vector)
{
    const size_t M = (size_t)e->z.M, size = vector_size(e) - M - 1;
    copy(size, e->adjoint_memory, vector);
    fill(M, 0.0, vector + size);
    if (e->adjoint.beta != NULL)
        copy(M, e->adjoint.beta, vector + size);
    vector[size + M] = e->adjoint.k_bar;
}

static void adjoint_from(const double *vector, struct evaluation *e)
{
    const int q = panel_columns(&e->panel), p = q > 0 && e->panel.nu->p;
    const size_t M = (size_t)e->z.M, size = vector_size(e) - M - 1;
    adjoint_init(e->z.M, q, p, e->adjoint_memory, &e->adjoint);
    copy(size, vector, e->adjoint_memory);
    if (e->objective->with_residuals)
        e->adjoint.beta = vector + size;
    e->adjoint.k_bar = vector[size + M];
}

SEXP ffi_objective(SEXP objective, SEXP model, SEXP z, SEXP sums, SEXP rss_)
{
    struct evaluation *e = arg_evaluation(objective, model, z, R_NilValue, 1, R_NilValue);
    double value = R_PosInf, slope = 0.0, rss = 0.0;
    open_evaluation(e, R_NilValue);
    e->summary.stats = arg_sums(sums, e->z.M, panel_columns(&e->panel));
    SEXP result = PROTECT(pack("status", "value", "adjoint", "noise", NULL));
    double *adjoint = pack_vector(result, "adjoint", (int)vector_size(e));
    enum status status = evaluation_begin(e);
    if (e->panel.nu != NULL && e->panel.nu->p)
        e->summary.W0 = arg_vector(list_get(sums, "AKA"), "AKA", (size_t)e->z.M * e->z.M);
    if (status == STATUS_OK)
        status = evaluation_factor(e);
    if (status == STATUS_OK) {
        adjoint_to(e, adjoint);
        if (rss_ != R_NilValue)
            rss = arg_number(rss_, "rss");
        else if (e->objective->residuals != NULL)
            rss = e->objective->residuals(&e->summary, e->state);
        value = evaluation_value(e, rss, &slope);
    }
    pack_status(result, status);
    pack_number(result, "value", value);
    pack_number(result, "noise", slope);
    UNPROTECT(1);
    return result;
}

SEXP ffi_gradient(SEXP objective, SEXP model, SEXP z, SEXP rows, SEXP adjoint, SEXP k_sum,
                  SEXP control)
{
    struct evaluation *e = arg_evaluation(objective, model, z, rows, 1, control);
    if (e->rows.y == NULL)
        Rf_error("internal: `y` must be there");
    open_evaluation(e, R_NilValue);
    adjoint_from(arg_vector(adjoint, "adjoint", vector_size(e)), e);
    const enum status status = evaluation_begin(e);
    SEXP result = PROTECT(pack("status", "gradient", "theta", "rss", NULL));
    if (status == STATUS_OK) {
        evaluation_gradient(e);
        pack_number(result, "rss", evaluation_rss(e));
        if (k_sum != R_NilValue)
            evaluation_points(e, arg_number(k_sum, "k_sum"));
    }
    pack_gradient(result, e, status);
    pack_status(result, status);
    UNPROTECT(1);
    return result;
}
