#include <math.h>
#include "ffi.h"
#include "laplace.h"
#include "linalg.h"
#include "program.h"
#include "softmax.h"

/* Returns a pass over x that runs several times. If `want` is 2, it provides k(Z, x) of each block, for derivatives. */
static struct pass fitting_pass(SEXP x, const struct inducing *z, int want, SEXP control)
{
    struct pass pass = pass_at(x, z, control);
    pass.again = 1;
    pass.wants_K = want > 1;
    return pass;
}

static enum status factor_points(SEXP result, struct inducing *z, SEXP stop)
{
    return inducing_ladder(z, list_number(stop, "most_jitter"),
                           pack_matrix(result, "L", z->M, z->M));
}

static void start_at(SEXP start, size_t n, double *u)
{
    SEXP from = list_get(start, "beta");
    if (from == R_NilValue)
        fill(n, 0.0, u);
    else
        copy(n, arg_vector(from, "start", n), u);
}

static void pack_run(SEXP result, enum status status, const struct inducing *z,
                     const struct newton *mode)
{
    pack_status(result, status);
    pack_number(result, "jitter", z->jitter);
    pack_number(result, "decrement", mode->decrement);
    pack_number(result, "steps", mode->steps);
}

static struct sites arg_sites(SEXP list, int N)
{
    const size_t n = (size_t)N;
    struct sites s;
    s.response = response_named(arg_string(list_get(list, "name"), "name"));
    arg_check(s.response != NULL, "there is no such likelihood");
    s.y = arg_vector(list_get(list, "y"), "y", n);
    s.offset = arg_vector(list_get(list, "offset"), "offset", n);
    s.size = arg_vector_or_null(list_get(list, "size"), "size", n);
    s.weight = arg_vector_or_null(list_get(list, "weight"), "weight", n);
    const int shapes = s.response->shapes;
    SEXP shape = list_get(list, "shape");
    s.shape =
        arg_vector_or_null(shape, "shape", shapes < 0 ? (size_t)Rf_xlength(shape) : 2);
    arg_check((shapes != 0) == (s.shape != NULL),
              "`shape` is for some likelihoods alone");
    arg_check(shapes >= 0 || programs_valid(s.shape, (size_t)Rf_xlength(shape)),
              "`shape` must have valid programs");
    return s;
}

static SEXP pack_laplace(struct laplace *l, int N, int want)
{
    const int M = l->z.M;
    SEXP result = PROTECT(pack("left", "q", "p", "penalty", NULL));
    l->mode.C = pack_matrix(result, "C", M, M);
    l->G = pack_matrix(result, "G", M, M);
    l->mode.u = pack_vector(result, "beta", M);
    l->mode.r = pack_vector(result, "residual", M);
    l->f = pack_vector(result, "f", N);
    l->g = pack_vector(result, "g", N);
    l->W = pack_vector(result, "W", N);
    l->l3 = alloc_doubles((size_t)N);
    l->s = want > 0 ? pack_vector(result, "slopes", N) : alloc_doubles((size_t)N);
    l->left = want > 0 ? pack_vector(result, "left", N) : alloc_doubles((size_t)N);
    l->q = want > 0 ? pack_vector(result, "q", N) : alloc_doubles((size_t)N);
    l->p = want > 1 ? pack_vector(result, "p", N) : NULL;
    UNPROTECT(1);
    return result;
}

/* Returns an estimate of the quadrature error in the sum of expected log densities of a variational posterior, from the
 * estimates for rows in l->l3. Returns 0 for Laplace's approximation. */
static double quadrature(const struct laplace *l, int N)
{
    double sum = 0.0;
    for (int i = 0; i < N && l->variational; i++)
        sum += fabs(l->l3[i]);
    return sum;
}

/* Moves l->mode.u from `start` to the mode and, if l->variational, on to the variational posterior. A variational fit
 * whose `start` has G (G + I: precision of a nearby variational posterior) omits the mode. */
static enum status fit(struct laplace *l, SEXP start, SEXP stop)
{
    const size_t M = (size_t)l->z.M;
    const double enough = list_number(stop, "enough");
    const int variational = l->variational,
              maxit = arg_integer(list_get(stop, "maxit"), "maxit");
    SEXP G = list_get(start, "G");
    enum status status = STATUS_OK;
    laplace_open(l);
    start_at(start, M, l->mode.u);
    if (variational && G != R_NilValue) {
        copy(M * M, arg_vector(G, "start", M * M), l->G);
    } else {
        l->variational = 0;
        status = laplace_mode(l, enough, maxit);
        l->variational = variational;
    }
    return variational && status == STATUS_OK ? laplace_variational(l, enough, maxit)
                                              : status;
}

/* Adds the log marginal likelihood to `result`; if want > 0, also its penalty; if want > 1, also the gradient. */
static void evidence(struct laplace *l, int want, SEXP result)
{
    pack_number(result, "evidence",
                l->variational ? -l->mode.psi : newton_evidence(&l->mode));
    if (want == 0)
        return;
    l->zeta = pack_vector(result, "shift", l->z.M);
    pack_number(result, "penalty", laplace_penalty(l));
    if (want > 1)
        pack_number(result, "constant",
                    laplace_gradient(
                        l, pack_vector(result, "theta", l->z.model->kernel->n_theta)));
}

/* Computes Laplace's approximation, or the variational posterior if sites$variational.
 *   sites  list(name, y, size, weight, offset, shape, variational); size and weight are NULL if all are 1
 *   start  list(beta, G), each of which may be NULL;  stop: list(enough, maxit, most_jitter), see laplace_mode()
 *   want   0: the mode and its log marginal likelihood; 1: also the penalty; 2: also the gradient
 * Returns list(status, jitter, L, C, G, beta, residual, evidence, decrement, steps, f, g, W, quadrature): f = A'beta +
 * offset with the whitened A = L^{-1} k(Z, X), derivatives g and -W of log densities in f, G = A W A', C C' = I + G and
 * residual = beta - A g. `evidence` is the log marginal likelihood without constants of the likelihood, or the
 * variational lower bound, with an error of `quadrature`. want > 0 adds `penalty`; for rows with features a in A, the
 * residual prior variances `left`, q = a'(I + G)^{-1} a and slopes s, derivatives of evidence - penalty in f through W;
 * shift = (I + G)^{-1} A s. want = 2 adds p = a'shift and the gradient in log parameters and a constant in f. */
SEXP ffi_laplace(SEXP points, SEXP x, SEXP sites, SEXP start, SEXP stop, SEXP want_,
                 SEXP control)
{
    const int want = arg_integer(want_, "want");
    struct laplace l = {.z = arg_points(points)};
    struct pass pass = fitting_pass(x, &l.z, want, control);
    const int N = pass.rows->N;
    l.pass = &pass;
    l.sites = arg_sites(sites, N);
    l.variational = arg_integer(list_get(sites, "variational"), "variational");
    SEXP result = PROTECT(pack_laplace(&l, N, want));
    enum status status = factor_points(result, &l.z, stop);
    if (status == STATUS_OK && (status = fit(&l, start, stop)) == STATUS_OK)
        evidence(&l, want, result);
    for (int i = 0; i < N && status == STATUS_OK; i++)
        l.f[i] += l.sites.offset[i];
    pack_run(result, status, &l.z, &l.mode);
    pack_number(result, "quadrature", quadrature(&l, N));
    return packed(result);
}

/* Returns c'P_j c for each matrix P_j in P (rows) and row x of `x` (columns), with c = (C C')^{-1} L^{-1} k(Z, x) and
 * the posterior precision C C' of the whitened values L^{-1} f(Z). */
SEXP ffi_forms(SEXP posterior, SEXP P, SEXP x, SEXP control)
{
    const struct posterior *p = arg_posterior(posterior);
    struct pass pass = pass_at(x, &p->z, control);
    const int M = p->z.M, n_forms = (int)Rf_xlength(P);
    const size_t MM = (size_t)M * M;
    arg_check(TYPEOF(P) == VECSXP, "`P` must be a list");
    double *all = alloc_doubles(MM * n_forms);
    for (int k = 0; k < n_forms; k++)
        copy(MM, arg_vector(VECTOR_ELT(P, k), "P", MM), all + k * MM);
    SEXP value = PROTECT(Rf_allocMatrix(REALSXP, n_forms, pass.rows->N));
    const struct forms forms = {M, n_forms, p->C, all, REAL(value)};
    pass_run(&pass, forms_sink(&forms));
    UNPROTECT(1);
    return value;
}

/* Returns, for each row u of U, the log likelihood of the rows of x at f = a'u, where a is the whitened k(Z, x). */
SEXP ffi_paths(SEXP posterior, SEXP x, SEXP sites_, SEXP U, SEXP control)
{
    const struct posterior *p = arg_posterior(posterior);
    struct pass pass = pass_at(x, &p->z, control);
    const struct sites sites = arg_sites(sites_, pass.rows->N);
    int M, S;
    const double *u = arg_matrix(U, "U", &S, &M);
    arg_check(M == p->z.M, "`U` must have a column for each point");
    SEXP value = PROTECT(Rf_allocVector(REALSXP, S));
    const struct paths paths = {M, S, u, &sites, REAL(value)};
    pass_run(&pass, paths_sink(&paths));
    UNPROTECT(1);
    return value;
}

/* Returns for each row i the log density l at f[i] and its derivatives in f: l, l', -l'' and l''' (4 x length(f)). */
SEXP ffi_sites(SEXP sites_, SEXP f)
{
    const int N = (int)Rf_xlength(f);
    const struct sites sites = arg_sites(sites_, N);
    const double *at = arg_vector(f, "f", (size_t)N);
    SEXP value = PROTECT(Rf_allocMatrix(REALSXP, 4, N));
    for (int i = 0; i < N; i++) {
        const struct site_value v = sites_at(&sites, i, at[i] - sites.offset[i]);
        const double each[] = {v.l, v.g, v.W, v.l3};
        copy(4, each, REAL(value) + 4 * (size_t)i);
    }
    UNPROTECT(1);
    return value;
}

static void arg_classes(SEXP list, int N, struct softmax *l)
{
    int K, q;
    l->contrasts = arg_matrix(list_get(list, "contrasts"), "contrasts", &K, &q);
    arg_check(K > 1 && q == K - 1, "`contrasts` must be K x (K - 1)");
    l->K = K;
    l->q = q;
    l->center = arg_vector(list_get(list, "center"), "center", (size_t)K);
    l->y = arg_vector(list_get(list, "y"), "y", (size_t)N);
    l->weight = arg_vector_or_null(list_get(list, "weight"), "weight", (size_t)N);
    for (int i = 0; i < N; i++)
        arg_check(l->y[i] >= 0.0 && l->y[i] < K, "there is no such class");
}

static SEXP pack_softmax(struct softmax *l, int N, int want)
{
    const int M = l->z.M, q = l->q;
    SEXP result = PROTECT(pack("left", "penalty", NULL));
    l->mode.C = pack_matrix(result, "C", M * q, M * q);
    l->mode.u = pack_matrix(result, "beta", M, q);
    l->mode.r = pack_matrix(result, "residual", M, q);
    l->p = pack_matrix(result, "probability", l->K, N);
    if (want > 0) {
        l->at.left = pack_vector(result, "left", N);
        l->at.S = pack_matrix(result, "S", N, q * q);
        l->at.inverse = l->inverse = pack_matrix(result, "inverse", M, M * pair_of(q, 0));
        l->s = pack_matrix(result, "slopes", q, N);
    }
    UNPROTECT(1);
    return result;
}

/* Adds the log marginal likelihood to `result`; if want > 0, also its penalty; if want > 1, also the gradient. */
static void class_evidence(struct softmax *l, int want, SEXP result)
{
    pack_number(result, "evidence", newton_evidence(&l->mode));
    if (want == 0)
        return;
    l->zeta = pack_matrix(result, "shift", l->z.M, l->q);
    pack_number(result, "penalty", softmax_penalty(l));
    if (want > 1)
        softmax_gradient(l, pack_vector(result, "theta", l->z.model->kernel->n_theta),
                         pack_vector(result, "constant", l->K));
}

static enum status fit_classes(struct softmax *l, SEXP start, SEXP stop)
{
    const size_t dim = (size_t)l->z.M * l->q;
    const int maxit = arg_integer(list_get(stop, "maxit"), "maxit");
    SEXP C = list_get(start, "C");
    start_at(start, dim, l->mode.u);
    if (C != R_NilValue && maxit > 0) {
        copy(dim * dim, arg_vector(C, "start", dim * dim), l->mode.C);
        l->factor = FACTOR_EARLIER;
    }
    softmax_open(l);
    return softmax_mode(l, list_number(stop, "enough"), maxit);
}

/* Computes Laplace's approximation for K classes. sites is list(y, weight, center [K], contrasts [K x q]), where y
 * counts classes from 0. At the mode, f = contrasts beta'A + center, A = L^{-1} k(Z, X). Returns list(status, jitter,
 * L, C, beta, residual, evidence, decrement, steps, probability), with the gradient `residual` and the Cholesky factor
 * C of the Hessian H. want > 0 adds `penalty`, blocks of H^{-1} (inverse) and, for each row, residual prior variance
 * (left), the rest of the covariance of f (S) and derivatives of evidence - penalty in f through curvature (slopes);
 * shift = H^{-1} A slopes. want > 1 adds the derivatives in log parameters (theta) and constant means (constant). */
SEXP ffi_softmax(SEXP points, SEXP x, SEXP sites, SEXP start, SEXP stop, SEXP want_,
                 SEXP control)
{
    const int want = arg_integer(want_, "want");
    struct softmax l = {.z = arg_points(points)};
    struct pass pass = fitting_pass(x, &l.z, want, control);
    pass.beside = want > 1 ? l.z.M : 0;
    l.pass = &pass;
    arg_classes(sites, pass.rows->N, &l);
    SEXP result = PROTECT(pack_softmax(&l, pass.rows->N, want));
    enum status status = factor_points(result, &l.z, stop);
    if (status == STATUS_OK && (status = fit_classes(&l, start, stop)) == STATUS_OK)
        class_evidence(&l, want, result);
    pack_run(result, status, &l.z, &l.mode);
    return packed(result);
}

/* Returns list(mean, S, left) for the N rows of x: the means A'beta (N x ncol(beta)) for A = L^{-1} k(Z, x);
 * covariances of the q contrasts A'u (N x q^2), if `inverse` is the covariance of u; residual prior variances [N]. */
SEXP ffi_softmax_at(SEXP points, SEXP L, SEXP beta, SEXP inverse, SEXP x, SEXP control)
{
    struct inducing z = arg_points(points);
    struct pass pass = pass_at(x, &z, control);
    const int N = pass.rows->N, M = z.M;
    int rows, columns, q = 1;
    z.L = arg_vector(L, "L", (size_t)M * M);
    struct softmax_at to = {.z = &z, .N = N};
    to.u = arg_matrix(beta, "beta", &rows, &to.n_u);
    arg_check(rows == M, "`beta` must have a row for each point");
    to.inverse = arg_matrix(inverse, "inverse", &rows, &columns);
    while (pair_of(q, 0) * M < columns)
        q++;
    arg_check(rows == M && pair_of(q, 0) * M == columns,
              "`inverse` must have a block for each pair of contrasts");
    to.q = q;
    SEXP result = PROTECT(pack(NULL));
    to.mean = pack_matrix(result, "mean", N, to.n_u);
    to.S = pack_matrix(result, "S", N, q * q);
    to.left = pack_vector(result, "left", N);
    pass_run(&pass, softmax_at_sink(&to));
    return packed(result);
}
