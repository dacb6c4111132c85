#include <math.h>
#include "near_effects.h"
#include "linalg.h"

size_t near_effects_size(const struct effects *e)
{
    const size_t k = (size_t)e->M + e->q;
    return k * k + k + 2;
}

/* (F Z) of row i: places behind the M features and values; returns how many there are */
static int effects_of_row(const struct near_effects *n, int i, int *place, double *value)
{
    const struct source *rows = n->rows;
    int entries = 0;
    for (int a = -1; a < n->s; a++) {
        const int row = a < 0 ? i : n->near[(size_t)i * n->s + a];
        if (row < 0)
            break;
        const double scale = scale_of(rows->scale, row),
                     by = scale * (a < 0 ? 1.0 : -n->u[(size_t)i * n->s + a]) /
                          sqrt(n->d[i]);
        const int end = entries + effects_row(n->e, rows->X + row, rows->ldx,
                                              place + entries, value + entries);
        for (; entries < end; entries++) {
            place[entries] += n->e->M;
            value[entries] *= by;
        }
    }
    return entries;
}

static double response_of_row(const struct near_effects *n, int i)
{
    const struct source *rows = n->rows;
    double y = rows->y[i] * scale_of(rows->scale, i);
    for (int a = 0; a < n->s && n->near[(size_t)i * n->s + a] >= 0; a++) {
        const int row = n->near[(size_t)i * n->s + a];
        y -= n->u[(size_t)i * n->s + a] * rows->y[row] * scale_of(rows->scale, row);
    }
    return y / sqrt(n->d[i]);
}

/* Returns the room for the values of a row. Its integers follow, in as much room. */
static size_t row_size(const struct near_effects *n)
{
    return ((size_t)n->s + 1) * most_entries;
}

static void near_effects_add(const void *self, const struct visit *v)
{
    const struct near_effects *n = self;
    const int M = n->e->M, count = v->block.n;
    const size_t k = (size_t)M + n->e->q;
    double *P = v->sums, *Fy = P + k * k, *rest = Fy + k, *a = v->work,
           *value = a + (size_t)M * count, *G = value + 2 * row_size(n);
    int *place = (int *)(value + row_size(n));
    for (int j = 0; j < count; j++) {
        const int i = v->block.first + j, entries = effects_of_row(n, i, place, value);
        const double y = response_of_row(n, i);
        double *of = a + (size_t)M * j;
        fill((size_t)M, 0.0, of);
        add_scaled((size_t)M, 1.0 / sqrt(n->d[i]), n->R + (size_t)M * i, of);
        add_scaled((size_t)M, y, of, Fy);
        for (int b = 0; b < entries; b++) {
            double *column = P + k * place[b];
            add_scaled((size_t)M, value[b], of, column);
            Fy[place[b]] += y * value[b];
            for (int c = 0; c < entries; c++)
                column[place[c]] += value[b] * value[c];
        }
        rest[0] += y * y;
        rest[1] += log(n->d[i]);
    }
    fill((size_t)M * M, 0.0, G);
    add_A_At(M, count, a, G);
    mirror_lower(M, G);
    for (int m = 0; m < M; m++)
        add_scaled((size_t)M, 1.0, G + (size_t)M * m, P + k * m);
}

struct sink near_effects_sink(const struct near_effects *self, double *sums)
{
    const size_t M = (size_t)self->e->M;
    return sum_sink(self, near_effects_add, M, 2 * row_size(self) + M * M,
                    near_effects_size(self->e), sums);
}
