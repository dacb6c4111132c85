#include "gram.h"
#include "linalg.h"
#include "pairs.h"

static void matrix_add(const void *self, const struct visit *v)
{
    const struct kernel_matrix *to = self;
    const struct block *p = &to->points, *b = &v->block;
    kernel_cross(to->kernel, p->n, p->X, p->ldx, b->n, b->X, b->ldx,
                 to->out + (size_t)b->first * p->n);
}

struct sink kernel_matrix_sink(const struct kernel_matrix *self)
{
    return (struct sink){.self = self, .add = matrix_add};
}

/* a block with itself and with those before it */
static void matvec_add(const void *self, const struct visit *v)
{
    const struct kernel_matvec *to = self;
    const struct pass *pass = to->pass;
    const struct block *here = &v->block;
    const size_t n = (size_t)pass->plan.block;
    double *pair = v->work, *out = v->sums + here->first;
    pairs_add(to->kernel, here, here, 1, to->v + here->first, pair, out);
    for (int j = 0; j < v->number; j++) {
        const struct block there = pass_block(pass, j, pair + n * n);
        pairs_add_both(to->kernel, here, &there, to->v + here->first, to->v + there.first,
                       pair, out, v->sums + there.first);
    }
}

struct sink kernel_matvec_sink(const struct kernel_matvec *self, double *Kv)
{
    const int n = self->pass->plan.block;
    struct sink sink = {.self = self, .sums = Kv, .add = matvec_add};
    sink.n_sums = (size_t)self->pass->rows->N;
    sink.n_work = pairs_size(n, n) + source_size(self->pass->rows, n);
    return sink;
}

static void cross_matvec_add(const void *self, const struct visit *v)
{
    const struct kernel_cross_matvec *to = self;
    const struct source *others = to->others;
    double *out = to->out + v->block.first;
    fill((size_t)v->block.n, 0.0, out);
    for (int start = 0; start < others->N; start += to->block) {
        const int left = others->N - start, n = left < to->block ? left : to->block;
        const struct block there =
            source_block(others, start, n, v->work + pairs_size(to->block, to->block));
        pairs_add(to->kernel, &v->block, &there, 1, to->u + start, v->work, out);
    }
}

struct sink kernel_cross_matvec_sink(const struct kernel_cross_matvec *self)
{
    const int n = self->block;
    return (struct sink){.self = self,
                         .n_work = pairs_size(n, n) + source_size(self->others, n),
                         .add = cross_matvec_add};
}
