#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"
#include "pairs.h"

/*
 * What all rows say of a few new ones beyond a posterior: e_x = E(X, x), of which certify.h wants
 * h_x'e_x, e_x'B^{-1}e_x and |e_x|^2.  4 N M n_new flops, and N n_new kernel values, of which a
 * block is kept.
 */
struct cross_slot {
    double *K, *E, *Ae, *ee; /* M x block, block x n_new, M x n_new, n_new */
};

struct cross {
    struct plan plan;
    struct rows rows;
    struct inducing z;
    struct block new_rows;
    const double *a; /* M x n_new */
    struct cross_slot *slot;
};

static void cross_kernels(void *context, int b, int slot)
{
    struct cross *c = context;
    const struct inducing *z = &c->z;
    const struct block block = plan_block(&c->plan, &c->rows, b);
    kernel_cross(z->kernel, z->M, z->Z, z->M, block.n, block.X, block.ldx,
                 c->slot[slot].K);
}

static void cross_sums(void *context, int b, int slot)
{
    struct cross *c = context;
    struct cross_slot *s = c->slot + slot;
    const struct block block = plan_block(&c->plan, &c->rows, b);
    const int M = c->z.M, n = c->new_rows.n;
    inducing_whiten(&c->z, block.n, block.scale, s->K, s->K);
    pairs_unexplained(c->z.kernel, &c->new_rows, &block, M, c->a, s->K, s->E);
    mult_AB(M, block.n, n, 1.0, s->K, s->E, 1.0, s->Ae);
    for (int j = 0; j < n; j++)
        s->ee[j] += sum_squares((size_t)block.n, s->E + (size_t)j * block.n);
}

/* list(cross = h_x'e_x, gain = e_x'B^{-1}e_x, size = |e_x|^2) at the rows of x_new */
SEXP ffi_cross(SEXP kernel, SEXP z, SEXP L, SEXP C, SEXP s2, SEXP x, SEXP scale,
               SEXP x_new, SEXP control)
{
    static const char *const names[] = {"cross", "gain", "size"};
    const struct step steps[] = {{cross_kernels, 0}, {cross_sums, 1}};
    const struct kernel k = arg_kernel(kernel);
    struct cross c;
    const struct posterior p = old_posterior(&k, z, L, C, s2);
    c.z = p.z;
    const int M = c.z.M;
    c.rows.X = arg_inputs(&k, x, "x", &c.rows.N, &c.rows.columns);
    c.rows.y = NULL;
    c.rows.scale = arg_vector_or_null(scale, "scale", (size_t)c.rows.N);
    int columns;
    c.new_rows = arg_block(&k, x_new, "x_new", &columns);
    c.plan = arg_plan(control, c.rows.N);
    const size_t m = (size_t)M, n = (size_t)c.new_rows.n, block = (size_t)c.plan.block;
    c.slot = (struct cross_slot *)R_alloc((size_t)c.plan.threads, sizeof *c.slot);
    for (int i = 0; i < c.plan.threads; i++) {
        struct cross_slot *s = c.slot + i;
        s->K = (double *)R_alloc(m * block, sizeof(double));
        s->E = (double *)R_alloc(block * n, sizeof(double));
        s->Ae = (double *)R_alloc(m * n, sizeof(double));
        s->ee = (double *)R_alloc(n, sizeof(double));
        fill(m * n, 0.0, s->Ae);
        fill(n, 0.0, s->ee);
    }
    double *a = (double *)R_alloc(m * n, sizeof(double)), *Cx;
    kernel_cross(&k, M, c.z.Z, M, c.new_rows.n, c.new_rows.X, c.new_rows.ldx, a);
    inducing_whiten(&c.z, c.new_rows.n, NULL, a, a);
    c.a = a;
    run_blocks(&c.plan, 2, steps, &c);

    SEXP result = PROTECT(new_list(3, names));
    double *out[3];
    for (int i = 0; i < 3; i++) {
        SET_VECTOR_ELT(result, i, Rf_allocVector(REALSXP, c.new_rows.n));
        out[i] = REAL(VECTOR_ELT(result, i));
    }
    double *Ae = c.slot[0].Ae, *ee = c.slot[0].ee;
    for (int i = 1; i < c.plan.threads; i++) {
        add_scaled(m * n, 1.0, c.slot[i].Ae, Ae);
        add_scaled(n, 1.0, c.slot[i].ee, ee);
    }
    Cx = a;
    solve_lower(M, c.new_rows.n, p.C, Ae); /* C^{-1} A e,  C^{-1} a */
    solve_lower(M, c.new_rows.n, p.C, Cx);
    for (size_t j = 0; j < n; j++) {
        out[0][j] = dot(m, Cx + m * j, Ae + m * j);
        out[1][j] = (ee[j] - sum_squares(m, Ae + m * j)) / p.s2;
        out[2][j] = ee[j];
    }
    UNPROTECT(1);
    return result;
}
