#include <math.h>
#include "tree.h"
#include "linalg.h"

#define FEW 16 /* up to this number of queries, rows are not sorted */
/* in a node with more rows than this, 64 to 127 rows are compared to find the coordinate with the largest range */
#define SAMPLE 64
#define FAR    1e150 /* bound on coordinates, which keeps squared distances finite */

/* ---- coordinates of a kernel ---------------------------------------------------------------------- */

static int is_mean(const struct kernel *k, const struct term *t)
{
    return t->n_factors == 1 && factor_is_mean(kernel_factor(k, t, 0));
}

/* Returns a term's variance parameter, divided by the sum of those of all terms except linear means; 1 for a single
 * term. */
static double share_of(const struct kernel *k, const struct term *t)
{
    double sum = 0.0;
    for (int i = 0; i < k->n_terms; i++)
        sum += is_mean(k, k->term + i) ? 0.0 : k->term[i].variance;
    return k->n_terms == 1 ? 1.0 : t->variance / sum;
}

/* Returns the average of -log(correlation) over pairs of different levels; correlations below 1e-3 count as 1e-3. */
static double apart(const struct factor *f)
{
    double sum = 0.0;
    for (int a = 0; a < f->d; a++)
        for (int b = 0; b < a; b++)
            sum -= log(fmax(f->table[(size_t)a * f->d + b], 1e-3));
    return f->d > 1 ? sum / (0.5 * f->d * (f->d - 1.0)) : 0.0;
}

static int add(struct coordinate *at, int n, int column, double rate, double period)
{
    for (int i = 0; i < n; i++)
        if (at[i].column == column && at[i].period == period) {
            at[i].rate = sqrt(at[i].rate * at[i].rate + rate * rate);
            return n;
        }
    at[n] = (struct coordinate){column, rate, period};
    return n + 1;
}

static int add_factor(const struct factor *f, double share, struct coordinate *at, int n)
{
    const double *shape = factor_shape(f), root = sqrt(share);
    if (factor_is_mean(f))
        return n;
    for (int j = 0; j < f->d; j++)
        switch (f->profile->metric) {
        case METRIC_SCALED: /* the bound avoids Inf * 0 */
            n = add(at, n, f->column[j], fmin(root * factor_rate(f, j), 1e290), 0.0);
            break;
        case METRIC_PERIODIC: /* r2 is a squared chord of a circle with this radius */
            n = add(at, n, f->column[j], root * fmin(factor_rate(f, j), 1e145),
                    factor_period(f));
            n = add(at, n, f->column[j], root * fmin(factor_rate(f, j), 1e145),
                    -factor_period(f));
            break;
        case METRIC_PRODUCT: {
            const double slope =
                f->profile->n_shape ? f->power * pow(shape[0], f->power - 1) : 1.0;
            n = add(at, n, f->column[j], fmin(root * sqrt(slope), 1e290), 0.0);
            break;
        }
        case METRIC_LEVELS:
            n = add(at, n, f->column[j], root * sqrt(apart(f)), 0.0);
            break;
        default:
            break;
        }
    return n;
}

int kernel_n_coordinates(const struct kernel *k)
{
    int n = 0;
    for (int t = 0; t < k->n_terms; t++)
        for (int i = 0; i < k->term[t].n_factors; i++) {
            const struct factor *f = kernel_factor(k, k->term + t, i);
            n += f->profile->metric == METRIC_PERIODIC ? 2 * f->d : f->d;
        }
    return n;
}

int kernel_coordinates(const struct kernel *k, struct coordinate *at)
{
    int n = 0;
    for (int t = 0; t < k->n_terms; t++)
        for (int i = 0; i < k->term[t].n_factors; i++)
            n = add_factor(kernel_factor(k, k->term + t, i), share_of(k, k->term + t), at,
                           n);
    return n;
}

static double coordinate(const struct coordinate *at, double x, double centre)
{
    double u = (x - centre) * at->rate;
    if (at->period != 0.0) {
        const double turns = x / fabs(at->period),
                     angle = 2.0 * PI * (turns - floor(turns));
        u = at->rate * (at->period > 0.0 ? cos(angle) : sin(angle));
    }
    return u > FAR ? FAR : u < -FAR ? -FAR : u;
}

/* ---- the tree ------------------------------------------------------------------------------------- */

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
    const size_t rows = (size_t)t->n, d = (size_t)kernel_n_coordinates(t->kernel);
    t->d = (int)d;
    t->levels = levels_of(t->n);
    const size_t leaves = (size_t)1 << t->levels, nodes = nodes_to(t->levels);
    /* a coordinate has the size of three doubles */
    t->at = (struct coordinate *)arena_take(arena, 3 * d);
    t->centre = arena_take(arena, d);
    t->U = arena_take(arena, rows * d);
    t->V = (float *)arena_ints(arena, rows * d + TILE);
    t->box = arena_take(arena, 2 * d * nodes_to(tree_twigs(t)));
    t->low = arena_take(arena, leaves * d);
    t->high = arena_take(arena, leaves * d);
    t->width = arena_take(arena, leaves);
    t->row = arena_ints(arena, rows);
    t->rank = t->with_ranks ? arena_ints(arena, rows) : NULL;
    t->least_rank = t->with_ranks ? arena_ints(arena, nodes) : NULL;
    t->work = arena_take(arena, rows);
}

void tree_coordinates(const struct tree *tree, struct rows x, double *u)
{
    for (int j = 0; j < tree->d; j++)
        u[j] = coordinate(tree->at + j, *rows_column(x, tree->at[j].column),
                          tree->centre[j]);
}

/* ---- the order of the rows ------------------------------------------------------------------ */

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

/* Returns the coordinate with the largest range in a sample of n rows.  U is N x d in the order of the data. */
static int widest_input(int n, const int *row, int N, int d, const double *U)
{
    const int step = n > SAMPLE ? n / SAMPLE : 1;
    int widest = 0;
    double most = -1.0;
    for (int j = 0; j < d; j++) {
        const double *u = U + (size_t)j * N;
        double low = u[row[0]], high = low;
        for (int i = 0; i < n; i += step) {
            const double v = u[row[i]];
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        if (high - low > most) {
            most = high - low;
            widest = j;
        }
    }
    return widest;
}

/* Sorts the rows of the tree.  U is still in the order of the data. */
static void order_rows(struct tree *t)
{
    double *key = t->work;
    for (int level = 0; level < t->levels; level++)
        for (size_t i = 0; i < (size_t)1 << level; i++) {
            const int start = tree_start(t, level, i), end = tree_start(t, level, i + 1);
            const int middle = tree_start(t, level + 1, 2 * i + 1);
            const double *u =
                t->U + (size_t)t->n *
                           widest_input(end - start, t->row + start, t->n, t->d, t->U);
            for (int p = start; p < end; p++)
                key[p] = u[t->row[p]];
            split_at(end - start, middle - start, key + start, t->row + start);
        }
}

/* Sorts the rows of a leaf by rank, so that a search can stop at the first rank that is too high. */
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

/* ---- boxes ---------------------------------------------------------------------------------- */

/* Returns the column of X for coordinate j. */
static const double *input(const struct tree *t, const struct source *rows, int j)
{
    return rows->X + (size_t)t->at[j].column * rows->ldx;
}

/* Computes U in the order of the tree, leaf by leaf. */
static void fill_leaves(struct tree *t, const struct source *rows)
{
    double *u = t->U;
    for (size_t i = 0; i < (size_t)1 << t->levels; i++)
        for (int j = 0; j < t->d; j++) {
            const double *x = input(t, rows, j);
            for (int p = tree_start(t, t->levels, i); p < tree_start(t, t->levels, i + 1);
                 p++)
                *u++ = coordinate(t->at + j, x[t->row[p]], t->centre[j]);
        }
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

/* Computes the boxes of the leaves, of the twigs and of the nodes above the twigs.  In t->box, node i has the children
 * 2 i + 1 and 2 i + 2. */
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
            square += w * w;
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

/* ---- building the tree ------------------------------------------------------------------------ */

void tree_build(struct tree *t, const struct source *rows, const int *rank, int queries,
                struct arena *arena)
{
    const int n = t->n;
    lay_out(t, arena);
    t->d = kernel_coordinates(t->kernel, t->at);
    if (n == 0)
        return;
    for (int j = 0; j < t->d; j++)
        t->centre[j] = input(t, rows, j)[0];
    for (int j = 0; j < t->d; j++)
        for (int i = 0; i < n; i++)
            t->U[(size_t)j * n + i] =
                coordinate(t->at + j, input(t, rows, j)[i], t->centre[j]);
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
