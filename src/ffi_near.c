#include <math.h>
#include "ffi.h"
#include "ffi_near_pass.h"
#include "linalg.h"

#define JOINT_POINTS                                                                     \
    64 /* points of a joint law whose near rows are at hand at a time      */

static void arg_pass(const struct model *model, SEXP z, SEXP x, SEXP y, SEXP scale,
                     SEXP s, SEXP control, int n, struct near_pass *p)
{
    p->z.model = model;
    p->z.Z = arg_matrix(z, "z", &p->z.M, &p->z.columns);
    p->rows.X = arg_inputs(model->kernel, x, "x", &p->rows.N, &p->rows.columns);
    p->rows.y = arg_vector(y, "y", (size_t)p->rows.N);
    p->rows.scale = arg_vector_or_null(scale, "scale", (size_t)p->rows.N);
    p->s = arg_integer(s, "s");
    if (p->s < 0 || p->z.columns != p->rows.columns)
        Rf_error("internal: `s` must be at least 0, and `z` have the columns of `x`");
    if (p->s > p->rows.N)
        p->s = p->rows.N;
    p->s2 = model->s2;
    p->plan = arg_plan(control, n);
    p->rank = p->target = NULL;
    p->mean = p->kept_u = p->kept_d = NULL;
    p->kept_rows = NULL;
    p->keep_u = p->keep_R = NULL;
    p->keep_near = NULL;
}

/* u, d and the rows that each u is on, of every row */
static void pack_kept(SEXP result, struct near_pass *p)
{
    p->kept_rows = pack_integer_matrix(result, "rows", p->s, p->rows.N);
    p->kept_u = pack_matrix(result, "u", p->s, p->rows.N);
    p->kept_d = pack_vector(result, "d", p->rows.N);
}

/* every row beside its earlier ones, in the order of the tree */
static enum status near_sums(struct near_pass *p)
{
    if (p->s > 0) {
        build_tree(p->z.model->kernel, &p->rows, p->rank, p->rows.N, &p->tree);
        p->target = p->tree.row;
    }
    run_targets(p, p->rows.N);
    return slots_status(p);
}

/* C C' = I + G, beta = (I + G)^{-1} Ay, and -log density of the scaled y, from the slots' sums */
static enum status near_finish(const struct near_pass *p, double *C, double *beta,
                               double *minus_log)
{
    const int M = p->z.M;
    double log_d = 0.0;
    struct stats stats;
    for (int i = 0; i < p->plan.threads; i++) {
        log_d += p->slot[i].log_d;
        if (i > 0)
            add_scaled(stats_size(M, 0), 1.0, p->slot[i].sums, p->slot[0].sums);
    }
    enum status status = stats_finish(M, 0, p->slot[0].sums, &stats);
    if (status == STATUS_OK)
        status = posterior_factor(&stats, 1.0, C, beta);
    *minus_log =
        0.5 * (log_d + chol_logdet(M, C) + stats.yy - dot((size_t)M, stats.Ay, beta) +
               p->rows.N * log(2.0 * 3.14159265358979323846));
    return status;
}

SEXP ffi_near(SEXP kernel, SEXP z, SEXP x, SEXP y, SEXP scale, SEXP s2, SEXP jitter,
              SEXP most_jitter, SEXP s, SEXP rank, SEXP keep_rows, SEXP control)
{
    const struct kernel k = arg_kernel(kernel);
    struct model model = {&k, arg_number(s2, "s2"), arg_number(jitter, "jitter")};
    struct near_pass p;
    double minus_log = 0.0;
    int N = 0, columns;
    arg_matrix(x, "x", &N, &columns);
    arg_pass(&model, z, x, y, scale, s, control, N, &p);
    const int M = p.z.M;
    p.targets = p.rows;
    if (TYPEOF(rank) != INTSXP || XLENGTH(rank) != N)
        Rf_error("internal: `rank` must be an integer for every row");
    p.rank = INTEGER_RO(rank);
    SEXP result = PROTECT(
        pack("status", "jitter", "L", "C", "beta", "minus_log", "u", "d", "rows", NULL));
    if (arg_integer(keep_rows, "keep"))
        pack_kept(result, &p);
    double *L = pack_matrix(result, "L", M, M), *C = pack_matrix(result, "C", M, M),
           *beta = pack_vector(result, "beta", M);
    enum status status = inducing_ladder(
        &model, &p.z, arg_number(most_jitter, "most_jitter"), room((size_t)M), L);
    p.z.L = L;
    if (status == STATUS_OK)
        status = near_sums(&p);
    if (status == STATUS_OK)
        status = near_finish(&p, C, beta, &minus_log);
    pack_status(result, status);
    pack_number(result, "jitter", model.jitter);
    pack_number(result, "minus_log", minus_log);
    UNPROTECT(1);
    return result;
}

/* mean and both parts of the variance at new rows, into `result` */
static enum status predict_new_rows(struct near_pass *p, const struct rows *new_rows,
                                    SEXP L, SEXP C, SEXP beta, SEXP result)
{
    struct tree order;
    if (new_rows->columns != p->rows.columns)
        Rf_error("internal: `x_new` must have the columns of `x`");
    p->targets = *new_rows;
    p->z.L = arg_vector(L, "L", (size_t)p->z.M * p->z.M);
    p->C = arg_vector(C, "C", (size_t)p->z.M * p->z.M);
    p->beta = arg_vector(beta, "beta", (size_t)p->z.M);
    p->mean = pack_vector(result, "mean", new_rows->N);
    p->var_near = pack_vector(result, "var_near", new_rows->N);
    p->var_far = pack_vector(result, "var_far", new_rows->N);
    if (p->s > 0) {
        build_tree(p->z.model->kernel, &p->rows, NULL, new_rows->N, &p->tree);
        build_tree(p->z.model->kernel, new_rows, NULL, new_rows->N, &order);
        p->target = order.row;
    }
    run_targets(p, new_rows->N);
    return slots_status(p);
}

SEXP ffi_near_predict(SEXP kernel, SEXP z, SEXP L, SEXP C, SEXP beta, SEXP x, SEXP y,
                      SEXP scale, SEXP s2, SEXP s, SEXP x_new, SEXP control)
{
    const struct kernel k = arg_kernel(kernel);
    const struct model model = {&k, arg_number(s2, "s2"), 0.0};
    struct near_pass p;
    struct rows new_rows = {0};
    new_rows.X = arg_matrix(x_new, "x_new", &new_rows.N, &new_rows.columns);
    arg_pass(&model, z, x, y, scale, s, control, new_rows.N, &p);
    SEXP result = PROTECT(pack("status", "mean", "var_near", "var_far", NULL));
    const enum status status = predict_new_rows(&p, &new_rows, L, C, beta, result);
    pack_status(result, status);
    UNPROTECT(1);
    return result;
}

/* ---- new rows together --------------------------------------------------------------------- */

struct joining {
    struct plan plan;
    struct joint joint;
    double **work, **sum;
};

static void joining_points(void *context, int b, int slot)
{
    struct joining *j = context;
    const int first = b * j->plan.block, left = j->joint.n_points - first;
    near_joint_add(&j->joint, first, left < j->plan.block ? left : j->plan.block,
                   j->work[slot], j->sum[slot]);
}

/* Every row of x that is near to a new one, then the new ones: the entries of W by point. */
static void joint_points(const struct near_pass *p, const struct rows *new_rows,
                         struct joint *joint)
{
    const size_t entries = (size_t)new_rows->N * ((size_t)p->s + 1);
    const int N = p->rows.N, n = new_rows->N, columns = p->rows.columns;
    int *place = (int *)R_alloc((size_t)N, sizeof(int)), used = 0;
    for (int i = 0; i < N; i++)
        place[i] = -1;
    for (size_t e = 0; e < (size_t)n * p->s; e++)
        if (p->keep_near[e] >= 0 && place[p->keep_near[e]] < 0)
            place[p->keep_near[e]] = used++;
    const size_t points = (size_t)used + n;
    double *X = doubles(points * columns), *noise = doubles(points),
           *weight = doubles(entries);
    int *start = (int *)R_alloc(points + 2, sizeof(int)),
        *column = (int *)R_alloc(entries, sizeof(int));
    for (int i = 0; i < N; i++) {
        if (place[i] < 0)
            continue;
        const double scale = p->rows.scale == NULL ? 1.0 : p->rows.scale[i];
        noise[place[i]] = p->s2 / (scale * scale);
        for (int c = 0; c < columns; c++)
            X[points * c + (size_t)place[i]] = p->rows.X[(size_t)c * N + i];
    }
    for (int i = 0; i < n; i++) {
        noise[used + i] = 0.0;
        for (int c = 0; c < columns; c++)
            X[points * c + (size_t)(used + i)] = new_rows->X[(size_t)c * n + i];
    }
    /* entries counted, then each put behind those of the points before it; start[l + 1]
     * moves up from the first to one beyond the last entry of point l */
    for (size_t l = 0; l < points + 2; l++)
        start[l] = 0;
    for (size_t e = 0; e < (size_t)n * p->s; e++)
        if (p->keep_near[e] >= 0)
            start[place[p->keep_near[e]] + 2]++;
    for (int i = 0; i < n; i++)
        start[used + i + 2]++;
    for (size_t l = 2; l < points + 2; l++)
        start[l] += start[l - 1];
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= p->s; j++) {
            const size_t e = (size_t)i * p->s + j;
            if (j < p->s && p->keep_near[e] < 0)
                continue;
            const int l = j < p->s ? place[p->keep_near[e]] : used + i;
            const int at = start[l + 1]++;
            column[at] = i;
            weight[at] = j < p->s ? -p->keep_u[e] : 1.0;
        }
    joint->kernel = p->z.model->kernel;
    joint->n = n;
    joint->n_points = (int)points;
    joint->X = X;
    joint->noise = noise;
    joint->start = start;
    joint->column = column;
    joint->weight = weight;
}

/* covariance = r'(C C')^{-1} r~ - r'r~ + W'(K + noise)W */
static void join(struct near_pass *p, const struct rows *new_rows, double *covariance)
{
    const int n = new_rows->N, M = p->z.M;
    const size_t nn = (size_t)n * n;
    struct joining j;
    joint_points(p, new_rows, &j.joint);
    j.plan = p->plan;
    j.plan.N = j.joint.n_points;
    const int share = j.plan.N / j.plan.threads + 1;
    j.plan.block = share < JOINT_POINTS ? share : JOINT_POINTS;
    j.plan.n_blocks = (j.plan.N + j.plan.block - 1) / j.plan.block;
    j.work = (double **)R_alloc((size_t)j.plan.threads, sizeof *j.work);
    j.sum = (double **)R_alloc((size_t)j.plan.threads, sizeof *j.sum);
    for (int i = 0; i < j.plan.threads; i++) {
        j.work[i] = doubles(near_joint_size(&j.joint, j.plan.block));
        j.sum[i] = i == 0 ? covariance : doubles(nn);
        fill(nn, 0.0, j.sum[i]);
    }
    run_blocks(&j.plan, joining_points, &j);
    for (int i = 1; i < j.plan.threads; i++)
        add_scaled(nn, 1.0, j.sum[i], covariance);
    mult_AtB(n, M, n, -1.0, p->keep_R, p->keep_R, 1.0, covariance);
    solve_lower(M, n, p->C, p->keep_R);
    mult_AtB(n, M, n, 1.0, p->keep_R, p->keep_R, 1.0, covariance);
    for (int c = 0; c < n; c++) { /* symmetric, and the variances those of predictions */
        covariance[(size_t)c * n + c] = p->var_near[c] + p->var_far[c];
        for (int r = c + 1; r < n; r++) {
            double *low = covariance + (size_t)c * n + r,
                   *high = covariance + (size_t)r * n + c;
            *low = *high = 0.5 * (*low + *high);
        }
    }
}

SEXP ffi_near_covariance(SEXP kernel, SEXP z, SEXP L, SEXP C, SEXP beta, SEXP x, SEXP y,
                         SEXP scale, SEXP s2, SEXP s, SEXP x_new, SEXP control)
{
    const struct kernel k = arg_kernel(kernel);
    const struct model model = {&k, arg_number(s2, "s2"), 0.0};
    struct near_pass p;
    struct rows new_rows = {0};
    new_rows.X = arg_matrix(x_new, "x_new", &new_rows.N, &new_rows.columns);
    arg_pass(&model, z, x, y, scale, s, control, new_rows.N, &p);
    const size_t n = (size_t)new_rows.N;
    if ((double)n * (p.s + 1.0) > 2147483647.0)
        Rf_error("internal: too many rows for one covariance matrix");
    p.keep_u = doubles(n * (size_t)p.s);
    p.keep_near = (int *)R_alloc(n * (size_t)p.s, sizeof(int));
    p.keep_R = doubles(n * (size_t)p.z.M);
    SEXP result =
        PROTECT(pack("status", "mean", "var_near", "var_far", "covariance", NULL));
    double *covariance = pack_matrix(result, "covariance", new_rows.N, new_rows.N);
    const enum status status = predict_new_rows(&p, &new_rows, L, C, beta, result);
    if (status == STATUS_OK)
        join(&p, &new_rows, covariance);
    pack_status(result, status);
    UNPROTECT(1);
    return result;
}
