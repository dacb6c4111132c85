#include "dtc.h"
#include "linalg.h"

static struct sink sums_of(struct dtc *d, struct summing *self)
{
    *self = (struct summing){.kernel = d->model->kernel, .M = d->z.M};
    return stats_sink(self, d->pass.plan.block, d->sums);
}

static struct sink residuals_of(struct dtc *d, struct residuals *self)
{
    *self = (struct residuals){.M = d->z.M, .beta = d->beta};
    return residuals_sink(self, d->pass.plan.block, &d->rss);
}

void dtc_open(struct dtc *d, struct arena *arena)
{
    struct summing summing;
    struct residuals residuals;
    const struct sink sums = sums_of(d, &summing), left = residuals_of(d, &residuals);
    d->pass.z = &d->z;
    d->pass.again = 1;
    pass_open(&d->pass, arena);
    d->sums = arena_take(arena, stats_size(d->z.M, 0));
    const size_t a = pass_size(&d->pass, 1, &sums), b = pass_size(&d->pass, 1, &left);
    d->work = arena_take(arena, (a > b ? a : b) + (size_t)d->z.M);
}

enum status dtc_run(struct dtc *d, double most)
{
    struct summing summing;
    struct residuals residuals;
    const struct sink sums = sums_of(d, &summing), left = residuals_of(d, &residuals);
    const enum status points = inducing_ladder(d->model, &d->z, most, d->work, d->L);
    d->z.L = d->L;
    d->rss = 0.0;
    fill(stats_size(d->z.M, 0), 0.0, d->sums);
    if (points == STATUS_OK)
        pass_run(&d->pass, 1, &sums, d->work);
    enum status status = stats_finish(d->z.M, 0, d->sums, &d->stats);
    if (points != STATUS_OK)
        return points;
    if (status == STATUS_OK)
        status = posterior_factor(&d->stats, d->model->s2, d->C, d->beta);
    if (status == STATUS_OK)
        pass_run(&d->pass, 1, &left, d->work);
    return status;
}
