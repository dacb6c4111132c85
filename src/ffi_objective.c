#include "ffi.h"
#include "linalg.h"
#include "objective.h"

/* Reads an objective list(name, aux, Wt, share), with NULL for missing parts (see ffi_evaluate()), its inducing points,
 * and rows or NULL. */
static struct evaluation arg_evaluation(SEXP objective, SEXP points, SEXP rows, int want,
                                        SEXP control, SEXP scratch)
{
    struct evaluation e = {.z = arg_points(points), .with_gradient = want > 0};
    const struct model *model = e.z.model;
    e.objective = objective_named(arg_string(list_get(objective, "name"), "name"));
    arg_check(e.objective != NULL, "there is no such objective");
    e.pass.plan = plan_for(&(struct plan){.threads = 1}, 0, 1);
    if (rows != R_NilValue) {
        e.rows = *arg_data(model, rows);
        e.pass.plan = arg_plan(control, e.rows.N);
        arg_check(e.rows.columns == e.z.columns, "`z` must have the columns of `x`");
    }
    if (e.objective->with_aux) {
        e.panel.aux = arg_lowrank(list_get(objective, "aux"), model->kernel);
        if (rows != R_NilValue)
            e.panel.Wt = arg_vector_or_null(list_get(objective, "Wt"), "Wt",
                                            (size_t)e.panel.aux->q * e.rows.N);
    }
    e.pass.plan.arena = scratch_arena(scratch);
    if (list_get(objective, "share") != R_NilValue)
        e.share = list_number(objective, "share");
    return e;
}

static void pack_gradient(SEXP result, const struct evaluation *e, enum status status)
{
    const size_t size = (size_t)e->z.M * e->z.columns;
    const int n_theta = e->z.model->kernel->n_theta;
    double *dZ = pack_matrix(result, "gradient", e->z.M, e->z.columns),
           *dtheta = pack_vector(result, "theta", n_theta);
    fill(size, 0.0, dZ);
    fill((size_t)n_theta, 0.0, dtheta);
    if (status == STATUS_OK && e->with_gradient) {
        copy(size, e->gradient, dZ);
        copy((size_t)n_theta, e->gradient + size, dtheta);
    }
}

/* Returns list(status, value, gradient, theta, noise, used) for an objective. If want > 0, it has derivatives in z
 * (gradient, M x d) and, if they exist, in the logs of kernel parameters (theta) and noise variance s2 (noise). `used`
 * is the number of doubles of scratch. objective is list(name, aux, Wt, share) with one of these names:
 *   vfe     -ELBO
 *   pf      s2^2 d^2 - C(X) for the pF divergence d for aux; C(X) does not depend on z. Wt: values of the q functions
 *           of aux at the rows (q x N, see lowrank.h), or NULL to compute them
 *   white   pf for an aux that is white noise of variance share * s2 at the rows; white_at_exact() in R computes
 *           -C(X) */
SEXP ffi_evaluate(SEXP objective, SEXP points, SEXP rows, SEXP want, SEXP control,
                  SEXP scratch)
{
    struct evaluation e = arg_evaluation(objective, points, rows,
                                         arg_integer(want, "want"), control, scratch);
    double value, slope = 0.0;
    SEXP result = PROTECT(pack(NULL));
    pack_gradient(
        result, &e,
        pack_value(result, evaluation_run(&e, &value, &slope), "value", &value));
    pack_number(result, "noise", slope);
    pack_number(result, "used", (double)e.pass.plan.arena->used);
    return packed(result);
}

/* ---- the steps of ffi_evaluate(), for rows that are not in memory ----------------------------- */

/* Returns sums over n rows, list(status, G, Ay, AW, AKA, yy, k_sum, t, n, log_weights): G = A A' for the whitened A =
 * L^{-1} k(Z, X), Ay = A y, AW = A times the values of aux, yy = y'y, k_sum = sum k(x, x), t = k_sum - tr G, the sum of
 * log weights. Sums over parts of the rows add up. AKA = A k(X, X) A' (only if aux$p = 1) needs all pairs of rows. */
SEXP ffi_sums(SEXP objective, SEXP points, SEXP rows, SEXP control)
{
    struct evaluation e = arg_evaluation(objective, points, rows, 0, control, R_NilValue);
    const struct stats *s = &e.stats;
    const size_t M = (size_t)e.z.M;
    SEXP result = PROTECT(pack(NULL));
    enum status status = evaluation_begin(&e);
    if (status == STATUS_OK && (status = evaluation_sums(&e)) == STATUS_OK) {
        pack_sums(result, s);
        /* t is a sum of residual prior variances. It stays below 0 if rounding makes it so, because parts add up. */
        pack_number(result, "t", s->t);
        copy(M * s->q, s->AW, pack_matrix(result, "AW", s->M, s->q));
        pack_number(result, "n", s->n);
        if (s->q > 0 && e.panel.aux->p)
            copy(M * M, e.W0, pack_matrix(result, "AKA", s->M, s->M));
    }
    pack_status(result, status);
    return packed(result);
}

/* Returns list(status, value, adjoint, noise) of an objective from the sums of all rows. adjoint has the derivatives in
 * these sums, for ffi_gradient(). For VFE, noise is the derivative in the log noise variance. rss is |y - posterior
 * mean|^2 from ffi_gradient(). If rss is NULL, it is computed from the sums, which loses digits if it is almost 0. */
SEXP ffi_objective(SEXP objective, SEXP points, SEXP sums, SEXP rss)
{
    struct evaluation e =
        arg_evaluation(objective, points, R_NilValue, 1, R_NilValue, R_NilValue);
    const size_t MM = (size_t)e.z.M * e.z.M;
    double value, slope = 0.0;
    e.stats = arg_sums(sums, e.z.M, panel_columns(&e.panel));
    SEXP result = PROTECT(pack(NULL));
    double *adjoint = pack_vector(result, "adjoint", (int)evaluation_adjoint_size(&e));
    enum status status = evaluation_begin(&e);
    if (e.panel.aux != NULL && e.panel.aux->p)
        copy(MM, list_vector(sums, "AKA", MM), e.W0);
    if (status == STATUS_OK && (status = e.objective->factor(&e)) == STATUS_OK) {
        copy(evaluation_adjoint_size(&e), e.adjoint_memory, adjoint);
        value = e.objective->value(
            &e, rss == R_NilValue ? evaluation_rss_of_sums(&e) : arg_number(rss, "rss"),
            &slope);
    }
    pack_value(result, status, "value", &value);
    pack_number(result, "noise", slope);
    return packed(result);
}

/* Returns list(status, gradient, theta, rss) for a part of the rows, from the `adjoint` of ffi_objective(). Results of
 * parts add up. In one call, k_sum is sum w k(x, x) over all rows with weights w, and the part of the gradient from
 * k(Z, Z) is added. In other calls, k_sum is NULL. */
SEXP ffi_gradient(SEXP objective, SEXP points, SEXP rows, SEXP adjoint, SEXP k_sum,
                  SEXP control)
{
    struct evaluation e = arg_evaluation(objective, points, rows, 1, control, R_NilValue);
    const double *vector = arg_vector(adjoint, "adjoint", evaluation_adjoint_size(&e));
    const enum status status = evaluation_begin(&e);
    copy(evaluation_adjoint_size(&e), vector, e.adjoint_memory);
    SEXP result = PROTECT(pack(NULL));
    if (status == STATUS_OK) {
        evaluation_gradient(&e);
        pack_number(result, "rss", evaluation_rss(&e));
        if (k_sum != R_NilValue)
            evaluation_points(&e, arg_number(k_sum, "k_sum"));
    }
    pack_gradient(result, &e, status);
    pack_status(result, status);
    return packed(result);
}
