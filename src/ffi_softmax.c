#include "ffi.h"
#include "linalg.h"
#include "softmax.h"

static void arg_classes(SEXP list, int N, struct softmax *l)
{
    int K, q;
    l->contrasts = arg_matrix(list_get(list, "contrasts"), "contrasts", &K, &q);
    if (K < 2 || q != K - 1)
        Rf_error("internal: `contrasts` must be K x (K - 1)");
    l->K = K;
    l->q = q;
    l->center = arg_vector(list_get(list, "center"), "center", (size_t)K);
    l->y = arg_vector(list_get(list, "y"), "y", (size_t)N);
    l->weight = arg_vector_or_null(list_get(list, "weight"), "weight", (size_t)N);
    for (int i = 0; i < N; i++)
        if (!(l->y[i] >= 0.0 && l->y[i] < K))
            Rf_error("internal: no such class");
}

static SEXP pack_softmax(struct softmax *l, int N, int want)
{
    const int M = l->z.M, q = l->q;
    SEXP result =
        PROTECT(pack("status", "jitter", "L", "C", "beta", "residual", "evidence",
                     "penalty", "decrement", "steps", "probability", "left", "S",
                     "inverse", "slopes", "shift", "theta", "constant", NULL));
    l->C = pack_matrix(result, "C", M * q, M * q);
    l->u = pack_matrix(result, "beta", M, q);
    l->r = pack_matrix(result, "residual", M, q);
    l->p = pack_matrix(result, "probability", N, l->K);
    if (want > 0) {
        l->left = pack_vector(result, "left", N);
        l->S = pack_matrix(result, "S", N, q * q);
        l->inverse = pack_matrix(result, "inverse", M, M * pair_of(q, 0));
        l->s = pack_matrix(result, "slopes", q, N);
    }
    UNPROTECT(1);
    return result;
}

/* the evidence, penalised and with its gradient where wanted */
static void evidence(struct softmax *l, int want, SEXP result)
{
    pack_number(result, "evidence", softmax_evidence(l));
    if (want == 0)
        return;
    double *zeta = pack_matrix(result, "shift", l->z.M, l->q);
    softmax_penalty(l, zeta);
    pack_number(result, "penalty", l->penalty);
    if (want > 1)
        softmax_gradient(l, zeta,
                         pack_vector(result, "theta", l->z.model->kernel->n_theta),
                         pack_vector(result, "constant", l->K));
}

/* Computes L with the smallest jitter that works, then the mode from `start`. */
static enum status fit(struct model *model, struct softmax *l, SEXP start, SEXP stop,
                       double *L)
{
    const size_t dim = (size_t)l->z.M * l->q;
    const enum status status =
        inducing_ladder(model, &l->z, list_number(stop, "most_jitter"), L);
    const int maxit = arg_integer(list_get(stop, "maxit"), "maxit");
    SEXP u = list_get(start, "beta"), C = list_get(start, "C");
    if (status != STATUS_OK)
        return status;
    if (u == R_NilValue)
        fill(dim, 0.0, l->u);
    else
        copy(dim, arg_vector(u, "start", dim), l->u);
    if (C != R_NilValue && maxit > 0) {
        copy(dim * dim, arg_vector(C, "start", dim * dim), l->C);
        l->factor = FACTOR_EARLIER;
    }
    softmax_open(l);
    return softmax_mode(l, list_number(stop, "enough"), maxit);
}

SEXP ffi_softmax(SEXP points, SEXP x, SEXP sites, SEXP start, SEXP stop, SEXP want_,
                 SEXP control)
{
    struct model *model = arg_model(points);
    const int want = arg_integer(want_, "want");
    struct softmax l = {.z = arg_points(model, points)};
    struct pass pass = pass_over(arg_new_rows(model, x), &l.z, control);
    const int N = pass.rows->N;
    pass.again = 1;
    pass.wants_K = want > 1;
    l.pass = &pass;
    arg_classes(sites, N, &l);
    SEXP result = PROTECT(pack_softmax(&l, N, want));
    const enum status status =
        fit(model, &l, start, stop, pack_matrix(result, "L", l.z.M, l.z.M));
    if (status == STATUS_OK)
        evidence(&l, want, result);
    pack_status(result, status);
    pack_number(result, "jitter", model->jitter);
    pack_number(result, "decrement", l.decrement);
    pack_number(result, "steps", l.steps);
    UNPROTECT(1);
    return result;
}

SEXP ffi_softmax_at(SEXP points, SEXP L, SEXP beta, SEXP inverse, SEXP x, SEXP control)
{
    struct model *model = arg_model(points);
    struct inducing z = arg_points(model, points);
    struct pass pass = pass_over(arg_new_rows(model, x), &z, control);
    const int N = pass.rows->N, M = z.M;
    int rows, columns, q = 1;
    z.L = arg_vector(L, "L", (size_t)M * M);
    struct softmax_at to = {.z = &z, .N = N};
    to.u = arg_matrix(beta, "beta", &rows, &to.n_u);
    if (rows != M)
        Rf_error("internal: `beta` must have a row for each point");
    to.inverse = arg_matrix(inverse, "inverse", &rows, &columns);
    while (pair_of(q, 0) * M < columns)
        q++;
    if (rows != M || pair_of(q, 0) * M != columns)
        Rf_error("internal: `inverse` must have a block for each pair of contrasts");
    to.q = q;
    SEXP result = PROTECT(pack("mean", "S", "left", NULL));
    to.mean = pack_matrix(result, "mean", N, to.n_u);
    to.S = pack_matrix(result, "S", N, q * q);
    to.left = pack_vector(result, "left", N);
    pass_run(&pass, softmax_at_sink(&to));
    UNPROTECT(1);
    return result;
}
