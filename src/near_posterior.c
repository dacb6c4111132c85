#include <math.h>
#include "near_posterior.h"
#include "linalg.h"
#include "posterior.h"

/* ---- the posterior, from sums over the rows ------------------------------------------------- */

/* Two sums over rows follow those of struct stats: log d (d: conditional variance of y) and the count of failures. */
enum { LOG_D, FAILURES, MORE };

/* Adds a block's part to G = sum r r' / d, Ay = sum r (y - u'y_S) / d, yy = sum (y - u'y_S)^2 / d and sum log d. Given
 * neighbours' responses y_S and whitened inducing variables v, a row's y has mean u'y_S + r'v, variance d. */
static void summing_add(const void *self, const struct visit *v)
{
    const struct near_posterior *p = self;
    const struct near_field *f = &p->field;
    const int M = f->z.M, n = v->block.n;
    struct field_scratch r = field_scratch(f, n, v->work);
    double *G = v->sums, *Ay = G + (size_t)M * M, *yy = Ay + M,
           *more = G + stats_size(M, 0), *rate = r.left;
    more[FAILURES] += field_condition(f, v, &r);
    block_response(&v->block, r.y);
    for (int i = 0; i < n; i++) {
        const double d = r.left[i] + f->z.model->s2;
        if (p->d != NULL)
            p->d[field_row(f, v->block.first + i)] = d;
        more[LOG_D] += log(d);
        rate[i] = 1.0 / sqrt(d);
        r.y[i] = (r.y[i] - r.mean[i]) * rate[i];
    }
    scale_columns(M, n, rate, r.R);
    add_A_At(M, n, r.R, G);
    mult_Ax(M, n, 1.0, r.R, r.y, 1.0, Ay);
    *yy += sum_squares((size_t)n, r.y);
}

/* Computes the posterior N(beta, (C C')^{-1}) of whitened inducing variables, and minus the log density of y. */
static enum status finish(struct near_posterior *p)
{
    const int M = p->field.z.M;
    const double *more = p->sums + stats_size(M, 0);
    struct stats stats;
    enum status status = stats_finish(M, 0, p->sums, &stats);
    if (status == STATUS_OK)
        status = posterior_factor(&stats, 1.0, p->C, p->beta);
    if (status == STATUS_OK)
        p->minus_log =
            0.5 * (more[LOG_D] + chol_logdet(M, p->C) + stats.yy -
                   dot((size_t)M, stats.Ay, p->beta) + p->field.rows.N * log(2.0 * PI));
    return status;
}

enum status near_posterior_run(struct near_posterior *p, double most_jitter)
{
    struct inducing *z = &p->field.z;
    const size_t size = stats_size(z->M, 0);
    const enum status status = inducing_ladder(z, most_jitter, p->L);
    if (status != STATUS_OK)
        return status;
    p->sums = arena_take(p->field.plan.arena, size + MORE);
    field_run(&p->field, sum_sink(p, summing_add, 0, 0, size + MORE, p->sums));
    return p->sums[size + FAILURES] > 0.0 ? STATUS_NOT_FINITE : finish(p);
}

static void predicting_add(const void *self, const struct visit *v)
{
    const struct near_predicting *p = self;
    const struct near_field *f = &p->field;
    const int n = v->block.n;
    const size_t M = (size_t)f->z.M;
    struct field_scratch r = field_scratch(f, n, v->work);
    v->sums[0] += field_condition(f, v, &r);
    for (int i = 0; i < n; i++) {
        const int row = field_row(f, v->block.first + i);
        p->mean[row] = r.mean[i] + dot(M, r.R + M * i, p->beta);
        p->var_near[row] = r.left[i];
    }
    solve_lower_squares(f->z.M, n, p->C, r.R, r.R, r.left);
    for (int i = 0; i < n; i++)
        p->var_far[field_row(f, v->block.first + i)] = r.left[i];
}

enum status near_predicting_run(struct near_predicting *p)
{
    field_run(&p->field, sum_sink(p, predicting_add, 0, 0, 1, &p->failures));
    return p->failures > 0.0 ? STATUS_NOT_FINITE : STATUS_OK;
}

/* The kernel matrix of j->points, the new rows and their neighbours, is computed in blocks of this many columns. */
enum { JOINT_POINTS = 64 };

/* Appends a row of `from` to j->points, and returns its number in j->points. */
static int add_point(struct near_joint *j, const struct source *from, int row,
                     double noise)
{
    const int columns = kernel_columns(j->at.field.z.model->kernel),
              place = j->points.n++;
    j->noise[place] = noise;
    for (size_t c = 0; c < (size_t)columns; c++)
        j->X[(size_t)j->points.ldx * c + place] = from->X[c * from->ldx + row];
    return place;
}

static void add_points(struct near_joint *j, int *place)
{
    const struct near_field *f = &j->at.field;
    const struct source *rows = &f->rows;
    for (int row = 0; row < rows->N; row++)
        place[row] = -1;
    for (size_t i = 0; i < (size_t)f->targets.N; i++) {
        size_t at = i * (f->s + 1);
        for (size_t e = i * f->s; e < (i + 1) * f->s && f->near_rows[e] > 0; e++) {
            const int row = f->near_rows[e] - 1;
            const double scale = or_one(rows->scale, row);
            if (place[row] < 0)
                place[row] = add_point(j, rows, row, f->z.model->s2 / (scale * scale));
            j->W[at] = -f->u[e] * scale;
            j->point[at++] = place[row];
        }
        j->W[at] = 1.0;
        j->point[at++] = add_point(j, &f->targets, (int)i, 0.0);
        if (at < (i + 1) * (f->s + 1))
            j->point[at] = -1;
    }
}

/* Adds a block's part to W'(K + noise) W, where K is the kernel matrix of j->points (new rows and neighbours). W has a
 * column for each new row: 1 at the row, and -u_i sqrt(w_i) at its neighbour i. Neighbour i has the weight w_i, and its
 * response the coefficient u_i in the row's mean. */
static void joint_add(const void *self, const struct visit *v)
{
    const struct near_joint *j = self;
    const int first = v->block.first, b = v->block.n, n_points = j->points.n;
    const size_t n = (size_t)j->at.field.targets.N, each = (size_t)j->at.field.s + 1;
    double *K = v->work, *T = K + (size_t)n_points * b; /* T (n x b) = W'(K + noise)_.b */
    kernel_cross(j->at.field.z.model->kernel, j->points, rows_from(j->points, first, b),
                 K);
    for (int l = 0; l < b; l++) {
        double *k = K + (size_t)l * n_points;
        k[first + l] += j->noise[first + l];
        for (size_t i = 0; i < n; i++) {
            double sum = 0.0;
            for (size_t e = i * each; e < (i + 1) * each && j->point[e] >= 0; e++)
                sum += j->W[e] * k[j->point[e]];
            T[n * l + i] = sum;
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t e = i * each; e < (i + 1) * each && j->point[e] >= 0; e++)
            if (j->point[e] >= first && j->point[e] < first + b)
                add_scaled(n, j->W[e], T + n * (j->point[e] - first), v->sums + n * i);
}

/* Turns `covariance` from W'(K + noise) W into the covariances of f at the new rows. Adds r'(C C')^{-1} r~ - r'r~ for
 * two rows with coefficients r and r~ (columns of R) of whitened inducing variables. These have the posterior
 * covariance (C C')^{-1}. Overwrites R. The predicted variances replace the diagonal. */
static void finish_joint(struct near_joint *j)
{
    const struct near_predicting *p = &j->at;
    const int n = p->field.targets.N, M = p->field.z.M;
    double *R = p->field.R, *covariance = j->covariance;
    mult_AtB(n, M, n, -1.0, R, R, 1.0, covariance);
    solve_lower(M, n, p->C, R);
    mult_AtB(n, M, n, 1.0, R, R, 1.0, covariance);
    add_transpose(n, covariance);
    scale_by((size_t)n * n, 0.5, covariance);
    for (int c = 0; c < n; c++)
        covariance[(size_t)c * n + c] = p->var_near[c] + p->var_far[c];
}

enum status near_joint_run(struct near_joint *j)
{
    struct near_field *f = &j->at.field;
    const size_t n = (size_t)f->targets.N, s = (size_t)f->s, N = (size_t)f->rows.N,
                 most = (n * s < N ? n * s : N) + n;
    struct arena *arena = f->plan.arena;
    f->u = arena_take(arena, n * s);
    f->near_rows = arena_ints(arena, n * s);
    f->R = arena_take(arena, n * f->z.M);
    const enum status status = near_predicting_run(&j->at);
    if (status != STATUS_OK)
        return status;
    j->X = arena_take(arena, most * kernel_columns(f->z.model->kernel));
    j->noise = arena_take(arena, most);
    j->W = arena_take(arena, n * (s + 1));
    j->point = arena_ints(arena, n * (s + 1));
    j->points = (struct rows){0, j->X, (int)most};
    add_points(j, arena_ints(arena, N));
    const int points = j->points.n, share = points / f->plan.threads + 1;
    struct pass pass = {.plan = plan_for(&f->plan, points, min_int(share, JOINT_POINTS))};
    pass_run(&pass, sum_sink(j, joint_add, (size_t)points + n, 0, n * n, j->covariance));
    finish_joint(j);
    return STATUS_OK;
}
