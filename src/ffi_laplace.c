#include <math.h>
#include "ffi.h"
#include "laplace.h"
#include "linalg.h"
#include "program.h"

static struct sites arg_sites(SEXP list, int N)
{
    const size_t n = (size_t)N;
    struct sites s;
    s.response = response_named(arg_string(list_get(list, "name"), "name"));
    if (s.response == NULL)
        Rf_error("internal: no such likelihood");
    s.y = arg_vector(list_get(list, "y"), "y", n);
    s.offset = arg_vector(list_get(list, "offset"), "offset", n);
    s.size = arg_vector_or_null(list_get(list, "size"), "size", n);
    s.weight = arg_vector_or_null(list_get(list, "weight"), "weight", n);
    const int shapes = s.response->shapes;
    SEXP shape = list_get(list, "shape");
    s.shape =
        arg_vector_or_null(shape, "shape", shapes < 0 ? (size_t)Rf_xlength(shape) : 2);
    if ((shapes != 0) != (s.shape != NULL))
        Rf_error("internal: `shape` is for likelihoods with shape parameters alone");
    if (shapes < 0 && !programs_valid(s.shape, (size_t)Rf_xlength(shape)))
        Rf_error("internal: `shape` has no valid programs");
    return s;
}

static SEXP pack_laplace(struct laplace *l, int N, int want)
{
    const int M = l->z.M;
    SEXP result =
        PROTECT(pack("status", "jitter", "L", "C", "G", "beta", "residual", "evidence",
                     "penalty", "decrement", "steps", "f", "g", "W", "left", "q", "p",
                     "theta", "constant", "quadrature", "slopes", "shift", NULL));
    l->C = pack_matrix(result, "C", M, M);
    l->G = pack_matrix(result, "G", M, M);
    l->u = pack_vector(result, "beta", M);
    l->r = pack_vector(result, "residual", M);
    l->f = pack_vector(result, "f", N);
    l->g = pack_vector(result, "g", N);
    l->W = pack_vector(result, "W", N);
    l->l3 = room((size_t)N);
    l->s = want > 0 ? pack_vector(result, "slopes", N) : room((size_t)N);
    l->left = want > 0 ? pack_vector(result, "left", N) : room((size_t)N);
    l->q = want > 0 ? pack_vector(result, "q", N) : room((size_t)N);
    l->p = want > 1 ? pack_vector(result, "p", N) : NULL;
    UNPROTECT(1);
    return result;
}

/* Moves to `start`, and returns 1 if it has a G. */
static int start_at(struct laplace *l, SEXP start)
{
    const size_t M = (size_t)l->z.M;
    SEXP u = list_get(start, "beta"), G = list_get(start, "G");
    if (u == R_NilValue)
        fill(M, 0.0, l->u);
    else
        copy(M, arg_vector(u, "start", M), l->u);
    if (!l->variational || G == R_NilValue)
        return 0;
    copy(M * M, arg_vector(G, "start", M * M), l->G);
    return 1;
}

/* how far the sums in the rows' averages may be off */
static double quadrature(const struct laplace *l, int N)
{
    double sum = 0.0;
    for (int i = 0; i < N && l->variational; i++)
        sum += fabs(l->l3[i]);
    return sum;
}

/* Finds the mode, then the variational posterior from the mode or from `start`. */
static enum status fit(struct laplace *l, SEXP start, double enough, int maxit)
{
    const int variational = l->variational, there = start_at(l, start);
    enum status status = STATUS_OK;
    if (!there) {
        l->variational = 0;
        status = laplace_mode(l, enough, maxit);
        l->variational = variational;
    }
    return variational && status == STATUS_OK ? laplace_variational(l, enough, maxit)
                                              : status;
}

/* the evidence, penalised and with its gradient where wanted, of a mode that is there */
static void evidence(struct laplace *l, int want, SEXP result)
{
    pack_number(result, "evidence", laplace_evidence(l));
    if (want == 0)
        return;
    double *zeta = pack_vector(result, "shift", l->z.M);
    laplace_penalty(l, zeta);
    pack_number(result, "penalty", l->penalty);
    if (want > 1)
        pack_number(
            result, "constant",
            laplace_gradient(l, zeta,
                             pack_vector(result, "theta", l->z.model->kernel->n_theta)));
}

/* Computes L with the smallest jitter that works, then the posterior from `start`. */
static enum status posterior(struct model *model, struct laplace *l, SEXP start,
                             SEXP stop, double *L)
{
    const enum status status =
        inducing_ladder(model, &l->z, list_number(stop, "most_jitter"), L);
    if (status != STATUS_OK)
        return status;
    laplace_open(l);
    return fit(l, start, list_number(stop, "enough"),
               arg_integer(list_get(stop, "maxit"), "maxit"));
}

SEXP ffi_laplace(SEXP points, SEXP x, SEXP sites, SEXP start, SEXP stop, SEXP want_,
                 SEXP control)
{
    struct model *model = arg_model(points);
    const int want = arg_integer(want_, "want");
    struct laplace l = {.z = arg_points(model, points)};
    struct pass pass = pass_over(arg_new_rows(model, x), &l.z, control);
    const int N = pass.rows->N;
    pass.again = 1;
    pass.wants_K = want > 1;
    l.pass = &pass;
    l.sites = arg_sites(sites, N);
    l.variational = arg_integer(list_get(sites, "variational"), "variational");
    SEXP result = PROTECT(pack_laplace(&l, N, want));
    const enum status status =
        posterior(model, &l, start, stop, pack_matrix(result, "L", l.z.M, l.z.M));
    if (status == STATUS_OK)
        evidence(&l, want, result);
    for (int i = 0; i < N && status == STATUS_OK; i++)
        l.f[i] += l.sites.offset[i];
    pack_status(result, status);
    pack_number(result, "jitter", model->jitter);
    pack_number(result, "decrement", l.decrement);
    pack_number(result, "steps", l.steps);
    pack_number(result, "quadrature", quadrature(&l, N));
    UNPROTECT(1);
    return result;
}

SEXP ffi_forms(SEXP posterior, SEXP P, SEXP x, SEXP control)
{
    const struct posterior *p = arg_posterior(posterior);
    struct pass pass = pass_over(arg_new_rows(p->z.model, x), &p->z, control);
    const int M = p->z.M, n_forms = (int)Rf_xlength(P);
    const size_t MM = (size_t)M * M;
    if (TYPEOF(P) != VECSXP)
        Rf_error("internal: `P` must be a list");
    double *all = room(MM * n_forms);
    for (int k = 0; k < n_forms; k++)
        copy(MM, arg_vector(VECTOR_ELT(P, k), "P", MM), all + k * MM);
    SEXP value = PROTECT(Rf_allocMatrix(REALSXP, n_forms, pass.rows->N));
    const struct forms forms = {M, n_forms, p->C, all, REAL(value)};
    pass_run(&pass, forms_sink(&forms));
    UNPROTECT(1);
    return value;
}

SEXP ffi_paths(SEXP posterior, SEXP x, SEXP sites_, SEXP U, SEXP control)
{
    const struct posterior *p = arg_posterior(posterior);
    struct pass pass = pass_over(arg_new_rows(p->z.model, x), &p->z, control);
    const struct sites sites = arg_sites(sites_, pass.rows->N);
    int M, S;
    const double *u = arg_matrix(U, "U", &S, &M);
    if (M != p->z.M)
        Rf_error("internal: `U` must have a column for each point");
    SEXP value = PROTECT(Rf_allocVector(REALSXP, S));
    const struct paths paths = {M, S, u, &sites, REAL(value)};
    pass_run(&pass, paths_sink(&paths));
    UNPROTECT(1);
    return value;
}

SEXP ffi_sites(SEXP sites_, SEXP f)
{
    const int N = (int)Rf_xlength(f);
    const struct sites sites = arg_sites(sites_, N);
    const double *at = arg_vector(f, "f", (size_t)N);
    SEXP value = PROTECT(Rf_allocMatrix(REALSXP, 4, N));
    double *out = REAL(value);
    for (int i = 0; i < N; i++) {
        const struct site_value v = sites_at(&sites, i, at[i] - sites.offset[i]);
        out[4 * (size_t)i] = v.l;
        out[4 * (size_t)i + 1] = v.g;
        out[4 * (size_t)i + 2] = v.W;
        out[4 * (size_t)i + 3] = v.l3;
    }
    UNPROTECT(1);
    return value;
}
