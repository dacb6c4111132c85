#include <math.h>
#include "certify.h"
#include "ffi.h"
#include "linalg.h"
#include "local.h"
#include "norms.h"

/* Returns list(T1, kappa, Psi, lam, vv, spread) for certificates. Let A = L^{-1} k(Z, X), E = K - A'A be the residual
 * prior covariance, v = (y - A'beta) / s2 for the posterior's beta, vv = |v|^2. T1 >= sqrt(v'E v), including kappa for
 * rounding; c'A E A'c <= c'Psi c for every c; lam >= |E|_2. T1 sums over groups of t1_rows rows in the given order, Psi
 * and lam of t2_rows rows; `spread` is N over the smallest group's size. If t1_rows (t2_rows) is 0, T1 (lam) is Inf. */
SEXP ffi_norms(SEXP posterior, SEXP rows, SEXP order, SEXP t1_rows, SEXP t2_rows,
               SEXP control)
{
    const struct posterior *p = arg_posterior(posterior);
    struct row_groups g = {
        .z = p->z, .rows = *arg_data(p->z.model, rows), .beta = p->beta};
    const int N = g.rows.N;
    arg_check(N > 0, "there must be a row");
    g.rows.order = arg_indices(order, "order", (size_t)N, 1, N);
    g.t1 = arg_integer(t1_rows, "t1_rows");
    g.t2 = arg_integer(t2_rows, "t2_rows");
    g.pass.plan = arg_plan(control, N);
    SEXP result = PROTECT(pack(NULL));
    g.Psi = pack_matrix(result, "Psi", g.z.M, g.z.M);
    norms_run(&g);
    pack_number(result, "T1", g.T1);
    pack_number(result, "kappa", g.kappa);
    pack_number(result, "lam", g.lam);
    pack_number(result, "vv", g.vv_sum);
    pack_number(result, "spread", g.spread);
    return packed(result);
}

/* Returns list(cross, gain, size) at the rows x of x_new, which narrow certificates: h_x'e_x, e_x'(A'A + s2 I)^{-1} e_x
 * and |e_x|^2 for A = L^{-1} k(Z, X), e_x = k(X, x) - A'a, h_x = A'(s2 I + A A')^{-1} a and a = L^{-1} k(Z, x). */
SEXP ffi_cross(SEXP posterior, SEXP rows, SEXP x_new, SEXP control)
{
    const struct posterior *p = arg_posterior(posterior);
    const struct block b = source_whole(arg_new_rows(p->z.model, x_new));
    const int n = b.n;
    struct pass pass = pass_over(arg_rows(p->z.model, rows), &p->z, control);
    SEXP result = PROTECT(pack(NULL));
    crossing_run(p, &b, &pass, pack_vector(result, "cross", n),
                 pack_vector(result, "gain", n), pack_vector(result, "size", n));
    return packed(result);
}

#define NUMBER(name) .name = list_number(list, #name)

/* Reads the norms that certificates need from list(weight, most, ...), and G (M x M) from the posterior. */
static struct norms arg_norms(SEXP list, SEXP posterior, const struct posterior *p)
{
    const size_t M = (size_t)p->z.M;
    struct norms s = {NUMBER(weight), NUMBER(most),   NUMBER(spread),     NUMBER(slack),
                      NUMBER(growth), NUMBER(c),      NUMBER(t),          NUMBER(lam),
                      NUMBER(w_E),    NUMBER(w_norm), NUMBER(beta_error), NUMBER(alpha),
                      NUMBER(unit),   NUMBER(K_norm)};
    s.Psi = list_vector(list, "Psi", M * M);
    s.G = list_vector(posterior, "G", M * M);
    s.G_norm = sqrt(sum_squares(M * M, s.G));
    s.Psi_norm = sqrt(sum_squares(M * M, s.Psi));
    s.beta = sqrt(sum_squares(M, p->beta));
    return s;
}

static SEXP pack_certified(int n, struct certified *to)
{
    SEXP result = PROTECT(pack(NULL));
    *to = (struct certified){
        pack_vector(result, "mean", n),        pack_vector(result, "sor_variance", n),
        pack_vector(result, "unexplained", n), pack_vector(result, "mean_error", n),
        pack_vector(result, "var_lower", n),   pack_vector(result, "var_upper", n)};
    UNPROTECT(1);
    return result;
}

static struct crossings arg_crossings(SEXP list, int n)
{
    if (list == R_NilValue)
        return (struct crossings){0};
    return (struct crossings){list_vector(list, "cross", (size_t)n),
                              list_vector(list, "gain", (size_t)n),
                              list_vector(list, "size", (size_t)n)};
}

/* Reads n linear functionals of f, for N rows of data and M inducing points. The list may be NULL. */
static struct functionals arg_functionals(SEXP list, int N, int M, int n)
{
    if (list == R_NilValue)
        return (struct functionals){0};
    return (struct functionals){list_vector(list, "cross", (size_t)N * n),
                                list_vector(list, "features", (size_t)M * n),
                                list_vector(list, "prior", (size_t)n),
                                list_vector(list, "size", (size_t)n),
                                arg_count(list_get(list, "terms"), "terms")};
}

/* Returns list(mean, sor_variance, unexplained, mean_error, var_lower, var_upper) at the rows of x: prediction, SoR
 * variance, residual prior variance, a bound on the mean's error and bounds on the exact variance. `posterior` has an
 * element G = A A', A = L^{-1} k(Z, X). `crossing` is the result of ffi_cross() at these rows, or NULL. `of` is
 * NULL, or lists functionals instead of f at the rows, see arg_functionals(); its `cross` has length 0. */
SEXP ffi_certify(SEXP posterior, SEXP norms_, SEXP x, SEXP of, SEXP crossing,
                 SEXP control)
{
    const struct posterior *p = arg_posterior(posterior);
    const struct norms norms = arg_norms(norms_, posterior, p);
    struct certifying self = {.posterior = p, .norms = &norms};
    struct pass pass = pass_at(x, &p->z, control);
    const int M = p->z.M,
              n = of == R_NilValue ? pass.rows->N : (int)XLENGTH(list_get(of, "prior"));
    const struct functionals f = arg_functionals(of, 0, M, n);
    const struct crossings crossings = arg_crossings(crossing, n);
    SEXP result = PROTECT(pack_certified(n, &self.to));
    if (of != R_NilValue) {
        certify_features(&self, n, 0, f.features, f.prior, f.size,
                         alloc_doubles(3 * (size_t)M * (size_t)n));
    } else {
        self.crossings = crossing == R_NilValue ? NULL : &crossings;
        pass_run(&pass, certifying_sink(&self));
    }
    return packed(result);
}

/* Reads the groups of new rows: group i has rows start[i] to start[i + 1] - 1, from 0, and data rows members[, i]. */
static void arg_groups(struct local *l, SEXP start, SEXP members)
{
    arg_check(Rf_isMatrix(members) && TYPEOF(start) == INTSXP &&
                  XLENGTH(start) == Rf_ncols(members) + 1,
              "`members` and `start` must belong together");
    const int n_groups = l->n_groups = Rf_ncols(members);
    const size_t size = (size_t)XLENGTH(members);
    l->n_c = Rf_nrows(members);
    l->start = INTEGER_RO(start);
    for (int i = 0; i < n_groups; i++)
        arg_check(l->start[i + 1] > l->start[i], "`start` must rise");
    arg_check(n_groups > 0 && l->start[0] == 0 && l->start[n_groups] == l->rows_new.n,
              "`start` must cover the rows of `x_new`");
    l->member = arg_indices(members, "members", size, 1, l->near.N);
    l->S = alloc_integers(size);
    l->point = (struct kriged *)R_alloc((size_t)l->rows_new.n, sizeof *l->point);
}

/* Returns list(W, J, q, ww, var_lower, var_upper) for each row x of x_new. Local kriging predicts f(x) by w'y with
 * weights w (column of W) of a few data rows. J is at least the error variance of w'y, q at least J minus the exact
 * variance, ww = |w|^2, and var_lower and var_upper are bounds on the exact variance. Group i has the rows start[i] to
 * start[i + 1] - 1 of x_new, from 0, and uses the data rows near[members[, i]]. Unless NULL, `of` has a functional of f
 * for each row of x_new, which replaces f(x). */
SEXP ffi_kriging(SEXP posterior, SEXP norms_, SEXP rows, SEXP x_new, SEXP of, SEXP start,
                 SEXP near, SEXP members, SEXP control)
{
    const struct posterior *p = arg_posterior(posterior);
    const struct norms norms = arg_norms(norms_, posterior, p);
    const struct source *new_rows = arg_new_rows(p->z.model, x_new);
    const int n = new_rows->N;
    struct local l = {.posterior = p, .norms = &norms};
    l.rows = l.near = *arg_rows(p->z.model, rows);
    l.near.N = (int)XLENGTH(near);
    l.near.order = arg_indices(near, "near", (size_t)l.near.N, 1, l.rows.N);
    arg_check(new_rows->columns == l.rows.columns,
              "`x_new` must have the columns of `x`");
    l.rows_new = source_whole(new_rows);
    l.of = arg_functionals(of, l.rows.N, p->z.M, n);
    arg_groups(&l, start, members);
    l.pass.plan = arg_plan(control, l.rows.N);
    SEXP result = PROTECT(pack(NULL));
    l.W = pack_matrix(result, "W", l.n_c, n);
    const struct local_bounds to = {
        pack_vector(result, "J", n), pack_vector(result, "q", n),
        pack_vector(result, "ww", n), pack_vector(result, "var_lower", n),
        pack_vector(result, "var_upper", n)};
    local_run(&l, &to);
    return packed(result);
}
