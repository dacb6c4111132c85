#include <math.h>
#include "neighbours.h"
#include "linalg.h"
#include "simd.h"

#define TWIG   3  /* levels below a twig                                              */
#define LEAF   64 /* rows in a leaf, at most                                          */
#define FEW    16 /* queries that do not pay for ordering the rows                    */
#define SAMPLE 64 /* rows that say which input is widest in a node                    */
#define FAR    1e150 /* coordinates end here: squared distances stay finite              */

static int tree_levels(int n)
{
    int levels = 0;
    while (n > LEAF) {
        n = n / 2 + n % 2;
        levels++;
    }
    return levels;
}

static int twig_level(int levels)
{
    return levels > TWIG ? levels - TWIG : 0;
}

/* nodes down to a level */
static size_t nodes_to(int level)
{
    return ((size_t)2 << level) - 1;
}

size_t tree_doubles(int n, int d)
{
    const int levels = tree_levels(n);
    const size_t boxes = nodes_to(twig_level(levels)) + ((size_t)1 << levels);
    return ((size_t)n + 2 * boxes + 4) * (size_t)d;
}

size_t tree_ints(int n)
{
    return 2 * (size_t)n + nodes_to(tree_levels(n));
}

size_t tree_work(int n)
{
    return (size_t)n;
}

/* first position of node i of a level; that of i + 1 is one beyond its last */
static int start_of(int n, int level, size_t i)
{
    return (int)(((unsigned long long)n * i) >> level);
}

static double coordinate(const struct coordinate *at, double x, double centre)
{
    const double u = coordinate_of(at, x, centre);
    return u > FAR ? FAR : u < -FAR ? -FAR : u;
}

void tree_coordinates(const struct tree *tree, const double *x, int ldx, double *u)
{
    for (int j = 0; j < tree->d; j++)
        u[j] = coordinate(tree->at + j, x[(size_t)tree->at[j].column * ldx],
                          tree->centre[j]);
}

/* ---- building ------------------------------------------------------------------------------ */

/* key[0 .. n - 1] and row beside it so that what comes before position `middle` is not above
 * what comes from there on (Hoare's selection: equal keys are shared out) */
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

/* The input in which the rows (of n) differ most, by some of them.  U: N x d by rows of X. */
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

static void order_rows(int n, int d, int levels, const double *U, double *key, int *row)
{
    for (int level = 0; level < levels; level++)
        for (size_t i = 0; i < (size_t)1 << level; i++) {
            const int start = start_of(n, level, i), end = start_of(n, level, i + 1);
            const int middle = start_of(n, level + 1, 2 * i + 1);
            const double *u =
                U + (size_t)n * widest_input(end - start, row + start, n, d, U);
            for (int p = start; p < end; p++)
                key[p] = u[row[p]];
            split_at(end - start, middle - start, key + start, row + start);
        }
}

/* rows of a leaf by ascending rank: a search ends at the first that is too high */
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

/* boxes of the leaves, of the twigs, and of the nodes above: node i's children are 2 i + 1 and
 * 2 i + 2 */
static void fill_boxes(const struct tree *t, double *low, double *high, double *box)
{
    const size_t leaves = (size_t)1 << t->levels, d = (size_t)t->d;
    const size_t twigs = (size_t)1 << twig_level(t->levels), each = leaves / twigs;
    for (size_t j = 0; j < d; j++) {
        double *lows = low + leaves * j, *highs = high + leaves * j, unused;
        for (size_t i = 0; i < leaves; i++) {
            const int start = start_of(t->n, t->levels, i);
            least_and_most((size_t)(start_of(t->n, t->levels, i + 1) - start),
                           t->U + j * (size_t)t->n + start, lows + i, highs + i);
        }
        for (size_t i = 0; i < twigs; i++) {
            double *twig = box + 2 * d * (twigs - 1 + i);
            least_and_most(each, lows + each * i, twig + j, &unused);
            least_and_most(each, highs + each * i, &unused, twig + d + j);
        }
        for (size_t i = twigs - 1; i-- > 0;) {
            const double *a = box + 2 * d * (2 * i + 1), *b = a + 2 * d;
            box[2 * d * i + j] = fmin(a[j], b[j]);
            box[2 * d * i + d + j] = fmax(a[d + j], b[d + j]);
        }
    }
}

static void fill_least_ranks(const struct tree *t, int *least_rank)
{
    const size_t leaves = (size_t)1 << t->levels;
    for (size_t i = 0; i < leaves; i++)
        least_rank[leaves - 1 + i] = t->rank[start_of(t->n, t->levels, i)];
    for (size_t i = leaves - 1; i-- > 0;) {
        const int a = least_rank[2 * i + 1], b = least_rank[2 * i + 2];
        least_rank[i] = a < b ? a : b;
    }
}

void tree_build(const struct kernel *k, int n, const double *X, int ldx, const int *rank,
                int queries, double *doubles, int *ints, double *work, struct tree *t)
{
    const int levels = tree_levels(n);
    struct coordinate *at = (struct coordinate *)doubles; /* three doubles each */
    const int d = kernel_coordinates(k, at);
    const size_t leaves = (size_t)1 << levels;
    double *U = doubles + 3 * (size_t)kernel_n_coordinates(k), *low = U + (size_t)n * d,
           *high = low + leaves * d, *centre = high + leaves * d, *box = centre + d;
    int *row = ints, *ranks = row + n, *least_rank = ranks + n;
    t->n = n;
    t->d = d;
    t->levels = levels;
    t->centre = centre;
    t->at = at;
    t->U = U;
    t->box = box;
    t->low = low;
    t->high = high;
    t->row = row;
    t->rank = rank == NULL ? NULL : ranks;
    t->least_rank = rank == NULL ? NULL : least_rank;
    if (n == 0)
        return;
    for (int j = 0; j < d; j++) {
        const double *x = X + (size_t)at[j].column * ldx;
        centre[j] = x[0];
        for (int i = 0; i < n; i++)
            U[(size_t)j * n + i] = coordinate(at + j, x[i], centre[j]);
    }
    for (int i = 0; i < n; i++)
        row[i] = i;
    if (queries > FEW)
        order_rows(n, d, t->levels, U, work, row);
    if (rank != NULL) {
        for (size_t i = 0; i < (size_t)1 << t->levels; i++) {
            const int start = start_of(n, t->levels, i);
            sort_by_rank(start_of(n, t->levels, i + 1) - start, rank, row + start);
        }
        for (int p = 0; p < n; p++)
            ranks[p] = rank[row[p]];
    }
    for (int j = 0; j < d; j++) { /* U in the order of the tree */
        double *u = U + (size_t)j * n;
        copy((size_t)n, u, work);
        for (int p = 0; p < n; p++)
            u[p] = work[row[p]];
    }
    fill_boxes(t, low, high, box);
    if (rank != NULL)
        fill_least_ranks(t, least_rank);
}

/* ---- searching ------------------------------------------------------------------------------ */

struct search {
    const struct tree *tree;
    const double *u;
    int s, self, below, found;
    double *r2;
    int *row;
};

/* how far outside: that of the two which is positive, else 0; exact, and without branches */
INSIDE double beyond(double under, double over)
{
    return 0.5 * ((under + fabs(under)) + (over + fabs(over)));
}

/* |u - box|^2: sums in the order of the distances themselves, so never above that of a row */
static double box_distance(int d, const double *box, const double *u)
{
    double sum = 0.0;
    for (int j = 0; j < d; j++) {
        const double off = beyond(box[j] - u[j], u[j] - box[d + j]);
        sum += off * off;
    }
    return sum;
}

/* fused multiply-adds may round the one and not the other: at most some units in the last place */
INSIDE int too_far(const struct search *q, double box)
{
    return q->found == q->s && box * (1.0 - 1e-14) > q->r2[q->s - 1];
}

INSIDE int is_before(double r2, int row, double other_r2, int other_row)
{
    return r2 < other_r2 || (r2 == other_r2 && row < other_row);
}

INSIDE void offer(struct search *q, double r2, int row)
{
    int i = q->found;
    if (i == q->s) {
        if (!is_before(r2, row, q->r2[i - 1], q->row[i - 1]))
            return;
        i--;
    } else {
        q->found++;
    }
    for (; i > 0 && is_before(r2, row, q->r2[i - 1], q->row[i - 1]); i--) {
        q->r2[i] = q->r2[i - 1];
        q->row[i] = q->row[i - 1];
    }
    q->r2[i] = r2;
    q->row[i] = row;
}

/* r2 = squared distances of u from n rows */
INSIDE void distances(const struct tree *t, int start, int n, const double *u,
                      double *restrict r2)
{
    for (int i = 0; i < n; i++)
        r2[i] = 0.0;
    for (int j = 0; j < t->d; j++) {
        const double *restrict row = t->U + (size_t)j * t->n + start, uj = u[j];
        SIMD
        for (int i = 0; i < n; i++)
            r2[i] += (uj - row[i]) * (uj - row[i]);
    }
}

INSIDE void search_leaf(struct search *q, int start, int end)
{
    const struct tree *t = q->tree;
    double r2[LEAF];
    int n = end - start;
    if (t->rank != NULL) {
        n = 0;
        while (start + n < end && t->rank[start + n] < q->below)
            n++;
    }
    distances(t, start, n, q->u, r2);
    double most = q->found < q->s ? INFINITY : q->r2[q->s - 1];
    for (int i = 0; i < n; i++)
        if (r2[i] <= most && t->row[start + i] != q->self) {
            offer(q, r2[i], t->row[start + i]);
            most = q->found < q->s ? INFINITY : q->r2[q->s - 1];
        }
}

INSIDE int is_open(const struct search *q, size_t node)
{
    return q->tree->rank == NULL || q->tree->least_rank[node] < q->below;
}

/* the leaves of a twig, those with nearer boxes first */
CLONES static void search_twig(struct search *q, int level, size_t i)
{
    const struct tree *t = q->tree;
    const size_t leaves = (size_t)1 << t->levels, n = leaves >> level, first = n * i;
    double far[1 << TWIG];
    size_t order[1 << TWIG], open = 0;
    for (size_t l = 0; l < n; l++)
        far[l] = 0.0;
    for (size_t j = 0; j < (size_t)t->d; j++) {
        const double *restrict low = t->low + leaves * j + first, *restrict high =
                                                                      t->high +
                                                                      leaves * j + first;
        const double u = q->u[j];
        SIMD
        for (size_t l = 0; l < n; l++) {
            const double off = beyond(low[l] - u, u - high[l]);
            far[l] += off * off;
        }
    }
    for (size_t l = 0; l < n; l++) {
        if (too_far(q, far[l]) || !is_open(q, leaves - 1 + first + l))
            continue;
        size_t k = open++;
        for (; k > 0 && far[order[k - 1]] > far[l]; k--)
            order[k] = order[k - 1];
        order[k] = l;
    }
    for (size_t k = 0; k < open && !too_far(q, far[order[k]]); k++) {
        const size_t leaf = first + order[k];
        search_leaf(q, start_of(t->n, t->levels, leaf),
                    start_of(t->n, t->levels, leaf + 1));
    }
}

/* node = 2^level - 1 + i */
static void search_node(struct search *q, int level, size_t i)
{
    const struct tree *t = q->tree;
    if (level == twig_level(t->levels)) {
        search_twig(q, level, i);
        return;
    }
    const size_t child = 2 * (((size_t)1 << level) - 1 + i) + 1, two_d = 2 * (size_t)t->d;
    const double far[2] = {box_distance(t->d, t->box + two_d * child, q->u),
                           box_distance(t->d, t->box + two_d * (child + 1), q->u)};
    const size_t first = far[1] < far[0];
    for (size_t turn = 0; turn < 2; turn++) {
        const size_t side = turn == 0 ? first : 1 - first;
        if (is_open(q, child + side) && !too_far(q, far[side]))
            search_node(q, level + 1, 2 * i + side);
    }
}

int tree_nearest(const struct tree *tree, const double *u, int s, int self, int below,
                 double *r2, int *row)
{
    struct search q = {tree, u, s, self, below, 0, r2, row};
    if (s > 0 && tree->n > 0 && is_open(&q, 0))
        search_node(&q, 0, 0);
    return q.found;
}

static void finding_add(const void *self, const struct visit *v)
{
    const struct finding *f = self;
    const struct block *b = &v->block;
    double *u = v->work, *r2 = u + f->tree->d;
    for (int i = 0; i < b->n; i++) {
        const int self_row = f->row == NULL ? -1 : f->row[b->first + i];
        const int below = f->rank == NULL ? 0 : f->rank[self_row];
        int *near = f->near + (size_t)(b->first + i) * f->s;
        tree_coordinates(f->tree, b->X + i, b->ldx, u);
        const int found = tree_nearest(f->tree, u, f->s, self_row, below, r2, near);
        for (int j = 0; j < f->s; j++)
            near[j] = j < found ? near[j] + 1 : 0;
    }
}

struct sink finding_sink(const struct finding *self)
{
    return (struct sink){
        .self = self, .n_work = (size_t)self->tree->d + self->s, .add = finding_add};
}
