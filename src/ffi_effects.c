#include "effects.h"
#include "ffi.h"
#include "integrated.h"
#include "linalg.h"

static struct grouping arg_grouping(SEXP list, int columns, int first)
{
    struct grouping g = {.first = first};
    SEXP design = list_get(list, "design");
    g.column = arg_integer(list_get(list, "column"), "column") - 1;
    g.levels = arg_count(list_get(list, "levels"), "levels");
    g.p = (int)XLENGTH(design);
    g.design = arg_indices(design, "design", (size_t)g.p, 0, columns);
    g.root = list_vector(list, "root", (size_t)g.p * g.p);
    arg_check(g.p > 0, "`design` must not be empty");
    arg_check(g.column >= 0 && g.column < columns, "`column` must be among the columns");
    return g;
}

/* Reads a list of groupings of rows with `columns` columns, for a posterior on M inducing points. */
static struct effects arg_effects(SEXP list, int columns, int M)
{
    struct effects e = {.M = M, .m = M, .n = Rf_length(list)};
    int entries = 0;
    arg_check(TYPEOF(list) == VECSXP && e.n > 0, "there must be a grouping");
    struct grouping *grouping = (struct grouping *)R_alloc((size_t)e.n, sizeof *grouping);
    for (int i = 0; i < e.n; i++) {
        grouping[i] = arg_grouping(VECTOR_ELT(list, i), columns, e.q);
        entries += grouping[i].p;
        arg_check(entries <= most_entries, "a row must not have too many effects");
        const double q = (double)e.q + (double)grouping[i].p * grouping[i].levels;
        arg_check(q < 2147483647.0 / (e.M + 1), "there must not be too many effects");
        e.q = (int)q;
        if (i > 0)
            e.m += grouping[i].p * grouping[i].levels;
    }
    e.grouping = grouping;
    return e;
}

static struct effect_sums arg_effect_sums(const struct effects *e, SEXP sums)
{
    return effects_sums(e, arg_vector(sums, "sums", effects_size(e)));
}

/* Returns list(status, jitter, L, sums): the Cholesky factor L of k(z, z) with the jitter, and sums over rows, in the
 * order of effects_size() (effects.h). `effects` has a list(column, levels, design, root) for each grouping; design has
 * numbers of columns of x, 0 for an intercept, and root is the Cholesky factor of the effects' prior covariance. */
SEXP ffi_effect_sums(SEXP points_, SEXP effects, SEXP rows_, SEXP most_jitter,
                     SEXP control)
{
    struct inducing points = arg_points(points_);
    const struct source *rows = arg_data(points.model, rows_);
    struct effects e = arg_effects(effects, rows->columns, points.M);
    struct pass pass = pass_over(rows, &points, control);
    struct stats stats;
    e.kernel = points.model->kernel;
    arg_check((double)effects_size(&e) <= 2147483647.0, "the sums must not be too many");
    if (effects_size(&e) * sizeof(double) > pass.plan.memory)
        pass.plan.threads = 1; /* each thread has its own sums */
    SEXP result = PROTECT(pack(NULL));
    double *L = pack_matrix(result, "L", points.M, points.M),
           *sums = pack_vector(result, "sums", (int)effects_size(&e));
    fill(effects_size(&e), 0.0, sums);
    enum status status = inducing_ladder(&points, arg_number(most_jitter, "most"), L);
    if (status == STATUS_OK) {
        pass_run(&pass, effect_sums_sink(&e, sums));
        status = stats_finish(points.M, 0, sums, &stats);
    }
    pack_status(result, status);
    pack_number(result, "jitter", points.jitter);
    return packed(result);
}

static struct pass over_levels(const struct effects *e, SEXP control)
{
    return (struct pass){.plan = arg_plan(control, e->grouping->levels)};
}

/* Eliminates (integrates out) the effects of the first grouping. F has the features of inducing points and of the other
 * groupings. Returns list(eliminated, h, quad, logdet, U): what elimination subtracts from F F' / s2, from F y / s2 and
 * from y'y / s2, a sum of log determinants over levels l, and for each level U_l, U_l'U_l the covariance of its effects
 * given all others. M is the number of inducing points, `columns` that of columns of x. */
SEXP ffi_eliminate(SEXP M, SEXP columns, SEXP effects, SEXP sums, SEXP s2, SEXP control)
{
    const struct effects e =
        arg_effects(effects, arg_count(columns, "columns"), arg_count(M, "M"));
    const int p = e.grouping->p;
    SEXP result = PROTECT(pack(NULL));
    const struct eliminating to = {&e, arg_effect_sums(&e, sums), arg_number(s2, "s2"),
                                   pack_matrix(result, "U", p, p * e.grouping->levels)};
    struct pass pass = over_levels(&e, control);
    double *found = alloc_doubles(eliminate_size(&e)), *h = found + (size_t)e.m * e.m;
    pass_run(&pass, eliminating_sink(&to, found));
    mirror_lower(e.m, found);
    copy((size_t)e.m * e.m, found, pack_matrix(result, "eliminated", e.m, e.m));
    copy((size_t)e.m, h, pack_vector(result, "h", e.m));
    pack_number(result, "quad", h[e.m]);
    pack_number(result, "logdet", h[e.m + 1]);
    return packed(result);
}

static struct solving arg_solving(const struct effects *e, SEXP posterior, double s2)
{
    const size_t m = (size_t)e->m, p = (size_t)e->grouping->p;
    return (struct solving){.effects = e,
                            .from = arg_effect_sums(e, list_get(posterior, "sums")),
                            .s2 = s2,
                            .U = list_vector(posterior, "U", p * p * e->grouping->levels),
                            .gamma = list_vector(posterior, "gamma", m),
                            .W = list_vector(posterior, "W", m * m)};
}

/* Returns list(b, covariance), the posterior mean and covariance of each level's effects of the first grouping.
 * posterior is list(sums, U, gamma, W): `sums` of ffi_effect_sums(), U of ffi_eliminate(), and the mean gamma and
 * covariance W W' of the inducing variables and the effects of other groupings. */
SEXP ffi_effect_solve(SEXP M, SEXP columns, SEXP effects, SEXP posterior, SEXP s2,
                      SEXP control)
{
    const struct effects e =
        arg_effects(effects, arg_count(columns, "columns"), arg_count(M, "M"));
    const int p = e.grouping->p, q = p * e.grouping->levels;
    struct solving to = arg_solving(&e, posterior, arg_number(s2, "s2"));
    struct pass pass = over_levels(&e, control);
    SEXP result = PROTECT(pack(NULL));
    to.b = pack_vector(result, "b", q);
    to.covariance = pack_matrix(result, "covariance", p, q);
    pass_run(&pass, solving_sink(&to));
    return packed(result);
}

/* Returns list(mean, sor_variance, unexplained) for f plus effects at the rows of x; the variance is sor_variance plus
 * unexplained, the residual prior variance. If `keep`, adds `features` and `own`. The covariance of two rows, without
 * residual prior covariance, is the inner product of their columns in both. `posterior` has the elements sums, U, gamma
 * and W like that of ffi_effect_solve(), L of ffi_effect_sums(), and the mean b of all effects. */
SEXP ffi_effect_predict(SEXP points_, SEXP effects, SEXP posterior, SEXP x, SEXP keep,
                        SEXP control)
{
    struct inducing z = arg_points(points_);
    const struct source *rows = arg_new_rows(z.model, x);
    const struct effects e = arg_effects(effects, rows->columns, z.M);
    struct effect_predicting to = {.z = &z,
                                   .of = arg_solving(&e, posterior, z.model->s2)};
    struct pass pass = pass_over(rows, &z, control);
    SEXP result = PROTECT(pack(NULL));
    z.L = list_vector(posterior, "L", (size_t)z.M * z.M);
    to.b = list_vector(posterior, "b", (size_t)e.q);
    to.mean = pack_vector(result, "mean", rows->N);
    to.variance = pack_vector(result, "sor_variance", rows->N);
    to.unexplained = pack_vector(result, "unexplained", rows->N);
    if (arg_integer(keep, "keep")) {
        to.features = pack_matrix(result, "features", e.m, rows->N);
        to.own = pack_matrix(result, "own", e.grouping->p, rows->N);
    }
    pass_run(&pass, effect_predicting_sink(&to));
    return packed(result);
}

static void check_levels(const struct effects *e, const struct source *rows)
{
    int column[most_entries];
    double value[most_entries];
    for (int i = 0; i < rows->N; i++)
        for (int k = effects_row(e, rows->X + i, rows->ldx, column, value) - 1; k >= 0;
             k--)
            if (column[k] < 0)
                Rf_error("internal: row %d has no level", i + 1);
}

/* Returns list(status, value, score, information, V, b): the Vecchia log likelihood with the random effects integrated
 * out, its derivatives, its expected information, and posterior covariance and mean of the whitened effects. */
SEXP ffi_integrated(SEXP model, SEXP effects, SEXP rows, SEXP weights, SEXP noise_basis,
                    SEXP targets, SEXP neighbours, SEXP slopes, SEXP control)
{
    struct integrated g = {.l = arg_likelihood(model, rows, weights, noise_basis, targets,
                                               neighbours, slopes, control)};
    struct likelihood *l = &g.l;
    struct vecchia whole;
    const struct effects e = arg_effects(effects, l->rows->columns, 0);
    const size_t size = ((size_t)l->s + 1) * l->count;
    check_levels(&e, l->rows);
    g.e = &e;
    g.u = alloc_doubles(size);
    g.given = alloc_doubles(size);
    g.d = alloc_doubles((size_t)l->count);
    g.H = alloc_doubles((size_t)e.q * e.q);
    SEXP result = PROTECT(pack(NULL));
    g.V = pack_matrix(result, "V", e.q, e.q);
    g.b = pack_vector(result, "b", e.q);
    pack_status(result, integrated_run(&g, &whole));
    pack_number(result, "value", g.value);
    pack_vecchia(result, &whole);
    return packed(result);
}

/* Returns list(P, v, yy, log_d), sums over rows that are decorrelated from their neighbours: products of features,
 * features times responses, squared responses, and logs of conditional variances. `near` has the neighbours, their
 * coefficients u and the conditional variances d, from ffi_near(). */
SEXP ffi_near_effects(SEXP model_, SEXP effects, SEXP rows_, SEXP near, SEXP control)
{
    const struct model *model = arg_model(model_);
    const struct source *rows = arg_data(model, rows_);
    int s, N, M, columns;
    struct decorrelated F = {.rows = *rows, .sign = 1.0};
    F.u = arg_matrix(list_get(near, "u"), "u", &s, &N);
    F.s = F.step = s;
    F.d = list_vector(near, "d", (size_t)rows->N);
    F.R = arg_matrix(list_get(near, "r"), "r", &M, &columns);
    arg_check(N == rows->N && columns == N, "`near` must have a column for each row");
    F.near = arg_indices(list_get(near, "rows"), "rows", (size_t)s * N, 0, N);
    const struct effects e = arg_effects(effects, rows->columns, M);
    F.e = &e;
    check_levels(&e, rows);
    const int k = M + e.q;
    const size_t size = decorrelated_size(&e);
    struct pass pass = pass_over(rows, NULL, control);
    if (size * sizeof(double) > pass.plan.memory)
        pass.plan.threads = 1; /* each thread has its own sums */
    double *sums = alloc_doubles(size);
    pass_run(&pass, decorrelated_sink(&F, sums));
    SEXP result = PROTECT(pack(NULL));
    double *P = pack_matrix(result, "P", k, k);
    copy((size_t)k * k, sums, P);
    for (int j = 0; j < k; j++) /* only the upper triangle was computed */
        for (int i = j + 1; i < k; i++)
            P[(size_t)j * k + i] = P[(size_t)i * k + j];
    copy((size_t)k, sums + (size_t)k * k, pack_vector(result, "v", k));
    pack_number(result, "yy", sums[size - 2]);
    pack_number(result, "log_d", sums[size - 1]);
    return packed(result);
}

/* Reads `start`, which has for each level the number of its first column in V, from 1, and then `entries` + 1. */
static const int *arg_starts(SEXP x, int entries)
{
    const int *start = arg_indices(x, "start", (size_t)XLENGTH(x), 1, entries + 1);
    const int levels = (int)XLENGTH(x) - 1;
    int ordered = levels >= 0 && start[levels] == entries;
    for (int l = 0; l < levels; l++)
        ordered = ordered && start[l] <= start[l + 1];
    arg_check(ordered, "`start` must have places for all columns of `V`");
    return start;
}

/* Returns sum_l V_l'V_l (size x size). V_l has the columns start[l], ..., start[l + 1] - 1 of V. Column i of V adds to
 * row and column column[i] of the sum. */
SEXP ffi_level_products(SEXP V_, SEXP start, SEXP column, SEXP size_)
{
    int p, entries;
    const double *V = arg_matrix(V_, "V", &p, &entries);
    const int size = arg_count(size_, "size"), levels = (int)XLENGTH(start) - 1;
    SEXP result = PROTECT(Rf_allocMatrix(REALSXP, size, size));
    fill((size_t)size * size, 0.0, REAL(result));
    level_products(p, levels, arg_starts(start, entries),
                   arg_indices(column, "column", (size_t)entries, 1, size), V, size,
                   REAL(result));
    mirror_lower(size, REAL(result));
    UNPROTECT(1);
    return result;
}

/* Returns list(status, C, x, inverse): C C' = I + A, x = (I + A)^{-1} b and, if `invert`, (I + A)^{-1}. Reads only the
 * lower triangle of A. */
SEXP ffi_factor(SEXP A, SEXP b, SEXP invert)
{
    const int n = Rf_length(b);
    const double *from = arg_vector(A, "A", (size_t)n * n);
    SEXP result = PROTECT(pack(NULL));
    double *C = pack_matrix(result, "C", n, n), *x = pack_vector(result, "x", n);
    copy((size_t)n, arg_vector(b, "b", (size_t)n), x);
    const int failed = chol_shifted(n, from, 1.0, C);
    if (!failed)
        solve_chol(n, 1, C, x);
    if (!failed && arg_integer(invert, "invert"))
        chol_inverse(n, C, pack_matrix(result, "inverse", n, n));
    pack_status(result, failed ? STATUS_INNER_NOT_PD : STATUS_OK);
    return packed(result);
}
