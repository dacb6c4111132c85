#include <math.h>
#include "certify.h"
#include "ffi.h"
#include "ffi_blocks.h"
#include "kriging.h"
#include "linalg.h"

/*
 * Local kriging at new rows, in groups that share their rows S: weights and J, then h on all rows,
 * by block, and what certificates want of it.  N |near| kernel values, near the rows of all S,
 * and 2 N (n_c + M) flops a new row.
 */
enum { most_near = 1 << 22 }; /* kernel values of a block of rows and all near ones */

struct group_slot {
    double *X, *scale, *x_new, *K, *k, *work; /* of one group */
};

struct row_slot {
    double *A, *K_near, *H; /* M x block, block x near, block x n_new */
    double *K_S;            /* block x n_c                            */
    double *Ah, *Aw, *hh;   /* M x n_new, M x n_new, n_new            */
};

struct kriging_loop {
    struct plan plan;
    struct rows rows;
    struct posterior posterior;
    struct block near, new_rows;
    int n_c;
    const int *start, *near_rows,
        *rows_of; /* near_rows: from 1, rows_of: into near, from 1 */
    int *S;       /* n_c x groups: row numbers from 0             */
    double *W;
    struct kriging *point;
    struct group_slot *group;
    struct row_slot *row;
};

/* ---- weights, a group at a time ------------------------------------------------------------- */

static int group_size(const struct kriging_loop *c, int i)
{
    return c->start[i + 1] - c->start[i];
}

static void group_kernels(void *context, int i, int slot)
{
    struct kriging_loop *c = context;
    struct group_slot *s = c->group + slot;
    const struct kernel *k = c->posterior.z.kernel;
    const int n_c = c->n_c, g = group_size(c, i), *member = c->rows_of + (size_t)n_c * i;
    for (int r = 0; r < n_c; r++) {
        const size_t from = (size_t)member[r] - 1;
        for (int j = 0; j < c->rows.columns; j++)
            s->X[(size_t)j * n_c + r] = c->near.X[j * (size_t)c->near.n + from];
        s->scale[r] = c->near.scale == NULL ? 1.0 : c->near.scale[from];
    }
    kernel_cross(k, n_c, s->X, n_c, n_c, s->X, n_c, s->K);
    kernel_cross(k, n_c, s->X, n_c, g, c->new_rows.X + c->start[i], c->new_rows.ldx,
                 s->k);
    for (int q = 0; q < n_c; q++)
        for (int r = 0; r < n_c; r++)
            s->K[(size_t)q * n_c + r] *= s->scale[q] * s->scale[r];
    for (int q = 0; q < g; q++)
        for (int r = 0; r < n_c; r++)
            s->k[(size_t)q * n_c + r] *= s->scale[r];
}

static void group_weights(void *context, int i, int slot)
{
    struct kriging_loop *c = context;
    struct group_slot *s = c->group + slot;
    const int n_c = c->n_c, g = group_size(c, i), at = c->start[i];
    double *prior = s->x_new, k_most = 0.0;
    kernel_diagonal(c->posterior.z.kernel, g, c->new_rows.X + at, c->new_rows.ldx, prior);
    for (int r = 0; r < n_c; r++)
        k_most = fmax(k_most, s->K[(size_t)r * n_c + r]);
    kriging_weights(n_c, g, c->posterior.s2, k_most, s->K, s->k, s->scale, prior, s->work,
                    c->W + (size_t)n_c * at, c->point + at);
}

static void run_groups(struct kriging_loop *c, int groups, int largest)
{
    const struct step steps[] = {{group_kernels, 0}, {group_weights, 1}};
    const size_t n_c = (size_t)c->n_c, g = (size_t)largest;
    struct plan plan = c->plan;
    plan.n_blocks = groups;
    if (plan.threads > groups)
        plan.threads = groups;
    c->group = (struct group_slot *)R_alloc((size_t)plan.threads, sizeof *c->group);
    for (int i = 0; i < plan.threads; i++) {
        struct group_slot *s = c->group + i;
        s->X = room(n_c * c->rows.columns);
        s->scale = room(n_c);
        s->x_new = room(g);
        s->K = room(n_c * n_c);
        s->k = room(n_c * g);
        s->work = room(kriging_size(c->n_c, largest));
    }
    run_blocks(&plan, 2, steps, c);
}

/* ---- h, a block of rows at a time ----------------------------------------------------------- */

static void row_kernels(void *context, int b, int slot)
{
    struct kriging_loop *c = context;
    struct row_slot *s = c->row + slot;
    const struct inducing *z = &c->posterior.z;
    const struct block block = plan_block(&c->plan, &c->rows, b);
    const int n = block.n;
    kernel_cross(z->kernel, z->M, z->Z, z->M, n, block.X, block.ldx, s->A);
    kernel_cross(z->kernel, n, block.X, block.ldx, c->near.n, c->near.X, c->near.ldx,
                 s->K_near);
    kernel_cross(z->kernel, n, block.X, block.ldx, c->new_rows.n, c->new_rows.X,
                 c->new_rows.ldx, s->H);
    if (block.scale == NULL)
        return;
    for (int j = 0; j < c->near.n; j++)
        for (int i = 0; i < n; i++)
            s->K_near[(size_t)j * n + i] *= block.scale[i] * c->near.scale[j];
    for (int j = 0; j < c->new_rows.n; j++)
        for (int i = 0; i < n; i++)
            s->H[(size_t)j * n + i] *= block.scale[i];
}

static void row_sums(void *context, int b, int slot)
{
    struct kriging_loop *c = context;
    struct row_slot *s = c->row + slot;
    const struct posterior *p = &c->posterior;
    const struct block block = plan_block(&c->plan, &c->rows, b);
    const int n = block.n, n_c = c->n_c, first = b * c->plan.block, M = p->z.M;
    inducing_whiten(&p->z, n, block.scale, s->A, s->A);
    for (int i = 0, at = 0; at < c->new_rows.n; i++, at = c->start[i]) {
        const int g = group_size(c, i), *member = c->rows_of + (size_t)n_c * i,
                  *S = c->S + (size_t)n_c * i;
        const double *W = c->W + (size_t)n_c * at;
        double *H = s->H + (size_t)n * at;
        for (int r = 0; r < n_c; r++)
            copy((size_t)n, s->K_near + (size_t)n * (member[r] - 1),
                 s->K_S + (size_t)n * r);
        kriging_rows(n, n_c, g, p->s2, s->K_S, first, S, W, H);
        kriging_whiten(M, n, n_c, g, s->A, first, S, W, s->Aw + (size_t)M * at);
    }
    mult_AB(M, n, c->new_rows.n, 1.0, s->A, s->H, 1.0, s->Ah);
    for (int j = 0; j < c->new_rows.n; j++)
        s->hh[j] += sum_squares((size_t)n, s->H + (size_t)n * j);
}

static void run_rows(struct kriging_loop *c)
{
    const struct step steps[] = {{row_kernels, 0}, {row_sums, 1}};
    const int most = most_near / (c->near.n + c->new_rows.n);
    if (c->plan.block > most) { /* fewer rows at a time */
        c->plan.block = most > 32 ? most : 32;
        c->plan.n_blocks = (c->rows.N - 1) / c->plan.block + 1;
    }
    const size_t M = (size_t)c->posterior.z.M, n = (size_t)c->plan.block,
                 n_new = (size_t)c->new_rows.n;
    c->row = (struct row_slot *)R_alloc((size_t)c->plan.threads, sizeof *c->row);
    for (int i = 0; i < c->plan.threads; i++) {
        struct row_slot *s = c->row + i;
        s->A = room(M * n);
        s->K_near = room(n * c->near.n);
        s->H = room(n * n_new);
        s->K_S = room(n * c->n_c);
        s->Ah = room(M * n_new);
        s->Aw = room(M * n_new);
        s->hh = room(n_new);
        fill(M * n_new, 0.0, s->Ah);
        fill(M * n_new, 0.0, s->Aw);
        fill(n_new, 0.0, s->hh);
    }
    run_blocks(&c->plan, 2, steps, c);
    for (int i = 1; i < c->plan.threads; i++) {
        add_scaled(M * n_new, 1.0, c->row[i].Ah, c->row[0].Ah);
        add_scaled(M * n_new, 1.0, c->row[i].Aw, c->row[0].Aw);
        add_scaled(n_new, 1.0, c->row[i].hh, c->row[0].hh);
    }
}

/* ---- the door ------------------------------------------------------------------------------- */

static const int *arg_indices(SEXP x, const char *argument, int most)
{
    if (TYPEOF(x) != INTSXP)
        Rf_error("internal: `%s` must be integers", argument);
    for (R_xlen_t i = 0; i < XLENGTH(x); i++)
        if (INTEGER_RO(x)[i] < 1 || INTEGER_RO(x)[i] > most)
            Rf_error("internal: `%s` must be between 1 and %d", argument, most);
    return INTEGER_RO(x);
}

/* the near rows, copied */
static struct block gather_near(const struct rows *rows, const int *row, int n)
{
    struct block near = {n, NULL, n, NULL, NULL, 0};
    double *X = room((size_t)n * rows->columns), *scale = room((size_t)n);
    for (int i = 0; i < n; i++) {
        const size_t from = (size_t)row[i] - 1;
        for (int j = 0; j < rows->columns; j++)
            X[(size_t)j * n + i] = rows->X[(size_t)j * rows->N + from];
        if (rows->scale != NULL)
            scale[i] = rows->scale[from];
    }
    near.X = X;
    near.scale = rows->scale == NULL ? NULL : scale;
    return near;
}

static void certify_points(const struct kriging_loop *c, const struct norms *norms,
                           double *const out[])
{
    const struct posterior *p = &c->posterior;
    const int M = p->z.M, n = c->new_rows.n;
    const size_t m = (size_t)M;
    double *a = room(m * n), *Cx = room(m * n), *prior = room((size_t)n), sum_w = 0.0;
    double *Ah = c->row[0].Ah, *Aw = c->row[0].Aw;
    for (int i = 0; i < c->rows.N; i++)
        sum_w += c->rows.scale == NULL ? 1.0 : c->rows.scale[i] * c->rows.scale[i];
    kernel_diagonal(p->z.kernel, n, c->new_rows.X, c->new_rows.ldx, prior);
    kernel_cross(p->z.kernel, M, p->z.Z, M, n, c->new_rows.X, c->new_rows.ldx, a);
    inducing_whiten(&p->z, n, NULL, a, a);
    copy(m * n, a, Cx);
    solve_lower(M, n, p->C, Cx); /* C^{-1} a,  C^{-1} A h */
    solve_lower(M, n, p->C, Ah);
    add_scaled(m * n, -1.0, a, Aw);
    for (int j = 0; j < n; j++) {
        const struct kriging *w = c->point + j;
        const double *cx = Cx + m * j, *ch = Ah + m * j;
        struct kriged x;
        x.prior = prior[j];
        x.sor = p->s2 * sum_squares(m, cx);
        x.J = w->J;
        x.wh = w->wh;
        x.ww = w->ww;
        x.w1 = w->w1;
        x.hh = c->row[0].hh[j];
        x.ch = sum_squares(m, ch);
        x.xh = dot(m, cx, ch);
        x.JQ = sum_squares(m, Aw + m * j) + p->s2 * w->ww;
        const struct kriging_bounds bounds =
            certify_kriged(norms, p->s2, c->n_c, sum_w, &x);
        out[0][j] = bounds.J;
        out[1][j] = bounds.q;
        out[2][j] = w->ww;
        out[3][j] = bounds.var_lower;
        out[4][j] = bounds.var_upper;
    }
}

SEXP ffi_kriging(SEXP kernel, SEXP z, SEXP L, SEXP C, SEXP s2, SEXP G, SEXP norms, SEXP x,
                 SEXP scale, SEXP x_new, SEXP start, SEXP near, SEXP rows, SEXP control)
{
    static const char *const names[] = {"W", "J", "q", "ww", "var_lower", "var_upper"};
    const struct kernel k = arg_kernel(kernel);
    struct kriging_loop c;
    c.posterior = old_posterior(&k, z, L, C, s2);
    const int M = c.posterior.z.M;
    struct norms known = {0};
    known.weight = arg_number(list_get(norms, "weight"), "weight");
    known.slack = arg_number(list_get(norms, "slack"), "slack");
    known.lam = arg_number(list_get(norms, "lam"), "lam");
    known.growth = arg_number(list_get(norms, "growth"), "growth");
    known.G_norm = sqrt(sum_squares((size_t)M * M, arg_vector(G, "G", (size_t)M * M)));
    c.rows.X = arg_inputs(&k, x, "x", &c.rows.N, &c.rows.columns);
    c.rows.y = NULL;
    c.rows.scale = arg_vector_or_null(scale, "scale", (size_t)c.rows.N);
    int columns;
    c.new_rows = arg_block(&k, x_new, "x_new", &columns);
    c.near_rows = arg_indices(near, "near", c.rows.N);
    c.rows_of = arg_indices(rows, "rows", (int)XLENGTH(near));
    if (columns != c.rows.columns || !Rf_isMatrix(rows) || TYPEOF(start) != INTSXP ||
        XLENGTH(start) != Rf_ncols(rows) + 1)
        Rf_error("internal: `x_new`, `rows` and `start` do not belong together");
    const int groups = Rf_ncols(rows);
    c.n_c = Rf_nrows(rows);
    c.start = INTEGER_RO(start);
    int largest = 0;
    for (int i = 0; i < groups; i++) {
        if (group_size(&c, i) < 1)
            Rf_error("internal: `start` must rise");
        largest = group_size(&c, i) > largest ? group_size(&c, i) : largest;
    }
    if (groups < 1 || c.start[0] != 0 || c.start[groups] != c.new_rows.n)
        Rf_error("internal: `start` must cover the rows of `x_new`");
    c.near = gather_near(&c.rows, c.near_rows, (int)XLENGTH(near));
    c.S = (int *)R_alloc((size_t)c.n_c * groups, sizeof *c.S);
    for (size_t i = 0; i < (size_t)c.n_c * groups; i++)
        c.S[i] = c.near_rows[c.rows_of[i] - 1] - 1;
    c.plan = arg_plan(control, c.rows.N);

    SEXP result = PROTECT(new_list(6, names));
    SET_VECTOR_ELT(result, 0, Rf_allocMatrix(REALSXP, c.n_c, c.new_rows.n));
    double *out[5];
    c.W = REAL(VECTOR_ELT(result, 0));
    for (int i = 0; i < 5; i++) {
        SET_VECTOR_ELT(result, i + 1, Rf_allocVector(REALSXP, c.new_rows.n));
        out[i] = REAL(VECTOR_ELT(result, i + 1));
    }
    c.point = (struct kriging *)R_alloc((size_t)c.new_rows.n, sizeof *c.point);
    run_groups(&c, groups, largest);
    run_rows(&c);
    certify_points(&c, &known, out);
    UNPROTECT(1);
    return result;
}
