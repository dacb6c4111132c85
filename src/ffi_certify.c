#include <math.h>
#include "certify.h"
#include "crossing.h"
#include "ffi.h"
#include "linalg.h"
#include "local.h"
#include "norms.h"

SEXP ffi_norms(SEXP model_, SEXP z, SEXP posterior, SEXP rows, SEXP order, SEXP t1_rows,
               SEXP t2_rows, SEXP control)
{
    const struct model model = arg_model(model_);
    const struct posterior p = arg_posterior(&model, z, posterior);
    struct grouping g = {.z = p.z, .rows = arg_data(&model, rows), .beta = p.beta};
    const int N = g.rows.N, M = p.z.M;
    if (N < 1 || XLENGTH(order) != N)
        Rf_error("internal: `order` must be a permutation of the rows, at least one");
    g.rows.order = arg_indices(order, "order", 1, N);
    g.t1 = arg_integer(t1_rows, "t1_rows");
    g.t2 = arg_integer(t2_rows, "t2_rows");
    g.pass.plan = arg_plan(control, N);
    SEXP result = PROTECT(pack("T1", "kappa", "Psi", "lam", "vv", "spread", NULL));
    g.Psi = pack_matrix(result, "Psi", M, M);
    LAY_OUT(norms_open, &g);
    norms_run(&g);
    pack_number(result, "T1", g.T1);
    pack_number(result, "kappa", g.kappa);
    pack_number(result, "lam", g.lam);
    pack_number(result, "vv", g.vv_sum);
    pack_number(result, "spread", g.spread);
    UNPROTECT(1);
    return result;
}

SEXP ffi_cross(SEXP model_, SEXP z, SEXP posterior, SEXP rows_, SEXP x_new, SEXP control)
{
    const struct model model = arg_model(model_);
    const struct posterior p = arg_posterior(&model, z, posterior);
    const struct source rows = arg_rows(&model, rows_),
                        new_rows = arg_new_rows(&model, x_new);
    const int n = new_rows.N;
    struct pass pass = {.plan = arg_plan(control, rows.N), .rows = &rows, .z = &p.z};
    const struct crossing_rows self = {&p, source_block(&new_rows, 0, n, NULL),
                                       room((size_t)p.z.M * n)};
    double *sums = room(crossing_size(&self));
    const struct sink sink = crossing_sink(&self, pass.plan.block, sums);
    SEXP result = PROTECT(pack("cross", "gain", "size", NULL));
    LAY_OUT(pass_open, &pass);
    run_pass(&pass, 1, &sink);
    crossing_finish(&self, sums, pack_vector(result, "cross", n),
                    pack_vector(result, "gain", n), pack_vector(result, "size", n));
    UNPROTECT(1);
    return result;
}

/* numbers of a posterior that has G: list(G, ...), and list(weight, ...) */
static struct norms arg_norms(SEXP list, SEXP posterior, const struct posterior *p)
{
    const size_t M = (size_t)p->z.M;
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
    s.Psi = arg_vector(list_get(list, "Psi"), "Psi", M * M);
    s.G = arg_vector(list_get(posterior, "G"), "G", M * M);
    s.G_norm = sqrt(sum_squares(M * M, s.G));
    s.Psi_norm = sqrt(sum_squares(M * M, s.Psi));
    s.beta = sqrt(sum_squares(M, p->beta));
    return s;
}

/* room for the certificates of n of whatever it is */
static struct certified pack_certified(SEXP result, int n)
{
    return (struct certified){
        pack_vector(result, "mean", n),        pack_vector(result, "sor_variance", n),
        pack_vector(result, "unexplained", n), pack_vector(result, "mean_error", n),
        pack_vector(result, "var_lower", n),   pack_vector(result, "var_upper", n)};
}

static SEXP pack_certificates(void)
{
    return pack("mean", "sor_variance", "unexplained", "mean_error", "var_lower",
                "var_upper", NULL);
}

SEXP ffi_certify(SEXP model_, SEXP z, SEXP posterior, SEXP norms_, SEXP x, SEXP crossing,
                 SEXP control)
{
    const struct model model = arg_model(model_);
    const struct posterior p = arg_posterior(&model, z, posterior);
    const struct norms norms = arg_norms(norms_, posterior, &p);
    const struct source rows = arg_new_rows(&model, x);
    const int n = rows.N;
    struct pass pass = {.plan = arg_plan(control, n), .rows = &rows, .z = &p.z};
    struct crossings crossings;
    struct certifying self = {.posterior = &p, .norms = &norms};
    if (crossing != R_NilValue) {
        crossings.cross = arg_vector(list_get(crossing, "cross"), "cross", (size_t)n);
        crossings.gain = arg_vector(list_get(crossing, "gain"), "gain", (size_t)n);
        crossings.size = arg_vector(list_get(crossing, "size"), "size", (size_t)n);
        self.crossings = &crossings;
    }
    SEXP result = PROTECT(pack_certificates());
    self.to = pack_certified(result, n);
    const struct sink sink = certifying_sink(&self, pass.plan.block);
    LAY_OUT(pass_open, &pass);
    run_pass(&pass, 1, &sink);
    UNPROTECT(1);
    return result;
}

SEXP ffi_certify_features(SEXP model_, SEXP z, SEXP posterior, SEXP norms_, SEXP features,
                          SEXP prior_, SEXP size_)
{
    const struct model model = arg_model(model_);
    const struct posterior p = arg_posterior(&model, z, posterior);
    const struct norms norms = arg_norms(norms_, posterior, &p);
    int M, n;
    const double *A = arg_matrix(features, "features", &M, &n);
    const double *prior = arg_vector(prior_, "prior", (size_t)n);
    const double *size = arg_vector(size_, "size", (size_t)n);
    if (M != p.z.M)
        Rf_error("internal: `features` must have a row for each inducing point");
    SEXP result = PROTECT(pack_certificates());
    const struct certified to = pack_certified(result, n);
    certify_features(&p, &norms, n, 0, A, prior, size, NULL,
                     room(3 * (size_t)M * (size_t)n), &to);
    UNPROTECT(1);
    return result;
}

SEXP ffi_certify_kriged(SEXP model_, SEXP z, SEXP posterior, SEXP norms_, SEXP n_terms,
                        SEXP sum_w, SEXP sums)
{
    const struct model model = arg_model(model_);
    const struct posterior p = arg_posterior(&model, z, posterior);
    const struct norms norms = arg_norms(norms_, posterior, &p);
    const struct kriged point = {.prior = arg_number(list_get(sums, "prior"), "prior"),
                                 .size = arg_number(list_get(sums, "size"), "size"),
                                 .sor = arg_number(list_get(sums, "sor"), "sor"),
                                 .J = arg_number(list_get(sums, "J"), "J"),
                                 .wh = arg_number(list_get(sums, "wh"), "wh"),
                                 .ww = arg_number(list_get(sums, "ww"), "ww"),
                                 .w1 = arg_number(list_get(sums, "w1"), "w1"),
                                 .hh = arg_number(list_get(sums, "hh"), "hh"),
                                 .ch = arg_number(list_get(sums, "ch"), "ch"),
                                 .xh = arg_number(list_get(sums, "xh"), "xh"),
                                 .JQ = arg_number(list_get(sums, "JQ"), "JQ")};
    const struct kriging_bounds bounds =
        certify_kriged(&norms, p.z.model->s2, arg_count(n_terms, "n_terms"),
                       arg_number(sum_w, "sum_w"), &point);
    SEXP result = PROTECT(pack("J", "q", "var_lower", "var_upper", NULL));
    pack_number(result, "J", bounds.J);
    pack_number(result, "q", bounds.q);
    pack_number(result, "var_lower", bounds.var_lower);
    pack_number(result, "var_upper", bounds.var_upper);
    UNPROTECT(1);
    return result;
}

/* start: where each group's new rows begin, and the end */
static void arg_groups(struct local *l, SEXP start, SEXP rows)
{
    if (!Rf_isMatrix(rows) || TYPEOF(start) != INTSXP ||
        XLENGTH(start) != Rf_ncols(rows) + 1)
        Rf_error("internal: `rows` and `start` do not belong together");
    l->n_groups = Rf_ncols(rows);
    l->n_c = Rf_nrows(rows);
    l->start = INTEGER_RO(start);
    for (int i = 0; i < l->n_groups; i++)
        if (l->start[i + 1] <= l->start[i])
            Rf_error("internal: `start` must rise");
    if (l->n_groups < 1 || l->start[0] != 0 || l->start[l->n_groups] != l->rows_new.n)
        Rf_error("internal: `start` must cover the rows of `x_new`");
    l->member = arg_indices(rows, "rows", 1, l->near.N);
    l->S = (int *)R_alloc((size_t)l->n_c * l->n_groups, sizeof *l->S);
    l->point = (struct kriging *)R_alloc((size_t)l->rows_new.n, sizeof *l->point);
}

SEXP ffi_kriging(SEXP model_, SEXP z, SEXP posterior, SEXP norms_, SEXP rows, SEXP x_new_,
                 SEXP start, SEXP near, SEXP members, SEXP control)
{
    const struct model model = arg_model(model_);
    const struct posterior p = arg_posterior(&model, z, posterior);
    const struct norms norms = arg_norms(norms_, posterior, &p);
    const struct source x_new = arg_new_rows(&model, x_new_);
    struct local l = {.posterior = &p, .norms = &norms, .rows = arg_rows(&model, rows)};
    l.rows_new = source_block(&x_new, 0, x_new.N, NULL);
    l.near = l.rows;
    l.near.order = arg_indices(near, "near", 1, l.rows.N);
    l.near.N = (int)XLENGTH(near);
    if (x_new.columns != l.rows.columns)
        Rf_error("internal: `x_new` must have the columns of `x`");
    arg_groups(&l, start, members);
    l.pass.plan = arg_plan(control, l.rows.N);
    LAY_OUT(local_open, &l);
    SEXP result = PROTECT(pack("W", "J", "q", "ww", "var_lower", "var_upper", NULL));
    l.W = pack_matrix(result, "W", l.n_c, x_new.N);
    const struct local_bounds to = {
        pack_vector(result, "J", x_new.N), pack_vector(result, "q", x_new.N),
        pack_vector(result, "ww", x_new.N), pack_vector(result, "var_lower", x_new.N),
        pack_vector(result, "var_upper", x_new.N)};
    local_run(&l, &to);
    UNPROTECT(1);
    return result;
}
