#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"
#include "pairs.h"
#include "pf.h"

/*
 * s2^2 d_pF^2 in terms that are small where the divergence is small, so that nothing cancels:
 *
 *   (I)          = sum_{n, m} (k^(x_n, x_m) + r_n r_m) E_nm,   r = mu^ - y,  E = K - A'A
 *   (II) + (III) = sum_j s_j |D^{-1} A (w_j - A't_j)|^2 + p tr(D^{-1} (A E A' - G J G) D^{-1})
 *
 * at the price of every pair of rows.
 */
struct pf_slot {
    double *A_b, *A_c, *R_b, *R_c, *R_signed, *K_u, *E, *moment, *AE, *work, *U, *V,
        *sums;
    double first; /* (I) */
    struct stats stats;
};

struct pf_loop {
    struct plan plan;
    struct rows rows;
    struct inducing z;
    const struct lowrank *nu;
    const double *T; /* M x q */
    int kept;        /* blocks whose A and R are kept */
    double *A, *R;
    struct pf_slot *slot;
};

/* A (M x n) = L^{-1} k(Z, X_b) and W (q x n) = W_x', scaled */
static void block_factors(const struct pf_loop *p, const struct block *b, double *K_u,
                          double *A, double *W)
{
    const struct inducing *z = &p->z;
    const struct lowrank *nu = p->nu;
    kernel_cross(z->kernel, z->M, z->Z, z->M, b->n, b->X, b->ldx, A);
    inducing_whiten(z, b->n, b->scale, A, A);
    kernel_cross(nu->kernel, nu->n_u, nu->U, nu->n_u, b->n, b->X, b->ldx, K_u);
    lowrank_rows(nu, b->n, b->scale, K_u, W);
}

/* R = W with y subtracted from the mean's row */
static void subtract_response(const struct block *b, int q, double *W)
{
    for (int i = 0; i < b->n; i++)
        W[(size_t)i * q + q - 1] -= (b->scale == NULL ? 1.0 : b->scale[i]) * b->y[i];
}

static void sums_block(void *context, int b, int slot)
{
    struct pf_loop *p = context;
    struct pf_slot *s = p->slot + slot;
    const int M = p->z.M, q = p->nu->q, keep = b < p->kept;
    const struct block block = plan_block(&p->plan, &p->rows, b);
    double *A = keep ? p->A + (size_t)b * M * p->plan.block : s->A_b;
    double *W = keep ? p->R + (size_t)b * q * p->plan.block : s->R_b, *left = s->R_c;
    block_factors(p, &block, s->K_u, A, W);
    stats_add(p->z.kernel, &block, A, NULL, s->work, &s->stats);
    copy((size_t)q * block.n, W, left); /* U += A (W_x - A'T) */
    mult_AtB(q, M, block.n, -1.0, p->T, A, 1.0, left);
    mult_ABt(M, block.n, q, 1.0, A, left, 1.0, s->U);
    subtract_response(&block, q, W);
}

static void find_factors(const struct pf_loop *p, int b, double *K_u, double *A_own,
                         double *R_own, const double **A, const double **R)
{
    const struct block block = plan_block(&p->plan, &p->rows, b);
    *A = A_own;
    *R = R_own;
    if (b < p->kept) {
        *A = p->A + (size_t)b * p->z.M * p->plan.block;
        *R = p->R + (size_t)b * p->nu->q * p->plan.block;
    } else {
        block_factors(p, &block, K_u, A_own, R_own);
        subtract_response(&block, p->nu->q, R_own);
    }
}

static void pairs_block(void *context, int b, int slot)
{
    struct pf_loop *p = context;
    struct pf_slot *s = p->slot + slot;
    const int M = p->z.M, q = p->nu->q;
    const struct block here = plan_block(&p->plan, &p->rows, b);
    const double *A_b, *R_b, *A_c, *R_c;
    find_factors(p, b, s->K_u, s->A_b, s->R_b, &A_b, &R_b);
    copy((size_t)q * here.n, R_b, s->R_signed);
    for (int i = 0; i < here.n; i++)
        for (int j = 0; j < q; j++)
            s->R_signed[(size_t)i * q + j] *= p->nu->sign[j];
    fill((size_t)M * here.n, 0.0, s->AE);
    for (int c = 0; c < p->plan.n_blocks; c++) {
        const struct block there = plan_block(&p->plan, &p->rows, c);
        const size_t size = (size_t)here.n * there.n;
        find_factors(p, c, s->K_u, s->A_c, s->R_c, &A_c, &R_c);
        pairs_unexplained(p->z.kernel, &here, &there, M, A_b, A_c, s->E);
        if (p->nu->p) { /* p K, K = E + A_c'A_b */
            copy(size, s->E, s->moment);
            mult_AtB(there.n, M, here.n, 1.0, A_c, A_b, 1.0, s->moment);
            mult_AB(M, there.n, here.n, 1.0, A_c, s->E, 1.0, s->AE);
        }
        mult_AtB(there.n, q, here.n, 1.0, R_c, s->R_signed, p->nu->p ? 1.0 : 0.0,
                 s->moment);
        s->first += dot(size, s->moment, s->E);
    }
    if (p->nu->p)
        mult_ABt(M, here.n, M, 1.0, s->AE, A_b, 1.0, s->V); /* A E A' */
}

static double *room(size_t n)
{
    return (double *)R_alloc(n > 0 ? n : 1, sizeof(double));
}

static void make_slots(struct pf_loop *p)
{
    const int M = p->z.M, q = p->nu->q;
    const size_t n = (size_t)p->plan.block, MM = (size_t)M * M;
    p->slot = (struct pf_slot *)R_alloc((size_t)p->plan.threads, sizeof *p->slot);
    for (int i = 0; i < p->plan.threads; i++) {
        struct pf_slot *s = p->slot + i;
        s->A_b = room(M * n);
        s->A_c = room(M * n);
        s->AE = room(M * n);
        s->R_b = room(q * n);
        s->R_c = room(q * n);
        s->R_signed = room(q * n);
        s->K_u = room(p->nu->n_u * n);
        s->E = room(n * n);
        s->moment = room(n * n);
        s->work = room(2 * n);
        s->U = room((size_t)M * q);
        s->V = room(MM);
        s->sums = room(stats_size(M, 0));
        stats_init(M, 0, s->sums, &s->stats);
        fill((size_t)M * q, 0.0, s->U);
        fill(MM, 0.0, s->V);
        s->first = 0.0;
    }
}

SEXP ffi_pf_divergence(SEXP kernel, SEXP z, SEXP x, SEXP y, SEXP scale, SEXP s2,
                       SEXP jitter, SEXP nu_, SEXP control)
{
    static const char *const names[] = {"status", "value"};
    const struct step sums[] = {{sums_block, 1}}, pairs[] = {{pairs_block, 1}};
    const struct kernel k = arg_kernel(kernel);
    const struct lowrank nu = arg_lowrank(nu_, &k);
    struct pf_loop p = {.nu = &nu};
    double value = R_PosInf;
    p.z.kernel = &k;
    p.z.Z = arg_inputs(&k, z, "z", &p.z.M, &p.z.columns);
    p.z.jitter = arg_number(jitter, "jitter");
    p.rows.X = arg_inputs(&k, x, "x", &p.rows.N, &p.rows.columns);
    p.rows.y = arg_vector(y, "y", (size_t)p.rows.N);
    p.rows.scale = arg_vector_or_null(scale, "scale", (size_t)p.rows.N);
    p.plan = plan_blocks(control, p.rows.N);
    const int M = p.z.M, q = nu.q;
    const size_t block = (size_t)p.plan.block,
                 fit = p.plan.memory / sizeof(double) / (((size_t)M + q) * block);
    p.kept = fit < (size_t)p.plan.n_blocks ? (int)fit : p.plan.n_blocks;
    p.A = room(p.kept * M * block);
    p.R = room(p.kept * q * block);
    make_slots(&p);
    double *L = room((size_t)M * M), *T = room((size_t)M * q);
    double *small = room(pf_size(M, q, nu.p) + (size_t)M + (size_t)M * nu.n_u);

    enum status status = inducing_factor(&k, M, p.z.Z, p.z.jitter, small, L);
    if (status == STATUS_OK) {
        struct pf_slot *s = p.slot;
        p.z.L = L;
        lowrank_points(&nu, M, p.z.Z, small, T); /* T = L^{-1} W_m */
        solve_lower(M, q, L, T);
        p.T = T;
        run_blocks(&p.plan, 1, sums, &p);
        run_blocks(&p.plan, 1, pairs, &p);
        for (int i = 1; i < p.plan.threads; i++) {
            stats_merge(&p.slot[i].stats, &s->stats);
            add_scaled((size_t)M * q, 1.0, p.slot[i].U, s->U);
            add_scaled((size_t)M * M, 1.0, p.slot[i].V, s->V);
            s->first += p.slot[i].first;
        }
        status = stats_finish(&s->stats);
        if (status == STATUS_OK)
            status = pf_transfer(&p.z, &s->stats, &nu, arg_number(s2, "s2"), s->U, s->V,
                                 small, &value);
        value += s->first;
    }
    SEXP result = PROTECT(new_list(2, names));
    SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
    SET_VECTOR_ELT(result, 1, Rf_ScalarReal(value));
    UNPROTECT(1);
    return result;
}
