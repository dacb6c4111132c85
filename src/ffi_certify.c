#include <math.h>
#include "certify.h"
#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"
#include "pairs.h"

/*
 * Norms in linear time.  The rows, in a random order, are cut into groups of n_b:
 *
 *     T1   |v|_E     <= sum_b sqrt(v_b'E_bb v_b)
 *     T2   |h_x|_E^2 <= C_x'Psi C_x,   Psi = sum_b (N / n_b) A_b E_bb A_b'
 *          |E|_2     <= sum_b |E_bb|_inf
 *
 * with groups of their own for T1 and T2.  One group of all rows makes them exact, at a price of
 * N^2.  Groups are walked over in blocks of `inner` rows.  T1 is rounded up: sqrt(v_b'E_bb v_b) is
 * known up to kappa = sqrt(slack sum w_n k(x_n,x_n) v_n^2), see certify.h.
 */
struct gathered { /* rows of one block, copied in the order asked for */
    double *X, *y, *scale, *A;
    struct block block;
};

struct norm_slot {
    struct gathered own, other;
    double *E, *AE, *Psi, *Kv, *row_sums;
};

struct norm_loop {
    struct plan plan;
    struct rows rows;
    struct inducing z;
    double s2, slack;
    const double *beta;
    const int *order; /* [N] from 1 */
    int inner, group_rows;
    double *v;                  /* [N], in that order: (y - A'beta) / s2 */
    double *Av;                 /* M a block of `inner` rows             */
    double *vKv, *vv, *largest; /* a number a piece      */
    struct norm_slot *slot;
};

static void gather(const struct norm_loop *c, int start, int n, struct gathered *g)
{
    const size_t N = (size_t)c->rows.N;
    for (int i = 0; i < n; i++) {
        const size_t from = (size_t)c->order[start + i] - 1;
        for (int j = 0; j < c->rows.columns; j++)
            g->X[(size_t)j * n + i] = c->rows.X[j * N + from];
        g->y[i] = c->rows.y[from];
        if (c->rows.scale != NULL)
            g->scale[i] = c->rows.scale[from];
    }
    g->block.n = n;
    g->block.X = g->X;
    g->block.ldx = n;
    g->block.y = g->y;
    g->block.scale = c->rows.scale == NULL ? NULL : g->scale;
}

static void gather_with_A(const struct norm_loop *c, int start, int n, struct gathered *g)
{
    const struct inducing *z = &c->z;
    gather(c, start, n, g);
    kernel_cross(z->kernel, z->M, z->Z, z->M, n, g->block.X, g->block.ldx, g->A);
    inducing_whiten(z, n, g->block.scale, g->A, g->A);
}

static int rows_from(const struct norm_loop *c, int start, int most)
{
    const int left = c->rows.N - start;
    return left < most ? left : most;
}

/* v and A v of a block of `inner` rows */
static void residual_block(void *context, int b, int slot)
{
    struct norm_loop *c = context;
    struct gathered *g = &c->slot[slot].own;
    const int start = b * c->inner, n = rows_from(c, start, c->inner), M = c->z.M;
    double *v = c->v + start;
    gather_with_A(c, start, n, g);
    block_response(&g->block, v);
    posterior_residual(M, n, g->A, c->beta, v, v);
    for (int i = 0; i < n; i++)
        v[i] /= c->s2;
    mult_Ax(M, n, 1.0, g->A, v, 0.0, c->Av + (size_t)b * M);
}

/* One block of `inner` rows of a group: rows start + i ... of a group of n_b rows from `start` */
struct piece {
    int start, n_b, i, n;
};

static struct piece piece_of(const struct norm_loop *c, int b)
{
    const int pieces = (c->group_rows - 1) / c->inner + 1; /* of a group */
    struct piece p;
    p.start = b / pieces * c->group_rows;
    p.n_b = rows_from(c, p.start, c->group_rows);
    p.i = b % pieces * c->inner;
    p.n = p.n_b - p.i < c->inner ? p.n_b - p.i : c->inner;
    return p;
}

/* the block's part of v_b'K_bb v_b: itself, and the rows before it in its group twice */
static void piece_T1(void *context, int b, int slot)
{
    struct norm_loop *c = context;
    struct norm_slot *s = c->slot + slot;
    const struct piece p = piece_of(c, b);
    const double *v = c->v + p.start;
    double vKv = 0.0, vv = 0.0;
    gather(c, p.start + p.i, p.n, &s->own);
    kernel_diagonal(c->z.kernel, p.n, s->own.block.X, s->own.block.ldx, s->Kv);
    scale_columns(1, p.n, s->own.block.scale, s->Kv);
    scale_columns(1, p.n, s->own.block.scale, s->Kv);
    for (int q = 0; q < p.n; q++)
        vv += s->Kv[q] * v[p.i + q] * v[p.i + q];
    for (int j = 0; j <= p.i; j += c->inner) {
        const struct gathered *other = &s->own;
        if (j < p.i) {
            gather(c, p.start + j, c->inner, &s->other);
            other = &s->other;
        }
        fill((size_t)p.n, 0.0, s->Kv);
        pairs_add(c->z.kernel, &s->own.block, &other->block, 1, v + j, s->E, s->Kv);
        vKv += (j < p.i ? 2.0 : 1.0) * dot((size_t)p.n, s->Kv, v + p.i);
    }
    c->vKv[b] = vKv;
    c->vv[b] = vv;
}

/* sum over the groups of sqrt(v_b'K_bb v_b - |A v_b|^2) + kappa_b; Av: M */
static void sum_T1(const struct norm_loop *c, double *Av, double *T1, double *kappa)
{
    const int N = c->rows.N, M = c->z.M, pieces = (c->group_rows - 1) / c->inner + 1;
    for (int first = 0; first * c->inner < N; first += pieces) {
        double vKv = 0.0, vv = 0.0;
        fill((size_t)M, 0.0, Av);
        for (int b = first; b < first + pieces && b * c->inner < N; b++) {
            vKv += c->vKv[b];
            vv += c->vv[b];
            add_scaled((size_t)M, 1.0, c->Av + (size_t)b * M, Av);
        }
        const double root = sqrt(c->slack * vv);
        *T1 += sqrt(fmax(vKv - sum_squares((size_t)M, Av), 0.0)) + root;
        *kappa += root;
    }
}

/* the block's part of T2, and its largest row sum of |E_bb| */
static void piece_T2(void *context, int b, int slot)
{
    struct norm_loop *c = context;
    struct norm_slot *s = c->slot + slot;
    const struct piece p = piece_of(c, b);
    const int M = c->z.M;
    double largest = 0.0;
    gather_with_A(c, p.start + p.i, p.n, &s->own);
    fill((size_t)M * p.n, 0.0, s->AE);
    fill((size_t)p.n, 0.0, s->row_sums);
    for (int j = 0; j < p.n_b; j += c->inner) {
        const int m = p.n_b - j < c->inner ? p.n_b - j : c->inner;
        const struct gathered *other = &s->own;
        if (j != p.i) {
            gather_with_A(c, p.start + j, m, &s->other);
            other = &s->other;
        }
        pairs_unexplained(c->z.kernel, &s->own.block, &other->block, M, s->own.A,
                          other->A, s->E);
        mult_AB(M, m, p.n, 1.0, other->A, s->E, 1.0, s->AE);
        for (int q = 0; q < p.n; q++)
            for (int r = 0; r < m; r++)
                s->row_sums[q] += fabs(s->E[(size_t)q * m + r]);
    }
    mult_ABt(M, p.n, M, (double)c->rows.N / p.n_b, s->AE, s->own.A, 1.0, s->Psi);
    for (int q = 0; q < p.n; q++)
        largest = fmax(largest, s->row_sums[q]);
    c->largest[b] = largest;
}

static double sum_lam(const struct norm_loop *c)
{
    const int N = c->rows.N, pieces = (c->group_rows - 1) / c->inner + 1;
    const int groups = (N - 1) / c->group_rows + 1;
    double lam = 0.0;
    for (int g = 0; g < groups; g++) {
        double largest = 0.0;
        for (int b = g * pieces; b < (g + 1) * pieces && b < c->plan.n_blocks; b++)
            largest = fmax(largest, c->largest[b]);
        lam += largest;
    }
    return lam;
}

static double *room(size_t n)
{
    return (double *)R_alloc(n > 0 ? n : 1, sizeof(double));
}

static void make_gathered(const struct norm_loop *c, struct gathered *g)
{
    const size_t n = (size_t)c->inner;
    g->X = room(n * c->rows.columns);
    g->y = room(n);
    g->scale = room(n);
    g->A = room(n * c->z.M);
}

static void make_norm_slots(struct norm_loop *c)
{
    const size_t n = (size_t)c->inner, M = (size_t)c->z.M;
    c->slot = (struct norm_slot *)R_alloc((size_t)c->plan.threads, sizeof *c->slot);
    for (int i = 0; i < c->plan.threads; i++) {
        struct norm_slot *s = c->slot + i;
        make_gathered(c, &s->own);
        make_gathered(c, &s->other);
        s->E = room(n * n);
        s->AE = room(M * n);
        s->Psi = room(M * M);
        s->Kv = room(n);
        s->row_sums = room(n);
        fill(M * M, 0.0, s->Psi);
    }
}

/* one step on every piece of groups of so many rows; threads as the slots were made for */
static void run_groups(struct norm_loop *c, int group_rows, void (*run)(void *, int, int))
{
    const struct step steps[] = {{run, 1}};
    const int N = c->rows.N, pieces = (group_rows - 1) / c->inner + 1,
              last = N - (N - 1) / group_rows * group_rows;
    struct plan plan = c->plan;
    c->group_rows = group_rows;
    plan.n_blocks = (N - 1) / group_rows * pieces + (last - 1) / c->inner + 1;
    if (plan.threads > plan.n_blocks)
        plan.threads = plan.n_blocks;
    c->plan.n_blocks = plan.n_blocks;
    run_blocks(&plan, 1, steps, c);
}

/* rows of groups of about that size, as equal as can be */
static int even_groups(int N, int rows)
{
    const int groups = N / rows + (N % rows > 0);
    return N / groups + (N % groups > 0);
}

/* list(T1, kappa, Psi, lam, vv, spread) of the posterior with L and beta; rows in T1's and T2's
 * groups (0: none, and T1 infinite, lam infinite) */
SEXP ffi_norms(SEXP kernel, SEXP z, SEXP L, SEXP beta, SEXP s2, SEXP x, SEXP y,
               SEXP scale, SEXP order, SEXP t1_rows, SEXP t2_rows, SEXP control)
{
    static const char *const names[] = {"T1", "kappa", "Psi", "lam", "vv", "spread"};
    const struct kernel k = arg_kernel(kernel);
    struct norm_loop c;
    c.z.kernel = &k;
    c.z.Z = arg_inputs(&k, z, "z", &c.z.M, &c.z.columns);
    c.z.jitter = 0.0;
    const int M = c.z.M;
    const size_t MM = (size_t)M * M;
    c.z.L = arg_vector(L, "L", MM);
    c.beta = arg_vector(beta, "beta", (size_t)M);
    c.s2 = arg_number(s2, "s2");
    c.rows.X = arg_inputs(&k, x, "x", &c.rows.N, &c.rows.columns);
    c.rows.y = arg_vector(y, "y", (size_t)c.rows.N);
    c.rows.scale = arg_vector_or_null(scale, "scale", (size_t)c.rows.N);
    if (TYPEOF(order) != INTSXP || XLENGTH(order) != c.rows.N)
        Rf_error("internal: `order` must be a permutation of the rows");
    c.order = INTEGER_RO(order);
    if (c.rows.N < 1)
        Rf_error("internal: `x` must have rows");
    for (int i = 0; i < c.rows.N; i++)
        if (c.order[i] < 1 || c.order[i] > c.rows.N)
            Rf_error("internal: `order` must be a permutation of the rows");
    const int N = c.rows.N, t1 = arg_integer(t1_rows, "t1_rows"),
              t2_asked = arg_integer(t2_rows, "t2_rows"),
              t2 = t2_asked > 0 ? even_groups(N, t2_asked) : 0;
    c.slack = certify_slack(M, N);
    c.plan = plan_blocks(control, N);
    c.inner = t2 > 0 && t2 < c.plan.block ? t2 : c.plan.block;
    make_norm_slots(&c);
    const size_t most = 3 * ((size_t)N / c.inner + 1); /* pieces, at most */
    c.v = room((size_t)N);
    c.Av = room((size_t)M * (N / c.inner + 1));
    c.vKv = room(most);
    c.vv = room(most);
    c.largest = room(most);
    double T1 = t1 > 0 ? 0.0 : R_PosInf, kappa = 0.0;

    run_groups(&c, c.inner, residual_block);
    if (t1 > 0) {
        const int whole = t1 / c.inner * c.inner; /* T1 reads A v by block */
        run_groups(&c, t1 >= N ? N : whole > 0 ? whole : c.inner, piece_T1);
        sum_T1(&c, room((size_t)M), &T1, &kappa);
    }
    if (t2 > 0)
        run_groups(&c, t2, piece_T2);
    const double lam = t2 > 0 ? sum_lam(&c) : R_PosInf;

    SEXP result = PROTECT(new_list(6, names));
    SET_VECTOR_ELT(result, 2, Rf_allocMatrix(REALSXP, M, M));
    double *Psi = REAL(VECTOR_ELT(result, 2));
    fill(MM, 0.0, Psi);
    for (int i = 0; i < c.plan.threads; i++)
        add_scaled(MM, 1.0, c.slot[i].Psi, Psi);
    const int last = t2 > 0 ? N - (N - 1) / t2 * t2 : N; /* rows of the smallest group */
    SET_VECTOR_ELT(result, 0, Rf_ScalarReal(T1));
    SET_VECTOR_ELT(result, 1, Rf_ScalarReal(kappa));
    SET_VECTOR_ELT(result, 3, Rf_ScalarReal(lam));
    SET_VECTOR_ELT(result, 4, Rf_ScalarReal(sum_squares((size_t)N, c.v)));
    SET_VECTOR_ELT(result, 5, Rf_ScalarReal((double)N / last));
    UNPROTECT(1);
    return result;
}

/* ---- certificates at new rows ------------------------------------------------------------ */

struct certifying {
    struct plan plan;
    struct rows rows;
    struct posterior posterior;
    struct norms norms;
    double **K, **work, *out[6];
    struct crossing *crossing; /* [N] or NULL */
    struct certificate **certificate;
};

static void certifying_kernels(void *context, int b, int slot)
{
    struct certifying *c = context;
    const struct inducing *z = &c->posterior.z;
    const struct block block = plan_block(&c->plan, &c->rows, b);
    kernel_cross(z->kernel, z->M, z->Z, z->M, block.n, block.X, block.ldx, c->K[slot]);
}

static void certifying_rows(void *context, int b, int slot)
{
    struct certifying *c = context;
    const size_t start = (size_t)b * c->plan.block;
    const struct block block = plan_block(&c->plan, &c->rows, b);
    struct certificate *certificate = c->certificate[slot];
    certify_rows(&c->posterior, &c->norms, block.n, block.X, block.ldx,
                 c->crossing == NULL ? NULL : c->crossing + start, c->K[slot],
                 c->work[slot], c->out[0] + start, c->out[1] + start, c->out[2] + start,
                 certificate);
    for (int i = 0; i < block.n; i++) {
        c->out[3][start + i] = certificate[i].mean_error;
        c->out[4][start + i] = certificate[i].var_lower;
        c->out[5][start + i] = certificate[i].var_upper;
    }
}

static struct norms arg_norms(SEXP list, int M)
{
    struct norms s;
    const struct {
        const char *name;
        double *number;
    } numbers[] = {{"weight", &s.weight},
                   {"most", &s.most},
                   {"spread", &s.spread},
                   {"slack", &s.slack},
                   {"growth", &s.growth},
                   {"c", &s.c},
                   {"t", &s.t},
                   {"lam", &s.lam},
                   {"w_E", &s.w_E},
                   {"w_norm", &s.w_norm},
                   {"beta_error", &s.beta_error},
                   {"alpha", &s.alpha}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *numbers[i].number = arg_number(list_get(list, numbers[i].name), numbers[i].name);
    s.Psi = arg_vector(list_get(list, "Psi"), "Psi", (size_t)M * M);
    return s;
}

/* list(cross, gain, size) as ffi_cross() gives it */
static struct crossing *arg_crossing(SEXP list, int N)
{
    const double *part[3];
    static const char *const names[] = {"cross", "gain", "size"};
    if (list == R_NilValue)
        return NULL;
    for (int i = 0; i < 3; i++)
        part[i] = arg_vector(list_get(list, names[i]), names[i], (size_t)N);
    struct crossing *crossing =
        (struct crossing *)R_alloc((size_t)N, sizeof(struct crossing));
    for (int i = 0; i < N; i++) {
        crossing[i].cross = part[0][i];
        crossing[i].gain = part[1][i];
        crossing[i].size = part[2][i];
    }
    return crossing;
}

/* list(mean, sor_variance, unexplained, mean_error, var_lower, var_upper) */
SEXP ffi_certify(SEXP kernel, SEXP z, SEXP L, SEXP C, SEXP beta, SEXP s2, SEXP G,
                 SEXP norms, SEXP x, SEXP crossing, SEXP control)
{
    static const char *const names[] = {"mean",       "sor_variance", "unexplained",
                                        "mean_error", "var_lower",    "var_upper"};
    const struct step steps[] = {{certifying_kernels, 0}, {certifying_rows, 1}};
    const struct kernel k = arg_kernel(kernel);
    struct certifying c;
    struct posterior *p = &c.posterior;
    *p = arg_posterior(&k, z, L, C, s2);
    const int M = p->z.M;
    p->beta = arg_vector(beta, "beta", (size_t)M);
    c.norms = arg_norms(norms, M);
    c.norms.G = arg_vector(G, "G", (size_t)M * M);
    c.norms.G_norm = sqrt(sum_squares((size_t)M * M, c.norms.G));
    c.norms.Psi_norm = sqrt(sum_squares((size_t)M * M, c.norms.Psi));
    c.norms.beta = sqrt(sum_squares((size_t)M, p->beta));
    c.rows.X = arg_inputs(&k, x, "x", &c.rows.N, &c.rows.columns);
    c.rows.y = c.rows.scale = NULL;
    c.crossing = arg_crossing(crossing, c.rows.N);
    c.plan = plan_blocks(control, c.rows.N);
    c.K = (double **)R_alloc((size_t)c.plan.threads, sizeof *c.K);
    c.work = (double **)R_alloc((size_t)c.plan.threads, sizeof *c.work);
    c.certificate =
        (struct certificate **)R_alloc((size_t)c.plan.threads, sizeof *c.certificate);
    for (int i = 0; i < c.plan.threads; i++) {
        c.K[i] = room((size_t)M * c.plan.block);
        c.work[i] = room(certify_size(M, c.plan.block));
        c.certificate[i] = (struct certificate *)R_alloc((size_t)c.plan.block,
                                                         sizeof(struct certificate));
    }
    SEXP result = PROTECT(new_list(6, names));
    for (int i = 0; i < 6; i++) {
        SET_VECTOR_ELT(result, i, Rf_allocVector(REALSXP, c.rows.N));
        c.out[i] = REAL(VECTOR_ELT(result, i));
    }
    run_blocks(&c.plan, 2, steps, &c);
    UNPROTECT(1);
    return result;
}
