#include "likelihood.h"
#include "linalg.h"
#include "model.h"

/* rows to a block: enough to be worth entering a parallel region on a busy machine, few enough
 * that interrupts are let in */
enum { most_rows = 256 };

/* the sums of a block: those of vecchia.h, value, status */
static size_t sums_size(const struct likelihood *l)
{
    return vecchia_size(l->model->kernel, l->q) + 2;
}

struct gathered {
    double *X, *y, *noise, *b, *work;
};

/* row i as the a-th of the n gathered */
static void gather(const struct likelihood *l, int i, int a, int n,
                   const struct gathered *to)
{
    const int columns = kernel_columns(l->model->kernel);
    const double s2 = l->model->s2;
    for (size_t j = 0; j < (size_t)columns; j++)
        to->X[j * n + a] = l->rows->X[j * l->rows->ldx + i];
    to->y[a] = l->rows->y[i];
    to->noise[a] = l->weights == NULL ? s2 : s2 / l->weights[i];
    for (size_t j = 0; j < (size_t)l->q; j++)
        to->b[j * n + a] = l->b[j * l->rows->N + i];
}

static enum status add_term(const struct likelihood *l, int t, const struct gathered *to,
                            struct vecchia *sum)
{
    const int *near = l->neighbours + (size_t)t * l->s;
    int s = 0;
    while (s < l->s && near[s] >= 0)
        s++;
    for (int a = 0; a < s; a++)
        gather(l, near[a], a, s + 1, to);
    gather(l, l->row[t], s, s + 1, to);
    return vecchia_add(l->model->kernel, s, to->X, to->y, to->noise, to->b, l->times[t],
                       l->slopes, to->work, sum);
}

static void terms_add(const void *self, const struct visit *v)
{
    const struct likelihood *l = self;
    const struct kernel *k = l->model->kernel;
    const size_t n = (size_t)l->s + 1, size = vecchia_size(k, l->q);
    double *rows = v->work, *y = rows + n * kernel_columns(k);
    const struct gathered to = {rows, y, y + n, y + 2 * n, y + (2 + l->q) * n};
    double *sums = l->sums + (size_t)v->number * sums_size(l);
    struct vecchia sum;
    enum status status = STATUS_OK;
    vecchia_init(k, l->q, sums, &sum);
    for (int i = 0; i < v->block.n && status == STATUS_OK; i++)
        status = add_term(l, v->block.first + i, &to, &sum);
    sums[size] = sum.value;
    sums[size + 1] = (double)status;
}

enum status likelihood_run(struct likelihood *l, struct vecchia *whole)
{
    const struct kernel *k = l->model->kernel;
    const size_t size = vecchia_size(k, l->q);
    struct plan *plan = &l->pass.plan;
    enum status status = STATUS_OK;
    if (plan->block > most_rows) { /* blocks of their own length: threads stay */
        plan->block = most_rows;
        plan->n_blocks = (l->count + most_rows - 1) / most_rows;
    }
    struct sink sink = row_sink(l, terms_add, 0);
    sink.more = ((size_t)l->s + 1) * (kernel_columns(k) + 2 + l->q) +
                vecchia_row_size(k, l->q, l->s);
    l->sums = arena_take(plan->arena, (size_t)plan->n_blocks * sums_size(l));
    pass_run(&l->pass, sink);
    double *memory = arena_take(plan->arena, size);
    vecchia_init(k, l->q, memory, whole);
    for (int b = 0; b < plan->n_blocks; b++) {
        const double *sums = l->sums + (size_t)b * sums_size(l);
        if (status == STATUS_OK)
            status = (enum status)sums[size + 1];
        add_scaled(size, 1.0, sums, memory);
        whole->value += sums[size];
    }
    mirror_lower(whole->p, whole->information);
    return status;
}
