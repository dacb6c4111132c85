#include "block.h"

void block_response(const struct block *b, double *ys)
{
    for (int i = 0; i < b->n; i++)
        ys[i] = or_one(b->scale, i) * b->y[i];
}

size_t source_size(const struct source *s, int n)
{
    return s->order == NULL ? 0 : ((size_t)s->columns + 2) * (size_t)n;
}

static struct block in_place(const struct source *s, int start, int n)
{
    struct block b = {n, s->X + start, s->ldx, NULL, NULL, start};
    b.y = s->y == NULL ? NULL : s->y + start;
    b.scale = s->scale == NULL ? NULL : s->scale + start;
    return b;
}

struct block source_whole(const struct source *s)
{
    return in_place(s, 0, s->N);
}

struct block source_block(const struct source *s, int start, int n, double *scratch)
{
    if (s->order == NULL)
        return in_place(s, start, n);
    double *X = scratch, *y = X + (size_t)s->columns * n, *scale = y + n;
    for (int i = 0; i < n; i++) {
        const size_t row = (size_t)s->order[start + i], ldx = (size_t)s->ldx;
        for (int j = 0; j < s->columns; j++)
            X[(size_t)j * n + i] = s->X[j * ldx + row];
        y[i] = s->y == NULL ? 0.0 : s->y[row];
        scale[i] = or_one(s->scale, row);
    }
    return (struct block){n, X, n, y, s->scale == NULL ? NULL : scale, start};
}
