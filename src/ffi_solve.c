#include <math.h>
#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"
#include "pairs.h"

/*
 * What solving (K + s2 I) w = y by conjugate gradients takes: products with K, streamed over
 * pairs of row blocks, and with B^{-1} = (A'A + s2 I)^{-1}, the preconditioner.
 */

/* ---- K v ------------------------------------------------------------------------------------ */

struct product {
    struct plan plan;
    struct rows rows, new_rows; /* new_rows: of ffi_kernel_sum        */
    const struct kernel *k;
    const double *v;
    double **K, **sum; /* a slot's pair of blocks; its share of K v   */
};

/* a block with itself and with those before it */
static void product_pairs(void *context, int b, int slot)
{
    struct product *c = context;
    const struct block own = plan_block(&c->plan, &c->rows, b);
    const size_t start = (size_t)b * c->plan.block;
    double *sum = c->sum[slot];
    pairs_add(c->k, &own, &own, 1, c->v + start, c->K[slot], sum + start);
    for (int j = 0; j < b; j++) {
        const struct block other = plan_block(&c->plan, &c->rows, j);
        const size_t from = (size_t)j * c->plan.block;
        pairs_add_both(c->k, &own, &other, c->v + start, c->v + from, c->K[slot],
                       sum + start, sum + from);
    }
}

static void make_product_slots(struct product *c, size_t length)
{
    const size_t n = (size_t)c->plan.block;
    c->K = (double **)R_alloc((size_t)c->plan.threads, sizeof *c->K);
    c->sum = (double **)R_alloc((size_t)c->plan.threads, sizeof *c->sum);
    for (int i = 0; i < c->plan.threads; i++) {
        c->K[i] = (double *)R_alloc(n * n, sizeof(double));
        c->sum[i] = (double *)R_alloc(length, sizeof(double));
        fill(length, 0.0, c->sum[i]);
    }
}

SEXP ffi_kernel_product(SEXP kernel, SEXP x, SEXP scale, SEXP v, SEXP control)
{
    const struct step steps[] = {{product_pairs, 1}};
    const struct kernel k = arg_kernel(kernel);
    struct product c;
    c.k = &k;
    c.rows.X = arg_inputs(&k, x, "x", &c.rows.N, &c.rows.columns);
    const size_t N = (size_t)c.rows.N;
    c.rows.y = NULL;
    c.rows.scale = arg_vector_or_null(scale, "scale", N);
    c.v = arg_vector(v, "v", N);
    c.plan = arg_plan(control, c.rows.N);
    make_product_slots(&c, N);
    run_blocks(&c.plan, 1, steps, &c);
    SEXP result = PROTECT(Rf_allocVector(REALSXP, c.rows.N));
    fill(N, 0.0, REAL(result));
    for (int i = 0; i < c.plan.threads; i++)
        add_scaled(N, 1.0, c.sum[i], REAL(result));
    UNPROTECT(1);
    return result;
}

/* a block of new rows with all rows of the data */
static void sum_rows(void *context, int b, int slot)
{
    struct product *c = context;
    const struct block own = plan_block(&c->plan, &c->new_rows, b);
    double *sum = c->sum[0] + (size_t)b * c->plan.block;
    struct plan data = c->plan;
    data.N = c->rows.N;
    for (int start = 0, j = 0; start < c->rows.N; start += c->plan.block, j++) {
        const struct block other = plan_block(&data, &c->rows, j);
        pairs_add(c->k, &own, &other, 1, c->v + start, c->K[slot], sum);
    }
}

SEXP ffi_kernel_sum(SEXP kernel, SEXP x, SEXP u, SEXP x_new, SEXP control)
{
    const struct step steps[] = {{sum_rows, 1}};
    const struct kernel k = arg_kernel(kernel);
    struct product c;
    c.k = &k;
    c.rows.X = arg_inputs(&k, x, "x", &c.rows.N, &c.rows.columns);
    c.new_rows.X = arg_inputs(&k, x_new, "x_new", &c.new_rows.N, &c.new_rows.columns);
    c.rows.y = c.rows.scale = c.new_rows.y = c.new_rows.scale = NULL;
    c.v = arg_vector(u, "u", (size_t)c.rows.N);
    c.plan = arg_plan(control, c.new_rows.N);
    make_product_slots(&c, 0);
    SEXP result = PROTECT(Rf_allocVector(REALSXP, c.new_rows.N));
    c.sum[0] = REAL(result);
    fill((size_t)c.new_rows.N, 0.0, c.sum[0]);
    run_blocks(&c.plan, 1, steps, &c);
    UNPROTECT(1);
    return result;
}

/* ---- A y, beta = (s2 I + G)^{-1} A y, v = (y - A'beta) / s2 --------------------------------- */

struct response_slot {
    double *K, *ys, *Ay, yy, rss;
};

struct response {
    struct plan plan;
    struct rows rows;
    struct posterior posterior;
    int whiten;
    double *beta, *v; /* whiten = 0: L^{-T} beta in the place of beta */
    struct response_slot *slot;
};

static void response_kernels(void *context, int b, int slot)
{
    struct response *c = context;
    const struct inducing *z = &c->posterior.z;
    const struct block block = plan_block(&c->plan, &c->rows, b);
    double *K = c->slot[slot].K;
    kernel_cross(z->kernel, z->M, z->Z, z->M, block.n, block.X, block.ldx, K);
}

static struct block response_block(struct response *c, struct response_slot *s, int b)
{
    const struct block block = plan_block(&c->plan, &c->rows, b);
    if (c->whiten)
        inducing_whiten(&c->posterior.z, block.n, block.scale, s->K, s->K);
    else
        scale_columns(c->posterior.z.M, block.n, block.scale, s->K);
    block_response(&block, s->ys);
    return block;
}

static void response_sums(void *context, int b, int slot)
{
    struct response *c = context;
    struct response_slot *s = c->slot + slot;
    const struct block block = response_block(c, s, b);
    mult_Ax(c->posterior.z.M, block.n, 1.0, s->K, s->ys, 1.0, s->Ay);
    s->yy += sum_squares((size_t)block.n, s->ys);
}

static void response_residuals(void *context, int b, int slot)
{
    struct response *c = context;
    struct response_slot *s = c->slot + slot;
    const struct block block = response_block(c, s, b);
    double *v = c->v + (size_t)b * c->plan.block;
    posterior_residual(c->posterior.z.M, block.n, s->K, c->beta, s->ys, v);
    s->rss += sum_squares((size_t)block.n, v);
    for (int i = 0; i < block.n; i++)
        v[i] /= c->posterior.s2;
}

SEXP ffi_response(SEXP kernel, SEXP z, SEXP L, SEXP C, SEXP s2, SEXP x, SEXP y,
                  SEXP scale, SEXP whiten, SEXP control)
{
    static const char *const names[] = {"Ay", "beta", "yy", "rss", "v"};
    const struct step sums[] = {{response_kernels, 0}, {response_sums, 1}};
    const struct step residuals[] = {{response_kernels, 0}, {response_residuals, 1}};
    const struct kernel k = arg_kernel(kernel);
    struct response c;
    struct posterior *p = &c.posterior;
    *p = old_posterior(&k, z, L, C, s2);
    const int M = p->z.M;
    c.whiten = arg_integer(whiten, "whiten");
    c.rows.X = arg_inputs(&k, x, "x", &c.rows.N, &c.rows.columns);
    c.rows.y = arg_vector(y, "y", (size_t)c.rows.N);
    c.rows.scale = arg_vector_or_null(scale, "scale", (size_t)c.rows.N);
    c.plan = arg_plan(control, c.rows.N);

    SEXP result = PROTECT(new_list(5, names));
    SET_VECTOR_ELT(result, 0, Rf_allocVector(REALSXP, M));
    SET_VECTOR_ELT(result, 1, Rf_allocVector(REALSXP, M));
    SET_VECTOR_ELT(result, 4, Rf_allocVector(REALSXP, c.rows.N));
    double *Ay = REAL(VECTOR_ELT(result, 0)), *beta = REAL(VECTOR_ELT(result, 1)),
           yy = 0.0, rss = 0.0;
    c.v = REAL(VECTOR_ELT(result, 4));
    c.slot = (struct response_slot *)R_alloc((size_t)c.plan.threads, sizeof *c.slot);
    for (int i = 0; i < c.plan.threads; i++) {
        struct response_slot *s = c.slot + i;
        s->K = (double *)R_alloc((size_t)M * c.plan.block, sizeof(double));
        s->ys = (double *)R_alloc((size_t)c.plan.block, sizeof(double));
        s->Ay = (double *)R_alloc((size_t)M, sizeof(double));
        s->yy = s->rss = 0.0;
        fill((size_t)M, 0.0, s->Ay);
    }
    run_blocks(&c.plan, 2, sums, &c);
    fill((size_t)M, 0.0, Ay);
    for (int i = 0; i < c.plan.threads; i++) {
        add_scaled((size_t)M, 1.0, c.slot[i].Ay, Ay);
        yy += c.slot[i].yy;
    }
    if (!c.whiten)
        solve_lower(M, 1, p->z.L, Ay);
    copy((size_t)M, Ay, beta);
    solve_chol(M, 1, p->C, beta);
    c.beta = beta;
    if (!c.whiten) { /* A'beta = k(X, Z) L^{-T} beta */
        c.beta = (double *)R_alloc((size_t)M, sizeof(double));
        copy((size_t)M, beta, c.beta);
        solve_lower_t(M, 1, p->z.L, c.beta);
    }
    run_blocks(&c.plan, 2, residuals, &c);
    for (int i = 0; i < c.plan.threads; i++)
        rss += c.slot[i].rss;
    SET_VECTOR_ELT(result, 2, Rf_ScalarReal(yy));
    SET_VECTOR_ELT(result, 3, Rf_ScalarReal(rss));
    UNPROTECT(1);
    return result;
}

/* ---- decorrelated rows: F v and F'v --------------------------------------------------------- */

SEXP ffi_decorrelate(SEXP u_, SEXP d_, SEXP rows_, SEXP v_, SEXP transpose)
{
    int s, N;
    const double *u = arg_matrix(u_, "u", &s, &N), *d = arg_vector(d_, "d", (size_t)N),
                 *v = arg_vector(v_, "v", (size_t)N);
    if (TYPEOF(rows_) != INTSXP || XLENGTH(rows_) != (R_xlen_t)s * N)
        Rf_error("internal: `rows` must be an integer for every element of `u`");
    const int *rows = INTEGER_RO(rows_), back = arg_integer(transpose, "transpose");
    SEXP result = PROTECT(Rf_allocVector(REALSXP, N));
    double *out = REAL(result);
    fill((size_t)N, 0.0, out);
    for (int i = 0; i < N; i++) {
        const size_t at = (size_t)s * i;
        const double own = v[i] / sqrt(d[i]);
        double sum = 0.0;
        for (int j = 0; j < s && rows[at + j] > 0; j++) {
            if (rows[at + j] > N)
                Rf_error("internal: `rows` must be at most %d", N);
            if (back)
                out[rows[at + j] - 1] -= u[at + j] * own;
            else
                sum += u[at + j] * v[rows[at + j] - 1];
        }
        out[i] += own - sum / sqrt(d[i]);
    }
    UNPROTECT(1);
    return result;
}
