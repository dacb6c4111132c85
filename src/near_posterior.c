#include <math.h>
#include "near_posterior.h"
#include "linalg.h"
#include "posterior.h"

/* ---- sums of the rows ----------------------------------------------------------------------- */

/* The sums of stats.h are followed by the sum of log d and the number of failures. */
enum { LOG_D, FAILURES, MORE };

/* a~ = r / sqrt(d),  y~ = (y - u'y_S) / sqrt(d),  d = left + s2:  G += a~ a~',  Ay += a~ y~ */
static void summing_add(const void *self, const struct visit *v)
{
    const struct near_posterior *p = self;
    const struct near_field *f = &p->field;
    const int M = f->z.M, n = v->block.n;
    struct field_room r = field_room(f, n, v->work);
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

/* C C' = I + G, beta = (I + G)^{-1} Ay */
static enum status finish(struct near_posterior *p)
{
    const int M = p->field.z.M;
    const double *more = p->sums + stats_size(M, 0);
    struct stats stats;
    enum status status = stats_finish(M, 0, p->sums, &stats);
    if (status == STATUS_OK)
        status = posterior_factor(&stats, 1.0, p->C, p->beta);
    if (status == STATUS_OK)
        p->minus_log = 0.5 * (more[LOG_D] + chol_logdet(M, p->C) + stats.yy -
                              dot((size_t)M, stats.Ay, p->beta) +
                              p->field.rows.N * log(2.0 * 3.14159265358979323846));
    return status;
}

enum status near_posterior_run(struct near_posterior *p, double most_jitter)
{
    struct inducing *z = &p->field.z;
    const size_t size = stats_size(z->M, 0);
    const enum status status = inducing_ladder(p->model, z, most_jitter, p->L);
    if (status != STATUS_OK)
        return status;
    p->sums = arena_take(p->field.plan.arena, size + MORE);
    field_run(&p->field, sum_sink(p, summing_add, 0, 0, size + MORE, p->sums));
    return p->sums[size + FAILURES] > 0.0 ? STATUS_NOT_FINITE : finish(p);
}

/* ---- new rows ------------------------------------------------------------------------------- */

/* mean = u'y_S + r'beta,  var_far = |C^{-1} r|^2 */
static void predicting_add(const void *self, const struct visit *v)
{
    const struct near_predicting *p = self;
    const struct near_field *f = &p->field;
    const int n = v->block.n;
    const size_t M = (size_t)f->z.M;
    struct field_room r = field_room(f, n, v->work);
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

/* ---- new rows together ---------------------------------------------------------------------- */

/* Kernel values with all points are computed for at most this number of points at a time. */
enum { JOINT_POINTS = 64 };

enum status near_joint_run(struct near_joint *j)
{
    struct near_field *f = &j->at.field;
    const size_t n = (size_t)f->targets.N, s = (size_t)f->s;
    struct arena *arena = f->plan.arena;
    f->u = arena_take(arena, n * s);
    f->near_rows = arena_ints(arena, n * s);
    f->R = arena_take(arena, n * f->z.M);
    const enum status status = near_predicting_run(&j->at);
    if (status != STATUS_OK)
        return status;
    joint_open(&j->joint, f->z.model->kernel, f->targets.N, f->rows.N, f->s, arena);
    joint_points(&j->joint, &f->rows, &f->targets, f->z.model->s2, f->s, f->near_rows,
                 f->u);
    const int points = j->joint.n_points, share = points / f->plan.threads + 1;
    struct pass pass = {
        .plan = plan_for(&f->plan, points, share < JOINT_POINTS ? share : JOINT_POINTS)};
    pass_run(&pass, joint_sink(&j->joint, j->covariance));
    joint_finish(&j->joint, f->z.M, j->at.C, f->R, j->at.var_near, j->at.var_far,
                 j->covariance);
    return STATUS_OK;
}
