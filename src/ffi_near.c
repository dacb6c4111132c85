#include "ffi.h"
#include "near_posterior.h"

/* Returns a near_field for the data `rows`. These rows are also its targets, the rows conditioned on neighbours. */
static struct near_field arg_field(struct inducing z, SEXP rows, SEXP s)
{
    struct near_field f = {.z = z, .rows = *arg_data(z.model, rows)};
    arg_neighbours(s, f.rows.N, &f.few, &f.s);
    f.targets = f.rows;
    return f;
}

/* Adds two elements to `result`: for every target the row numbers of its neighbours (`rows`), and their weights (u). */
static void pack_kept(SEXP result, struct near_field *f)
{
    f->near_rows = pack_integer_matrix(result, "rows", f->s, f->targets.N);
    f->u = pack_matrix(result, "u", f->s, f->targets.N);
}

/* Returns list(status, jitter, L, C, beta, minus_log). Each row is conditioned on its s nearest rows of lower rank. So
 * L^{-1} f(Z) has the posterior precision C C' and mean beta; minus_log is minus the log density of y times root
 * weights. keep >= 1 adds the neighbours `rows` of each row, their weights u (s x N), and conditional variances d [N].
 * keep = 2 also adds r = a - A_S u (M x N), with features a = L^{-1} k(Z, x) of a row and A_S of its neighbours. */
SEXP ffi_near(SEXP points, SEXP rows, SEXP s, SEXP rank, SEXP most_jitter, SEXP keep,
              SEXP control)
{
    struct near_posterior p = {.field = arg_field(arg_points(points), rows, s)};
    const int N = p.field.rows.N;
    p.field.plan = arg_plan(control, N);
    p.field.rank = arg_indices(rank, "rank", (size_t)N, 1, N);
    SEXP result = PROTECT(pack("u", "d", "rows", "r", NULL));
    if (arg_integer(keep, "keep")) {
        pack_kept(result, &p.field);
        p.d = pack_vector(result, "d", N);
    }
    if (arg_integer(keep, "keep") == 2)
        p.field.R = pack_matrix(result, "r", p.field.z.M, N);
    pack_factors(result, p.field.z.M, &p.L, &p.C, &p.beta);
    pack_status(result, near_posterior_run(&p, arg_number(most_jitter, "most_jitter")));
    pack_number(result, "jitter", p.field.z.jitter);
    pack_number(result, "minus_log", p.minus_log);
    return packed(result);
}

/* Prepares predictions at x_new. Adds to `result`: mean, var_near (variance given f(Z)), var_far (due to f(Z)). */
static struct near_predicting arg_predicting(SEXP near, SEXP rows, SEXP s, SEXP x_new,
                                             SEXP control, SEXP result)
{
    const struct posterior *posterior = arg_posterior(near);
    struct near_predicting p = {.field = arg_field(posterior->z, rows, s)};
    p.field.targets = *arg_new_rows(posterior->z.model, x_new);
    p.field.plan = arg_plan(control, p.field.targets.N);
    p.C = posterior->C;
    p.beta = posterior->beta;
    p.mean = pack_vector(result, "mean", p.field.targets.N);
    p.var_near = pack_vector(result, "var_near", p.field.targets.N);
    p.var_far = pack_vector(result, "var_far", p.field.targets.N);
    return p;
}

/* Reads neighbours that R has chosen, list(rows), or list(rows, cross, features, prior) for linear functionals of f:
 * their covariances with f at the neighbours and with L^{-1} f(Z), and prior variances. */
static void arg_given(struct near_field *f, SEXP given)
{
    const size_t s = (size_t)f->s, n = (size_t)f->targets.N;
    f->given = arg_indices(list_get(given, "rows"), "rows", s * n, 0, f->rows.N);
    if (XLENGTH(given) == 1)
        return;
    f->cross = list_vector(given, "cross", s * n);
    f->features = list_vector(given, "features", (size_t)f->z.M * n);
    f->prior = list_vector(given, "prior", n);
}

/* Returns list(status, mean, var_near, var_far) of f at the rows of x_new, each conditioned on its s nearest rows. The
 * variance is var_near (given f(Z)) plus var_far. If `keep`, adds the neighbours `rows`, their weights u, and r = a -
 * A_S u, with features a = L^{-1} k(Z, x) of a row and A_S of its neighbours. `given` is NULL or the argument of
 * arg_given(). */
SEXP ffi_near_predict(SEXP near, SEXP rows, SEXP s, SEXP x_new, SEXP given, SEXP keep,
                      SEXP control)
{
    SEXP result = PROTECT(pack("u", "rows", "r", NULL));
    struct near_predicting p = arg_predicting(near, rows, s, x_new, control, result);
    if (given != R_NilValue)
        arg_given(&p.field, given);
    if (arg_integer(keep, "keep")) {
        pack_kept(result, &p.field);
        p.field.R = pack_matrix(result, "r", p.field.z.M, p.field.targets.N);
    }
    pack_status(result, near_predicting_run(&p));
    return packed(result);
}

/* Returns what ffi_near_predict() returns, and `covariance`, the joint covariance of f at the rows of x_new. */
SEXP ffi_near_covariance(SEXP near, SEXP rows, SEXP s, SEXP x_new, SEXP control)
{
    SEXP result = PROTECT(pack(NULL));
    struct near_joint j = {.at = arg_predicting(near, rows, s, x_new, control, result)};
    const int n = j.at.field.targets.N;
    arg_check((double)n * (j.at.field.s + 1.0) <= 2147483647.0,
              "one covariance matrix must not have too many rows");
    j.covariance = pack_matrix(result, "covariance", n, n);
    pack_status(result, near_joint_run(&j));
    return packed(result);
}
