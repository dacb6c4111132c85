#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"
#include "pairs.h"

struct panel_slot {
    double *K_u, *work, *Rt_c, *out;
    double sum;
};

/* W_x of an auxiliary distribution, and the constant C(X) that needs pairs of blocks. */
struct panel {
    struct plan plan;
    struct rows rows;
    const struct kernel *kernel;
    const struct lowrank *nu;
    double *Wt; /* q x N */
    struct panel_slot *slot;
};

static void panel_kernels(void *context, int b, int slot)
{
    struct panel *p = context;
    const struct block block = plan_block(&p->plan, &p->rows, b);
    kernel_cross(p->kernel, p->nu->n_u, p->nu->U, p->nu->n_u, block.n, block.X, block.ldx,
                 p->slot[slot].K_u);
}

static void panel_rows(void *context, int b, int slot)
{
    struct panel *p = context;
    const struct block block = plan_block(&p->plan, &p->rows, b);
    lowrank_rows(p->nu, block.n, block.scale, p->slot[slot].K_u,
                 p->Wt + (size_t)b * p->plan.block * p->nu->q);
}

SEXP ffi_lowrank_rows(SEXP kernel, SEXP nu_, SEXP x, SEXP scale, SEXP control)
{
    const struct kernel k = arg_kernel(kernel);
    const struct lowrank nu = arg_lowrank(nu_, &k);
    const struct step steps[] = {{panel_kernels, 0}, {panel_rows, 1}};
    struct panel p = {.kernel = &k, .nu = &nu};
    p.rows.X = arg_inputs(&k, x, "x", &p.rows.N, &p.rows.columns);
    p.rows.y = NULL;
    p.rows.scale = arg_vector_or_null(scale, "scale", (size_t)p.rows.N);
    p.plan = plan_blocks(control, p.rows.N);
    SEXP Wt = PROTECT(Rf_allocMatrix(REALSXP, nu.q, p.rows.N));
    p.Wt = REAL(Wt);
    p.slot =
        (struct panel_slot *)R_alloc((size_t)p.plan.threads, sizeof(struct panel_slot));
    for (int i = 0; i < p.plan.threads; i++) {
        p.slot[i].K_u = (double *)R_alloc((size_t)nu.n_u * p.plan.block, sizeof(double));
    }
    run_blocks(&p.plan, 2, steps, &p);
    UNPROTECT(1);
    return Wt;
}

/* Rt (q x n) = W_x' with y subtracted from the mean's row, for block c */
static void residual_panel(struct panel *p, const struct block *c, struct panel_slot *s)
{
    const int q = p->nu->q;
    kernel_cross(p->kernel, p->nu->n_u, p->nu->U, p->nu->n_u, c->n, c->X, c->ldx, s->K_u);
    lowrank_rows(p->nu, c->n, c->scale, s->K_u, s->Rt_c);
    for (int i = 0; i < c->n; i++)
        s->Rt_c[(size_t)i * q + q - 1] -= c->scale ? c->scale[i] * c->y[i] : c->y[i];
}

static void constant_block(void *context, int b, int slot)
{
    struct panel *p = context;
    struct panel_slot *s = p->slot + slot;
    const int q = p->nu->q;
    const struct block here = plan_block(&p->plan, &p->rows, b);
    fill((size_t)q * here.n, 0.0, s->out);
    for (int c = 0; c < p->plan.n_blocks; c++) {
        const struct block there = plan_block(&p->plan, &p->rows, c);
        residual_panel(p, &there, s);
        pairs_add(p->kernel, &here, &there, q, s->Rt_c, s->work, s->out); /* R_c' K_cb */
        if (p->nu->p)
            s->sum += pairs_sum_squares(p->kernel, &here, &there, s->work);
    }
    residual_panel(p, &here, s);
    for (int i = 0; i < here.n; i++)
        for (int j = 0; j < q; j++)
            s->sum +=
                p->nu->sign[j] * s->out[(size_t)i * q + j] * s->Rt_c[(size_t)i * q + j];
}

SEXP ffi_pf_constant(SEXP kernel, SEXP x, SEXP y, SEXP scale, SEXP nu_, SEXP control)
{
    const struct kernel k = arg_kernel(kernel);
    const struct lowrank nu = arg_lowrank(nu_, &k);
    const struct step steps[] = {{constant_block, 1}};
    struct panel p = {.kernel = &k, .nu = &nu};
    double sum = 0.0;
    p.rows.X = arg_inputs(&k, x, "x", &p.rows.N, &p.rows.columns);
    p.rows.y = arg_vector(y, "y", (size_t)p.rows.N);
    p.rows.scale = arg_vector_or_null(scale, "scale", (size_t)p.rows.N);
    p.plan = plan_blocks(control, p.rows.N);
    const size_t n = (size_t)p.plan.block;
    p.slot =
        (struct panel_slot *)R_alloc((size_t)p.plan.threads, sizeof(struct panel_slot));
    for (int i = 0; i < p.plan.threads; i++) {
        struct panel_slot *s = p.slot + i;
        s->K_u = (double *)R_alloc((size_t)nu.n_u * n, sizeof(double));
        s->work = (double *)R_alloc(pairs_size((int)n, (int)n), sizeof(double));
        s->Rt_c = (double *)R_alloc((size_t)nu.q * n, sizeof(double));
        s->out = (double *)R_alloc((size_t)nu.q * n, sizeof(double));
        s->sum = 0.0;
    }
    run_blocks(&p.plan, 1, steps, &p);
    for (int i = 0; i < p.plan.threads; i++)
        sum += p.slot[i].sum;
    return Rf_ScalarReal(sum);
}
