#include <math.h>
#include <string.h>
#include "tree.h"
#include "linalg.h"

#define FEW 16 /* up to this number of queries, rows are not sorted */
/* In a node with more rows than this, 64 to 127 rows are compared to find the coordinate with the largest range. */
#define SAMPLE 64
#define FAR    1e150 /* bound on coordinates, which keeps squared distances finite */

/* Returns the number of coordinates, of at[0], ..., at[d - 1], that are the 0/1 inputs of one categorical variable:
 * each row has one 1 among them, and they have the same rate.  Returns 1 if there is none.  taken: scratch [rows] */
static int count_levels(const struct source *rows, int d, const struct coordinate *at,
                        double *taken)
{
    int levels = 0, left = rows->N;
    const double first = left > 0 ? rows->X[(size_t)at->column * rows->ldx] : 0.0;
    if (first != 0.0 && first != 1.0) /* the usual case */
        return 1;
    memset(taken, 0, (size_t)left * sizeof *taken);
    for (; levels < d && at[levels].column == at->column + levels; levels++) {
        const double *x = rows->X + (size_t)at[levels].column * rows->ldx;
        if (at[levels].rate != at->rate || at[levels].period != 0.0)
            break;
        for (int i = 0; i < rows->N; i++) {
            if (x[i] != 0.0 && (x[i] != 1.0 || taken[i] == 1.0))
                return left == 0 ? levels : 1;
            left -= x[i] == 1.0;
            taken[i] += x[i];
        }
    }
    return left == 0 ? levels : 1;
}

/* Merges the coordinates of a categorical variable's 0/1 inputs into one, so that the time of a search does not grow
 * with the number of levels. Coordinates that are no levels come first. `from` is overwritten. */
static void merge_levels(struct tree *t, const struct source *rows,
                         struct coordinate *from)
{
    int merged = 0;
    t->numbers = 0;
    for (int j = 0, n; j < t->inputs; j += n) {
        const double gap = 2.0 * from[j].rate * from[j].rate;
        n = gap > 0.0 ? count_levels(rows, t->inputs - j, from + j, t->work) : 1;
        const int level = n > 1 || from[j].rate < 0.0;
        from[j].levels = n > 1 ? n : 0;
        from[j].gap = level ? gap : 0.0;
        *(level ? from + merged++ : t->at + t->numbers++) = from[j];
    }
    memcpy(t->at + t->numbers, from, (size_t)merged * sizeof *from);
    t->d = t->numbers + merged;
}

/* Computes a coordinate of a row from its inputs x[0], x[ldx], ... For 0/1 inputs, it is the position of the 1. */
static double coordinate(const struct coordinate *at, const double *x, int ldx)
{
    for (int k = 0; k < at->levels; k++)
        if (x[(size_t)k * ldx] > 0.5)
            return k + 1.0;
    if (at->gap > 0.0) /* 0: a level that the data lack */
        return at->levels > 0 ? 0.0 : *x;
    double u = (*x - at->centre) * at->rate;
    if (at->period != 0.0) {
        const double turns = *x / fabs(at->period),
                     angle = 2.0 * PI * (turns - floor(turns));
        u = at->rate * (at->period > 0.0 ? cos(angle) : sin(angle));
    }
    return u > FAR ? FAR : u < -FAR ? -FAR : u;
}

static int levels_of(int n)
{
    int levels = 0;
    while (n > LEAF) {
        n = n / 2 + n % 2;
        levels++;
    }
    return levels;
}

int tree_twigs(const struct tree *tree)
{
    return tree->levels > TWIG ? tree->levels - TWIG : 0;
}

/* Returns the number of nodes on the levels 0, ..., level. */
static size_t nodes_to(int level)
{
    return ((size_t)2 << level) - 1;
}

static void lay_out(struct tree *t, struct arena *arena)
{
    const size_t rows = (size_t)t->n, d = (size_t)t->d;
    t->levels = levels_of(t->n);
    const size_t leaves = (size_t)1 << t->levels, nodes = nodes_to(t->levels);
    t->level = arena_take(arena, rows * (size_t)(t->d - t->numbers));
    t->U = arena_take(arena, rows * d);
    t->V = (float *)arena_ints(arena, rows * d + TILE);
    t->box = arena_take(arena, 2 * d * nodes_to(tree_twigs(t)));
    t->low = arena_take(arena, leaves * d);
    t->high = arena_take(arena, leaves * d);
    t->width = arena_take(arena, leaves);
    t->row = arena_ints(arena, rows);
    t->rank = t->with_ranks ? arena_ints(arena, rows) : NULL;
    t->least_rank = t->with_ranks ? arena_ints(arena, nodes) : NULL;
}

void tree_coordinates(const struct tree *tree, struct rows x, double *u)
{
    for (int j = 0; j < tree->d; j++)
        u[j] = coordinate(tree->at + j, rows_column(x, tree->at[j].column), x.ldx);
}

/* Reorders key[0 .. n - 1], and row likewise, so that no key before position `middle` exceeds a key from there on.
 * (Hoare's selection; keys equal to the pivot go to both sides.) */
static void split_at(int n, int middle, double *key, int *row)
{
    int low = 0, high = n - 1;
    while (low < high) {
        const double a = key[low], b = key[low + (high - low) / 2], c = key[high];
        const double pivot = fmax(fmin(a, b), fmin(fmax(a, b), c));
        int i = low, j = high;
        while (i <= j) {
            while (key[i] < pivot)
                i++;
            while (key[j] > pivot)
                j--;
            if (i <= j) {
                const double t = key[i];
                const int r = row[i];
                key[i] = key[j];
                row[i++] = row[j];
                key[j] = t;
                row[j--] = r;
            }
        }
        if (middle <= j)
            high = j;
        else if (middle >= i)
            low = i;
        else
            return;
    }
}

/* Returns the column of the coordinates t->U that has the largest range in a sample of the n rows `row`. */
static const double *widest(const struct tree *t, int n, const int *row)
{
    const int step = n > SAMPLE ? n / SAMPLE : 1;
    const double *u = t->U, *widest = u;
    double most = -1.0;
    for (int j = 0; j < t->d; j++, u += t->n) {
        double low = u[row[0]], high = low;
        for (int i = 0; i < n; i += step) {
            const double v = u[row[i]];
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        if (squared(high - low, t->at[j].gap) > most) {
            most = squared(high - low, t->at[j].gap);
            widest = u;
        }
    }
    return widest;
}

/* Cuts each node in half along its widest coordinate, by reordering t->row. The coordinates t->U keep their order. */
static void order_rows(struct tree *t)
{
    double *key = t->work;
    for (int level = 0; level < t->levels; level++)
        for (size_t i = 0; i < (size_t)1 << level; i++) {
            const int start = tree_start(t, level, i), end = tree_start(t, level, i + 1);
            const int middle = tree_start(t, level + 1, 2 * i + 1);
            const double *u = widest(t, end - start, t->row + start);
            for (int p = start; p < end; p++)
                key[p] = u[t->row[p]];
            split_at(end - start, middle - start, key + start, t->row + start);
        }
}

/* Sorts the rows of a leaf by rank, so that a search for rows of lower rank than a given one can stop early. */
static void sort_by_rank(int n, const int *rank, int *row)
{
    for (int i = 1; i < n; i++) {
        const int r = row[i];
        int j = i;
        for (; j > 0 && rank[row[j - 1]] > rank[r]; j--)
            row[j] = row[j - 1];
        row[j] = r;
    }
}

static void take_ranks(struct tree *t, const int *rank)
{
    for (size_t i = 0; i < (size_t)1 << t->levels; i++) {
        const int start = tree_start(t, t->levels, i);
        sort_by_rank(tree_start(t, t->levels, i + 1) - start, rank, t->row + start);
    }
    for (int p = 0; p < t->n; p++)
        t->rank[p] = rank[t->row[p]];
}

/* ---- coordinates and bounding boxes in the order of the tree -------------------------------- */

/* Returns the first column of the data from which coordinate j is computed. */
static const double *input(const struct tree *t, const struct source *rows, int j)
{
    return rows->X + (size_t)t->at[j].column * rows->ldx;
}

/* Computes the coordinates that are level numbers, column by column: to read X by rows would miss the cache. */
static void fill_levels(struct tree *t, const struct source *rows)
{
    double *level = t->level;
    for (int j = t->numbers; j < t->d; j++, level += t->n) {
        memcpy(level, input(t, rows, j), (size_t)t->n * sizeof *level);
        for (int k = 0; k < t->at[j].levels; k++) {
            const double *x = input(t, rows, j) + (size_t)k * rows->ldx;
            for (int i = 0; i < t->n; i++)
                level[i] = x[i] == 1.0 ? k + 1.0 : level[i];
        }
    }
}

static double of_row(const struct tree *t, const struct source *rows, int j, int row)
{
    return j < t->numbers ? coordinate(t->at + j, input(t, rows, j) + row, rows->ldx)
                          : t->level[(size_t)(j - t->numbers) * t->n + row];
}

/* Computes the coordinates t->U leaf by leaf: n_l x d numbers for the n_l rows of each leaf. */
static void fill_leaves(struct tree *t, const struct source *rows)
{
    double *u = t->U;
    for (size_t i = 0; i < (size_t)1 << t->levels; i++)
        for (int j = 0; j < t->d; j++)
            for (int p = tree_start(t, t->levels, i); p < tree_start(t, t->levels, i + 1);
                 p++)
                *u++ = of_row(t, rows, j, t->row[p]);
}

static void least_and_most(size_t n, const double *x, double *least, double *most)
{
    double low = x[0], high = x[0];
    for (size_t i = 1; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *least = low;
    *most = high;
}

/* Computes bounding boxes: of the leaves in t->low and t->high, and in t->box of the twigs (nodes TWIG levels above the
 * leaves) and the nodes above them. In t->box, node i has the children 2 i + 1 and 2 i + 2. */
static void fill_boxes(struct tree *t)
{
    const size_t leaves = (size_t)1 << t->levels, d = (size_t)t->d;
    const size_t twigs = (size_t)1 << tree_twigs(t), each = leaves / twigs;
    for (size_t j = 0; j < d; j++) {
        double *lows = t->low + leaves * j, *highs = t->high + leaves * j, unused;
        for (size_t i = 0; i < leaves; i++) {
            const int start = tree_start(t, t->levels, i);
            const size_t rows = (size_t)(tree_start(t, t->levels, i + 1) - start);
            least_and_most(rows, t->U + d * start + j * rows, lows + i, highs + i);
        }
        for (size_t i = 0; i < twigs; i++) {
            double *twig = t->box + 2 * d * (twigs - 1 + i);
            least_and_most(each, lows + each * i, twig + j, &unused);
            least_and_most(each, highs + each * i, &unused, twig + d + j);
        }
        for (size_t i = twigs - 1; i-- > 0;) {
            const double *a = t->box + 2 * d * (2 * i + 1), *b = a + 2 * d;
            t->box[2 * d * i + j] = fmin(a[j], b[j]);
            t->box[2 * d * i + d + j] = fmax(a[d + j], b[d + j]);
        }
    }
}

static void fill_nearby(struct tree *t)
{
    const size_t leaves = (size_t)1 << t->levels, d = (size_t)t->d;
    size_t at = 0;
    for (size_t i = 0; i < leaves; i++) {
        const int n = tree_start(t, t->levels, i + 1) - tree_start(t, t->levels, i);
        double square = 0.0;
        for (size_t j = 0; j < d; j++) {
            const double low = t->low[leaves * j + i], w = t->high[leaves * j + i] - low;
            square += squared(w, t->at[j].gap);
            for (int p = 0; p < n; p++, at++)
                t->V[at] = (float)(t->U[at] - low);
        }
        t->width[i] = sqrt(square);
    }
    for (int p = 0; p < TILE; p++)
        t->V[at + p] = 0.0F;
}

static void fill_least_ranks(struct tree *t)
{
    const size_t leaves = (size_t)1 << t->levels;
    for (size_t i = 0; i < leaves; i++)
        t->least_rank[leaves - 1 + i] = t->rank[tree_start(t, t->levels, i)];
    for (size_t i = leaves - 1; i-- > 0;) {
        const int a = t->least_rank[2 * i + 1], b = t->least_rank[2 * i + 2];
        t->least_rank[i] = a < b ? a : b;
    }
}

void tree_build(struct tree *t, const struct source *rows, const int *rank, int queries,
                struct arena *arena)
{
    const int n = t->n;
    const size_t size = 5 * (size_t)kernel_n_coordinates(t->kernel); /* in doubles */
    struct coordinate *from = (struct coordinate *)arena_take(arena, size);
    t->at = (struct coordinate *)arena_take(arena, size);
    t->work = arena_take(arena, (size_t)n);
    t->inputs = kernel_coordinates(t->kernel, from);
    merge_levels(t, rows, from);
    lay_out(t, arena);
    if (n == 0)
        return;
    fill_levels(t, rows);
    for (int j = 0; j < t->d; j++) {
        t->at[j].centre = input(t, rows, j)[0];
        for (int i = 0; i < n; i++)
            t->U[(size_t)j * n + i] = of_row(t, rows, j, i);
    }
    for (int i = 0; i < n; i++)
        t->row[i] = i;
    if (queries > FEW && t->d > 0)
        order_rows(t);
    if (t->rank != NULL)
        take_ranks(t, rank);
    fill_leaves(t, rows);
    fill_boxes(t);
    fill_nearby(t);
    if (t->rank != NULL)
        fill_least_ranks(t);
}
