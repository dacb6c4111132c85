#include "gram.h"
#include "linalg.h"
#include "pairs.h"

static void matrix_add(const void *self, const struct visit *v)
{
    const struct kernel_matrix *to = self;
    const struct block *p = &to->points, *b = &v->block;
    kernel_cross(to->kernel, rows_of(p), rows_of(b), to->out + (size_t)b->first * p->n);
}

struct sink kernel_matrix_sink(const struct kernel_matrix *self)
{
    return row_sink(self, matrix_add, 0, 0);
}

/* Multiplies a block with itself and with the blocks before it. */
static void product_add(const void *self, const struct visit *v)
{
    const struct kernel_matvecs *to = self;
    const struct pass *pass = to->pass;
    const struct block *here = &v->block;
    double *room = v->work + pairs_both_size(pass->plan.block, pass->plan.block);
    for (int j = 0; j <= v->number; j++) {
        if ((v->number + j) % to->shares != to->share)
            continue;
        const struct block there = pass_block(pass, j, room);
        pairs_add_both(to->kernel, here, &there, to->m, pass->rows->N,
                       to->V + here->first, to->V + there.first, v->work,
                       v->sums + here->first, v->sums + there.first);
    }
}

struct sink kernel_matvecs_sink(const struct kernel_matvecs *self, double *KV)
{
    const int n = self->pass->plan.block;
    return sum_sink(self, product_add, 0,
                    pairs_both_size(n, n) + source_size(self->pass->rows, n),
                    (size_t)self->pass->rows->N * self->m, KV);
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
    return row_sink(self, cross_matvec_add, 0,
                    pairs_size(n, n) + source_size(self->others, n));
}
