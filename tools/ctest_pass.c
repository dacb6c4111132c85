/* Checks that results of passes do not depend on blocks, threads, memory and the order of rows, and equal those
 * computed from struct pieces (ctest.h), whose blocks and sums ctest_problem.c makes. */
#include <math.h>
#include "ctest.h"
#include "divergence.h"
#include "linalg.h"
#include "objective.h"
#include "posterior.h"

static const struct shape shapes[] = {/* M, N, columns, d, n_u, q */
                                      {1, 1, 1, 1, 1, 1},
                                      {3, 11, 2, 2, 4, 3},
                                      {4, 7, 3, 2, 2, 2}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static int interrupts;

static void count_interrupt(void)
{
    interrupts++;
}

/* Returns one of 18 plans for N rows: three sizes of blocks, one thread or three, three sizes of memory. */
enum { N_PLANS = 18 };
static struct plan plan_number(int i, int N, int M)
{
    const int blocks[] = {1, 3, N};
    const size_t memory[] = {0, 8 * 3 * 2 * (size_t)M * 3, 1 << 20};
    const struct plan like = {.threads = 1 + 2 * (i / 3 % 2),
                              .memory = memory[i / 6],
                              .interrupt = count_interrupt,
                              .arena = &arrays};
    return plan_for(&like, N, blocks[i % 3]);
}

static struct source problem_rows(const struct problem *p)
{
    return (struct source){.N = p->shape.N,
                           .columns = p->shape.columns,
                           .X = p->X,
                           .y = p->y,
                           .scale = p->scale,
                           .ldx = p->shape.N};
}

/* ---- objectives --------------------------------------------------------------------- */

static void evaluate(const struct problem *p, const char *name, struct plan plan,
                     int gradient, const struct answer *want)
{
    const struct lowrank aux = problem_aux(p);
    const size_t dZ = (size_t)p->shape.M * p->shape.columns;
    struct evaluation e = {
        .z = problem_points(p), .rows = problem_rows(p), .with_gradient = gradient};
    double value = 0.0, slope = 0.0;
    e.objective = objective_named(name);
    e.panel.aux = e.objective->with_aux ? &aux : NULL;
    e.pass.plan = plan;
    e.share = white_share_of_noise;
    interrupts = 0;
    CHECK(evaluation_run(&e, &value, &slope) == STATUS_OK);
    CHECK(interrupts >= 1);
    CHECK_NEAR(value, want->value, 1e-11);
    if (e.objective->with_residuals) /* rss from the sums, without a second pass */
        CHECK_NEAR(e.objective->value(&e, evaluation_rss_of_sums(&e), NULL), want->value,
                   1e-9);
    if (!gradient)
        return;
    CHECK_ARRAY(dZ, e.gradient, want->dZ, 1e-10);
    if (want->dtheta != NULL) {
        CHECK_ARRAY((size_t)p->shape.d + 1, e.gradient + dZ, want->dtheta, 1e-10);
        CHECK_NEAR(slope, want->noise, 1e-10);
    }
}

void group_pass(void)
{
    static const struct {
        const char *name;
        answer_of *answer;
        int p;
    } cases[] = {{"vfe", vfe_answer, 0},
                 {"white", white_answer, 0},
                 {"pf", pf_answer, 0},
                 {"pf", pf_answer, 1}};
    CHECK(objective_named("elbo") == NULL);
    for (int c = 0; c < 4; c++)
        for (int s = 0; s < N_SHAPES; s++)
            for (int i = 0; i < N_PLANS; i++) {
                const size_t taken = arrays_taken();
                const struct problem p = problem_new(
                    kernel_names[(c + s + i) % n_kernels], shapes[s], cases[c].p, i % 2);
                const struct answer want = cases[c].answer(&p, p.shape.N, 1);
                for (int gradient = 0; gradient < 2; gradient++)
                    evaluate(&p, cases[c].name, plan_number(i, p.shape.N, p.shape.M),
                             gradient, &want);
                arrays_release(taken);
            }
}

/* ---- FITC, rows in another order ----------------------------------------------------- */

static void sums_add(const void *self, const struct visit *v)
{
    const struct inducing *z = self;
    stats_add(z->model->kernel, z->M, 0, &v->block, v->A, NULL, v->work, v->sums);
}

/* Compares sums of rows in reverse order, to which the pass gives FITC's weights, with sums of rows given these
 * weights. */
static void fitc(const struct problem *p, struct plan plan)
{
    const int M = p->shape.M, N = p->shape.N;
    const size_t size = stats_size(M, 0);
    const struct dense f = dense_of(p);
    struct problem same = *p;
    struct pieces pieces;
    int *order = array_int((size_t)N);
    double *scale = array((size_t)N), *sums = array(size), *beta = array_random(M, -1, 1),
           rss;
    for (int i = 0; i < N; i++) {
        const double w = p->scale == NULL ? 1.0 : p->scale[i] * p->scale[i],
                     left = (at(f.K, i, i) - at(f.Q, i, i)) /
                            w; /* dense rows are multiplied by their scale */
        order[i] = N - 1 - i;
        scale[i] = sqrt(w * p->s2 / (p->s2 + w * left));
    }
    same.scale = scale;
    pieces_make(&same, NULL, N, &pieces);

    const struct source rows = {N, p->shape.columns, p->X, p->y, p->scale, N, order};
    struct inducing z = problem_points(p);
    z.L = pieces.z.L;
    double *v = array((size_t)N);
    const struct residuals residuals = {M, beta, p->s2, v, NULL};
    struct pass pass = {.plan = plan, .rows = &rows, .z = &z, .fitc = 1, .again = 1};
    for (int again = 0; again < 2; again++) { /* the second pass reads the kept A */
        struct stats s;
        double want = 0.0;
        pass_run(&pass, sum_sink(&z, sums_add, 2, 0, size, sums));
        pass_run(&pass, residuals_sink(&residuals, &rss));
        CHECK(stats_finish(M, 0, sums, &s) == STATUS_OK);
        CHECK_ARRAY((size_t)M * M + M, s.G, pieces.stats.G, 1e-12);
        CHECK_NEAR(s.yy, pieces.stats.yy, 1e-12);
        CHECK_NEAR(s.t, pieces.stats.t, 1e-11);
        CHECK_NEAR(s.log_weights, pieces.stats.log_weights, 1e-11);
        for (int i = 0; i < N; i++) {
            double e = p->y[order[i]];
            for (int m = 0; m < M; m++)
                e -=
                    pieces.piece->A[(size_t)order[i] * M + m] / scale[order[i]] * beta[m];
            e *= scale[order[i]];
            CHECK_NEAR(v[i], e / p->s2, 1e-10);
            want += e * e;
        }
        CHECK_NEAR(rss, want, 1e-11);
    }
}

void group_fitc(void)
{
    for (int s = 0; s < N_SHAPES; s++)
        for (int i = 0; i < N_PLANS; i++) {
            const size_t taken = arrays_taken();
            const struct problem p =
                problem_new(kernel_names[i % n_kernels], shapes[s], 0, i / 3 % 2);
            fitc(&p, plan_number(i, p.shape.N, p.shape.M));
            arrays_release(taken);
        }
}

/* ---- the divergence is the sum of its constant and the objective ------------------------ */

static double run_divergence(const struct problem *p, struct plan plan, int constant)
{
    const struct lowrank aux = problem_aux(p);
    struct divergence d = {.rows = problem_rows(p), .panel = {&aux, NULL}};
    double value = 0.0;
    if (!constant)
        d.z = problem_points(p);
    d.pass.plan = plan;
    if (constant)
        return divergence_constant(&d);
    CHECK(divergence_value(&d, &value) == STATUS_OK);
    return value;
}

void group_divergence(void)
{
    for (int q = 0; q < 2; q++)
        for (int s = 0; s < N_SHAPES; s++)
            for (int i = 0; i < N_PLANS; i++) {
                const size_t taken = arrays_taken();
                const struct problem p =
                    problem_new(kernel_names[i % n_kernels], shapes[s], q, i / 3 % 2);
                const struct plan plan = plan_number(i, p.shape.N, p.shape.M);
                const double constant = run_divergence(&p, plan, 1);
                CHECK_NEAR(run_divergence(&p, plan, 0),
                           constant + pf_answer(&p, p.shape.N, 0).value, 1e-9);
                arrays_release(taken);
            }
}
