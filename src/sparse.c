#include "sparse.h"
#include "linalg.h"

struct sparse sparse_rows(int n, int q, const double *B, struct arena *arena)
{
    size_t *start = (size_t *)arena_take(arena, (size_t)n + 2), count = 0;
    for (int i = 0; i < n + 2; i++)
        start[i] = 0;
    for (int j = 0; j < q; j++)
        for (int i = 0; i < n; i++)
            start[i + 2] += B[(size_t)j * n + i] != 0.0;
    for (int i = 2; i < n + 2; i++)
        start[i] = count += start[i];
    int *column = arena_ints(arena, count);
    double *value = arena_take(arena, count);
    for (int j = 0; j < q;
         j++) /* moves start[i + 1] from the start of row i to its end */
        for (int i = 0; i < n; i++) {
            const double b = B[(size_t)j * n + i];
            if (b != 0.0) {
                column[start[i + 1]] = j;
                value[start[i + 1]++] = b;
            }
        }
    return (struct sparse){q, start, column, value};
}

int sparse_gather(const struct sparse *b, int m, const int *row, int *at, double *to)
{
    int *place = at + b->q, count = 0;
    for (int j = 0; j < b->q; j++)
        place[j] = 0;
    for (int i = 0; i < m; i++)
        for (size_t e = b->start[row[i]]; e < b->start[row[i] + 1]; e++)
            place[b->column[e]] = 1;
    for (int j = 0; j < b->q; j++)
        if (place[j]) {
            at[count] = j;
            place[j] = count++;
        }
    fill((size_t)count * m, 0.0, to);
    for (int i = 0; i < m; i++)
        for (size_t e = b->start[row[i]]; e < b->start[row[i] + 1]; e++)
            to[(size_t)place[b->column[e]] * m + i] = b->value[e];
    return count;
}

double sparse_form(const struct sparse *b, int i, const double *V)
{
    double form = 0.0;
    for (size_t e = b->start[i]; e < b->start[i + 1]; e++) {
        double sum = 0.0;
        for (size_t f = b->start[i]; f < b->start[i + 1]; f++)
            sum += V[(size_t)b->column[e] * b->q + b->column[f]] * b->value[f];
        form += b->value[e] * sum;
    }
    return form;
}
