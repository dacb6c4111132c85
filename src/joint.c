#include "joint.h"
#include "linalg.h"

void joint_open(struct joint *j, const struct kernel *k, int n, int N, int s,
                struct arena *arena)
{
    const size_t entries = (size_t)n * ((size_t)s + 1), rows = (size_t)n * s,
                 points = (rows < (size_t)N ? rows : (size_t)N) + n;
    j->kernel = k;
    j->n = n;
    j->n_points = (int)points;
    j->X = arena_take(arena, points * kernel_columns(k));
    j->noise = arena_take(arena, points);
    j->weight = arena_take(arena, entries);
    j->start = arena_ints(arena, points + 2);
    j->column = arena_ints(arena, entries);
    j->place = arena_ints(arena, (size_t)N);
}

/* Lists the rows that are near to any x, and returns their number. */
static int place_rows(struct joint *j, int N, size_t size, const int *near)
{
    int used = 0;
    for (int i = 0; i < N; i++)
        j->place[i] = -1;
    for (size_t e = 0; e < size; e++)
        if (near[e] > 0 && j->place[near[e] - 1] < 0)
            j->place[near[e] - 1] = used++;
    return used;
}

static void set_point(struct joint *j, int place, const struct source *from, int i,
                      double noise)
{
    const int columns = kernel_columns(j->kernel);
    j->noise[place] = noise;
    for (size_t c = 0; c < (size_t)columns; c++)
        j->X[(size_t)j->n_points * c + place] = from->X[c * from->ldx + i];
}

/* Counts the entries of each point, then places each entry after those of earlier points; start[l + 1] moves up from
 * the first to one beyond the last entry of point l */
static void fill_entries(struct joint *j, const struct source *rows, int used, int s,
                         const int *near, const double *u)
{
    const size_t size = (size_t)j->n * s, ends = (size_t)j->n_points + 2;
    int *start = j->start;
    for (size_t l = 0; l < ends; l++)
        start[l] = 0;
    for (size_t e = 0; e < size; e++)
        if (near[e] > 0)
            start[j->place[near[e] - 1] + 2]++;
    for (int i = 0; i < j->n; i++)
        start[used + i + 2]++;
    for (size_t l = 2; l < ends; l++)
        start[l] += start[l - 1];
    for (size_t i = 0; i < (size_t)j->n; i++) {
        for (size_t e = i * s; e < (i + 1) * s && near[e] > 0; e++) {
            const int row = near[e] - 1, at = start[j->place[row] + 1]++;
            j->column[at] = (int)i;
            j->weight[at] = -u[e] * scale_of(rows->scale, row);
        }
        const int at = start[used + (int)i + 1]++;
        j->column[at] = (int)i;
        j->weight[at] = 1.0;
    }
}

void joint_points(struct joint *j, const struct source *rows, const struct source *x,
                  double s2, int s, const int *near, const double *u)
{
    const int used = place_rows(j, rows->N, (size_t)j->n * s, near);
    j->n_points = used + j->n;
    for (int i = 0; i < rows->N; i++) {
        const double scale = scale_of(rows->scale, i);
        if (j->place[i] >= 0)
            set_point(j, j->place[i], rows, i, s2 / (scale * scale));
    }
    for (int i = 0; i < j->n; i++)
        set_point(j, used + i, x, i, 0.0);
    fill_entries(j, rows, used, s, near, u);
}

/* covariance += W_b'(K + noise)_b. W */
static void joint_add(const void *self, const struct visit *v)
{
    const struct joint *p = self;
    const int first = v->block.first, b = v->block.n;
    const size_t n = (size_t)p->n, rows = (size_t)b;
    const struct rows X = matrix_rows(p->n_points, p->X);
    double *T = v->work, *k = T + rows * n; /* T = (K + noise)_b. W:  b x n */
    fill(rows * n, 0.0, T);
    for (int l = 0; l < p->n_points; l++) {
        kernel_cross(p->kernel, rows_from(X, first, b), rows_from(X, l, 1), k);
        if (l >= first && l < first + b)
            k[l - first] += p->noise[l];
        for (int e = p->start[l]; e < p->start[l + 1]; e++)
            add_scaled(rows, p->weight[e], k, T + rows * (size_t)p->column[e]);
    }
    for (size_t j = 0; j < n; j++)
        for (int l = 0; l < b; l++)
            for (int e = p->start[first + l]; e < p->start[first + l + 1]; e++)
                v->sums[n * j + (size_t)p->column[e]] +=
                    p->weight[e] * T[rows * j + (size_t)l];
}

struct sink joint_sink(const struct joint *self, double *covariance)
{
    const size_t n = (size_t)self->n;
    return sum_sink(self, joint_add, n + 1, 0, n * n, covariance);
}

void joint_finish(const struct joint *j, int M, const double *C, double *R,
                  const double *var_near, const double *var_far, double *covariance)
{
    const int n = j->n;
    mult_AtB(n, M, n, -1.0, R, R, 1.0, covariance);
    solve_lower(M, n, C, R);
    mult_AtB(n, M, n, 1.0, R, R, 1.0, covariance);
    for (int c = 0; c < n; c++) { /* symmetric, with the predictions' variances */
        covariance[(size_t)c * n + c] = var_near[c] + var_far[c];
        for (int r = c + 1; r < n; r++) {
            double *low = covariance + (size_t)c * n + r,
                   *high = covariance + (size_t)r * n + c;
            *low = *high = 0.5 * (*low + *high);
        }
    }
}
