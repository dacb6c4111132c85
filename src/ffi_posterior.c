#include "ffi.h"
#include "linalg.h"

/* Returns list(status, jitter, L, G, Ay, yy, k_sum, t, C, beta, rss, log_weights). With L L' = k(Z, Z) and A = L^{-1}
 * k(Z, X), these are G = A A', Ay = A y, yy = y'y, k_sum = sum k(x, x), t = k_sum - tr G, C C' = s2 I + G, beta = (C
 * C')^{-1} A y, rss = |y - A'beta|^2 (a second pass; only if rss is 1), and the sum of log weights. If fitc is 1, FITC's
 * weights replace the weights. */
SEXP ffi_posterior(SEXP points, SEXP rows, SEXP most_jitter, SEXP fitc, SEXP rss,
                   SEXP control)
{
    struct evaluation e = {.z = arg_points(points),
                           .most_jitter = arg_number(most_jitter, "most_jitter"),
                           .objective = objective_named("vfe")};
    const size_t M = (size_t)e.z.M;
    const int with_rss = arg_integer(rss, "rss");
    double *L, *C, *beta;
    e.rows = *arg_data(e.z.model, rows);
    e.pass.plan = arg_plan(control, e.rows.N);
    e.pass.fitc = arg_integer(fitc, "fitc");
    SEXP result = PROTECT(pack(NULL));
    enum status status = evaluation_begin(&e);
    if (status == STATUS_OK)
        status = evaluation_sums(&e);
    if (status == STATUS_OK && (status = e.objective->factor(&e)) == STATUS_OK) {
        if (with_rss) {
            evaluation_gradient(&e); /* computes only rss */
            pack_number(result, "rss", evaluation_rss(&e));
        }
        pack_factors(result, e.z.M, &L, &C, &beta);
        copy(M * M, e.L, L);
        copy(M * M, e.C, C);
        copy(M, e.beta, beta);
        pack_sums(result, &e.stats);
    }
    pack_status(result, status);
    pack_number(result, "jitter", e.z.jitter);
    return packed(result);
}

/* Returns list(status, L, C, beta) from the sums G = A A' and A y over all rows, A = L^{-1} k(Z, X). L is the Cholesky
 * factor of k(Z, Z), C that of s2 I + G, and beta = (C C')^{-1} A y. */
SEXP ffi_posterior_of_sums(SEXP points_, SEXP sums)
{
    struct inducing points = arg_points(points_);
    const struct stats stats = arg_sums(sums, points.M, 0);
    double *L, *C, *beta;
    SEXP result = PROTECT(pack(NULL));
    pack_factors(result, points.M, &L, &C, &beta);
    enum status status = inducing_factor(&points, L);
    if (status == STATUS_OK)
        status = posterior_factor(&stats, points.model->s2, C, beta);
    pack_status(result, status);
    return packed(result);
}

/* Reads the Cholesky factors L (from `points`) and C of a posterior. Either may be NULL. */
static struct posterior arg_factors(SEXP points, SEXP C)
{
    struct posterior p = {.z = arg_points(points)};
    const size_t MM = (size_t)p.z.M * p.z.M;
    p.z.L = arg_vector_or_null(list_get(points, "L"), "L", MM);
    p.C = arg_vector_or_null(C, "C", MM);
    return p;
}

/* Returns list(mean, sor_variance, unexplained) at the rows of x; unexplained is the residual prior variance. An exact
 * posterior has C = NULL and no sor_variance. If L is NULL, only means are computed. */
SEXP ffi_predict(SEXP posterior, SEXP x, SEXP control)
{
    struct posterior p = arg_factors(posterior, list_get(posterior, "C"));
    struct pass pass = pass_at(x, &p.z, control);
    const int n = pass.rows->N;
    p.beta = list_vector(posterior, "beta", (size_t)p.z.M);
    pass.wants_K = p.C == NULL;
    SEXP result = PROTECT(pack(NULL));
    struct predicting to = {&p, pack_vector(result, "mean", n), NULL,
                            pack_vector(result, "unexplained", n)};
    if (p.C != NULL)
        to.sor_variance = pack_vector(result, "sor_variance", n);
    pass_run(&pass, predicting_sink(&to));
    return packed(result);
}

/* Returns the covariance of f at the rows of x, of SoR if `sor`, else of DTC. An exact posterior has C = NULL. */
SEXP ffi_covariance(SEXP points, SEXP C, SEXP x, SEXP sor)
{
    const struct posterior p = arg_factors(points, C);
    const struct block b = source_whole(arg_new_rows(p.z.model, x));
    SEXP covariance = PROTECT(Rf_allocMatrix(REALSXP, b.n, b.n));
    posterior_covariance(&p, &b, arg_integer(sor, "sor"),
                         alloc_doubles((size_t)p.z.M * b.n), REAL(covariance));
    UNPROTECT(1);
    return covariance;
}
