#include "ffi.h"
#include "ffi_blocks.h"
#include "gradient.h"
#include "linalg.h"
#include "pairs.h"
#include "pf.h"
#include "posterior.h"
#include "vfe.h"
#include "white.h"

/* the work of each slot */
struct slot {
    double *K, *A, *AK, *Kmx_bar, *Wt, *K_u, *A_c, *work, *pair, *dZ, *dtheta, *W0, *sums;
    struct stats stats;
    double rss;
};

/*
 * One evaluation of an objective: both passes in one call.  The first `kept` blocks keep
 * K = k(Z, X_b) and A = L^{-1} K diag(scale) (and A K where nu has p = 1) between the passes,
 * as far as control$memory goes; the others are evaluated again.
 */
struct evaluation {
    struct plan plan;
    struct rows rows;
    struct inducing z;
    const struct lowrank *nu; /* NULL: VFE, or white noise */
    const double *Wt;         /* q x N, or NULL: made anew, block by block */
    int q, p, want_gradient, want_theta, kept;
    double *K_kept, *A_kept, *AK_kept; /* M x N_kept */
    struct slot *slot;
    struct adjoint adjoint;
    double *L, *T, *K_zu, *C, *beta, *adjoint_memory,
        *small; /* small: every M x M step */
    double *dZ, *dtheta;
};

static size_t largest(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Cuts the scratch up; with arena->base == NULL it is only counted. */
static void lay_out(struct evaluation *e, struct arena *arena)
{
    const struct kernel *k = e->z.kernel;
    const int M = e->z.M, n = e->plan.block, q = e->q, n_u = e->nu ? e->nu->n_u : 0;
    const size_t MM = (size_t)M * M, Mn = (size_t)M * n, Md = (size_t)M * e->z.columns;
    const int per_row = e->p ? 3 : 2;
    size_t small = (size_t)M, fit = e->plan.memory / sizeof(double);

    e->kept = 0;
    if (e->want_gradient || e->p || e->nu == NULL)
        while (e->kept < e->plan.n_blocks && (e->kept + 1) * per_row * Mn <= fit)
            e->kept++;
    e->K_kept = arena_take(arena, e->kept * Mn);
    e->A_kept = arena_take(arena, e->kept * Mn);
    e->AK_kept = arena_take(arena, e->p ? e->kept * Mn : 0);

    for (int i = 0; i < e->plan.threads; i++) {
        struct slot counted, *s = arena->base == NULL ? &counted : e->slot + i;
        s->K = arena_take(arena, Mn);
        s->A = arena_take(arena, Mn);
        s->Kmx_bar = arena_take(arena, e->want_gradient ? Mn : 0);
        s->Wt = arena_take(arena, (size_t)q * n);
        s->K_u = arena_take(arena, (size_t)n_u * n);
        s->work = arena_take(arena, largest(kernel_size(k, M), 2 * (size_t)n));
        s->AK = arena_take(arena, e->p ? Mn : 0);
        s->A_c = arena_take(arena, e->p ? Mn : 0);
        s->pair = arena_take(arena, e->p ? pairs_size(n, n) : 0);
        s->W0 = arena_take(arena, e->p ? MM : 0);
        s->dZ = arena_take(arena, Md);
        s->dtheta = arena_take(arena, (size_t)k->n_theta);
        s->sums = arena_take(arena, stats_size(M, q));
    }
    e->L = arena_take(arena, MM);
    e->C = arena_take(arena, MM);
    e->beta = arena_take(arena, (size_t)M);
    e->T = arena_take(arena, (size_t)M * q);
    e->K_zu = arena_take(arena, (size_t)M * n_u);
    e->adjoint_memory = arena_take(arena, adjoint_size(M, q, e->p));
    small = largest(small, e->nu ? pf_size(M, q, e->p) : 2 * MM);
    small = largest(small, kernel_self_size(k, M, e->z.columns));
    if (e->nu)
        small = largest(small, lowrank_pull_size(e->nu, M));
    e->small = arena_take(arena, small);
}

/* ---- the first pass: statistics ---------------------------------------------------------- */

static double *block_K(struct evaluation *e, int b, int slot)
{
    return b < e->kept ? e->K_kept + (size_t)b * e->z.M * e->plan.block : e->slot[slot].K;
}

static double *block_A(struct evaluation *e, int b, int slot)
{
    return b < e->kept ? e->A_kept + (size_t)b * e->z.M * e->plan.block : e->slot[slot].A;
}

static const double *block_Wt(const struct evaluation *e, int b, int slot)
{
    return e->Wt == NULL ? e->slot[slot].Wt : e->Wt + (size_t)b * e->plan.block * e->q;
}

static void evaluate_kernels(struct evaluation *e, const struct block *block, double *K,
                             struct slot *s)
{
    const struct inducing *z = &e->z;
    if (K != NULL)
        kernel_cross(z->kernel, z->M, z->Z, z->M, block->n, block->X, block->ldx, K);
    if (e->nu != NULL && e->Wt == NULL)
        kernel_cross(e->nu->kernel, e->nu->n_u, e->nu->U, e->nu->n_u, block->n, block->X,
                     block->ldx, s->K_u);
}

static void first_kernels(void *context, int b, int slot)
{
    struct evaluation *e = context;
    const struct block block = plan_block(&e->plan, &e->rows, b);
    evaluate_kernels(e, &block, block_K(e, b, slot), e->slot + slot);
}

static void first_sums(void *context, int b, int slot)
{
    struct evaluation *e = context;
    struct slot *s = e->slot + slot;
    const struct block block = plan_block(&e->plan, &e->rows, b);
    double *A = block_A(e, b, slot);
    inducing_whiten(&e->z, block.n, block.scale, block_K(e, b, slot), A);
    if (e->nu != NULL && e->Wt == NULL)
        lowrank_rows(e->nu, block.n, block.scale, s->K_u, s->Wt);
    stats_add(e->z.kernel, &block, A, block_Wt(e, b, slot), s->work, &s->stats);
}

/* ---- p = 1: A K, by pairs of blocks ------------------------------------------------------- */

/* A of block c: kept, or made again */
static const double *other_A(struct evaluation *e, int c, const struct block *block,
                             struct slot *s)
{
    const struct inducing *z = &e->z;
    if (c < e->kept)
        return e->A_kept + (size_t)c * z->M * e->plan.block;
    kernel_cross(z->kernel, z->M, z->Z, z->M, block->n, block->X, block->ldx, s->A_c);
    inducing_whiten(z, block->n, block->scale, s->A_c, s->A_c);
    return s->A_c;
}

/* AK (M x n_b) of block b */
static double *block_AK(struct evaluation *e, int b, int slot, int again)
{
    struct slot *s = e->slot + slot;
    const int M = e->z.M;
    double *AK = b < e->kept ? e->AK_kept + (size_t)b * M * e->plan.block : s->AK;
    const struct block here = plan_block(&e->plan, &e->rows, b);
    if (b < e->kept && !again)
        return AK;
    fill((size_t)M * here.n, 0.0, AK);
    for (int c = 0; c < e->plan.n_blocks; c++) {
        const struct block there = plan_block(&e->plan, &e->rows, c);
        pairs_add(e->z.kernel, &here, &there, M, other_A(e, c, &there, s), s->pair, AK);
    }
    return AK;
}

static void pairs_sums(void *context, int b, int slot)
{
    struct evaluation *e = context;
    struct slot *s = e->slot + slot;
    const struct block here = plan_block(&e->plan, &e->rows, b);
    const double *AK = block_AK(e, b, slot, 1);
    mult_ABt(e->z.M, here.n, e->z.M, 1.0, AK, other_A(e, b, &here, s), 1.0, s->W0);
}

/* ---- the second pass: gradient ------------------------------------------------------------ */

static void second_kernels(void *context, int b, int slot)
{
    struct evaluation *e = context;
    const struct block block = plan_block(&e->plan, &e->rows, b);
    evaluate_kernels(e, &block, b < e->kept ? NULL : e->slot[slot].K, e->slot + slot);
}

static void second_adjoints(void *context, int b, int slot)
{
    struct evaluation *e = context;
    struct slot *s = e->slot + slot;
    const struct block block = plan_block(&e->plan, &e->rows, b);
    double *A = block_A(e, b, slot);
    if (b >= e->kept)
        inducing_whiten(&e->z, block.n, block.scale, s->K, A);
    if (e->nu != NULL && e->Wt == NULL)
        lowrank_rows(e->nu, block.n, block.scale, s->K_u, s->Wt);
    if (e->want_gradient) {
        const double *AK = e->p ? block_AK(e, b, slot, 0) : NULL;
        s->rss += gradient_block(&e->adjoint, &block, A, block_Wt(e, b, slot), AK,
                                 s->work, s->Kmx_bar);
    } else { /* the value wants |y - A'beta|^2 */
        block_response(&block, s->work);
        posterior_residual(e->z.M, block.n, A, e->beta, s->work, s->work);
        s->rss += sum_squares((size_t)block.n, s->work);
    }
}

static void second_pull(void *context, int b, int slot)
{
    struct evaluation *e = context;
    struct slot *s = e->slot + slot;
    const struct inducing *z = &e->z;
    const struct block block = plan_block(&e->plan, &e->rows, b);
    kernel_pull(z->kernel, z->M, z->Z, z->M, block.n, block.X, block.ldx,
                block_K(e, b, slot), s->Kmx_bar, s->work, s->dZ,
                e->want_theta ? s->dtheta : NULL);
    if (e->want_theta && !kernel_is_constant(z->kernel)) {
        for (int i = 0; i < block.n; i++)
            s->work[i] = block.scale == NULL ? 1.0 : block.scale[i] * block.scale[i];
        kernel_pull_diagonal(z->kernel, block.n, block.X, block.ldx, e->adjoint.k_bar,
                             s->work, 1, NULL, s->dtheta);
    }
}

/* ---- both passes ---------------------------------------------------------------------------- */

static enum status first_pass(struct evaluation *e)
{
    const struct step steps[] = {{first_kernels, 0}, {first_sums, 1}};
    const struct step pairs[] = {{pairs_sums, 1}};
    const int M = e->z.M;
    enum status status =
        inducing_factor(e->z.kernel, M, e->z.Z, e->z.jitter, e->small, e->L);
    if (status != STATUS_OK)
        return status;
    e->z.L = e->L;
    for (int i = 0; i < e->plan.threads; i++) {
        struct slot *s = e->slot + i;
        stats_init(M, e->q, s->sums, &s->stats);
        fill((size_t)M * e->z.columns, 0.0, s->dZ);
        fill((size_t)e->z.kernel->n_theta, 0.0, s->dtheta);
        if (e->p)
            fill((size_t)M * M, 0.0, s->W0);
        s->rss = 0.0;
    }
    run_blocks(&e->plan, 2, steps, e);
    if (e->p)
        run_blocks(&e->plan, 1, pairs, e);
    for (int i = 1; i < e->plan.threads; i++) {
        stats_merge(&e->slot[i].stats, &e->slot[0].stats);
        if (e->p)
            add_scaled((size_t)M * M, 1.0, e->slot[i].W0, e->slot[0].W0);
    }
    return stats_finish(&e->slot[0].stats);
}

/* The same for objectives of the posterior alone: C and beta as well, and adjoints to fill. */
static enum status posterior_pass(struct evaluation *e, double s2)
{
    const enum status status = first_pass(e);
    if (status != STATUS_OK)
        return status;
    adjoint_init(e->z.M, 0, 0, e->adjoint_memory, &e->adjoint);
    return posterior_factor(&e->slot[0].stats, s2, e->C, e->beta);
}

/* dZ and dtheta from the blocks and from k(Z, Z), and rss */
static double second_pass(struct evaluation *e)
{
    const struct step steps[] = {
        {second_kernels, 0}, {second_adjoints, 1}, {second_pull, 0}};
    const struct inducing *z = &e->z;
    double rss = 0.0;
    run_blocks(&e->plan, e->want_gradient ? 3 : 2, steps, e);
    for (int i = 0; i < e->plan.threads; i++) {
        rss += e->slot[i].rss;
        if (e->want_gradient) {
            add_scaled((size_t)z->M * z->columns, 1.0, e->slot[i].dZ, e->dZ);
            add_scaled((size_t)z->kernel->n_theta, 1.0, e->slot[i].dtheta, e->dtheta);
        }
    }
    if (e->want_gradient) {
        double *dtheta = e->want_theta ? e->dtheta : NULL;
        kernel_pull_self(z->kernel, z->M, z->columns, z->Z, z->M, z->jitter,
                         e->adjoint.Kmm_bar, e->small, e->dZ, dtheta);
        if (!kernel_is_constant(z->kernel))
            kernel_pull_diagonal(z->kernel, z->M, z->Z, z->M, 1.0, e->adjoint.kzz_bar, 1,
                                 e->dZ, dtheta);
    }
    return rss;
}

/* ---- doors ---------------------------------------------------------------------------------- */

static void unpack(struct evaluation *e, const struct kernel *k, SEXP z, SEXP x, SEXP Wt,
                   SEXP want, SEXP control)
{
    int columns;
    e->z.kernel = k;
    e->z.Z = arg_inputs(k, z, "z", &e->z.M, &e->z.columns);
    e->rows.X = arg_inputs(k, x, "x", &e->rows.N, &columns);
    if (columns != e->z.columns)
        Rf_error("internal: `z` and `x` must have the same columns");
    e->rows.columns = columns;
    e->rows.y = e->rows.scale = NULL;
    e->plan = plan_blocks(control, e->rows.N);
    e->want_gradient = arg_integer(want, "want") > 0;
    e->q = e->nu ? e->nu->q : 0;
    e->p = e->nu ? e->nu->p : 0;
    e->Wt = NULL;
    if (Wt != R_NilValue)
        e->Wt = arg_vector(Wt, "Wt", (size_t)e->q * e->rows.N);
    e->slot = (struct slot *)R_alloc((size_t)e->plan.threads, sizeof(struct slot));
}

static void unpack_rest(struct evaluation *e, SEXP y, SEXP scale, SEXP jitter,
                        SEXP scratch)
{
    struct arena arena = {NULL, 0};
    e->rows.y = arg_vector(y, "y", (size_t)e->rows.N);
    e->rows.scale = arg_vector_or_null(scale, "scale", (size_t)e->rows.N);
    e->z.jitter = arg_number(jitter, "jitter");
    lay_out(e, &arena);
    if (TYPEOF(scratch) == REALSXP && (size_t)XLENGTH(scratch) >= arena.used)
        arena.base = REAL(scratch);
    else
        arena.base = (double *)R_alloc(arena.used, sizeof(double));
    arena.used = 0;
    lay_out(e, &arena);
}

/* list(status, value, gradient, theta, noise), its gradients zero and wired to e */
static SEXP new_result(struct evaluation *e)
{
    static const char *const names[] = {"status", "value", "gradient", "theta", "noise"};
    const int d = e->z.columns, n_theta = e->z.kernel->n_theta;
    SEXP result = PROTECT(new_list(5, names));
    SET_VECTOR_ELT(result, 2, Rf_allocMatrix(REALSXP, e->z.M, d));
    SET_VECTOR_ELT(result, 3, Rf_allocVector(REALSXP, n_theta));
    e->dZ = REAL(VECTOR_ELT(result, 2));
    e->dtheta = REAL(VECTOR_ELT(result, 3));
    fill((size_t)e->z.M * d, 0.0, e->dZ);
    fill((size_t)n_theta, 0.0, e->dtheta);
    UNPROTECT(1);
    return result;
}

static SEXP finish(SEXP result, enum status status, double value, double noise)
{
    SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
    SET_VECTOR_ELT(result, 1, Rf_ScalarReal(status == STATUS_OK ? value : R_PosInf));
    SET_VECTOR_ELT(result, 4, Rf_ScalarReal(noise));
    UNPROTECT(1);
    return result;
}

SEXP ffi_vfe(SEXP kernel, SEXP z, SEXP x, SEXP y, SEXP scale, SEXP s2_, SEXP jitter,
             SEXP want, SEXP control, SEXP scratch)
{
    const struct kernel k = arg_kernel(kernel);
    const double s2 = arg_number(s2_, "s2");
    struct evaluation e = {.nu = NULL, .want_theta = 1};
    double value = 0.0, noise = 0.0;
    unpack(&e, &k, z, x, R_NilValue, want, control);
    unpack_rest(&e, y, scale, jitter, scratch);
    SEXP result = PROTECT(new_result(&e));

    enum status status = posterior_pass(&e, s2);
    const struct stats *s = &e.slot[0].stats;
    if (status == STATUS_OK) {
        if (e.want_gradient)
            vfe_adjoint(&e.z, s, s2, e.C, e.beta, e.small, &e.adjoint);
        const double rss = second_pass(&e);
        if (e.want_gradient) {
            if (kernel_is_constant(&k)) /* otherwise row by row, in the second pass */
                e.dtheta[k.term->at] += e.adjoint.k_bar * s->k_sum;
            noise = vfe_slope_noise(e.rows.N, s, s2, e.C, rss, e.small);
        }
        value = vfe_value(e.rows.N, s, s2, e.C, e.beta, rss);
        status = R_FINITE(value) ? STATUS_OK : STATUS_NOT_FINITE;
    }
    return finish(result, status, value, noise);
}

SEXP ffi_white(SEXP kernel, SEXP z, SEXP x, SEXP y, SEXP scale, SEXP s2_, SEXP jitter,
               SEXP share_, SEXP want, SEXP control, SEXP scratch)
{
    const struct kernel k = arg_kernel(kernel);
    const double s2 = arg_number(s2_, "s2"), share = arg_number(share_, "share");
    struct evaluation e = {.nu = NULL};
    double value = 0.0;
    unpack(&e, &k, z, x, R_NilValue, want, control);
    unpack_rest(&e, y, scale, jitter, scratch);
    SEXP result = PROTECT(new_result(&e));

    enum status status = posterior_pass(&e, s2);
    const struct stats *s = &e.slot[0].stats;
    if (status == STATUS_OK) {
        double *N = e.small;
        white_share(s, e.C, N);
        const double transfer = white_transfer(e.z.M, s2, N);
        if (e.want_gradient)
            white_adjoint(&e.z, s, s2, share, N, e.beta, N + (size_t)e.z.M * e.z.M,
                          &e.adjoint);
        value = white_value(s, s2, share, transfer, e.beta, second_pass(&e));
        status = R_FINITE(value) ? STATUS_OK : STATUS_NOT_FINITE;
    }
    return finish(result, status, value, 0.0);
}

SEXP ffi_pf(SEXP kernel, SEXP z, SEXP x, SEXP y, SEXP scale, SEXP s2_, SEXP jitter,
            SEXP nu_, SEXP Wt, SEXP want, SEXP control, SEXP scratch)
{
    const struct kernel k = arg_kernel(kernel);
    const struct lowrank nu = arg_lowrank(nu_, &k);
    const double s2 = arg_number(s2_, "s2");
    struct evaluation e = {.nu = &nu};
    struct pf_terms terms = {0.0, 0.0};
    double value = 0.0;
    unpack(&e, &k, z, x, Wt, want, control);
    unpack_rest(&e, y, scale, jitter, scratch);
    SEXP result = PROTECT(new_result(&e));

    enum status status = first_pass(&e);
    if (status == STATUS_OK) {
        const int M = e.z.M;
        const struct slot *s = e.slot;
        lowrank_points(&nu, M, e.z.Z, e.K_zu, e.T); /* T = L^{-1} W_m */
        solve_lower(M, e.q, e.L, e.T);
        adjoint_init(M, e.q, e.p, e.adjoint_memory, &e.adjoint);
        status = pf_evaluate(&e.z, &s->stats, &nu, s2, e.T, s->W0, e.small, &terms,
                             e.want_gradient ? &e.adjoint : NULL);
        value = terms.fit + terms.transfer;
        if (status == STATUS_OK && !R_FINITE(value))
            status = STATUS_NOT_FINITE;
        if (status == STATUS_OK && e.want_gradient) {
            second_pass(&e);
            lowrank_pull(&nu, M, e.z.Z, e.K_zu, e.adjoint.Wm_bar, e.small, e.dZ);
        }
    }
    return finish(result, status, value, 0.0);
}

SEXP ffi_objective_size(SEXP kernel, SEXP z, SEXP x, SEXP nu_, SEXP Wt, SEXP want,
                        SEXP control)
{
    const struct kernel k = arg_kernel(kernel);
    struct lowrank nu;
    struct evaluation e = {.nu = NULL};
    struct arena arena = {NULL, 0};
    if (nu_ != R_NilValue) {
        nu = arg_lowrank(nu_, &k);
        e.nu = &nu;
    }
    unpack(&e, &k, z, x, Wt, want, control);
    lay_out(&e, &arena);
    return Rf_ScalarReal((double)arena.used);
}
