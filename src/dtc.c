#include "dtc.h"
#include "linalg.h"

enum status dtc_run(struct dtc *d, double most)
{
    const int M = d->z.M;
    const struct summing summing = {.kernel = d->model->kernel, .M = M};
    const struct residuals residuals = {.M = M, .beta = d->beta};
    struct arena *arena = d->pass.plan.arena;
    double *sums = arena_take(arena, stats_size(M, 0));
    const enum status points = inducing_ladder(d->model, &d->z, most, d->L);
    d->pass.z = &d->z;
    d->pass.again = 1;
    d->rss = 0.0;
    fill(stats_size(M, 0), 0.0, sums);
    if (points == STATUS_OK)
        pass_run(&d->pass, stats_sink(&summing, sums));
    enum status status = stats_finish(M, 0, sums, &d->stats);
    if (points != STATUS_OK)
        return points;
    if (status == STATUS_OK)
        status = posterior_factor(&d->stats, d->model->s2, d->C, d->beta);
    if (status == STATUS_OK)
        pass_run(&d->pass, residuals_sink(&residuals, &d->rss));
    return status;
}
