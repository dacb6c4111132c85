#include <math.h>
#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"

/* ---- the posterior from the rows ------------------------------------------------------------ */

struct summing_slot {
    double *K, *work, *scale, rss, log_weights;
    struct stats stats;
};

struct summing {
    struct plan plan;
    struct rows rows;
    struct inducing z;
    const double *beta;
    int fitc;
    double s2;
    struct summing_slot *slot;
};

static void summing_kernels(void *context, int b, int slot)
{
    struct summing *c = context;
    const struct inducing *z = &c->z;
    const struct block block = plan_block(&c->plan, &c->rows, b);
    kernel_cross(z->kernel, z->M, z->Z, z->M, block.n, block.X, block.ldx,
                 c->slot[slot].K);
}

/* A in the place of K.  FITC gives row n the noise s2 / w_n + E_nn: a weight of
 * w_n s2 / (s2 + w_n E_nn), whose root becomes the block's scale */
static void whiten(struct summing *c, struct summing_slot *s, struct block *block)
{
    const int M = c->z.M;
    if (!c->fitc) {
        inducing_whiten(&c->z, block->n, block->scale, s->K, s->K);
        return;
    }
    inducing_whiten(&c->z, block->n, NULL, s->K, s->K);
    kernel_diagonal(c->z.kernel, block->n, block->X, block->ldx, s->scale);
    for (int i = 0; i < block->n; i++) {
        const double w = block->scale == NULL ? 1.0 : block->scale[i] * block->scale[i];
        const double left = s->scale[i] - sum_squares((size_t)M, s->K + (size_t)i * M);
        s->scale[i] = sqrt(w * c->s2 / (c->s2 + w * (left > 0.0 ? left : 0.0)));
    }
    block->scale = s->scale;
    scale_columns(M, block->n, s->scale, s->K);
}

static void summing_sums(void *context, int b, int slot)
{
    struct summing *c = context;
    struct summing_slot *s = c->slot + slot;
    struct block block = plan_block(&c->plan, &c->rows, b);
    whiten(c, s, &block);
    if (block.scale != NULL)
        for (int i = 0; i < block.n; i++)
            s->log_weights += 2.0 * log(block.scale[i]);
    stats_add(c->z.kernel, &block, s->K, NULL, s->work, &s->stats);
}

static void summing_residuals(void *context, int b, int slot)
{
    struct summing *c = context;
    struct summing_slot *s = c->slot + slot;
    struct block block = plan_block(&c->plan, &c->rows, b);
    whiten(c, s, &block);
    block_response(&block, s->work);
    posterior_residual(c->z.M, block.n, s->K, c->beta, s->work, s->work);
    s->rss += sum_squares((size_t)block.n, s->work);
}

SEXP ffi_posterior(SEXP kernel, SEXP z, SEXP x, SEXP y, SEXP scale, SEXP s2_,
                   SEXP jitter_, SEXP most_jitter, SEXP fitc, SEXP control)
{
    static const char *const names[] = {"status", "jitter", "L",     "G",
                                        "Ay",     "yy",     "k_sum", "t",
                                        "C",      "beta",   "rss",   "log_weights"};
    const struct step sums[] = {{summing_kernels, 0}, {summing_sums, 1}};
    const struct step residuals[] = {{summing_kernels, 0}, {summing_residuals, 1}};
    const struct kernel k = arg_kernel(kernel);
    const double s2 = arg_number(s2_, "s2");
    double jitter = arg_number(jitter_, "jitter"), rss = 0.0, log_weights = 0.0;
    struct summing c;
    c.fitc = arg_integer(fitc, "fitc");
    c.s2 = s2;
    c.z.kernel = &k;
    c.z.Z = arg_inputs(&k, z, "z", &c.z.M, &c.z.columns);
    c.rows.X = arg_inputs(&k, x, "x", &c.rows.N, &c.rows.columns);
    c.rows.y = arg_vector(y, "y", (size_t)c.rows.N);
    c.rows.scale = arg_vector_or_null(scale, "scale", (size_t)c.rows.N);
    c.plan = plan_blocks(control, c.rows.N);
    const int M = c.z.M;
    const size_t n = (size_t)c.plan.block;

    SEXP result = PROTECT(new_list(12, names));
    SET_VECTOR_ELT(result, 2, Rf_allocMatrix(REALSXP, M, M));
    SET_VECTOR_ELT(result, 3, Rf_allocMatrix(REALSXP, M, M));
    SET_VECTOR_ELT(result, 4, Rf_allocVector(REALSXP, M));
    SET_VECTOR_ELT(result, 8, Rf_allocMatrix(REALSXP, M, M));
    SET_VECTOR_ELT(result, 9, Rf_allocVector(REALSXP, M));
    double *L = REAL(VECTOR_ELT(result, 2)), *C = REAL(VECTOR_ELT(result, 8)),
           *beta = REAL(VECTOR_ELT(result, 9)), *small;
    c.slot = (struct summing_slot *)R_alloc((size_t)c.plan.threads, sizeof *c.slot);
    for (int i = 0; i < c.plan.threads; i++) {
        struct summing_slot *s = c.slot + i;
        s->K = (double *)R_alloc((size_t)M * n, sizeof(double));
        s->work = (double *)R_alloc(2 * n, sizeof(double));
        stats_init(M, 0, (double *)R_alloc(stats_size(M, 0), sizeof(double)), &s->stats);
        s->scale = (double *)R_alloc(n, sizeof(double));
        s->rss = s->log_weights = 0.0;
    }
    small = (double *)R_alloc((size_t)M, sizeof(double));

    struct stats *s = &c.slot[0].stats;
    enum status status = inducing_ladder(
        &k, M, c.z.Z, arg_number(most_jitter, "most_jitter"), small, &jitter, L);
    c.z.jitter = jitter;
    c.z.L = L;
    if (status == STATUS_OK) {
        run_blocks(&c.plan, 2, sums, &c);
        for (int i = 1; i < c.plan.threads; i++)
            stats_merge(&c.slot[i].stats, s);
        for (int i = 0; i < c.plan.threads; i++)
            log_weights += c.slot[i].log_weights;
        status = stats_finish(s);
    }
    if (status == STATUS_OK)
        status = posterior_factor(s, s2, C, beta);
    if (status == STATUS_OK) {
        c.beta = beta;
        run_blocks(&c.plan, 2, residuals, &c);
        for (int i = 0; i < c.plan.threads; i++)
            rss += c.slot[i].rss;
    }
    copy((size_t)M * M, s->G, REAL(VECTOR_ELT(result, 3)));
    copy((size_t)M, s->Ay, REAL(VECTOR_ELT(result, 4)));
    SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
    SET_VECTOR_ELT(result, 1, Rf_ScalarReal(jitter));
    SET_VECTOR_ELT(result, 5, Rf_ScalarReal(s->yy));
    SET_VECTOR_ELT(result, 6, Rf_ScalarReal(s->k_sum));
    SET_VECTOR_ELT(result, 7, Rf_ScalarReal(s->t > 0.0 ? s->t : 0.0));
    SET_VECTOR_ELT(result, 10, Rf_ScalarReal(rss));
    SET_VECTOR_ELT(result, 11, Rf_ScalarReal(log_weights));
    UNPROTECT(1);
    return result;
}

/* ---- new rows --------------------------------------------------------------------------------- */

struct predicting {
    struct plan plan;
    struct rows rows;
    struct posterior posterior;
    double **K, *mean, *sor_variance, *unexplained;
};

static void predicting_kernels(void *context, int b, int slot)
{
    struct predicting *p = context;
    const struct inducing *z = &p->posterior.z;
    const struct block block = plan_block(&p->plan, &p->rows, b);
    kernel_cross(z->kernel, z->M, z->Z, z->M, block.n, block.X, block.ldx, p->K[slot]);
}

static void predicting_rows(void *context, int b, int slot)
{
    struct predicting *p = context;
    const size_t start = (size_t)b * p->plan.block;
    const struct block block = plan_block(&p->plan, &p->rows, b);
    posterior_rows(&p->posterior, block.n, block.X, block.ldx, p->K[slot],
                   p->mean + start, p->sor_variance + start, p->unexplained + start);
}

SEXP ffi_predict(SEXP kernel, SEXP z, SEXP L, SEXP C, SEXP beta, SEXP s2, SEXP x,
                 SEXP control)
{
    static const char *const names[] = {"mean", "sor_variance", "unexplained"};
    const struct step steps[] = {{predicting_kernels, 0}, {predicting_rows, 1}};
    const struct kernel k = arg_kernel(kernel);
    struct predicting p;
    p.posterior = arg_posterior(&k, z, L, C, s2);
    p.posterior.beta = arg_vector(beta, "beta", (size_t)p.posterior.z.M);
    p.rows.X = arg_inputs(&k, x, "x", &p.rows.N, &p.rows.columns);
    p.rows.y = p.rows.scale = NULL;
    p.plan = plan_blocks(control, p.rows.N);
    p.K = (double **)R_alloc((size_t)p.plan.threads, sizeof *p.K);
    for (int i = 0; i < p.plan.threads; i++) {
        p.K[i] =
            (double *)R_alloc((size_t)p.posterior.z.M * p.plan.block, sizeof(double));
    }
    SEXP result = PROTECT(new_list(3, names));
    for (int i = 0; i < 3; i++)
        SET_VECTOR_ELT(result, i, Rf_allocVector(REALSXP, p.rows.N));
    p.mean = REAL(VECTOR_ELT(result, 0));
    p.sor_variance = REAL(VECTOR_ELT(result, 1));
    p.unexplained = REAL(VECTOR_ELT(result, 2));
    run_blocks(&p.plan, 2, steps, &p);
    UNPROTECT(1);
    return result;
}

SEXP ffi_covariance(SEXP kernel, SEXP z, SEXP L, SEXP C, SEXP s2, SEXP x, SEXP sor)
{
    const struct kernel k = arg_kernel(kernel);
    const struct posterior p = arg_posterior(&k, z, L, C, s2);
    int n, columns;
    const double *X = arg_inputs(&k, x, "x", &n, &columns);
    double *Ka = (double *)R_alloc((size_t)p.z.M * n, sizeof(double));
    SEXP covariance = PROTECT(Rf_allocMatrix(REALSXP, n, n));
    kernel_cross(&k, p.z.M, p.z.Z, p.z.M, n, X, n, Ka);
    posterior_covariance(&p, n, X, n, arg_integer(sor, "sor"), Ka, REAL(covariance));
    UNPROTECT(1);
    return covariance;
}
