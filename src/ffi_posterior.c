#include "ffi.h"
#include "linalg.h"

/* sums of one pass over the rows, the first of `pass`; L made, with jitter up to `most` */
struct sums {
    struct model model;
    struct pass pass;
    struct inducing z;
    struct source rows;
    struct site site;
    struct stats stats;
};

static enum status sum_rows(struct sums *s, double most, double *L)
{
    const struct summing summing = {.kernel = s->z.model->kernel, .M = s->z.M};
    enum status status = inducing_ladder(&s->model, &s->z, most, room((size_t)s->z.M), L);
    double *sums = room(stats_size(s->z.M, 0));
    struct sink sink = stats_sink(&summing, s->pass.plan.block, sums);
    s->z.L = L;
    fill(stats_size(s->z.M, 0), 0.0, sums);
    if (status == STATUS_OK)
        run_pass(&s->pass, 1, &sink);
    const enum status finite = stats_finish(s->z.M, 0, sums, &s->stats);
    return status == STATUS_OK ? finite : status;
}

SEXP ffi_posterior(SEXP model_, SEXP z, SEXP rows, SEXP most_jitter, SEXP fitc,
                   SEXP control)
{
    struct sums s = {.model = arg_model(model_)};
    s.z = arg_points(&s.model, z);
    s.rows = arg_data(&s.model, rows);
    s.site = (struct site){site_fitc, s.model.s2};
    s.pass =
        (struct pass){.plan = arg_plan(control, s.rows.N), .rows = &s.rows, .again = 1};
    s.pass.z = &s.z;
    s.pass.site = arg_integer(fitc, "fitc") ? &s.site : NULL;
    const int M = s.z.M;
    SEXP result = PROTECT(pack("status", "jitter", "L", "G", "Ay", "yy", "k_sum", "t",
                               "C", "beta", "rss", "log_weights", NULL));
    double *beta = pack_vector(result, "beta", M), rss = 0.0;
    LAY_OUT(pass_open, &s.pass);
    enum status status = sum_rows(&s, arg_number(most_jitter, "most_jitter"),
                                  pack_matrix(result, "L", M, M));
    if (status == STATUS_OK)
        status =
            posterior_factor(&s.stats, s.model.s2, pack_matrix(result, "C", M, M), beta);
    if (status == STATUS_OK) {
        const struct residuals residuals = {.M = M, .beta = beta};
        const struct sink sink = residuals_sink(&residuals, s.pass.plan.block, &rss);
        run_pass(&s.pass, 1, &sink);
    }
    pack_sums(result, &s.stats);
    pack_status(result, status);
    pack_number(result, "jitter", s.model.jitter);
    pack_number(result, "rss", rss);
    UNPROTECT(1);
    return result;
}

SEXP ffi_posterior_of_sums(SEXP model_, SEXP z, SEXP sums)
{
    const struct model model = arg_model(model_);
    const struct inducing points = arg_points(&model, z);
    const int M = points.M;
    const struct stats stats = arg_sums(sums, M, 0);
    SEXP result = PROTECT(pack("status", "L", "C", "beta", NULL));
    double *beta = pack_vector(result, "beta", M);
    enum status status =
        inducing_factor(&points, room((size_t)M), pack_matrix(result, "L", M, M));
    if (status == STATUS_OK)
        status = posterior_factor(&stats, model.s2, pack_matrix(result, "C", M, M), beta);
    pack_status(result, status);
    UNPROTECT(1);
    return result;
}

SEXP ffi_predict(SEXP model_, SEXP z, SEXP posterior_, SEXP x, SEXP control)
{
    const struct model model = arg_model(model_);
    const struct posterior posterior = arg_posterior(&model, z, posterior_);
    const struct source rows = arg_new_rows(&model, x);
    struct pass pass = {
        .plan = arg_plan(control, rows.N), .rows = &rows, .z = &posterior.z};
    SEXP result = PROTECT(pack("mean", "sor_variance", "unexplained", NULL));
    const struct predicting to = {&posterior, pack_vector(result, "mean", rows.N),
                                  pack_vector(result, "sor_variance", rows.N),
                                  pack_vector(result, "unexplained", rows.N)};
    const struct sink sink = predicting_sink(&to, pass.plan.block);
    LAY_OUT(pass_open, &pass);
    run_pass(&pass, 1, &sink);
    UNPROTECT(1);
    return result;
}

SEXP ffi_covariance(SEXP model_, SEXP z, SEXP posterior_, SEXP x, SEXP sor)
{
    const struct model model = arg_model(model_);
    const struct posterior p = arg_posterior(&model, z, posterior_);
    const struct source rows = arg_new_rows(&model, x);
    const struct block block = source_block(&rows, 0, rows.N, NULL);
    SEXP covariance = PROTECT(Rf_allocMatrix(REALSXP, rows.N, rows.N));
    posterior_covariance(&p, &block, arg_integer(sor, "sor"),
                         room((size_t)p.z.M * rows.N), REAL(covariance));
    UNPROTECT(1);
    return covariance;
}
