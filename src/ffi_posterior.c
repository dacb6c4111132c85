#include "ffi.h"

/* Returns the site of that name, or none for R's NULL. */
static struct site arg_site(SEXP name, const struct model *model)
{
    struct site site = {NULL, model->s2};
    if (name != R_NilValue &&
        (site.working = site_named(arg_string(name, "site"))) == NULL)
        Rf_error("internal: no such site");
    return site;
}

/* Returns list(status, jitter, L, G, Ay, yy, k_sum, t, C, beta, rss, log_weights).  site is a name in noise.h or NULL.
 * log_weights is the sum of the logarithms of the weights that were used. */
SEXP ffi_posterior(SEXP points, SEXP rows, SEXP most_jitter, SEXP site_, SEXP control)
{
    struct dtc d = {.model = arg_model(points)};
    const struct site site = arg_site(site_, d.model);
    d.z = arg_points(d.model, points);
    d.pass = pass_over(arg_data(d.model, rows), &d.z, control);
    d.pass.site = site.working == NULL ? NULL : &site;
    SEXP result = PROTECT(pack("status", "jitter", "L", "G", "Ay", "yy", "k_sum", "t",
                               "C", "beta", "rss", "log_weights", NULL));
    pack_factors(result, d.z.M, &d.L, &d.C, &d.beta);
    pack_status(result, dtc_run(&d, arg_number(most_jitter, "most_jitter")));
    pack_sums(result, &d.stats);
    pack_number(result, "jitter", d.model->jitter);
    pack_number(result, "rss", d.rss);
    UNPROTECT(1);
    return result;
}

/* Returns list(status, L, C, beta) from the sums of all rows. */
SEXP ffi_posterior_of_sums(SEXP points_, SEXP sums)
{
    const struct model *model = arg_model(points_);
    struct inducing points = arg_points(model, points_);
    const struct stats stats = arg_sums(sums, points.M, 0);
    double *L, *C, *beta;
    SEXP result = PROTECT(pack("status", "L", "C", "beta", NULL));
    pack_factors(result, points.M, &L, &C, &beta);
    enum status status = inducing_factor(&points, L);
    if (status == STATUS_OK)
        status = posterior_factor(&stats, model->s2, C, beta);
    pack_status(result, status);
    UNPROTECT(1);
    return result;
}

/* Returns list(mean, sor_variance, unexplained) at the rows of x; unexplained = k(x, x) - q(x, x). */
SEXP ffi_predict(SEXP posterior, SEXP x, SEXP control)
{
    const struct posterior *p = arg_posterior(posterior);
    struct pass pass = pass_at(x, &p->z, control);
    const int n = pass.rows->N;
    SEXP result = PROTECT(pack("mean", "sor_variance", "unexplained", NULL));
    const struct predicting to = {p, pack_vector(result, "mean", n),
                                  pack_vector(result, "sor_variance", n),
                                  pack_vector(result, "unexplained", n)};
    pass_run(&pass, predicting_sink(&to));
    UNPROTECT(1);
    return result;
}

/* Returns the covariance of f at the rows of x: of SoR if `sor`, else of DTC. */
SEXP ffi_covariance(SEXP posterior, SEXP x, SEXP sor)
{
    const struct posterior *p = arg_posterior(posterior);
    const struct block b = source_whole(arg_new_rows(p->z.model, x));
    SEXP covariance = PROTECT(Rf_allocMatrix(REALSXP, b.n, b.n));
    posterior_covariance(p, &b, arg_integer(sor, "sor"), room((size_t)p->z.M * b.n),
                         REAL(covariance));
    UNPROTECT(1);
    return covariance;
}
